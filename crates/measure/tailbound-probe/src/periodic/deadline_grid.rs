// SPDX-License-Identifier: MIT OR Apache-2.0
//! When the periods of a deadline thread begin, as seen from its starts.
//!
//! Context: HOT (no allocation, lock or panic). Units: ns on CLOCK_MONOTONIC_RAW, which like the
//! scheduler's clock is not slewed.
//! No start comes before its period, so the earliest start fixes the grid: the recorded latency
//! is relative to the best start. Three things happen to a late thread:
//! - the kernel gives it the next period at once (its yield returns without having slept): that
//!   period has begun long ago, and the thread is late for it;
//! - it sleeps on into a later period: those between are missed;
//! - the kernel begins a period anew when the old one is over: from then on all starts are late
//!   by the same. After [`AGAIN`] of them the grid is laid anew, and that is counted.

/// Starts in a row that must all be late before the grid is laid anew.
const AGAIN: u32 = 8;
/// Below this part of a period a start is as good as on time.
const PART: i64 = 16;

/// The periods of one thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    period_ns: i64,
    /// When the next period begins; unknown before the first start.
    next_ns: Option<i64>,
    least_late_ns: i64,
    late_in_a_row: u32,
    /// How often the grid was laid anew.
    pub(super) shifts: u64,
}

impl Grid {
    pub(super) fn new(period_ns: i64) -> Self {
        let period_ns = period_ns.max(1);
        Self { period_ns, next_ns: None, least_late_ns: i64::MAX, late_in_a_row: 0, shifts: 0 }
    }

    /// A thread that yielded at `asked` runs again at `now`: how late its period's start is, and
    /// how many periods after that have passed (at most `left`).
    #[inline]
    pub(super) fn started(&mut self, asked: i64, now: i64, left: u64) -> (i64, u64) {
        let period = self.period_ns;
        let slack = period.wrapping_div(PART);
        let mut begun = self.next_ns.unwrap_or(now);
        let mut late = now.wrapping_sub(begun);
        let slept = now.wrapping_sub(asked) > slack;
        if late < 0 {
            // An earlier start than any: the grid lay too late.
            self.shifts = self.shifts.wrapping_add(u64::from(late < slack.wrapping_neg()));
            (begun, late) = (now, 0);
            self.late_in_a_row = 0;
        }
        let passed = late.wrapping_add(slack).wrapping_div(period).max(0).unsigned_abs();
        let missed = if slept { passed.min(left) } else { 0 };
        let mut rest = late.wrapping_sub(period.wrapping_mul(missed.cast_signed()));
        if rest < 0 {
            // Nearly a whole number of periods late: an earlier start than any, in a later period.
            (begun, late, rest) = (begun.wrapping_add(rest), late.wrapping_sub(rest), 0);
        }
        if slept {
            self.late_in_a_row = if rest > slack { self.late_in_a_row.wrapping_add(1) } else { 0 };
            self.least_late_ns =
                if self.late_in_a_row <= 1 { rest } else { self.least_late_ns.min(rest) };
            if self.late_in_a_row >= AGAIN {
                begun = begun.wrapping_add(self.least_late_ns);
                self.shifts = self.shifts.wrapping_add(1);
                self.late_in_a_row = 0;
            }
        }
        let steps = missed.wrapping_add(1).cast_signed();
        self.next_ns = Some(begun.wrapping_add(period.wrapping_mul(steps)));
        (late, missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: i64 = 1_000_000;

    #[test]
    fn even_starts_are_on_time_and_jitter_is_lateness() {
        let mut grid = Grid::new(P);
        let start = |grid: &mut Grid, at: i64| grid.started(at - P / 2, at, 100);
        assert_eq!(start(&mut grid, 5_000), (0, 0));
        assert_eq!(start(&mut grid, P + 3_000), (0, 0), "earlier than the first: the grid moves");
        assert_eq!(start(&mut grid, 2 * P + 9_000), (6_000, 0));
        assert_eq!(start(&mut grid, 3 * P + 3_000), (0, 0));
        assert_eq!(grid.shifts, 0);
    }

    #[test]
    fn periods_slept_through_are_missed_and_the_grid_stays() {
        let mut grid = Grid::new(P);
        assert_eq!(grid.started(-P, 0, 100), (0, 0));
        assert_eq!(grid.started(P / 2, 4 * P + 10, 100), (3 * P + 10, 3));
        assert_eq!(grid.started(4 * P + 500_000, 5 * P, 100), (0, 0));
        assert_eq!(grid.started(5 * P + 1, 9 * P, 1), (3 * P, 1), "no more than are left");
    }

    #[test]
    fn no_missed_period_lies_before_the_start_that_missed_it() {
        let mut grid = Grid::new(P);
        assert_eq!(grid.started(-P, 50_000, 100), (0, 0));
        let (late, missed) = grid.started(P / 2, 4 * P, 100);
        assert_eq!((late, missed), (3 * P, 3), "the grid moves back by 50 us");
        assert_eq!(grid.started(4 * P + 1, 5 * P, 100), (0, 0));
        assert_eq!(grid.shifts, 0);
    }

    #[test]
    fn a_period_given_at_once_is_late_and_nothing_is_missed() {
        let mut grid = Grid::new(P);
        assert_eq!(grid.started(-P, 0, 100), (0, 0));
        let late = 3 * P + 200_000;
        assert_eq!(grid.started(late - 10, late, 100), (2 * P + 200_000, 0));
        assert_eq!(grid.started(late + 10, late + 20, 100), (P + 200_020, 0));
        assert_eq!(grid.started(late + 30, late + 40, 100), (200_040, 0));
        assert_eq!(grid.started(late + 50, 4 * P, 100), (0, 0));
        assert_eq!(grid.shifts, 0);
    }

    #[test]
    fn periods_begun_anew_shift_the_grid_and_are_counted() {
        let mut grid = Grid::new(P);
        assert_eq!(grid.started(-P, 0, 100), (0, 0));
        let lates: Vec<i64> =
            (1..=10).map(|k| grid.started(k * P, k * P + 400_000 + k * 10, 100).0).collect();
        assert!(lates.iter().take(8).all(|l| *l >= 400_000), "{lates:?}");
        assert!(lates.iter().skip(8).all(|l| *l < 1_000), "{lates:?}");
        assert_eq!(grid.shifts, 1);
    }
}
