// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of `perf sched timehist`: each time that a thread had a CPU, with how long it was ready before.
//!
//! Units: ns on perf's clock. A row is made when a thread leaves its CPU: `TIME [CPU] NAME[TID/PID] WAIT DELAY RUN`, with
//! the three lengths in ms.
//! Source: perf-sched(1).

use std::collections::{BTreeMap, VecDeque};

use tailbound_core::blame::{
    Activity, BlameLane, BlamePart, BlameRecord, BlameSpan, Cause, Phase, Sureness,
};

use super::TextRequest;
use super::record::{number, scaled, seconds};
use super::section::micros;
use crate::blame::{BlameSummary, WatchFilter};

/// Stretches of one CPU that are remembered, and most CPUs and threads.
const KEPT_MAX: usize = 512;
const CPUS_MAX: usize = 4096;
const THREADS_MAX: usize = 4096;
/// The figures are whole µs: what is shorter lies within their rounding.
const ROUNDING_NS: i64 = 2_000;

/// The columns that a table may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TableColumns {
    prio: bool,
    states: bool,
}

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row<'a> {
    end_ns: i64,
    cpu: u32,
    comm: &'a str,
    tid: i32,
    prio: Option<i32>,
    delay_ns: i64,
    run_ns: i64,
}

/// Who had a CPU from when to when.
#[derive(Clone, Debug)]
struct Had {
    from_ns: i64,
    to_ns: i64,
    tid: i32,
    who: String,
    prio: Option<i32>,
}

/// The table.
#[derive(Debug)]
pub(super) struct Timehist {
    request: TextRequest,
    columns: TableColumns,
    cpus: BTreeMap<u32, VecDeque<Had>>,
    pub(super) found: BlameSummary,
    pub(super) rows: u64,
    pub(super) passed_over: u64,
}

/// Is it the line above the table?
pub(super) fn begins(line: &str) -> bool {
    line.contains("wait time") && line.contains("sch delay") && line.contains("run time")
}

impl Timehist {
    pub(super) fn new(header: &str, request: TextRequest) -> Self {
        let word = |w: &str| header.split_whitespace().any(|h| h == w);
        Self {
            request,
            columns: TableColumns { prio: word("prio"), states: word("state") },
            cpus: BTreeMap::new(),
            found: BlameSummary::default(),
            rows: 0,
            passed_over: 0,
        }
    }

    /// Takes a line.
    pub(super) fn line(&mut self, line: &str) {
        let Some(row) = self.row(line) else {
            let bare = line.trim();
            // Units, rulers, sums, wake-ups and migrations are no rows.
            let known = ["(msec)", "[tid/pid]", "----", "awakened:", "migrated:", "next:"];
            if seconds_first(bare) && !known.iter().any(|k| bare.contains(k)) {
                self.passed_over = self.passed_over.saturating_add(1);
            }
            return;
        };
        self.rows = self.rows.saturating_add(1);
        self.found.events = self.rows;
        let from_ns = row.end_ns.saturating_sub(row.run_ns);
        let t = u64::try_from(row.end_ns).unwrap_or(0);
        let first = self.found.span_ns.map_or(t, |(first, _)| first);
        self.found.span_ns = Some((first, t));
        if row.tid != 0 && self.wants(&row) {
            self.wake_up(&row, from_ns);
        }
        if self.cpus.len() < CPUS_MAX || self.cpus.contains_key(&row.cpu) {
            let had = self.cpus.entry(row.cpu).or_default();
            if had.len() >= KEPT_MAX {
                had.pop_front();
            }
            let who =
                if row.tid == 0 { String::new() } else { format!("{}-{}", row.comm, row.tid) };
            had.push_back(Had { from_ns, to_ns: row.end_ns, tid: row.tid, who, prio: row.prio });
        }
    }

    fn wants(&self, row: &Row<'_>) -> bool {
        match &self.request.watched {
            WatchFilter::Named(names) => names.iter().any(|n| n == row.comm),
            WatchFilter::Threads(tids) => tids.contains(&row.tid),
            WatchFilter::Realtime => row.prio.is_none_or(|p| p < 100),
            WatchFilter::All => true,
        }
    }

    fn wake_up(&mut self, row: &Row<'_>, ran_ns: i64) {
        let found = &mut self.found;
        if found.threads.len() >= THREADS_MAX && !found.threads.contains_key(&row.tid) {
            found.left_out = found.left_out.saturating_add(1);
            return;
        }
        let thread = found.threads.entry(row.tid).or_default();
        thread.moved |= thread.wakeups.n > 0 && thread.cpu != row.cpu;
        (thread.cpu, thread.prio) = (row.cpu, row.prio.unwrap_or(i32::MAX));
        thread.wakeups.add(row.delay_ns);
        if thread.comm.is_empty() {
            row.comm.clone_into(&mut thread.comm);
        }
        if row.delay_ns <= self.request.wanted.above_ns || row.delay_ns == 0 {
            return;
        }
        self.found.late = self.found.late.saturating_add(1);
        let place = self.found.records.partition_point(|r| r.latency_ns >= row.delay_ns);
        if place >= self.request.wanted.most {
            return;
        }
        let record = self.sample(row, ran_ns);
        self.found.records.insert(place, record);
        self.found.records.truncate(self.request.wanted.most);
    }

    /// What its CPU did while the thread was ready.
    fn sample(&self, row: &Row<'_>, ran_ns: i64) -> BlameRecord {
        let ready_ns = ran_ns.saturating_sub(row.delay_ns);
        let mut record = BlameRecord {
            name: format!("{}-{}", row.comm, row.tid),
            t_ns: ready_ns,
            latency_ns: row.delay_ns,
            cpu: Some(row.cpu),
            ..BlameRecord::default()
        };
        let mut at = 0;
        let mut spans = Vec::new();
        for had in self.cpus.get(&row.cpu).into_iter().flatten() {
            let from = had.from_ns.saturating_sub(ready_ns).max(at);
            let to = had.to_ns.saturating_sub(ready_ns).min(row.delay_ns);
            if to <= from {
                continue;
            }
            between(&mut record, &mut at, from);
            let (cause, who, sureness) = charge(had, row);
            part(&mut record, &mut at, to, (cause, who, sureness));
            let activity = if had.tid == 0 { Activity::Idle } else { Activity::Thread };
            spans.push(BlameSpan { from_ns: from, to_ns: to, activity, who: had.who.clone() });
        }
        between(&mut record, &mut at, row.delay_ns);
        if !spans.is_empty() {
            record.lanes.push(BlameLane { cpu: row.cpu, spans });
        }
        record.chain.push(format!(
            "It was ready for {} before it had CPU {}, which it then had for {}.",
            micros(row.delay_ns),
            row.cpu,
            micros(row.run_ns)
        ));
        record
    }

    fn row<'a>(&self, line: &'a str) -> Option<Row<'a>> {
        let (time, rest) = super::record::first_word(line)?;
        let end_ns = i64::try_from(seconds(time)?).ok()?;
        let (cpu, rest) = rest.trim_start().strip_prefix('[')?.split_once(']')?;
        let cpu = number(cpu)?;
        let mut words: Vec<(usize, &str)> = Vec::new();
        let mut lengths: Option<(usize, [i64; 3])> = None;
        for (at, word) in positions(rest) {
            words.push((at, word));
            let last = words.len().checked_sub(3).and_then(|from| words.get(from..));
            if let Some([(begin, a), (_, b), (_, c)]) = last
                && let (Some(a), Some(b), Some(c)) = (millis(a), millis(b), millis(c))
            {
                lengths = Some((*begin, [a, b, c]));
                break;
            }
        }
        let (begin, [_, delay_ns, run_ns]) = lengths?;
        let mut name = rest.get(..begin)?.trim();
        let mut prio = None;
        if self.columns.prio
            && let Some((before, last)) = name.rsplit_once(char::is_whitespace)
        {
            (name, prio) = (before.trim_end(), number(last));
        }
        let (comm, tid) = match name.strip_suffix(']').and_then(|n| n.rsplit_once('[')) {
            Some((comm, ids)) => (comm, number(ids.split('/').next()?)?),
            None if name.ends_with("<idle>") => ("", 0),
            None => return None,
        };
        // The picture of the CPUs (-V) stands before the name.
        let comm = comm.rsplit_once("  ").map_or(comm, |(_, comm)| comm).trim();
        Some(Row { end_ns, cpu, comm, tid, prio, delay_ns, run_ns })
    }

    /// What such a table cannot tell.
    pub(super) fn limits(&self) -> Vec<String> {
        let mut out = vec![
            "`perf sched timehist` has neither interrupts nor timers: lateness counts from the wake-up, and what interrupted a \
             thread counts as its time"
                .to_owned(),
        ];
        if !self.columns.prio {
            out.push(
                "the table has no priorities (newer perf writes them with --prio): threads of every kind are listed, and whether a \
                 thread could have been preempted is not known"
                    .to_owned(),
            );
        }
        if !self.columns.states {
            out.push(
                "the table does not say why a thread left its CPU (--state): a thread that was preempted is not told from one that \
                 slept"
                    .to_owned(),
            );
        }
        out
    }
}

/// Nobody is known to have had the CPU up to `to`.
fn between(record: &mut BlameRecord, at: &mut i64, to: i64) {
    let short = to.saturating_sub(*at) <= ROUNDING_NS;
    let charge = match short {
        true => (Cause::WakeUp, String::new(), Sureness::Likely),
        false => (Cause::Unexplained, "no row of its CPU".to_owned(), Sureness::Sure),
    };
    part(record, at, to, charge);
}

fn charge(had: &Had, row: &Row<'_>) -> (Cause, String, Sureness) {
    let who = had.who.clone();
    match (had.tid, row.prio, had.prio) {
        (0, ..) => (Cause::IdleExit, String::new(), Sureness::Likely),
        (_, Some(late), Some(p)) if late < 100 && p > late => {
            (Cause::NotPreemptible, who, Sureness::Likely)
        }
        (_, Some(late), Some(p)) if p < 100 && p <= late => {
            (Cause::HigherPriority, who, Sureness::Sure)
        }
        (_, Some(_), Some(_)) => (Cause::FairShare, who, Sureness::Sure),
        _ => (Cause::Unexplained, format!("{who} had the CPU"), Sureness::Sure),
    }
}

fn part(
    record: &mut BlameRecord,
    at: &mut i64,
    to: i64,
    (cause, who, sureness): (Cause, String, Sureness),
) {
    let ns = to.saturating_sub(*at);
    if ns > 0 {
        let (stack, holder, phase) = (Vec::new(), String::new(), Phase::Switch);
        let part = BlamePart { phase, from_ns: *at, ns, cause, who, sureness, stack, holder };
        record.parts.push(part);
        *at = to;
    }
}

/// The words of a text with the places where they begin.
fn positions(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_whitespace().map(|word| {
        let at = word.as_ptr().addr().saturating_sub(text.as_ptr().addr());
        (at, word)
    })
}

/// `0.014`, in ms.
fn millis(word: &str) -> Option<i64> {
    let (whole, fraction) = word.split_once('.')?;
    i64::try_from(scaled(whole, fraction, 6)?).ok()
}

/// Does the line begin with a time?
fn seconds_first(line: &str) -> bool {
    super::record::first_word(line).is_some_and(|(word, _)| seconds(word).is_some())
}
