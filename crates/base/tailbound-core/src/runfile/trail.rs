// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the lines of a run file tell beside their records: is it as it was written?
//!
//! The reader shows every line; what Tailbound's writer never does is a finding:
//! lines missing or added, a second header, lines after the last one, records that take back what
//! an earlier one said, a digest that is another's. A file without digests (of an earlier version,
//! or of another program) is held to the rest.
//! Not here: records that contradict each other (`audit`).

use crate::finding::{Finding, Impact};
use crate::record::{Line, ThreadRecord};
use crate::units::grouped;

use super::digest::Running;

/// Findings of one kind that are counted at all.
const NOTED: usize = 1000;
/// Those that are named one by one.
const NAMED: usize = 3;

/// How much of a file is known to be as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seal {
    /// It has no digest: an earlier version or another program wrote it.
    Absent,
    /// All of it.
    Whole,
    /// Up to this line; it was cut off later.
    UpTo(u64),
    /// Something after line `.0` and not after line `.1` was changed.
    Broken(u64, u64),
}

/// What reading a file told beside its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integrity {
    /// Lines of the file.
    pub lines: u64,
    /// What its digests say.
    pub seal: Seal,
    /// It has a last line: it was not cut off.
    pub ended: bool,
    /// A digest says that its verdict, and all before it, is as it was written.
    pub judged: bool,
}

/// What was noticed so far.
#[derive(Debug, Default)]
pub(super) struct Trail {
    digest: Running,
    lines: u64,
    sealed_to: u64,
    broken: Option<(u64, u64)>,
    unsealed_end: bool,
    end: Option<u64>,
    verdict: Option<u64>,
    /// What the last line says of the lines before it, where that is wrong.
    counted: Option<(u64, u64)>,
    second_header: Option<u64>,
    after_end: Option<(u64, u64)>,
    once: Vec<&'static str>,
    repeated: Vec<String>,
    taken_back: Vec<String>,
}

/// What a thread's record says that no later one of it can take back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Glance {
    n: u64,
    max_ns: Option<i64>,
    /// It is its last record.
    last: bool,
}

impl Trail {
    /// Takes a line in. No: it belongs to no run, or not to this one, and is not to be read.
    pub(super) fn line(&mut self, line: u64, bytes: &[u8], kind: Option<&str>) -> bool {
        self.lines = line;
        if self.end.is_some() {
            if !bytes.iter().all(u8::is_ascii_whitespace) {
                self.after_end =
                    Some(self.after_end.map_or((line, 1), |(at, n)| (at, n.saturating_add(1))));
            }
            return false;
        }
        if matches!(kind, Some("digest" | "end")) {
            match self.digest.holds(bytes) {
                Some(true) => self.sealed_to = line,
                Some(false) => self.broken = self.broken.or(Some((self.sealed_to, line))),
                None if self.sealed_to > 0 && kind == Some("end") => self.unsealed_end = true,
                None => {}
            }
        }
        self.digest.add(bytes);
        if kind == Some("header") && line > 1 {
            self.second_header = self.second_header.or(Some(line));
        }
        self.second_header.is_none()
    }

    /// A record that is about to join its run.
    pub(super) fn record(&mut self, line: u64, record: &Line) {
        let kind = match record {
            Line::Header(_) => {
                self.second_header = self.second_header.or(Some(line));
                return;
            }
            Line::After { .. } => "after",
            Line::Verdict(_) => "verdict",
            Line::End(end) => {
                self.end = Some(line);
                let before = line.saturating_sub(1);
                self.counted = (end.lines != before).then_some((end.lines, before));
                return;
            }
            _ => return,
        };
        if kind == "verdict" {
            self.verdict = Some(line);
        }
        if self.once.contains(&kind) {
            note(&mut self.repeated, || format!("line {line} is a second `{kind}` line"));
        } else {
            self.once.push(kind);
        }
    }

    /// A record of a thread takes the place of an earlier one.
    pub(super) fn thread_again(&mut self, line: u64, old: Option<Glance>, new: Option<Glance>) {
        let (Some(old), Some(new)) = (old, new) else { return };
        let what = if old.last {
            "follows the last record of its thread".to_owned()
        } else if new.n < old.n {
            format!("states {} wake-ups where an earlier one of its thread stated {}", new.n, old.n)
        } else if new.max_ns < old.max_ns {
            "has an earlier maximum than a record of its thread before it".to_owned()
        } else {
            return;
        };
        note(&mut self.taken_back, || format!("line {line} {what}"));
    }

    /// What the file is, and what of it forbids to believe it.
    pub(super) fn close(self) -> (Integrity, Vec<Finding>) {
        let seal = match (self.broken, self.sealed_to) {
            (Some((after, line)), _) => Seal::Broken(after, line),
            (None, 0) => Seal::Absent,
            (None, to) if self.unsealed_end => Seal::Broken(to, self.end.unwrap_or(self.lines)),
            (None, to) if self.end == Some(to) => Seal::Whole,
            (None, to) => Seal::UpTo(to),
        };
        let mut found = Vec::new();
        if let Seal::Broken(after, line) = seal {
            let title = format!(
                "the file was changed after it was written: the digest of line {line} does not match lines {} to {line}",
                after.saturating_add(1)
            );
            found.push(Finding::listed("file-altered", Impact::Unfit, title));
        }
        if let Some(line) = self.second_header {
            found.push(Finding::listed(
                "file-second-header",
                Impact::Unfit,
                format!("line {line} begins another run: the file holds two runs"),
            ));
        }
        if let Some((claimed, there)) = self.counted {
            let (claimed, there) = (grouped(claimed), grouped(there));
            found.push(Finding::listed(
                "file-lines",
                Impact::Doubt,
                format!("the last line states {claimed} lines before it, and there are {there}"),
            ));
        }
        if let Some((line, count)) = self.after_end {
            let lines = if count == 1 { "line follows" } else { "lines follow" };
            found.push(Finding::listed(
                "file-after-end",
                Impact::Doubt,
                format!("{} {lines} the end of the run, from line {line} on", grouped(count)),
            ));
        }
        for (id, list, meaning) in [
            ("file-repeated", self.repeated, "A run has one of each: this file was put together."),
            (
                "file-taken-back",
                self.taken_back,
                "Records of a thread only grow while it runs: this file was put together.",
            ),
        ] {
            found.extend(of_list(id, &list).map(|f| f.meaning(meaning)));
        }
        let judged = matches!(seal, Seal::Whole | Seal::UpTo(_))
            && self.verdict.is_some_and(|line| line < self.sealed_to);
        (Integrity { lines: self.lines, seal, ended: self.end.is_some(), judged }, found)
    }
}

/// Keeps one more of a kind, up to a number that a hostile file cannot raise.
pub(super) fn note(list: &mut Vec<String>, text: impl FnOnce() -> String) {
    if list.len() < NOTED {
        list.push(text());
    }
}

/// One finding of several of a kind: the first are named, the others counted.
pub(super) fn of_list(id: &str, list: &[String]) -> Option<Finding> {
    let named = list.get(..NAMED).unwrap_or(list).join("; ");
    let more = list.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("; {} more", grouped(more as u64)) } else { String::new() };
    (!list.is_empty()).then(|| Finding::new(id, Impact::Doubt, format!("{named}{more}")))
}

impl Glance {
    /// Of a record.
    pub(super) fn of(record: &ThreadRecord) -> Self {
        // Earlier versions called the kernel's records complete on the way.
        let kernel = matches!(record.context.as_str(), "irq" | "thread" | "osnoise" | "hwlat");
        Self {
            n: record.wakeup.n,
            max_ns: record.wakeup.max_ns,
            last: record.ended != "running" && !kernel,
        }
    }

    /// Of a line as we write it, without parsing it; `named` is the length of what comes before
    /// its `wakeup`.
    pub(super) fn at(line: &[u8], named: usize) -> Option<Self> {
        let head = std::str::from_utf8(line.get(..named)?).ok()?;
        let kernel = ["irq", "thread", "osnoise", "hwlat"]
            .iter()
            .any(|c| head.ends_with(&format!("\"context\":\"{c}\"")));
        let body = line.get(named..)?.strip_prefix(b",\"wakeup\":{\"n\":")?;
        let body = body.get(..128).unwrap_or(body);
        let number = |bytes: &[u8]| -> Option<i64> {
            let end = bytes.iter().position(|b| !b.is_ascii_digit() && *b != b'-')?;
            std::str::from_utf8(bytes.get(..end)?).ok()?.parse().ok()
        };
        let key = b"\"max_ns\":";
        let max = body.windows(key.len()).position(|w| w == key)?.saturating_add(key.len());
        let running: &[u8] = b"\"ended\":\"running\"}";
        Some(Self {
            n: u64::try_from(number(body)?).ok()?,
            max_ns: number(body.get(max..)?),
            last: !line.trim_ascii_end().ends_with(running) && !kernel,
        })
    }
}
