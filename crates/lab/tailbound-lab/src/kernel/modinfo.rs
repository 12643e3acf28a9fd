// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a module file says of itself: the modules it needs.
//!
//! Units: bytes. Compressed files (xz, zstd, gzip) are unpacked in memory, up to a limit.
//! Source: the section `.modinfo` (include/linux/moduleinfo.h, scripts/mod/modpost.c): strings
//! `key=value`, each ended by a zero byte; modprobe.d(5) for the words of `softdep`.

use std::path::Path;

use tailbound_archive::{ArchiveError, Packing};
use tailbound_sys::given;

use crate::elf;
use crate::error::{KernelError, LabError};

/// The largest module file, unpacked; Debian's largest is 10 MB.
const BYTES_MAX: u64 = 128 << 20;

/// What a module needs before it can be loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Info {
    /// Modules whose symbols it uses, by name.
    pub(crate) depends: Vec<String>,
    /// Modules it asks for, which may be missing.
    pub(crate) wishes: Vec<String>,
}

/// How a module file is packed, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packed {
    No,
    Xz,
    Zstd,
    Gzip,
}

impl Packed {
    /// By the end of a file's name.
    pub(crate) fn of(file: &Path) -> Self {
        match file.extension().and_then(|e| e.to_str()) {
            Some("xz") => Self::Xz,
            Some("zst") => Self::Zstd,
            Some("gz") => Self::Gzip,
            _ => Self::No,
        }
    }
}

/// The bytes of a module file, unpacked.
///
/// # Errors
/// It cannot be read, is damaged, or is too large to be a module; interrupted.
pub(crate) fn unpacked(path: &Path) -> Result<Vec<u8>, LabError> {
    let file = given::file(path).map_err(|e| LabError::file(path, e))?;
    Packing::whole(file, BYTES_MAX).map_err(|e| match e {
        ArchiveError::Interrupted => LabError::Interrupted,
        source => KernelError::PackedModule { path: path.to_owned(), source }.into(),
    })
}

/// What the module in these bytes needs; `None` where they are no module.
pub(crate) fn read(bytes: &[u8]) -> Option<Info> {
    let section = elf::section(bytes, ".modinfo")?;
    let mut info = Info::default();
    for line in section.split(|b| *b == 0) {
        let Ok(line) = std::str::from_utf8(line) else { continue };
        match line.split_once('=') {
            Some(("depends", names)) => {
                info.depends.extend(names.split(',').filter(|n| !n.is_empty()).map(name));
            }
            Some(("softdep", words)) => info.wishes.extend(wished(words)),
            _ => {}
        }
    }
    Some(info)
}

/// `pre: a b post: c`: those that come before.
fn wished(words: &str) -> Vec<String> {
    let mut before = false;
    let mut wanted = Vec::new();
    for word in words.split_whitespace() {
        match word {
            "pre:" => before = true,
            "post:" => before = false,
            module if before => wanted.push(name(module)),
            _ => {}
        }
    }
    wanted
}

/// A module's name: `-` and `_` are the same in it.
pub(crate) fn name(text: &str) -> String {
    text.replace('-', "_")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A 64-bit ELF file with the section `.modinfo` and nothing else.
    pub(in crate::kernel) fn module(lines: &[&str]) -> Vec<u8> {
        let mut modinfo = Vec::new();
        for line in lines {
            modinfo.extend_from_slice(line.as_bytes());
            modinfo.push(0);
        }
        let names = b"\0.modinfo\0.shstrtab\0";
        let mut file = vec![0u8; 64];
        file.splice(..7, *b"\x7fELF\x02\x01\x01");
        let mut at = |bytes: &[u8]| {
            let start = file.len() as u64;
            file.extend_from_slice(bytes);
            (start, bytes.len() as u64)
        };
        let (modinfo, names) = (at(&modinfo), at(names));
        let table = file.len() as u64;
        for (name, (offset, size)) in [(0u32, (0, 0)), (1, modinfo), (10, names)] {
            let mut header = vec![0u8; 64];
            header.splice(..4, name.to_le_bytes());
            header.splice(24..32, offset.to_le_bytes());
            header.splice(32..40, size.to_le_bytes());
            file.extend(header);
        }
        file.splice(40..48, table.to_le_bytes());
        file.splice(58..64, [64, 0, 3, 0, 2, 0]);
        file
    }

    #[test]
    fn needs_are_read_and_damage_is_no_module() {
        let bytes = module(&[
            "license=GPL",
            "depends=usb-net,mii",
            "softdep=pre: crc32c a-b post: later",
            "name=x",
        ]);
        let info = read(&bytes).unwrap();
        assert_eq!(info.depends, ["usb_net", "mii"]);
        assert_eq!(info.wishes, ["crc32c", "a_b"]);
        assert_eq!(read(&module(&["depends="])).unwrap(), Info::default());
        for length in 0..bytes.len() {
            let _ = read(bytes.get(..length).unwrap());
        }
        assert_eq!(read(b"#!/bin/sh\n"), None);
    }
}
