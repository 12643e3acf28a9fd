// SPDX-License-Identifier: MIT OR Apache-2.0
//! The generator of the search: SplitMix64.
//!
//! Its numbers are part of what a seed means: another generator is another hunt.
//! Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.

/// The generator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random(u64);

impl Random {
    /// That of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 where there is none.
    pub fn below(&mut self, n: usize) -> usize {
        let n = u64::try_from(n).unwrap_or(u64::MAX);
        usize::try_from(self.next().checked_rem(n).unwrap_or(0)).unwrap_or(0)
    }

    /// A number from `least` to `most`.
    pub fn within(&mut self, least: u64, most: u64) -> u64 {
        let width = most.saturating_sub(least).saturating_add(1);
        least.saturating_add(self.next() % width)
    }

    /// A number from `least` to `most`, each power of two as likely as the next.
    pub fn scaled(&mut self, least: u64, most: u64) -> u64 {
        let bits = |n: u64| u64::BITS - n.leading_zeros();
        let bit = self.within(bits(least).into(), bits(most).into());
        let (low, high) = match bit {
            0 => (0, 0),
            1..=63 => (1 << (bit - 1), (1 << bit) - 1),
            _ => (1 << 63, u64::MAX),
        };
        self.within(low.clamp(least, most), high.clamp(least, most))
    }

    /// True `percent` times of a hundred.
    pub fn happens(&mut self, percent: u64) -> bool {
        self.within(0, 99) < percent
    }

    /// One of them.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_published_and_within_their_limits() {
        // SplitMix64 with seed 1234567, as in the reference implementation.
        let mut reference = Random::new(1_234_567);
        assert_eq!(reference.next(), 6_457_827_717_110_365_317);
        assert_eq!(reference.next(), 3_203_168_211_198_807_973);
        let mut random = Random::new(1);
        let mut low = 0;
        for _ in 0..10_000 {
            let n = random.scaled(3, 1000);
            assert!((3..=1000).contains(&n));
            low += usize::from(n < 32);
        }
        assert!((3_000..5_000).contains(&low), "{low}: not by powers of two");
        assert_eq!((random.below(0), random.scaled(0, 0), random.within(5, 5)), (0, 0, 5));
        assert_eq!(random.pick::<u8>(&[]), None);
    }
}
