// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a run shorter, and says what became of each length.
//!
//! Units: ns, counts. What is kept: interval, load, policy, warm-up. A run never gets shorter than
//! [`LOOPS_MIN`] activations or a second, benchmarks keep [`REPEAT_MIN`] repetitions so that they have a
//! deviation, and nothing ever gets longer.

use serde::Serialize;

use crate::number::{Real as _, Whole as _};
use crate::plan::RunConfig;
use crate::units::{exact, format_span, grouped, parse_ns};

/// Activations below which a run is not shortened.
pub const LOOPS_MIN: u64 = 100;
/// Repetitions of a benchmark below which it is not shortened.
pub const REPEAT_MIN: u32 = 3;
const DURATION_MIN_NS: i64 = 1_000_000_000;

/// What became of the words of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Shortened {
    /// Share of the activations that are left; 1 where nothing was shortened.
    pub share: f64,
    /// What was shortened, from what to what.
    pub changes: Vec<String>,
    /// What could not be shortened, and why.
    pub kept: Vec<String>,
}

/// The words at `scale` of their length; `scale` is above 0 and at most 1.
#[must_use]
pub fn scaled(words: &RunConfig, scale: f64) -> (RunConfig, Shortened) {
    let mut out = words.clone();
    let mut shortened = Shortened { share: 1.0, ..Shortened::default() };
    if !(scale > 0.0 && scale < 1.0) {
        return (out, shortened);
    }
    if let Some(loops) = words.loops {
        let less = share_of(loops, scale).max(LOOPS_MIN).min(loops);
        out.loops = Some(less);
        shortened.share = ratio(less, loops);
        change(&mut shortened, "activations", &grouped(loops), &grouped(less));
    }
    if let Some(Ok(ns)) = words.duration.as_deref().map(parse_ns) {
        let less = i64::try_from(share_of(ns.unsigned_abs(), scale)).unwrap_or(ns);
        let less = less.max(DURATION_MIN_NS).min(ns);
        out.duration = Some(exact(less));
        shortened.share = ratio(less.unsigned_abs(), ns.unsigned_abs());
        change(&mut shortened, "duration", &format_span(ns), &format_span(less));
    }
    if let Some(repeat) = words.repeat {
        let less = u32::try_from(share_of(repeat.into(), scale)).unwrap_or(repeat);
        let less = less.max(REPEAT_MIN).min(repeat);
        out.repeat = Some(less);
        change(&mut shortened, "repetitions of benchmarks", &repeat.to_string(), &less.to_string());
    }
    if let Some(benchmarks) = &words.work {
        let benchmarks = benchmarks.iter().map(|one| shorter_benchmark(one, scale, &mut shortened));
        out.work = Some(benchmarks.collect());
    }
    (out, shortened)
}

/// A benchmark with less to do.
fn shorter_benchmark(work: &str, scale: f64, shortened: &mut Shortened) -> String {
    if work.starts_with("cmd:") {
        shortened.kept.push(format!("{work}: what a command does cannot be made less"));
        return work.to_owned();
    }
    let mut out: Vec<String> = Vec::new();
    let mut found = false;
    for part in work.split(',') {
        let amount = part.find("loops=").and_then(|at| part.split_at_checked(at.saturating_add(6)));
        match amount.and_then(|(head, n)| Some((head, n.parse::<u64>().ok()?))) {
            Some((head, loops)) => {
                found = true;
                let less = share_of(loops, scale).max(1).min(loops);
                change(shortened, &format!("amount of {work}"), &grouped(loops), &grouped(less));
                out.push(format!("{head}{less}"));
            }
            None => out.push(part.to_owned()),
        }
    }
    if !found {
        shortened.kept.push(format!("{work}: it has no `loops=` to be made less"));
    }
    out.join(",")
}

fn change(shortened: &mut Shortened, what: &str, from: &str, to: &str) {
    if from != to {
        shortened.changes.push(format!("{what}: {to} of {from}"));
    }
}

fn share_of(n: u64, scale: f64) -> u64 {
    (n.real() * scale).round().whole_u64()
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { part.real() / whole.real() }
}
