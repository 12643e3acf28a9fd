// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way in: a file or its bytes, a format found or given, a run out.
//!
//! Units: ns.

use std::borrow::Cow;
use std::io::{BufReader, Read};

use tailbound_core::line_limits;
use tailbound_core::runfile::{ReadError, read_run};
use tailbound_core::units::{format_ns_i64, grouped};
use tailbound_core::{Finding, Impact, Run};

use crate::capture::{self, CaptureOptions};
use crate::carried::{self, Carried};
use crate::draft::Draft;
use crate::early::{self, Early};
use crate::error::{Fault, ImportError, excerpt};
use crate::format::Format;
use crate::runs::FormatOrigin;
use crate::stream::{Fingerprint, State, Stream};
use crate::unlike::Unlike;
use crate::{
    column, cyclictest, deadline, hwlatdetect, jitterdebugger, latency_trace, latmus, oslat, pairs,
    percentiles, raw_column, rtai, rteval, rtla, rtla_analysis, rtla_top, rttests, runs, stressng,
    sysjitter, tools, xenomai, xenomai_rows,
};

/// What is enough to know a format by.
const HEAD: u64 = 64 << 10;
/// Bytes of a file that is read as a whole, between two looks.
const PIECE: u64 = 1 << 20;

/// What the user knows and the file may not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Length of the file's unit, where the file does not name it (plain columns, status
    /// lines, verbose samples): 1 for ns, 1000 for µs.
    pub unit_ns: Option<u64>,
    /// The interval of the measurement; it outranks what the file says.
    pub interval_ns: Option<i64>,
    /// The length of the measurement; it outranks what the file says.
    pub duration_ns: Option<i64>,
    /// How the lines of a capture are wired; captures alone have it, and need it.
    pub capture: Option<CaptureOptions>,
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
    only(name, runs_with(format, name, bytes, options)?)
}

/// Every run of a file's bytes, in their order.
///
/// # Errors
/// [`ImportError`], with the place in the file.
pub fn runs_with(
    given: Option<Format>,
    name: &str,
    bytes: &[u8],
    options: &Options,
) -> Result<Vec<Run>, ImportError> {
    let format = known(given, name, bytes)?;
    capture::is_meant(format, options).map_err(|fault| fault.of(name, format))?;
    let looked = bytes.get(..HEAD as usize).unwrap_or(bytes);
    early::head(format, looked).map_err(|fault| fault.of(name, format))?;
    if format.streams() {
        return streamed(format, name, &mut &*bytes, options, &mut |_| true).map(|run| vec![run]);
    }
    if format == Format::Own {
        return read_run(bytes).map(|run| vec![run]).map_err(|e| own(e).of(name, format));
    }
    whole(format, FormatOrigin::of(given), name, bytes, options)
}

/// The runs of a file that is read as a whole.
fn whole(
    format: Format,
    origin: FormatOrigin,
    name: &str,
    bytes: &[u8],
    options: &Options,
) -> Result<Vec<Run>, ImportError> {
    // A program that copied the text may have put a byte-order mark before it.
    let unmarked = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let carried = match early::kind(format) {
        early::Kind::Lines => carried::plain(unmarked),
        _ => Carried { bytes: unmarked.into(), said: Vec::new(), sources: carried::Sources::One },
    };
    let apart = tools::apart(format, &carried.bytes);
    let text: &[u8] = apart.as_ref().map_or(&carried.bytes, |a| &a.text);
    let pieces = runs::split(format, text, origin);
    if pieces.len() > runs::RUNS_MAX {
        let reason = format!("{} runs; at most {} are read", pieces.len(), runs::RUNS_MAX);
        return Err(Fault::file(reason).of(name, format));
    }
    // Each source may have run a tool of its own.
    let found = if apart.is_some() { usize::MAX } else { pieces.len() };
    if let Some((one, other)) = carried.sources.inseparable(found) {
        let reason = format!(
            "lines of several sources cannot be told apart, among them those after {one} and those after {other}: \
             take the lines of one out (`grep`) and import them alone"
        );
        return Err(Fault::file(reason).of(name, format));
    }
    let mut out = Vec::with_capacity(pieces.len());
    for (i, piece) in pieces.iter().enumerate() {
        let bad = |mut fault: Fault| {
            if pieces.len() > 1 {
                fault.reason = format!("run {} of {}: {}", i + 1, pieces.len(), fault.reason);
            }
            fault.of(name, piece.format)
        };
        let part = text.get(piece.from..piece.to).unwrap_or_default();
        let (lines, torn) =
            if i + 1 == pieces.len() { whole_lines(piece.format, part) } else { (part, false) };
        let mut draft = parse(piece.format, &in_place(lines, piece), options).map_err(bad)?;
        draft.cut_off |= torn;
        for sentence in &carried.said {
            draft.lose(sentence.clone());
            draft.note(Finding::new("source-carried", Impact::Notice, sentence.clone()));
        }
        if let Some(apart) = &apart {
            draft.lose(apart.said.clone());
            draft.note(Finding::new("source-other-tools", Impact::Notice, apart.said.clone()));
        }
        let mut called = name.to_owned();
        let mut identity = Fingerprint::of(bytes);
        if pieces.len() > 1 {
            let which = format!("run {} of {}", i + 1, pieces.len());
            let last = piece.line + part.iter().filter(|b| **b == b'\n').count() as u64;
            let sentence = format!(
                "The file holds {} runs: this is run {}, lines {} to {}.",
                pieces.len(),
                i + 1,
                piece.line,
                last.saturating_sub(u64::from(part.ends_with(b"\n")))
            );
            draft.lose(sentence.clone());
            draft.note(Finding::new("source-one-of-several", Impact::Notice, sentence));
            called = format!("{name} ({which})");
            identity = Fingerprint::of(part) ^ i as u64;
        }
        out.push(finish(draft, piece.format, &called, identity)?);
    }
    Ok(out)
}

/// A run's text with its lines numbered as in the file, whatever is said of them.
fn in_place<'a>(text: &'a [u8], piece: &runs::Piece) -> Cow<'a, [u8]> {
    match usize::try_from(piece.line.saturating_sub(1)) {
        Ok(above @ 1..) => Cow::Owned([&vec![b'\n'; above], text].concat()),
        _ => Cow::Borrowed(text),
    }
}

/// The only run of a file.
fn only(name: &str, mut runs: Vec<Run>) -> Result<Run, ImportError> {
    match (runs.pop(), runs.is_empty()) {
        (Some(run), true) => Ok(run),
        (Some(last), false) => {
            runs.push(last);
            let runs = runs.iter().enumerate().map(|(i, run)| in_short(i + 1, run)).collect();
            Err(ImportError::Several { file: excerpt(name), runs })
        }
        (None, _) => Err(Fault::file("there is no run in it").of(name, Format::Own)),
    }
}

/// A run in a few words.
fn in_short(number: usize, run: &Run) -> String {
    let n = run.threads.iter().fold(0u64, |n, t| n.saturating_add(t.wakeup.n));
    let max = run.threads.iter().filter_map(|t| t.wakeup.max_ns).max();
    let max = max.map_or_else(
        || "nothing measured".to_owned(),
        |ns| format!("the latest {}", format_ns_i64(ns)),
    );
    format!("({number}) {} values, {max}", grouped(n))
}

/// Imports what `source` gives. Formats that list every sample ([`Format::streams`]) and our own are read piece by piece, in
/// bounded memory; of other formats a file of more than 1 GiB (JSON and XML: 32 MiB) is refused. What cannot be of the format is
/// refused while it is read, not when all of it is there.
///
/// `watch` is told now and then how many bytes were read; when it returns `false`, a stream
/// ends there, and the run says that it was interrupted.
///
/// # Errors
/// [`ImportError`], with the place in the file.
pub fn import_from(
    format: Option<Format>,
    name: &str,
    source: &mut (dyn Read + Send),
    options: &Options,
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<Run, ImportError> {
    import_of(format, name, ImportSource { bytes: source, length: None }, options, watch)
}

/// What a file is read from.
pub struct ImportSource<'a> {
    /// Its bytes.
    pub bytes: &'a mut (dyn Read + Send),
    /// How many there are, where that is known.
    pub length: Option<u64>,
}

/// As [`import_from`], of a source whose length may be known: one that is too long is not read.
///
/// # Errors
/// [`ImportError`], with the place in the file.
pub fn import_of(
    format: Option<Format>,
    name: &str,
    source: ImportSource<'_>,
    options: &Options,
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<Run, ImportError> {
    only(name, runs_of(format, name, source, options, watch)?)
}

/// As [`import_of`], every run of the file in their order.
///
/// # Errors
/// [`ImportError`], with the place in the file.
pub fn runs_of(
    given: Option<Format>,
    name: &str,
    ImportSource { bytes: source, length }: ImportSource<'_>,
    options: &Options,
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<Vec<Run>, ImportError> {
    let mut bytes = Vec::new();
    let mut read = |bytes: &mut Vec<u8>, most: u64| {
        (&mut *source)
            .take(most)
            .read_to_end(bytes)
            .map_err(|why| ImportError::Io { file: excerpt(name), why })
    };
    read(&mut bytes, HEAD)?;
    if given.is_none() && matches!(Format::detect(&bytes), Err(Unlike::Text | Unlike::Other(_))) {
        read(&mut bytes, crate::format::FAR as u64)?;
    }
    let format = known(given, name, &bytes)?;
    let bad = |fault: Fault| fault.of(name, format);
    capture::is_meant(format, options).map_err(bad)?;
    early::head(format, &bytes).map_err(bad)?;
    if format.streams() {
        let mut all = bytes.as_slice().chain(source);
        return streamed(format, name, &mut all, options, watch).map(|run| vec![run]);
    }
    if format == Format::Own {
        let lines = BufReader::new(bytes.as_slice().chain(source));
        return read_run(lines).map(|run| vec![run]).map_err(|e| bad(own(e)));
    }
    let most = early::whole_max(format);
    if length.is_some_and(|length| length > most) {
        return Err(bad(early::too_long(format)));
    }
    let mut looks = Early::new(format);
    loop {
        looks.more(&bytes).map_err(bad)?;
        if bytes.len() as u64 > most {
            return Err(bad(early::too_long(format)));
        }
        if read(&mut bytes, PIECE)? == 0 {
            return whole(format, FormatOrigin::of(given), name, &bytes, options);
        }
    }
}

fn known(format: Option<Format>, name: &str, head: &[u8]) -> Result<Format, ImportError> {
    format
        .map_or_else(|| Format::detect_far(head), Ok)
        .map_err(|hint| ImportError::Unknown { file: excerpt(name), hint })
}

fn streamed(
    format: Format,
    name: &str,
    source: &mut (dyn Read + Send),
    options: &Options,
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<Run, ImportError> {
    let state = State::default();
    let mut stream = Stream::new(source, watch, &state);
    let parsed = match format {
        _ if let Some(of) = format.capture() => capture::parse(of, &mut stream, options),
        Format::RawU32 => raw_column::u32s(&mut stream, options),
        Format::RawU64 => raw_column::u64s(&mut stream, options),
        Format::JitterdebuggerRaw => jitterdebugger::raw::parse(&mut stream, options),
        _ => column::parse(&mut stream, options),
    };
    let mut draft = parsed.map_err(|fault| fault.of(name, format))?;
    if stream.stopped() {
        draft.stopped = true;
        draft.doubt(
            "source-cut-off",
            format!("The import was stopped after {} bytes of the file.", grouped(stream.bytes())),
            "What comes after is unknown, the latest wake-up included.",
            "Import the whole file.",
        );
    }
    let identity = stream.identity();
    finish(draft, format, name, identity)
}

/// What is the same for every format at the end.
fn finish(mut draft: Draft, format: Format, name: &str, identity: u64) -> Result<Run, ImportError> {
    if draft.threads.is_empty() {
        let reason = "no thread with samples was found: the file was cut off, or the tool never got to measure";
        return Err(Fault::file(reason).of(name, format));
    }
    if draft.cut_off {
        draft.doubt(
            "source-cut-off",
            "The file ends before the tool's last line, or in the middle of it.".to_owned(),
            "What came after is unknown, the latest wake-up included.",
            "Import the whole file, or measure again.",
        );
    }
    let run = draft.finish(format, name, identity);
    // What is beyond would be refused when the run file is read back.
    line_limits::check_run(&run).map_err(|e| Fault::file(e.to_string()).of(name, format))?;
    Ok(run)
}

/// A tool ends its last line: one without its end may have lost digits and is not read. A
/// status line may have been copied by hand; it is read, and doubted.
fn whole_lines(format: Format, bytes: &[u8]) -> (&[u8], bool) {
    let of_lines = early::kind(format) == early::Kind::Lines
        && !matches!(format, Format::CyclictestStatus | Format::Column);
    if bytes.ends_with(b"\n") || !(of_lines || format == Format::CyclictestStatus) {
        return (bytes, false);
    }
    let end = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
    let last = bytes.get(end..).map(String::from_utf8_lossy).unwrap_or_default();
    (
        if of_lines && !copied_whole(format, last.trim()) {
            bytes.get(..end).unwrap_or(bytes)
        } else {
            bytes
        },
        true,
    )
}

/// Of outputs that people copy from a screen, the last line is read where it tells that it is whole, or where
/// a number cut short in it shows.
fn copied_whole(format: Format, last: &str) -> bool {
    match format {
        Format::XenomaiText | Format::LatmusText => xenomai_rows::is_whole_row(last),
        Format::Sysjitter => last.starts_with("int_total(%)"),
        Format::CyclicdeadlineText
        | Format::RtTestsText
        | Format::Hwlatdetect
        | Format::RtlaAnalysis
        | Format::LatencyTrace => true,
        _ => false,
    }
}

fn parse(format: Format, bytes: &[u8], options: &Options) -> Result<Draft, Fault> {
    match format {
        Format::Own
        | Format::RawU32
        | Format::RawU64
        | Format::JitterdebuggerRaw
        | Format::Vcd
        | Format::SigrokSession
        | Format::SigrokCsv
        | Format::SaleaeCsv
        | Format::Column => Err(Fault::file("this is no format that is read as a whole")),
        Format::CyclictestJson => cyclictest::json::parse(bytes, options),
        Format::CyclictestHistogram => cyclictest::histogram::parse(bytes, options),
        Format::CyclictestStatus => cyclictest::status::parse(bytes, options),
        Format::CyclictestVerbose => cyclictest::verbose::parse(bytes, options),
        Format::OslatJson => oslat::json(bytes),
        Format::OslatText => oslat::text(bytes),
        Format::RtTestsJson => rttests::parse(bytes, options),
        Format::RtTestsText => pairs::parse(bytes, options),
        Format::CyclicdeadlineJson => deadline::json(bytes, options),
        Format::CyclicdeadlineText => deadline::text(bytes, options),
        Format::Hwlatdetect => hwlatdetect::parse(bytes),
        Format::RtlaTop => rtla_top::parse(bytes, options),
        Format::RtlaAnalysis => rtla_analysis::parse(bytes),
        Format::LatencyTrace => latency_trace::parse(bytes),
        Format::Sysjitter => sysjitter::parse(bytes),
        Format::HdrHistogram => percentiles::parse(bytes, options),
        Format::RtlaTimerlat => rtla::parse(bytes, rtla::Kind::Timerlat, options),
        Format::RtlaOsnoise => rtla::parse(bytes, rtla::Kind::Osnoise, options),
        Format::JitterdebuggerJson => jitterdebugger::results::parse(bytes, options),
        Format::RtevalXml => rteval::parse(bytes, options),
        Format::XenomaiGnuplot => xenomai::gnuplot(bytes),
        Format::XenomaiText => xenomai::text(bytes, xenomai::Tester::Xenomai),
        Format::LatmusText => xenomai::text(bytes, xenomai::Tester::Latmus),
        Format::RtaiText => rtai::parse(bytes),
        Format::Latmus => latmus::parse(bytes),
        Format::StressNg => stressng::parse(bytes),
    }
}

/// Our own reader's errors, with their place.
fn own(error: ReadError) -> Fault {
    match error {
        ReadError::Io { line, source } => Fault::line(line, source.to_string()),
        ReadError::Line { line, reason } => Fault::line(line, reason.to_string()),
        other @ (ReadError::Empty | ReadError::Schema { .. }) => Fault::file(other.to_string()),
    }
}

impl Options {
    /// What the user said outranks the file.
    pub(crate) fn apply(&self, draft: &mut Draft) {
        draft.interval_ns = self.interval_ns.filter(|i| *i > 0).or(draft.interval_ns);
        draft.duration_ns = self.duration_ns.filter(|d| *d > 0).or(draft.duration_ns);
    }
}
