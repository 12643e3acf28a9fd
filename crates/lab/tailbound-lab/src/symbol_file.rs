// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel's symbols as a file that gdb reads: an ELF object with a table of functions and no code.
//!
//! Pure: the text of /proc/kallsyms in, bytes out.
//! Source: elf(5); proc_kallsyms(5).

/// Bytes of the header, of a section's header and of a symbol.
const HEADER: usize = 64;
const SECTION: usize = 64;
const SYMBOL: usize = 24;
const EXECUTABLE: u16 = 2;
const NO_BITS: u32 = 8;
const SYMBOLS: u32 = 2;
const STRINGS: u32 = 3;
/// Global functions.
const FUNCTION: u8 = 1 << 4 | 2;
/// Of section headers: nothing, the code, symbols, their names, the sections' names.
const SECTIONS: u16 = 5;
const NAMES: &[u8] = b"\0.text\0.symtab\0.strtab\0.shstrtab\0";

#[derive(Default)]
struct Section {
    name: u32,
    kind: u32,
    flags: u64,
    at: u64,
    offset: u64,
    bytes: u64,
    link: u32,
    info: u32,
    entry: u64,
}

fn push<const N: usize>(out: &mut Vec<u8>, bytes: [u8; N]) {
    out.extend_from_slice(&bytes);
}

/// Functions of the kernel and of its modules, by address.
fn functions(kallsyms: &str) -> Vec<(u64, &str)> {
    let one = |line: &'_ str| -> Option<(u64, usize, usize)> {
        let mut words = line.split_ascii_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
        let name = words.next()?;
        let begin = name.as_ptr().addr() - line.as_ptr().addr();
        (is_code && address >> 63 == 1).then_some((address, begin, begin + name.len()))
    };
    let lines = kallsyms.lines();
    let mut all: Vec<(u64, &str)> = lines
        .filter_map(|line| {
            let (address, begin, end) = one(line)?;
            Some((address, line.get(begin..end)?))
        })
        .collect();
    all.sort_unstable();
    all
}

/// The file.
#[must_use]
pub fn elf(kallsyms: &str) -> Vec<u8> {
    let functions = functions(kallsyms);
    let first = functions.first().map_or(0, |f| f.0);
    let last = functions.last().map_or(0, |f| f.0);
    let (mut symbols, mut strings) = (vec![0u8; SYMBOL], vec![0u8]);
    let ends = functions.iter().skip(1).map(|f| f.0).chain([last]);
    for ((address, name), end) in functions.iter().zip(ends) {
        push(&mut symbols, (u32::try_from(strings.len()).unwrap_or(0)).to_le_bytes());
        symbols.extend([FUNCTION, 0]);
        push(&mut symbols, 1u16.to_le_bytes());
        push(&mut symbols, address.to_le_bytes());
        // Between kernel and modules lie gaps, which belong to no function.
        push(&mut symbols, (end - address).min(1 << 16).to_le_bytes());
        strings.extend_from_slice(name.as_bytes());
        strings.push(0);
    }
    let (symbols_at, strings_at) = (HEADER, HEADER + symbols.len());
    let names_at = strings_at + strings.len();
    let sections_at = (names_at + NAMES.len()).next_multiple_of(8);
    let word = |n: usize| n as u64;
    let sections = [
        Section::default(),
        // In memory, and executed.
        Section {
            name: 1,
            kind: NO_BITS,
            flags: 6,
            at: first,
            offset: word(HEADER),
            bytes: last - first + 1,
            ..Section::default()
        },
        Section {
            name: 7,
            kind: SYMBOLS,
            offset: word(symbols_at),
            bytes: word(symbols.len()),
            link: 3,
            info: 1,
            entry: word(SYMBOL),
            ..Section::default()
        },
        Section {
            name: 15,
            kind: STRINGS,
            offset: word(strings_at),
            bytes: word(strings.len()),
            ..Section::default()
        },
        Section {
            name: 23,
            kind: STRINGS,
            offset: word(names_at),
            bytes: word(NAMES.len()),
            ..Section::default()
        },
    ];
    let mut out = header(sections_at);
    out.extend(symbols);
    out.extend(strings);
    out.extend_from_slice(NAMES);
    out.resize(sections_at, 0);
    sections.iter().for_each(|s| s.write(&mut out));
    out
}

impl Section {
    fn write(&self, out: &mut Vec<u8>) {
        for half in [self.name, self.kind] {
            push(out, half.to_le_bytes());
        }
        for whole in [self.flags, self.at, self.offset, self.bytes] {
            push(out, whole.to_le_bytes());
        }
        for half in [self.link, self.info] {
            push(out, half.to_le_bytes());
        }
        for whole in [8, self.entry] {
            push(out, whole.to_le_bytes());
        }
    }
}

/// Of an x86-64 program in the machine's own order that begins nowhere.
fn header(sections_at: usize) -> Vec<u8> {
    let mut out = b"\x7fELF\x02\x01\x01".to_vec();
    out.resize(16, 0);
    for half in [EXECUTABLE, 62] {
        push(&mut out, half.to_le_bytes());
    }
    push(&mut out, 1u32.to_le_bytes());
    for whole in [0, 0, sections_at as u64] {
        push(&mut out, u64::to_le_bytes(whole));
    }
    push(&mut out, 0u32.to_le_bytes());
    for half in [64u16, 0, 0, 64, SECTIONS, SECTIONS - 1] {
        push(&mut out, half.to_le_bytes());
    }
    debug_assert_eq!((out.len(), SECTION), (HEADER, 64));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_in_the_order_of_their_addresses_and_data_is_left_out() {
        let text = "ffffffff81000100 T b\nffffffff82000000 D data\nffffffff81000000 t a\n0000000000000000 A zero\nffffffffc0000000 t m\t[veth]\n";
        assert_eq!(
            functions(text),
            [
                (0xffff_ffff_8100_0000, "a"),
                (0xffff_ffff_8100_0100, "b"),
                (0xffff_ffff_c000_0000, "m")
            ]
        );
        let file = elf(text);
        assert!(file.starts_with(b"\x7fELF"));
        let at = usize::try_from(u64::from_le_bytes(file[40..48].try_into().unwrap())).unwrap();
        assert_eq!(file.len(), at + 5 * SECTION);
        // The symbols' section has one more than there are functions.
        let bytes =
            u64::from_le_bytes(file[at + 2 * 64 + 32..at + 2 * 64 + 40].try_into().unwrap());
        assert_eq!(bytes, 4 * 24);
        assert!(elf("").len() > HEADER);
    }
}
