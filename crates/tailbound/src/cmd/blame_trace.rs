// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blame` of a trace that another tool recorded: a file of trace-cmd, or a text.
//!
//! Not here: who made it late there (`tailbound_trace::blame`), what is said in the end (`blame`).

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::Path;

use serde_json::json;
use tailbound_core::blame::KernelKind;
use tailbound_files::read::{self, ReadProgress as _, StartedFile};
use tailbound_sys::given;
use tailbound_sys::signal::Signals;
use tailbound_trace::blame::{BlameSelection, Ground, RecordedBlame, WatchFilter};
use tailbound_trace::dat::{self, TraceFile};
use tailbound_trace::text::{self, TextFormat, TextRequest};

use super::blame_answer::{LateWakeups, above_ns};
use crate::cli_blame::BlameArgs;
use crate::input;
use crate::reading::Reading;
use crate::say::Failure;

/// A trace that another tool recorded.
pub(crate) enum ForeignTrace {
    /// A file of trace-cmd.
    Dat(File),
    /// A text.
    Text(TextFormat, StartedFile),
}

/// `path`, if it is a trace.
pub(crate) fn open(path: &Path) -> Result<Option<ForeignTrace>, Failure> {
    // What cannot be opened here is told by who reads it as a run.
    let Ok(mut file) = given::open(path) else { return Ok(None) };
    let mut start = Vec::new();
    let read = file.by_ref().take(16).read_to_end(&mut start).and_then(|_| file.rewind());
    if read.is_err() || dat::is_trace_file(&start) {
        return Ok(read.is_ok().then_some(ForeignTrace::Dat(file)));
    }
    let Ok(file) = read::open_with_start(path, text::START_BYTES) else { return Ok(None) };
    if let Some(advice) = text::binary_advice(&file.start) {
        return Err(Failure::usage(format!("{}: {advice}", path.display())));
    }
    Ok(text::recognized(&file.start).map(|format| ForeignTrace::Text(format, file)))
}

/// Who made the wake-ups of its threads late.
pub(crate) fn answer(
    args: &BlameArgs,
    path: &Path,
    trace: ForeignTrace,
) -> Result<LateWakeups, Failure> {
    let failed = |e: &dyn std::fmt::Display| Failure::usage(format!("{}: {e}", path.display()));
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
    let signals = Signals::block_and_open().map_err(Failure::cannot)?;
    let name = input::name(path);
    let mut progress = Reading::new(Some(&signals));
    let file = match trace {
        ForeignTrace::Dat(file) => file,
        ForeignTrace::Text(format, text_file) => {
            let ground = Ground::default();
            progress.begins(&name, text_file.length);
            let request = TextRequest { watched, wanted, ground };
            let told =
                text::read(format, text_file.source, request, &mut |bytes| progress.at(bytes))
                    .map_err(|e| failed(&e))?;
            let (trace, origin) = (Some(json!(told.facts)), Some(told.origin()));
            let (records, kernel) = (told.records, told.kernel);
            let (found, notes) = (told.found, told.notes);
            return Ok(LateWakeups { name, records, kernel, found, notes, trace, origin });
        }
    };
    let trace = TraceFile::open(file).map_err(|e| failed(&e))?;
    let machine = tailbound_host::machine_of(trace.info().uname.as_deref());
    let virtual_machine = machine.as_ref().and_then(tailbound_host::is_virtual_machine);
    let kernel = machine.as_ref().map_or(KernelKind::Unknown, KernelKind::of_facts);
    let ground = Ground { virtual_machine, ..Ground::default() };
    progress.begins(&name, Some(trace.info().bytes));
    let mut told =
        RecordedBlame::of(trace, watched, wanted, ground, &mut |bytes| progress.at(bytes))
            .map_err(|e| failed(&e))?;
    drop(progress);
    let (trace, origin) = (Some(json!(told.facts())), Some(told.origin()));
    let records = std::mem::take(&mut told.found.records);
    let (found, notes) = (Some(told.found), told.notes);
    Ok(LateWakeups { name, records, kernel, found, notes, trace, origin })
}
