// SPDX-License-Identifier: MIT OR Apache-2.0
//! The base-2 log-linear ("H2") bucket layout: which bucket a value falls into and
//! where a bucket begins and ends.
//!
//! Context: HOT. Units: whatever is counted, here ns.
//! Layout, for grouping power `g`: values below 2^(g+1) have a bucket each; above,
//! every power of two is cut into 2^g equal buckets, so a bucket is never wider
//! than 2^-g of its value (g = 10: 0.098 %).
//! Source: the H2 histogram of the `histogram` crate (wire-compatible layout).

/// Grouping power of the histogram of late wake-ups: 0.1 % wide buckets.
pub const PRECISION: u32 = 10;
/// Grouping power of the histogram of early wake-ups: 0.8 % wide buckets.
pub const PRECISION_EARLY: u32 = 7;
/// Values of 2^34 ns (17.2 s) and above are over range.
pub const RANGE_BITS: u32 = 34;
/// Buckets of a histogram of [`PRECISION`] over [`RANGE_BITS`].
pub const BUCKETS: usize = buckets(PRECISION);
/// Buckets of a histogram of [`PRECISION_EARLY`] over [`RANGE_BITS`].
pub const BUCKETS_EARLY: usize = buckets(PRECISION_EARLY);

/// Number of buckets of grouping power `g` over `0..2^RANGE_BITS`.
#[must_use]
#[expect(clippy::arithmetic_side_effects, reason = "constant arithmetic on small numbers")]
pub const fn buckets(g: u32) -> usize {
    ((RANGE_BITS - g + 1) as usize) << g
}

/// Bucket index of `v` for grouping power `g` (at most 30).
#[must_use]
#[inline]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "v|1<<g has its top bit at g or above, so e >= g"
)]
#[expect(clippy::cast_possible_truncation, reason = "below buckets(g) for any in-range v")]
pub const fn index(v: u64, g: u32) -> usize {
    let e = 63 - (v | (1 << g)).leading_zeros();
    let s = e - g;
    ((s as usize) << g) + (v >> s) as usize
}

/// Lowest value of bucket `i` and the bucket's width, for grouping power `g`.
#[must_use]
#[expect(clippy::arithmetic_side_effects, reason = "i below buckets(g) keeps every term in range")]
pub const fn bounds(i: usize, g: u32) -> (u64, u64) {
    if i < 2usize << g {
        return (i as u64, 1);
    }
    let s = (i >> g) - 1;
    (((i - (s << g)) as u64) << s, 1 << s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_published_vectors() {
        for (v, g7, g10) in [
            (0u64, 0, 0),
            (127, 127, 127),
            (256, 256, 256),
            (257, 256, 257),
            (511, 383, 511),
            (512, 384, 512),
            (3001, 699, 2524),
            (54_025_926, 2510, 17008),
            ((1 << 34) - 1, 3583, 25599),
        ] {
            assert_eq!(index(v, 7), g7, "{v}");
            assert_eq!(index(v, 10), g10, "{v}");
        }
        assert_eq!(bounds(17008, 10), (54_001_664, 32_768));
        assert_eq!(bounds(2510, 7), (54_001_664, 262_144));
        assert_eq!((BUCKETS, BUCKETS_EARLY), (25_600, 3_584));
    }

    #[test]
    fn buckets_tile_the_range() {
        for g in [5, 7, 10] {
            let mut next = 0;
            for i in 0..buckets(g) {
                let (low, width) = bounds(i, g);
                assert_eq!(low, next);
                assert_eq!(index(low, g), i);
                assert_eq!(index(low + width - 1, g), i);
                next = low + width;
            }
            assert_eq!(next, 1 << RANGE_BITS);
        }
    }
}
