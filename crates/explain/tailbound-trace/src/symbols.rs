// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's functions by their addresses: the text of /proc/kallsyms.
//!
//! Addresses never leave this module, but into a trace file, whose events have them already: a run file is sent to
//! strangers, and they tell where the kernel lies in memory.
//! Source: proc_kallsyms(5), kernel.kptr_restrict (all addresses are 0 for who may not see them).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, BufRead};

/// No function is longer: what lies further behind the last one is not known.
const FUNCTION_BYTES_MAX: u64 = 1 << 20;

/// The functions of one kernel.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    /// Begin of a function, and where its name lies in `names`.
    places: Vec<(u64, u32, u8)>,
    names: String,
}

impl Symbols {
    /// Reads the text; lines that are no function's are passed over.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut symbols = Self::default();
        text.lines().filter_map(function).for_each(|(at, name)| symbols.push(at, name));
        symbols.sorted()
    }

    /// The functions that `addresses` lie in. The text is read line by line: the whole of it has some ten MB.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of(addresses: &BTreeSet<u64>, mut text: impl BufRead) -> io::Result<Self> {
        let mut nearest: BTreeMap<u64, (u64, String)> = BTreeMap::new();
        let mut line = String::new();
        while text.read_line(&mut line)? > 0 {
            if let Some((begin, name)) = function(&line) {
                let end = begin.saturating_add(FUNCTION_BYTES_MAX);
                for address in addresses.range(begin..=end) {
                    let best = nearest.entry(*address).or_default();
                    if begin > best.0 {
                        best.0 = begin;
                        best.1.clear();
                        best.1.push_str(name);
                    }
                }
            }
            line.clear();
        }
        let mut symbols = Self::default();
        nearest.values().for_each(|(at, name)| symbols.push(*at, name));
        Ok(symbols.sorted())
    }

    /// Those that `addresses` lie in.
    #[must_use]
    pub fn only(&self, addresses: &BTreeSet<u64>) -> Self {
        let mut some = Self::default();
        for address in addresses {
            let after = self.places.partition_point(|(begin, ..)| begin <= address);
            let begin =
                after.checked_sub(1).and_then(|at| self.places.get(at)).map(|place| place.0);
            if let (Some(begin), Some(name)) = (begin, self.name(*address)) {
                some.push(begin, name);
            }
        }
        some.sorted()
    }

    /// Adds the functions of `other`.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        other.functions().for_each(|(at, name)| self.push(at, name));
        self.sorted()
    }

    /// As lines of /proc/kallsyms, for a trace file: whole lines, up to `most` bytes.
    #[must_use]
    pub fn to_text(&self, most: usize) -> String {
        let mut text = String::new();
        for (address, name) in self.functions() {
            let before = text.len();
            // A String takes whatever is written.
            writeln!(text, "{address:016x} T {name}").unwrap_or_default();
            if text.len() > most {
                text.truncate(before);
                break;
            }
        }
        text
    }

    fn functions(&self) -> impl Iterator<Item = (u64, &str)> {
        self.places.iter().filter_map(|(begin, at, length)| {
            let at = *at as usize;
            Some((*begin, self.names.get(at..at.saturating_add(usize::from(*length)))?))
        })
    }

    fn push(&mut self, address: u64, name: &str) {
        let Ok(at) = u32::try_from(self.names.len()) else { return };
        let name: &str = name.get(..name.len().min(usize::from(u8::MAX))).unwrap_or_default();
        self.names.push_str(name);
        self.places.push((address, at, u8::try_from(name.len()).unwrap_or(0)));
    }

    fn sorted(mut self) -> Self {
        self.places.sort_by_key(|(address, ..)| *address);
        self.places.dedup_by_key(|(address, ..)| *address);
        self
    }

    /// Is no function known?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Where the function called `name` begins. To be kept within this process: see the module.
    #[must_use]
    pub fn address(&self, name: &str) -> Option<u64> {
        self.functions().find(|(_, known)| *known == name).map(|(address, _)| address)
    }

    /// Does a function begin at `address`?
    #[must_use]
    pub fn begins(&self, address: u64) -> bool {
        self.places.binary_search_by_key(&address, |(begin, ..)| *begin).is_ok()
    }

    /// The function that `address` lies in.
    #[must_use]
    pub fn name(&self, address: u64) -> Option<&str> {
        let after = self.places.partition_point(|(begin, ..)| *begin <= address);
        let (begin, at, length) = self.places.get(after.checked_sub(1)?)?;
        if address.checked_sub(*begin)? > FUNCTION_BYTES_MAX {
            return None;
        }
        let at = *at as usize;
        self.names.get(at..at.checked_add(usize::from(*length))?)
    }
}

/// Address and name, if the line is a function's.
fn function(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_ascii_whitespace();
    let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
    let address = u64::from_str_radix(address, 16).ok().filter(|a| *a > 0)?;
    matches!(kind, "t" | "T" | "w" | "W").then_some((address, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_table_the_functions_of_some_addresses_are_kept() {
        let text = "ffffffff81000010 T b\nffffffff81000000 t a\nffffffff81000018 d data\n\
                    ffffffff81000020 T c\nffffffffa0000000 t far\t[module]\n0 T none\n";
        let wanted = BTreeSet::from([0xffff_ffff_8100_001f, 0xffff_ffff_a000_0001, 7]);
        let few = Symbols::of(&wanted, text.as_bytes()).unwrap();
        assert_eq!(few.name(0xffff_ffff_8100_001f), Some("b"));
        assert_eq!(few.name(0xffff_ffff_8100_0001), None);
        let text = "ffffffff81000010 T b\nffffffffa0000000 T far\n";
        assert_eq!(few.to_text(4096), text);
        assert_eq!(few.to_text(text.len() - 1), "ffffffff81000010 T b\n");
        let more = few.with(&Symbols::parse("ffffffff81000000 t a\nffffffff81000010 T b\n"));
        assert_eq!(more.name(0xffff_ffff_8100_0001), Some("a"));
        assert_eq!(more.to_text(4096).lines().count(), 3);
    }

    #[test]
    fn a_function_is_found_by_any_address_within() {
        let symbols = Symbols::parse(
            "ffffffff81000010 T b\nffffffff81000000 t a\nffffffff81000008 d data\nx y\n0 T none\n",
        );
        assert_eq!(symbols.name(0xffff_ffff_8100_0000), Some("a"));
        assert_eq!(symbols.name(0xffff_ffff_8100_000f), Some("a"));
        assert_eq!(symbols.name(0xffff_ffff_8100_0010), Some("b"));
        assert_eq!(symbols.name(1), None);
        assert_eq!(symbols.address("b"), Some(0xffff_ffff_8100_0010));
        assert_eq!(symbols.address("none"), None);
        assert!(Symbols::parse("0000000000000000 T a\n").is_empty(), "hidden from this user");
    }
}
