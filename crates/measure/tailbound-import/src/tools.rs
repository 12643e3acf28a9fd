// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several tools in one text: in which lines each is, and the text without all but one.
//!
//! Units: lines from 1. A stretch begins at a line that only its tool writes, or at its command line, and goes on to that of
//! another tool. stress-ng marks each of its lines, so what stands between them is of the tool before.
//! Other tools' lines become empty: lines keep their numbers.
//! Limits: a text of more than 16 MiB is not searched.
//! Not here: several runs of one tool (`runs`); loads such as hackbench, which measure no latencies.

use crate::cyclictest::told;
use crate::format::{self, Format};
use crate::text::Lines;
use crate::{fields, pairs, rtla_top};

/// A longer text is not searched.
const LONGEST: usize = 16 << 20;
/// Most stretches that are named.
const NAMED_MAX: usize = 8;

/// A program whose output is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    Cyclictest,
    Oslat,
    Pairs,
    Cyclicdeadline,
    Hwlatdetect,
    RtlaTop,
    RtlaTimerlat,
    RtlaOsnoise,
    /// Its auto-analysis without figures before it.
    RtlaAnalysis,
    Tracer,
    Xenomai,
    Rtai,
    Latmus,
    Sysjitter,
    HdrHistogram,
    StressNg,
    /// A document of any tool.
    Json,
}

/// Lines of one tool, one behind the other.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    tool: Tool,
    /// In which form it would be read.
    format: Format,
    first: u64,
    last: u64,
    /// A line of it is figures or their heading; a command line alone may be somebody's words.
    figures: bool,
}

/// A text of several tools, of which one is read.
#[derive(Debug)]
pub(crate) struct Apart {
    /// Without the lines of the others.
    pub(crate) text: Vec<u8>,
    /// Which were found where, and how to read another.
    pub(crate) said: String,
}

impl Tool {
    const fn of(format: Format) -> Option<Self> {
        Some(match format {
            Format::CyclictestHistogram | Format::CyclictestStatus | Format::CyclictestVerbose => {
                Self::Cyclictest
            }
            Format::OslatText => Self::Oslat,
            Format::RtTestsText => Self::Pairs,
            Format::CyclicdeadlineText => Self::Cyclicdeadline,
            Format::Hwlatdetect => Self::Hwlatdetect,
            Format::RtlaTop => Self::RtlaTop,
            Format::RtlaTimerlat => Self::RtlaTimerlat,
            Format::RtlaOsnoise => Self::RtlaOsnoise,
            Format::RtlaAnalysis => Self::RtlaAnalysis,
            Format::LatencyTrace => Self::Tracer,
            Format::XenomaiText | Format::XenomaiGnuplot => Self::Xenomai,
            Format::RtaiText => Self::Rtai,
            Format::Latmus | Format::LatmusText => Self::Latmus,
            Format::Sysjitter => Self::Sysjitter,
            Format::HdrHistogram => Self::HdrHistogram,
            Format::StressNg => Self::StressNg,
            _ => return None,
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Cyclictest => "cyclictest",
            Self::Oslat => "oslat",
            Self::Pairs => "pmqtest or its kin",
            Self::Cyclicdeadline => "cyclicdeadline",
            Self::Hwlatdetect => "hwlatdetect",
            Self::RtlaTop => "rtla timerlat top",
            Self::RtlaTimerlat => "rtla timerlat hist",
            Self::RtlaOsnoise => "rtla osnoise hist",
            Self::RtlaAnalysis => "rtla's auto-analysis",
            Self::Tracer => "a latency tracer",
            Self::Xenomai => "Xenomai's latency",
            Self::Rtai => "RTAI's latency",
            Self::Latmus => "latmus",
            Self::Sysjitter => "sysjitter",
            Self::HdrHistogram => "HdrHistogram",
            Self::StressNg => "stress-ng",
            Self::Json => "a tool as JSON",
        }
    }

    /// Whose a line is that `self` and another tool may write.
    const fn shared(self, other: Self) -> Self {
        match (self, other) {
            // Their rows of seconds look alike.
            (Self::Rtai | Self::Latmus, Self::Xenomai)
            // An analysis is of the run that it stands behind.
            | (Self::RtlaTop | Self::RtlaTimerlat | Self::RtlaOsnoise, Self::RtlaAnalysis) => self,
            _ => other,
        }
    }
}

/// What a line is of.
#[derive(Clone, Copy, Debug)]
struct Sign {
    tool: Tool,
    format: Format,
    figures: bool,
}

/// The tool whose line it is, behind those of `current`.
fn sign(line: &str, open: Option<&Stretch>) -> Option<Sign> {
    let current = open.map(|s| s.tool);
    let json = line == "{" || line.starts_with("\"file_version\"");
    if json || current == Some(Tool::Json) && (line.starts_with('"') || line == "}") {
        let (tool, format) = (Tool::Json, Format::CyclictestJson);
        return Some(Sign { tool, format, figures: line != "{" && json });
    }
    let histogram = line.starts_with("# Histogram") || line.starts_with("# Max Latencies:");
    if histogram && current == Some(Tool::Cyclicdeadline) {
        let (tool, format) = (Tool::Cyclicdeadline, Format::CyclicdeadlineText);
        return Some(Sign { tool, format, figures: true });
    }
    if let Some(format) = format::of_line(line) {
        let numbers = format == Format::CyclictestVerbose;
        let found = Tool::of(format)?;
        // Numbers between colons are of anything.
        let doubtful = numbers && current.is_some_and(|c| c != Tool::Cyclictest);
        let certain = line.starts_with("== ") || open.is_some_and(|s| s.format == Format::Latmus);
        let found = current.filter(|_| !certain).map_or(found, |c| c.shared(found));
        let format = match found {
            Tool::Rtai => Format::RtaiText,
            Tool::Latmus if format == Format::XenomaiText => Format::LatmusText,
            _ => format,
        };
        return (!doubtful).then_some(Sign { tool: found, format, figures: true });
    }
    let format = announced(line)?;
    Some(Sign { tool: Tool::of(format)?, format, figures: false })
}

/// The format of the figures that a line announces: a command line, or what a tool writes before them.
fn announced(line: &str) -> Option<Format> {
    if !line.bytes().any(|b| b.is_ascii_alphabetic()) {
        return None;
    }
    let begins = |words: &[&str]| words.iter().any(|w| line.starts_with(w));
    if begins(&["# /dev/cpu_dma_latency set", "policy: "]) || told::command(line).is_some() {
        return Some(Format::CyclictestStatus);
    }
    let heads: [(&[&str], Format); 5] = [
        (&["INFO: interval:"], Format::CyclicdeadlineText),
        (&["# test started on"], Format::Latmus),
        (&["warming up on CPU", "Received broadcast"], Format::LatmusText),
        (&["warming up..."], Format::XenomaiText),
        (&["# tracer:"], Format::LatencyTrace),
    ];
    if let Some((_, format)) = heads.iter().find(|(words, _)| begins(words)) {
        return Some(*format);
    }
    if line.contains("stress-ng: info:") {
        return Some(Format::StressNg);
    }
    if line == "Timer Latency" {
        return Some(Format::RtlaTop);
    }
    if begins(&["# "]) && line.contains(" us period,") {
        return Some(Format::XenomaiGnuplot);
    }
    let typed = |tools: &[&str]| fields::typed(line, tools).is_some();
    let commands: [(&[&str], Format); 6] = [
        (&["cyclicdeadline"], Format::CyclicdeadlineText),
        (&["hwlatdetect"], Format::Hwlatdetect),
        (&["oslat"], Format::OslatText),
        (&["latmus"], Format::LatmusText),
        (&["sysjitter"], Format::Sysjitter),
        (&pairs::PROGRAMS, Format::RtTestsText),
    ];
    let format = commands.iter().find(|(tools, _)| typed(tools)).map(|(_, f)| *f);
    let rtla = || {
        let osnoise = line.contains("osnoise");
        let hist = if osnoise { Format::RtlaOsnoise } else { Format::RtlaTimerlat };
        let screen = !osnoise && line.contains(" top");
        rtla_top::is_typed(line).then_some(if screen { Format::RtlaTop } else { hist })
    };
    format.or_else(rtla)
}

/// A text in which, beside the tool of `format`, others are; `None` where that is the only one, or is not in it.
pub(crate) fn apart(format: Format, text: &[u8]) -> Option<Apart> {
    let read = Tool::of(format).filter(|_| text.len() <= LONGEST)?;
    let stretches = stretches(text);
    if stretches.iter().all(|s| s.tool != read) || stretches.iter().all(|s| s.tool == read) {
        return None;
    }
    let mut out = Vec::with_capacity(text.len());
    let mut at = stretches.iter().peekable();
    // What stands before the first tool's figures is of them.
    let mut current = stretches.first().map_or(read, |s| s.tool);
    for (n, line) in (1u64..).zip(text.split_inclusive(|b| *b == b'\n')) {
        while let Some(next) = at.next_if(|s| s.first <= n) {
            current = next.tool;
        }
        if current == read {
            out.extend_from_slice(line);
        } else if line.ends_with(b"\n") {
            out.push(b'\n');
        }
    }
    Some(Apart { text: out, said: said(read, &stretches) })
}

fn stretches(text: &[u8]) -> Vec<Stretch> {
    let mut out: Vec<Stretch> = Vec::new();
    // The tool between whose lines those of stress-ng stand.
    let mut around: Option<Sign> = None;
    for (n, line) in Lines::new(text).filter_map(Result::ok) {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let current = out.last().map(|s| s.tool);
        let back = current == Some(Tool::StressNg) && !line.contains("stress-ng:");
        let found = sign(line, out.last()).or(around.filter(|_| back));
        match found {
            Some(Sign { tool, format, figures }) if Some(tool) != current => {
                let before = out.last().filter(|_| tool == Tool::StressNg);
                around =
                    before.map(|s| Sign { tool: s.tool, format: s.format, figures: s.figures });
                out.push(Stretch { tool, format, first: n, last: n, figures });
            }
            _ => out.last_mut().into_iter().for_each(|open| open.take(n, found)),
        }
    }
    joined(out)
}

impl Stretch {
    /// Takes in a line of it.
    fn take(&mut self, line: u64, sign: Option<Sign>) {
        self.last = line;
        let Some(Sign { format, figures, .. }) = sign else { return };
        // Status lines say less than a histogram, and an analysis less than the figures before it.
        let less = matches!(format, Format::CyclictestStatus | Format::RtlaAnalysis);
        if figures && !less {
            self.format = format;
        }
        self.figures |= figures;
    }
}

/// Without those that hold no figures: their lines are of the tool before.
fn joined(stretches: Vec<Stretch>) -> Vec<Stretch> {
    let mut out: Vec<Stretch> = Vec::new();
    for next in stretches {
        match out.last_mut() {
            Some(last) if !next.figures || last.tool == next.tool => {
                last.last = next.last;
                last.figures |= next.figures;
                let less = next.format == Format::CyclictestStatus;
                if next.figures && !less {
                    last.format = next.format;
                }
            }
            Some(last) if !last.figures => *last = Stretch { first: last.first, ..next },
            _ => out.push(next),
        }
    }
    out
}

/// `cyclictest (lines 1 to 14), hwlatdetect (lines 16 to 31)`, and how to read another.
fn said(read: Tool, stretches: &[Stretch]) -> String {
    let named = |s: &Stretch| format!("{} (lines {} to {})", s.tool.name(), s.first, s.last);
    let mut all: Vec<String> = stretches.iter().take(NAMED_MAX).map(named).collect();
    if stretches.len() > NAMED_MAX {
        all.push(format!("and {} more", stretches.len() - NAMED_MAX));
    }
    let mut others: Vec<String> = Vec::new();
    for s in stretches.iter().filter(|s| s.tool != read) {
        let way = if s.tool == Tool::Json {
            "a file with the JSON alone".to_owned()
        } else {
            format!("`--format {}`", s.format)
        };
        if !others.contains(&way) {
            others.push(way);
        }
    }
    format!(
        "The file holds the output of several tools: {}. Only that of {} was read; to read another: {}.",
        all.join(", "),
        read.name(),
        others.join(" or ")
    )
}
