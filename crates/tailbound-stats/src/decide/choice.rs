// SPDX-License-Identifier: MIT OR Apache-2.0
//! The whole choice between two systems, ready to be shown.
//!
//! Context: COLD. Units: ns, seconds.

use serde::Serialize;

use super::advantage::{self, Advantage};
use super::breakeven::{self, Crossing, Line, Span};
use super::flow::{self, Answer, Answers, Known, Path};
use super::latency::Figure;
use super::side::{Side, WorkCost};

/// Version of the method, part of every answer.
pub const METHOD: &str = "decide/1";
/// Confidence of each interval.
pub const CONFIDENCE: f64 = 0.95;
/// Work items from here on are long: hundreds of milliseconds.
const LONG_NS: f64 = 1e8;

/// One work on both systems.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkChoice {
    /// Its name.
    pub work: String,
    /// Its specification.
    pub spec: String,
    /// On the real-time system.
    pub real: WorkCost,
    /// On the real-fast one.
    pub fast: WorkCost,
    /// Real-fast advantage in elapsed time.
    pub elapsed: Option<Advantage>,
    /// In user mode.
    pub user: Option<Advantage>,
    /// In the kernel.
    pub sys: Option<Advantage>,
    /// Total delays, one a statistic of the latency.
    pub delays: Vec<Delay>,
}

/// Total delay by one statistic of the latency, with one work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Delay {
    /// `mean`, `p99.9`, …, `worst`.
    pub statistic: String,
    /// The real-time system.
    pub real: Line,
    /// The real-fast one.
    pub fast: Line,
    /// Where they are equal.
    pub crossing: Crossing,
}

/// The choice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// [`METHOD`].
    pub method: &'static str,
    /// Of each interval.
    pub confidence: f64,
    /// The real-time system.
    pub real: Side,
    /// The real-fast one.
    pub fast: Side,
    /// Works that both did.
    pub works: Vec<WorkChoice>,
    /// The way through the questions.
    pub path: Path,
    /// What the reader must know, a sentence each.
    pub notes: Vec<String>,
}

/// Makes the choice. `unit_ns` is the length of one's own work item, where it is known: then
/// the question after long items is answered by it.
#[must_use]
pub fn choose(real: Side, fast: Side, mut answers: Answers, unit_ns: Option<f64>) -> Choice {
    let mut notes = Vec::new();
    let mut works = Vec::new();
    for cost in &fast.works {
        match real.works.iter().find(|w| w.spec == cost.spec) {
            Some(other) => works.push(work(other, cost, &real, &fast)),
            None => notes.push(format!("{} did no `{}`: it is left out.", real.name, cost.spec)),
        }
    }
    for cost in real.works.iter().filter(|w| fast.works.iter().all(|o| o.spec != w.spec)) {
        notes.push(format!("{} did no `{}`: it is left out.", fast.name, cost.spec));
    }
    for side in [&real, &fast] {
        if side.latency.is_none() {
            notes.push(format!(
                "{}: no start latency was measured, so that there is no total delay.",
                side.name
            ));
        }
        for w in side.works.iter().filter(|w| w.failed > 0) {
            notes.push(format!("{}: {} of `{}` came to no end.", side.name, w.failed, w.spec));
        }
    }
    if let Some(ns) = unit_ns {
        answers.long_items = by_length(ns);
    }
    let path = flow::walk(&answers);
    Choice { method: METHOD, confidence: CONFIDENCE, real, fast, works, path, notes }
}

/// Is a work item of `ns` a long one?
fn by_length(ns: f64) -> Known {
    let long = if ns >= LONG_NS { Answer::Yes } else { Answer::No };
    let words = tailbound_core::units::format_ns(ns);
    Known::new(long, format!("work items of {words}, as given"))
}

fn work(real: &WorkCost, fast: &WorkCost, on: &Side, off: &Side) -> WorkChoice {
    let compare = |a: Option<super::Sample>, b: Option<super::Sample>| {
        advantage::advantage(&a?, &b?, CONFIDENCE)
    };
    let elapsed = compare(real.real, fast.real);
    let delays = elapsed.as_ref().map_or_else(Vec::new, |a| delays(a, on, off));
    WorkChoice {
        work: fast.work.clone(),
        spec: fast.spec.clone(),
        user: compare(real.user, fast.user),
        sys: compare(real.sys, fast.sys),
        elapsed,
        delays,
        real: real.clone(),
        fast: fast.clone(),
    }
}

fn delays(cost: &Advantage, real: &Side, fast: &Side) -> Vec<Delay> {
    let (Some(on), Some(off)) = (&real.latency, &fast.latency) else { return Vec::new() };
    let factor = Span { value: cost.ratio, low: cost.ratio_low, high: cost.ratio_high };
    let both = |a: &Figure| {
        let b = off.figure(&a.statistic)?;
        let real = Line { latency_ns: span(a)?, factor };
        let fast = Line { latency_ns: span(b)?, factor: Span::exact(1.0) };
        let crossing = breakeven::crossing(&real, &fast);
        Some(Delay { statistic: a.statistic.clone(), real, fast, crossing })
    };
    on.figures.iter().filter_map(both).collect()
}

/// The worst seen is taken as it is: there is no telling how much worse it can be.
fn span(f: &Figure) -> Option<Span> {
    let value = f.ns?;
    if f.statistic == "worst" {
        return Some(Span::exact(value));
    }
    Some(Span { value, low: f.low_ns, high: f.high_ns })
}
