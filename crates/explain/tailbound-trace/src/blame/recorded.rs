// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who made wake-ups late in a file that trace-cmd recorded.
//!
//! Units: ns on the trace's clock. One thread reads and decodes, another follows: both
//! take about as long.
//! Not here: the layout of the file (`crate::dat`), the rules (`follow`).

use std::io::{Read, Seek};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};

use serde::Serialize;
use tailbound_core::units::grouped;

use super::{BlameSelection, BlameSummary, DueTimes, Follow, Ground, InterruptEnds, WatchFilter};
use crate::dat::{self, DatError, Info, MergeItem, Processors, ReadEnd, TraceFile};
use crate::event::{Entry, EventDecoder, WANTED};

/// Events that point to a function of the kernel whose name is told.
const OF_FUNCTIONS: [&str; 5] = [
    "workqueue_execute_start",
    "csd_function_entry",
    "ipi_send_cpu",
    "ipi_send_cpumask",
    "nmi_handler",
];
/// Events that go from one thread to the other at once, and how many such batches may wait.
const BATCH: usize = 4096;
const BATCHES: usize = 8;
/// How many emptied ones may wait to be filled again.
const EMPTIED: usize = 16;

/// Why nothing can be said of a file.
#[derive(Debug, thiserror::Error)]
pub enum RecordedError {
    /// It cannot be read.
    #[error(transparent)]
    File(#[from] DatError),
    /// Events without which nothing can be said are not in it.
    #[error("it has no {}, without which no wake-up can be followed. Record with `{}`", .missing.join(" and no "), dat::RECORD)]
    Lacking {
        /// Which, `SYSTEM:NAME`.
        missing: Vec<String>,
    },
}

/// What a file told.
#[derive(Debug)]
pub struct RecordedBlame {
    /// Who made its threads late.
    pub found: BlameSummary,
    /// What a reader must know.
    pub notes: Vec<String>,
    /// What the file is.
    pub info: Info,
    /// How its reading ended.
    pub end: ReadEnd,
    /// How much of it was read.
    pub extent: TraceExtent,
}

/// What a file is and how much of it was read: for scripts.
#[derive(Clone, Debug, Serialize)]
pub struct RecordedFacts {
    version: u32,
    clock: String,
    system: Option<String>,
    recorder: Option<String>,
    cpus: Option<u32>,
    buffers: Vec<String>,
    bytes: u64,
    records: u64,
    understood: u64,
    lost: u64,
    lost_at: u64,
    damaged: u64,
    whole: bool,
}

/// How much of a file the figures are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceExtent {
    /// All of it.
    Whole,
    /// The reading was ended before its end.
    Begin,
}

impl RecordedBlame {
    /// Reads and follows `trace` as far as `go_on`, which is given the bytes so far, says; `ground` has what is
    /// known of the machine it was recorded on.
    ///
    /// # Errors
    /// [`RecordedError`].
    pub fn of<R: Read + Seek + Send>(
        mut trace: TraceFile<R>,
        watched: WatchFilter,
        wanted: BlameSelection,
        ground: Ground,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Self, RecordedError> {
        let (symbols, comms) = trace.take_names();
        let info = trace.info().clone();
        let decoder = EventDecoder::new(&info.formats);
        let described: Vec<&str> = info.formats.iter().map(|f| f.name.as_str()).collect();
        needed(&described)?;
        let processors = processors(&info);
        let interrupts = InterruptEnds::of_described(&described, processors, info.cpus);
        let mut notes = info.notes.clone();
        let is_nameless = symbols.is_empty();
        let mut follow = Follow::new(watched, Arc::new(symbols), ground, wanted);
        comms.iter().for_each(|(pid, comm)| follow.name_thread(*pid, comm));
        if !info.clock.is_the_timers() {
            follow.due_times(DueTimes::CarriedOver);
        }
        let mut follower = Follower { follow, interrupts };
        let (end, extent) = both(trace, &decoder, &mut follower, go_on)?;
        let Follower { follow, mut interrupts } = follower;
        let mut found = follow.finish();
        let seen: Vec<&str> = info
            .formats
            .iter()
            .filter(|f| end.ids.contains(&f.id))
            .map(|f| f.name.as_str())
            .collect();
        // A recorder that keeps those names alone that its events need has none where they need none.
        if is_nameless && seen.iter().any(|name| OF_FUNCTIONS.contains(name)) {
            notes.push(
                "the file does not tell the kernel's functions (/proc/kallsyms was hidden from who recorded it): they have no names"
                    .to_owned(),
            );
        }
        if extent == TraceExtent::Whole && end.damaged == 0 {
            needed(&seen)?;
        }
        interrupts.recorded(&seen, processors);
        interrupts.soften(&mut found);
        notes.extend(interrupts.note().map(str::to_owned));
        notes.extend(end.notes.iter().cloned());
        notes.extend(told(&info, &end, &decoder, &seen, extent));
        Ok(Self { found, notes, info, end, extent })
    }

    /// Where the events come from, in a sentence.
    #[must_use]
    pub fn origin(&self) -> String {
        let info = &self.info;
        let cpus = info.cpus.map_or_else(String::new, |n| format!(", {n} CPUs"));
        let system = info.uname.as_deref().map_or_else(String::new, |u| format!(", {u}"));
        format!(
            "A file of trace-cmd (version {}){cpus}{system}; clock: {}.",
            info.version, info.clock
        )
    }

    /// The same for scripts.
    #[must_use]
    pub fn facts(&self) -> RecordedFacts {
        let (info, end) = (&self.info, &self.end);
        RecordedFacts {
            version: info.version,
            clock: info.clock.to_string(),
            system: info.uname.clone(),
            recorder: info.recorder.clone(),
            cpus: info.cpus,
            buffers: info.buffers.clone(),
            bytes: info.bytes,
            records: end.records,
            understood: self.found.events,
            lost: self.lost(),
            lost_at: end.holes,
            damaged: end.damaged,
            whole: self.extent == TraceExtent::Whole,
        }
    }

    /// Lost events.
    #[must_use]
    pub fn lost(&self) -> u64 {
        lost(&self.info, &self.end)
    }
}

/// Nothing can be said without these.
fn needed(names: &[&str]) -> Result<(), RecordedError> {
    let missing: Vec<String> = WANTED
        .iter()
        .filter(|w| w.needed && !names.contains(&w.name))
        .map(|w| format!("{}:{}", w.system, w.name))
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(RecordedError::Lacking { missing }) }
}

/// What goes from the reader to the follower.
#[derive(Default)]
struct Batch {
    entries: Vec<Entry>,
    holes: Vec<u64>,
    bytes: u64,
}

/// What follows the events.
struct Follower {
    follow: Follow,
    interrupts: InterruptEnds,
}

impl Follower {
    fn take(&mut self, batch: &mut Batch) {
        batch.holes.drain(..).for_each(|t_ns| self.follow.lost(t_ns));
        batch.entries.iter().for_each(|e| self.interrupts.entry(e, &mut self.follow));
    }
}

/// Reads and follows at the same time, as long as `go_on` says so.
fn both<R: Read + Seek + Send>(
    trace: TraceFile<R>,
    decoder: &EventDecoder,
    follower: &mut Follower,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(ReadEnd, TraceExtent), DatError> {
    std::thread::scope(|scope| {
        let (send, batches) = mpsc::sync_channel(BATCHES);
        let (back, empty) = mpsc::sync_channel(EMPTIED);
        let reader = scope.spawn(move || read(trace, decoder, &send, &empty));
        let mut extent = TraceExtent::Whole;
        // The reader ends by itself once nobody takes its batches.
        for mut batch in batches {
            follower.take(&mut batch);
            if !go_on(batch.bytes) {
                extent = TraceExtent::Begin;
                break;
            }
            batch.entries.clear();
            drop(back.try_send(batch.entries));
        }
        match reader.join() {
            Ok(end) => Ok((end?, extent)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn read<R: Read + Seek>(
    trace: TraceFile<R>,
    decoder: &EventDecoder,
    send: &SyncSender<Batch>,
    empty: &Receiver<Vec<Entry>>,
) -> Result<ReadEnd, DatError> {
    let mut batch = Batch::default();
    let end = trace.read(decoder, &mut |seen| {
        match seen {
            MergeItem::Entry(e) => batch.entries.push(*e),
            MergeItem::Lost(t_ns) => batch.holes.push(t_ns),
            MergeItem::Bytes(bytes) => batch.bytes = bytes,
        }
        if batch.entries.len() < BATCH {
            return true;
        }
        let entries = empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
        let next = Batch { entries, holes: Vec::new(), bytes: batch.bytes };
        send.send(std::mem::replace(&mut batch, next)).is_ok()
    })?;
    drop(send.send(batch));
    Ok(end)
}

/// Those of the machine that was recorded.
fn processors(info: &Info) -> Processors {
    let x86 = info.uname.as_deref().is_none_or(|u| u.ends_with("86_64") || u.ends_with("86"));
    if x86 { Processors::X86 } else { Processors::Other }
}

/// What a reader must know of the trace.
fn told(
    info: &Info,
    end: &ReadEnd,
    decoder: &EventDecoder,
    seen: &[&str],
    extent: TraceExtent,
) -> Vec<String> {
    let mut out = Vec::new();
    if extent == TraceExtent::Begin {
        out.push(
            "it was ended before the whole trace was read: the rest is not in these figures"
                .to_owned(),
        );
    }
    let timers = seen.contains(&"hrtimer_expire_entry") && seen.contains(&"hrtimer_start");
    if !info.clock.is_the_timers() && timers {
        out.push(format!(
            "the trace's clock is `{}` and that of timers is `mono`: when a timer was due is carried over from the kernel's own look at the clock at its expiry, and the time from there to the record of it is left out (record with -C mono)",
            info.clock
        ));
    }
    for lacking in decoder.lacking() {
        out.push(format!("{lacking}: the event is not used"));
    }
    // What has a description was recorded, if it happened.
    let recorded: Vec<&str> = info.formats.iter().map(|f| f.name.as_str()).collect();
    let lacks = dat::lacking(&recorded, processors(info));
    for lack in &lacks {
        out.push(format!("the trace has no {}: {}", lack.events, lack.lost));
    }
    if lacks.is_empty() && !timers {
        out.push(
            "no timer expired in the trace, or none was recorded: lateness counts from the wake-up"
                .to_owned(),
        );
    }
    if !lacks.is_empty() {
        out.push(format!("all that is understood is recorded with `{}`", dat::RECORD));
    }
    let lost = lost(info, end);
    if lost > 0 || end.holes > 0 {
        let places = grouped(end.holes);
        out.push(match lost {
            0 => format!("events were lost at {places} places, and the file does not say how many"),
            n => format!("{} events were lost, at {places} places that the file tells", grouped(n)),
        });
    }
    if end.damaged > 1 {
        out.push(format!(
            "{} pages or records are damaged and were left out",
            grouped(end.damaged)
        ));
    }
    if end.twice > 0 {
        out.push(format!(
            "{} events were in two of the buffers, and count once",
            grouped(end.twice)
        ));
    }
    out
}

/// Lost events: the pages and the kernel's counters tell the same ones, and neither all.
fn lost(info: &Info, end: &ReadEnd) -> u64 {
    info.lost.max(end.lost)
}
