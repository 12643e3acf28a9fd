// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a kernel keeps what its next random numbers follow from: keys, its pool of entropy, and numbers that are drawn and not yet used.
//!
//! Context: SETUP. Units: bytes, addresses of the guest.
//! All of a structure before this is exchanged, and nothing else of it: how many numbers are left, and when the next ones are
//! drawn, stays as it was, so that the kernel's course diverges only if it depends on their values.
//! Source: Linux drivers/char/random.c since 5.18 (and 5.10.119, 5.15.44): `struct crng`, `base_crng`, `input_pool`, `struct batch_u64` and others. Before, there was
//! no `crngs`.

use crate::plan::{Guest, Symbols};
use crate::variation::{Copies, RANGES, range};

/// A key of ChaCha20, at the beginning of its structure.
const KEY: u64 = 32;
/// The state of BLAKE2s, at the beginning: a guest that has just booted has no key yet, and draws each number from here.
const POOL: u64 = 32;
/// One and a half of its blocks, the same.
const BATCH: u64 = 96;

/// Name, bytes, and how often it is there.
const PLACES: [(&str, u64, Copies); 7] = [
    ("base_crng", KEY, Copies::One),
    ("input_pool", POOL, Copies::One),
    ("crngs", KEY, Copies::EachCpu),
    ("batched_entropy_u64", BATCH, Copies::EachCpu),
    ("batched_entropy_u32", BATCH, Copies::EachCpu),
    ("batched_entropy_u16", BATCH, Copies::EachCpu),
    ("batched_entropy_u8", BATCH, Copies::EachCpu),
];
const _: () = assert!(PLACES.len() <= RANGES);
/// What must be there: the other places came with a version each.
const NEEDED: usize = 5;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RandomNumbers {
    /// Address, and [`range`].
    words: Vec<(u64, u64)>,
}

impl RandomNumbers {
    /// From the text of /proc/kallsyms; nothing where the kernel does not name them, or they are of another form.
    #[must_use]
    pub fn of(kallsyms: &str, guest: Guest) -> Option<Self> {
        let symbols = Symbols::of(kallsyms);
        let mut words = Vec::new();
        for (nth, (name, bytes, copies)) in PLACES.into_iter().enumerate() {
            match symbols.named(name) {
                Some(at) if symbols.room(at) >= bytes => words.push((at, range(bytes, copies))),
                None if nth >= NEEDED => {}
                _ => return None,
            }
        }
        // ARM's own offset of a CPU is in a register.
        (guest == Guest::X86_64).then_some(Self { words })
    }

    pub(crate) fn words(&self) -> &[(u64, u64)] {
        &self.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "\
0000000000033960 A batched_entropy_u64
0000000000033a00 A batched_entropy_u32
0000000000033be0 A crngs
0000000000033c20 A next
ffffffff82ded1a0 d input_pool
ffffffff82ded240 d next
ffffffff838de3e0 b base_crng
ffffffff838de420 b next
";

    #[test]
    fn keys_and_drawn_numbers_are_found() {
        let found = RandomNumbers::of(SYMBOLS, Guest::X86_64).unwrap();
        let expected = [
            (0xffff_ffff_838d_e3e0, range(32, Copies::One)),
            (0xffff_ffff_82de_d1a0, range(32, Copies::One)),
            (0x33be0, range(32, Copies::EachCpu)),
            (0x33960, range(96, Copies::EachCpu)),
            (0x33a00, range(96, Copies::EachCpu)),
        ];
        assert_eq!(found.words(), expected);
    }

    #[test]
    fn another_form_is_refused() {
        for (from, to) in [("crngs", "primary_crng"), ("33a00", "339a0"), ("de420", "de3f0")] {
            assert_eq!(RandomNumbers::of(&SYMBOLS.replacen(from, to, 1), Guest::X86_64), None);
        }
        assert_eq!(RandomNumbers::of(SYMBOLS, Guest::Arm64), None);
    }
}
