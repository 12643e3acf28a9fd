// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole numbers of 256 bits and a sign: wide enough for the central moments of a run
//! without any rounding.
//!
//! Units: none. Every operation is checked: `None` is "does not fit", which
//! only sums from a damaged or foreign file can reach.
//! Not here: what is computed with them ([`crate::moments`]).

use tailbound_core::number::Real as _;

/// A signed whole number of magnitude below 2^256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int256 {
    negative: bool,
    /// Least significant first; zero is never negative.
    words: [u64; 4],
}

impl Int256 {
    /// Zero.
    pub const ZERO: Self = Self { negative: false, words: [0; 4] };

    fn new(negative: bool, words: [u64; 4]) -> Self {
        Self { negative: negative && words != [0; 4], words }
    }

    /// `high * 2^128 + low`.
    #[must_use]
    pub fn from_parts(low: u128, high: u64) -> Self {
        let [a, b] = halves(low);
        Self::new(false, [a, b, high, 0])
    }

    /// The sum, if it fits.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        if self.negative == other.negative {
            let mut carry = false;
            let mut words = [0; 4];
            for ((out, a), b) in words.iter_mut().zip(self.words).zip(other.words) {
                let (sum, c1) = a.overflowing_add(b);
                let (sum, c2) = sum.overflowing_add(u64::from(carry));
                (*out, carry) = (sum, c1 || c2);
            }
            return (!carry).then(|| Self::new(self.negative, words));
        }
        let (great, small) = if self.words.iter().rev().ge(other.words.iter().rev()) {
            (self, other)
        } else {
            (other, self)
        };
        let mut borrow = false;
        let mut words = [0; 4];
        for ((out, a), b) in words.iter_mut().zip(great.words).zip(small.words) {
            let (rest, b1) = a.overflowing_sub(b);
            let (rest, b2) = rest.overflowing_sub(u64::from(borrow));
            (*out, borrow) = (rest, b1 || b2);
        }
        Some(Self::new(great.negative, words))
    }

    /// The difference, if it fits.
    #[must_use]
    pub fn minus(self, other: Self) -> Option<Self> {
        self.plus(Self::new(!other.negative, other.words))
    }

    /// The product, if it fits.
    #[must_use]
    pub fn times(self, other: Self) -> Option<Self> {
        let mut words = [0u64; 8];
        for (i, a) in self.words.into_iter().enumerate() {
            let mut carry = 0u128;
            for (out, b) in words.iter_mut().skip(i).zip(other.words) {
                // At most (2^64-1)^2 + 2 * (2^64-1) = 2^128 - 1.
                let t = u128::from(a) * u128::from(b) + u128::from(*out) + carry;
                *out = halves(t)[0];
                carry = t >> 64;
            }
            if let Some(out) = words.get_mut(i + 4) {
                *out = halves(carry)[0];
            }
        }
        let [a, b, c, d, rest @ ..] = words;
        (rest == [0; 4]).then(|| Self::new(self.negative != other.negative, [a, b, c, d]))
    }

    /// The nearest float.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        let top = self.words.iter().rposition(|w| *w != 0).unwrap_or(0);
        let word = |i: Option<usize>| i.and_then(|i| self.words.get(i)).copied().unwrap_or(0);
        let (first, second) = (word(Some(top)), word(top.checked_sub(1)));
        let zeros = if top == 0 { 0 } else { first.leading_zeros() };
        // The 64 leading bits; whatever is below them only breaks a tie when rounding to 53.
        let mut lead = first << zeros;
        let mut below = self.words.iter().take(top.saturating_sub(1)).any(|w| *w != 0);
        if zeros > 0 {
            lead |= second >> (64 - zeros);
        }
        below |= second << zeros != 0;
        lead |= u64::from(below && top > 0);
        let exponent = 64 * i32::try_from(top).unwrap_or(0) - i32::try_from(zeros).unwrap_or(0);
        let magnitude = lead.real() * 2f64.powi(exponent);
        if self.negative { -magnitude } else { magnitude }
    }
}

fn halves(v: u128) -> [u64; 2] {
    [v as u64, (v >> 64) as u64]
}

impl From<u128> for Int256 {
    fn from(v: u128) -> Self {
        Self::from_parts(v, 0)
    }
}

impl From<u64> for Int256 {
    fn from(v: u64) -> Self {
        Self::from_parts(v.into(), 0)
    }
}

impl From<i128> for Int256 {
    fn from(v: i128) -> Self {
        Self::new(v < 0, Self::from(v.unsigned_abs()).words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_128_bits_where_both_can(a in any::<i64>(), b in any::<i64>()) {
            let (x, y) = (Int256::from(i128::from(a)), Int256::from(i128::from(b)));
            let (a, b) = (i128::from(a), i128::from(b));
            prop_assert_eq!(x.plus(y), Some(Int256::from(a + b)));
            prop_assert_eq!(x.minus(y), Some(Int256::from(a - b)));
            prop_assert_eq!(x.times(y), Some(Int256::from(a * b)));
        }

        #[test]
        fn wide_products_obey_the_laws(
            a in any::<i128>(), b in any::<i64>(), c in any::<i64>()
        ) {
            let (a, b, c) = (Int256::from(a), Int256::from(i128::from(b)), Int256::from(i128::from(c)));
            let left = a.times(b.plus(c).unwrap_or(Int256::ZERO));
            let right = a.times(b).zip(a.times(c)).and_then(|(x, y)| x.plus(y));
            prop_assert_eq!(left, right);
            prop_assert_eq!(a.times(b).and_then(|x| x.times(c)), b.times(c).and_then(|x| x.times(a)));
        }

        #[test]
        fn floats_are_the_nearest(a in any::<i128>(), shift in 0u32..127) {
            prop_assert_eq!(Int256::from(a).to_f64(), a.real());
            let power = Int256::from(1u128 << shift);
            let shifted = Int256::from(a).times(power).map(Int256::to_f64);
            prop_assert_eq!(shifted, Some(a.real() * 2f64.powi(shift.cast_signed())));
        }
    }

    #[test]
    fn refuses_what_does_not_fit() {
        let big = Int256::from(u128::MAX);
        let square = big.times(big);
        assert!(square.is_some());
        assert_eq!(square.and_then(|s| s.times(2u64.into())), None);
        assert_eq!(square.and_then(|s| s.plus(s)), None);
        assert_eq!(square.and_then(|s| s.minus(s)), Some(Int256::ZERO));
    }
}
