// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a bound adds up from: the fixed point once more, at the release that has it.
//!
//! Units: ns. The parts adjoin: their sum is the bound.
//! Not here: the bound (`bound`).

use response_time_analysis::demand::{RequestBound as _, step_offsets};
use response_time_analysis::fixed_point;
use response_time_analysis::supply::Dedicated;
use response_time_analysis::time::{Duration, Service};

use super::answer::{Bound, Term, TermKind};
use super::demand::{Demand, successive};
use super::problem::Problem;

/// The bound `found` with its parts; `None`: the steps ran out.
pub(super) fn of(
    problem: &Problem<'_>,
    own: &Demand<'_>,
    higher: &[Demand<'_>],
    once: Service,
    found: Duration,
) -> Option<Bound> {
    let cpu = Dedicated::new();
    for offset in step_offsets(own) {
        let window = fixed_point::search(&cpu, Problem::limit(), |window| {
            let others: Service = higher.iter().map(|d| d.service_needed(window)).sum();
            once + own.service_needed(offset.closed_since_time_zero()) + others
        })
        .ok()?;
        let later = offset.since_time_zero();
        if window >= later && window - later == found {
            let jobs = own.jobs(offset.closed_since_time_zero());
            let terms = parts(problem, higher, FixedPoint { jobs, window, later });
            return Some(Bound { ns: ns(u64::from(found)), terms });
        }
        if later > window {
            // Behind the busy window: its longest response was before.
            return None;
        }
    }
    None
}

struct FixedPoint {
    jobs: u64,
    window: Duration,
    later: Duration,
}

fn parts(problem: &Problem<'_>, higher: &[Demand<'_>], at: FixedPoint) -> Vec<Term> {
    let task = problem.task;
    let jobs = usize::try_from(at.jobs).unwrap_or(usize::MAX);
    let of = |list: &[i64]| successive(list, jobs);
    let stretches = problem.stretches_ns(task).saturating_mul(ns(at.jobs));
    let blocking = of(&task.blocking_ns).saturating_add(stretches);
    let mine = [
        (TermKind::Execution, of(&task.execution_ns)),
        (TermKind::Suspension, of(&task.suspension_ns)),
        (TermKind::Blocking, blocking.saturating_add(problem.stretch_ns)),
        (TermKind::Latency, of(&task.latency_ns).max(problem.section_ns)),
        (TermKind::Unwatched, of(&task.unwatched_ns)),
    ];
    let mut terms: Vec<Term> =
        mine.into_iter().map(|(kind, ns)| Term { kind, jobs: at.jobs, ns }).collect();
    for ((_, other), demand) in problem.higher.iter().zip(higher) {
        let jobs = demand.jobs(at.window);
        let kind = TermKind::Interference(other.name.clone());
        terms.push(Term { kind, jobs, ns: ns(demand.of_jobs(jobs)) });
    }
    terms.push(Term { kind: TermKind::Later, jobs: 0, ns: -ns(u64::from(at.later)) });
    terms.retain(|t| t.ns != 0);
    terms
}

fn ns(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
