// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clocks of timers beside the trace's, and when one of them was set.
//!
//! Units: ns. An expiry tells the timer's clock (`now`), and is recorded a little later on the trace's:
//! the least difference of the last expiries is the nearest. Timers of CLOCK_MONOTONIC have no difference; those of
//! CLOCK_REALTIME, CLOCK_BOOTTIME and CLOCK_TAI have one each. A clock that is set has another difference from then on: a
//! smaller one shows itself, a greater one could also be a record that was made late, and counts only where the interrupt
//! had begun just before.
//! Not here: what a step did to a thread (`charge`).
//! Source: kernel/time/hrtimer.c (`__run_hrtimer`, `clock_was_set`).

use std::collections::VecDeque;

/// No interrupt comes so late: what is further apart are two clocks.
const ANOTHER_CLOCK_NS: u64 = 1_000_000_000;
/// Expiries whose differences are kept, and for how long: a clock that is slewed drifts.
const KEPT: usize = 16;
const KEPT_NS: u64 = 1_000_000_000;
/// A change of the difference below this is the spread of records; and by so much more a clock may be slewed.
/// Source: adjtimex(2), 500 parts in a million.
const STEP_MIN_NS: i64 = 100_000;
const SLEW_PER_MILLION: u64 = 600;
/// Timers are not set further ahead than this: what is, is of another clock.
const FAR_NS: u64 = 86_400_000_000_000;
/// Most clocks: the kernel has four with high resolution, and each step of more than a second looks like one.
const CLOCKS_MAX: usize = 8;

#[derive(Clone, Debug, Default)]
struct Clock {
    /// Expiries: when on the trace's clock, and how far that is ahead of the timer's.
    seen: VecDeque<(u64, i64)>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Clocks {
    all: Vec<Clock>,
}

impl Clock {
    fn least(&self) -> Option<i64> {
        self.seen.iter().map(|(_, apart)| *apart).min()
    }

    fn last(&self) -> Option<(u64, i64)> {
        self.seen.back().copied()
    }

    fn add(&mut self, t_ns: u64, apart: i64) {
        while self.seen.len() >= KEPT
            || self.seen.front().is_some_and(|(t, _)| t_ns.saturating_sub(*t) > KEPT_NS)
        {
            self.seen.pop_front();
        }
        self.seen.push_back((t_ns, apart));
    }

    /// An expiry more; `within_ns` is how long the interrupt had gone on, where that is known.
    fn read(&mut self, t_ns: u64, apart: i64, within_ns: Option<u64>) -> i64 {
        let (Some(least), Some((last_ns, _))) = (self.least(), self.last()) else {
            self.add(t_ns, apart);
            return apart;
        };
        let slewed = t_ns.saturating_sub(last_ns).saturating_mul(SLEW_PER_MILLION) / 1_000_000;
        let most = STEP_MIN_NS.saturating_add(i64::try_from(slewed).unwrap_or(i64::MAX));
        let change = apart.saturating_sub(least);
        let at_once = within_ns.is_some_and(|ns| ns < change.unsigned_abs() / 2);
        if change < most.saturating_neg() || change > most && at_once {
            self.seen.clear();
        }
        self.add(t_ns, apart);
        self.least().unwrap_or(apart)
    }
}

impl Clocks {
    /// How far the trace's clock is ahead of that of a timer whose expiry was recorded at `t_ns` and had read `now_ns` on its
    /// own; `within_ns` is how long its interrupt had gone on.
    pub(super) fn read(&mut self, t_ns: u64, now_ns: i64, within_ns: Option<u64>) -> i64 {
        let apart = signed(t_ns).saturating_sub(now_ns);
        if apart.unsigned_abs() < ANOTHER_CLOCK_NS {
            return 0;
        }
        let distance = |c: &Clock| c.last().map_or(u64::MAX, |(_, a)| a.abs_diff(apart));
        let nearest = self.all.iter_mut().min_by_key(|c| distance(c));
        if let Some(clock) = nearest.filter(|c| distance(c) < ANOTHER_CLOCK_NS) {
            return clock.read(t_ns, apart, within_ns);
        }
        if self.all.len() >= CLOCKS_MAX {
            self.all.remove(0);
        }
        let mut clock = Clock::default();
        clock.add(t_ns, apart);
        self.all.push(clock);
        apart
    }

    /// When a timer that is set at `t_ns` to `due_ns` is due on the trace's clock, as far as its clock is known: the nearest.
    pub(super) fn planned(&self, t_ns: u64, due_ns: i64) -> Option<u64> {
        let here = due_ns.max(0).cast_unsigned();
        let on = |c: &Clock| c.least().map(|apart| here.saturating_add_signed(apart));
        let all = self.all.iter().filter_map(on);
        all.chain([here]).filter(|due| due.abs_diff(t_ns) < FAR_NS).min_by_key(|d| d.abs_diff(t_ns))
    }
}

fn signed(t: u64) -> i64 {
    i64::try_from(t).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REAL: i64 = 1_700_000_000_000_000_000;
    const MS: u64 = 1_000_000;

    /// An expiry of CLOCK_REALTIME, `ahead` ns more ahead than at first, recorded `late` ns behind the look at the clock.
    fn read(clocks: &mut Clocks, t: u64, ahead: i64, late: u64) -> i64 {
        let now = signed(t) + REAL + ahead;
        clocks.read(t + late, now, Some(late)) + REAL
    }

    #[test]
    fn steps_of_either_direction_are_taken_over_and_late_records_are_not() {
        let mut clocks = Clocks::default();
        for k in 1..20 {
            assert!(read(&mut clocks, k * 10 * MS, 0, 2000 + k * 10) <= 2200);
        }
        assert!(read(&mut clocks, 200 * MS, 0, 600_000) <= 2200, "a record that was made late");
        for k in 21..30 {
            let apart = read(&mut clocks, k * 10 * MS, 300_000_000, 2000);
            assert_eq!(apart, 2000 - 300_000_000, "set forward");
        }
        for k in 31..40 {
            assert_eq!(read(&mut clocks, k * 10 * MS, -500_000_000, 2000), 2000 + 500_000_000);
        }
        for k in 41..50 {
            let apart = read(&mut clocks, k * 10 * MS, 3_600_000_000_000, 2000);
            assert_eq!(apart, 2000 - 3_600_000_000_000, "by an hour");
        }
    }

    #[test]
    fn a_slewed_clock_is_followed() {
        let mut clocks = Clocks::default();
        for k in 1..2000u64 {
            // 500 parts in a million slower: a minute makes 30 ms.
            let behind = signed(k * 10 * MS) / 2000;
            let apart = read(&mut clocks, k * 10 * MS, -behind, 2000);
            assert!(apart.abs_diff(behind + 2000) < 600_000, "{apart} for {behind}");
        }
    }

    #[test]
    fn timers_of_other_clocks_are_due_on_the_traces() {
        let mut clocks = Clocks::default();
        let t = 5_000 * MS;
        assert_eq!(clocks.planned(t, signed(t + 7 * MS)), Some(t + 7 * MS));
        assert_eq!(clocks.planned(t, REAL), None, "its clock was not seen yet");
        assert_eq!(clocks.read(t, signed(t) + REAL, None), -REAL);
        assert_eq!(clocks.planned(t, signed(t + 7 * MS) + REAL), Some(t + 7 * MS));
        // CLOCK_TAI is 37 s ahead of CLOCK_REALTIME.
        let tai = REAL + 37_000_000_000;
        assert_eq!(clocks.read(t, signed(t) + tai, None), -tai);
        assert_eq!(clocks.planned(t, signed(t + 7 * MS) + tai), Some(t + 7 * MS));
    }
}
