// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blame` of a trace that another tool recorded: a file of trace-cmd or perf, or a text.
//!
//! Not here: who made it late there (`tailbound_trace::blame`), what is said in the end (`blame`).

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::Path;

use serde_json::json;
use tailbound_core::blame::KernelKind;
use tailbound_files::read::{self, ReadProgress as _, StartedFile};
use tailbound_sys::given;
use tailbound_sys::signal::Signals;
use tailbound_trace::blame::{BlameSelection, Ground, PerfBlame, RecordedBlame, WatchFilter};
use tailbound_trace::dat::{self, TraceFile};
use tailbound_trace::perf::{self, PerfFile};
use tailbound_trace::text::{self, TextFormat, TextRequest};

use super::blame_answer::{LateWakeups, above_ns};
use crate::cli_blame::BlameArgs;
use crate::input;
use crate::reading::Reading;
use crate::say::Failure;

/// What a file holds that `blame` is given.
pub(crate) enum BlameFile {
    Trace(ForeignTrace),
    /// No trace: a run, if anything.
    Run(StartedFile),
}

/// A trace that another tool recorded.
pub(crate) enum ForeignTrace {
    /// A file of trace-cmd.
    Dat(File),
    /// A file of perf.
    Perf(File),
    /// A text.
    Text(TextFormat, StartedFile),
}

/// What `path` holds; `-` is standard input.
pub(crate) fn open(path: &Path) -> Result<BlameFile, Failure> {
    let file = read::open_with_start(path, text::START_BYTES)?;
    let failed = |e: &dyn std::fmt::Display| Failure::usage(format!("{}: {e}", path.display()));
    let (dat, perf) = (dat::is_trace_file(&file.start), perf::is_perf_file(&file.start));
    if dat || perf {
        let again = as_it_stands(path, &file.start).map_err(|_| {
            let tool = if dat { "trace-cmd" } else { "perf" };
            failed(&format!(
                "a trace of {tool} is read in several places: give the name of the unpacked file"
            ))
        })?;
        let trace = if dat { ForeignTrace::Dat(again) } else { ForeignTrace::Perf(again) };
        return Ok(BlameFile::Trace(trace));
    }
    if let Some(advice) = text::binary_advice(&file.start) {
        return Err(failed(&advice));
    }
    Ok(match text::recognized(&file.start) {
        Some(format) => BlameFile::Trace(ForeignTrace::Text(format, file)),
        None => BlameFile::Run(file),
    })
}

/// The file at `path`, if it begins with `start` without being unpacked.
fn as_it_stands(path: &Path, start: &[u8]) -> io::Result<File> {
    let mut file = given::file(path)?;
    let mut raw = [0; 8];
    file.read_exact(&mut raw)?;
    if !start.starts_with(&raw) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    file.rewind()?;
    Ok(file)
}

/// The kernel and the machine beneath, where the trace is of this machine.
fn ground(uname: Option<&str>) -> (KernelKind, Ground) {
    let machine = tailbound_host::machine_of(uname);
    let virtual_machine = machine.as_ref().and_then(tailbound_host::is_virtual_machine);
    let kernel = machine.as_ref().map_or(KernelKind::Unknown, KernelKind::of_facts);
    (kernel, Ground { virtual_machine, ..Ground::default() })
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
        ForeignTrace::Perf(file) => {
            let file = PerfFile::open(file).map_err(|e| failed(&e))?;
            let (kernel, ground) = ground(file.info().uname().as_deref());
            progress.begins(&name, Some(file.info().bytes));
            let mut told =
                PerfBlame::of(file, watched, wanted, ground, &mut |bytes| progress.at(bytes))
                    .map_err(|e| failed(&e))?;
            let (trace, origin) = (Some(json!(told.facts())), Some(told.origin()));
            let records = std::mem::take(&mut told.found.records);
            let (found, notes) = (Some(told.found), told.notes);
            return Ok(LateWakeups { name, records, kernel, found, notes, trace, origin });
        }
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
    let (kernel, ground) = ground(trace.info().uname.as_deref());
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
