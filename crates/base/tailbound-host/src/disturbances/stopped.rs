// SPDX-License-Identifier: MIT OR Apache-2.0
//! `stopped`: the measurement itself was stopped, by Ctrl-Z or SIGSTOP, and let go on.
//!
//! Units: ns. SIGCONT, which ends every such stop, is kept pending: that it is there proves one. It began after
//! the last look, and before the next one was due: that limits how long it was.
//! Not here: a machine that was suspended (`clocks`), a group that was out of quota (`quota`).
//! Source: signal(7).

use tailbound_core::record::Fact;
use tailbound_core::units::format_ns_i64;
use tailbound_core::{Finding, Impact};
use tailbound_sys::{clock, signal};

use super::{Disturbance, Look};

/// Remembers the last look.
pub(crate) struct Stopped {
    last_ns: i64,
    /// The shortest time from one look to the next.
    usual_ns: Option<i64>,
    stops: u32,
    least_ns: i64,
    most_ns: i64,
}

impl Stopped {
    pub(crate) fn begin() -> Self {
        // A stop before the measurement is none of it.
        let _before = signal::was_continued();
        Self::at(clock::now_ns(clock::CLOCK_MONOTONIC))
    }

    fn at(now_ns: i64) -> Self {
        Self { last_ns: now_ns, usual_ns: None, stops: 0, least_ns: 0, most_ns: 0 }
    }

    /// It was not stopped since the last look.
    fn went_on(&mut self, now_ns: i64) {
        let gap = self.gap_ns(now_ns);
        self.usual_ns = Some(self.usual_ns.map_or(gap, |usual| usual.min(gap)));
    }

    /// It was stopped and continued since the last look.
    fn was_stopped(&mut self, now_ns: i64) {
        let gap = self.gap_ns(now_ns);
        self.stops = self.stops.saturating_add(1);
        let least = gap.saturating_sub(self.usual_ns.unwrap_or(gap)).max(0);
        self.least_ns = self.least_ns.saturating_add(least);
        self.most_ns = self.most_ns.saturating_add(gap);
    }

    fn gap_ns(&mut self, now_ns: i64) -> i64 {
        now_ns.saturating_sub(std::mem::replace(&mut self.last_ns, now_ns))
    }

    fn findings(&self) -> Vec<Finding> {
        if self.stops == 0 {
            return Vec::new();
        }
        let times =
            if self.stops == 1 { "once".to_owned() } else { format!("{} times", self.stops) };
        let title = format!(
            "the measurement itself was stopped {times}, for {} to {} in all",
            format_ns_i64(self.least_ns),
            format_ns_i64(self.most_ns)
        );
        let finding = Finding::listed("stopped", Impact::Unfit, title);
        vec![finding]
    }
}

impl Disturbance for Stopped {
    fn look(&mut self, _look: &Look) -> Vec<Finding> {
        let now_ns = clock::now_ns(clock::CLOCK_MONOTONIC);
        if signal::was_continued() {
            self.was_stopped(now_ns)
        } else {
            self.went_on(now_ns)
        }
        self.findings()
    }

    fn watched(&self) -> Vec<(&'static str, Fact)> {
        vec![("stopped", Fact::of("watched: SIGCONT"))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_known_by_its_end_and_a_late_look_is_none() {
        const S: i64 = 1_000_000_000;
        let mut stopped = Stopped::at(0);
        for t in [S, 2 * S, 6 * S] {
            stopped.went_on(t);
        }
        assert_eq!(stopped.findings(), []);
        stopped.was_stopped(9 * S);
        let found = stopped.findings();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].id.as_str(), found[0].impact), ("stopped", Impact::Unfit));
        assert!(
            found[0].title.ends_with("once, for 2.00 s to 3.00 s in all"),
            "{}",
            found[0].title
        );
    }
}
