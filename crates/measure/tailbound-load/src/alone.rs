// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads beside whatever else goes on: until their time is over, they end, or a signal comes.
//!
//! Not here: what is printed of it (the caller).

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tailbound_core::number::Real as _;
use tailbound_core::units::grouped;
use tailbound_sys::signal::Signals;

use crate::loads::{LoadEnd, LoadSample, Loads};
use crate::phase::PhaseChange;

/// From one look at the loads to the next, at most.
const LOOK: Duration = Duration::from_secs(1);
/// From one word about their rates to the next.
const SAY_EVERY: Duration = Duration::from_secs(2);

/// What a caller is told meanwhile, with the seconds since the begin.
#[derive(Debug)]
pub enum LoadEvent<'a> {
    /// A phase begins or pauses.
    Phase(f64, &'a PhaseChange),
    /// How much a load does.
    Rate(f64, &'a LoadSample),
}

impl LoadEvent<'_> {
    /// A line about it.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Phase(s, change) => {
                let what = if change.began { "begins" } else { "pauses" };
                format!("{s:>6.0} s  {} {what}", change.spec)
            }
            Self::Rate(s, sample) => {
                let (name, rate, unit) = (&sample.name, sample.rate(), sample.unit);
                format!("{s:>6.0} s  {name:<12} {rate:>14.0} {unit}/s")
            }
        }
    }
}

/// Loads that were stopped, and how long they ran.
#[derive(Debug)]
pub struct LoadTotals {
    ends: Vec<LoadEnd>,
    s: f64,
}

impl Loads {
    /// Lets them run for `length`, or without one until a signal comes, and stops them.
    pub fn run_alone(
        mut self,
        length: Option<Duration>,
        signals: &Signals,
        tell: &mut dyn FnMut(LoadEvent<'_>),
    ) -> LoadTotals {
        let begun = Instant::now();
        let mut shown = Instant::now();
        loop {
            let left = length.map_or(LOOK, |l| l.saturating_sub(begun.elapsed()));
            let t_ns = i64::try_from(begun.elapsed().as_nanos()).unwrap_or(i64::MAX);
            for change in self.keep_phases(t_ns, i64::MAX) {
                tell(LoadEvent::Phase(begun.elapsed().as_secs_f64(), &change));
            }
            let change =
                self.next_change_ns(t_ns).map_or(i64::MAX, |at| (at - t_ns) / 1_000_000 + 1);
            let wait =
                i64::try_from(left.as_millis()).unwrap_or(i64::MAX).min(change).clamp(1, 1000);
            let wait = i32::try_from(wait).unwrap_or(1000);
            if signals.wait(wait).is_some()
                || length.is_some_and(|l| begun.elapsed() >= l)
                || !self.any_running()
            {
                break;
            }
            let samples = self.poll();
            if shown.elapsed() >= SAY_EVERY {
                shown = Instant::now();
                let s = begun.elapsed().as_secs_f64();
                samples.iter().for_each(|sample| tell(LoadEvent::Rate(s, sample)));
            }
        }
        let s = begun.elapsed().as_secs_f64();
        LoadTotals { ends: self.stop(), s }
    }
}

impl LoadTotals {
    /// Did one of them fail?
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.ends.iter().any(|e| e.failure.is_some())
    }

    /// A line each, and one more for loads of a finite length.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut out = Vec::new();
        for e in &self.ends {
            let rate = e.total.real() / self.s.max(1e-9);
            if let Some(ns) = e.elapsed_ns {
                // As rt-tests' hackbench says it, for a finite number of messages.
                out.push(format!("Time: {}.{:03}", ns / 1_000_000_000, ns / 1_000_000 % 1000));
            }
            let failure = e.failure.as_ref().map(|f| format!("  FAILED: {f}")).unwrap_or_default();
            out.push(format!(
                "{:<12} {} {} in {:.1} s, {rate:.0} a second{failure}",
                e.name,
                grouped(e.total),
                e.unit,
                self.s
            ));
        }
        out
    }

    /// For scripts.
    #[must_use]
    pub fn json(&self) -> Value {
        let row = |e: &LoadEnd| json!({"name": e.name, "total": e.total, "unit": e.unit, "seconds": self.s, "failure": e.failure});
        Value::Array(self.ends.iter().map(row).collect())
    }
}
