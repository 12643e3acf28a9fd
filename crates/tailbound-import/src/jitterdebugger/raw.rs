// SPDX-License-Identifier: MIT OR Apache-2.0
//! jitterdebugger's samples.raw: every sample with its wake-up time.
//!
//! Context: COLD. Layout: packed little-endian records of 28 bytes, without header: thread
//! index (u32), CLOCK_MONOTONIC time of the wake-up as s (i64) and ns (i64), latency (u64, µs
//! or ns: the file does not say). 32-bit builds have shorter records, which are not read.
//! The unit follows from the records: wake-up time minus latency is the due time, and due
//! times of one thread are equally far apart only in the right unit; with too few records it
//! has to be given. Source: output of jitterdebugger 0.3.1.

use std::collections::BTreeMap;

use tailbound_core::record::SecondRecord;
use tailbound_core::units::{format_ns_i64, grouped};

use crate::draft::Draft;
use crate::error::Fault;
use crate::jitterdebugger::samples::Samples;
use crate::missed;
use crate::read::Options;
use crate::text::THREADS_MAX;

const RECORD: usize = 28;
const SECOND: i64 = 1_000_000_000;

#[derive(Clone, Copy)]
struct Sample {
    thread: u32,
    wake_ns: i64,
    value: u64,
}

fn read(record: &[u8]) -> Option<Sample> {
    let (thread, rest) = record.split_first_chunk::<4>()?;
    let (s, rest) = rest.split_first_chunk::<8>()?;
    let (ns, rest) = rest.split_first_chunk::<8>()?;
    let (value, _) = rest.split_first_chunk::<8>()?;
    let (s, ns) = (i64::from_le_bytes(*s), i64::from_le_bytes(*ns));
    let wake_ns =
        (s >= 0 && (0..SECOND).contains(&ns)).then(|| s.checked_mul(SECOND)?.checked_add(ns))??;
    let thread = u32::from_le_bytes(*thread);
    (thread < 8192).then_some(Sample { thread, wake_ns, value: u64::from_le_bytes(*value) })
}

/// Do the first records have a thread index, a time and a latency in range?
pub(crate) fn looks_like_it(bytes: &[u8]) -> bool {
    bytes.contains(&0)
        && bytes.len() >= RECORD
        && bytes.chunks_exact(RECORD).take(8).all(|r| read(r).is_some_and(|s| s.value < 1 << 40))
}

pub(crate) fn parse(bytes: &[u8], options: &Options) -> Result<Draft, Fault> {
    let mut draft = Draft::new("jitterdebugger", "samples.raw");
    super::always(&mut draft);
    let records = bytes.chunks_exact(RECORD);
    if !records.remainder().is_empty() {
        draft.lose(format!(
            "The last {} bytes are no whole record and were passed over.",
            records.remainder().len()
        ));
        draft.cut_off = true;
    }
    let all = || {
        bytes.chunks_exact(RECORD).enumerate().map(|(i, r)| {
            read(r).ok_or_else(|| {
                Fault::byte(
                    i * RECORD,
                    "not a record of thread index, time and latency: damaged, or written by a 32-bit build",
                )
            })
        })
    };
    let unit_ns = match options.unit_ns.filter(|u| *u > 0) {
        Some(unit) => unit,
        None => {
            let first = |unit| steps(all().filter_map(Result::ok), unit);
            find_unit(&first(1), &first(1000))?
        }
    };
    // Options are given in µs, and due times cut to µs are no finer.
    draft.interval_ns = at_quarter(&steps(all().filter_map(Result::ok), unit_ns), 2)
        .map(|step| step.saturating_add(500) / 1000 * 1000)
        .filter(|i| *i > 0);
    draft.lose(format!(
        "The unit is not in the file; wake-up times and latencies agree with {unit_ns} ns."
    ));
    let mut threads: BTreeMap<u32, Thread> = BTreeMap::new();
    let mut epoch = None;
    for (i, sample) in all().enumerate() {
        let sample = sample?;
        if threads.len() >= THREADS_MAX && !threads.contains_key(&sample.thread) {
            return Err(Fault::byte(i * RECORD, format!("more than {THREADS_MAX} threads")));
        }
        let error_ns = i64::try_from(sample.value)
            .ok()
            .and_then(|v| v.checked_mul(i64::try_from(unit_ns).ok()?))
            .ok_or_else(|| {
                Fault::byte(i * RECORD + 20, "the latency is not a time within 292 years")
            })?;
        let due_ns = sample.wake_ns.saturating_sub(error_ns);
        let epoch = *epoch.get_or_insert(due_ns);
        threads
            .entry(sample.thread)
            .or_insert_with(|| Thread::new(sample.thread))
            .add(due_ns.saturating_sub(epoch), error_ns);
    }
    draft.cut_values(unit_ns);
    finish(&mut draft, threads, unit_ns, options)?;
    Ok(draft)
}

/// How far apart the due times of each thread are in `unit`, in ascending order.
fn steps(samples: impl Iterator<Item = Sample>, unit: u64) -> Vec<i64> {
    let unit = i64::try_from(unit).unwrap_or(i64::MAX);
    let mut last: BTreeMap<u32, i64> = BTreeMap::new();
    let mut out = Vec::new();
    for s in samples.take(20_000) {
        let late = i64::try_from(s.value).unwrap_or(i64::MAX).saturating_mul(unit);
        let due = s.wake_ns.saturating_sub(late);
        out.extend(last.insert(s.thread, due).map(|before| due.saturating_sub(before)));
    }
    out.sort_unstable();
    out
}

fn at_quarter(sorted: &[i64], quarter: usize) -> Option<i64> {
    sorted.get(sorted.len() * quarter / 4).copied()
}

/// The unit in which the due times of a thread are most regular.
fn find_unit(ns: &[i64], us: &[i64]) -> Result<u64, Fault> {
    let spread = |list: &[i64]| Some(at_quarter(list, 3)?.saturating_sub(at_quarter(list, 1)?));
    match (spread(ns), spread(us)) {
        (Some(a), Some(b)) if ns.len() >= 16 && b < a => Ok(1000),
        (Some(a), Some(b)) if ns.len() >= 16 && a < b => Ok(1),
        _ => Err(Fault::file(
            "the unit cannot be told from the records: give it (jitterdebugger counts µs unless run with -N)",
        )),
    }
}

struct Thread {
    samples: Samples,
    open: Option<SecondRecord>,
    closed: Vec<SecondRecord>,
    back: u64,
    first_ns: i64,
    last_ns: i64,
}

impl Thread {
    fn new(thread: u32) -> Self {
        Self {
            samples: Samples::new(thread),
            open: None,
            closed: Vec::new(),
            back: 0,
            first_ns: i64::MAX,
            last_ns: i64::MIN,
        }
    }

    fn add(&mut self, due_ns: i64, error_ns: i64) {
        let activation = self.samples.n();
        self.samples.add(error_ns);
        self.back += u64::from(due_ns < self.last_ns);
        self.first_ns = self.first_ns.min(due_ns);
        self.last_ns = self.last_ns.max(due_ns);
        let second = u64::try_from(due_ns.max(0) / SECOND).unwrap_or(0);
        let thread = self.samples.thread();
        match &mut self.open {
            Some(s) if s.second >= second => {
                s.n += 1;
                s.sum_ns = s.sum_ns.saturating_add(error_ns);
                s.min_ns = s.min_ns.min(error_ns);
                if error_ns > s.max_ns {
                    (s.max_ns, s.argmax) = (error_ns, activation);
                }
            }
            open => {
                let fresh = SecondRecord {
                    thread,
                    second,
                    n: 1,
                    max_ns: error_ns,
                    argmax: activation,
                    min_ns: error_ns,
                    sum_ns: error_ns,
                    missed: 0,
                };
                self.closed.extend(open.replace(fresh));
            }
        }
    }
}

fn finish(
    draft: &mut Draft,
    threads: BTreeMap<u32, Thread>,
    unit_ns: u64,
    options: &Options,
) -> Result<(), Fault> {
    let (mut back, mut holes) = (0u64, 0u64);
    for (number, t) in threads {
        back += t.back;
        let span = t.last_ns.saturating_sub(t.first_ns).max(0);
        if let Some(interval) = draft.interval_ns {
            draft.duration_ns = draft.duration_ns.max(Some(span.saturating_add(interval)));
            let due = u64::try_from(span.saturating_add(interval / 2) / interval).unwrap_or(0);
            holes = holes.saturating_add(due.saturating_add(1).saturating_sub(t.samples.n()));
        }
        draft.seconds.extend(t.closed);
        draft.seconds.extend(t.open);
        let mut samples = t.samples;
        samples.distribution.resolution_ns = unit_ns;
        let (d, raw) = samples.finish();
        draft.raw.extend(raw);
        draft.thread(number, None, "user", d)?;
    }
    if let Some(interval) = draft.interval_ns {
        draft.lose(format!(
            "The interval is not in the file; due times are {} apart.",
            format_ns_i64(interval)
        ));
    }
    if holes > 0 {
        draft.doubt(
            "source-samples-lost",
            format!("The due times have room for {} samples more than the file holds.", grouped(holes)),
            "jitterdebugger drops samples without a word when its ring is full; they may be the latest.",
            "Measure again with less load on the writer, or with tailbound --raw.",
        );
    }
    if back > 0 {
        draft.doubt(
            "source-inconsistent",
            format!("{} records are older than the one before them.", grouped(back)),
            "Records were lost, mixed or damaged.",
            "Measure again; the tool drops samples silently when its ring is full.",
        );
    }
    options.apply(draft);
    missed::caught_up(draft);
    Ok(())
}
