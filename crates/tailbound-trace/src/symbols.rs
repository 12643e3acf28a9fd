// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's functions by their addresses: the text of /proc/kallsyms.
//!
//! Context: COLD. Addresses never leave this module: a run file is sent to strangers, and they
//! tell where the kernel lies in memory.
//! Source: proc_kallsyms(5), kernel.kptr_restrict (all addresses are 0 for who may not see them).

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
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            let Ok(at) = u32::try_from(symbols.names.len()) else { break };
            if !matches!(kind, "t" | "T" | "w" | "W") || address == 0 {
                continue;
            }
            let name: &str = name.get(..name.len().min(usize::from(u8::MAX))).unwrap_or_default();
            symbols.names.push_str(name);
            symbols.places.push((address, at, u8::try_from(name.len()).unwrap_or(0)));
        }
        symbols.places.sort_by_key(|(address, ..)| *address);
        symbols.places.dedup_by_key(|(address, ..)| *address);
        symbols
    }

    /// Is no function known?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Where the function called `name` begins. To be kept within this process: see the module.
    #[must_use]
    pub fn address(&self, name: &str) -> Option<u64> {
        let is = |(_, at, length): &&(u64, u32, u8)| {
            self.names.get(*at as usize..*at as usize + usize::from(*length)) == Some(name)
        };
        self.places.iter().find(is).map(|(address, ..)| *address)
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
        if address - begin > FUNCTION_BYTES_MAX {
            return None;
        }
        self.names.get(*at as usize..*at as usize + usize::from(*length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
