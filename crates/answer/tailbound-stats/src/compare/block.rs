// SPDX-License-Identifier: MIT OR Apache-2.0
//! One unit of a comparison: what one system did in one round, in one run, or in one stretch of
//! a run.
//!
//! Units: ns, signed. Only occupied buckets are held, so that a thousand runs fit
//! in memory and every later step is proportional to what was seen.
//! Not here: which stretches make a block ([`super::stretches`]).

use std::collections::BTreeMap;

use tailbound_core::histogram::SparseHistogram;
use tailbound_core::record::BlockRecord;
use tailbound_core::{Distribution, Histogram};

use super::refusal::Refusal;

/// Width of the bucket of censored values: those of which a source says only that they are `low_ns`
/// or more. They are above everything below that and so have a rank, but no size.
pub const OPEN: u64 = u64::MAX;

/// Values of `low_ns` to `low_ns + width_ns - 1`; of [`OPEN`] width, of `low_ns` or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Least value.
    pub low_ns: i64,
    /// Number of ns it spans.
    pub width_ns: u64,
    /// Values in it.
    pub count: u64,
}

/// One unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Due activations.
    pub n: u64,
    /// The latest, exactly where the source has it.
    pub max_ns: Option<i64>,
    /// Those later than the deadline, where one is asked about; a bucket that the deadline cuts
    /// counts as in time.
    pub beyond: Option<u64>,
    /// Occupied buckets, ascending.
    pub cells: Vec<Cell>,
}

impl Block {
    /// The unit that `due` is, in buckets of `precision` at most.
    ///
    /// # Errors
    /// Values in no bucket of which the source says nothing: they may lie anywhere.
    pub fn of(
        due: &Distribution,
        precision: u32,
        deadline_ns: Option<i64>,
    ) -> Result<Self, Refusal> {
        let mut block = Self::of_histograms(&due.late, &due.early, precision);
        if due.unbinned > 0 {
            let from = due.unbinned_from_ns.ok_or(Refusal::Unbinned { values: due.unbinned })?;
            block.n = block.n.saturating_add(due.unbinned);
            block.cells.push(Cell { low_ns: from, width_ns: OPEN, count: due.unbinned });
            block = block.censored(from);
            // A maximum below the censored values is not that of all.
            block.max_ns = due.max_ns.filter(|max| *max >= from);
        } else {
            block.max_ns = due.max_ns.or(block.max_ns);
        }
        if block.n < due.n {
            return Err(Refusal::Unbinned { values: due.n - block.n });
        }
        block.beyond = deadline_ns.and_then(|limit| {
            let decided = due.unbinned_from_ns.is_none_or(|from| from > limit)
                || due.max_ns.is_some_and(|max| max <= limit);
            (due.unbinned == 0 || decided).then(|| due.beyond(limit).0)
        });
        Ok(block)
    }

    /// The least value from which on values of this unit are censored.
    #[must_use]
    pub fn censored_from(&self) -> Option<i64> {
        self.cells.iter().find(|c| c.width_ns == OPEN).map(|c| c.low_ns)
    }

    /// The same unit as a source would give it that censors what is `from_ns` or more.
    #[must_use]
    pub fn censored(mut self, from_ns: i64) -> Self {
        let above = |c: &Cell| c.low_ns >= from_ns || c.width_ns == OPEN;
        let count =
            self.cells.iter().filter(|c| above(c)).fold(0, |n, c| c.count.saturating_add(n));
        self.cells.retain(|c| !above(c));
        if count > 0 {
            self.cells.push(Cell { low_ns: from_ns, width_ns: OPEN, count });
        }
        self
    }

    /// The unit that several stretches are together.
    #[must_use]
    pub fn of_records(
        records: &[&BlockRecord],
        max_ns: Option<i64>,
        deadline_ns: Option<i64>,
    ) -> Self {
        let precision = records.iter().map(|r| r.late.precision()).min().unwrap_or(1);
        let early = records.iter().filter_map(|r| r.early.as_ref());
        let mut all = Distribution {
            late: Histogram::new(precision),
            early: Histogram::new(early.clone().map(SparseHistogram::precision).min().unwrap_or(1)),
            ..Distribution::default()
        };
        records.iter().for_each(|r| r.late.add_to(&mut all.late));
        early.for_each(|h| h.add_to(&mut all.early));
        all.n = all.late.total().saturating_add(all.early.total());
        let mut block = Self::of_histograms(&all.late, &all.early, u32::MAX);
        block.beyond = deadline_ns.map(|limit| all.beyond(limit).0);
        block.max_ns = max_ns.or(block.max_ns);
        block
    }

    fn of_histograms(late: &Histogram, early: &Histogram, precision: u32) -> Self {
        let coarser = |h: &Histogram| (h.precision() > precision).then(|| h.coarsened(precision));
        let (coarse_late, coarse_early) = (coarser(late), coarser(early));
        let (late, early) =
            (coarse_late.as_ref().unwrap_or(late), coarse_early.as_ref().unwrap_or(early));
        let before = early.buckets().rev().map(|b| Cell {
            low_ns: -(b.low_ns + b.width_ns - 1).cast_signed(),
            width_ns: b.width_ns,
            count: b.count,
        });
        let after = late.buckets().map(|b| Cell {
            low_ns: b.low_ns.cast_signed(),
            width_ns: b.width_ns,
            count: b.count,
        });
        let cells: Vec<Cell> = before.chain(after).collect();
        Self {
            n: cells.iter().map(|c| c.count).sum(),
            max_ns: cells.last().map(|c| c.low_ns.saturating_add_unsigned(c.width_ns - 1)),
            beyond: None,
            cells,
        }
    }

    /// A unit of exact values, for tests and studies.
    #[must_use]
    pub fn of_values(values: impl IntoIterator<Item = i64>) -> Self {
        let mut d = Distribution::default();
        values.into_iter().for_each(|v| d.add(v));
        Self::of(&d, u32::MAX, None).unwrap_or_default()
    }

    /// All that `self` and `other` hold.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        let mut cells: BTreeMap<(i64, u64), Cell> = BTreeMap::new();
        for cell in self.cells.iter().chain(&other.cells) {
            cells
                .entry((cell.low_ns, cell.width_ns))
                .and_modify(|c| c.count += cell.count)
                .or_insert(*cell);
        }
        Self {
            n: self.n.saturating_add(other.n),
            // The latest of one is not that of both while the other's is not known.
            max_ns: match (self.n, other.n) {
                (0, _) => other.max_ns,
                (_, 0) => self.max_ns,
                _ => self.max_ns.zip(other.max_ns).map(|(a, b)| a.max(b)),
            },
            beyond: self.beyond.zip(other.beyond).map(|(a, b)| a.saturating_add(b)),
            cells: cells.into_values().collect(),
        }
    }
}
