// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blame` of a file that trace-cmd recorded.
//!
//! Not here: who made it late there (`tailbound_trace::blame`), what is said in the end (`blame`).

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::Path;

use serde_json::json;
use tailbound_files::read::ReadProgress as _;
use tailbound_host::Root;
use tailbound_sys::given;
use tailbound_sys::signal::Signals;
use tailbound_trace::blame::{BlameSelection, Ground, RecordedBlame, TraceExtent, WatchFilter};
use tailbound_trace::dat::{self, Info, TraceFile};

use super::blame_answer::{LateWakeups, above_ns};
use crate::cli_blame::BlameArgs;
use crate::input;
use crate::reading::Reading;
use crate::say::Failure;

/// `path`, if it is a file of trace-cmd.
pub(crate) fn open(path: &Path) -> Result<Option<File>, Failure> {
    // What cannot be opened here is told by who reads it as a run.
    let Ok(mut file) = given::open(path) else { return Ok(None) };
    let mut start = Vec::new();
    let read = file.by_ref().take(16).read_to_end(&mut start).and_then(|_| file.rewind());
    Ok((read.is_ok() && dat::is_trace_file(&start)).then_some(file))
}

/// Who made the wake-ups of its threads late.
pub(crate) fn answer(args: &BlameArgs, path: &Path, file: File) -> Result<LateWakeups, Failure> {
    let failed = |e: &dyn std::fmt::Display| Failure::usage(format!("{}: {e}", path.display()));
    let trace = TraceFile::open(file).map_err(|e| failed(&e))?;
    let wanted = BlameSelection {
        realtime: !args.all && args.process.comm.is_empty(),
        above_ns: above_ns(args)?,
        most: args.keep,
    };
    let watched = match (args.process.comm.is_empty(), args.all) {
        (false, _) => WatchFilter::Named(args.process.comm.clone()),
        (true, true) => WatchFilter::All,
        (true, false) => WatchFilter::Realtime,
    };
    let ground = Ground { virtual_machine: hypervisor(trace.info()), ..Ground::default() };
    let signals = Signals::block_and_open().map_err(Failure::cannot)?;
    let name = input::name(path);
    let mut progress = Reading::new(Some(&signals));
    progress.begins(&name, Some(trace.info().bytes));
    let mut told =
        RecordedBlame::of(trace, watched, wanted, ground, &mut |bytes| progress.at(bytes))
            .map_err(|e| failed(&e))?;
    drop(progress);
    let records = std::mem::take(&mut told.found.records);
    let (trace, origin) = (Some(for_scripts(&told)), Some(told.origin()));
    Ok(LateWakeups { name, records, found: Some(told.found), notes: told.notes, trace, origin })
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
        tailbound_host::is_virtual_machine(&tailbound_host::inventory(&root))
    } else {
        None
    }
}

fn for_scripts(told: &RecordedBlame) -> serde_json::Value {
    let (info, end) = (&told.info, &told.end);
    json!({
        "version": info.version,
        "clock": info.clock.to_string(),
        "system": info.uname,
        "recorder": info.recorder,
        "cpus": info.cpus,
        "buffers": info.buffers,
        "bytes": info.bytes,
        "records": end.records,
        "understood": told.found.events,
        "lost": told.lost(),
        "lost_at": end.holes,
        "damaged": end.damaged,
        "whole": told.extent == TraceExtent::Whole,
    })
}
