// SPDX-License-Identifier: MIT OR Apache-2.0
//! cyclictest's status lines, live or at the end: extremes and average only.
//!
//! Layout: `T: 0 ( 2026) P:95 I:1000 C: 9 Min: 35 Act: 41 Avg: 43 Max: 60`,
//! between terminal control sequences when live; the last whole line of each thread counts.
//! Not here: the unit (`unit`).
//! Source: output of rt-tests 0.11 to 2.10.

use std::collections::BTreeMap;

use tailbound_core::number::Real as _;
use tailbound_core::units::grouped;
use tailbound_core::{Context, Finding, Impact, Policy};

use crate::cyclictest::told::Told;
use crate::cyclictest::unit::{self, Clues, Layout};
use crate::draft::{Draft, Stated, coarse};
use crate::error::{Fault, excerpt};
use crate::missed;
use crate::read::Options;
use crate::text::{self, Lines, THREADS_MAX};

/// From here on an unsigned number of 32 bits is a negative one.
const NEGATIVE: i64 = 1 << 31;

/// One thread's figures as a status line has them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status {
    /// The kernel's number of the thread; 0 where the line has none.
    tid: u64,
    priority: u64,
    interval_us: Option<u64>,
    pub(crate) cycles: u64,
    pub(crate) min: i64,
    avg: i64,
    pub(crate) max: i64,
    layout: Option<Layout>,
}

impl Status {
    /// Can `new` be of the same run, later or earlier?
    pub(crate) fn goes_on(&self, new: &Self) -> bool {
        // A thread that has not begun has no number yet.
        if self.cycles == 0 {
            return true;
        }
        if new.tid != self.tid {
            return false;
        }
        if new.cycles == 0 {
            return self.tid > 0;
        }
        // The same wake-ups have the same figures.
        if new.cycles == self.cycles
            && (new.min, new.avg, new.max) != (self.min, self.avg, self.max)
        {
            return false;
        }
        let (old, late) = if new.cycles < self.cycles { (new, self) } else { (self, new) };
        // In a container every run has threads of the same numbers.
        let in_turn = new.cycles >= self.cycles;
        in_turn && late.min <= old.min && late.max >= old.max
    }

    /// The one of more cycles.
    pub(crate) const fn later(self, new: Self) -> Self {
        if new.cycles >= self.cycles { new } else { self }
    }
}

/// The status lines of a run.
#[derive(Debug, Default)]
pub(crate) struct StatusRows {
    pub(crate) threads: BTreeMap<u32, Status>,
    /// Lines without all their figures, and the last of them.
    torn: u64,
    last_torn: Option<Fault>,
    spikes: u64,
}

impl StatusRows {
    /// Takes in a line; `false`: it is no status line.
    ///
    /// # Errors
    /// Too many threads.
    pub(crate) fn line(&mut self, line: &str, n: u64) -> Result<bool, Fault> {
        if line.contains(" Spike:") {
            self.spikes += 1;
            return Ok(true);
        }
        if !line.starts_with("T:") {
            // The end of a status line behind another line that was drawn over it.
            self.torn += u64::from(line.contains(" Avg:") && line.contains(" Max:"));
            return Ok(false);
        }
        match read(line, n) {
            Ok((number, status)) => {
                if self.threads.len() >= THREADS_MAX && !self.threads.contains_key(&number) {
                    return Err(Fault::line(n, format!("more than {THREADS_MAX} threads")));
                }
                self.threads
                    .entry(number)
                    .and_modify(|old| *old = old.later(status))
                    .or_insert(status);
            }
            Err(fault) => {
                self.torn += 1;
                self.last_torn = Some(fault);
            }
        }
        Ok(true)
    }

    /// Adds what the lines tell of the unit.
    pub(crate) fn clues(&self, clues: &mut Clues) {
        let sampled = || self.threads.values().filter(|s| s.cycles > 0);
        clues.layout = sampled().find_map(|s| s.layout);
        if sampled().any(|s| s.layout.is_some() && s.layout != clues.layout) {
            clues.layout = None;
        }
        clues.smallest = clues.smallest.or(sampled().map(|s| s.min).min());
        let beyond = |s: &Status| {
            let interval = s.interval_us.filter(|i| *i > 0)?;
            (u64::try_from(s.avg).ok()? > interval).then_some((s.avg, interval))
        };
        // One thread alone may have been kept from its CPU.
        if sampled().all(|s| beyond(s).is_some()) {
            clues.beyond_interval = sampled().find_map(beyond);
        }
    }

    /// Intervals and policy, and what was passed over.
    pub(crate) fn settings(&self, draft: &mut Draft, policy: Option<&str>) {
        let us = |n: u64| i64::try_from(n).ok().and_then(|n| n.checked_mul(1000));
        let mut intervals =
            self.threads.values().filter_map(|s| s.interval_us).filter_map(us).filter(|i| *i > 0);
        if let Some(first) = intervals.next() {
            draft.interval_ns = Some(first);
            draft.distance_ns = intervals.next().map_or(0, |s| s.saturating_sub(first).max(0));
        }
        policy_of(draft, &self.threads, policy);
        if draft.distance_ns > 0 && self.threads.len() > 1 {
            draft.note(Finding::new(
                "source-distance",
                Impact::Notice,
                "the threads had different intervals; the plan holds that of the first",
            ));
        }
        if self.spikes > 0 {
            draft.lose(format!("{} spikes are listed in the file without their cycle numbers; they are not imported.", self.spikes));
        }
        if self.torn > 0 {
            let (lines, are) =
                if self.torn == 1 { ("line is", "was") } else { ("lines are", "were") };
            let torn = grouped(self.torn);
            draft.doubt(
                "source-torn",
                format!("{torn} status {lines} incomplete and {are} passed over; the last whole line of each thread is read."),
                "The screen was cut or overwritten: what the torn lines held is unknown.",
                "Import the whole output, or run cyclictest with -q.",
            );
        }
    }
}

fn policy_of(draft: &mut Draft, threads: &BTreeMap<u32, Status>, policy: Option<&str>) {
    if threads.is_empty() {
        return;
    }
    let top = threads.values().map(|s| s.priority).max().and_then(|p| u8::try_from(p).ok());
    draft.policy = match (policy, top.filter(|p| (1..=99).contains(p))) {
        (Some("rr"), Some(p)) => Some(Policy::Rr(p)),
        (_, Some(p)) => Some(Policy::Fifo(p)),
        (_, None) => Some(Policy::Other),
    };
    if policy.is_none() && draft.policy.is_some_and(Policy::is_realtime) {
        draft.lose("The policy's name is not in the file; with a priority cyclictest takes fifo.");
    }
    draft.findings.retain(|f| f.id != "source-not-realtime");
    crate::command::not_realtime(draft);
}

pub(crate) fn parse(bytes: &[u8], options: &Options) -> Result<Draft, Fault> {
    let mut draft = Draft::new("cyclictest", "status lines");
    let (mut seen, mut told) = (StatusRows::default(), Told::default());
    for entry in Lines::new(bytes) {
        let (n, line) = entry?;
        let line = line.trim();
        if seen.line(line, n)? {
            told.figures();
        } else {
            told.line(line);
        }
    }
    if let Some(torn) = seen.last_torn.take().filter(|_| seen.threads.is_empty()) {
        return Err(torn);
    }
    let words = told.settle(&mut draft);
    seen.settings(&mut draft, told.policy.as_deref());
    options.apply(&mut draft);
    if !seen.threads.is_empty() {
        let mut clues = told.clues(&words);
        seen.clues(&mut clues);
        let sampled = seen.threads.values().any(|s| s.cycles > 0);
        // Without a sample there is nothing of which the unit could matter.
        let unit_ns = if sampled { clues.unit(options, &mut draft)? } else { 1000 };
        let stopped = seen.threads.iter().find(|(_, s)| Some(s.tid) == told.break_thread);
        let stopped = stopped.map(|(number, _)| *number);
        for (number, s) in seen.threads {
            one(&mut draft, number, s, unit_ns)?;
        }
        told.last_latency(&mut draft, stopped, unit_ns);
    }
    missed::skipped_uncounted(&mut draft, Context::User);
    draft.lose("Status lines hold the least, the average (cut to whole units) and the greatest latency, and no distribution.");
    Ok(draft)
}

fn one(draft: &mut Draft, number: u32, s: Status, unit_ns: u64) -> Result<(), Fault> {
    // No latency lasts 35 minutes: the clock went back, and the number is one below zero without its sign.
    if unit_ns == 1000 && (NEGATIVE..1 << 32).contains(&s.max) && s.cycles > 0 {
        return Err(Fault::file(format!(
            "`Max:` of thread {number} is {}, a number below zero that was printed without its sign: the clock went back while cyclictest measured, and what the greatest latency was is not known",
            s.max
        )));
    }
    let scale = |v: i64| i64::try_from(unit_ns).ok().and_then(|u| v.checked_mul(u));
    let mean_ns = scale(s.avg).map(|v| v.real());
    let stated = Stated {
        n: Some(s.cycles),
        min_ns: scale(s.min),
        max_ns: scale(s.max),
        mean_ns,
        resolution_ns: unit_ns,
        beyond_ns: scale(s.min),
    };
    let d = draft.settle(&format!("Thread {number}"), coarse(), stated);
    draft.thread(number, None, Context::User, d)
}

/// Takes a status line apart by its labels: widths and versions differ.
pub(crate) fn read(line: &str, n: u64) -> Result<(u32, Status), Fault> {
    let field = |label: &str| -> Option<&str> {
        let at = line.find(label)?.checked_add(label.len())?;
        line.get(at..)?.split_whitespace().next()
    };
    let need = |label: &str| {
        field(label).ok_or_else(|| {
            Fault::line(n, format!("no `{label}` in the status line `{}`", excerpt(line)))
        })
    };
    let whole = |label: &str| -> Result<i64, Fault> {
        let f = need(label)?;
        f.parse().map_err(|_| {
            Fault::line(n, format!("`{label}` is `{}`, not a whole number", excerpt(f)))
        })
    };
    let number = text::count(need("T:")?, n, "the thread number")?;
    let number =
        u32::try_from(number).map_err(|_| Fault::line(n, "the thread number is beyond 2^32"))?;
    let tid = line.split_once('(').and_then(|(_, r)| r.split_once(')')?.0.trim().parse().ok());
    let status = Status {
        tid: tid.unwrap_or(0),
        priority: text::count(need(" P:")?, n, "the priority")?,
        interval_us: field(" I:").and_then(|f| f.parse().ok()),
        cycles: text::count(need(" C:")?, n, "the cycle count")?,
        min: whole(" Min:")?,
        avg: whole(" Avg:")?,
        max: whole(" Max:")?,
        layout: unit::layout(line),
    };
    if status.min > status.max && status.cycles > 0 {
        return Err(Fault::line(n, format!("`Min:` is above `Max:` in `{}`", excerpt(line))));
    }
    Ok((number, status))
}
