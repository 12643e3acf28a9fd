// SPDX-License-Identifier: MIT OR Apache-2.0
//! A histogram at rest: H2 buckets with 64-bit counts, mergeable without loss.
//!
//! Units: ns. In the run file only non-empty buckets are written, as two
//! arrays of equal length (`index`, `count`), which jq, pandas and DuckDB read as they are;
//! [`SparseHistogram`] keeps that form in memory, for the hundreds of short stretches of a run.
//! In memory a [`Histogram`] costs what it holds and not what its precision allows (`counts`).
//! Not here: the live histogram (`tailbound_rt::recorder`), quantiles (`tailbound-stats`).

mod counts;

use serde::{Deserialize, Serialize};
use tailbound_rt::h2;

use crate::limits;
use counts::Counts;

/// H2 buckets of one precision; index and bounds as in [`tailbound_rt::h2`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Sparse", into = "Sparse")]
pub struct Histogram {
    precision: u32,
    counts: Counts,
    total: u64,
}

#[derive(Serialize, Deserialize)]
struct Sparse {
    precision: u32,
    index: Vec<u32>,
    count: Vec<u64>,
}

/// The non-empty buckets of an H2 histogram, ascending: what a short stretch of a run fills.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Sparse", into = "Sparse")]
pub struct SparseHistogram {
    precision: u32,
    index: Vec<u32>,
    count: Vec<u64>,
    total: u64,
}

impl SparseHistogram {
    /// Without any value.
    #[must_use]
    pub fn empty(precision: u32) -> Self {
        Self { precision: precision.clamp(1, 16), index: Vec::new(), count: Vec::new(), total: 0 }
    }

    /// What the cumulative `now` has more than `before`; both of one precision, which the
    /// result has too (of two, `now`'s, and `before` counts as empty).
    #[must_use]
    pub fn between(before: &Histogram, now: &Histogram) -> Self {
        if before.precision != now.precision {
            return Self::from(now);
        }
        let mut out = Self::empty(now.precision);
        for (i, more) in now.since(before) {
            out.push(u32::try_from(i).unwrap_or(u32::MAX), more);
        }
        out
    }

    fn push(&mut self, index: u32, count: u64) {
        if count > 0 {
            self.index.push(index);
            self.count.push(count);
            self.total = self.total.saturating_add(count);
        }
    }

    /// The grouping power.
    #[must_use]
    pub fn precision(&self) -> u32 {
        self.precision
    }

    /// Number of values.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bucket index and count of every non-empty bucket, ascending.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = (u32, u64)> + '_ {
        self.index.iter().copied().zip(self.count.iter().copied())
    }

    /// The non-empty buckets in ascending order.
    pub fn buckets(&self) -> impl DoubleEndedIterator<Item = Bucket> + '_ {
        self.entries().map(|(i, count)| {
            let (low_ns, width_ns) = h2::bounds(i as usize, self.precision);
            Bucket { low_ns, width_ns, count }
        })
    }

    /// Adds all of it to `to`; exact where `to` has the same or a lower precision.
    pub fn add_to(&self, to: &mut Histogram) {
        for (i, c) in self.entries() {
            if to.precision == self.precision {
                to.add_at(i as usize, c);
            } else {
                to.add(h2::bounds(i as usize, self.precision).0, c);
            }
        }
    }
}

impl From<&Histogram> for SparseHistogram {
    fn from(h: &Histogram) -> Self {
        Self::between(&Histogram::new(h.precision), h)
    }
}

/// Why a file's buckets are no histogram.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistogramError {
    /// A precision that does not exist.
    #[error("histogram precision {0} is not 1 to 16")]
    Precision(u32),
    /// Two lists that do not belong together.
    #[error("histogram has {indices} indices and {counts} counts")]
    Lengths {
        /// Length of the one.
        indices: usize,
        /// Length of the other.
        counts: usize,
    },
    /// A bucket before the one that precedes it.
    #[error("histogram index {0} does not ascend")]
    Order(u32),
    /// A bucket that does not exist.
    #[error("histogram index {index} is beyond the last bucket {last}")]
    Index {
        /// The bucket.
        index: u32,
        /// The last there is.
        last: usize,
    },
    /// More values than a file may hold.
    #[error(transparent)]
    Limit(#[from] limits::LimitError),
}

impl TryFrom<Sparse> for SparseHistogram {
    type Error = HistogramError;
    fn try_from(s: Sparse) -> Result<Self, HistogramError> {
        check(&s)?;
        let mut out = Self::empty(s.precision);
        let mut last = None;
        for (&i, &c) in s.index.iter().zip(&s.count) {
            if last.is_some_and(|l| i <= l) {
                return Err(HistogramError::Order(i));
            }
            last = Some(i);
            out.push(i, c);
        }
        Ok(out)
    }
}

impl From<SparseHistogram> for Sparse {
    fn from(h: SparseHistogram) -> Self {
        Self { precision: h.precision, index: h.index, count: h.count }
    }
}

/// A precision that exists, arrays of one length, indices within the last bucket, no more values
/// than a file may have.
fn check(s: &Sparse) -> Result<(), HistogramError> {
    if !(1..=16).contains(&s.precision) {
        return Err(HistogramError::Precision(s.precision));
    }
    if s.index.len() != s.count.len() {
        return Err(HistogramError::Lengths { indices: s.index.len(), counts: s.count.len() });
    }
    let total = s.count.iter().try_fold(0u64, |all, c| all.checked_add(*c));
    if total.is_none_or(|n| n > limits::COUNT_MAX) {
        return Err(limits::beyond("the histogram's counts together are", limits::COUNT_MAX).into());
    }
    let last = h2::buckets(s.precision).saturating_sub(1);
    match s.index.iter().find(|i| **i as usize > last) {
        Some(&index) => Err(HistogramError::Index { index, last }),
        None => Ok(()),
    }
}

/// One non-empty bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Lowest value of the bucket.
    pub low_ns: u64,
    /// Number of ns the bucket spans.
    pub width_ns: u64,
    /// Values in it.
    pub count: u64,
}

impl Histogram {
    /// An empty histogram of grouping power `precision` (1 to 16).
    #[must_use]
    pub fn new(precision: u32) -> Self {
        let precision = precision.clamp(1, 16);
        Self { precision, counts: Counts::default(), total: 0 }
    }

    /// The grouping power.
    #[must_use]
    pub fn precision(&self) -> u32 {
        self.precision
    }

    /// Number of values in bucket `index`; none is beyond the last bucket.
    #[must_use]
    pub fn count_at(&self, index: usize) -> u64 {
        self.counts.get(index)
    }

    /// The buckets, by index, that hold more than they did in `before`, of the same precision
    /// and at an earlier time; and how much more.
    pub fn since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = (usize, u64)> + 'a {
        self.counts.entries().filter_map(|(i, now)| {
            now.checked_sub(before.count_at(i)).filter(|more| *more > 0).map(|more| (i, more))
        })
    }

    /// Number of values.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Adds `count` values of `value_ns`; values over range share the top bucket.
    pub fn add(&mut self, value_ns: u64, count: u64) {
        let v = value_ns.min((1 << h2::RANGE_BITS) - 1);
        self.add_at(h2::index(v, self.precision), count);
    }

    /// Adds `count` values to bucket `index`; an index past the end goes to the top bucket.
    pub fn add_at(&mut self, index: usize, count: u64) {
        if count == 0 {
            return;
        }
        self.counts.add(index.min(h2::buckets(self.precision).saturating_sub(1)), count);
        self.total = self.total.saturating_add(count);
    }

    /// Adds all of `other`; of two precisions the coarser one remains.
    pub fn merge(&mut self, other: &Self) {
        if other.precision < self.precision {
            *self = self.coarsened(other.precision);
        }
        for (i, c) in other.counts.entries() {
            if other.precision == self.precision {
                self.add_at(i, c);
            } else {
                self.add(h2::bounds(i, other.precision).0, c);
            }
        }
    }

    /// The same values at a lower precision (exact: buckets nest).
    #[must_use]
    pub fn coarsened(&self, precision: u32) -> Self {
        let mut out = Self::new(precision);
        for b in self.buckets() {
            out.add(b.low_ns, b.count);
        }
        out
    }

    /// The non-empty buckets in ascending order.
    pub fn buckets(&self) -> impl DoubleEndedIterator<Item = Bucket> + '_ {
        self.counts.entries().map(|(i, count)| {
            let (low_ns, width_ns) = h2::bounds(i, self.precision);
            Bucket { low_ns, width_ns, count }
        })
    }
}

impl TryFrom<Sparse> for Histogram {
    type Error = HistogramError;
    fn try_from(s: Sparse) -> Result<Self, HistogramError> {
        check(&s)?;
        let mut h = Self::new(s.precision);
        let mut pairs: Vec<_> = s.index.into_iter().zip(s.count).collect();
        // In order, so that each is added at the end.
        pairs.sort_by_key(|(i, _)| *i);
        for (i, c) in pairs {
            h.add_at(i as usize, c);
        }
        Ok(h)
    }
}

impl From<Histogram> for Sparse {
    fn from(h: Histogram) -> Self {
        let (index, count) =
            h.counts.entries().map(|(i, c)| (u32::try_from(i).unwrap_or(u32::MAX), c)).unzip();
        Self { precision: h.precision, index, count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_and_coarsening_lose_nothing() {
        let (mut a, mut b) = (Histogram::new(10), Histogram::new(7));
        for v in [0u64, 1, 999, 54_025_926, u64::MAX] {
            a.add(v, 3);
            b.add(v, 2);
        }
        a.merge(&b);
        assert_eq!((a.precision(), a.total()), (7, 25));
        assert_eq!(a.buckets().count(), 5);
    }

    #[test]
    fn histograms_of_different_reach_compare_and_subtract() {
        let (mut small, mut large) = (Histogram::new(7), Histogram::new(7));
        small.add(5, 2);
        for (v, n) in [(5, 3), (1 << 33, 4), (9, 0)] {
            large.add(v, n);
        }
        let late = h2::index(1 << 33, 7);
        assert_eq!(large.since(&small).collect::<Vec<_>>(), [(5, 1), (late, 4)]);
        assert_eq!(small.since(&large).count(), 0);
        assert_eq!((large.count_at(late), large.count_at(usize::MAX)), (4, 0));
        small.add(1 << 33, 4);
        small.add(5, 1);
        assert_eq!(small, large, "equal values, equal histograms, in whatever order");
    }

    #[test]
    fn file_form_is_sparse_and_checked() {
        let mut h = Histogram::new(10);
        h.add(3001, 5);
        let text = serde_json::to_string(&h).unwrap_or_default();
        assert_eq!(text, r#"{"precision":10,"index":[2524],"count":[5]}"#);
        assert_eq!(serde_json::from_str::<Histogram>(&text).ok(), Some(h));
        for bad in [
            r#"{"precision":10,"index":[2524],"count":[]}"#,
            r#"{"precision":10,"index":[99999],"count":[1]}"#,
            r#"{"precision":40,"index":[],"count":[]}"#,
        ] {
            assert!(serde_json::from_str::<Histogram>(bad).is_err(), "{bad}");
            assert!(serde_json::from_str::<SparseHistogram>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_stretch_is_what_came_between() {
        let mut before = Histogram::new(7);
        before.add(3001, 5);
        let mut now = before.clone();
        now.add(3001, 2);
        now.add(90, 1);
        let stretch = SparseHistogram::between(&before, &now);
        assert_eq!(stretch.total(), 3);
        let mut again = before.clone();
        stretch.add_to(&mut again);
        assert_eq!(again, now);
        let text = serde_json::to_string(&stretch).unwrap_or_default();
        assert_eq!(serde_json::from_str::<SparseHistogram>(&text).ok(), Some(stretch));
        let backwards = r#"{"precision":7,"index":[90,80],"count":[1,1]}"#;
        assert!(serde_json::from_str::<SparseHistogram>(backwards).is_err());
    }
}
