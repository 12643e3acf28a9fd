// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records of one run that contradict each other: somebody changed them, or they were never so.
//!
//! Units: ns. Tailbound's recorder counts every wake-up three times: in the
//! histogram, in the sums, and in the record of its second. All three must agree, and with the
//! extremes, the exceedances and the stretches. What another tool's file left out is no
//! contradiction; records written while a thread ran are looked at where they are exact.
//! Not here: lines (`trail`), what a file that was cut off still tells (`partial`), the verdict
//! (`tailbound-stats`).

use std::collections::{BTreeMap, BTreeSet};

use super::trail::{note, of_list};
use crate::distribution::Distribution;
use crate::finding::Finding;
use crate::histogram::{Bucket, Histogram};
use crate::record::{BlockRecord, ExceedanceRecord, RawRecord, SecondRecord, ThreadRecord};
use crate::units::{format_ns_i64, grouped};
use crate::{Context, EndReason, Run};
use tailbound_rt::h2;

/// Every contradiction of a run, one finding for each kind.
pub(super) fn findings(run: &Run) -> Vec<Finding> {
    let (mut counts, mut order) = (Vec::new(), Vec::new());
    for t in &run.threads {
        record(run, t, &mut counts);
    }
    let all = Records::of(run);
    for t in run.threads.iter().filter(|t| is_measured(t)) {
        per_second(run, t, all.seconds.get(&t.thread).map_or(&[][..], Vec::as_slice), &mut counts);
        exceedances(t, all.exceedances.get(&t.thread).map_or(&[][..], Vec::as_slice), &mut counts);
        stretches(t, all.blocks.get(&t.thread).map_or(&[][..], Vec::as_slice), &mut counts);
        raw(t, all.raw.get(&t.thread).map_or(&[][..], Vec::as_slice), &mut counts);
    }
    schedule(run, &mut counts);
    ascending(run, &mut order);
    [
        (
            "file-counts",
            counts,
            "Records of one run contradict each other: one of them was changed.",
        ),
        (
            "file-order",
            order,
            "Records were moved, doubled or taken out after the file was written.",
        ),
        (
            "file-threads",
            threads(run),
            "A thread's own record is missing: what it saw is not in the figures.",
        ),
    ]
    .into_iter()
    .filter_map(|(id, list, meaning)| {
        Some(of_list(id, &list)?.meaning(meaning).remedy("Use the file as the run wrote it."))
    })
    .collect()
}

/// The records of each thread.
#[derive(Default)]
struct Records<'a> {
    seconds: BTreeMap<u32, Vec<&'a SecondRecord>>,
    exceedances: BTreeMap<u32, Vec<&'a ExceedanceRecord>>,
    blocks: BTreeMap<u32, Vec<&'a BlockRecord>>,
    raw: BTreeMap<u32, Vec<&'a RawRecord>>,
}

impl<'a> Records<'a> {
    fn of(run: &'a Run) -> Self {
        let mut all = Self::default();
        run.seconds.iter().for_each(|r| all.seconds.entry(r.thread).or_default().push(r));
        run.exceedances.iter().for_each(|r| all.exceedances.entry(r.thread).or_default().push(r));
        run.blocks.iter().for_each(|r| all.blocks.entry(r.thread).or_default().push(r));
        run.raw.iter().for_each(|r| all.raw.entry(r.thread).or_default().push(r));
        all
    }
}

/// A measured thread's own record, not what the kernel's tracing saw of it.
pub(super) fn is_measured(t: &ThreadRecord) -> bool {
    !matches!(t.context.as_str(), "irq" | "thread" | "osnoise" | "hwlat")
}

fn is_final(t: &ThreadRecord) -> bool {
    t.ended == "complete" || t.ended == "stopped"
}

fn is_ours(run: &Run) -> bool {
    run.header.source.is_none()
}

fn name(t: &ThreadRecord) -> String {
    format!("thread {} ({})", t.thread, t.context.as_str())
}

fn record(run: &Run, t: &ThreadRecord, out: &mut Vec<String>) {
    for (d, what) in [(&t.wakeup, "wake-ups"), (&t.missed, "missed activations")] {
        let mut wrong = Vec::new();
        distribution(d, run, t, &mut wrong);
        let name = name(t);
        out.extend(wrong.into_iter().map(|w| format!("{name}, {what}: {w}")));
    }
}

/// Counts, sums and extremes of one distribution.
fn distribution(d: &Distribution, run: &Run, t: &ThreadRecord, out: &mut Vec<String>) {
    let is_final = is_final(t);
    let binned = d.late.total().saturating_add(d.early.total()).saturating_add(d.unbinned);
    if binned > d.n || is_ours(run) && binned < d.n {
        out.push(format!("the histogram holds {} of {}", grouped(binned), grouped(d.n)));
    }
    if let Some(sums) = &d.sums
        && (sums.n > d.n || is_final && sums.n != d.n)
    {
        out.push(format!("the sums are of {}, the count is {}", grouped(sums.n), grouped(d.n)));
    }
    if d.over_range > d.n {
        out.push(format!("{} of {} are over range", grouped(d.over_range), grouped(d.n)));
    }
    let (Some(min), Some(max)) = (d.min_ns, d.max_ns) else { return };
    if min > max {
        out.push("the earliest is later than the latest".to_owned());
    }
    if let Some(sums) = d.sums.filter(|s| is_final && s.clamped == 0 && s.n == d.n) {
        let n = i128::from(d.n);
        if sums.s1 < n.saturating_mul(min.into()) || sums.s1 > n.saturating_mul(max.into()) {
            out.push("their sum is not between their extremes".to_owned());
        }
    }
    if d.unbinned == 0 && binned == d.n {
        extremes(d, Extremes { min, max }, t, out);
    }
}

/// The least and the greatest value, in ns.
struct Extremes {
    min: i64,
    max: i64,
}

/// The extremes lie in the outermost buckets. A thread that ran on while it was read may have
/// had more extreme ones than its histogram, never less extreme ones.
fn extremes(d: &Distribution, of: Extremes, t: &ThreadRecord, out: &mut Vec<String>) {
    let Extremes { min, max } = of;
    let is_final = is_final(t);
    let step = i64::try_from(d.resolution_ns).unwrap_or(i64::MAX);
    let low = |b: Bucket| b.low_ns.cast_signed();
    let end = |b: Bucket| {
        let end = b.low_ns.saturating_add(b.width_ns);
        if end >= 1 << h2::RANGE_BITS { i64::MAX } else { end.cast_signed() }
    };
    let mut wrong = |what: &str, value: i64, b: Bucket| {
        out.push(format!(
            "the {what} is {}, and the outermost value of the histogram is {}",
            format_ns_i64(value),
            format_ns_i64(low(b))
        ));
    };
    if let Some(top) = d.late.buckets().next_back() {
        let above = is_final && max >= end(top).saturating_add(step);
        if max.saturating_add(step) <= low(top) || above {
            wrong("latest", max, top);
        }
    } else if max >= 0 && is_final {
        wrong("latest", max, Bucket { low_ns: 0, width_ns: 0, count: 0 });
    }
    let (least, furthest) = (d.late.buckets().next(), d.early.buckets().next_back());
    match (furthest, least) {
        (Some(b), _) => {
            let early = min.saturating_neg();
            if early.saturating_add(step) <= low(b)
                || is_final && early >= end(b).saturating_add(step)
            {
                wrong("earliest", min, b);
            }
        }
        (None, Some(b)) => {
            if min >= end(b).saturating_add(step) || is_final && min.saturating_add(step) <= low(b)
            {
                wrong("earliest", min, b);
            }
        }
        (None, None) => {}
    }
}

/// The seconds of a thread add up to the thread.
fn per_second(run: &Run, t: &ThreadRecord, seconds: &[&SecondRecord], out: &mut Vec<String>) {
    for s in seconds.iter().filter(|s| s.n > 0) {
        let n = i128::from(s.n);
        let [low, high] = [s.min_ns, s.max_ns].map(|ns| n.saturating_mul(ns.into()));
        // The recorder's own sum of a second may wrap: only what cannot have is held to it.
        let wraps = low < i64::MIN.into() || high > i64::MAX.into();
        if s.min_ns > s.max_ns || !wraps && !(low..=high).contains(&s.sum_ns.into()) {
            note(out, || format!("{}, second {}: extremes and sum contradict", name(t), s.second));
        }
    }
    if seconds.is_empty() && !is_ours(run) || !is_final(t) {
        return;
    }
    let n = seconds.iter().fold(0u64, |n, s| n.saturating_add(s.n));
    let missed = seconds.iter().fold(0u64, |n, s| n.saturating_add(s.missed));
    let dropped = t.dropped.get("seconds").is_some_and(|n| *n > 0);
    let all = is_ours(run) && !dropped;
    if n > t.wakeup.n || all && n < t.wakeup.n || missed > t.missed.n {
        out.push(format!(
            "{}: its seconds hold {} wake-ups and {} missed activations, its record {} and {}",
            name(t),
            grouped(n),
            grouped(missed),
            grouped(t.wakeup.n),
            grouped(t.missed.n)
        ));
        return;
    }
    let held = || seconds.iter().filter(|s| s.n > 0);
    for (what, of_seconds, of_thread, worse) in [
        ("latest", held().map(|s| s.max_ns).max(), t.wakeup.max_ns, std::cmp::Ordering::Greater),
        ("earliest", held().map(|s| s.min_ns).min(), t.wakeup.min_ns, std::cmp::Ordering::Less),
    ] {
        let (Some(of_seconds), Some(of_thread)) = (of_seconds, of_thread) else { continue };
        let step = i64::try_from(t.wakeup.resolution_ns).unwrap_or(i64::MAX);
        let apart = of_seconds.abs_diff(of_thread).cast_signed() >= step;
        if apart && (all || of_seconds.cmp(&of_thread) == worse) {
            out.push(format!(
                "{}: the {what} of its seconds is {}, of its record {}",
                name(t),
                format_ns_i64(of_seconds),
                format_ns_i64(of_thread)
            ));
        }
    }
}

/// Each exceedance is one of the wake-ups of its thread's histogram.
fn exceedances(t: &ThreadRecord, all: &[&ExceedanceRecord], out: &mut Vec<String>) {
    if !is_final(t) {
        return;
    }
    let mut told = Histogram::new(t.wakeup.late.precision());
    let mut beyond = 0u64;
    for e in all.iter().filter(|e| e.error_ns >= 0) {
        told.add(e.error_ns.unsigned_abs(), 1);
        let is_beyond = t.wakeup.max_ns.is_some_and(|max| e.error_ns > max);
        beyond = beyond.saturating_add(u64::from(is_beyond));
    }
    let more = told.since(&t.wakeup.late).count() as u64;
    if beyond > 0 || more > 0 && t.wakeup.unbinned == 0 {
        out.push(format!(
            "{}: {} exceedances are in no bucket of its histogram or beyond its latest",
            name(t),
            grouped(beyond.max(more))
        ));
    }
}

/// Stretches of the schedule hold no more than their thread.
fn stretches(t: &ThreadRecord, blocks: &[&BlockRecord], out: &mut Vec<String>) {
    for b in blocks {
        let early = b.early.as_ref().map_or(0, |e| e.total());
        if b.late.total().saturating_add(early) != b.n {
            note(out, || {
                let name = name(t);
                format!("{name}, stretch from second {}: histogram and count differ", b.second)
            });
        }
    }
    if !is_final(t) {
        return;
    }
    let n = blocks.iter().fold(0u64, |n, b| n.saturating_add(b.n));
    let due = t.wakeup.n.saturating_add(t.missed.n);
    if n > due {
        out.push(format!(
            "{}: its stretches hold {} activations, its record {}",
            name(t),
            grouped(n),
            grouped(due)
        ));
    }
}

/// Raw samples go on where those before them ended.
fn raw(t: &ThreadRecord, all: &[&RawRecord], out: &mut Vec<String>) {
    let (mut next, mut n) = (0u64, 0u64);
    for r in all {
        if r.from != next {
            note(out, || format!("{}: raw samples go on at {} after {next}", name(t), r.from));
        }
        next = r.from.saturating_add(r.n);
        n = n.saturating_add(r.n);
    }
    if is_final(t) && n > t.wakeup.n {
        out.push(format!("{}: more raw samples than wake-ups", name(t)));
    }
}

/// The measured time is that of the plan, and of what was counted in it.
fn schedule(run: &Run, out: &mut Vec<String>) {
    let (plan, Some(end)) = (&run.header.plan, &run.end) else { return };
    if !is_ours(run) || run.threads.is_empty() || plan.interval_ns <= 0 {
        return;
    }
    let planned = plan.duration_ns();
    if end.measured_ns > planned || end.reason == EndReason::Complete && end.measured_ns != planned
    {
        out.push(format!(
            "the last line measured {}, the plan {}",
            format_ns_i64(end.measured_ns),
            format_ns_i64(planned)
        ));
    }
    if plan.event.is_some() {
        return;
    }
    let due = end.measured_ns.checked_div(plan.interval_ns);
    let due = due.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
    for t in run.threads.iter().filter(|t| t.context == Context::User && is_final(t)) {
        let counted = t.wakeup.n.saturating_add(t.missed.n);
        if counted < due {
            out.push(format!(
                "{}: {} activations fell due in the measured time, and {} are counted",
                name(t),
                grouped(due),
                grouped(counted)
            ));
        }
    }
}

/// Records of one thread stand in the order of their time.
fn ascending(run: &Run, out: &mut Vec<String>) {
    let mut hold = |what: &str, records: &mut dyn Iterator<Item = (u64, u64)>| {
        let mut last = BTreeMap::new();
        for (thread, at) in records {
            if last.insert(thread, at).is_some_and(|before| at <= before) {
                note(out, || {
                    format!("{what} {at} of thread {thread} does not follow the one before it")
                });
            }
        }
    };
    hold("second", &mut run.seconds.iter().map(|s| (u64::from(s.thread), s.second)));
    hold("stretch from second", &mut run.blocks.iter().map(|b| (u64::from(b.thread), b.second)));
    hold("exceedance", &mut run.exceedances.iter().map(|e| (u64::from(e.thread), e.activation)));
}

/// Threads that others speak of have a record, and none of a row is missing.
fn threads(run: &Run) -> Vec<String> {
    if run.end.is_none() {
        return Vec::new();
    }
    let known: BTreeSet<u32> = run.threads.iter().map(|t| t.thread).collect();
    let named: BTreeSet<u32> = (run.seconds.iter().map(|r| r.thread))
        .chain(run.windows.iter().map(|r| r.thread))
        .chain(run.blocks.iter().map(|r| r.thread))
        .chain(run.exceedances.iter().map(|r| r.thread))
        .chain(run.raw.iter().map(|r| r.thread))
        .collect();
    let mut out: Vec<String> = named
        .difference(&known)
        .map(|t| format!("thread {t} has records and none of its own"))
        .collect();
    // Other tools and probes number as they like; of ours the first gap is enough to be told of.
    if is_ours(run)
        && run.header.plan.event.is_none()
        && let Some(gap) = known.iter().zip(0u32..).find_map(|(t, i)| (*t != i).then_some(i))
        && !named.contains(&gap)
    {
        out.push(format!("thread {gap} has no record and later ones do"));
    }
    if run.end.is_some() {
        let ran_on = run.threads.iter().filter(|t| is_measured(t) && t.ended == "running");
        out.extend(ran_on.map(|t| format!("{}: its last record is one from on the way", name(t))));
    }
    out
}
