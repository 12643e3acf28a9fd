// SPDX-License-Identifier: MIT OR Apache-2.0
//! Due times at random around those of the even schedule.
//!
//! Context: HOT. Units: ns on the schedule's clock.
//! Activation k falls due `k * interval` after the first and a random part of a window later. So
//! every due time is known from k alone: the schedule stays absolute, drifts nowhere, and what a
//! late thread missed can be told one by one, and how many those are without a look at each. The
//! window is narrower than the interval, so due times stay in order.
//! Not here: the loop over such a schedule ([`crate::cyclic_spread`]).
//! Source: the mixing function is that of SplitMix64 (Steele, Lea, Flood, 2014).

/// How due times are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Where the random numbers begin.
    pub seed: u64,
    /// Most that an activation falls due later than on the even schedule; less than the interval.
    pub window_ns: i64,
}

impl Spread {
    /// How much later than on the even schedule activation `k` falls due.
    #[must_use]
    #[inline]
    pub fn delay_ns(&self, k: u64) -> i64 {
        if self.window_ns <= 0 {
            return 0;
        }
        let mut z = self.seed.wrapping_add(k.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        let scaled = u128::from(z).wrapping_mul(u128::from(self.window_ns.unsigned_abs()));
        i64::try_from(scaled >> 64).unwrap_or(0)
    }
}
