// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs and libraries as files (ELF): their segments, sections, functions, and what they need to run.
//!
//! Units: bytes. Little-endian ELF of 32 and 64 bits, read by `object`. A file that is cut off or lies about itself
//! yields nothing instead of a panic, and its names fill no more memory than is allowed here.
//! Not here: where libraries are (`tailbound-lab`), how frames of a stack are undone (`tailbound-trace`).
//! Source: elf(5), ld.so(8).

use object::LittleEndian as Order;
use object::elf::{
    DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_STRTAB, FileHeader32, FileHeader64, PT_LOAD, SHT_DYNSYM,
    SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC,
};
use object::read::StringTable;
use object::read::elf::{
    Dyn as _, FileHeader, ProgramHeader as _, SectionHeader as _, Sym, SymbolTable,
};
use tailbound_core::order;

/// Most symbols of one file.
const SYMBOLS_MAX: usize = 4 << 20;
/// Most bytes of all names that are taken out of one file: several may lie on the same bytes of it.
const NAMES_BYTES_MAX: usize = 256 << 20;
/// Most libraries and folders that one file may name, and the longest of these names.
const NEEDS_MAX: usize = 1024;
const NEED_BYTES_MAX: usize = 64 << 10;

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

/// A part of the file that is mapped when the program starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadSegment {
    /// Where it lies in the file.
    pub offset: u64,
    /// Where it is to lie in memory, as the file counts addresses.
    pub address: u64,
    /// How much of the file it is.
    pub length: u64,
}

/// What the file says of its needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The loader: a static program has none.
    pub interpreter: Option<String>,
    /// Names of libraries.
    pub libraries: Vec<String>,
    /// Where the file itself says they are.
    pub search: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
enum Header<'a> {
    Narrow(&'a FileHeader32<Order>),
    Wide(&'a FileHeader64<Order>),
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Elf<'a> {
    bytes: &'a [u8],
    header: Header<'a>,
}

impl<'a> Elf<'a> {
    /// `bytes` as such a file; `None` for any other.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let wide = header::<FileHeader64<Order>>(bytes).map(Header::Wide);
        let header = wide.or_else(|| header(bytes).map(Header::Narrow))?;
        Some(Self { bytes, header })
    }

    /// The number of the machine that it is for, as elf(5) counts them (`e_machine`).
    #[must_use]
    pub fn machine(&self) -> u16 {
        match self.header {
            Header::Narrow(header) => header.e_machine(Order).0,
            Header::Wide(header) => header.e_machine(Order).0,
        }
    }

    /// What of it is mapped; `None` where the list is cut off.
    #[must_use]
    pub fn loaded(&self) -> Option<Vec<LoadSegment>> {
        match self.header {
            Header::Narrow(header) => loaded(header, self.bytes),
            Header::Wide(header) => loaded(header, self.bytes),
        }
    }

    /// The bytes of the section called `name`.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<&'a [u8]> {
        match self.header {
            Header::Narrow(header) => section(header, self.bytes, name),
            Header::Wide(header) => section(header, self.bytes, name),
        }
    }

    /// Its functions, in the order of their addresses; those for debuggers where they are there, else those for
    /// other programs.
    #[must_use]
    pub fn functions(&self) -> Vec<Function> {
        self.functions_within(NAMES_BYTES_MAX)
    }

    /// Those whose names have `room` bytes together.
    fn functions_within(&self, room: usize) -> Vec<Function> {
        let mut out = match self.header {
            Header::Narrow(header) => functions(header, self.bytes, room),
            Header::Wide(header) => functions(header, self.bytes, room),
        };
        order::by(&mut out, |a: &Function, b| a.address.cmp(&b.address).then(b.size.cmp(&a.size)));
        out.dedup_by_key(|f| f.address);
        out
    }

    /// What it needs to run; `None` where the list of its segments is cut off.
    #[must_use]
    pub fn needs(&self) -> Option<Needs> {
        match self.header {
            Header::Narrow(header) => needs(header, self.bytes),
            Header::Wide(header) => needs(header, self.bytes),
        }
    }
}

fn header<H: FileHeader<Endian = Order>>(bytes: &[u8]) -> Option<&H> {
    H::parse(bytes).ok().filter(|header| header.is_little_endian())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn loaded<H: FileHeader<Endian = Order>>(header: &H, bytes: &[u8]) -> Option<Vec<LoadSegment>> {
    let all = header.program_headers(Order, bytes).ok()?;
    let loaded = all.iter().filter(|segment| segment.p_type(Order) == PT_LOAD).map(|segment| {
        let (offset, length) = segment.file_range(Order);
        LoadSegment { offset, address: segment.p_vaddr(Order).into(), length }
    });
    Some(loaded.collect())
}

fn section<'a, H: FileHeader<Endian = Order>>(
    header: &H,
    bytes: &'a [u8],
    name: &str,
) -> Option<&'a [u8]> {
    let sections = header.sections(Order, bytes).ok()?;
    let (_, section) = sections.section_by_name(Order, name.as_bytes())?;
    section.data(Order, bytes).ok()
}

fn functions<H: FileHeader<Endian = Order>>(
    header: &H,
    bytes: &[u8],
    room: usize,
) -> Vec<Function> {
    let Ok(sections) = header.sections(Order, bytes) else { return Vec::new() };
    for kind in [SHT_SYMTAB, SHT_DYNSYM] {
        let Ok(symbols) = sections.symbols(Order, bytes, kind) else { continue };
        let found = functions_of(&symbols, room);
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

fn functions_of<H: FileHeader<Endian = Order>>(
    symbols: &SymbolTable<'_, H>,
    mut room: usize,
) -> Vec<Function> {
    let mut out = Vec::new();
    for symbol in symbols.iter().take(SYMBOLS_MAX) {
        // Of no section: it is another file's.
        let is_function = matches!(symbol.st_type(), STT_FUNC | STT_GNU_IFUNC);
        if !is_function || symbol.is_undefined(Order) {
            continue;
        }
        let Ok(name) = symbol.name(Order, symbols.strings()) else { continue };
        if name.is_empty() {
            continue;
        }
        let Some(left) = room.checked_sub(name.len()) else { break };
        room = left;
        let (address, size) = (symbol.st_value(Order).into(), symbol.st_size(Order).into());
        out.push(Function { address, size, name: text(name) });
    }
    out
}

fn needs<H: FileHeader<Endian = Order>>(header: &H, bytes: &[u8]) -> Option<Needs> {
    let loaded = loaded(header, bytes)?;
    let in_file = |address: u64| {
        loaded.iter().find_map(|segment| {
            let inside = address.checked_sub(segment.address).filter(|at| *at < segment.length)?;
            segment.offset.checked_add(inside)
        })
    };
    let mut needs = Needs::default();
    for segment in header.program_headers(Order, bytes).ok()? {
        if let Ok(Some(path)) = segment.interpreter(Order, bytes) {
            needs.interpreter = Some(text(path));
        }
        let Ok(Some(entries)) = segment.dynamic(Order, bytes) else { continue };
        let strings = entries.iter().find(|entry| entry.tag(Order) == DT_STRTAB);
        let Some(at) = strings.and_then(|entry| in_file(entry.val(Order))) else { continue };
        let strings = StringTable::new(bytes, at, bytes.len() as u64);
        for entry in entries {
            let string = || {
                let string = entry.string(Order, strings).ok();
                string.filter(|string| string.len() <= NEED_BYTES_MAX).map(text)
            };
            match entry.tag(Order) {
                DT_NEEDED if needs.libraries.len() < NEEDS_MAX => needs.libraries.extend(string()),
                DT_RPATH | DT_RUNPATH if needs.search.len() < NEEDS_MAX => {
                    needs.search.extend(string().unwrap_or_default().split(':').map(str::to_owned));
                }
                _ => {}
            }
        }
    }
    Some(needs)
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
        let own = all.iter().find(|f| f.name.contains("a_function_of_this_test")).unwrap();
        assert!(all.is_sorted_by_key(|f| f.address));
        let holds = |s: &LoadSegment| (s.address..s.address + s.length).contains(&own.address);
        assert_eq!(elf.loaded().unwrap().iter().filter(|s| holds(s)).count(), 1);
        assert!(elf.section(".text").is_some() && elf.section(".no-such").is_none());
    }

    #[test]
    fn a_file_that_is_cut_off_or_lies_panics_nowhere() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let all = |bytes: &[u8]| {
            let Some(elf) = Elf::new(bytes) else { return };
            let _ = (elf.functions(), elf.loaded(), elf.section(".modinfo"), elf.needs());
        };
        for length in (0..4096).step_by(7).chain([bytes.len() / 2]) {
            all(bytes.get(..length).unwrap());
        }
        for mut file in [bytes.get(..4096).unwrap().to_vec(), with_names_on_one_place(3, 5)] {
            for at in 16..file.len().min(1024) {
                for lie in [0, 1, 0x7f, 0xff] {
                    let truth = std::mem::replace(&mut file[at], lie);
                    all(&file);
                    file[at] = truth;
                }
            }
        }
        assert!(Elf::new(b"#!/bin/sh").is_none());
    }

    /// A file of 64 bits with the sections of a table of symbols, all of whose names lie on the same bytes.
    fn with_names_on_one_place(symbols: usize, name_bytes: usize) -> Vec<u8> {
        let mut file = vec![0u8; 64];
        file.splice(..7, *b"\x7fELF\x02\x01\x01");
        let strings_at = file.len();
        file.push(0);
        file.extend(vec![b'f'; name_bytes]);
        file.push(0);
        let table_at = file.len();
        let strings_bytes = table_at - strings_at;
        for i in 0..symbols {
            let (name, place) = (1u32.to_le_bytes(), (i as u64 + 1).to_le_bytes());
            file.extend(name.into_iter().chain([2, 0, 1, 0]).chain(place).chain([0; 8]));
        }
        let headers_at = file.len();
        // Nothing, the symbols, the strings: kind, place, bytes, and where the names are.
        for (kind, at, bytes, link) in
            [(0u32, 0, 0, 0u32), (2, table_at, symbols * 24, 2), (3, strings_at, strings_bytes, 0)]
        {
            let mut header = vec![0u8; 64];
            header.splice(4..8, kind.to_le_bytes());
            header.splice(24..32, (at as u64).to_le_bytes());
            header.splice(32..40, (bytes as u64).to_le_bytes());
            header.splice(40..44, link.to_le_bytes());
            file.extend(header);
        }
        file.splice(40..48, (headers_at as u64).to_le_bytes());
        file.splice(58..64, [64, 0, 3, 0, 2, 0]);
        file
    }

    #[test]
    fn names_that_lie_on_each_other_take_no_more_memory_than_is_allowed() {
        let few = with_names_on_one_place(3, 5);
        let few = Elf::new(&few).unwrap().functions();
        assert_eq!(few.iter().map(|f| (f.address, &*f.name)).next(), Some((1, "fffff")));
        assert_eq!(few.len(), 3);
        let many = with_names_on_one_place(1000, 4096);
        assert_eq!(Elf::new(&many).unwrap().functions_within(1 << 20).len(), 256);
    }
}
