// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is left of a find when everything is taken away that it does not need.
//!
//! Units: ns; shares from 0 to 1. A step is kept while the latest wake-up stays within a share of the
//! find's; steps are tried until none is kept, the largest first. Every result is exact, so none is tried twice.

use std::collections::HashSet;

use crate::hunt::candidate::{Candidate, Outcome};
use crate::hunt::search::{End, Evaluator};
use crate::hunt::sequence;
use crate::hunt::space::{Space, Values};
use crate::hunt::vary;

/// Values of an interval that are round, the roundest first.
const ROUND_NS: [u64; 5] = [100_000, 10_000, 1_000, 100, 10];
/// Steps that are tried before it is looked which of them holds: as many as fill the cores of most machines.
const AT_ONCE: usize = 4;

/// A step that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What was left.
    pub candidate: Candidate,
    /// Its latest wake-up; none where it could not be run.
    pub latest_ns: Option<i64>,
    /// Was it kept?
    pub kept: bool,
}

/// What is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrunk {
    /// The candidate.
    pub candidate: Candidate,
    /// Its latest wake-up.
    pub latest_ns: i64,
    /// Everything that was tried.
    pub steps: Vec<Step>,
    /// Was it ended before all was tried?
    pub end: End,
}

/// Takes away from `find`, whose latest wake-up is `latest_ns`, what it does not need to stay `within` a share of it.
pub fn shrink(
    find: &Candidate,
    latest_ns: i64,
    within: f64,
    space: &Space,
    evaluator: &mut dyn Evaluator,
) -> Shrunk {
    let mut it = Shrunk { candidate: find.clone(), latest_ns, steps: Vec::new(), end: End::Done };
    let mut tried: HashSet<String> = HashSet::from([find.key()]);
    'smaller: loop {
        let steps: Vec<Candidate> = smaller(&it.candidate, space)
            .into_iter()
            .filter(|step| tried.insert(step.key()))
            .collect();
        for batch in steps.chunks(AT_ONCE) {
            let first = it.steps.len();
            let end = evaluator.evaluate(batch, &mut |outcome: Outcome| {
                let candidate = batch.get(it.steps.len() - first).cloned();
                let latest_ns = outcome.figures().map(|f| f.latest_ns);
                it.steps.extend(candidate.map(|candidate| Step {
                    candidate,
                    latest_ns,
                    kept: false,
                }));
            });
            let holds =
                |step: &&mut Step| step.latest_ns.is_some_and(|ns| stays(ns, latest_ns, within));
            let kept = it.steps.iter_mut().skip(first).find(holds);
            let went_on = kept.is_some();
            if let Some(step) = kept {
                step.kept = true;
                it.candidate.clone_from(&step.candidate);
                it.latest_ns = step.latest_ns.unwrap_or(it.latest_ns);
            }
            if end == End::Early {
                it.end = End::Early;
                return it;
            }
            if went_on {
                // What was not reached yet is tried from what is left now.
                tried = it.steps.iter().map(|step| step.candidate.key()).collect();
                tried.insert(find.key());
                continue 'smaller;
            }
        }
        return it;
    }
}

/// Is it still as late, but for a share of it?
fn stays(ns: i64, of_ns: i64, within: f64) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "latencies are far below 2^52 ns")]
    let (ns, of_ns) = (ns as f64, of_ns as f64);
    ns >= of_ns * (1.0 - within)
}

/// Every candidate that is one step simpler, the largest steps first.
fn smaller(it: &Candidate, space: &Space) -> Vec<Candidate> {
    let mut all = Vec::new();
    for at in 0..it.loads.len() {
        let mut next = it.clone();
        next.loads.remove(at);
        all.push(next);
    }
    if it.seed != 1 {
        all.push(Candidate { seed: 1, ..it.clone() });
    }
    for at in 0..it.loads.len() {
        all.extend(plainer(it, at, space));
    }
    let round = ROUND_NS.iter().take_while(|unit| !it.interval_ns.is_multiple_of(**unit));
    for unit in round {
        let interval_ns = (it.interval_ns + unit / 2) / unit * unit;
        let inside = interval_ns.clamp(space.interval_ns.0, space.interval_ns.1);
        all.push(Candidate { interval_ns: inside, ..it.clone() });
    }
    all
}

/// One load without an option, or with less of it.
fn plainer(it: &Candidate, at: usize, space: &Space) -> Vec<Candidate> {
    let Some(load) = it.loads.get(at) else { return Vec::new() };
    let Some(kind) = space.kinds.iter().find(|k| k.name == load.name) else { return Vec::new() };
    let mut all = Vec::new();
    let with = |options: Vec<(String, String)>| {
        let mut next = it.clone();
        if let Some(load) = next.loads.get_mut(at) {
            load.options = options;
        }
        next
    };
    for parameter in kind.parameters {
        let Some(old) = load.option(parameter.name) else { continue };
        let others = || load.options.iter().filter(|(name, _)| name != parameter.name).cloned();
        all.push(with(others().collect()));
        let less = old.parse().map_or_else(|_| Vec::new(), |calls| sequence::smaller(&calls));
        all.extend(less.into_iter().map(|calls| {
            with(others().chain([(parameter.name.to_owned(), calls.to_string())]).collect())
        }));
        let (Values::Count(least, _) | Values::Kib(least, _) | Values::Us(least, _)) =
            parameter.values
        else {
            continue;
        };
        let Some(n) = vary::number(parameter.values, old) else { continue };
        for less in [least, n / 2, n / 4 * 3] {
            if less >= least && less < n {
                let value = vary::written(parameter.values, less);
                all.push(with(others().chain([(parameter.name.to_owned(), value)]).collect()));
            }
        }
    }
    all
}
