// SPDX-License-Identifier: MIT OR Apache-2.0
//! The formats that can be imported, and how each is known by its content.
//!
//! Only the first 64 KiB are looked at, freed of what mail and consoles did to them (`carried`). What is nearly a format (a live
//! screen, a YAML without latencies) gets a hint instead of a guess.
//! Not here: the parsers, one module each.

use std::fmt;
use std::str::FromStr;

use tailbound_box::CaptureFormat;

use crate::foreign::{self, Foreign};
use crate::jitterdebugger;
use crate::near;
use crate::text::Lines;
use crate::unlike::{UnknownFormat, Unlike};

/// So far into a text of words its format is looked for.
pub(crate) const FAR: usize = 16 << 20;

macro_rules! formats {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $description:literal;)+) => {
        /// A format that can be imported.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Format { $($(#[$doc])* $variant),+ }

        impl Format {
            /// Every format, in the order of the help text.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its word on the command line.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// What it is, in one line.
            #[must_use]
            pub fn description(self) -> &'static str {
                match self { $(Self::$variant => $description),+ }
            }
        }
    };
}

formats! {
    /// Our own run file.
    Own = "tailbound", "a run file of tailbound itself";
    /// cyclictest `--json`.
    CyclictestJson = "cyclictest-json", "cyclictest --json (file_version 1; 2.4 to 2.10)";
    /// cyclictest `-h` or `-H`.
    CyclictestHistogram = "cyclictest-histogram", "cyclictest -h/-H on standard output or --histfile (2.4 to 2.10)";
    /// cyclictest's final or live status lines.
    CyclictestStatus = "cyclictest-status", "cyclictest status lines (T: 0 (pid) P:95 ...): extremes and average only";
    /// cyclictest `-v`.
    CyclictestVerbose = "cyclictest-verbose", "cyclictest -v, every sample as thread:cycle:value";
    /// oslat `--json`.
    OslatJson = "oslat-json", "oslat --json (2.4 to 2.10)";
    /// oslat's standard output.
    OslatText = "oslat-text", "oslat on standard output (2.4 to 2.10)";
    /// The small programs of rt-tests.
    RtTestsJson = "rt-tests-json", "--json of ptsematest, svsematest, sigwaittest, pmqtest, signaltest: extremes and average only";
    /// The same programs on standard output.
    RtTestsText = "rt-tests-text", "pmqtest, ptsematest, svsematest, sigwaittest, signaltest on standard output: extremes and average only";
    /// cyclicdeadline `--json`.
    CyclicdeadlineJson = "cyclicdeadline-json", "cyclicdeadline --json";
    /// cyclicdeadline's status lines.
    CyclicdeadlineText = "cyclicdeadline", "cyclicdeadline on standard output: extremes and average only";
    /// hwlatdetect.
    Hwlatdetect = "hwlatdetect", "hwlatdetect on standard output, old and new";
    /// rtla timerlat hist.
    RtlaTimerlat = "rtla-timerlat", "rtla timerlat hist (6.1 to 7.2): contexts irq, thread, user";
    /// rtla osnoise hist.
    RtlaOsnoise = "rtla-osnoise", "rtla osnoise hist (6.1 to 7.2)";
    /// rtla timerlat top.
    RtlaTop = "rtla-top", "rtla timerlat top, as its screen shows it: extremes and average only";
    /// rtla's auto-analysis.
    RtlaAnalysis = "rtla-analysis", "rtla timerlat's auto-analysis of the latency that stopped it";
    /// The kernel's latency tracers.
    LatencyTrace = "latency-trace", "trace of the tracers wakeup, wakeup_rt, wakeup_dl, irqsoff, preemptoff, preemptirqsoff: the longest";
    /// jitterdebugger's results.json.
    JitterdebuggerJson = "jitterdebugger-json", "jitterdebugger results.json (version 3)";
    /// jitterdebugger's samples.raw.
    JitterdebuggerRaw = "jitterdebugger-raw", "jitterdebugger samples.raw (28-byte records of a 64-bit little-endian machine)";
    /// rteval's summary.xml.
    RtevalXml = "rteval", "rteval summary.xml (cyclictest or timerlat module)";
    /// Xenomai `latency -g`.
    XenomaiGnuplot = "xenomai-gnuplot", "Xenomai latency -g file";
    /// Xenomai `latency` on standard output.
    XenomaiText = "xenomai-text", "Xenomai latency on standard output (RTD/RTS/HSD lines; without -h extremes and average only)";
    /// RTAI's latency and display.
    RtaiText = "rtai-text", "RTAI latency, as its display prints it: extremes and average only";
    /// latmus `-g`.
    Latmus = "latmus", "EVL latmus -g file";
    /// latmus on standard output.
    LatmusText = "latmus-text", "EVL latmus on standard output (RTD/RTS lines): extremes and average only";
    /// sysjitter.
    Sysjitter = "sysjitter", "sysjitter: interruptions of each core";
    /// HdrHistogram's percentiles.
    HdrHistogram = "hdrhistogram", "percentiles that HdrHistogram prints; --unit says what they count in";
    /// stress-ng `--cyclic`.
    StressNg = "stress-ng", "stress-ng --cyclic on standard output, with --cyclic-dist for the histogram, else percentiles";
    /// A value change dump.
    Vcd = "vcd", "a capture of a logic analyser as VCD; --stimulus and --answer name its lines";
    /// A session file of sigrok.
    SigrokSession = "sigrok", "a capture of sigrok or PulseView (.sr), likewise";
    /// CSV of sigrok-cli.
    SigrokCsv = "sigrok-csv", "a capture as CSV of sigrok-cli, likewise";
    /// CSV of Saleae Logic.
    SaleaeCsv = "saleae-csv", "a capture as CSV of Saleae Logic (digital channels, times in s), likewise";
    /// Plain numbers of 32 bits.
    RawU32 = "raw-u32", "plain little-endian numbers of 32 bits, without header; never guessed: the format must be given, and --unit where it is not ns";
    /// Plain numbers of 64 bits.
    RawU64 = "raw-u64", "the same of 64 bits";
    /// Plain numbers.
    Column = "column", "plain numbers, one per line; the unit in a header line (`# latency_us`) or given as an option";
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;
    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let found = Self::ALL.iter().copied().find(|f| f.name() == text);
        found.ok_or_else(|| UnknownFormat { word: text.to_owned() })
    }
}

impl Format {
    /// The names of all formats in one line.
    #[must_use]
    pub fn list() -> String {
        Self::ALL.iter().map(|f| f.name()).collect::<Vec<_>>().join(", ")
    }

    /// Is a file of it read piece by piece, in bounded memory, however long it is?
    #[must_use]
    pub fn streams(self) -> bool {
        let list =
            matches!(self, Self::RawU32 | Self::RawU64 | Self::JitterdebuggerRaw | Self::Column);
        list || self.capture().is_some()
    }

    /// What a capture of a logic analyser is in; nothing else has one.
    pub(crate) fn capture(self) -> Option<CaptureFormat> {
        match self {
            Self::Vcd => Some(CaptureFormat::Vcd),
            Self::SigrokSession => Some(CaptureFormat::SigrokSession),
            Self::SigrokCsv => Some(CaptureFormat::SigrokCsv),
            Self::SaleaeCsv => Some(CaptureFormat::SaleaeCsv),
            _ => None,
        }
    }

    fn of_capture(format: CaptureFormat) -> Self {
        match format {
            CaptureFormat::Vcd => Self::Vcd,
            CaptureFormat::SigrokSession => Self::SigrokSession,
            CaptureFormat::SigrokCsv => Self::SigrokCsv,
            CaptureFormat::SaleaeCsv => Self::SaleaeCsv,
        }
    }

    /// As [`Self::detect`], and further on where the beginning shows nothing: a log of a whole boot may stand before the figures.
    pub(crate) fn detect_far(bytes: &[u8]) -> Result<Self, Unlike> {
        let unlike = match Self::detect(bytes) {
            Err(unlike @ (Unlike::Text | Unlike::Other(_))) if bytes.len() > 64 << 10 => unlike,
            near => return near,
        };
        let far = bytes.get(..FAR).unwrap_or(bytes);
        match by_lines(&crate::carried::plain(far).bytes) {
            Ok(format) if format != Self::Column => Ok(format),
            _ => Err(unlike),
        }
    }

    /// Finds the format by the content, of which the first 64 KiB are enough.
    ///
    /// # Errors
    /// What the content looks like instead, in words for the user.
    pub fn detect(bytes: &[u8]) -> Result<Self, Unlike> {
        let head = bytes.get(..64 << 10).unwrap_or(bytes);
        if head.iter().all(u8::is_ascii_whitespace) {
            return Err(Unlike::Empty);
        }
        if jitterdebugger::raw::looks_like_it(bytes) {
            return Ok(Self::JitterdebuggerRaw);
        }
        if let Some(format) = CaptureFormat::of(head) {
            return Ok(Self::of_capture(format));
        }
        if let Some(foreign) = foreign::by_magic(head) {
            return Err(Unlike::Foreign(foreign));
        }
        if let Some(encoding) = tailbound_core::runfile::utf16(head).or(unmarked_utf16(head)) {
            return Err(Unlike::Encoding(encoding));
        }
        if head.contains(&0) {
            return Err(if near::is_text_with_zeros(head) {
                Unlike::Other(near::ZEROS)
            } else {
                Unlike::Binary
            });
        }
        let text = String::from_utf8_lossy(head);
        let start = text.trim_start_matches('\u{feff}').trim_start();
        if start.starts_with('{') {
            return json(start);
        }
        if start.starts_with('<') {
            if start.contains("<rteval") {
                return Ok(Self::RtevalXml);
            }
            let markup = foreign::by_markup(start);
            if let Some(own @ (Foreign::OwnReport | Foreign::OwnExport(_))) = markup {
                return Err(Unlike::Foreign(own));
            }
            // A page with a tool's text in it, or a log whose lines begin with `<6>`.
            return match by_lines(&crate::carried::plain(head).bytes) {
                Ok(format) if format != Self::Column => Ok(format),
                Err(hint @ Unlike::Other(_)) if markup.is_none() => Err(hint),
                _ => Err(markup.map_or(Unlike::Xml, Unlike::Foreign)),
            };
        }
        if foreign::is_source(start) {
            return Err(Unlike::Foreign(Foreign::Source));
        }
        by_lines(&crate::carried::plain(head).bytes)
    }
}

/// Text of two bytes a character without a mark at its beginning: every other byte is zero, the rest is plain text.
fn unmarked_utf16(head: &[u8]) -> Option<&'static str> {
    let (pairs, _) = head.as_chunks::<2>();
    let text = |b: u8| matches!(b, b' '..=b'~' | b'\t' | b'\r' | b'\n' | 0x1b);
    let all = |test: &dyn Fn(&[u8; 2]) -> bool| pairs.len() >= 8 && pairs.iter().all(test);
    if all(&|[low, high]| *high == 0 && text(*low)) {
        Some("UTF-16LE")
    } else if all(&|[high, low]| *high == 0 && text(*low)) {
        Some("UTF-16BE")
    } else {
        None
    }
}

/// JSON is known by its keys, textually: a document with a broken escape must still come to
/// the parser that can say so.
fn json(start: &str) -> Result<Format, Unlike> {
    if start.contains("\"tailbound-run/") {
        return Ok(Format::Own);
    }
    let tool = start
        .split_once("\"cmdline:\":")
        .or_else(|| start.split_once("\"cmdline\":"))
        .map(|(_, rest)| rest.trim_start().trim_start_matches('"'))
        .and_then(|line| line.split([' ', '"', '\n']).next())
        .map(|word| word.rsplit('/').next().unwrap_or(word));
    match tool {
        Some("cyclictest") => Ok(Format::CyclictestJson),
        Some("oslat") => Ok(Format::OslatJson),
        Some("ptsematest" | "svsematest" | "sigwaittest" | "pmqtest" | "signaltest") => {
            Ok(Format::RtTestsJson)
        }
        Some("cyclicdeadline") => Ok(Format::CyclicdeadlineJson),
        Some(other) => Err(Unlike::JsonOf(other.to_owned())),
        None if start.contains("\"resolution_in_ns\"") && start.contains("\"cpu\"") => {
            Ok(Format::JitterdebuggerJson)
        }
        None => Err(match (foreign::by_json(start), near::log_as_json(start)) {
            (Some(foreign), _) => Unlike::Foreign(foreign),
            (None, Some(hint)) => Unlike::Other(hint),
            (None, None) => Unlike::Json,
        }),
    }
}

fn by_lines(head: &[u8]) -> Result<Format, Unlike> {
    let mut hint = None;
    // A column is numbers; one number among words is none.
    let (mut numbers, mut words) = (0u64, 0u64);
    // Status lines say the least of a run: behind them may be its histogram.
    let mut found = None;
    for (_, line) in Lines::new(head).filter_map(Result::ok) {
        let line = line.trim();
        match (of_line(line), found) {
            (Some(Format::CyclictestHistogram), Some(Format::CyclictestStatus))
            | (Some(Format::CyclictestStatus), None) => found = of_line(line),
            (Some(format), None) => return Ok(format),
            _ => {}
        }
        if crate::column::value(line).is_some() {
            numbers += 1;
        } else if numbers > 0 && !line.is_empty() && !line.starts_with('#') {
            words += 1;
        }
        hint = hint.or_else(|| near::hint(line));
    }
    match hint {
        _ if let Some(format) = found => Ok(format),
        Some(hint) => Err(Unlike::Other(hint)),
        None if numbers > words => Ok(Format::Column),
        None => {
            let text = String::from_utf8_lossy(head);
            Err(foreign::by_text(&text).map_or(Unlike::Text, Unlike::Foreign))
        }
    }
}

/// The format of which a line is that no other has.
pub(crate) fn of_line(line: &str) -> Option<Format> {
    let has = |words: &[&str]| words.iter().all(|w| line.contains(w));
    let begins = |word: &str| line.starts_with(word);
    if begins("# RTLA timerlat histogram") {
        Some(Format::RtlaTimerlat)
    } else if begins("# RTLA osnoise histogram") {
        Some(Format::RtlaOsnoise)
    } else if begins("# Histogram") || begins("# Max Latencies:") {
        // The lines below the rows may be all that was kept.
        Some(Format::CyclictestHistogram)
    } else if crate::pairs::is_signaltest(line) || crate::pairs::is_pair(line) {
        Some(Format::RtTestsText)
    } else if crate::deadline::is_line(line) {
        Some(Format::CyclicdeadlineText)
    } else if begins("T:") && has(&[" P:", " Min:", " Max:"]) {
        Some(Format::CyclictestStatus)
    } else if crate::cyclictest::verbose::sample(line).is_some() {
        Some(Format::CyclictestVerbose)
    } else if begins("oslat V") || begins("Counter Freq:") || begins("CPU Freq:") {
        Some(Format::OslatText)
    } else if begins("# libevl version") || begins("# clock gravity:") {
        Some(Format::Latmus)
    } else if begins("# ----lat min|") {
        Some(Format::XenomaiGnuplot)
    } else if begins("RTH|    lat min|") || begins("RTAI testsuite") {
        Some(Format::RtaiText)
    } else if begins("RTT|") && has(&["us period", ", CPU"]) || begins("connecting to latmon at ") {
        Some(Format::LatmusText)
    } else if begins("RTH|----")
        || begins("RTD|")
        || begins("RTS|")
        || begins("== Sampling period:")
    {
        Some(Format::XenomaiText)
    } else if crate::hwlatdetect::begins(line) {
        Some(Format::Hwlatdetect)
    } else if begins("core_i:") {
        Some(Format::Sysjitter)
    } else if crate::percentiles::begins(line) {
        Some(Format::HdrHistogram)
    } else if crate::rtla_top::begins(line) {
        Some(Format::RtlaTop)
    } else if crate::rtla_analysis::begins(line).is_some() {
        Some(Format::RtlaAnalysis)
    } else if crate::latency_trace::begins(line).is_some() {
        Some(Format::LatencyTrace)
    } else if has(&["stress-ng:", "cyclic:"]) {
        Some(Format::StressNg)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_are_listed() {
        for f in Format::ALL {
            assert_eq!(f.name().parse(), Ok(*f));
            assert!(!f.description().is_empty() && Format::list().contains(f.name()));
        }
        assert!(
            "nonsense".parse::<Format>().is_err_and(|e| e.to_string().contains("cyclictest-json"))
        );
    }

    #[test]
    fn what_is_nearly_a_format_gets_advice() {
        for (text, advice) in [
            ("", "empty"),
            ("T: 0 ( 2481) A: 0 C: 216 Min: 15 Avg: 37 Max: 409", "results.json"),
            ("stress-ng-version: 0.15", "standard output"),
            ("{\"cmdline:\": \"hackbench -l 3\"}", "hackbench"),
            ("<html>", "web page"),
            ("<x>", "rteval"),
            ("words", "no format"),
            ("\0\0", "binary"),
        ] {
            let got = Format::detect(text.as_bytes()).unwrap_err().to_string();
            assert!(got.contains(advice), "{text}: {got}");
        }
    }
}
