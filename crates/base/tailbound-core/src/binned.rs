// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mean and variance from a histogram: for distributions whose sums are no longer exact, because
//! a value was longer than [`tailbound_rt::sums::CLAMP_NS`] (2.1 s) and entered them as 2.1 s.
//!
//! Units: ns. Late buckets are 0.1 % wide, early ones 0.8 %; the exact extremes cut
//! the outermost ones. Values are taken to lie evenly over their bucket.
//! Not here: exact moments of sums (`tailbound-stats`).

use tailbound_rt::h2;

use crate::Distribution;
use crate::number::Real as _;

/// Mean and variance of all values of a histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Binned {
    /// Number of values.
    pub n: u64,
    /// Their mean, to half a bucket.
    pub mean_ns: f64,
    /// Their variance over n-1; `None` for fewer than two.
    pub variance: Option<f64>,
}

impl Binned {
    /// Of `d`; `None` where the histogram does not say how great every value is.
    #[must_use]
    pub fn of(d: &Distribution) -> Option<Self> {
        let cells = cells(d)?;
        let n: u64 = cells.iter().fold(0, |n, c| n.saturating_add(c.count));
        if n == 0 || n != d.n {
            return None;
        }
        let mean_ns = cells.iter().map(|c| c.middle * c.count.real()).sum::<f64>() / n.real();
        let squares: f64 = cells
            .iter()
            .map(|c| ((c.middle - mean_ns).powi(2) + c.width.powi(2) / 12.0) * c.count.real())
            .sum();
        let variance = (n > 1).then(|| squares / (n.real() - 1.0));
        Some(Self { n, mean_ns, variance })
    }
}

/// A bucket on the signed axis.
struct Cell {
    middle: f64,
    width: f64,
    count: u64,
}

/// Non-empty buckets, cut to the extremes; `None` where values of unknown size are among them.
fn cells(d: &Distribution) -> Option<Vec<Cell>> {
    if d.unbinned > 0 || d.over_range > 1 {
        return None;
    }
    let cut = |low: f64, high: f64, count: u64| {
        let low = d.min_ns.map_or(low, |min| low.max(min.real()).min(high.max(min.real())));
        let high = d.max_ns.map_or(high, |max| high.min(max.real()).max(low.min(max.real())));
        Cell { middle: f64::midpoint(low, high), width: (high - low).max(0.0), count }
    };
    let mut out = Vec::new();
    for b in d.early.buckets().rev() {
        let (nearest, width) = (b.low_ns.real(), b.width_ns.saturating_sub(1).real());
        out.push(cut(-(nearest + width), -nearest, b.count));
    }
    for b in d.late.buckets() {
        let (low, width) = (b.low_ns.real(), b.width_ns.saturating_sub(1).real());
        let end = b.low_ns.saturating_add(b.width_ns);
        let over = d.max_ns.is_none_or(|max| max >= 1 << h2::RANGE_BITS);
        if end >= 1 << h2::RANGE_BITS && over {
            // The top bucket holds whatever is over range: of one value the size is the maximum.
            let max = d.max_ns?;
            let rest = b.count.saturating_sub(1);
            if rest > 0 && d.over_range != 1 {
                return None;
            }
            out.push(Cell { middle: low + width / 2.0, width, count: rest });
            out.push(Cell { middle: max.real(), width: 0.0, count: 1 });
        } else {
            out.push(cut(low, low + width, b.count));
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_keep_their_size() {
        let mut d = Distribution::default();
        d.add_many(3_000_000_000, 2000);
        let b = Binned::of(&d).expect("all values have a bucket");
        assert_eq!((b.n, b.mean_ns, b.variance), (2000, 3e9, Some(0.0)));
        d.add_many(5_000_000_000, 2000);
        let b = Binned::of(&d).expect("all values have a bucket");
        assert!((b.mean_ns / 4e9 - 1.0).abs() < 1e-3, "{b:?}");
        assert!((b.variance.unwrap_or(0.0).sqrt() / 1e9 - 1.0).abs() < 2e-3, "{b:?}");
        d.add_many(-3_000_000_000, 4000);
        let b = Binned::of(&d).expect("early ones too");
        assert!((b.mean_ns - 0.5e9).abs() < 0.02e9, "{b:?}");
    }

    #[test]
    fn one_value_over_range_is_the_maximum_and_two_are_not_known() {
        let mut d = Distribution::default();
        d.add_many(1_000_000, 9);
        d.add(60_000_000_000);
        let b = Binned::of(&d).expect("the maximum is exact");
        assert!((b.mean_ns / 6.0009e9 - 1.0).abs() < 1e-3, "{b:?}");
        d.add(30_000_000_000);
        assert_eq!(Binned::of(&d), None);
        d.max_ns = None;
        assert_eq!(Binned::of(&d), None);
    }
}
