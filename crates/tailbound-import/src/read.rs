// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way in: a file's bytes, a format found or given, a run out.
//!
//! Context: COLD. Units: ns.

use tailbound_core::Run;
use tailbound_core::runfile::{ReadError, read_run};

use crate::draft::Draft;
use crate::error::{Fault, ImportError, Place};
use crate::format::Format;
use crate::{
    column, cyclictest, jitterdebugger, latmus, oslat, rtai, rteval, rtla, rttests, stressng,
    xenomai,
};

/// What the user knows and the file may not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Length of the file's unit, where the file does not name it (plain columns, status
    /// lines, verbose samples): 1 for ns, 1000 for µs.
    pub unit_ns: Option<u64>,
    /// The interval of the measurement; it outranks what the file says.
    pub interval_ns: Option<i64>,
    /// The length of the measurement; it outranks what the file says.
    pub duration_ns: Option<i64>,
}

/// Imports a file, whose format is found by its content; `name` is used in messages and kept
/// in the run.
///
/// # Errors
/// [`ImportError`], with the place in the file.
pub fn import(name: &str, bytes: &[u8]) -> Result<Run, ImportError> {
    import_with(None, name, bytes, &Options::default())
}

/// Imports a file of a given format.
///
/// # Errors
/// [`ImportError::Bad`], with the place in the file.
pub fn import_as(format: Format, name: &str, bytes: &[u8]) -> Result<Run, ImportError> {
    import_with(Some(format), name, bytes, &Options::default())
}

/// Imports a file of a given or found format, with what the user knows beside it.
///
/// # Errors
/// [`ImportError`], with the place in the file.
pub fn import_with(
    format: Option<Format>,
    name: &str,
    bytes: &[u8],
    options: &Options,
) -> Result<Run, ImportError> {
    let file = crate::error::excerpt(name);
    let format = match format {
        Some(format) => format,
        None => Format::detect(bytes)
            .map_err(|hint| ImportError::Unknown { file: file.clone(), hint })?,
    };
    let bad = |fault: Fault| ImportError::Bad {
        file: file.clone(),
        format,
        place: fault.place,
        reason: fault.reason,
    };
    if format == Format::Own {
        return read_run(bytes).map_err(|e| bad(own(e)));
    }
    let (whole, torn) = whole_lines(format, bytes);
    let mut draft = parse(format, whole, options).map_err(bad)?;
    draft.cut_off |= torn;
    if draft.threads.is_empty() {
        return Err(bad(Fault::file(
            "no thread with samples was found: the file was cut off, or the tool never got to measure",
        )));
    }
    if draft.cut_off {
        draft.doubt(
            "source-cut-off",
            "The file ends before the tool's last line, or in the middle of it.".to_owned(),
            "What came after is unknown, the latest wake-up included.",
            "Import the whole file, or measure again.",
        );
    }
    Ok(draft.finish(format, name, bytes))
}

/// A tool ends its last line: one without its end may have lost digits and is not read. A
/// status line may have been copied by hand; it is read, and doubted.
fn whole_lines(format: Format, bytes: &[u8]) -> (&[u8], bool) {
    let of_lines = matches!(
        format,
        Format::CyclictestHistogram
            | Format::CyclictestVerbose
            | Format::OslatText
            | Format::RtlaTimerlat
            | Format::RtlaOsnoise
            | Format::XenomaiGnuplot
            | Format::XenomaiText
            | Format::RtaiText
            | Format::Latmus
            | Format::StressNg
    );
    if bytes.ends_with(b"\n") || !(of_lines || format == Format::CyclictestStatus) {
        return (bytes, false);
    }
    let end = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
    (if of_lines { bytes.get(..end).unwrap_or(bytes) } else { bytes }, true)
}

fn parse(format: Format, bytes: &[u8], options: &Options) -> Result<Draft, Fault> {
    match format {
        Format::Own => Err(Fault::file("our own run files are not drafts")),
        Format::CyclictestJson => cyclictest::json::parse(bytes, options),
        Format::CyclictestHistogram => cyclictest::histogram::parse(bytes, options),
        Format::CyclictestStatus => cyclictest::status::parse(bytes, options),
        Format::CyclictestVerbose => cyclictest::verbose::parse(bytes, options),
        Format::OslatJson => oslat::json(bytes),
        Format::OslatText => oslat::text(bytes),
        Format::RtTestsJson => rttests::parse(bytes, options),
        Format::RtlaTimerlat => rtla::parse(bytes, rtla::Kind::Timerlat, options),
        Format::RtlaOsnoise => rtla::parse(bytes, rtla::Kind::Osnoise, options),
        Format::JitterdebuggerJson => jitterdebugger::results::parse(bytes, options),
        Format::JitterdebuggerRaw => jitterdebugger::raw::parse(bytes, options),
        Format::RtevalXml => rteval::parse(bytes, options),
        Format::XenomaiGnuplot => xenomai::gnuplot(bytes),
        Format::XenomaiText => xenomai::text(bytes),
        Format::RtaiText => rtai::parse(bytes),
        Format::Latmus => latmus::parse(bytes),
        Format::StressNg => stressng::parse(bytes),
        Format::Column => column::parse(bytes, options),
    }
}

/// Our own reader's errors, with their place.
fn own(error: ReadError) -> Fault {
    match error {
        ReadError::Io { line, source } => Fault::line(line, source.to_string()),
        ReadError::Line { line, reason } => Fault { place: Place::Line(line), reason },
        other @ (ReadError::Empty | ReadError::Schema(_)) => Fault::file(other.to_string()),
    }
}

impl Options {
    /// What the user said outranks the file.
    pub(crate) fn apply(&self, draft: &mut Draft) {
        draft.interval_ns = self.interval_ns.filter(|i| *i > 0).or(draft.interval_ns);
        draft.duration_ns = self.duration_ns.filter(|d| *d > 0).or(draft.duration_ns);
    }
}
