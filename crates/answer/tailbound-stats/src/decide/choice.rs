// SPDX-License-Identifier: MIT OR Apache-2.0
//! The whole choice between two systems, ready to be shown.
//!
//! Units: ns, seconds.

use serde::Serialize;
use tailbound_core::units;

use super::advantage::{self, Advantage};
use super::breakeven::{self, Crossing, Line, Span};
use super::flow::{self, Advice, AnswerEvidence, Answers, FlowAnswer, Path};
use super::latency::Figure;
use super::side::{BenchmarkCost, Side};

/// Version of the method, part of every answer.
pub const METHOD: &str = "decide/1";
/// Confidence of each interval.
pub const CONFIDENCE: f64 = 0.95;
/// Work items from here on are long: hundreds of milliseconds.
const LONG_NS: f64 = 1e8;

/// One benchmark on both systems.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenchmarkChoice {
    /// Its name.
    pub work: String,
    /// Its specification.
    pub spec: String,
    /// On the real-time system.
    pub real: BenchmarkCost,
    /// On the real-fast one.
    pub fast: BenchmarkCost,
    /// Real-fast advantage in elapsed time.
    pub elapsed: Option<Advantage>,
    /// In user mode.
    pub user: Option<Advantage>,
    /// In the kernel.
    pub sys: Option<Advantage>,
    /// Total delays, one per statistic of the latency.
    pub delays: Vec<Delay>,
}

/// Total delay by one statistic of the latency, with one benchmark.
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
    /// Benchmarks that both ran.
    #[serde(rename = "works")]
    pub benchmarks: Vec<BenchmarkChoice>,
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
    let mut benchmarks = Vec::new();
    for cost in &fast.benchmarks {
        match real.benchmarks.iter().find(|w| w.spec == cost.spec) {
            Some(other) => benchmarks.push(benchmark(other, cost, &real, &fast)),
            None => notes.push(format!("{} did no `{}`: it is left out.", real.name, cost.spec)),
        }
    }
    for cost in real.benchmarks.iter().filter(|w| fast.benchmarks.iter().all(|o| o.spec != w.spec))
    {
        notes.push(format!("{} did no `{}`: it is left out.", fast.name, cost.spec));
    }
    for side in [&real, &fast] {
        if side.latency.is_none() {
            notes.push(format!(
                "{}: no start latency was measured, so that there is no total delay.",
                side.name
            ));
        }
        for w in side.benchmarks.iter().filter(|w| w.failed > 0) {
            notes.push(format!("{}: {} of `{}` failed.", side.name, w.failed, w.spec));
        }
    }
    if let Some(ns) = unit_ns {
        answers.long_items = by_length(ns, &benchmarks);
    }
    let path = flow::walk(&answers);
    notes.extend(deadline(&real, &fast, path.advice));
    Choice { method: METHOD, confidence: CONFIDENCE, real, fast, benchmarks, path, notes }
}

/// What was seen against the deadline, and what that says of the recommendation.
fn deadline(real: &Side, fast: &Side, advice: Advice) -> Vec<String> {
    let mut words = Vec::new();
    let mut never = [false; 2];
    for (side, never) in [real, fast].into_iter().zip(&mut never) {
        let Some((l, d)) = side.latency.as_ref().and_then(|l| Some((l, l.deadline?))) else {
            continue;
        };
        let deadline = units::format_ns_i64(d.ns);
        let n = units::grouped(l.n);
        words.push(match (d.beyond, d.unknown) {
            (0, 0) => {
                *never = true;
                format!("{}: none of {n} activations was later than {deadline}.", side.name)
            }
            (0, u) => format!(
                "{}: {} of {n} activations may have been later than {deadline}.",
                side.name,
                units::grouped(u)
            ),
            (b, _) => format!(
                "{}: {} of {n} activations were later than {deadline}.",
                side.name,
                units::grouped(b)
            ),
        });
    }
    match never {
        [true, true] if advice == Advice::RealTime => words.push(
            "Both kept the deadline in what was measured: measure longer, and under one's own load, before paying for real time.".to_owned(),
        ),
        [false, _] if words.len() == 2 && advice == Advice::RealTime => words.push(
            "The real-time system did not keep the deadline either: see what delays it (`run --observe`) before deciding.".to_owned(),
        ),
        _ => {}
    }
    words
}

/// Is a work item of `ns` a long one? From hundreds of ms on always, as the paper says; below
/// that where the work itself decides with every benchmark that was measured, even by the worst
/// latency and with the least cost that the repetitions leave possible.
fn by_length(ns: f64, benchmarks: &[BenchmarkChoice]) -> AnswerEvidence {
    let length = units::format_ns(ns);
    if ns >= LONG_NS {
        return AnswerEvidence::new(FlowAnswer::Yes, format!("work items of {length}, as given"));
    }
    let worst = |w: &&BenchmarkChoice| w.delays.iter().any(|d| d.statistic == "worst");
    let measured: Vec<&BenchmarkChoice> = benchmarks.iter().filter(worst).collect();
    let sooner: Vec<&str> = measured
        .iter()
        .filter(|w| {
            let mut of_worst = w.delays.iter().filter(|d| d.statistic == "worst");
            of_worst.all(|d| {
                let least = d.real.factor.low.map(|low| d.real.latency_ns.value + ns * low);
                least.is_some_and(|real_ns| d.fast.delay_ns(ns) < real_ns)
            })
        })
        .map(|w| w.work.as_str())
        .collect();
    if measured.is_empty() {
        return AnswerEvidence::new(FlowAnswer::No, format!("work items of {length}, as given"));
    }
    if sooner.len() == measured.len() {
        return AnswerEvidence::new(
            FlowAnswer::Yes,
            format!(
                "{length} are long here: the real-fast system finishes sooner with every benchmark, even by the worst"
            ),
        );
    }
    let exception = match sooner.len() {
        0 => String::new(),
        _ => format!(", except with {}", sooner.join(", ")),
    };
    AnswerEvidence::new(
        FlowAnswer::No,
        format!("at {length} real fast is not shown to be done sooner by the worst{exception}"),
    )
}

fn benchmark(real: &BenchmarkCost, fast: &BenchmarkCost, on: &Side, off: &Side) -> BenchmarkChoice {
    let compare = |a: Option<super::Sample>, b: Option<super::Sample>| {
        advantage::advantage(&a?, &b?, CONFIDENCE)
    };
    let elapsed = compare(real.real, fast.real);
    let delays = elapsed.as_ref().map_or_else(Vec::new, |a| delays(a, on, off));
    BenchmarkChoice {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::Sample;

    fn side(name: &str, worst_ns: f64, benchmarks: [(&str, f64); 2]) -> Side {
        spread(name, worst_ns, benchmarks, 0.001)
    }

    fn spread(name: &str, worst_ns: f64, benchmarks: [(&str, f64); 2], sd: f64) -> Side {
        let figure = Figure {
            statistic: "worst".to_owned(),
            ns: Some(worst_ns),
            low_ns: Some(worst_ns),
            high_ns: None,
            more: None,
        };
        let cost = |(work, mean): (&str, f64)| BenchmarkCost {
            work: work.to_owned(),
            spec: work.to_owned(),
            real_s: Vec::new(),
            user_s: Vec::new(),
            sys_s: Vec::new(),
            real: Some(Sample { n: 3, mean, sd }),
            user: None,
            sys: None,
            failed: 0,
        };
        Side {
            name: name.to_owned(),
            latency: Some(crate::decide::Latency {
                n: 1000,
                intervals: String::new(),
                figures: vec![figure],
                deadline: None,
            }),
            benchmarks: benchmarks.map(cost).to_vec(),
            ..Side::default()
        }
    }

    #[test]
    fn the_length_of_a_work_item_is_judged_by_what_was_measured() {
        // 100 µs of latency gained; 10 % and 100 % of throughput lost: equal at 1 ms and 100 µs.
        let at = |ns| {
            let real = side("rt", 10e3, [("build", 1.1), ("messages", 2.0)]);
            let fast = side("fast", 110e3, [("build", 1.0), ("messages", 1.0)]);
            let choice = choose(real, fast, Answers::default(), Some(ns));
            let step = choice.path.steps.last().cloned().unwrap();
            (step.known.answer, step.known.from)
        };
        assert_eq!(at(50e3).0, FlowAnswer::No);
        let mixed = at(500e3);
        assert!(mixed.0 == FlowAnswer::No && mixed.1.contains("except with messages"), "{mixed:?}");
        let long = at(5e6);
        assert!(long.0 == FlowAnswer::Yes && long.1.contains("every benchmark"), "{long:?}");
        assert_eq!(at(2e8).0, FlowAnswer::Yes);

        let real = spread("rt", 10e3, [("build", 1.1), ("messages", 2.0)], 0.4);
        let fast = spread("fast", 110e3, [("build", 1.0), ("messages", 1.0)], 0.4);
        let choice = choose(real, fast, Answers::default(), Some(5e6));
        let unsure = choice.path.steps.last().map(|s| s.known.answer);
        assert_eq!(
            unsure,
            Some(FlowAnswer::No),
            "three repetitions as scattered as that show nothing"
        );
    }

    #[test]
    fn benchmarks_that_one_side_lacks_are_reported_and_left_out() {
        let real = side("rt", 10e3, [("a", 1.0), ("b", 1.0)]);
        let fast = side("fast", 10e3, [("a", 1.0), ("c", 1.0)]);
        let choice = choose(real, fast, Answers::default(), None);
        assert_eq!(choice.benchmarks.len(), 1);
        assert!(choice.notes.iter().any(|n| n.contains("`b`")));
        assert!(choice.notes.iter().any(|n| n.contains("`c`")));
    }
}
