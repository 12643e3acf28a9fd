// SPDX-License-Identifier: MIT OR Apache-2.0
//! Histograms of block characters, both axes logarithmic.
//!
//! Units: ns across. A column that holds one value is as tall as the
//! smallest block: nothing that was counted is invisible.

use tailbound_core::Histogram;
use tailbound_core::number::{Real as _, Whole as _};

use crate::bins::{Bin, Bins};
use crate::svg::scale::{round_down_125, round_up_125};
use crate::svg::{Scale, Unit};
use crate::table::columns;

const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The axis that several histograms share.
#[derive(Clone, Copy, Debug)]
pub struct Across {
    scale: Scale,
    width: usize,
}

impl Across {
    /// An axis of `width` columns that reaches over `histogram`, `max_ns` and the deadline.
    #[must_use]
    pub fn over(histogram: &Histogram, deadline_ns: Option<i64>, width: usize) -> Self {
        let bins = Bins::of(histogram, 10);
        let (low, high) = bins.span().unwrap_or((1000, 1_000_000));
        let (mut low, mut high) = (low.real(), high.real());
        if let Some(d) = deadline_ns.map(|d| d.real()).filter(|d| *d > 0.0 && *d < high * 1e3) {
            (low, high) = (low.min(d), high.max(d * 1.2));
        }
        let scale = Scale::log(round_down_125(low), round_up_125(high), Unit::Ns);
        Self { scale, width: width.max(1) }
    }

    /// The column of `v`.
    #[must_use]
    pub fn column(&self, v: f64) -> usize {
        (self.scale.at(v) * self.width.real()).whole_usize().min(self.width - 1)
    }

    /// The labels below, and the deadline's mark among the ticks above them.
    #[must_use]
    pub fn axis(&self, deadline_ns: Option<i64>) -> (String, String) {
        let mut ticks = vec!['─'; self.width];
        let mut labels = vec![' '; self.width];
        let mut free_from = 0;
        for t in self.scale.ticks((self.width / 12).max(2)).iter().filter(|t| t.labelled) {
            let at = self.column(t.value);
            if let Some(c) = ticks.get_mut(at) {
                *c = '┬';
            }
            let text = Unit::Ns.label(t.value);
            let length = columns(&text);
            let from = at.saturating_sub(length / 2).min(self.width.saturating_sub(length));
            if from >= free_from && length <= self.width {
                for (i, c) in text.chars().enumerate() {
                    if let Some(place) = labels.get_mut(from + i) {
                        *place = c;
                    }
                }
                free_from = from + length + 1;
            }
        }
        if let Some(d) = deadline_ns.filter(|d| self.scale.holds(d.real()))
            && let Some(c) = ticks.get_mut(self.column(d.real()))
        {
            *c = '┃';
        }
        (ticks.into_iter().collect(), labels.into_iter().collect::<String>().trim_end().to_owned())
    }

    /// `histogram` as `height` lines, the highest first. Heights are logarithms of counts,
    /// the tallest column fills the lines.
    #[must_use]
    pub fn rows(&self, histogram: &Histogram, height: usize) -> Vec<String> {
        let mut counts = vec![0u64; self.width];
        let mut reach = vec![(0usize, 0usize, 0u64); 0];
        for b in Bins::of(histogram, 40).bins.iter().filter(|b| b.count > 0) {
            reach.push(self.reach(b));
        }
        for (from, to, count) in reach {
            // A bin wider than a column fills them all: the picture has no comb.
            for c in counts.iter_mut().take(to + 1).skip(from) {
                *c = c.saturating_add(count);
            }
        }
        let peak = counts.iter().copied().max().unwrap_or(0);
        let full = height * 8;
        let eighths = |count: u64| -> usize {
            if count == 0 || peak == 0 {
                return 0;
            }
            let share = ((count.real()).ln() + 1.0) / ((peak.real()).ln() + 1.0);
            let e = (share * full.real()).round().whole_usize();
            e.clamp(1, full)
        };
        (0..height)
            .rev()
            .map(|row| {
                let line: String = counts
                    .iter()
                    .map(|c| {
                        let e = eighths(*c).saturating_sub(row * 8).min(8);
                        BLOCKS.get(e).copied().unwrap_or('█')
                    })
                    .collect();
                line.trim_end().to_owned()
            })
            .collect()
    }

    fn reach(&self, b: &Bin) -> (usize, usize, u64) {
        let from = self.column(b.low_ns.max(1).real());
        let to = self.column((b.high_ns.real()) * 0.999_999);
        (from, to.max(from), b.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_among_a_billion_is_seen() {
        let mut h = Histogram::new(10);
        h.add(5_000, 1_000_000_000);
        h.add(4_000_000, 1);
        for width in [10, 40, 120] {
            let across = Across::over(&h, Some(100_000), width);
            let rows = across.rows(&h, 3);
            let far = across.column(4_000_000.0);
            let bottom: Vec<char> = rows.last().map(|r| r.chars().collect()).unwrap_or_default();
            assert!(bottom.get(far).is_some_and(|c| *c != ' '), "{rows:?}");
            assert!(rows.iter().all(|r| r.chars().count() <= width));
        }
    }
}
