// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces as text, as people post them: who or what made something late, in the words of [`crate::blame`].
//!
//! ```text
//! text ─► lines ─► latency ─► section           irqsoff, preemptoff, preemptirqsoff, wakeup, wakeup_rt, wakeup_dl
//!             ├──► graph ─► graph_section       function_graph
//!             ├──► record, fields ─► follow     events: the kernel's text, trace-cmd report, perf script, babeltrace2
//!             ├──► timehist                     perf sched timehist
//!             └──► auto_analysis                rtla
//! ```
//!
//! Units: ns. A text is read line by line, and memory does not grow with it. One text may have several traces. What is not
//! understood is counted and told, and a text that is cut gives what it has, with a sentence about it.
//! Not here: files of trace-cmd (`crate::dat`) and of perf (`crate::perf`).

mod auto_analysis;
mod babeltrace;
mod fields;
mod follow;
mod graph;
mod graph_section;
mod latency;
mod lines;
mod record;
mod section;
mod stack;
mod state;
mod timehist;

use std::io::BufRead;

use serde::Serialize;
use tailbound_core::blame::{BlameRecord, KernelKind};
use tailbound_core::printable::excerpt;
use tailbound_core::units::grouped;

use crate::blame::{BlameSelection, BlameSummary, Ground, WatchFilter};
use crate::dat;
use auto_analysis::Analysis;
use follow::EventText;
use graph::{Graph, GraphItem};
use latency::{LatencyKind, LatencyTrace};
use lines::TextLines;
use state::Columns;
use timehist::Timehist;

/// How much of a file is looked at to know what it is.
pub const START_BYTES: usize = 64 * 1024;
/// Lines of it.
const START_LINES: usize = 2000;
/// Most traces of one text that are told apart.
const TRACES_MAX: usize = 64;
/// Longest text of a file that is shown.
const SHOWN_MAX: usize = 60;

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TextFormat {
    /// A latency tracer's.
    LatencyTrace,
    /// Calls of functions with their lengths.
    FunctionGraph,
    /// Events: the kernel's own text, `trace-cmd report`, `perf script`, `babeltrace2`.
    Events,
    /// `perf sched timehist`.
    Timehist,
    /// rtla's auto-analysis.
    AutoAnalysis,
}

impl TextFormat {
    fn words(self) -> &'static str {
        match self {
            Self::LatencyTrace => "the text of a latency tracer",
            Self::FunctionGraph => "the text of the tracer function_graph",
            Self::Events => "a trace of events as text",
            Self::Timehist => "a table of perf sched timehist",
            Self::AutoAnalysis => "the auto-analysis of rtla",
        }
    }
}

/// What the first bytes of a file are, where this module reads it.
#[must_use]
pub fn recognized(start: &[u8]) -> Option<TextFormat> {
    let text = String::from_utf8_lossy(start.get(..START_BYTES.min(start.len()))?);
    if text.contains('\0') {
        return None;
    }
    let columns = Columns::default();
    let mut records = 0u32;
    for line in text.lines().take(START_LINES).map(lines::bare) {
        if let Some(format) = begins(line) {
            return Some(format);
        }
        // One line may look like a record by accident.
        records = records.saturating_add(u32::from(is_event(line, &columns)));
        if records >= 2 {
            return Some(TextFormat::Events);
        }
    }
    // A text of a single record, and nothing else.
    let first = text.lines().map(lines::bare).find(|l| !l.is_empty())?;
    is_event(first, &columns).then_some(TextFormat::Events)
}

/// Is it a record of an event, whoever printed it?
fn is_event(line: &str, columns: &Columns) -> bool {
    let record = record::timed(line, columns).or_else(|| record::latency(line, columns));
    record.is_some_and(|r| r.event().is_some()) || babeltrace::parsed(line).is_some()
}

/// What a line begins.
fn begins(line: &str) -> Option<TextFormat> {
    let line = line.trim();
    if let Some(tracer) = line.strip_prefix("# tracer:") {
        return Some(match tracer.trim() {
            "function_graph" => TextFormat::FunctionGraph,
            name if LatencyKind::of(name).is_some() => TextFormat::LatencyTrace,
            _ => TextFormat::Events,
        });
    }
    // The line `# tracer:` may have been left out.
    if line.starts_with('#') && tracer_of_version(line).is_some() {
        return Some(TextFormat::LatencyTrace);
    }
    if auto_analysis::begins(line).is_some() {
        return Some(TextFormat::AutoAnalysis);
    }
    timehist::begins(line).then_some(TextFormat::Timehist)
}

/// `# irqsoff latency trace v1.1.5 on 6.1.0`
fn tracer_of_version(line: &str) -> Option<(LatencyKind, &str)> {
    let name = line.trim_start_matches('#').split_once(" latency trace v")?.0.trim();
    Some((LatencyKind::of(name)?, name))
}

/// What to do about a trace that is no text, by its first bytes.
#[must_use]
pub fn binary_advice(start: &[u8]) -> Option<&'static str> {
    const CTF: [[u8; 4]; 2] = [[0xc1, 0x1f, 0xfc, 0xc1], [0xc1, 0xfc, 0x1f, 0xc1]];
    let ctf = CTF.iter().any(|magic| start.starts_with(magic)) || start.starts_with(b"/* CTF 1");
    ctf.then_some(
        "it is of a trace in CTF (LTTng), which is binary: run `babeltrace2 FOLDER > FILE.txt` and give FILE.txt",
    )
}

/// Why nothing can be said of a text.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// It contradicts itself.
    #[error("line {line}: {}. The text is damaged: copy it again", excerpt(.reason, SHOWN_MAX))]
    Wrong {
        /// Where.
        line: u64,
        /// What.
        reason: String,
    },
    /// It has no record.
    #[error(
        "no record of a trace can be read in its {} lines: it was cut off, or nothing was recorded",
        grouped(*.lines)
    )]
    Empty {
        /// How many lines it has.
        lines: u64,
    },
    /// Events without which nothing can be said are not in it.
    #[error(
        "it has {} records and no {}, without which no wake-up can be followed. Record with `{}`",
        grouped(*.records),
        .missing.join(" and no "),
        dat::RECORD
    )]
    Lacking {
        /// Which, `SYSTEM:NAME`.
        missing: Vec<String>,
        /// Records that were read.
        records: u64,
    },
    /// It cannot be read.
    #[error("reading behind line {line}: {reason}")]
    Read {
        /// The last line that was read.
        line: u64,
        /// Why.
        reason: String,
    },
}

/// What is asked of a text.
#[derive(Clone, Debug)]
pub struct TextRequest {
    /// Whose wake-ups, where a trace has those of several threads.
    pub watched: WatchFilter,
    /// Which of them.
    pub wanted: BlameSelection,
    /// What is known of the machine.
    pub ground: Ground,
}

/// What a text is and how much of it was read: for scripts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TextFacts {
    /// What it is.
    pub format: TextFormat,
    /// The kernel it is of, where it says.
    pub kernel: Option<String>,
    /// Lines that were read.
    pub lines: u64,
    /// Records or rows in them.
    pub records: u64,
    /// Traces in it.
    pub traces: usize,
    /// It was read to its end.
    pub whole: bool,
}

/// What a text told.
#[derive(Clone, Debug)]
pub struct TextBlame {
    /// Late samples, the latest first.
    pub records: Vec<BlameRecord>,
    /// The kernel that they are of, where the text says so, and of one alone.
    pub kernel: KernelKind,
    /// Threads that were followed, where it has several.
    pub found: Option<BlameSummary>,
    /// What a reader must know.
    pub notes: Vec<String>,
    /// What it is.
    pub facts: TextFacts,
}

impl TextBlame {
    /// Where the answer comes from, in a sentence.
    #[must_use]
    pub fn origin(&self) -> String {
        let facts = &self.facts;
        let kernel = facts.kernel.as_deref().map(|k| format!(", Linux {}", excerpt(k, SHOWN_MAX)));
        format!(
            "From {}{}: {}, {}.",
            facts.format.words(),
            kernel.unwrap_or_default(),
            counted(facts.lines, "line"),
            counted(facts.records, "record")
        )
    }
}

/// The trace that lines belong to.
#[derive(Debug)]
enum Open {
    None,
    Latency(Box<LatencyTrace>),
    Graph(Box<(Graph, Columns)>),
    Events(Box<EventText>),
    Timehist(Box<Timehist>),
    Analysis(Analysis),
}

/// A text under way.
#[derive(Debug)]
struct Reader {
    request: TextRequest,
    open: Open,
    records: Vec<BlameRecord>,
    /// Of each trace that had one.
    kernels: Vec<KernelKind>,
    found: Option<BlameSummary>,
    notes: Vec<String>,
    facts: TextFacts,
    /// A trace of events behind another one is not read.
    skips: bool,
    /// Why nothing can be said of one of its traces.
    failed: Option<TextError>,
}

/// Reads `source`, a text of `format`, as far as `go_on`, which is given the bytes so far, says.
///
/// # Errors
/// [`TextError`].
pub fn read(
    format: TextFormat,
    source: impl BufRead,
    request: TextRequest,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<TextBlame, TextError> {
    let facts = TextFacts { format, kernel: None, lines: 0, records: 0, traces: 0, whole: true };
    let mut reader = Reader {
        request,
        open: Open::None,
        records: Vec::new(),
        kernels: Vec::new(),
        found: None,
        notes: Vec::new(),
        facts,
        skips: false,
        failed: None,
    };
    let mut lines = TextLines::new(source);
    loop {
        let number = lines.number.saturating_add(1);
        match lines.next() {
            Ok(Some(line)) => reader.line(line, number)?,
            Ok(None) => break,
            Err(e) => {
                let reason = e.to_string();
                return Err(TextError::Read { line: lines.number, reason });
            }
        }
        if number.is_multiple_of(4096) && !go_on(lines.bytes) {
            reader.facts.whole = false;
            reader.notes.push("it was ended before the whole text was read".to_owned());
            break;
        }
    }
    reader.facts.lines = lines.number;
    if lines.open_end && lines.number > 0 {
        reader
            .notes
            .push(format!("line {}, the last one, has no end: it may be cut there", lines.number));
    }
    reader.finish()
}

impl Reader {
    fn line(&mut self, line: &str, number: u64) -> Result<(), TextError> {
        self.facts.lines = number;
        if self.skips || self.begins(line, number)? {
            return Ok(());
        }
        match &mut self.open {
            Open::Latency(trace) => trace.line(line, number)?,
            Open::Graph(graph) => {
                let (graph, columns) = &mut **graph;
                if line.trim_start().starts_with('#') {
                    columns.header(line);
                } else if let GraphItem::Ended(tree) = graph.line(line, columns) {
                    let sample = graph_section::sample(&tree);
                    self.keep(sample);
                }
            }
            Open::Events(events) => events.line(line, number),
            Open::Timehist(table) => table.line(line),
            Open::Analysis(analysis) => {
                analysis.line(line);
            }
            Open::None => {
                let columns = Columns::default();
                if is_event(line, &columns) && self.found.is_none() {
                    let mut events = EventText::new(self.request.clone());
                    events.line(line, number);
                    self.open = Open::Events(Box::new(events));
                }
            }
        }
        Ok(())
    }

    /// Begins another trace where `line` says so.
    fn begins(&mut self, line: &str, number: u64) -> Result<bool, TextError> {
        let Some(format) = begins(line) else { return Ok(false) };
        let version = tracer_of_version(line.trim());
        if let (Some(_), Open::Latency(trace)) = (version, &self.open)
            && trace.header.kernel.is_none()
        {
            return Ok(false);
        }
        self.close();
        if self.facts.traces >= TRACES_MAX || (self.found.is_some() && follows(format)) {
            self.skips = true;
            self.notes.push(format!(
                "another trace begins in line {number}: it is not in this answer, split the file"
            ));
            return Ok(true);
        }
        self.open = match format {
            TextFormat::LatencyTrace => {
                let name = line.trim().strip_prefix("# tracer:").map(str::trim);
                let named = name.and_then(|name| Some((LatencyKind::of(name)?, name)));
                let Some((kind, name)) = named.or(version) else { return Ok(false) };
                let mut trace = LatencyTrace::new(kind, name);
                if named.is_none() {
                    trace.line(line, number)?;
                }
                Open::Latency(Box::new(trace))
            }
            TextFormat::FunctionGraph => Open::Graph(Box::default()),
            TextFormat::Events => Open::Events(Box::new(EventText::new(self.request.clone()))),
            TextFormat::Timehist => {
                Open::Timehist(Box::new(Timehist::new(line, self.request.clone())))
            }
            TextFormat::AutoAnalysis => {
                Open::Analysis(Analysis::new(auto_analysis::begins(line).unwrap_or(0)))
            }
        };
        Ok(true)
    }

    /// Keeps a sample if it is among the latest that were asked for.
    fn keep(&mut self, record: BlameRecord) {
        let wanted = self.request.wanted;
        if record.latency_ns <= wanted.above_ns {
            return;
        }
        let place = self.records.partition_point(|r| r.latency_ns >= record.latency_ns);
        if place < wanted.most {
            self.records.insert(place, record);
            self.records.truncate(wanted.most);
        }
    }

    /// Ends the trace that is open.
    fn close(&mut self) {
        let open = std::mem::replace(&mut self.open, Open::None);
        self.kernels.extend(match &open {
            Open::None => None,
            Open::Latency(trace) => Some(trace.header.kind),
            _ => Some(KernelKind::Unknown),
        });
        self.facts.traces =
            self.facts.traces.saturating_add(usize::from(!matches!(open, Open::None)));
        match open {
            Open::None => {}
            Open::Latency(trace) => self.close_latency(&trace),
            Open::Graph(graph) => self.close_graph(&graph.0),
            Open::Events(events) => {
                self.count(events.records);
                match events.finish(self.facts.lines) {
                    Ok((found, notes)) => {
                        self.followed(found);
                        self.notes.extend(notes);
                    }
                    Err(e) => self.failed = self.failed.take().or(Some(e)),
                }
            }
            Open::Timehist(table) => {
                self.count(table.rows);
                self.notes.extend(table.limits());
                if table.passed_over > 0 {
                    let n = grouped(table.passed_over);
                    self.notes.push(format!("{n} rows could not be read and were passed over"));
                }
                if table.rows > 0 {
                    self.followed(table.found);
                }
            }
            Open::Analysis(analysis) => {
                if let Some((record, notes)) = analysis.sample() {
                    self.count(1);
                    self.keep(record);
                    self.notes.extend(notes);
                }
            }
        }
    }

    fn count(&mut self, records: u64) {
        self.facts.records = self.facts.records.saturating_add(records);
    }

    fn followed(&mut self, mut found: BlameSummary) {
        std::mem::take(&mut found.records).into_iter().for_each(|r| self.keep(r));
        self.found = Some(found);
    }

    fn close_latency(&mut self, trace: &LatencyTrace) {
        self.count(trace.records);
        self.facts.kernel = self.facts.kernel.take().or_else(|| trace.header.kernel.clone());
        let Some(sample) = trace.sample() else {
            let name = excerpt(&trace.tracer, SHOWN_MAX);
            self.notes.push(format!("the {name} trace has neither a latency nor records"));
            return;
        };
        self.keep(sample);
        self.notes.extend(trace.limits());
    }

    fn close_graph(&mut self, graph: &Graph) {
        self.count(graph.lines);
        let mut say = |is: bool, text: String| self.notes.extend(is.then_some(text));
        say(
            graph.lines > 0,
            "function_graph tells how long functions took: whether a thread waited for them is not in the trace".to_owned(),
        );
        let parted = graph.parted.saturating_add(graph.unfinished());
        say(parted > 0, format!("{} calls have no begin or no end in the text", grouped(parted)));
    }

    fn finish(mut self) -> Result<TextBlame, TextError> {
        self.close();
        match self.failed.take() {
            Some(e) if self.found.is_none() && self.records.is_empty() => return Err(e),
            Some(e) => self.notes.push(format!("of another trace in it nothing can be said: {e}")),
            None if self.facts.records == 0 => {
                return Err(TextError::Empty { lines: self.facts.lines });
            }
            None => {}
        }
        let Self { records, kernels, found, mut notes, facts, .. } = self;
        let first = kernels.first().copied().unwrap_or_default();
        let kernel = if kernels.iter().all(|k| *k == first) { first } else { KernelKind::Unknown };
        let mut told: Vec<String> = Vec::new();
        notes.retain(|n| {
            !told.contains(n) && {
                told.push(n.clone());
                true
            }
        });
        Ok(TextBlame { records, kernel, found, notes, facts })
    }
}

/// `1 line`, `12 lines`
fn counted(n: u64, what: &str) -> String {
    let end = if n == 1 { "" } else { "s" };
    format!("{} {what}{end}", grouped(n))
}

/// Does a text of `format` have threads that are followed?
fn follows(format: TextFormat) -> bool {
    matches!(format, TextFormat::Events | TextFormat::Timehist)
}
