// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole numbers as floating point and back, for figures, rates and plots.
//!
//! Whole numbers below 2^53 are exact in a double: 104 days in ns. Beyond, a figure
//! loses digits that nobody prints. Back again a number is cut off towards 0, and one that does not fit
//! becomes the nearest that does; not-a-number becomes 0.
//! Not here: sums and counts, which stay whole.

/// As floating point.
pub trait Real {
    /// The nearest double.
    #[must_use]
    fn real(self) -> f64;
}

macro_rules! real {
    ($($whole:ty)*) => {$(
        impl Real for $whole {
            #[expect(clippy::cast_precision_loss, reason = "said in the header of this file")]
            fn real(self) -> f64 {
                self as f64
            }
        }
    )*};
}
real!(u64 i64 usize u128 i128);

/// As a whole number.
pub trait Whole {
    /// Cut off towards 0, within the range.
    #[must_use]
    fn whole_i64(self) -> i64;
    /// The same from 0 on.
    #[must_use]
    fn whole_u64(self) -> u64;
    /// The same for a place in a list.
    #[must_use]
    fn whole_usize(self) -> usize;
}

impl Whole for f64 {
    #[expect(clippy::cast_possible_truncation, reason = "said in the header of this file")]
    fn whole_i64(self) -> i64 {
        self as i64
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "said in the header of this file"
    )]
    fn whole_u64(self) -> u64 {
        self as u64
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "said in the header of this file"
    )]
    fn whole_usize(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_the_nearest_that_does() {
        assert_eq!((3u64.real(), (-3i64).real()), (3.0, -3.0));
        assert_eq!((2.9f64.whole_i64(), (-2.9f64).whole_i64(), (-2.9f64).whole_u64()), (2, -2, 0));
        assert_eq!((1e30f64.whole_i64(), f64::NEG_INFINITY.whole_i64()), (i64::MAX, i64::MIN));
        assert_eq!((f64::NAN.whole_i64(), f64::INFINITY.whole_u64()), (0, u64::MAX));
    }
}
