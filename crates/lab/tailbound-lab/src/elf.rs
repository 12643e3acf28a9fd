// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a program needs besides itself: its loader and shared libraries, found as the
//! loader would.
//!
//! Little-endian ELF, which every guest here is.
//! Not here: the file itself (`tailbound_host::elf`). Source: ld.so(8).

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use tailbound_core::limits;
use tailbound_host::elf::{Elf, Needs};
use tailbound_sys::given;

use crate::arch::Arch;
use crate::error::{GuestError, LabError};

const MACHINE_ARM: u16 = 40;
const MACHINE_X86_64: u16 = 62;
const MACHINE_AARCH64: u16 = 183;
/// Deeper chains of libraries than this are a loop.
const LIBRARIES_MAX: usize = 512;

/// The architecture of an ELF file, where it is one of the lab's.
#[must_use]
pub fn arch(bytes: &[u8]) -> Option<Arch> {
    match Elf::new(bytes)?.machine() {
        MACHINE_X86_64 => Some(Arch::X86_64),
        MACHINE_AARCH64 => Some(Arch::Aarch64),
        MACHINE_ARM => Some(Arch::Arm),
        _ => None,
    }
}

/// What an ELF file needs; `None` when it is none (a script, say).
#[must_use]
pub fn needs(bytes: &[u8]) -> Option<Needs> {
    Elf::new(bytes)?.needs()
}

/// Enough of a file to know its architecture.
const HEAD_BYTES: u64 = 4096;

/// The bytes of the section called `name`; `None` when there is none, or no ELF file.
#[must_use]
pub fn section<'a>(bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
    Elf::new(bytes)?.section(name)
}

/// Everything `program` needs to run, by its path in the guest: its loader and libraries,
/// looked for in `folders` first, then where each file says, then where this system keeps
/// those of `arch`. The program itself is not among them.
///
/// # Errors
/// A library is nowhere: its name, who needs it, and where it was looked for.
pub fn libraries(
    program: &Path,
    arch: Arch,
    folders: &[PathBuf],
) -> Result<BTreeMap<String, PathBuf>, LabError> {
    let mut found = BTreeMap::new();
    let mut open = vec![program.to_owned()];
    while let Some(path) = open.pop() {
        let bytes =
            given::read(&path, limits::OBJECT_BYTES_MAX).map_err(|e| LabError::file(&path, e))?;
        let Some(needs) = needs(&bytes) else { continue };
        if let Some(loader) = needs.interpreter {
            let host = Path::new(&loader);
            if !host.is_file() {
                return Err(GuestError::NoLoader { path, loader }.into());
            }
            if found.insert(loader.clone(), host.to_owned()).is_none() {
                open.push(host.to_owned());
            }
        }
        let own = path.parent().unwrap_or(Path::new("/")).display().to_string();
        let stated = needs.search.iter().map(|s| PathBuf::from(s.replace("$ORIGIN", &own)));
        let places: Vec<PathBuf> =
            folders.iter().cloned().chain(stated).chain(system(arch)).collect();
        for name in needs.libraries {
            let host = places
                .iter()
                .map(|p| p.join(&name))
                .find(|p| head(p).is_some_and(|b| self::arch(&b) == Some(arch)));
            let host = host.ok_or_else(|| GuestError::NoLibrary {
                path: path.clone(),
                library: name.clone(),
                folders: places.clone(),
            })?;
            // The loader looks in /lib whatever else it is told.
            let guest = format!("/lib/{name}");
            let known = found.keys().any(|k: &String| k.ends_with(&format!("/{name}")));
            if !known && found.len() < LIBRARIES_MAX {
                found.insert(guest, host.clone());
                open.push(host);
            }
        }
    }
    Ok(found)
}

/// The beginning of a file, which names its architecture.
fn head(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    given::file(path).and_then(|f| f.take(HEAD_BYTES).read_to_end(&mut bytes)).ok()?;
    Some(bytes)
}

/// Debian's name of `arch` in paths of libraries.
pub(crate) fn triple(arch: Arch) -> &'static str {
    match arch {
        Arch::X86_64 => "x86_64-linux-gnu",
        Arch::Aarch64 => "aarch64-linux-gnu",
        Arch::Arm => "arm-linux-gnueabihf",
    }
}

/// Where this system keeps libraries of `arch`, in the order of looking.
pub(crate) fn system(arch: Arch) -> Vec<PathBuf> {
    let triple = triple(arch);
    let mut folders = vec![
        PathBuf::from(format!("/usr/{triple}/lib")),
        PathBuf::from(format!("/lib/{triple}")),
        PathBuf::from(format!("/usr/lib/{triple}")),
    ];
    folders
        .extend(["/usr/local/lib", "/lib64", "/usr/lib64", "/lib", "/usr/lib"].map(PathBuf::from));
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_this_system_finds_its_loader_and_libraries() {
        let own = std::env::current_exe().unwrap();
        let bytes = std::fs::read(&own).unwrap();
        assert_eq!(arch(&bytes), Some(Arch::of_host()));
        let needs = needs(&bytes).unwrap();
        let found = libraries(&own, Arch::of_host(), &[]).unwrap();
        for name in &needs.libraries {
            assert!(found.keys().any(|k| k.ends_with(name.as_str())), "{name} in {found:?}");
        }
        assert_eq!(
            needs.interpreter.is_some(),
            needs.interpreter.is_some_and(|i| found.contains_key(&i))
        );
    }

    #[test]
    fn what_is_cut_off_needs_nothing_and_panics_nowhere() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        for length in (0..4096).chain([bytes.len() / 2]) {
            let _ = needs(bytes.get(..length).unwrap_or_default());
        }
        // Every field of the program header's table at its greatest.
        let mut lying = bytes.get(..4096).unwrap_or_default().to_vec();
        lying.iter_mut().skip(64).for_each(|b| *b = 0xff);
        let (loaded, dynamic) = (1, 2);
        for kind in [loaded, dynamic] {
            lying.iter_mut().skip(64).step_by(56).for_each(|b| *b = kind);
            for at in (64..4000).step_by(56) {
                lying.iter_mut().skip(at + 1).take(3).for_each(|b| *b = 0);
            }
            let _ = needs(&lying);
        }
        assert_eq!(needs(b"#!/bin/sh\n"), None);
    }
}
