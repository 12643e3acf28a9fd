// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blame` of a file that trace-cmd recorded.
//!
//! Units: ns on the trace's clock. One thread reads and decodes, another follows: both
//! take about as long.
//! Not here: the layout of the file (`tailbound_trace::dat`), what is said in the end (`blame`).

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};

use serde_json::json;
use tailbound_core::units::grouped;
use tailbound_host::Root;
use tailbound_sys::given;
use tailbound_sys::signal::Signals;
use tailbound_trace::EventDecoder;
use tailbound_trace::blame::{BlameSelection, BlameSummary, DueTimes, Follow, Ground, WatchFilter};
use tailbound_trace::dat::{self, DatError, Info, MergeItem, ReadEnd, TraceFile};
use tailbound_trace::event::{Entry, WANTED};

use super::blame::{Answer, above, virtual_machine};
use crate::cli_blame::BlameArgs;
use crate::input;
use crate::reading::Reading;
use crate::say::Failure;

/// Events that go from one thread to the other at once, and how many such batches may wait.
const BATCH: usize = 4096;
const BATCHES: usize = 8;

/// `path`, if it is a file of trace-cmd.
pub(crate) fn open(path: &Path) -> Result<Option<File>, Failure> {
    // What cannot be opened here is told by who reads it as a run.
    let Ok(mut file) = given::open(path) else { return Ok(None) };
    let mut start = Vec::new();
    let read = file.by_ref().take(16).read_to_end(&mut start).and_then(|_| file.rewind());
    Ok((read.is_ok() && dat::is_trace_file(&start)).then_some(file))
}

/// Who made the wake-ups of its threads late.
pub(crate) fn answer(args: &BlameArgs, path: &Path, file: File) -> Result<Answer, Failure> {
    let failed = |e: &DatError| Failure::usage(format!("{}: {e}", path.display()));
    let mut trace = TraceFile::open(file).map_err(|e| failed(&e))?;
    let (symbols, comms) = trace.take_names();
    let info = trace.info().clone();
    let decoder = EventDecoder::new(&info.formats);
    needed(path, &info.formats.iter().map(|f| f.name.as_str()).collect::<Vec<_>>())?;
    let wanted = BlameSelection {
        realtime: !args.all && args.comm.is_empty(),
        above_ns: above(args)?,
        most: args.keep,
    };
    let watched = match (args.comm.is_empty(), args.all) {
        (false, _) => WatchFilter::Named(args.comm.clone()),
        (true, true) => WatchFilter::All,
        (true, false) => WatchFilter::Realtime,
    };
    let mut notes = info.notes.clone();
    if symbols.is_empty() {
        notes.push(
            "the file does not tell the kernel's functions (/proc/kallsyms was hidden from who recorded it): they have no names"
                .to_owned(),
        );
    }
    let ground = Ground { virtual_machine: hypervisor(&info), ..Ground::default() };
    let mut follow = Follow::new(watched, Arc::new(symbols), ground, wanted);
    comms.iter().for_each(|(pid, comm)| follow.name_thread(*pid, comm));
    if !info.clock.is_the_timers() {
        follow.due_times(DueTimes::CarriedOver);
    }
    let signals = Signals::block_and_open().map_err(Failure::cannot)?;
    let name = input::name(path);
    let mut progress = Reading::new(&name, Some(info.bytes), Some(&signals));
    let (end, whole) = both(trace, &decoder, &mut follow, &mut |bytes| progress.at(bytes))
        .map_err(|e| failed(&e))?;
    drop(progress);
    let mut found = follow.finish();
    let seen: Vec<&str> =
        info.formats.iter().filter(|f| end.ids.contains(&f.id)).map(|f| f.name.as_str()).collect();
    if whole && end.damaged == 0 {
        needed(path, &seen)?;
    }
    notes.extend(end.notes.iter().cloned());
    notes.extend(told(&info, &end, &decoder, &seen, whole));
    let records = std::mem::take(&mut found.records);
    let trace = Some(for_scripts(&info, &end, &found, whole));
    Ok(Answer { name, records, found: Some(found), notes, trace, origin: Some(origin(&info)) })
}

/// Where the events come from.
fn origin(info: &Info) -> String {
    let cpus = info.cpus.map_or_else(String::new, |n| format!(", {n} CPUs"));
    let system = info.uname.as_deref().map_or_else(String::new, |u| format!(", {u}"));
    format!("A file of trace-cmd (version {}){cpus}{system}; clock: {}.", info.version, info.clock)
}

/// Nothing can be said without these.
fn needed(path: &Path, names: &[&str]) -> Result<(), Failure> {
    let missing: Vec<String> = WANTED
        .iter()
        .filter(|w| w.needed && !names.contains(&w.name))
        .map(|w| format!("{}:{}", w.system, w.name))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{}: it has no {}, without which no wake-up can be followed. Record with `{}`",
        path.display(),
        missing.join(" and no "),
        dat::RECORD
    )))
}

/// Does a hypervisor lie beneath the machine of the trace? Known where it is this machine.
fn hypervisor(info: &Info) -> Option<bool> {
    let root = Root::real();
    let word = |path: &str| root.text(path).ok().map(|t| t.trim().to_owned());
    let this = format!(
        "Linux {} {} {}",
        word("/proc/sys/kernel/hostname")?,
        word("/proc/sys/kernel/osrelease")?,
        std::env::consts::ARCH
    );
    if info.uname.as_deref() == Some(this.as_str()) {
        virtual_machine(&tailbound_host::inventory(&root))
    } else {
        None
    }
}

/// What goes from the reader to the follower.
#[derive(Default)]
struct Batch {
    entries: Vec<Entry>,
    holes: Vec<u64>,
    bytes: u64,
}

/// Reads and follows at the same time; `false`: `go_on` ended it before the end.
fn both(
    trace: TraceFile<File>,
    decoder: &EventDecoder,
    follow: &mut Follow,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(ReadEnd, bool), DatError> {
    std::thread::scope(|scope| {
        let (send, batches) = mpsc::sync_channel(BATCHES);
        let (back, empty) = mpsc::sync_channel(BATCHES * 2);
        let reader = scope.spawn(move || read(trace, decoder, &send, &empty));
        let mut whole = true;
        // The reader ends by itself once nobody takes its batches.
        for mut batch in batches {
            take(&mut batch, follow);
            whole = go_on(batch.bytes);
            if !whole {
                break;
            }
            batch.entries.clear();
            drop(back.try_send(batch.entries));
        }
        match reader.join() {
            Ok(end) => Ok((end?, whole)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn take(batch: &mut Batch, follow: &mut Follow) {
    batch.holes.drain(..).for_each(|t_ns| follow.lost(t_ns));
    batch.entries.iter().for_each(|e| follow.entry(e));
}

fn read(
    trace: TraceFile<File>,
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

/// What a reader must know of the trace.
fn told(
    info: &Info,
    end: &ReadEnd,
    decoder: &EventDecoder,
    seen: &[&str],
    whole: bool,
) -> Vec<String> {
    let mut out = Vec::new();
    if !whole {
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
    let x86 = info.uname.as_deref().is_none_or(|u| u.ends_with("86_64") || u.ends_with("86"));
    // What has a description was recorded, if it happened.
    let recorded: Vec<&str> = info.formats.iter().map(|f| f.name.as_str()).collect();
    let lacks = dat::lacking(&recorded, x86);
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

fn for_scripts(info: &Info, end: &ReadEnd, found: &BlameSummary, whole: bool) -> serde_json::Value {
    json!({
        "version": info.version,
        "clock": info.clock.to_string(),
        "system": info.uname,
        "recorder": info.recorder,
        "cpus": info.cpus,
        "buffers": info.buffers,
        "bytes": info.bytes,
        "records": end.records,
        "understood": found.events,
        "lost": lost(info, end),
        "lost_at": end.holes,
        "damaged": end.damaged,
        "whole": whole,
    })
}
