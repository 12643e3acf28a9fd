// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stretches of a run as a series: those of several threads put together second by second,
//! and short ones put together to longer ones.
//!
//! Units: ns, seconds of the schedule.

use std::collections::BTreeMap;

use tailbound_core::histogram::Histogram;
use tailbound_core::record::BlockRecord;
use tailbound_core::{Distribution, Sums};

use crate::blocks::PRECISION;

/// All due activations of one stretch.
#[derive(Clone, Debug)]
pub struct Stretch {
    /// First second.
    pub second: u64,
    /// Number of seconds.
    pub seconds: u64,
    /// Due activations.
    pub n: u64,
    /// Exact sums; absent where the source has none.
    pub sums: Option<Sums>,
    /// Upper edge and count of every non-empty bucket, ascending, early ones below zero.
    pub cells: Vec<(i64, u64)>,
}

impl Stretch {
    /// Activations above `edge_ns`, the upper edge of a bucket.
    #[must_use]
    pub fn above(&self, edge_ns: i64) -> u64 {
        self.cells.iter().rev().take_while(|(e, _)| *e > edge_ns).map(|(_, c)| c).sum()
    }

    fn merge(&mut self, other: &Self) {
        self.seconds = self
            .seconds
            .max(other.second.saturating_add(other.seconds).saturating_sub(self.second));
        self.n = self.n.saturating_add(other.n);
        self.sums = match (self.sums, &other.sums) {
            (Some(mut a), Some(b)) => {
                a.merge(b);
                Some(a)
            }
            _ => None,
        };
        self.cells = merged(&self.cells, &other.cells);
    }
}

/// The stretches of a run in their order.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Length of each, the last one possibly shorter and then left out.
    pub length_s: u64,
    /// The stretches.
    pub stretches: Vec<Stretch>,
}

impl Series {
    /// The stretches of `thread`, or of all threads put together by their seconds. A last one
    /// that is much shorter than the others is left out: it would weigh as much as they do.
    #[must_use]
    pub fn of(blocks: &[BlockRecord], thread: Option<u32>) -> Self {
        let mut by_second: BTreeMap<u64, Stretch> = BTreeMap::new();
        for b in blocks.iter().filter(|b| thread.is_none_or(|t| t == b.thread)) {
            let stretch = of(b);
            match by_second.get_mut(&b.second) {
                Some(s) => s.merge(&stretch),
                None => {
                    by_second.insert(b.second, stretch);
                }
            }
        }
        let mut stretches: Vec<Stretch> = by_second.into_values().collect();
        let mut lengths: Vec<u64> = stretches.iter().map(|s| s.seconds).collect();
        lengths.sort_unstable();
        let length_s = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
        stretches.retain(|s| s.seconds.saturating_mul(2) >= length_s);
        Self { length_s, stretches }
    }

    /// Adds a stretch of one thread to the one of its time; a new one if there is none.
    pub(crate) fn absorb(&mut self, b: &BlockRecord) {
        let length = self.length_s.max(1);
        let place = |second: u64| second / length;
        let stretch = of(b);
        let same = self.stretches.iter_mut().rev().find(|s| place(s.second) == place(b.second));
        match same {
            Some(s) => s.merge(&stretch),
            None => self.stretches.push(stretch),
        }
    }

    /// Two neighbours become one.
    pub(crate) fn halve(&mut self) {
        self.length_s = self.length_s.saturating_mul(2);
        let mut out: Vec<Stretch> = Vec::with_capacity(self.stretches.len() / 2 + 1);
        for s in std::mem::take(&mut self.stretches) {
            match out.last_mut().filter(|o| o.second / self.length_s == s.second / self.length_s) {
                Some(o) => o.merge(&s),
                None => out.push(s),
            }
        }
        self.stretches = out;
    }

    /// Put together to stretches of about `wanted_s`, as long as `least` remain.
    #[must_use]
    pub fn grouped(&self, wanted_s: u64, least: usize) -> Self {
        let by = wanted_s.checked_div(self.length_s).unwrap_or(1).max(1);
        let by = usize::try_from(by).unwrap_or(1).min((self.stretches.len() / least.max(1)).max(1));
        if by == 1 {
            return self.clone();
        }
        let stretches = self.stretches.chunks_exact(by).filter_map(|chunk| {
            let (first, rest) = chunk.split_first()?;
            let mut all = first.clone();
            rest.iter().for_each(|s| all.merge(s));
            Some(all)
        });
        Self { length_s: self.length_s.saturating_mul(by as u64), stretches: stretches.collect() }
    }

    /// All of it as one distribution, of the buckets' precision.
    #[must_use]
    pub fn total(&self) -> Distribution {
        let mut out = Distribution {
            late: Histogram::new(PRECISION),
            sums: Some(Sums::default()),
            ..Distribution::default()
        };
        for s in &self.stretches {
            out.n = out.n.saturating_add(s.n);
            for (edge, count) in &s.cells {
                let to = if *edge < 0 { &mut out.early } else { &mut out.late };
                to.add(edge.unsigned_abs(), *count);
            }
            out.sums = out.sums.zip(s.sums).map(|(mut a, b)| {
                a.merge(&b);
                a
            });
        }
        out
    }
}

/// Two ascending lists of edges and counts as one.
fn merged(a: &[(i64, u64)], b: &[(i64, u64)]) -> Vec<(i64, u64)> {
    let mut out = Vec::with_capacity(a.len().max(b.len()));
    let (mut a, mut b) = (a.iter().copied().peekable(), b.iter().copied().peekable());
    loop {
        let next = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if x.0 == y.0 => {
                let sum = (x.0, x.1.saturating_add(y.1));
                a.next();
                b.next();
                Some(sum)
            }
            (Some(x), Some(y)) if x.0 < y.0 => a.next(),
            (Some(_), None) => a.next(),
            _ => b.next(),
        };
        match next {
            Some(cell) => out.push(cell),
            None => return out,
        }
    }
}

fn of(b: &BlockRecord) -> Stretch {
    // Early buckets from the earliest; each by its edge that is nearest to the due time.
    let early = b
        .early
        .iter()
        .flat_map(|h| h.buckets().rev())
        .map(|c| (-i64::try_from(c.low_ns).unwrap_or(i64::MAX), c.count));
    let late = b
        .late
        .buckets()
        .map(|c| (i64::try_from(c.low_ns + (c.width_ns - 1)).unwrap_or(i64::MAX), c.count));
    Stretch {
        second: b.second,
        seconds: b.seconds,
        n: b.n,
        sums: b.sums,
        cells: early.chain(late).collect(),
    }
}
