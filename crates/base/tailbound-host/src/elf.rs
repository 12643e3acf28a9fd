// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs and libraries as files (ELF): their segments, sections and functions.
//!
//! Units: bytes. Little-endian ELF of 32 and 64 bits. A file that is cut off or lies about
//! itself yields nothing instead of a panic.
//! Not here: what a program needs to run (`tailbound-lab`).
//! Source: elf(5).

/// The kind of a segment that is mapped when the program starts.
pub const SEGMENT_LOAD: u64 = 1;
/// Sections of symbols, with the section that has their names.
const TABLES: [(&str, &str); 2] = [(".symtab", ".strtab"), (".dynsym", ".dynstr")];
/// Kinds of symbols: a function, and one that is chosen when the program starts.
const FUNCTION: u64 = 2;
const FUNCTION_CHOSEN: u64 = 10;
/// Most symbols of one file.
const SYMBOLS_MAX: usize = 4 << 20;

/// A function of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Where it begins, as the file counts addresses.
    pub address: u64,
    /// Its length; 0 where it is not told.
    pub size: u64,
    /// Its name, as the linker knows it.
    pub name: String,
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Elf<'a> {
    bytes: &'a [u8],
    wide: bool,
}

impl<'a> Elf<'a> {
    /// `bytes` as such a file; `None` for any other.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        match bytes.get(..6)? {
            [0x7f, b'E', b'L', b'F', 1, 1] => Some(Self { bytes, wide: false }),
            [0x7f, b'E', b'L', b'F', 2, 1] => Some(Self { bytes, wide: true }),
            _ => None,
        }
    }

    /// The number of `size` bytes at `at`.
    #[must_use]
    pub fn number(&self, at: usize, size: usize) -> Option<u64> {
        let field = self.bytes.get(at..at.checked_add(size)?)?;
        Some(field.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
    }

    /// The offset, address or size at `at`, of 8 bytes where it is `wide`.
    #[must_use]
    pub fn place(&self, at: usize, wide: bool) -> Option<usize> {
        usize::try_from(self.number(at, if wide { 8 } else { 4 })?).ok()
    }

    /// Kind, offset in the file, address, size in the file.
    #[must_use]
    pub fn segments(&self) -> Option<Vec<(u64, usize, usize, usize)>> {
        let table = self.place(if self.wide { 32 } else { 28 }, self.wide)?;
        let size = usize::try_from(self.number(if self.wide { 54 } else { 42 }, 2)?).ok()?;
        let count = usize::try_from(self.number(if self.wide { 56 } else { 44 }, 2)?).ok()?;
        (0..count)
            .map(|i| {
                let at = table.checked_add(i.checked_mul(size)?)?;
                let field = |wide: usize, narrow: usize| {
                    self.place(at.checked_add(if self.wide { wide } else { narrow })?, self.wide)
                };
                Some((self.number(at, 4)?, field(8, 4)?, field(16, 8)?, field(32, 16)?))
            })
            .collect()
    }

    /// The text at `at`, up to its zero.
    #[must_use]
    pub fn text(&self, at: usize) -> Option<String> {
        let bytes = self.bytes.get(at..)?.split(|b| *b == 0).next()?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    /// Where the section called `name` is in the file, and its bytes.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<&'a [u8]> {
        let table = self.place(if self.wide { 40 } else { 32 }, self.wide)?;
        let half = |wide: usize, narrow: usize| {
            usize::try_from(self.number(if self.wide { wide } else { narrow }, 2)?).ok()
        };
        let (size, count, names) = (half(58, 46)?, half(60, 48)?, half(62, 50)?);
        // Name, offset in the file, size.
        let header = |index: usize| {
            let at = table.checked_add(index.checked_mul(size)?)?;
            let field = |wide: usize, narrow: usize| {
                self.place(at.checked_add(if self.wide { wide } else { narrow })?, self.wide)
            };
            Some((self.place(at, false)?, field(24, 16)?, field(32, 20)?))
        };
        let (_, strings, _) = header(names)?;
        (0..count).filter_map(header).find_map(|(at, offset, size)| {
            let called = self.bytes.get(strings.checked_add(at)?..)?.split(|b| *b == 0).next()?;
            if called != name.as_bytes() {
                return None;
            }
            self.bytes.get(offset..offset.checked_add(size)?)
        })
    }

    /// Are its addresses of 64 bits?
    #[must_use]
    pub fn is_wide(&self) -> bool {
        self.wide
    }

    /// Its functions, in the order of their addresses; those for debuggers where they are there, else those for
    /// other programs.
    #[must_use]
    pub fn functions(&self) -> Vec<Function> {
        let mut out = Vec::new();
        for (table, names) in TABLES {
            if let (Some(table), Some(names)) = (self.section(table), self.section(names)) {
                let bytes = if self.wide { 24 } else { 16 };
                let all = table.chunks_exact(bytes).take(SYMBOLS_MAX);
                out.extend(all.filter_map(|s| self.function(s, names)));
            }
            if !out.is_empty() {
                break;
            }
        }
        out.sort_by(|a: &Function, b| a.address.cmp(&b.address).then(b.size.cmp(&a.size)));
        out.dedup_by_key(|f| f.address);
        out
    }

    fn function(&self, symbol: &[u8], names: &[u8]) -> Option<Function> {
        let one = Elf { bytes: symbol, wide: self.wide };
        let (info, section, address, size) = match self.wide {
            true => (one.number(4, 1)?, one.number(6, 2)?, one.number(8, 8)?, one.number(16, 8)?),
            false => (one.number(12, 1)?, one.number(14, 2)?, one.number(4, 4)?, one.number(8, 4)?),
        };
        // Of no section: it is another file's.
        if !matches!(info & 15, FUNCTION | FUNCTION_CHOSEN) || section == 0 {
            return None;
        }
        let name = Elf { bytes: names, wide: self.wide }.text(one.place(0, false)?)?;
        (!name.is_empty()).then_some(Function { address, size, name })
    }

    /// The address, as the file counts, of what lies at `offset` of it.
    #[must_use]
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        self.segments()?.into_iter().find_map(|(kind, at, address, size)| {
            let inside = offset.checked_sub(at as u64).filter(|i| *i < size as u64)?;
            (kind == SEGMENT_LOAD).then_some(inside.checked_add(address as u64)?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    extern "C" fn a_function_of_this_test() -> u32 {
        std::hint::black_box(7)
    }

    #[test]
    fn this_test_finds_its_own_functions_by_address() {
        assert_eq!(a_function_of_this_test(), 7);
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let elf = Elf::new(&bytes).unwrap();
        let all = elf.functions();
        assert!(all.iter().any(|f| f.name.contains("a_function_of_this_test")), "{}", all.len());
        assert!(all.is_sorted_by_key(|f| f.address));
        let (_, offset, address, _) =
            elf.segments().unwrap().into_iter().find(|(k, ..)| *k == SEGMENT_LOAD).unwrap();
        assert_eq!(elf.address_of(offset as u64), Some(address as u64));
        assert_eq!(elf.address_of(u64::MAX), None);
    }

    #[test]
    fn a_file_that_is_cut_off_has_no_functions_and_panics_nowhere() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        for length in (0..4096).step_by(7).chain([bytes.len() / 2]) {
            let Some(elf) = bytes.get(..length).and_then(Elf::new) else { continue };
            let _ = (elf.functions(), elf.address_of(64));
        }
        assert!(Elf::new(b"#!/bin/sh").is_none());
    }
}
