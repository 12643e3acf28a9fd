// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fetches a QEMU of Debian with all its libraries, to lie beside the system: nothing is installed.
//!
//! Units: bytes. The machine's apt finds what belongs to it and checks each package against the signed
//! index, with lists and a state of its own in which nothing is installed, so that what it finds is complete. It is
//! unpacked, asked for its version, and kept.
//! Source: apt-get(8) (`--print-uris`, `--download-only`), dpkg-deb(1).

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tailbound_core::limits;
use tailbound_sys::new_file::{self, Existing};
use tailbound_sys::{given, scratch};

use super::stored::{self, MANIFEST, ROOM, ROOT, Stored};
use super::{Beside, Emulator, named, package};
use crate::arch::Arch;
use crate::elf;
use crate::error::{LabError, QemuError, StoreError};
use crate::hash;
use crate::kernel::apt::Apt;
use crate::kernel::lists::{self, Note, PackageLists, Question};
use crate::kernel::package::json;
use crate::kernel::package::unpack_deb;
use crate::store::Store;

/// The suite that is asked where nobody names one.
pub const SUITE: &str = "trixie";
/// Disk that it takes while it is unpacked.
const ROOM_MIB: u64 = 600;
/// Folders with firmware, as QEMU looks for it.
const DATA: [&str; 3] = ["usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu"];
const OPEN: u32 = 0o755;

/// The QEMU for guests of `arch` in `suite`, fetched where it is not in the store yet.
///
/// # Errors
/// Usage: no such suite. Cannot: not to be had, and what was tried; it does not start here.
pub fn fetch(
    store: &Store,
    arch: Arch,
    suite: &str,
    lists: PackageLists,
    note: &mut dyn FnMut(&str),
) -> Result<Stored, LabError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    if suite.is_empty() || suite.starts_with('-') || !suite.chars().all(plain) {
        return Err(QemuError::Suite { suite: suite.to_owned() }.into());
    }
    let _lock = store.lock(ROOM, note)?;
    let room = store.room(ROOM)?;
    if let Ok(Some(free)) = scratch::free_bytes(&room)
        && free >> 20 < ROOM_MIB
    {
        let (free_mib, wanted_mib) = (free >> 20, ROOM_MIB);
        return Err(StoreError::Full { folder: room, free_mib, wanted_mib }.into());
    }
    let what = format!("QEMU of {suite}");
    let question = Question {
        what: &what,
        arch: Arch::of_host(),
        suite: Some(suite),
        lists,
        otherwise: "name a QEMU program with --qemu",
    };
    lists::ask(question, store, note, &mut |apt, note| through(apt, store, arch, suite, note))
}

/// Resolves, downloads and unpacks by this apt.
fn through(
    apt: &Apt,
    store: &Store,
    arch: Arch,
    suite: &str,
    note: &mut Note<'_>,
) -> Result<Stored, LabError> {
    let name = package(arch);
    let versions = apt.versions(&format!("^{name}$"))?;
    let Some(version) = versions.get(name).and_then(|all| all.first()) else {
        return Err(QemuError::NoPackage { suite: suite.to_owned(), package: name }.into());
    };
    let says = format!("{name} {version}");
    let is_it = |s: &Stored| s.arch == arch.name() && s.package == says && s.suite == suite;
    if let Some(there) = stored::stored(store)?.into_iter().find(is_it) {
        match stored::damaged(&there.folder) {
            None => return Ok(there),
            Some(why) => note(&format!("{why}; it is fetched again")),
        }
    }
    let all = apt.closure(name)?;
    let bytes: u64 = all.iter().map(|p| p.size).sum();
    note(&format!(
        "fetching {says} and {} packages that it needs ({} MB), to lie beside the system",
        all.len().saturating_sub(1),
        bytes.div_ceil(1_000_000)
    ));
    let beside = store.beside(ROOM)?;
    let debs = apt.download_closure(name, beside.path())?;
    if debs.len() < all.len() {
        let (left, all) = (debs.len(), all.len());
        return Err(QemuError::PackagesMissing { left, all, package: name }.into());
    }
    let unpacked = beside.path().join("all");
    let mut packages = BTreeMap::new();
    for deb in &debs {
        let file = deb.file_name().unwrap_or_default().to_string_lossy().into_owned();
        packages.insert(file, hash::of_file(deb)?);
        unpack_deb(deb, &unpacked)?;
    }
    let whole = beside.path().join("whole");
    let made = arrange(&unpacked, &whole, arch)?;
    let emulator =
        Emulator::in_folder(made.clone()).map_err(|e| QemuError::FetchedUnfit(Box::new(e)))?;
    let number = emulator.number().ok_or(QemuError::NoVersion)?;
    let stored = Stored {
        version: number.to_owned(),
        arch: arch.name().to_owned(),
        says: emulator.version.clone(),
        suite: suite.to_owned(),
        package: says,
        packages,
        files: hashes(&made)?,
        program: made.program,
        loader: made.loader,
        libraries: made.libraries,
        data: made.data,
        folder: PathBuf::new(),
    };
    let path = whole.join(MANIFEST);
    new_file::write(&path, Existing::Replace, &json(&stored))
        .map_err(|e| LabError::file(&path, e))?;
    let folder = store.room(ROOM)?.join(stored.name());
    store.place(&whole, &folder)?;
    Ok(Stored { folder, ..stored })
}

/// Moves what a QEMU needs from the unpacked packages `all` to `whole`.
fn arrange(all: &Path, whole: &Path, arch: Arch) -> Result<Beside, LabError> {
    let root = whole.join(ROOT);
    let program = format!("usr/bin/{}", named(arch));
    moved(all, &root, &program)?;
    let mut libraries = Vec::new();
    // Before and after Debian's merge of /lib into /usr.
    for lib in ["usr/lib", "lib"] {
        let folder = format!("{lib}/{}", elf::triple(Arch::of_host()));
        let entries = fs::read_dir(all.join(&folder)).into_iter().flatten().flatten();
        let files = entries.filter(|e| e.file_type().is_ok_and(|t| !t.is_dir()));
        let names: Vec<_> = files.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        for name in &names {
            moved(all, &root, &format!("{folder}/{name}"))?;
        }
        if !names.is_empty() {
            libraries.push(folder);
        }
    }
    let mut data = Vec::new();
    for folder in DATA {
        if all.join(folder).is_dir() {
            moved(all, &root, folder)?;
            data.push(folder.to_owned());
        }
    }
    let path = root.join(&program);
    let bytes =
        given::read(&path, limits::OBJECT_BYTES_MAX).map_err(|e| LabError::file(&path, e))?;
    let interpreter = elf::needs(&bytes).and_then(|n| n.interpreter).unwrap_or_default();
    let name = Path::new(&interpreter).file_name().unwrap_or_default().to_string_lossy();
    let loader = libraries.iter().map(|l| format!("{l}/{name}")).find(|l| root.join(l).is_file());
    let loader = loader.ok_or_else(|| QemuError::NoLoader {
        loader: interpreter.clone(),
        program: program.clone(),
    })?;
    Ok(Beside { root, program, loader, libraries, data })
}

/// Moves `name` from one folder to another; the folders above it are open to everybody, as QEMU runs as a user
/// of its own.
fn moved(from: &Path, to: &Path, name: &str) -> Result<(), LabError> {
    let (from, path) = (from.join(name), to.join(name));
    let parent = path.parent().unwrap_or(to);
    if !parent.is_dir() {
        fs::create_dir_all(parent).map_err(|e| LabError::file(parent, e))?;
        for level in parent.ancestors().take_while(|level| level.starts_with(to)) {
            fs::set_permissions(level, Permissions::from_mode(OPEN))
                .map_err(|e| LabError::file(level, e))?;
        }
    }
    new_file::rename(&from, &path).map_err(|e| LabError::file(&from, e))
}

/// Every ordinary file below, and what is executed.
fn hashes(made: &Beside) -> Result<BTreeMap<String, String>, LabError> {
    let mut found = BTreeMap::new();
    let mut open = vec![made.root.clone()];
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(&folder).map_err(|e| LabError::file(&folder, e))?;
        for entry in entries.flatten() {
            let path = entry.path();
            let name = path.strip_prefix(&made.root).unwrap_or(&path).display().to_string();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(path),
                Ok(kind) if kind.is_file() || name == made.loader => {
                    found.insert(name, hash::of_file(&path)?);
                }
                _ => {}
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_needs_is_kept_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let all = folder.path().join("all");
        let triple = elf::triple(Arch::of_host());
        let put = |name: &str, bytes: &[u8]| {
            let path = all.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        };
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        let Some(loader) = elf::needs(&own).and_then(|n| n.interpreter) else { return };
        let loader = Path::new(&loader).file_name().unwrap().to_str().unwrap().to_owned();
        put("usr/bin/qemu-system-x86_64", &own);
        put("usr/bin/other", b"");
        put("usr/share/seabios/bios.bin", b"bios");
        put("usr/share/doc/x", b"");
        put(&format!("usr/lib/{triple}/perl/x"), b"");
        let whole = folder.path().join("whole");
        let e = arrange(&all, &whole, Arch::X86_64).unwrap_err().to_string();
        assert!(e.contains("has the loader"), "{e}");
        fs::remove_dir_all(&whole).unwrap();
        put("usr/bin/qemu-system-x86_64", &own);
        put("usr/share/seabios/bios.bin", b"bios");
        put(&format!("lib/{triple}/{loader}"), b"loader");
        put(&format!("usr/lib/{triple}/liba.so.1"), b"");
        let made = arrange(&all, &whole, Arch::X86_64).unwrap();
        assert_eq!(made.loader, format!("lib/{triple}/{loader}"));
        assert_eq!(made.data, ["usr/share/seabios"]);
        let names: Vec<String> = hashes(&made).unwrap().into_keys().collect();
        assert_eq!(
            names,
            [
                made.loader.clone(),
                "usr/bin/qemu-system-x86_64".to_owned(),
                format!("usr/lib/{triple}/liba.so.1"),
                "usr/share/seabios/bios.bin".to_owned()
            ]
        );
    }
}
