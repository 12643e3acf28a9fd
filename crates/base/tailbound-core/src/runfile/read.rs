// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading run files back: each line once, straight into its record.
//!
//! Our own lines begin with their type, so that it is known without parsing
//! the line; lines of others are parsed once more to find it. A thread's record is written
//! again and again while a run goes on and only its last one counts, so only that is parsed.
//! A last line that does not end in a newline is dropped unless it happens to be whole.
//! Not here: the writer (`runfile`).

use std::collections::HashMap;
use std::io::{self, BufRead};

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::Run;
use crate::limits::{LINE_BYTES_MAX as LINE_MAX, THREADS_MAX, beyond};
use crate::line_limits;
use crate::record::{Facts, Line, SCHEMA, SelfCost};

use super::fault::LineFault;
use super::shortened::shorten;
use super::trail::{Glance, Integrity, Trail};
use super::{audit, begin, partial};

/// Why a run file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be read.
    #[error("line {line}: {source}")]
    Io {
        /// Where.
        line: u64,
        /// Why.
        source: io::Error,
    },
    /// A line is not what it should be.
    #[error("line {line}: {reason}")]
    Line {
        /// Where.
        line: u64,
        /// Why.
        #[source]
        reason: LineFault,
    },
    /// Nothing in it.
    #[error("the file is empty")]
    Empty,
    /// The schema of another version.
    #[error("schema `{schema}` {advice} (this version reads `{SCHEMA}`)")]
    Schema {
        /// As it stands in the file.
        schema: String,
        /// What it is and what to do.
        advice: String,
    },
}

/// Reads a whole run.
///
/// # Errors
/// [`ReadError`] with the line number. A file that was cut off is not an error:
/// `Run::end` is `None`. Line types of a later minor version are passed over. What shows that
/// the file is not as it was written is among the run's findings.
pub fn read_run(input: impl BufRead) -> Result<Run, ReadError> {
    read_run_without(input, &[])
}

/// Reads a run without the line types in `skip` (`window`, `raw`, …), which are passed over
/// unparsed: for callers that read many runs and need little of each.
///
/// # Errors
/// As [`read_run`]; what is wrong in a line that was passed over is not noticed, unless the
/// file has a digest.
pub fn read_run_without(input: impl BufRead, skip: &[&str]) -> Result<Run, ReadError> {
    read_run_checked(input, skip).map(|(run, _)| run)
}

/// Reads a run without the line types in `skip`, and with at most about `text_bytes` bytes of each text: for those who show what
/// strangers wrote.
///
/// # Errors
/// As [`read_run_without`].
pub fn read_run_shortened(
    mut input: impl BufRead,
    skip: &[&str],
    text_bytes: usize,
) -> Result<Run, ReadError> {
    read(&mut input, skip, Some(text_bytes)).map(|(run, _)| run)
}

/// Reads a run without the line types in `skip`, and what its file is.
///
/// # Errors
/// As [`read_run_without`].
pub fn read_run_checked(
    mut input: impl BufRead,
    skip: &[&str],
) -> Result<(Run, Integrity), ReadError> {
    read(&mut input, skip, None)
}

/// One copy for all kinds of input.
fn read(
    mut input: &mut dyn BufRead,
    skip: &[&str],
    text_bytes: Option<usize>,
) -> Result<(Run, Integrity), ReadError> {
    let mut run: Option<Run> = None;
    let mut threads = Threads::default();
    let mut marked = None;
    let mut trail = Trail::default();
    let mut bytes = Vec::new();
    for line in 1u64.. {
        bytes.clear();
        let got = io::Read::take(&mut input, LINE_MAX as u64)
            .read_until(b'\n', &mut bytes)
            .map_err(|source| ReadError::Io { line, source })?;
        if got == 0 {
            break;
        }
        if run.is_none() {
            marked = begin::first(&mut bytes)?.or(marked);
        }
        let whole = bytes.ends_with(b"\n");
        if !whole && got >= LINE_MAX {
            return Err(ReadError::Line { line, reason: LineFault::TooLong });
        }
        if !trail.line(line, &bytes, kind_of(&bytes))
            || bytes.iter().all(u8::is_ascii_whitespace)
            || run.is_some() && kind_of(&bytes).is_some_and(|kind| skip.contains(&kind))
        {
            continue;
        }
        if let Some(most) = text_bytes {
            shorten(&mut bytes, most);
        }
        if let Some(run) = run.as_ref().filter(|_| whole)
            && threads.keep(line, &mut bytes, run, &mut trail)?
        {
            continue;
        }
        let parsed = line_within_limits(&bytes);
        match (&mut run, parsed) {
            // A last line without its newline was cut off, unless it happens to be whole.
            (Some(_), Err(_)) if !whole => break,
            (_, Err(reason)) => return Err(ReadError::Line { line, reason }),
            (Some(run), Ok(Some(record))) => {
                trail.record(line, &record);
                if let Line::Thread(t) = &record {
                    threads.absorb_into(run)?;
                    let old = run
                        .threads
                        .iter()
                        .find(|old| old.thread == t.thread && old.context == t.context);
                    trail.thread_again(line, old.map(Glance::of), Some(Glance::of(t)));
                    threads.known.know(t, run.exceedances.len());
                }
                let finding = matches!(record, Line::Finding(_) | Line::Thread(_) | Line::Task(_));
                run.absorb(record);
                if finding {
                    line_limits::lists(run)
                        .map_err(|e| ReadError::Line { line, reason: LineFault::Limit(e) })?;
                }
            }
            (Some(_), Ok(None)) => {}
            (None, Ok(Some(Line::Header(header)))) => {
                run = Some(Run::new(*header));
            }
            (None, Ok(_)) => {
                return Err(ReadError::Line { line, reason: LineFault::NoHeader });
            }
        }
    }
    let mut run = run.ok_or(ReadError::Empty)?;
    threads.absorb_into(&mut run)?;
    line_limits::whole(&run)
        .map_err(|e| ReadError::Line { line: 1, reason: LineFault::Limit(e) })?;
    marked.into_iter().for_each(|f| run.absorb(Line::Finding(f)));
    let (integrity, mut found) = trail.close();
    found.extend(partial::measured(&mut run, integrity));
    found.extend(audit::findings(&run));
    found.extend(partial::complete(&mut run, &threads.known));
    found.into_iter().for_each(|f| run.absorb(Line::Finding(f)));
    Ok((run, integrity))
}

/// The last record of each thread and context, not yet parsed.
#[derive(Default)]
struct Threads {
    /// What names thread and context at a line's beginning, and its place in `lines`.
    named: HashMap<Vec<u8>, usize>,
    /// Line number, line, number of exceedances before it.
    lines: Vec<(u64, Vec<u8>, usize)>,
    /// What came before each thread's last record.
    known: partial::ExceedanceCounts,
}

impl Threads {
    /// Keeps `bytes` in the place of an earlier record of the same thread, if it is a
    /// thread's line as we write it; then `bytes` is left with other content.
    fn keep(
        &mut self,
        line: u64,
        bytes: &mut Vec<u8>,
        run: &Run,
        trail: &mut Trail,
    ) -> Result<bool, ReadError> {
        const NAMED: &[u8] = b",\"wakeup\":";
        if kind_of(bytes) != Some("thread") {
            return Ok(false);
        }
        let head = bytes.get(..256).unwrap_or(bytes);
        let Some(named) = head.windows(NAMED.len()).position(|w| w == NAMED) else {
            return Ok(false);
        };
        let name = head.get(..named).unwrap_or_default();
        let told = run.exceedances.len();
        if let Some((at, old, before)) = self.named.get(name).and_then(|i| self.lines.get_mut(*i)) {
            trail.thread_again(line, Glance::at(old, named), Glance::at(bytes, named));
            (*at, *before) = (line, told);
            std::mem::swap(old, bytes);
        } else if self.lines.len() < THREADS_MAX {
            self.named.insert(name.to_owned(), self.lines.len());
            self.lines.push((line, std::mem::take(bytes), told));
        } else {
            let reason = beyond("records of threads and contexts", THREADS_MAX);
            return Err(ReadError::Line { line, reason: LineFault::Limit(reason) });
        }
        Ok(true)
    }

    fn absorb_into(&mut self, run: &mut Run) -> Result<(), ReadError> {
        self.named.clear();
        for (line, bytes, before) in self.lines.drain(..) {
            let record =
                line_within_limits(&bytes).map_err(|reason| ReadError::Line { line, reason })?;
            if let Some(Line::Thread(t)) = &record {
                self.known.know(t, before);
            }
            record.into_iter().for_each(|r| run.absorb(r));
        }
        Ok(())
    }
}

/// The type of a line that begins with it, as ours do.
fn kind_of(line: &[u8]) -> Option<&str> {
    let rest = line.strip_prefix(b"{\"type\":\"")?;
    let head = rest.get(..32).unwrap_or(rest);
    let end = head.iter().position(|b| *b == b'"' || *b == b'\\')?;
    (head.get(end) == Some(&b'"')).then(|| std::str::from_utf8(head.get(..end)?).ok())?
}

/// One line within its limits; `None` is a type that this version does not know.
fn line_within_limits(bytes: &[u8]) -> Result<Option<Line>, LineFault> {
    let line = read_line(bytes)?;
    line.as_ref().map_or(Ok(()), line_limits::check)?;
    Ok(line)
}

/// Reads one line; `None` is a type that this version does not know. Its values have no limits; those of a file's lines are
/// [`line_limits::check`]'s.
///
/// # Errors
/// What is wrong with it.
pub fn read_line(bytes: &[u8]) -> Result<Option<Line>, LineFault> {
    #[derive(Deserialize)]
    struct Tag {
        #[serde(rename = "type", default)]
        kind: serde_json::Value,
    }
    #[derive(Deserialize)]
    struct Costs {
        values: SelfCost,
    }
    #[derive(Deserialize)]
    struct After {
        facts: Facts,
    }
    let found: Tag;
    let kind = match kind_of(bytes) {
        Some(kind) => kind,
        None => {
            found = serde_json::from_slice(bytes).map_err(|e| fault("", e))?;
            found.kind.as_str().ok_or(LineFault::NoType)?
        }
    };
    Ok(Some(match kind {
        "header" => Line::Header(of(kind, bytes)?),
        "event" => Line::Event(of(kind, bytes)?),
        "second" => Line::Second(of(kind, bytes)?),
        "window" => Line::Window(of(kind, bytes)?),
        "block" => Line::Block(of(kind, bytes)?),
        "exceedance" => Line::Exceedance(of(kind, bytes)?),
        "blame" => Line::Blame(of(kind, bytes)?),
        "task" => Line::Task(of(kind, bytes)?),
        "cycle" => Line::Cycle(of(kind, bytes)?),
        "violation" => Line::Violation(of(kind, bytes)?),
        "paths" => Line::Paths(of(kind, bytes)?),
        "disturbance" => Line::Disturbance(of(kind, bytes)?),
        "sent-pulses" => Line::SentPulses(of(kind, bytes)?),
        "answered-pulses" => Line::AnsweredPulses(of(kind, bytes)?),
        "pulse-join" => Line::PulseJoin(of(kind, bytes)?),
        "load" => Line::Load(of(kind, bytes)?),
        "work" => Line::Benchmark(of(kind, bytes)?),
        "figure" => Line::Figure(of(kind, bytes)?),
        "timeline" => Line::Timeline(of(kind, bytes)?),
        "raw" => Line::Raw(of(kind, bytes)?),
        "thread" => Line::Thread(of(kind, bytes)?),
        "self-cost" => Line::SelfCost { values: of::<Costs>(kind, bytes)?.values },
        "after" => Line::After { facts: of::<After>(kind, bytes)?.facts },
        "finding" => Line::Finding(of(kind, bytes)?),
        "verdict" => Line::Verdict(of(kind, bytes)?),
        "end" => Line::End(of(kind, bytes)?),
        _ => {
            serde_json::from_slice::<IgnoredAny>(bytes).map_err(|e| fault(kind, e))?;
            return Ok(None);
        }
    }))
}

fn of<T: DeserializeOwned>(kind: &str, bytes: &[u8]) -> Result<T, LineFault> {
    serde_json::from_slice(bytes).map_err(|e| fault(kind, e))
}

fn fault(kind: &str, why: serde_json::Error) -> LineFault {
    match (why.is_data(), kind) {
        (true, "") => LineFault::NoType,
        (true, kind) => LineFault::Shape { kind: kind.to_owned(), why },
        (false, _) => LineFault::Json(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = concat!(
        r#"{"type":"header","schema":"tailbound-run/1","tool":"t","id":"i","started":"s","command":[],"#,
        r#""plan":{"probe":"cyclic","interval_ns":1000000,"activations":9,"warm_up_ns":0,"cpus":"0","#,
        r#""policy":"other","clock":"monotonic","means":"nanosleep","loads":[],"requirement":{}},"machine":{}}"#
    );

    fn thread(thread: u32, n: u64) -> String {
        let line = crate::record::ThreadRecord {
            thread,
            context: "user".into(),
            wakeup: crate::Distribution { n, ..crate::Distribution::default() },
            ..crate::record::ThreadRecord::default()
        };
        serde_json::to_string(&Line::Thread(Box::new(line))).unwrap_or_default()
    }

    #[test]
    fn the_last_record_of_a_thread_counts_and_a_torn_one_does_not() {
        // Written by another program: the type is not first.
        let other = thread(1, 7).replacen(
            r#""type":"thread","thread":1"#,
            r#""thread":1,"type":"thread""#,
            1,
        );
        let torn = thread(0, 9);
        let torn = torn.get(..torn.len() - 20).unwrap_or_default();
        let file = [HEADER, &thread(0, 1), &thread(1, 2), &thread(0, 3), &other, torn].join("\n");
        let run = read_run(file.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
        let found: Vec<_> = run.threads.iter().map(|t| (t.thread, t.wakeup.n)).collect();
        assert_eq!(found, [(0, 3), (1, 7)]);
        let file = [HEADER, &other, &thread(1, 8), ""].join("\n");
        let run = read_run(file.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(run.threads.iter().map(|t| t.wakeup.n).collect::<Vec<_>>(), [8]);
    }

    #[test]
    fn what_is_wrong_is_reported_with_its_line() {
        let bad_thread = thread(0, 1).replace(r#""n":1"#, r#""n":-1"#);
        for (line, words) in [
            (r#"{"type":"second","thread":0}"#, "line 2: bad `second` line: missing field"),
            (r#"{"type":"second","thread":"#, "line 2: not JSON"),
            (r#"{"type":"from-later""#, "line 2: not JSON"),
            (r#"{"n":1}"#, "line 2: no `type`"),
            (r#"{"type":7}"#, "line 2: no `type`"),
            ("[]", "line 2: no `type`"),
            (&bad_thread, "line 2: bad `thread` line"),
        ] {
            let file = format!("{HEADER}\n{line}\n");
            let got = read_run(file.as_bytes()).map(|_| ()).map_err(|e| e.to_string());
            assert!(got.as_ref().is_err_and(|e| e.contains(words)), "{line}: {got:?}");
        }
    }

    #[test]
    fn skipped_lines_are_not_parsed() {
        let file = format!(
            "{HEADER}\n{{\"type\":\"window\",oops}}\n{{\"type\":\"event\",\"t_ns\":1,\"event\":\"e\"}}\n"
        );
        let run = read_run_without(file.as_bytes(), &["window", "header"]);
        assert!(run.is_ok_and(|r| r.events.len() == 1));
        assert!(read_run(file.as_bytes()).is_err());
    }
}
