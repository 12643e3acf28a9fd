// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a file that was cut off still tells: each thread's last record as it stood, and the
//! seconds and exceedances that came after it.
//!
//! Units: ns. Counts, extremes and the mean are those of everything in the file. The
//! histogram has what the last record had and the later exceedances; the rest is `unbinned`, so
//! that no figure counts it as good. Records of a thread that ended are left as they are.
//! Not here: whether the file was changed (`trail`, `audit`).

use std::collections::BTreeMap;

use super::audit::is_measured;
use super::trail::{Integrity, of_list};
use crate::Run;
use crate::distribution::Distribution;
use crate::finding::{Finding, Impact};
use crate::number::Real as _;
use crate::record::{End, ExceedanceRecord, SecondRecord, ThreadRecord};
use crate::units::grouped;

const SECOND_NS: i64 = 1_000_000_000;

/// Number of exceedances in the file before the last record of each thread and context.
#[derive(Debug, Default)]
pub(super) struct ExceedanceCounts(BTreeMap<(u32, String), usize>);

impl ExceedanceCounts {
    pub(super) fn know(&mut self, t: &ThreadRecord, exceedances: usize) {
        self.0.insert((t.thread, t.context.as_str().to_owned()), exceedances);
    }
}

/// Of one thread.
#[derive(Default)]
struct Later<'a> {
    seconds: Vec<&'a SecondRecord>,
    exceedances: Vec<(usize, &'a ExceedanceRecord)>,
}

/// A measurement that came to its end in a file that did not: what was killed are benchmarks.
pub(super) fn measured(run: &mut Run, file: Integrity) -> Option<Finding> {
    let mut measured = run.threads.iter().filter(|t| is_measured(t)).peekable();
    let whole = file.judged && !file.ended && measured.peek().is_some();
    if !whole || measured.any(|t| t.ended != "complete") {
        return None;
    }
    let measured_ns = run.header.plan.duration_ns();
    run.end = Some(End { reason: "complete".into(), measured_ns, lines: file.lines });
    Some(Finding::listed(
        "file-cut-after-verdict",
        Impact::Notice,
        "the file was cut off after the measurement and its verdict",
    ))
}

/// Completes the records of threads that were still running; says which are known in part.
pub(super) fn complete(run: &mut Run, known: &ExceedanceCounts) -> Option<Finding> {
    let mut all: BTreeMap<u32, Later<'_>> = BTreeMap::new();
    for s in &run.seconds {
        all.entry(s.thread).or_default().seconds.push(s);
    }
    for (i, e) in run.exceedances.iter().enumerate() {
        all.entry(e.thread).or_default().exceedances.push((i, e));
    }
    let mut told = Vec::new();
    let mut threads = std::mem::take(&mut run.threads);
    for (thread, later) in all {
        let at = match threads.iter().position(|t| t.thread == thread && is_measured(t)) {
            Some(at) => at,
            // Another tool's seconds may be of what the kernel saw.
            None if threads.iter().any(|t| t.thread == thread) => continue,
            None => {
                threads.push(absent(run, thread));
                threads.len().saturating_sub(1)
            }
        };
        let Some(t) = threads.get_mut(at).filter(|t| t.ended == "running") else { continue };
        let before = known.0.get(&(thread, t.context.as_str().to_owned())).copied().unwrap_or(0);
        told.extend(add(t, &later, before));
    }
    run.threads = threads;
    Some(
        of_list("file-partial", &told)?
            .meaning("Counts, extremes and mean are those of everything in the file; shares and percentiles know only what is in the histogram.")
            .remedy("Let a run come to its end, or end it with Ctrl-C."),
    )
}

/// A thread that was cut off before its first record.
fn absent(run: &Run, thread: u32) -> ThreadRecord {
    let plan = &run.header.plan;
    let cpu = match plan.tasks {
        None if plan.event.is_none() => plan.cpus.iter().nth(thread as usize),
        _ => None,
    };
    ThreadRecord {
        thread,
        cpu,
        context: "user".into(),
        ended: "running".into(),
        ..ThreadRecord::default()
    }
}

fn add(t: &mut ThreadRecord, later: &Later<'_>, before: usize) -> Option<String> {
    let held: Vec<&&SecondRecord> = later.seconds.iter().filter(|s| s.n > 0).collect();
    let n = held.iter().fold(0u64, |n, s| n.saturating_add(s.n));
    let missed = held.iter().fold(0u64, |n, s| n.saturating_add(s.missed));
    let seconds_end = held.iter().map(|s| s.second).max().map_or(0, |s| s.saturating_add(1));
    let fresh: Vec<&ExceedanceRecord> =
        later.exceedances.iter().filter(|(i, _)| *i >= before).map(|(_, e)| *e).collect();
    let after_the_seconds = |e: &&&ExceedanceRecord| {
        let due_ns = e.t_ns.saturating_sub(e.error_ns);
        u64::try_from(due_ns / SECOND_NS).is_ok_and(|s| s >= seconds_end)
    };
    // Where no whole second came after the last record, every fresh one is one more.
    let more: Vec<&ExceedanceRecord> = if n > t.wakeup.n {
        fresh.iter().filter(after_the_seconds).copied().collect()
    } else {
        fresh.clone()
    };
    let (had, had_missed) = (t.wakeup.n, t.missed.n);
    let all = n.max(had).saturating_add(more.len() as u64);
    let all_missed = more.iter().fold(missed.max(had_missed), |n, e| n.saturating_add(e.missed));
    if all == had && all_missed == had_missed {
        return None;
    }
    let w = &mut t.wakeup;
    for e in &fresh {
        if binned(w) < all {
            enter(w, e.error_ns);
        }
    }
    let extremes = held.iter().flat_map(|s| [s.min_ns, s.max_ns]);
    for v in extremes.chain(fresh.iter().map(|e| e.error_ns)) {
        w.min_ns = Some(w.min_ns.map_or(v, |m| m.min(v)));
        w.max_ns = Some(w.max_ns.map_or(v, |m| m.max(v)));
    }
    w.n = all;
    w.unbinned = all.saturating_sub(binned(w).saturating_sub(w.unbinned));
    w.unbinned_from_ns = if w.unbinned > 0 { w.min_ns } else { None };
    if all > had {
        w.sums = None;
        let sum = held.iter().fold(0, |sum: i128, s| sum.saturating_add(s.sum_ns.into()));
        let mean = sum.real() / n.real();
        w.mean_ns = (n > 0).then_some(mean);
    }
    let m = &mut t.missed;
    if all_missed > had_missed {
        m.n = all_missed;
        m.unbinned = all_missed.saturating_sub(binned(m).saturating_sub(m.unbinned));
        m.unbinned_from_ns = Some(0);
        // The latest of them is known only where none can have been later than one before.
        m.max_ns = None;
        m.sums = None;
    }
    let lost = t.wakeup.unbinned.saturating_add(t.missed.unbinned);
    (lost > 0).then(|| {
        format!(
            "the histogram of thread {} holds {} of {} activations: the file was cut off after its last full record",
            t.thread,
            grouped(all.saturating_add(all_missed).saturating_sub(lost)),
            grouped(all.saturating_add(all_missed))
        )
    })
}

fn binned(d: &Distribution) -> u64 {
    d.late.total().saturating_add(d.early.total()).saturating_add(d.unbinned)
}

/// One value into its bucket; counts and sums are seen to apart from it.
fn enter(d: &mut Distribution, value_ns: i64) {
    let mut one = Distribution { sums: None, ..Distribution::default() };
    one.add(value_ns);
    d.late.merge(&one.late);
    d.early.merge(&one.early);
    d.over_range = d.over_range.saturating_add(one.over_range);
}
