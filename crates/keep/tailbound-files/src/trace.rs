// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces that other tools recorded, told from runs by what is in them.
//!
//! Not here: what they say (`tailbound-trace`).

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::Path;

use tailbound_sys::given;
use tailbound_trace::text::TextFormat;
use tailbound_trace::{dat, perf, text};

use crate::error::FilesError;
use crate::read::{StartedFile, open_with_start};

/// What a file holds.
pub enum TraceOrRun {
    /// A trace.
    Trace(ForeignTrace),
    /// No trace: a run, if anything.
    Run(StartedFile),
}

/// A trace that another tool recorded.
pub enum ForeignTrace {
    /// A file of trace-cmd.
    Dat(File),
    /// A file of perf.
    Perf(File),
    /// A text.
    Text(TextFormat, StartedFile),
}

/// What `path` holds; `-` is standard input.
///
/// # Errors
/// It cannot be opened or read, or is a trace of a kind that is not read.
pub fn open(path: &Path) -> Result<TraceOrRun, FilesError> {
    let file = open_with_start(path, text::START_BYTES)?;
    let (dat, perf) = (dat::is_trace_file(&file.start), perf::is_perf_file(&file.start));
    if dat || perf {
        let again = as_it_stands(path, &file.start).map_err(|_| {
            let tool = if dat { "trace-cmd" } else { "perf" };
            let why = format!(
                "a trace of {tool} is read in several places: give the name of the unpacked file"
            );
            FilesError::of(path, &why)
        })?;
        let trace = if dat { ForeignTrace::Dat(again) } else { ForeignTrace::Perf(again) };
        return Ok(TraceOrRun::Trace(trace));
    }
    if let Some(advice) = text::binary_advice(&file.start) {
        return Err(FilesError::of(path, &advice));
    }
    Ok(match text::recognized(&file.start) {
        Some(format) => TraceOrRun::Trace(ForeignTrace::Text(format, file)),
        None => TraceOrRun::Run(file),
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
