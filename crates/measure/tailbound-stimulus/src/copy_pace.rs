// SPDX-License-Identifier: MIT OR Apache-2.0
//! When a measurement that goes on is copied, so that a kill leaves what was measured.
//!
//! Units: ns of CLOCK_MONOTONIC.

/// The first copy comes so long after the begin.
const FIRST_NS: i64 = 1_000_000_000;
/// From one copy to the next, at most: each comes after twice as long as the one before.
const MOST_NS: i64 = 60_000_000_000;

/// When the next copy is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopyPace {
    next_ns: i64,
    pause_ns: i64,
}

impl CopyPace {
    /// Of a measurement that begins now.
    pub(crate) const fn begin(now_ns: i64) -> Self {
        Self { next_ns: now_ns.saturating_add(FIRST_NS), pause_ns: FIRST_NS }
    }

    pub(crate) const fn is_due(&self, now_ns: i64) -> bool {
        now_ns >= self.next_ns
    }

    /// One was taken.
    pub(crate) fn taken(&mut self, now_ns: i64) {
        self.pause_ns = self.pause_ns.saturating_mul(2).min(MOST_NS);
        self.next_ns = now_ns.saturating_add(self.pause_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_costs_a_second_at_first_and_a_minute_at_most() {
        let mut pace = CopyPace::begin(5);
        let mut taken = Vec::new();
        for second in 0..400 {
            let now_ns = 5 + second * 1_000_000_000;
            if pace.is_due(now_ns) {
                pace.taken(now_ns);
                taken.push(second);
            }
        }
        assert_eq!(taken, [1, 3, 7, 15, 31, 63, 123, 183, 243, 303, 363]);
    }
}
