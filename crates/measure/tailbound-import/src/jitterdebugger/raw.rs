// SPDX-License-Identifier: MIT OR Apache-2.0
//! jitterdebugger's samples.raw: every sample with its wake-up time.
//!
//! Layout: packed little-endian records of 28 bytes, without header: thread
//! index (u32), CLOCK_MONOTONIC time of the wake-up as s (i64) and ns (i64), latency (u64, µs
//! or ns: the file does not say). 32-bit builds have shorter records, which are not read.
//! The unit follows from the records: wake-up time minus latency is the due time, and due
//! times of one thread are equally far apart only in the right unit; with too few records it
//! has to be given. Refused with its place: a time of 0, one that does not move, a latency longer than the machine had been up.
//! Read as a stream: unit and interval come from the first records. Source: output of jitterdebugger 0.3.1.

use std::collections::BTreeMap;

use tailbound_core::units::{format_ns_i64, grouped};

use crate::draft::Draft;
use crate::error::Fault;
use crate::missed;
use crate::raw_column::torn;
use crate::read::Options;
use crate::samples::{KEPT_MAX, Samples};
use crate::stream::{Records, Stream};
use crate::text::THREADS_MAX;

const RECORD: usize = 28;
const SECOND: i64 = 1_000_000_000;

#[derive(Clone, Copy)]
struct Sample {
    thread: u32,
    wake_ns: i64,
    value: u64,
}

fn read(record: &[u8; RECORD]) -> Option<Sample> {
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

/// Do the first records have a thread index, a time that moves and a latency in range?
pub(crate) fn looks_like_it(bytes: &[u8]) -> bool {
    let mut last: BTreeMap<u32, i64> = BTreeMap::new();
    let mut is_one = |record: &[u8; RECORD]| {
        read(record).is_some_and(|s| {
            let moves = last.insert(s.thread, s.wake_ns) != Some(s.wake_ns);
            let since_boot = i64::try_from(s.value).is_ok_and(|value| value <= s.wake_ns);
            s.wake_ns > 0 && moves && since_boot && s.value < 1 << 40
        })
    };
    bytes.contains(&0)
        && bytes.len() >= RECORD
        && bytes.as_chunks().0.iter().take(8).all(&mut is_one)
}

pub(crate) fn parse(stream: &mut Stream<'_>, options: &Options) -> Result<Draft, Fault> {
    let mut draft = Draft::new("jitterdebugger", "samples.raw");
    super::always(&mut draft);
    let mut records = Records::<RECORD>::new();
    let mut all: Option<Threads> = None;
    stream.pieces(
        |feed, out| {
            records.piece(feed, out, |record, place| match read(record) {
                Some(sample) if sample.wake_ns > 0 => Ok(sample),
                Some(_) => Err(Fault::byte(
                    place + 4,
                    "a wake-up at time 0, when the machine began: no record was written there",
                )),
                None => Err(Fault::byte(
                    place,
                    "not a record of thread index, time and latency: damaged, or written by a 32-bit build",
                )),
            })
        },
        |piece| match &mut all {
            Some(all) => all.add(piece),
            None => all.insert(Threads::new(piece, options, &mut draft)?).add(piece),
        },
    )?;
    torn(&mut draft, records.torn, "record");
    let Some(Threads { threads, unit_ns, .. }) = all else { return Ok(draft) };
    draft.cut_values(unit_ns);
    finish(&mut draft, threads, unit_ns, options)?;
    Ok(draft)
}

/// All threads, by their number.
struct Threads {
    threads: Vec<Option<Thread>>,
    known: usize,
    n: u64,
    unit_ns: u64,
    epoch_ns: Option<i64>,
}

impl Threads {
    /// Finds unit and interval from the first piece of the file.
    fn new(first: &[Sample], options: &Options, draft: &mut Draft) -> Result<Self, Fault> {
        let unit_ns = match options.unit_ns.filter(|u| *u > 0) {
            Some(unit) => unit,
            None => find_unit(&steps(first, 1), &steps(first, 1000))?,
        };
        // Options are given in µs, and due times cut to µs are no finer.
        draft.interval_ns = at_quarter(&steps(first, unit_ns), 2)
            .map(|step| step.saturating_add(500) / 1000 * 1000)
            .filter(|i| *i > 0);
        draft.lose(format!(
            "The unit is not in the file; wake-up times and latencies agree with {unit_ns} ns."
        ));
        Ok(Self { threads: Vec::new(), known: 0, n: 0, unit_ns, epoch_ns: None })
    }

    fn add(&mut self, piece: &[Sample]) -> Result<(), Fault> {
        let unit = i64::try_from(self.unit_ns).unwrap_or(i64::MAX);
        for sample in piece {
            let place = self.n * RECORD as u64;
            let error_ns = i64::try_from(sample.value).ok().and_then(|v| v.checked_mul(unit));
            let error_ns = error_ns.ok_or_else(|| {
                Fault::byte(place + 20, "the latency is not a time within 292 years")
            })?;
            if error_ns > sample.wake_ns {
                let why = "the latency is longer than the machine had been up: these are no records of jitterdebugger, or the unit is another";
                return Err(Fault::byte(place + 20, why));
            }
            let due_ns = sample.wake_ns.saturating_sub(error_ns);
            let epoch_ns = *self.epoch_ns.get_or_insert(due_ns);
            let at = sample.thread as usize;
            if self.threads.len() <= at {
                self.threads.resize_with(at + 1, || None);
            }
            let Some(slot) = self.threads.get_mut(at) else { continue };
            if slot.is_none() {
                self.known += 1;
                if self.known > THREADS_MAX {
                    return Err(Fault::byte(place, format!("more than {THREADS_MAX} threads")));
                }
            }
            let thread = slot.get_or_insert_with(|| {
                let mut samples = Samples::new(sample.thread);
                if self.n >= KEPT_MAX {
                    samples.forget();
                }
                Thread::new(samples)
            });
            if thread.woke_ns.replace(sample.wake_ns) == Some(sample.wake_ns) {
                let why = format!(
                    "thread {} woke up at the same ns as before: a time that does not move is none",
                    sample.thread
                );
                return Err(Fault::byte(place + 4, why));
            }
            thread.add(due_ns.saturating_sub(epoch_ns), error_ns);
            self.n += 1;
            if self.n == KEPT_MAX + 1 {
                self.threads.iter_mut().flatten().for_each(|t| t.samples.forget());
            }
        }
        Ok(())
    }
}

/// How far apart the due times of each thread are in `unit`, in ascending order.
fn steps(samples: &[Sample], unit: u64) -> Vec<i64> {
    let unit = i64::try_from(unit).unwrap_or(i64::MAX);
    let mut last: BTreeMap<u32, i64> = BTreeMap::new();
    let mut out = Vec::new();
    for s in samples.iter().take(20_000) {
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
            "the records do not show the unit: give it (jitterdebugger counts µs unless run with -N)",
        )),
    }
}

struct Thread {
    samples: Samples,
    woke_ns: Option<i64>,
    back: u64,
    first_ns: i64,
    last_ns: i64,
}

impl Thread {
    fn new(samples: Samples) -> Self {
        Self { samples, woke_ns: None, back: 0, first_ns: i64::MAX, last_ns: i64::MIN }
    }

    fn add(&mut self, due_ns: i64, error_ns: i64) {
        self.samples.add_due(due_ns, error_ns);
        self.back += u64::from(due_ns < self.last_ns);
        self.first_ns = self.first_ns.min(due_ns);
        self.last_ns = self.last_ns.max(due_ns);
    }
}

fn finish(
    draft: &mut Draft,
    threads: Vec<Option<Thread>>,
    unit_ns: u64,
    options: &Options,
) -> Result<(), Fault> {
    let (mut back, mut holes) = (0u64, 0u64);
    for (number, t) in threads.into_iter().enumerate().filter_map(|(i, t)| Some((i, t?))) {
        back += t.back;
        let span = t.last_ns.saturating_sub(t.first_ns).max(0);
        if let Some(interval) = draft.interval_ns {
            draft.duration_ns = draft.duration_ns.max(Some(span.saturating_add(interval)));
            let due = u64::try_from(span.saturating_add(interval / 2) / interval).unwrap_or(0);
            holes = holes.saturating_add(due.saturating_add(1).saturating_sub(t.samples.n()));
        }
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        draft.recorded(number, None, t.samples.finish(unit_ns)?)?;
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
