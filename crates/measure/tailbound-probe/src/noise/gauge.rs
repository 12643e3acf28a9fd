// SPDX-License-Identifier: MIT OR Apache-2.0
//! The counter against the clock: its frequency, and by how much that may be wrong.
//!
//! Context: SETUP, COLD. Units: Hz, ticks, ns of CLOCK_MONOTONIC_RAW.
//! The frequency that a run is made with is measured for 50 ms before it; over the whole run it
//! is measured again, and that figure is reported.

use tailbound_core::number::Whole as _;
use tailbound_core::record::FigureRecord;
use tailbound_core::{Finding, Impact};
use tailbound_host::Root;
use tailbound_rt::ticks::Scale;
use tailbound_sys::counter::{self, Pair};

use crate::error::ProbeError;

const CALIBRATION_NS: i64 = 50_000_000;
const TRIES: u32 = 200;
/// The two measurements of the frequency may differ by this much more than their uncertainties.
const DRIFT: f64 = 100e-6;

/// Does the CPU show that the kernel was entered?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KernelEntries {
    /// In a register.
    Reported,
    Hidden,
}

impl KernelEntries {
    fn here() -> Self {
        if counter::reports_entries() { Self::Reported } else { Self::Hidden }
    }
}

/// A counter whose frequency is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gauge {
    from: Pair,
    hz: f64,
    wrong_hz: f64,
    pub(super) entries: KernelEntries,
}

impl Gauge {
    /// Measures for 50 ms.
    ///
    /// # Errors
    /// The counter stands still or goes backwards.
    pub(super) fn take() -> Result<Self, ProbeError> {
        let from = counter::pair(TRIES);
        let mut to = counter::pair(TRIES);
        while to.ns.saturating_sub(from.ns) < CALIBRATION_NS {
            to = counter::pair(TRIES);
        }
        let (hz, wrong_hz) = counter::frequency(&from, &to)?;
        Ok(Self { from, hz, wrong_hz, entries: KernelEntries::here() })
    }

    pub(super) fn scale(&self) -> Scale {
        Scale::of_hz(self.hz)
    }

    /// Ticks a second.
    pub(super) fn hz(&self) -> u64 {
        self.hz.whole_u64()
    }

    /// What the counter shows at `at_ns` of clock `id`.
    pub(super) fn at(&self, id: i32, at_ns: i64) -> u64 {
        let now = counter::pair_with(id, 20);
        let apart = at_ns.saturating_sub(now.ns);
        let ticks = self.scale().ticks(apart.saturating_abs());
        if apart < 0 { now.ticks.wrapping_sub(ticks) } else { now.ticks.wrapping_add(ticks) }
    }

    /// The frequency over the whole run, and what is to be said of it.
    pub(super) fn end(&self, root: &Root) -> (Vec<FigureRecord>, Vec<Finding>) {
        let mut findings = Vec::new();
        let source = root
            .read_trimmed("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .unwrap_or_default();
        if cfg!(target_arch = "x86_64") && !source.starts_with("tsc") {
            findings.push(Finding::listed(
                "counter-not-trusted",
                Impact::Doubt,
                format!(
                    "the kernel's clocksource is `{source}` and not the TSC, which this probe polls"
                ),
            ));
        }
        let Ok((hz, wrong)) = counter::frequency(&self.from, &counter::pair(TRIES)) else {
            findings.push(Finding::new(
                "counter-stood-still",
                Impact::Unfit,
                "the counter did not advance with the clock",
            ));
            return (Vec::new(), findings);
        };
        if (hz - self.hz).abs() > self.wrong_hz + wrong + DRIFT * hz {
            findings.push(Finding::listed(
                "counter-speed",
                Impact::Unfit,
                format!(
                    "the counter ran at {:.3} MHz before the run and at {:.3} MHz over it",
                    self.hz / 1e6,
                    hz / 1e6
                ),
            ));
        }
        let figure = FigureRecord {
            name: "counter-frequency".to_owned(),
            value: hz / 1e6,
            unit: "MHz".to_owned(),
            low: Some((hz - wrong) / 1e6),
            high: Some((hz + wrong) / 1e6),
            confidence: None,
            note: format!(
                "{} against CLOCK_MONOTONIC_RAW over the run; the run was made with what 50 ms before it gave",
                counter::NAME
            ),
        };
        (vec![figure], findings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_at_a_time_is_where_the_clock_says() {
        let gauge = Gauge::take().unwrap();
        let id = counter::CLOCK_MONOTONIC_RAW;
        let now = counter::pair(TRIES);
        let soon = gauge.at(id, now.ns + 1_000_000);
        let past = gauge.at(id, now.ns - 1_000_000);
        let span = gauge.scale().ns(soon.wrapping_sub(past));
        // The uncertainty of the frequency, of both pairs, and of a preempted one of them.
        assert!((1_000_000..=20_000_000).contains(&span), "{span}");
        assert!(soon > now.ticks && past < now.ticks);
    }
}
