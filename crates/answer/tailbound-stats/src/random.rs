// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pseudo-random numbers from a seed that every answer names: the same data gives the same
//! answer everywhere.
//!
//! Units: none. Not for secrets.
//! Not here: what is drawn (permutations and bootstrap weights are drawn where they are used).
//! Source: Blackman and Vigna, xoshiro256++, seeded by splitmix64.

use tailbound_core::number::Real as _;

/// A generator.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The generator of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut s = seed;
        let mut next = || {
            s = s.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = s;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Self { state: [next(), next(), next(), next()] }
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let out = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let t = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= t;
        *d = d.rotate_left(45);
        out
    }

    /// Uniform in the open interval (0, 1): its logarithm exists.
    pub fn uniform(&mut self) -> f64 {
        let bits = (self.next_u64() >> 12).real();
        (bits + 0.5) / 4_503_599_627_370_496.0
    }

    /// Uniform in `0..n`; 0 for `n` = 0.
    pub fn below(&mut self, n: usize) -> usize {
        // The high half of the product: its bias is below n / 2^64.
        ((u128::from(self.next_u64()) * n as u128) >> 64) as usize
    }

    /// Heads or tails.
    pub fn coin(&mut self) -> bool {
        self.next_u64() >> 63 == 1
    }

    /// A random order of `items`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_sequence() {
        let draw = |seed| {
            let mut r = Random::new(seed);
            [r.next_u64(), r.next_u64(), r.next_u64()]
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn draws_are_spread_evenly() {
        let mut r = Random::new(1);
        let mut hits = [0u32; 10];
        let mut sum = 0.0;
        for _ in 0..100_000 {
            if let Some(h) = hits.get_mut(r.below(10)) {
                *h += 1;
            }
            sum += r.uniform();
        }
        // Ten cells of 10,000 with a standard deviation of 95.
        assert!(hits.iter().all(|h| (9_500..10_500).contains(h)), "{hits:?}");
        assert!((sum / 100_000.0 - 0.5).abs() < 0.005);
        let mut order: Vec<u32> = (0..50).collect();
        r.shuffle(&mut order);
        assert!(order.iter().enumerate().any(|(i, v)| i as u32 != *v));
        order.sort_unstable();
        assert_eq!(order, (0..50).collect::<Vec<_>>());
        assert_eq!(r.below(0), 0);
    }
}
