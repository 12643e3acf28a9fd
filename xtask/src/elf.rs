// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads just enough of static libraries and ELF files: members, symbols, interpreter.
//!
//! Little-endian ELF only: every target of this project is.
//! Source: elf(5); the common `ar` format of binutils.

use anyhow::{Context as _, bail};

/// One symbol of an object file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) name: String,
    pub(crate) defined: bool,
}

/// The members of a static library: name and bytes.
pub(crate) fn members(archive: &[u8]) -> anyhow::Result<Vec<(String, &[u8])>> {
    let mut rest = archive.strip_prefix(b"!<arch>\n").context("not a static library")?;
    let mut long_names: &[u8] = &[];
    let mut out = Vec::new();
    while rest.len() >= 60 {
        let (head, tail) = rest.split_at(60);
        let field = |from: usize, to: usize| {
            String::from_utf8_lossy(head.get(from..to).unwrap_or_default()).trim_end().to_owned()
        };
        let size: usize = field(48, 58).parse().context("a member without a size")?;
        let body = tail.get(..size).context("a member is cut off")?;
        let name = field(0, 16);
        match name.as_str() {
            "/" | "/SYM64/" => {}
            "//" => long_names = body,
            _ => out.push((member_name(&name, long_names), body)),
        }
        rest = tail.get(size + size % 2..).unwrap_or_default();
    }
    Ok(out)
}

fn member_name(short: &str, long_names: &[u8]) -> String {
    let long = short
        .strip_prefix('/')
        .and_then(|n| n.parse::<usize>().ok())
        .and_then(|from| long_names.get(from..))
        .map(|from| from.split(|b| *b == b'\n').next().unwrap_or_default());
    let name = long.map_or(short.to_owned(), |n| String::from_utf8_lossy(n).into_owned());
    name.trim_end_matches('/').to_owned()
}

struct Elf<'a> {
    bytes: &'a [u8],
    wide: bool,
}

impl<'a> Elf<'a> {
    fn new(bytes: &'a [u8]) -> anyhow::Result<Self> {
        match bytes.get(..6) {
            Some([0x7f, b'E', b'L', b'F', 1, 1]) => Ok(Self { bytes, wide: false }),
            Some([0x7f, b'E', b'L', b'F', 2, 1]) => Ok(Self { bytes, wide: true }),
            _ => bail!("not a little-endian ELF file"),
        }
    }

    fn number(&self, at: usize, size: usize) -> anyhow::Result<usize> {
        let field = self.bytes.get(at..at + size).context("the ELF file is cut off")?;
        Ok(field.iter().rev().fold(0, |n, b| (n << 8) | usize::from(*b)))
    }

    /// A number of 8 bytes in a 64-bit file and of 4 in a 32-bit one.
    fn word(&self, at64: usize, at32: usize) -> anyhow::Result<usize> {
        if self.wide { self.number(at64, 8) } else { self.number(at32, 4) }
    }

    fn half(&self, at64: usize, at32: usize) -> anyhow::Result<usize> {
        self.number(if self.wide { at64 } else { at32 }, 2)
    }

    fn text(&self, at: usize) -> String {
        let from = self.bytes.get(at..).unwrap_or_default();
        let name = from.split(|b| *b == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    }
}

/// Named symbols of an object file, the empty and the section ones left out.
pub(crate) fn symbols(object: &[u8]) -> anyhow::Result<Vec<Symbol>> {
    symbols_in(object, 2)
}

/// Named symbols of a shared library that programs are linked with.
pub(crate) fn dynamic_symbols(library: &[u8]) -> anyhow::Result<Vec<Symbol>> {
    symbols_in(library, 11)
}

/// The symbols in the section of this type: SHT_SYMTAB or SHT_DYNSYM.
fn symbols_in(object: &[u8], wanted: usize) -> anyhow::Result<Vec<Symbol>> {
    let elf = Elf::new(object)?;
    if !elf.wide {
        bail!("only 64-bit files are read for symbols");
    }
    let (table, size, count) = (elf.number(40, 8)?, elf.half(58, 0)?, elf.half(60, 0)?);
    let mut out = Vec::new();
    for section in (0..count).map(|i| table + i * size) {
        if elf.number(section + 4, 4)? != wanted {
            continue;
        }
        let (from, bytes) = (elf.number(section + 24, 8)?, elf.number(section + 32, 8)?);
        let strings_section = table + elf.number(section + 40, 4)? * size;
        let strings = elf.number(strings_section + 24, 8)?;
        for symbol in (from..from + bytes).step_by(24) {
            let name = elf.text(strings + elf.number(symbol, 4)?);
            let kind = elf.number(symbol + 4, 1)? & 0xf;
            let (section_kind, file_kind) = (3, 4);
            if !name.is_empty() && kind != section_kind && kind != file_kind {
                out.push(Symbol { name, defined: elf.number(symbol + 6, 2)? != 0 });
            }
        }
    }
    Ok(out)
}

/// The dynamic linker an executable asks for; `None`: it is fully static.
pub(crate) fn interpreter(program: &[u8]) -> anyhow::Result<Option<String>> {
    const INTERP: usize = 3;
    let elf = Elf::new(program)?;
    let (table, size, count) = (elf.word(32, 28)?, elf.half(54, 42)?, elf.half(56, 44)?);
    for header in (0..count).map(|i| table + i * size) {
        if elf.number(header, 4)? == INTERP {
            return Ok(Some(elf.text(elf.word(header + 8, header + 4)?)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_very_program_names_its_interpreter() {
        let me = std::fs::read("/proc/self/exe").unwrap();
        let interpreter = interpreter(&me).unwrap();
        let linked = interpreter.is_some_and(|i| i.contains("ld"));
        assert_eq!(linked, cfg!(not(target_feature = "crt-static")));
    }

    #[test]
    fn rubbish_is_refused() {
        assert!(members(b"!<arch>").is_err());
        assert!(members(b"!<arch>\nx").unwrap().is_empty());
        assert!(symbols(b"\x7fELF").is_err());
        assert!(interpreter(b"\x7fELF\x02\x01").is_err());
    }
}
