// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run as a trace that ui.perfetto.dev opens: for each thread its late wake-ups with their phases and
//! causes, and the latest of each second; for each CPU what it did meanwhile; the rates of the loads.
//!
//! Units: ns. Times are those of CLOCK_MONOTONIC where the run holds them, with a
//! snapshot of the other clocks, so that a trace of the same machine lies beside them; otherwise from
//! the first due activation.
//! Not here: the packets (`packets`), the counters alone as JSON (`perfetto`).

mod packets;

use std::collections::BTreeMap;
use tailbound_core::order;

use tailbound_core::Run;
use tailbound_core::blame::BlameRecord;
use tailbound_core::units::format_ns_i64;

use self::packets::{Counts, Note, Slice, Trace, Track};
use crate::{blame, label, worst};

const SECOND_NS: i64 = 1_000_000_000;

/// `run` as a trace.
pub(super) fn bytes(run: &Run) -> Vec<u8> {
    let mut trace = Trace::new(&run.header.id, worst::clocks(run), before_ns(run));
    let root = trace.track(&format!("tailbound {}", run.header.id), None);
    for (thread, name) in threads(run) {
        let group = trace.track(&name, Some(root));
        let records: Vec<&BlameRecord> = run.blames.iter().filter(|r| r.thread == thread).collect();
        let latency = trace.track("latency", Some(group));
        trace.slices(latency, &records.iter().flat_map(|r| latencies(r)).collect::<Vec<_>>());
        exceedances(&mut trace, latency, run, thread);
        if !records.is_empty() {
            let cause = trace.track("cause", Some(group));
            trace.slices(cause, &records.iter().flat_map(|r| causes(r)).collect::<Vec<_>>());
        }
        seconds(&mut trace, group, run, thread);
    }
    cpus(&mut trace, root, &run.blames);
    loads(&mut trace, root, run);
    trace.finish()
}

/// Late wake-ups that are no run's, by the names of their threads, and where one name woke on several CPUs
/// by those too: such are mostly several threads. Times are those of the records.
pub(super) fn of_records(records: &[BlameRecord], name: &str) -> Vec<u8> {
    let mut trace = Trace::new(name, None, 0);
    let root = trace.track(&format!("tailbound {name}"), None);
    let mut groups: BTreeMap<(&str, Option<u32>), Vec<&BlameRecord>> = BTreeMap::new();
    for r in records {
        groups.entry((r.name.as_str(), r.cpu)).or_default().push(r);
    }
    let several = |name: &str| groups.keys().filter(|(n, _)| *n == name).count() > 1;
    for ((name, cpu), own) in &groups {
        let mut own = own.clone();
        order::by_key(&mut own, |r| r.t_ns);
        let group = match cpu.filter(|_| several(name)) {
            Some(cpu) => trace.track(&format!("{name} on CPU {cpu}"), Some(root)),
            None => trace.track(name, Some(root)),
        };
        let latency = trace.track("latency", Some(group));
        trace.slices(latency, &own.iter().flat_map(|r| latencies(r)).collect::<Vec<_>>());
        let cause = trace.track("cause", Some(group));
        trace.slices(cause, &own.iter().flat_map(|r| causes(r)).collect::<Vec<_>>());
    }
    cpus(&mut trace, root, records);
    trace.finish()
}

/// How long before the first due activation the earliest span begins.
fn before_ns(run: &Run) -> i64 {
    let spans = |r: &BlameRecord| {
        r.lanes.iter().flat_map(|l| &l.spans).map(|s| s.from_ns).min().unwrap_or(0).min(0)
    };
    let earliest = run.blames.iter().map(|r| r.t_ns.saturating_add(spans(r))).min().unwrap_or(0);
    earliest.min(0).saturating_neg()
}

/// The threads of which something is known, and their names.
fn threads(run: &Run) -> BTreeMap<u32, String> {
    let mut out: BTreeMap<u32, String> = BTreeMap::new();
    let plain = run.seconds.iter().map(|s| s.thread);
    let all = plain.chain(run.exceedances.iter().map(|e| e.thread));
    for thread in all.chain(run.threads.iter().map(|t| t.thread)) {
        out.entry(thread).or_insert_with(|| label::thread_id(run, thread));
    }
    for r in &run.blames {
        let name = || match r.name.as_str() {
            "" => label::thread_id(run, r.thread),
            name => name.to_owned(),
        };
        out.entry(r.thread).or_insert_with(name);
    }
    out
}

/// A late wake-up, and within it its phases.
fn latencies(r: &BlameRecord) -> Vec<Slice> {
    let (cause, who) = r.culprit();
    let late = format_ns_i64(r.latency_ns);
    let mut notes = vec![
        Note::Number("latency_ns", r.latency_ns),
        Note::Words("culprit", cause.sentence(who)),
        Note::Words("sureness", r.sureness(cause, who).to_string()),
        Note::Words("chain", r.chain.join(" ")),
    ];
    if let Some(cpu) = r.cpu {
        notes.push(Note::Number("cpu", i64::from(cpu)));
    }
    if r.tracing_ns > 0 {
        notes.push(Note::Number("tracing_ns", r.tracing_ns));
    }
    if r.lost {
        notes.push(Note::Words("lost", "events of this time were lost".to_owned()));
    }
    let whole = Slice {
        from_ns: r.t_ns,
        to_ns: r.t_ns.saturating_add(r.latency_ns),
        name: format!("{late} late: {}", cause.sentence(who)),
        notes,
    };
    let phase = |(phase, from_ns, to_ns): (_, i64, i64)| Slice {
        from_ns: r.t_ns.saturating_add(from_ns),
        to_ns: r.t_ns.saturating_add(to_ns).min(whole.to_ns),
        name: format!("{phase}"),
        notes: Vec::new(),
    };
    let phases: Vec<Slice> = blame::phases(r).into_iter().map(phase).collect();
    std::iter::once(whole).chain(phases).collect()
}

/// The parts of a late wake-up.
fn causes(r: &BlameRecord) -> Vec<Slice> {
    let slice = |p: &tailbound_core::blame::BlamePart| {
        let from_ns = r.t_ns.saturating_add(p.from_ns);
        Slice {
            from_ns,
            to_ns: from_ns.saturating_add(p.ns),
            name: p.cause.sentence(&p.who),
            notes: vec![
                Note::Words("cause", p.cause.to_string()),
                Note::Words("who", p.who.clone()),
                Note::Words("phase", p.phase.to_string()),
                Note::Words("sureness", p.sureness.to_string()),
            ],
        }
    };
    r.parts.iter().map(slice).collect()
}

fn exceedances(trace: &mut Trace, track: Track, run: &Run, thread: u32) {
    for e in run.exceedances.iter().filter(|e| e.thread == thread) {
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let notes = [
            Note::Number("late_ns", e.error_ns),
            Note::Number("activation", number(e.activation)),
            Note::Number("missed", number(e.missed)),
        ];
        trace.instant(track, e.t_ns, "exceedance", &notes);
    }
}

fn seconds(trace: &mut Trace, group: Track, run: &Run, thread: u32) {
    let of = || run.seconds.iter().filter(|s| s.thread == thread && s.n > 0);
    let at = |second: u64| i64::try_from(second).unwrap_or(i64::MAX).saturating_mul(SECOND_NS);
    if of().next().is_some() {
        let track = trace.counter("latest of each second", group, Counts::Ns);
        of().for_each(|s| trace.value(track, at(s.second), s.max_ns));
    }
    if of().any(|s| s.missed > 0) {
        let track = trace.counter("missed in each second", group, Counts::Things);
        let missed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        of().for_each(|s| trace.value(track, at(s.second), missed(s.missed)));
    }
}

/// What each CPU did. Where two late wake-ups lie over one another, the first has told of the time of both.
fn cpus(trace: &mut Trace, root: Track, blames: &[BlameRecord]) {
    let mut records: Vec<&BlameRecord> = blames.iter().collect();
    order::by_key(&mut records, |r| r.t_ns);
    let mut all: BTreeMap<u32, (i64, Vec<Slice>)> = BTreeMap::new();
    for (record, lane) in records.iter().flat_map(|r| r.lanes.iter().map(move |l| (r, l))) {
        let (told_ns, slices) = all.entry(lane.cpu).or_insert((i64::MIN, Vec::new()));
        let from = *told_ns;
        for s in &lane.spans {
            let to_ns = record.t_ns.saturating_add(s.to_ns);
            slices.push(Slice {
                from_ns: record.t_ns.saturating_add(s.from_ns).max(from),
                to_ns,
                name: blame::named(&s.activity, &s.who),
                notes: vec![Note::Words("activity", s.activity.to_string())],
            });
            *told_ns = (*told_ns).max(to_ns);
        }
    }
    for (cpu, (_, slices)) in all {
        let track = trace.track(&format!("CPU {cpu}"), Some(root));
        trace.slices(track, &slices);
    }
}

fn loads(trace: &mut Trace, root: Track, run: &Run) {
    let mut tracks: BTreeMap<u32, Track> = BTreeMap::new();
    for l in run.loads.iter().filter(|l| l.span_ns > 0) {
        let track = *tracks.entry(l.load).or_insert_with(|| {
            trace.counter(&format!("load {} ({}/s)", l.name, l.unit), root, Counts::Own)
        });
        let rate = i128::from(l.count) * i128::from(SECOND_NS) / i128::from(l.span_ns);
        let begin = l.t_ns.saturating_sub(l.span_ns);
        trace.value(track, begin, i64::try_from(rate).unwrap_or(i64::MAX));
    }
}
