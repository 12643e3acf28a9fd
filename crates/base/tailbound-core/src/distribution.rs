// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of a set of latencies: exact counts and extremes, exact sums where the
//! source had them, the histogram, and what the source lost.
//!
//! Units: ns, signed (negative = early).

use serde::{Deserialize, Serialize};

use crate::binned::Binned;
use crate::histogram::Histogram;
use crate::number::Real as _;
use crate::stated::StatedQuantiles;
use crate::sums_as_text;
use tailbound_rt::h2;
use tailbound_rt::sums::Sums;

/// A set of latencies.
///
/// For our own runs `sums` is exact and `late` + `early` hold every value. For imported
/// ones, `unbinned` values have no bucket (the source's histogram overflowed): they are
/// known only to be at least `unbinned_from_ns`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Number of values, binned or not.
    pub n: u64,
    /// Exact least value.
    pub min_ns: Option<i64>,
    /// Exact greatest value.
    pub max_ns: Option<i64>,
    /// Exact power sums.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "sums_as_text")]
    pub sums: Option<Sums>,
    /// The source's own mean, where it gave no sums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<f64>,
    /// Values at or after the due time.
    pub late: Histogram,
    /// Values before the due time, by how much.
    #[serde(default = "no_early", skip_serializing_if = "is_empty")]
    pub early: Histogram,
    /// Values of 2^34 ns or more: they share the top bucket.
    #[serde(default)]
    pub over_range: u64,
    /// Values that the source counted but put into no bucket.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unbinned: u64,
    /// Every unbinned value is at least this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unbinned_from_ns: Option<i64>,
    /// Quantiles that the source printed, where it gave no histogram at all.
    #[serde(default, skip_serializing_if = "StatedQuantiles::is_empty")]
    pub quantiles: StatedQuantiles,
    /// Step of the source's values: 1 for ours, 1000 for a tool that counts µs.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub resolution_ns: u64,
}

fn no_early() -> Histogram {
    Histogram::new(h2::PRECISION_EARLY)
}
fn is_empty(h: &Histogram) -> bool {
    h.total() == 0
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's calling convention")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's calling convention")]
fn is_one(n: &u64) -> bool {
    *n == 1
}
fn one() -> u64 {
    1
}

impl Default for Distribution {
    fn default() -> Self {
        Self {
            n: 0,
            min_ns: None,
            max_ns: None,
            sums: Some(Sums::default()),
            mean_ns: None,
            late: Histogram::new(h2::PRECISION),
            early: no_early(),
            over_range: 0,
            unbinned: 0,
            unbinned_from_ns: None,
            quantiles: StatedQuantiles::default(),
            resolution_ns: 1,
        }
    }
}

impl Distribution {
    /// Adds one exact value.
    pub fn add(&mut self, value_ns: i64) {
        self.add_many(value_ns, 1);
    }

    /// Adds `count` values of `value_ns`, as of a source's bucket; sums are kept exact.
    pub fn add_many(&mut self, value_ns: i64, count: u64) {
        if count == 0 {
            return;
        }
        self.n = self.n.saturating_add(count);
        self.min_ns = Some(self.min_ns.map_or(value_ns, |m| m.min(value_ns)));
        self.max_ns = Some(self.max_ns.map_or(value_ns, |m| m.max(value_ns)));
        if value_ns >= 0 {
            self.late.add(value_ns.unsigned_abs(), count);
            if value_ns >= 1 << h2::RANGE_BITS {
                self.over_range = self.over_range.saturating_add(count);
            }
        } else {
            self.early.add(value_ns.unsigned_abs(), count);
        }
        if let Some(sums) = &mut self.sums {
            sums.add_repeated(value_ns, count);
        }
    }

    /// Adds all of `other`: exact where both are; what either lost stays said.
    pub fn merge(&mut self, other: &Self) {
        if other.n == 0 && other.late.total() == 0 {
            return;
        }
        self.mean_ns = match (self.mean(), other.mean()) {
            (Some(a), Some(b)) if self.sums.is_none() || other.sums.is_none() => {
                Some((a * self.n.real() + b * other.n.real()) / (self.n.real() + other.n.real()))
            }
            (None, Some(b)) if self.n == 0 => Some(b),
            _ => None,
        };
        self.sums = match (self.sums, &other.sums) {
            (Some(mut a), Some(b)) => {
                a.merge(b);
                Some(a)
            }
            _ => None,
        };
        if self.sums.is_some() {
            self.mean_ns = None;
        }
        // An extreme of one is none of both while that of the other is not known.
        let of_both =
            |a: Option<i64>, b: Option<i64>, f: fn(i64, i64) -> i64| a.zip(b).map(|(a, b)| f(a, b));
        (self.min_ns, self.max_ns) = match self.n {
            0 => (other.min_ns, other.max_ns),
            _ => (
                self.least_with(other).or_else(|| other.least_with(self)),
                of_both(self.max_ns, other.max_ns, i64::max),
            ),
        };
        self.unbinned_from_ns = match (self.unbinned, other.unbinned) {
            (0, _) => other.unbinned_from_ns,
            (_, 0) => self.unbinned_from_ns,
            _ => of_both(self.unbinned_from_ns, other.unbinned_from_ns, i64::min),
        };
        // Quantiles of two sets say nothing of both together.
        self.quantiles =
            if self.n == 0 { other.quantiles.clone() } else { StatedQuantiles::default() };
        self.n = self.n.saturating_add(other.n);
        self.late.merge(&other.late);
        self.early.merge(&other.early);
        self.over_range = self.over_range.saturating_add(other.over_range);
        self.unbinned = self.unbinned.saturating_add(other.unbinned);
        self.resolution_ns = self.resolution_ns.max(other.resolution_ns);
    }

    /// Its least value, if that is the least of `other` too.
    fn least_with(&self, other: &Self) -> Option<i64> {
        let own = self.min_ns?;
        let others = match other.min_ns {
            // Nothing of it has a bucket: no value is less than where those begin.
            None if other.unbinned == other.n => other.unbinned_from_ns,
            least => least,
        };
        (own <= others?).then_some(own)
    }

    /// The mean: exact from the sums; from the histogram where a value was too long for them; else
    /// the source's own.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        match &self.sums {
            Some(s) if s.clamped > 0 => Binned::of(self).map(|b| b.mean_ns),
            Some(s) if s.n > 0 => Some(s.s1.real() / s.n.real()),
            _ => self.mean_ns,
        }
    }

    /// Number of values known to be later than `limit_ns`, and of those not known to be either.
    ///
    /// A bucket that the limit cuts counts as unknown, unless the extremes decide it.
    #[must_use]
    pub fn beyond(&self, limit_ns: i64) -> (u64, u64) {
        if self.max_ns.is_some_and(|max| max <= limit_ns) {
            return (0, 0);
        }
        let (mut beyond, mut unknown) = (0u64, 0u64);
        let step = i64::try_from(self.resolution_ns).unwrap_or(i64::MAX).saturating_sub(1);
        for b in self.late.buckets() {
            let low = b.low_ns.cast_signed();
            let end = low.saturating_add(b.width_ns.cast_signed());
            // The top bucket also holds everything beyond the range.
            let open = self.over_range > 0 && end >= 1 << h2::RANGE_BITS;
            let high = if open { i64::MAX } else { end.saturating_sub(1).saturating_add(step) };
            if low > limit_ns {
                beyond = beyond.saturating_add(b.count);
            } else if high > limit_ns {
                unknown = unknown.saturating_add(b.count);
            }
        }
        if limit_ns < 0 {
            for b in self.early.buckets() {
                let nearest = b.low_ns.cast_signed().saturating_neg();
                if nearest > limit_ns {
                    unknown = unknown.saturating_add(b.count);
                }
            }
        }
        let nothing_binned = self.unbinned == self.n && !self.quantiles.is_empty();
        match self.unbinned_from_ns {
            Some(from) if from > limit_ns => beyond = beyond.saturating_add(self.unbinned),
            _ if nothing_binned => {
                let (certain, possible) = self.quantiles.beyond(self.n, limit_ns);
                beyond = beyond.saturating_add(certain);
                unknown = unknown.saturating_add(possible.saturating_sub(certain));
            }
            _ => unknown = unknown.saturating_add(self.unbinned),
        }
        // The greatest value is exact and is beyond: at least one of the unknown is.
        if beyond == 0 && unknown > 0 && self.max_ns.is_some_and(|max| max > limit_ns) {
            (beyond, unknown) = (1, unknown.saturating_sub(1));
        }
        (beyond, unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_is_exact_at_the_edges() {
        let mut d = Distribution::default();
        d.add(100_000);
        assert_eq!(d.beyond(100_000), (0, 0));
        d.add(100_001);
        let (beyond, unknown) = d.beyond(100_000);
        assert_eq!((beyond, unknown), (1, 1), "one bucket holds both");
        assert_eq!(d.beyond(50_000), (2, 0));
    }

    #[test]
    fn beyond_the_range_is_beyond() {
        let mut d = Distribution::default();
        d.add(60_000_000_000);
        d.add(20_000_000_000);
        assert_eq!(d.beyond(30_000_000_000), (1, 1), "both are in the top bucket");
        assert_eq!(d.beyond(60_000_000_000), (0, 0));
        assert_eq!(d.beyond(1_000_000_000), (2, 0));
    }

    #[test]
    fn merge_keeps_what_was_lost() {
        let mut a = Distribution::default();
        a.add(-5);
        a.add(7);
        let mut b = Distribution {
            n: 3,
            max_ns: Some(99),
            unbinned: 3,
            unbinned_from_ns: Some(50),
            ..Distribution::default()
        };
        b.sums = None;
        b.mean_ns = Some(60.0);
        a.merge(&b);
        assert_eq!((a.n, a.min_ns, a.max_ns, a.unbinned), (5, Some(-5), Some(99), 3));
        assert_eq!(a.sums, None);
        assert!((a.mean().unwrap_or(0.0) - 36.4).abs() < 1e-9);
    }

    #[test]
    fn the_greatest_of_a_thread_is_not_that_of_one_whose_histogram_overflowed() {
        let mut quiet = Distribution::default();
        quiet.add(50_000);
        let mut late = Distribution {
            n: 3,
            unbinned: 3,
            unbinned_from_ns: Some(1_000_000),
            ..Distribution::default()
        };
        late.sums = None;
        for (mut all, other) in [(quiet.clone(), &late), (late.clone(), &quiet)] {
            all.merge(other);
            assert_eq!((all.min_ns, all.max_ns), (Some(50_000), None));
            assert_eq!(all.beyond(100_000), (3, 0));
        }
        // Of values without a bucket it is not even known where they begin.
        let anywhere = Distribution { unbinned_from_ns: None, ..late.clone() };
        late.merge(&anywhere);
        assert_eq!((late.unbinned_from_ns, late.beyond(100_000)), (None, (0, 6)));
        let mut first = Distribution::default();
        first.merge(&quiet);
        assert_eq!(first, quiet);
    }
}
