// SPDX-License-Identifier: MIT OR Apache-2.0
//! From one pulse to the next: the period, and whether the pulses come evenly.
//!
//! Units: ticks. The median is that of the first 65,536 intervals, the extremes are of all:
//! a gap, a burst or a lost pulse does not move the period.

/// Intervals of which the median is taken.
const KEPT_MAX: usize = 1 << 16;
/// Of a hundred intervals so many are alike where pulses come evenly.
const EVEN_PERCENT: usize = 95;

/// Whether pulses come at equal intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Nearly all intervals are within 1 % of the median, or within what the caller allows.
    Even,
    /// They are not: random on purpose, or not regular.
    Uneven,
}

/// All intervals of a capture.
#[derive(Clone, Debug, Default)]
pub struct Intervals {
    kept: Vec<i64>,
    last: Option<i64>,
    extremes: Option<(i64, i64)>,
}

impl Intervals {
    /// A pulse at `tick`.
    pub(crate) fn add(&mut self, tick: i64) {
        let Some(before) = self.last.replace(tick) else { return };
        let interval = tick.saturating_sub(before);
        if self.kept.len() < KEPT_MAX {
            self.kept.push(interval);
        }
        let (least, most) = self.extremes.unwrap_or((interval, interval));
        self.extremes = Some((least.min(interval), most.max(interval)));
    }

    /// The shortest and the longest.
    #[must_use]
    pub fn extremes(&self) -> Option<(i64, i64)> {
        self.extremes
    }

    /// The period; `None` of fewer than two pulses.
    #[must_use]
    pub fn median(&self) -> Option<i64> {
        let mut sorted = self.kept.clone();
        let middle = sorted.len() / 2;
        if sorted.is_empty() {
            return None;
        }
        Some(*sorted.select_nth_unstable(middle).1)
    }

    /// Even or not, where intervals that differ by `allowed` ticks are alike.
    #[must_use]
    pub fn spacing(&self, allowed: i64) -> Option<Spacing> {
        let median = self.median()?;
        let allowed = allowed.max(median / 100);
        let alike = self.kept.iter().filter(|i| i.abs_diff(median) <= allowed.unsigned_abs());
        let even = alike.count().saturating_mul(100) >= self.kept.len() * EVEN_PERCENT;
        Some(if even { Spacing::Even } else { Spacing::Uneven })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ticks: impl IntoIterator<Item = i64>) -> Intervals {
        let mut intervals = Intervals::default();
        ticks.into_iter().for_each(|tick| intervals.add(tick));
        intervals
    }

    #[test]
    fn a_gap_does_not_move_the_period_and_random_ones_are_told() {
        let gap = of((0..100).map(|k| k * 1000 + if k > 50 { 777_777 } else { 0 }));
        assert_eq!((gap.median(), gap.spacing(0)), (Some(1000), Some(Spacing::Even)));
        assert_eq!(gap.extremes(), Some((1000, 778_777)));
        let random = of((0..100).map(|k: i64| k * 1000 + k * k * 7 % 500));
        assert_eq!(random.spacing(2), Some(Spacing::Uneven));
        assert_eq!((of([5]).median(), of([]).spacing(1)), (None, None));
    }
}
