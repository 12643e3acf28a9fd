// SPDX-License-Identifier: MIT OR Apache-2.0
//! `suspend`, `clock-step`, `clocksource-changed`: time itself was interrupted.
//!
//! Units: ns. Slewing moves CLOCK_MONOTONIC and CLOCK_REALTIME alike, so
//! their distance changes only by steps and by suspension; CLOCK_BOOTTIME counts the latter.
//! Source: clock_gettime(2), Documentation/core-api/timekeeping.rst.

use tailbound_core::plan::Clock;
use tailbound_core::record::Fact;
use tailbound_core::units::format_ns_i64;
use tailbound_core::{Finding, Impact};
use tailbound_sys::clock;

use super::{Disturbance, Look};
use crate::root::{Found, Root};

/// Readings of two clocks are never simultaneous: changes up to this beyond the time a
/// reading took are not believed.
const FLOOR_NS: i64 = 10_000;
const TRIES: u32 = 8;
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// One clock minus another, and how long it took to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Distance {
    ns: i64,
    unsure_ns: i64,
}

impl Distance {
    fn read(of: i32, from: i32) -> Self {
        let one = || {
            let before = clock::now_ns(from);
            let at = clock::now_ns(of);
            let width = clock::now_ns(from).saturating_sub(before);
            Self { ns: at.saturating_sub(before.saturating_add(width / 2)), unsure_ns: width }
        };
        (1..TRIES).map(|_| one()).fold(one(), |a, b| if b.unsure_ns < a.unsure_ns { b } else { a })
    }

    /// How far it moved since `earlier`, if that is more than the readings can be wrong.
    fn moved(&self, earlier: &Self) -> Option<i64> {
        let by = self.ns.saturating_sub(earlier.ns);
        let unsure = self.unsure_ns.saturating_add(earlier.unsure_ns).saturating_add(FLOOR_NS);
        (by.saturating_abs() > unsure).then_some(by)
    }
}

/// Distances between the clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    slept: Distance,
    wall: Distance,
    tai: Distance,
}

impl Reading {
    fn now() -> Self {
        Self {
            slept: Distance::read(clock::CLOCK_BOOTTIME, clock::CLOCK_MONOTONIC),
            wall: Distance::read(clock::CLOCK_REALTIME, clock::CLOCK_BOOTTIME),
            tai: Distance::read(clock::CLOCK_TAI, clock::CLOCK_BOOTTIME),
        }
    }
}

/// Remembers the clocks of the last look.
pub(crate) struct Clocks {
    last: Reading,
    slept_ns: i64,
    steps: u32,
    largest_step_ns: i64,
    source: Found<String>,
    new_source: Option<String>,
}

impl Clocks {
    pub(crate) fn begin(first: &Look) -> Self {
        Self {
            last: Reading::now(),
            slept_ns: 0,
            steps: 0,
            largest_step_ns: 0,
            source: source(&first.root),
            new_source: None,
        }
    }

    fn see(&mut self, now: Reading, of: Clock) {
        if let Some(by) = now.slept.moved(&self.last.slept).filter(|by| *by > 0) {
            self.slept_ns = self.slept_ns.saturating_add(by);
        }
        let step = match of {
            Clock::Tai => now.tai.moved(&self.last.tai),
            _ => now.wall.moved(&self.last.wall),
        };
        if let Some(by) = step {
            self.steps = self.steps.saturating_add(1);
            if by.saturating_abs() > self.largest_step_ns.saturating_abs() {
                self.largest_step_ns = by;
            }
        }
        self.last = now;
    }

    fn findings(&self, of: Clock) -> Vec<Finding> {
        let mut out = Vec::new();
        if self.slept_ns > 0 {
            out.push(Finding::listed(
                "suspend",
                Impact::Unfit,
                format!("the machine was suspended for {}", format_ns_i64(self.slept_ns)),
            ));
        }
        if self.steps > 0 {
            let on_stepped = matches!(of, Clock::Realtime | Clock::Tai);
            let name = if of == Clock::Tai { "CLOCK_TAI" } else { "CLOCK_REALTIME" };
            let (impact, meaning) = if on_stepped {
                (
                    Impact::Unfit,
                    "The schedule runs on this clock: a step forward makes activations late by its size, one backward holds them back.",
                )
            } else {
                (
                    Impact::Notice,
                    "The schedule runs on another clock and did not move; times of day in logs did.",
                )
            };
            out.push(
                Finding::listed(
                    "clock-step",
                    impact,
                    format!(
                        "{name} was stepped {} during the run, by up to {}",
                        if self.steps == 1 {
                            "once".to_owned()
                        } else {
                            format!("{} times", self.steps)
                        },
                        format_ns_i64(self.largest_step_ns)
                    ),
                )
                .meaning(meaning),
            );
        }
        if let (Some(new), Ok(old)) = (&self.new_source, &self.source) {
            // The same counter, a second or so after boot: its frequency was measured again.
            let refined = old == "tsc-early" && new == "tsc";
            let (impact, meaning, remedy) = if refined {
                (
                    Impact::Notice,
                    "Soon after boot the kernel measures the frequency of the same counter more exactly: times before and after differ by parts per million.",
                    "Begin a few seconds after boot.",
                )
            } else {
                (
                    Impact::Unfit,
                    "The kernel found its clock unstable, or somebody changed it: times before and after were read from different clocks.",
                    "Read the kernel log for the reason, settle on one clocksource, and repeat the run.",
                )
            };
            let title =
                format!("the kernel changed its clocksource from {old} to {new} during the run");
            out.push(
                Finding::new("clocksource-changed", impact, title).meaning(meaning).remedy(remedy),
            );
        }
        out
    }
}

fn source(root: &Root) -> Found<String> {
    root.read_trimmed(SOURCE)
}

impl Disturbance for Clocks {
    fn look(&mut self, look: &Look) -> Vec<Finding> {
        self.see(Reading::now(), look.plan.clock);
        if let (Ok(now), Ok(old)) = (source(&look.root), &self.source)
            && now != *old
        {
            self.new_source = Some(now);
        }
        self.findings(look.plan.clock)
    }

    fn watched(&self) -> Vec<(&'static str, Fact)> {
        let source = self.source.clone().map_or_else(Fact::from, |_| Fact::of("watched"));
        vec![
            ("suspend", Fact::of("watched: CLOCK_BOOTTIME against CLOCK_MONOTONIC")),
            (
                "clock-step",
                Fact::of("watched: CLOCK_REALTIME and CLOCK_TAI against CLOCK_BOOTTIME"),
            ),
            ("clocksource-changed", source),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(slept: i64, wall: i64, tai: i64) -> Reading {
        let at = |ns| Distance { ns, unsure_ns: 100 };
        Reading { slept: at(slept), wall: at(wall), tai: at(tai) }
    }

    fn after(moves: &[Reading], of: Clock) -> Vec<(String, Impact)> {
        let mut clocks = Clocks {
            last: reading(5, 1_000_000, 37_000_000),
            slept_ns: 0,
            steps: 0,
            largest_step_ns: 0,
            source: Ok("tsc".to_owned()),
            new_source: None,
        };
        moves.iter().for_each(|m| clocks.see(*m, of));
        clocks.findings(of).into_iter().map(|f| (f.id, f.impact)).collect()
    }

    #[test]
    fn a_suspension_is_no_step_and_a_step_no_suspension() {
        let slept = reading(3_000_000_005, 1_000_000, 37_000_000);
        assert_eq!(after(&[slept], Clock::Realtime), [("suspend".to_owned(), Impact::Unfit)]);
        let stepped = reading(5, 501_000_000, 537_000_000);
        for (of, impact) in [
            (Clock::Monotonic, Impact::Notice),
            (Clock::Boottime, Impact::Notice),
            (Clock::Realtime, Impact::Unfit),
            (Clock::Tai, Impact::Unfit),
        ] {
            assert_eq!(after(&[stepped, stepped], of), [("clock-step".to_owned(), impact)]);
        }
    }

    #[test]
    fn a_leap_second_moves_realtime_and_not_tai() {
        let leap = reading(5, 1_000_000 - 1_000_000_000, 37_000_000);
        assert_eq!(after(&[leap], Clock::Tai), []);
        assert_eq!(after(&[leap], Clock::Realtime).len(), 1);
    }

    #[test]
    fn the_uncertainty_of_readings_is_no_event() {
        let jitter = reading(5_000, 995_000, 37_004_000);
        assert_eq!(after(&[jitter, reading(5, 1_000_000, 37_000_000)], Clock::Realtime), []);
        let mut slow = reading(2_000_005, 1_000_000, 37_000_000);
        slow.slept.unsure_ns = 3_000_000;
        assert_eq!(after(&[slow], Clock::Realtime), []);
    }

    #[test]
    fn the_real_clocks_stand_still_against_each_other() {
        let first = Reading::now();
        let spins = (0..100_000).fold(0u64, |a, b| a ^ std::hint::black_box(b));
        let second = Reading::now();
        assert_eq!(second.slept.moved(&first.slept), None, "{spins}");
    }
}
