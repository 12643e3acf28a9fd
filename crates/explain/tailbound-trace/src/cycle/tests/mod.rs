// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cycles of made-up traces against what they are known to be.

mod held;
mod parts;
mod sets;
mod story;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{Calls, Cycles, ThreadCycles, Wish};
use crate::blame::Ground;
use crate::event::Entry;
use crate::symbols::Symbols;
use story::Truth;

/// The cycles of `pids` in `entries`, of which those between two times of `holes` are lost.
fn cycles(
    pids: &[i32],
    entries: &[Entry],
    holes: &[(u64, u64)],
    wish: Wish,
) -> BTreeMap<i32, ThreadCycles> {
    let symbols = Arc::new(Symbols::parse("1 t hrtimer_wakeup\n2 t end\n"));
    let calls = Arc::new(Calls::new(story::CALLS));
    let mut cycles = Cycles::new(symbols, calls, Ground::default(), wish);
    for pid in pids {
        cycles.watch(*pid);
    }
    let mut lost = 0;
    for e in entries {
        while holes.get(lost).is_some_and(|(_, to)| *to <= e.t_ns) {
            cycles.lost(e.t_ns);
            lost += 1;
        }
        if !holes.iter().any(|(from, to)| (*from..*to).contains(&e.t_ns)) {
            cycles.entry(e);
        }
    }
    cycles.finish()
}

/// What is wrong with what was found of one thread, where it is known what its cycles were.
fn faults(found: &ThreadCycles, truth: &[Truth], holes: &[(u64, u64)]) -> Vec<String> {
    let mut out = Vec::new();
    let by_end: HashMap<u64, &Truth> = truth.iter().map(|t| (t.end, t)).collect();
    let jobs = &found.cycles.jobs;
    let end = |j: &tailbound_core::cycle::Job| (j.release_ns + j.response_ns).cast_unsigned();
    for job in jobs {
        let release = job.release_ns.cast_unsigned();
        match by_end.get(&end(job)) {
            Some(t) if t.release == release || t.silent && release >= t.release => {}
            other => out.push(format!("{job:?} is {other:?}")),
        }
    }
    // What was left of the cycle before is in that one.
    let mut before = 0;
    let mut all = 0;
    for job in jobs {
        all += end(job).saturating_sub(before.max(job.release_ns.cast_unsigned())).cast_signed();
        before = end(job);
    }
    let total = found.cycles.total_ns();
    // Of the first one it is not known what the cycle before it was.
    let first = jobs.first().map_or(0, |j| j.wakeup_ns);
    if total > all || holes.is_empty() && total < all - first {
        out.push(format!("causes sum to {total}, cycles to {all}"));
    }
    let (Some(first), Some(last)) = (jobs.first().map(end), jobs.last().map(end)) else {
        out.push("no cycle".to_owned());
        return out;
    };
    let found: std::collections::HashSet<u64> = jobs.iter().map(end).collect();
    for t in truth.iter().filter(|t| (first..=last).contains(&t.end) && !found.contains(&t.end)) {
        // What came in or right beside a hole may be left out, and is never made up.
        let near = holes
            .iter()
            .any(|(from, to)| t.release < *to + 60_000_000 && t.end + 60_000_000 > *from);
        if !near {
            out.push(format!("{t:?} was not found"));
        }
    }
    out
}
