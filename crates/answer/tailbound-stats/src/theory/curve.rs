// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interference curves: the most that one vector's interrupts take of any window, by the window's length.
//!
//! Units: ns.
//! A window may begin within an execution, so an execution counts whole as soon as the window has a part of it: between
//! the window's first and last execution lies at least the time from the end of the first to the begin of the last. That is
//! never less than what the window has, by at most the parts of two executions.
//! Executions are in the order of their begins. One within another (an interrupt taken in the soft
//! interrupts of the same vector) ends earlier than the outer one: the latest end so far stands for all before.

use tailbound_core::order;
use tailbound_core::theory::{CurveStep, Execution, InterruptRecord, Vector};

/// The greatest number of executions, and the greatest sum of their times, that any window of `within_ns` has a part
/// of. Two pointers: each execution is added once and taken off once.
#[must_use]
pub fn greatest(executions: &[Execution], within_ns: i64) -> (u64, i64) {
    let ends = ends(executions);
    let (mut most, mut sum_most) = (0, 0);
    let (mut n, mut sum, mut last) = (0u64, 0i64, 0);
    for (first, one) in executions.iter().enumerate() {
        let until = ends.get(first).map_or(i64::MAX, |end| end.saturating_add(within_ns));
        while let Some(next) = executions.get(last).filter(|e| e.at_ns <= until) {
            n += 1;
            sum = sum.saturating_add(next.ns);
            last += 1;
        }
        (most, sum_most) = (most.max(n), sum_most.max(sum));
        n = n.saturating_sub(1);
        sum = sum.saturating_sub(one.ns);
    }
    (most, sum_most)
}

/// Ascending: the latest end of this execution and of all before it.
fn ends(executions: &[Execution]) -> Vec<i64> {
    let latest = executions.iter().scan(i64::MIN, |latest, e| {
        *latest = (*latest).max(e.end_ns);
        Some(*latest)
    });
    latest.collect()
}

/// All steps of [`greatest`] for windows of at most `to_ns`.
#[must_use]
pub fn steps(executions: &[Execution], to_ns: i64) -> Vec<CurveStep> {
    let mut all = Vec::new();
    for (first, end) in ends(executions).into_iter().enumerate() {
        let (mut n, mut sum_ns) = (0, 0i64);
        let until = end.saturating_add(to_ns);
        for e in executions.iter().skip(first).take_while(|e| e.at_ns <= until) {
            n += 1;
            sum_ns = sum_ns.saturating_add(e.ns);
            all.push(CurveStep { within_ns: e.at_ns.saturating_sub(end).max(0), n, sum_ns });
        }
        // Steps are few; what lies below them is let go as it comes.
        if all.len() > 1 << 16 {
            all = upper(all);
        }
    }
    upper(all)
}

/// The steps that are above all steps of shorter windows.
fn upper(mut all: Vec<CurveStep>) -> Vec<CurveStep> {
    order::by_key(&mut all, |s| s.within_ns);
    let mut kept: Vec<CurveStep> = Vec::new();
    for step in all {
        let before = kept.last().copied().unwrap_or(CurveStep { within_ns: -1, n: 0, sum_ns: 0 });
        if step.n <= before.n && step.sum_ns <= before.sum_ns {
            continue;
        }
        let step =
            CurveStep { n: step.n.max(before.n), sum_ns: step.sum_ns.max(before.sum_ns), ..step };
        if step.within_ns == before.within_ns {
            kept.pop();
        }
        kept.push(step);
    }
    kept
}

/// The step that holds for windows of `within_ns`.
#[must_use]
pub fn at(curve: &[CurveStep], within_ns: i64) -> CurveStep {
    let above = curve.partition_point(|s| s.within_ns <= within_ns);
    above.checked_sub(1).and_then(|at| curve.get(at)).copied().unwrap_or_default()
}

/// One vector, with its curve for windows of at most `to_ns`.
#[must_use]
pub(super) fn interrupt(vector: &Vector, to_ns: i64) -> InterruptRecord {
    let all = &vector.executions;
    let apart = all.windows(2).filter_map(|pair| match pair {
        [a, b] => Some(b.at_ns.saturating_sub(a.at_ns)),
        _ => None,
    });
    InterruptRecord {
        vector: vector.name.clone(),
        n: all.len() as u64,
        longest_ns: all.iter().map(|e| e.ns).max().unwrap_or(0),
        nested_ns: all
            .iter()
            .map(|e| e.end_ns.saturating_sub(e.at_ns).saturating_sub(e.ns))
            .max()
            .unwrap_or(0),
        apart_ns: apart.min(),
        curve: steps(all, to_ns),
    }
}
