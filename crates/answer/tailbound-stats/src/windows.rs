// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moving statistics: what the last 1, 10 or 60 seconds of the schedule looked like.
//!
//! Units: ns; seconds of the schedule, from 0. The reader hands over cumulative
//! counters about once a second; the difference of two states is exact, so a window of W
//! seconds is the sum of the differences in it, moments included. The thread that measures
//! does nothing for it.
//! Memory: one sparse histogram a second, at most as many as the longest window has seconds:
//! 6 bytes per bucket that was hit, at most 7168 buckets (2.6 MB per thread for 60 s; 124 kB was
//! measured on very spread-out data). Buckets are kept at precision 7, 0.8 % wide.
//! Not here: the whole run ([`crate::summary`]); when it is read (`tailbound-probe`).

use std::collections::{BTreeMap, VecDeque};

use tailbound_core::number::Real as _;
use tailbound_core::record::WindowRecord;
use tailbound_core::stated::StatedQuantiles;
use tailbound_core::{Distribution, Histogram, Sums};

use crate::moments::Moments;
use crate::quantile::{Quantile, STANDARD, label, quantile};

/// Precision of the buckets kept: 0.8 % wide.
pub const PRECISION: u32 = 7;

/// How often a window of `window_s` is written, in seconds: half its length, at least 1.
#[must_use]
pub const fn emit_every_s(window_s: u32) -> u64 {
    if window_s < 2 { 1 } else { (window_s / 2) as u64 }
}

/// Moving statistics of one thread.
#[derive(Clone, Debug)]
pub struct Windows {
    thread: u32,
    lengths_s: Vec<u32>,
    late: Histogram,
    early: Histogram,
    sums: Sums,
    /// Seconds handed over so far: the next one has this number.
    covered: u64,
    deltas: VecDeque<Delta>,
}

/// What came between two calls.
#[derive(Clone, Debug)]
struct Delta {
    /// First second that is not before it, and first one after it.
    from: u64,
    to: u64,
    late: Sparse,
    early: Sparse,
    sums: Sums,
    extremes: Option<(i64, i64)>,
}

#[derive(Clone, Debug, Default)]
struct Sparse {
    index: Vec<u16>,
    count: Vec<u32>,
}

impl Sparse {
    /// What `now` has more than `before`, both at [`PRECISION`].
    fn between(before: &Histogram, now: &Histogram) -> Self {
        let mut out = Self::default();
        for (i, mut more) in now.since(before) {
            let Ok(i) = u16::try_from(i) else { continue };
            // More than 2^32 in one bucket takes several entries, so that nothing is lost.
            while more > 0 {
                let part = u32::try_from(more).unwrap_or(u32::MAX);
                out.index.push(i);
                out.count.push(part);
                more -= u64::from(part);
            }
        }
        out
    }

    fn add_to(&self, h: &mut Histogram) {
        for (i, c) in self.index.iter().zip(&self.count) {
            h.add_at(usize::from(*i), u64::from(*c));
        }
    }
}

impl Windows {
    /// Windows of `lengths_s` seconds over the due activations of `thread`; lengths of 0 are
    /// left out. The counters are taken to have begun at zero with second 0.
    #[must_use]
    pub fn new(thread: u32, lengths_s: &[u32]) -> Self {
        Self {
            thread,
            lengths_s: lengths_s.iter().copied().filter(|w| *w > 0).collect(),
            late: Histogram::new(PRECISION),
            early: Histogram::new(PRECISION),
            sums: Sums::default(),
            covered: 0,
            deltas: VecDeque::new(),
        }
    }

    /// Takes the state of the counters after second `second` and returns the windows that end
    /// with it and are due to be written.
    ///
    /// `late`, `early` and `sums` are cumulative, over all due activations; `min_max` are the
    /// exact extremes of what came since the last call. A second that was handed over before
    /// is ignored; seconds left out are part of the next one, and windows that would begin
    /// among them are not given.
    pub fn push(
        &mut self,
        second: u64,
        late: &Histogram,
        sums: &Sums,
        early: &Histogram,
        min_max: Option<(i64, i64)>,
    ) -> Vec<WindowRecord> {
        if second < self.covered {
            return Vec::new();
        }
        let (late, early) = (at_precision(late), at_precision(early));
        let (from, to) = (self.covered, second.saturating_add(1));
        self.deltas.push_back(Delta {
            from,
            to,
            late: Sparse::between(&self.late, &late),
            early: Sparse::between(&self.early, &early),
            sums: sums.since(&self.sums),
            extremes: min_max,
        });
        (self.late, self.early, self.sums, self.covered) = (late, early, *sums, to);
        let longest = u64::from(self.lengths_s.iter().copied().max().unwrap_or(0));
        while self.deltas.front().is_some_and(|d| d.to.saturating_add(longest) <= to) {
            self.deltas.pop_front();
        }
        let due = |w: u32| from / emit_every_s(w) != to / emit_every_s(w);
        self.lengths_s.iter().filter(|w| due(**w)).filter_map(|w| self.current(*w)).collect()
    }

    /// The last `window_s` seconds; `None` until the run is that long, for a length that was
    /// not asked for, and where the window would begin between two calls.
    #[must_use]
    pub fn current(&self, window_s: u32) -> Option<WindowRecord> {
        let begin = self.covered.checked_sub(u64::from(window_s))?;
        let known = self.lengths_s.contains(&window_s);
        if !known || !self.deltas.iter().any(|d| d.from == begin) {
            return None;
        }
        let (mut late, mut early) = (Histogram::new(PRECISION), Histogram::new(PRECISION));
        let mut sums = Sums::default();
        let mut extremes: Option<(i64, i64)> = None;
        let mut all_known = true;
        for d in self.deltas.iter().filter(|d| d.from >= begin) {
            let before = late.total().saturating_add(early.total());
            d.late.add_to(&mut late);
            d.early.add_to(&mut early);
            sums.merge(&d.sums);
            match (d.extremes, extremes) {
                (Some((a, b)), Some((c, e))) => extremes = Some((a.min(c), b.max(e))),
                (Some(first), None) => extremes = Some(first),
                (None, _) => {
                    all_known &= late.total().saturating_add(early.total()) == before;
                }
            }
        }
        let extremes = extremes.filter(|_| all_known);
        let n = late.total().saturating_add(early.total());
        let d = Distribution {
            n,
            min_ns: extremes.map(|e| e.0),
            max_ns: extremes.map(|e| e.1),
            sums: Some(sums),
            mean_ns: None,
            late,
            early,
            over_range: 0,
            unbinned: 0,
            unbinned_from_ns: None,
            quantiles: StatedQuantiles::default(),
            resolution_ns: 1,
        };
        let second = self.covered.saturating_sub(1);
        Some(WindowRecord { thread: self.thread, window_s, second, n, values: values(&d) })
    }
}

pub(crate) fn at_precision(h: &Histogram) -> Histogram {
    if h.precision() == PRECISION { h.clone() } else { h.coarsened(PRECISION) }
}

fn values(d: &Distribution) -> BTreeMap<String, f64> {
    let m = Moments::of_distribution(d);
    let named = [
        ("min", d.min_ns.map(|v| v.real())),
        ("max", d.max_ns.map(|v| v.real())),
        ("mean", m.mean_ns),
        ("sd", m.sd_ns),
        ("skewness", m.skewness),
        ("kurtosis", m.kurtosis),
    ];
    let quantiles = STANDARD.iter().map(|p| {
        let value = match quantile(d, *p) {
            Quantile::Value { ns, .. } => Some(ns),
            _ => None,
        };
        (label(*p), value)
    });
    named
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .chain(quantiles)
        .filter_map(|(name, value)| value.map(|v| (name, v)))
        .collect()
}
