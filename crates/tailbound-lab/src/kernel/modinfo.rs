// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a module file says of itself: the modules it needs.
//!
//! Context: COLD. Compressed files (xz, zstd, gzip) are unpacked in memory, up to a limit.
//! Source: the section `.modinfo` (include/linux/moduleinfo.h, scripts/mod/modpost.c): strings
//! `key=value`, each ended by a zero byte; modprobe.d(5) for the words of `softdep`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::elf;
use crate::error::LabError;

/// The largest module file, packed or unpacked; Debian's largest is 10 MB.
const BYTES_MAX: u64 = 128 << 20;
/// The largest dictionary or window of a packer: the kernel's own scripts use 1 and 8 MiB.
const WINDOW_MAX: u64 = 64 << 20;

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
/// It cannot be read, is damaged, or is too large to be a module.
pub(crate) fn unpacked(path: &Path) -> Result<Vec<u8>, LabError> {
    let failed = |e: io::Error| LabError::file(path, &e);
    let file = File::open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(LabError::cannot(format!("{}: not a file", path.display())));
    }
    let mut packed = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut packed).map_err(failed)?;
    unpack(&packed, Packed::of(path)).map_err(failed)
}

fn unpack(bytes: &[u8], packed: Packed) -> io::Result<Vec<u8>> {
    let all = |reader: &mut dyn Read| {
        let mut out = Vec::new();
        reader.take(BYTES_MAX).read_to_end(&mut out)?;
        if out.len() as u64 == BYTES_MAX {
            return Err(io::Error::other("too large for a module"));
        }
        Ok(out)
    };
    match packed {
        Packed::No => Ok(bytes.to_vec()),
        Packed::Xz => all(&mut lzma_rust2::XzReader::new(bytes, false)),
        Packed::Zstd => {
            let reader =
                ruzstd::decoding::StreamingDecoder::new_with_max_window_size(bytes, WINDOW_MAX);
            all(&mut reader.map_err(io::Error::other)?)
        }
        Packed::Gzip => gunzip(bytes).ok_or_else(|| io::Error::other("damaged (gzip)")),
    }
}

/// One member of a gzip file (RFC 1952) without checking its sum: the kernel does that.
fn gunzip(bytes: &[u8]) -> Option<Vec<u8>> {
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    const HEADER_SUM: u8 = 2;
    let [0x1f, 0x8b, 8, flags] = *bytes.get(..4)? else { return None };
    let mut at = 10usize;
    if flags & EXTRA != 0 {
        let [low, high] = *bytes.get(at..at.checked_add(2)?)? else { return None };
        at = at.checked_add(2 + usize::from(u16::from_le_bytes([low, high])))?;
    }
    for flag in [NAME, COMMENT] {
        if flags & flag != 0 {
            at = at.checked_add(bytes.get(at..)?.iter().position(|b| *b == 0)? + 1)?;
        }
    }
    if flags & HEADER_SUM != 0 {
        at = at.checked_add(2)?;
    }
    let limit = usize::try_from(BYTES_MAX).unwrap_or(usize::MAX);
    miniz_oxide::inflate::decompress_to_vec_with_limit(bytes.get(at..)?, limit).ok()
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
        file.splice(..6, *b"\x7fELF\x02\x01");
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

    // `printf 'a module'` through `gzip -n`, `xz --check=crc32 --lzma2=dict=1MiB` and `zstd`.
    const GZIP: &[u8] = &[
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b, 0x54, 0xc8, 0xcd, 0x4f, 0x29, 0xcd, 0x49, 5, 0,
        0x5b, 0xc1, 0x38, 0xb, 8, 0, 0, 0,
    ];
    const XZ: &[u8] = &[
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0, 0, 1, 0x69, 0x22, 0xde, 0x36, 2, 0, 0x21, 1, 0x10, 0, 0,
        0, 0xa8, 0x70, 0x8e, 0x86, 1, 0, 7, 0x61, 0x20, 0x6d, 0x6f, 0x64, 0x75, 0x6c, 0x65, 0,
        0x5b, 0xc1, 0x38, 0xb, 0, 1, 0x1c, 8, 0x44, 0x60, 0x2a, 0xc8, 0x90, 0x42, 0x99, 0xd, 1, 0,
        0, 0, 0, 1, 0x59, 0x5a,
    ];
    const ZSTD: &[u8] = &[
        0x28, 0xb5, 0x2f, 0xfd, 4, 0x58, 0x41, 0, 0, 0x61, 0x20, 0x6d, 0x6f, 0x64, 0x75, 0x6c,
        0x65, 0xaf, 0xab, 0xf2, 0x6b,
    ];

    #[test]
    fn packed_modules_are_unpacked_up_to_a_limit() {
        assert_eq!(unpack(GZIP, Packed::Gzip).unwrap(), b"a module");
        assert_eq!(unpack(XZ, Packed::Xz).unwrap(), b"a module");
        assert_eq!(unpack(ZSTD, Packed::Zstd).unwrap(), b"a module");
        for packed in [Packed::Gzip, Packed::Xz, Packed::Zstd] {
            assert!(unpack(b"no such thing", packed).is_err(), "{packed:?}");
        }
        for (bytes, packed) in [(GZIP, Packed::Gzip), (XZ, Packed::Xz), (ZSTD, Packed::Zstd)] {
            for length in 0..bytes.len() {
                let _ = unpack(bytes.get(..length).unwrap(), packed);
            }
        }
    }
}
