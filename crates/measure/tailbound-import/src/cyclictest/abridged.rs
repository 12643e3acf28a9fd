// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of a histogram that an author left out: noticed by the foot, which was computed from all of them.
//!
//! Signs, each enough: the rows hold fewer values than `# Total:`; the row of the least or of the greatest
//! latency is missing; the mean of the rows is not the one in the foot; the status line of the thread counts clearly more;
//! something that is no row stands between them.
//! Which rows are missing cannot be known, so no quantile can be computed from what is left.

use tailbound_core::units::grouped;

use crate::draft::Draft;

/// A thread's column and what the foot tells of it, in the source's units.
pub(crate) struct Column<'a> {
    pub(crate) rows: Vec<(u64, u64)>,
    pub(crate) total: Option<u64>,
    pub(crate) min: Option<u64>,
    pub(crate) avg: Option<u64>,
    pub(crate) max: Option<u64>,
    pub(crate) overflows: Option<u64>,
    /// Of the status line in the same run.
    pub(crate) cycles: Option<u64>,
    /// The first line between the rows that is none.
    pub(crate) foreign: Option<&'a (u64, String)>,
    /// The foot is there: nothing was cut off.
    pub(crate) ends: bool,
}

/// Rows are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    /// Values of the thread, or as many as are certain.
    pub(crate) n: u64,
}

impl Column<'_> {
    fn binned(&self) -> u64 {
        self.rows.iter().fold(0, |sum, (_, n)| sum.saturating_add(*n))
    }

    /// The highest row that holds a value.
    pub(crate) fn highest(&self) -> Option<u64> {
        self.rows.iter().filter(|(_, n)| *n > 0).map(|(b, _)| *b).max()
    }

    fn has(&self, bucket: u64) -> bool {
        self.rows.iter().any(|(b, n)| *b == bucket && *n > 0)
    }

    /// Why rows must be missing.
    fn sign(&self) -> Option<String> {
        let binned = self.binned();
        let beyond = self.overflows.unwrap_or(0);
        if let Some(total) = self.total.filter(|t| *t > binned) {
            return Some(format!(
                "the rows hold {} values, the `# Total:` line says {}",
                grouped(binned),
                grouped(total)
            ));
        }
        if binned == 0 && self.total.is_none_or(|t| t == 0) && self.min.is_none() {
            return None;
        }
        if let Some((line, text)) =
            self.foreign.filter(|(_, text)| self.total.is_none() && is_ellipsis(text))
        {
            return Some(format!("line {line} between the rows is none (`{text}`)"));
        }
        if let Some(min) = self.min.filter(|m| !self.has(*m) && beyond == 0) {
            return Some(format!("the row of its least latency, {min}, is missing"));
        }
        if let Some(max) =
            self.max.filter(|m| !self.has(*m) && beyond == 0 && self.overflows.is_some())
        {
            return Some(format!("the row of its greatest latency, {max}, is missing"));
        }
        // The last screen is drawn before the end: there is no sample less than it counts, but for the one under way.
        if let Some(cycles) =
            self.cycles.filter(|c| *c > binned.saturating_add(beyond).saturating_add(2))
        {
            return Some(format!(
                "the rows hold {} values, its status line counts {}",
                grouped(binned),
                grouped(cycles)
            ));
        }
        self.wrong_mean(binned).filter(|_| beyond == 0 && self.overflows.is_some())
    }

    /// The mean of the rows, which the foot has cut to whole units; they may differ by a sample.
    fn wrong_mean(&self, binned: u64) -> Option<String> {
        let avg = u128::from(self.avg?);
        if binned < 100 {
            return None;
        }
        let sum = self.rows.iter().fold(0u128, |sum, (b, n)| sum + u128::from(*b) * u128::from(*n));
        let n = u128::from(binned);
        let slack = u128::from(self.max.unwrap_or(0)) + n / 200;
        let (low, high) = ((avg * n).saturating_sub(slack), (avg + 1) * n + slack);
        (sum < low || sum > high).then(|| {
            format!("the mean of the rows is {}, its `# Avg Latencies:` says {avg}", sum / n)
        })
    }
}

/// Does a line stand for others that were left out?
fn is_ellipsis(text: &str) -> bool {
    let lower = text.to_lowercase();
    let words = [
        "...", "…", "snip", "more", "omitted", "left out", "removed", "skipped", "cut", "etc",
        "[..]",
    ];
    words.iter().any(|w| lower.contains(w)) || !text.chars().any(char::is_alphanumeric)
}

/// Are rows missing? Then it is said.
pub(crate) fn look(draft: &mut Draft, who: &str, column: &Column<'_>) -> Option<Gap> {
    if !column.ends && column.foreign.is_none() {
        return None;
    }
    let sign = column.sign()?;
    let binned = column.binned();
    let beyond = column.overflows.unwrap_or(0);
    let told =
        column.total.map(|t| t.saturating_add(beyond)).or(column.cycles).filter(|n| *n > binned);
    draft.doubt(
        "source-abridged",
        format!("{who}: rows of the histogram were left out: {sign}."),
        "Count and extremes are as the file states them; no quantile can be computed from the rows that are left.",
        "Import the text as cyclictest wrote it.",
    );
    let n = told.unwrap_or_else(|| {
        draft.lose(format!("{who}: how many values there were is not in the file; those in the rows and what its extremes need are certain."));
        // The least and the greatest are two.
        binned.saturating_add(if binned == 0 && column.min < column.max { 2 } else { 1 })
    });
    Some(Gap { n })
}
