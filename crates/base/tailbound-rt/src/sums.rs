// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact integer power sums S1..S4: the moments of a run without rounding, merged by
//! addition in any order.
//!
//! Context: HOT (`add`), COLD (`merge`). Units: ns^k.
//! Bounds: |d| is clamped to 2^31-1 (2.1 s) *in the sums only*, and counted; with
//! n < 2^32 then S1 < 2^63, S2 < 2^94, S3 < 2^125, S4 < 2^156 (128 bits and a carry).
//! Not here: mean, variance, skewness, kurtosis (`tailbound-stats`).

/// Largest magnitude that enters the sums unclamped.
pub const CLAMP_NS: i64 = (1 << 31) - 1;

/// Exact sums of the powers 1 to 4 of the values added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Number of values.
    pub n: u64,
    /// Values whose magnitude was clamped.
    pub clamped: u64,
    /// Sum of values.
    pub s1: i128,
    /// Sum of squares.
    pub s2: u128,
    /// Sum of cubes.
    pub s3: i128,
    /// Sum of fourth powers, low 128 bits.
    pub s4_low: u128,
    /// Sum of fourth powers, carries out of the low 128 bits.
    pub s4_high: u64,
}

/// 64-bit words of packed sums.
pub const WORDS: usize = 11;

impl Sums {
    /// As 64-bit words.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "splits 128-bit words into their halves")]
    pub const fn packed(&self) -> [u64; WORDS] {
        let (s1, s3) = (self.s1.cast_unsigned(), self.s3.cast_unsigned());
        [
            self.n,
            self.clamped,
            s1 as u64,
            (s1 >> 64) as u64,
            self.s2 as u64,
            (self.s2 >> 64) as u64,
            s3 as u64,
            (s3 >> 64) as u64,
            self.s4_low as u64,
            (self.s4_low >> 64) as u64,
            self.s4_high,
        ]
    }

    /// From their words; of too few words, nothing.
    #[must_use]
    pub fn unpack(words: &[u64]) -> Self {
        let &[n, clamped, a, b, c, d, e, f, g, h, s4_high] = words else {
            return Self::default();
        };
        let wide = |low: u64, high: u64| u128::from(low) | (u128::from(high) << 64);
        Self {
            n,
            clamped,
            s1: wide(a, b).cast_signed(),
            s2: wide(c, d),
            s3: wide(e, f).cast_signed(),
            s4_low: wide(g, h),
            s4_high,
        }
    }

    /// Adds one value.
    #[inline]
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "|d| < 2^31: no product or sum can overflow before n reaches 2^32"
    )]
    #[expect(clippy::cast_sign_loss, reason = "squares are not negative")]
    pub fn add(&mut self, v: i64) {
        let d = v.clamp(-CLAMP_NS, CLAMP_NS);
        if d != v {
            self.clamped = self.clamped.wrapping_add(1);
        }
        let d2 = (d * d) as u64;
        self.n = self.n.wrapping_add(1);
        self.s1 = self.s1.wrapping_add(i128::from(d));
        self.s2 = self.s2.wrapping_add(u128::from(d2));
        self.s3 = self.s3.wrapping_add(i128::from(d2) * i128::from(d));
        let (low, carry) = self.s4_low.overflowing_add(u128::from(d2) * u128::from(d2));
        self.s4_low = low;
        self.s4_high = self.s4_high.wrapping_add(u64::from(carry));
    }

    /// Adds `count` values `v` at once.
    pub fn add_repeated(&mut self, v: i64, count: u64) {
        let signed = v.clamp(-CLAMP_NS, CLAMP_NS);
        if signed != v {
            self.clamped = self.clamped.wrapping_add(count);
        }
        let c = u128::from(count);
        let d1 = u128::from(signed.unsigned_abs());
        let d2 = d1.wrapping_mul(d1);
        let with_sign = |m: u128| {
            if signed < 0 { m.cast_signed().wrapping_neg() } else { m.cast_signed() }
        };
        self.n = self.n.wrapping_add(count);
        self.s1 = self.s1.wrapping_add(with_sign(d1.wrapping_mul(c)));
        self.s2 = self.s2.wrapping_add(d2.wrapping_mul(c));
        self.s3 = self.s3.wrapping_add(with_sign(d2.wrapping_mul(d1).wrapping_mul(c)));
        // d^4 * count needs up to 188 bits: split the count into 32-bit halves.
        let d4 = d2.wrapping_mul(d2);
        let mut add = |term: u128, shift: u32| {
            let (low, high) =
                (term << shift, term.checked_shr(128u32.saturating_sub(shift)).unwrap_or(0));
            let (sum, carry) = self.s4_low.overflowing_add(low);
            self.s4_low = sum;
            let high = u64::try_from(high).unwrap_or(u64::MAX);
            self.s4_high = self.s4_high.wrapping_add(high).wrapping_add(u64::from(carry));
        };
        let (d4_low, d4_high) = (d4 & u128::from(u64::MAX), d4 >> 64);
        let (c_low, c_high) = (c & u128::from(u32::MAX), c >> 32);
        add(d4_low.wrapping_mul(c_low), 0);
        add(d4_low.wrapping_mul(c_high), 32);
        add(d4_high.wrapping_mul(c_low), 64);
        add(d4_high.wrapping_mul(c_high), 96);
    }

    /// Adds all that `other` holds: exact, associative, in any order.
    pub fn merge(&mut self, other: &Self) {
        self.n = self.n.wrapping_add(other.n);
        self.clamped = self.clamped.wrapping_add(other.clamped);
        self.s1 = self.s1.wrapping_add(other.s1);
        self.s2 = self.s2.wrapping_add(other.s2);
        self.s3 = self.s3.wrapping_add(other.s3);
        let (low, carry) = self.s4_low.overflowing_add(other.s4_low);
        self.s4_low = low;
        self.s4_high = self.s4_high.wrapping_add(other.s4_high).wrapping_add(u64::from(carry));
    }

    /// What was added since `earlier`, a previous state of the same sums.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let (s4_low, borrow) = self.s4_low.overflowing_sub(earlier.s4_low);
        Self {
            n: self.n.wrapping_sub(earlier.n),
            clamped: self.clamped.wrapping_sub(earlier.clamped),
            s1: self.s1.wrapping_sub(earlier.s1),
            s2: self.s2.wrapping_sub(earlier.s2),
            s3: self.s3.wrapping_sub(earlier.s3),
            s4_low,
            s4_high: self.s4_high.wrapping_sub(earlier.s4_high).wrapping_sub(u64::from(borrow)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_at_once_is_the_same_as_one_by_one() {
        let (mut a, mut b) = (Sums::default(), Sums::default());
        for _ in 0..1000 {
            a.add(i64::MAX);
        }
        b.add_repeated(i64::MAX, 1000);
        for _ in 0..7 {
            a.add(-12_345);
        }
        b.add_repeated(-12_345, 7);
        assert_eq!(a, b);
        let mut whole = Sums::default();
        whole.add_repeated(i64::MAX, (5 << 32) + 7);
        let mut parts = Sums::default();
        for _ in 0..5 {
            parts.add_repeated(i64::MAX, 1 << 32);
        }
        parts.add_repeated(i64::MAX, 7);
        assert_eq!(whole, parts);
    }

    #[test]
    fn since_undoes_merge() {
        let (mut a, mut b) = (Sums::default(), Sums::default());
        for i in 0..5000i64 {
            a.add(i * 400_000 - 3);
            b.add(-i * 1_000_000);
        }
        let mut all = a;
        all.merge(&b);
        assert_eq!(all.since(&a), b);
    }
}
