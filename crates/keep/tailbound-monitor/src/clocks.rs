// SPDX-License-Identifier: MIT OR Apache-2.0
//! Three clocks at once: what the machine slept, and how the time of the day was changed meanwhile.
//!
//! Units: ns. Windows are measured by CLOCK_MONOTONIC: it stands still during a suspend, and is never set.
//! Source: clock_gettime(2).

use tailbound_sys::clock;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clocks {
    pub(crate) monotonic_ns: i64,
    boottime_ns: i64,
    pub(crate) realtime_ns: i64,
}

/// Between two readings are some hundred ns: less than this is no suspend.
const SAME_NS: i64 = 1_000_000;

impl Clocks {
    pub(crate) fn now() -> Self {
        Self {
            monotonic_ns: clock::now_ns(clock::CLOCK_MONOTONIC),
            boottime_ns: clock::now_ns(clock::CLOCK_BOOTTIME),
            realtime_ns: clock::now_ns(clock::CLOCK_REALTIME),
        }
    }

    #[cfg(test)]
    pub(crate) fn of(monotonic_ns: i64, boottime_ns: i64, realtime_ns: i64) -> Self {
        Self { monotonic_ns, boottime_ns, realtime_ns }
    }

    /// What goes on in a suspend.
    pub(crate) fn boottime_ns(&self) -> i64 {
        self.boottime_ns
    }

    /// What the machine slept since `earlier`.
    pub(crate) fn suspended_ns(&self, earlier: &Self) -> i64 {
        let passed = self.boottime_ns.saturating_sub(earlier.boottime_ns);
        let awake = self.monotonic_ns.saturating_sub(earlier.monotonic_ns);
        let slept = passed.saturating_sub(awake);
        if slept < SAME_NS { 0 } else { slept }
    }

    /// By how much the time of the day went another way than the time that passed.
    pub(crate) fn shift_ns(&self, earlier: &Self) -> i64 {
        let passed = self.boottime_ns.saturating_sub(earlier.boottime_ns);
        self.realtime_ns.saturating_sub(earlier.realtime_ns).saturating_sub(passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspend_and_a_step_are_told_apart() {
        let earlier = Clocks { monotonic_ns: 10, boottime_ns: 20, realtime_ns: 1_000 };
        let after = |awake: i64, slept: i64, step: i64| Clocks {
            monotonic_ns: 10 + awake,
            boottime_ns: 20 + awake + slept,
            realtime_ns: 1_000 + awake + slept + step,
        };
        let slept = after(5_000_000_000, 9_000_000_000, 0);
        assert_eq!((slept.suspended_ns(&earlier), slept.shift_ns(&earlier)), (9_000_000_000, 0));
        let set_back = after(5_000_000_000, 300, -3_600_000_000_000);
        assert_eq!(set_back.suspended_ns(&earlier), 0);
        assert_eq!(set_back.shift_ns(&earlier), -3_600_000_000_000);
    }
}
