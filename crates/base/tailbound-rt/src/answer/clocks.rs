// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two clocks compared at each pulse: the run's, and that of the kernel's stamps.
//!
//! Context: HOT. Units: ns. One clock is read between two readings of the other, so that their distance is known with
//! its error. ClockPair that are only slewed keep their distance; where it changes, one of them was set.

/// Beyond the errors of both comparisons, clocks that were not set differ by less than this.
const SLACK_NS: i64 = 1_000;

/// The distance of the two clocks as last seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClockPair {
    last: Option<Distance>,
}

/// How far the other clock is ahead of the run's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distance {
    /// By so much.
    pub ahead_ns: i64,
    /// And wrong by at most this.
    pub error_ns: i64,
}

/// What a comparison came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// Both clocks go on as before.
    Steady(Distance),
    /// One of them was set since the last comparison, or during this one.
    Set,
}

impl ClockPair {
    /// The other clock read `other_ns` between two readings of the run's clock.
    #[inline]
    pub fn compare(&mut self, before_ns: i64, other_ns: i64, after_ns: i64) -> Compared {
        let half_ns = after_ns.wrapping_sub(before_ns).wrapping_div(2);
        let ahead_ns = other_ns.wrapping_sub(before_ns.wrapping_add(half_ns));
        if half_ns < 0 {
            // The run's clock itself was set back.
            self.last = None;
            return Compared::Set;
        }
        let now = Distance { ahead_ns, error_ns: half_ns.wrapping_add(1) };
        let steady = self.last.is_none_or(|last| {
            let may_ns = last.error_ns.saturating_add(now.error_ns).saturating_add(SLACK_NS);
            ahead_ns.abs_diff(last.ahead_ns) <= may_ns.unsigned_abs()
        });
        self.last = Some(now);
        if steady { Compared::Steady(now) } else { Compared::Set }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_is_noticed_once() {
        let mut clocks = ClockPair::default();
        let steady = |ahead_ns, error_ns| Compared::Steady(Distance { ahead_ns, error_ns });
        assert_eq!(clocks.compare(1_000, 500_050, 1_100), steady(499_000, 51));
        assert_eq!(clocks.compare(2_000, 501_060, 2_100), steady(499_010, 51));
        // Read slowly: within its own error.
        assert_eq!(clocks.compare(3_000, 502_050, 23_000), steady(489_050, 10_001));
        assert_eq!(clocks.compare(30_000, 529_050, 30_100), steady(499_000, 51));
        assert_eq!(clocks.compare(40_000, 9_999_999, 40_100), Compared::Set);
        assert_eq!(clocks.compare(50_000, 10_009_999, 50_100), steady(9_959_949, 51));
        assert_eq!(clocks.compare(50_000, 10_009_999, 49_000), Compared::Set);
    }
}
