// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blame` of a trace that another tool recorded: a file of trace-cmd or perf, or a text.
//!
//! Not here: who made it late there (`tailbound_trace::blame`), what is said in the end (`blame`).

use std::path::Path;

use serde_json::json;
use tailbound_core::blame::KernelKind;
use tailbound_files::read::ReadProgress as _;
use tailbound_files::trace::ForeignTrace;
use tailbound_sys::signal::Signals;
use tailbound_trace::blame::{BlameSelection, Ground, PerfBlame, RecordedBlame, WatchFilter};
use tailbound_trace::dat::TraceFile;
use tailbound_trace::perf::PerfFile;
use tailbound_trace::text::{self, TextRequest};

use super::blame_answer::{LateWakeups, above_ns};
use crate::cli_blame::BlameArgs;
use crate::input;
use crate::say::Failure;

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
    let mut progress = input::reading(Some(&signals));
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
