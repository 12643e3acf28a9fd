// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many values of a distribution a requirement forbids: too late, too early, and those of
//! which the data does not tell.
//!
//! Units: ns. Nothing undecidable is counted as good: values in no bucket, a
//! bucket that the limit cuts, and a coarse source's value within a step of the limit are
//! `unknown`.
//! Not here: what follows from the counts ([`mod@crate::verdict`]).

use tailbound_core::Distribution;

/// Counts of the values beyond a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exceedances {
    /// Certainly too late.
    pub late: u64,
    /// Certainly too early.
    pub early: u64,
    /// Perhaps one of the two.
    pub unknown: u64,
}

impl Exceedances {
    /// Too late or too early.
    #[must_use]
    pub fn beyond(&self) -> u64 {
        self.late.saturating_add(self.early)
    }

    /// Adds those of other values.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            late: self.late.saturating_add(other.late),
            early: self.early.saturating_add(other.early),
            unknown: self.unknown.saturating_add(other.unknown),
        }
    }
}

/// The values of `d` later than `deadline_ns` after, or earlier than `early_ns` before, the
/// due time.
#[must_use]
pub fn count(d: &Distribution, deadline_ns: Option<i64>, early_ns: Option<i64>) -> Exceedances {
    let mut found = Exceedances::default();
    if let Some(limit) = deadline_ns {
        let (beyond, unknown) = d.beyond(limit);
        found.late = beyond;
        found.unknown = unknown;
        if found.late == 0 && found.unknown == 0 {
            if d.over_range > 0 && d.max_ns.is_some_and(|max| max > limit) {
                // The limit is beyond the histogram: of what shares its top bucket only the
                // greatest value is known.
                (found.late, found.unknown) = (1, d.over_range - 1);
            } else {
                found.unknown = near_the_limit(d, limit);
            }
        }
    }
    if let Some(limit) = early_ns {
        let (early, unknown) = too_early(d, limit);
        found.early = early;
        found.unknown = found.unknown.saturating_add(unknown);
    }
    // Values that the source counted and then lost sight of, unless its extremes clear them.
    let lost =
        d.n.saturating_sub(d.late.total())
            .saturating_sub(d.early.total())
            .saturating_sub(d.unbinned);
    let in_time = |limit: Option<i64>, extreme: Option<i64>| match (limit, extreme) {
        (None, _) => true,
        (Some(limit), Some(extreme)) => extreme <= limit,
        (Some(_), None) => false,
    };
    let cleared =
        in_time(deadline_ns, d.max_ns) && in_time(early_ns, d.min_ns.map(|m| m.saturating_neg()));
    if !cleared {
        found.unknown = found.unknown.saturating_add(lost);
    }
    // An extreme beyond the limit is one value that is certain, wherever its bucket went.
    if found.late == 0 && lost > 0 && deadline_ns.zip(d.max_ns).is_some_and(|(l, max)| max > l) {
        found.late = 1;
        found.unknown = found.unknown.saturating_sub(1);
    }
    let is_early = early_ns.zip(d.min_ns).is_some_and(|(l, min)| min < l.saturating_neg());
    if found.early == 0 && lost > 0 && is_early {
        found.early = 1;
        found.unknown = found.unknown.saturating_sub(1);
    }
    found
}

/// A coarse source's value stands for a whole step: how many values may be beyond although
/// the greatest one, as the source writes it, is not.
fn near_the_limit(d: &Distribution, limit_ns: i64) -> u64 {
    let step = d.resolution_ns;
    let may_be_beyond = |written: u64| written.saturating_add(step - 1).cast_signed() > limit_ns;
    if step <= 1 || d.max_ns.is_none_or(|max| max < 0 || !may_be_beyond(max.unsigned_abs())) {
        return 0;
    }
    let written = |low: u64, high: u64| {
        let multiple = high / step * step;
        if multiple >= low { multiple } else { high }
    };
    let cut: u64 = d
        .late
        .buckets()
        .filter(|b| may_be_beyond(written(b.low_ns, b.low_ns.saturating_add(b.width_ns - 1))))
        .fold(0, |sum, b| sum.saturating_add(b.count));
    cut.max(1)
}

/// Values more than `limit_ns` before the due time, and those of which it is not known.
fn too_early(d: &Distribution, limit_ns: i64) -> (u64, u64) {
    let limit = limit_ns.max(0);
    if d.min_ns.is_some_and(|min| min >= -limit) {
        return (0, 0);
    }
    let (mut certain, mut unknown) = (0u64, 0u64);
    for b in d.early.buckets() {
        let low = b.low_ns.cast_signed();
        let high = low.saturating_add(b.width_ns.cast_signed() - 1);
        if low > limit {
            certain = certain.saturating_add(b.count);
        } else if high > limit {
            unknown = unknown.saturating_add(b.count);
        }
    }
    // The least value is exact and is beyond: at least one of the unknown is.
    if certain == 0 && unknown > 0 && d.min_ns.is_some() {
        (certain, unknown) = (1, unknown - 1);
    }
    (certain, unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_extremes_alone_the_least_is_early_and_the_rest_is_unknown() {
        let d =
            Distribution { n: 5, min_ns: Some(-300), max_ns: Some(9), ..Distribution::default() };
        let of = |early_ns| {
            let found = count(&d, None, Some(early_ns));
            (found.early, found.unknown)
        };
        assert_eq!((of(200), of(300)), ((1, 4), (0, 0)));
    }

    #[test]
    fn early_is_counted_by_the_exact_minimum() {
        let mut d = Distribution::default();
        [-50_000, -200, 10].into_iter().for_each(|v| d.add(v));
        assert_eq!(count(&d, None, Some(50_000)).beyond(), 0);
        assert_eq!(count(&d, None, Some(49_999)), Exceedances { late: 0, early: 1, unknown: 0 });
        assert_eq!(count(&d, Some(5), Some(100)), Exceedances { late: 1, early: 2, unknown: 0 });
    }

    #[test]
    fn a_deadline_beyond_the_histogram() {
        let mut d = Distribution::default();
        [1_000, 20_000_000_000, 30_000_000_000].into_iter().for_each(|v| d.add(v));
        let found = count(&d, Some(25_000_000_000), None);
        assert_eq!(found, Exceedances { late: 1, early: 0, unknown: 1 });
        assert_eq!(count(&d, Some(30_000_000_000), None), Exceedances::default());
    }

    #[test]
    fn a_microsecond_tool_cannot_clear_its_own_limit() {
        let mut d = Distribution { resolution_ns: 1000, ..Distribution::default() };
        d.add_many(40_000, 100);
        d.add_many(99_000, 5);
        d.add_many(100_000, 3);
        assert_eq!(count(&d, Some(99_900), None).late, 3, "100 µs or more");
        assert_eq!(count(&d, Some(100_000), None), Exceedances { late: 0, early: 0, unknown: 3 });
        assert_eq!(count(&d, Some(101_000), None), Exceedances::default());
    }

    #[test]
    fn values_without_a_bucket_are_not_good() {
        let mut d = Distribution::default();
        d.add(10);
        (d.n, d.sums) = (5, None);
        assert_eq!(count(&d, Some(100), None).unknown, 0, "the maximum clears them");
        d.max_ns = None;
        assert_eq!(count(&d, Some(100), None).unknown, 4);
        d.max_ns = Some(500);
        assert_eq!(count(&d, Some(100), None), Exceedances { late: 1, early: 0, unknown: 3 });
    }
}
