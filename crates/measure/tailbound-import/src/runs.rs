// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs in one file: where each begins, for every format that is read as a whole.
//!
//! Units: bytes and lines of the file. A run begins at the line that its tool writes once, at its beginning, if figures
//! stand between it and the one before, or where figures cannot go on from those above (`screens`); of JSON at the next document.
//! Not here: cyclictest's text, in which figures tell runs apart (`cyclictest::runs`); streams, which have no such lines.

use crate::early::{Kind, kind};
use crate::format::Format;
use crate::screens::{ScreenStep, Screens};
use crate::text::Lines;
use crate::{cyclictest, fields, hwlatdetect, latency_trace, pairs, percentiles, rtla_top};

/// Most runs of a file: more is a stream of something else.
pub(crate) const RUNS_MAX: usize = 256;

/// One run of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// The line it begins in, from 1.
    pub(crate) line: u64,
    /// The form in which it tells the most.
    pub(crate) format: Format,
}

/// Who says which format a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormatOrigin {
    /// The person: nothing else is to be read.
    Named,
    /// The file.
    Detected,
}

impl FormatOrigin {
    /// Where a person may name it.
    pub(crate) fn of(named: Option<Format>) -> Self {
        named.map_or(Self::Detected, |_| Self::Named)
    }
}

/// The runs of `bytes`.
pub(crate) fn split(format: Format, bytes: &[u8], origin: FormatOrigin) -> Vec<Piece> {
    let whole = Piece { from: 0, to: bytes.len(), line: 1, format };
    let found = match format {
        Format::CyclictestHistogram | Format::CyclictestStatus | Format::CyclictestVerbose => {
            cyclictest::runs::split(format, bytes, origin)
        }
        _ if matches!(kind(format), Kind::Document(b'{', _)) => {
            of_their_tools(documents(format, bytes), bytes, origin)
        }
        _ => by_beginnings(format, bytes),
    };
    if found.is_empty() { vec![whole] } else { found }
}

/// What a line is to the cutting.
enum Mark {
    /// A tool writes it once, before its figures.
    Begin,
    /// Figures.
    Figure,
    Other,
}

fn mark(format: Format, line: &str) -> Mark {
    let digit = line.starts_with(|c: char| c.is_ascii_digit());
    let begins = |words: &[&str]| words.iter().any(|w| line.starts_with(w));
    let (begin, figure) = match format {
        Format::RtlaTimerlat => {
            (begins(&["# RTLA timerlat histogram"]), digit || begins(&["count"]))
        }
        Format::RtlaOsnoise => (begins(&["# RTLA osnoise histogram"]), digit || begins(&["count"])),
        Format::OslatText => (begins(&["oslat V", "Core:"]), begins(&["Maximum:", "Max Latency:"])),
        Format::Latmus => (begins(&["# test started on"]), digit),
        Format::XenomaiText => {
            (begins(&["== Sampling period:", "warming up"]), begins(&["RTD|", "RTS|"]))
        }
        Format::LatmusText => {
            (begins(&["Received broadcast", "warming up"]), begins(&["RTD|", "RTS|"]))
        }
        Format::RtaiText => (begins(&["RTAI testsuite"]), begins(&["RTD|"])),
        Format::XenomaiGnuplot => (begins(&["# "]) && line.contains(" us period,"), digit),
        Format::StressNg => (
            line.contains("stress-ng: info:")
                && (line.contains("] setting to a ") || line.contains("] dispatching hogs:")),
            line.contains("cyclic:") && (line.contains("min:") || line.contains("mean:")),
        ),
        Format::Hwlatdetect => {
            (hwlatdetect::begins(line), begins(&["Max Latency", "Samples recorded", "ts:"]))
        }
        Format::Sysjitter => (begins(&["core_i:"]), begins(&["int_n:", "int_max(ns):"])),
        Format::HdrHistogram => (percentiles::begins(line), digit),
        Format::LatencyTrace => (
            begins(&["# tracer:"]) || latency_trace::begins(line).is_some(),
            line.trim_start_matches(['#', ' ']).starts_with("latency:"),
        ),
        Format::RtlaAnalysis => (begins(&["rtla timerlat hit stop tracing"]), false),
        _ => (false, false),
    };
    match (begin || typed(format, line), figure) {
        (true, _) => Mark::Begin,
        (false, true) => Mark::Figure,
        _ => Mark::Other,
    }
}

/// Does a shell show the command line of the format's tool in `line`?
fn typed(format: Format, line: &str) -> bool {
    let tools: &[&str] = match format {
        Format::Hwlatdetect => &["hwlatdetect"],
        Format::CyclicdeadlineText => &["cyclicdeadline"],
        Format::RtTestsText => &pairs::PROGRAMS,
        Format::XenomaiText => &["latency"],
        Format::LatmusText => &["latmus"],
        Format::Sysjitter => &["sysjitter"],
        Format::RtlaTop | Format::RtlaAnalysis => return rtla_top::is_typed(line),
        _ => return false,
    };
    fields::typed(line, tools).is_some()
}

fn by_beginnings(format: Format, bytes: &[u8]) -> Vec<Piece> {
    let mut runs: Vec<Piece> = Vec::new();
    let (mut begin, mut figures) = (None, false);
    let mut screens = Screens::new(format);
    let mut at = 0;
    for (n, whole) in (1u64..).zip(bytes.split_inclusive(|b| *b == b'\n')) {
        let here = (at, n);
        at += whole.len();
        let Some(Ok((_, line))) = Lines::new(whole).next() else { continue };
        let line = line.trim();
        let anew = match (mark(format, line), screens.see(line, here)) {
            (Mark::Begin, _) | (_, ScreenStep::Begin) => {
                begin = begin.or(Some(here));
                screens.begin();
                continue;
            }
            (_, ScreenStep::Anew(from)) => Some(from),
            (Mark::Figure, _) | (_, ScreenStep::GoesOn) => None,
            (Mark::Other, ScreenStep::Nothing) => continue,
        };
        // A beginning without figures behind it is no run.
        if let Some((from, line)) = begin.take().or(anew).filter(|_| figures) {
            let first = Piece { from: 0, to: from, line: 1, format };
            match runs.last_mut() {
                Some(last) => last.to = from,
                None => runs.push(first),
            }
            runs.push(Piece { from, to: bytes.len(), line, format });
            screens.cut();
        }
        figures = true;
    }
    runs
}

/// Documents, each read as what it is; where a format was named, those of it alone.
fn of_their_tools(mut documents: Vec<Piece>, bytes: &[u8], origin: FormatOrigin) -> Vec<Piece> {
    let of = |p: &Piece| {
        let text = bytes.get(p.from..p.to).unwrap_or_default();
        Format::detect(text).ok().filter(|f| matches!(kind(*f), Kind::Document(b'{', _)))
    };
    let fits = |p: &Piece| of(p).is_none_or(|found| found == p.format);
    if origin == FormatOrigin::Named && documents.iter().any(fits) {
        documents.retain(fits);
    } else {
        documents.iter_mut().for_each(|p| p.format = of(p).unwrap_or(p.format));
    }
    documents
}

/// The documents of a text in which one follows the other.
fn documents(format: Format, bytes: &[u8]) -> Vec<Piece> {
    let mut runs = Vec::new();
    let (mut depth, mut quoted, mut escaped) = (0u64, false, false);
    let (mut from, mut line, mut n) = (0, 1, 1);
    for (i, b) in bytes.iter().enumerate() {
        n += u64::from(*b == b'\n');
        match b {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' | b'[' => {
                if depth == 0 && !runs.is_empty() {
                    (from, line) = (i, n);
                }
                depth += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    runs.push(Piece { from, to: i + 1, line, format });
                    from = i + 1;
                }
            }
            _ => {}
        }
    }
    let rest = bytes.get(from..).unwrap_or_default();
    if runs.len() > 1 && !rest.trim_ascii().is_empty() {
        runs.push(Piece { from, to: bytes.len(), line, format });
    }
    // What is wrong in a single document is the reader's to tell.
    if runs.len() > 1 { runs } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(format: Format, text: &str) -> Vec<(u64, Format)> {
        split(format, text.as_bytes(), FormatOrigin::Detected)
            .iter()
            .map(|p| (p.line, p.format))
            .collect()
    }

    #[test]
    fn a_run_begins_where_its_tool_begins_again() {
        let oslat = "oslat V 2.4\n Maximum: 3\noslat V 2.4\nMaximum: 3\n";
        assert_eq!(lines(Format::OslatText, &oslat.replace(" Max", "Max")).len(), 2);
        let ng = "stress-ng: info:  [1] setting to a 3 s\nstress-ng: info:  [1] dispatching hogs: 1 cyclic\nstress-ng: info:  [2] cyclic:   min: 1 ns, max: 2 ns\n";
        assert_eq!(lines(Format::StressNg, ng).len(), 1);
        assert_eq!(
            lines(Format::StressNg, &ng.repeat(3)).iter().map(|p| p.0).collect::<Vec<_>>(),
            [1, 4, 7]
        );
        let two = "{\"a\": \"}{\\\"\"}\n{\"b\": [1]}\n";
        assert_eq!(
            lines(Format::CyclictestJson, two).iter().map(|p| p.0).collect::<Vec<_>>(),
            [1, 2]
        );
        assert_eq!(lines(Format::CyclictestJson, "{\"a\": 1} trailing").len(), 1);
    }

    #[test]
    fn status_lines_and_histograms_of_cyclictest() {
        let t = |tid: u32, cycles: u64, max: u64| {
            format!(
                "T: 0 ({tid:5}) P:80 I:1000 C:{cycles:7} Min:      3 Act:    4 Avg:    4 Max:{max:8}\n"
            )
        };
        let h = |max: u64| {
            format!(
                "# Histogram\n000003 000005\n{max:06} 000001\n# Total: 000000006\n# Min Latencies: 00003\n# Avg Latencies: 00003\n# Max Latencies: {max:05}\n# Histogram Overflows: 00000\n"
            )
        };
        let dma = "# /dev/cpu_dma_latency set to 0us\n".to_owned();
        let (status, histogram) = (Format::CyclictestStatus, Format::CyclictestHistogram);
        for (text, want) in [
            ([t(7, 10, 9), t(7, 20, 9)].concat(), vec![(1, status)]),
            ([t(7, 10, 9), t(7, 10, 12)].concat(), vec![(1, status), (2, status)]),
            ([t(7, 10, 9), t(8, 20, 9)].concat(), vec![(1, status), (2, status)]),
            ([t(0, 20, 9), t(0, 10, 9)].concat(), vec![(1, status), (2, status)]),
            ([t(7, 10, 9), dma.clone(), t(7, 20, 9)].concat(), vec![(1, status), (2, status)]),
            ([t(7, 6, 9), h(9)].concat(), vec![(1, histogram)]),
            ([h(9), t(7, 6, 9)].concat(), vec![(1, histogram)]),
            ([t(7, 6, 12), h(9)].concat(), vec![(1, status), (2, histogram)]),
            ([h(9), h(9)].concat(), vec![(1, histogram), (9, histogram)]),
            ([dma.clone(), t(7, 6, 9), h(9), dma, t(9, 6, 8), h(8), t(10, 6, 5)].concat(), vec![(1, histogram), (11, histogram), (21, status)]),
            ("       0:       0:      45\n       0:       1:      45\n       0:       0:      45\n".to_owned(), vec![(1, Format::CyclictestVerbose), (3, Format::CyclictestVerbose)]),
        ] {
            assert_eq!(lines(status, &text), want, "{text}");
        }
    }
}
