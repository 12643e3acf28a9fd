// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace of a latency tracer as a late sample: its parts, each with its cause, and what happened in sentences.
//!
//! Units: ns since the begin of the latency. The parts adjoin, and their sum is the latency that the tracer states.
//! Not here: the reading of the lines (`latency`).

use tailbound_core::blame::{
    Activity, BlameLane, BlamePart, BlameRecord, BlameSpan, Cause, Phase, Sureness,
};
use tailbound_core::number::Real as _;
use tailbound_core::order;
use tailbound_core::units::{grouped, trimmed};

use super::latency::{LatencyKind, LatencyTrace, SilentPiece, StateStretch};
use super::stack;
use super::state::Context;
use crate::blame::{BlameNote, BlameNoteKind};

/// Priorities from here on are those of ordinary threads.
const ORDINARY: i32 = 100;
/// A longer time without a record proves nothing of who had it: a hypervisor may have.
const SILENCE_NS: i64 = 100_000;
/// What a piece between two records must be of the whole to be worth a sentence.
const WORTH: i64 = 20;
/// Functions that only wake: the place is who called them.
const WAKES: [&str; 11] = [
    "ttwu_",
    "__ttwu",
    "try_to_wake_up",
    "wake_up_",
    "__wake_up",
    "default_wake",
    "swake_up",
    "activate_task",
    "enqueue_task",
    "autoremove_wake",
    "ep_poll_callback",
];

/// A time in whole µs, as the tracers print it.
pub(super) fn micros(ns: i64) -> String {
    match (u64::try_from(ns / 1000), ns % 1000) {
        (Ok(us), 0) => format!("{} µs", grouped(us)),
        _ => format!("{} µs", trimmed(ns.real() / 1000.0, 3)),
    }
}

impl LatencyTrace {
    /// The sample; `None` where the text has neither a latency nor two records.
    pub(super) fn sample(&self) -> Option<BlameRecord> {
        let last = self.end().map(|(t, ..)| t);
        let latency_ns = self.header.latency_ns.or(last.filter(|t| *t > 0))?;
        let thread = match (self.kind, &self.header.task, &self.woken) {
            (_, Some((_, pid)), _) => Some(*pid),
            (LatencyKind::WakeUp, None, Some(woken)) => Some(woken.to.pid),
            _ => self.stretches.first().map(|s| s.pid),
        };
        let mut record = BlameRecord {
            name: thread.map_or_else(String::new, |pid| self.name(pid)),
            latency_ns,
            cpu: self.header.cpu.or(self.switched.as_ref().map(|s| s.cpu)),
            lost: self.lacks() > 0,
            ..BlameRecord::default()
        };
        match self.kind {
            LatencyKind::WakeUp => self.wake_up(&mut record),
            _ => self.section(&mut record),
        }
        self.chain(&mut record);
        self.lane(&mut record);
        Some(record)
    }

    /// Records that the kernel counted and the text does not have.
    pub(super) fn lacks(&self) -> u64 {
        self.header.counted.map_or(0, |(shown, _)| shown.saturating_sub(self.records))
    }

    /// What cannot be told from this trace, in sentences.
    pub(super) fn limits(&self) -> Vec<String> {
        let mut out = Vec::new();
        if self.header.latency_ns.is_none() {
            out.push(format!(
                "the line `# latency:` of the {} trace is missing: the latency counts to its last record",
                self.tracer
            ));
        }
        if self.lacks() > 0
            && let Some((shown, _)) = self.header.counted
        {
            out.push(format!(
                "the {} trace is cut or shortened: it states {} records and {} are in the text",
                self.tracer,
                grouped(shown),
                grouped(self.records)
            ));
        }
        if let Some((shown, made)) = self.header.counted.filter(|(shown, made)| made > shown) {
            out.push(format!(
                "{} records of the {} trace were overwritten in the kernel's buffer",
                grouped(made.saturating_sub(shown)),
                self.tracer
            ));
        }
        if self.kind != LatencyKind::WakeUp {
            out.push(format!(
                "{} measures the section alone: whom it delayed is not in the trace",
                self.tracer
            ));
        }
        if self.kind == LatencyKind::WakeUp {
            out.push(format!(
                "{} counts from the wake-up: a timer that expired late is not in it",
                self.tracer
            ));
        }
        if self.functions <= 2 && self.calls.is_empty() {
            out.push(
                "hardly any functions within were recorded (options/function-trace was 0, or the text is shortened): where the time went \
                 is known only by the first and the last records"
                    .to_owned(),
            );
        }
        if self.passed_over > 0 {
            out.push(format!(
                "{} lines are no records and were passed over",
                grouped(self.passed_over)
            ));
        }
        out
    }

    /// From where to where.
    fn span(&self) -> Option<String> {
        match (&self.header.started_at, &self.header.ended_at) {
            (Some(a), Some(b)) => Some(format!("from {a} to {b}")),
            (Some(a), None) => Some(format!("from {a} on")),
            (None, Some(b)) => Some(format!("up to {b}")),
            (None, None) => None,
        }
    }

    /// A section with interrupts or preemption disabled.
    fn section(&self, record: &mut BlameRecord) {
        let span = self.span().map_or_else(String::new, |span| format!(", {span}"));
        let charge = |s: &StateStretch| {
            let task = self.name(s.pid);
            let over = || format!("{}, over {task}", span.trim_start_matches(", "));
            let over = || over().trim_start_matches(", ").to_owned();
            let off = match self.kind {
                LatencyKind::InterruptsOff => true,
                LatencyKind::PreemptionOff => false,
                _ => s.irqs_off,
            };
            match (s.context, off) {
                (Context::Nmi, _) => (Cause::Nmi, over()),
                (Context::Interrupt, _) => (Cause::Interrupt, over()),
                (Context::Softirq, _) => (Cause::Softirq, over()),
                (Context::Thread, true) => (Cause::InterruptsOff, format!("{task}{span}")),
                (Context::Thread, false) => (Cause::NotPreemptible, format!("{task}{span}")),
            }
        };
        let mut at = 0;
        for (n, s) in self.stretches.iter().enumerate() {
            // What lies before the first record and behind the last one is of the same section.
            let last = n.saturating_add(1) == self.stretches.len();
            let to = if last { record.latency_ns } else { s.to_ns.min(record.latency_ns) };
            let (cause, who) = charge(s);
            push(record, &mut at, to, Phase::Section, (cause, who, Sureness::Sure));
        }
        let rest = match self.kind {
            LatencyKind::PreemptionOff => Cause::NotPreemptible,
            _ => Cause::InterruptsOff,
        };
        let sureness = match self.kind {
            LatencyKind::Either => Sureness::Unsure,
            _ => Sureness::Sure,
        };
        let who = format!("{}{span}", record.name);
        let to = record.latency_ns;
        push(record, &mut at, to, Phase::Section, (rest, who, sureness));
    }

    /// The way from a wake-up to the CPU.
    fn wake_up(&self, record: &mut BlameRecord) {
        let latency = record.latency_ns;
        let mut at = 0;
        let woken = self.woken.as_ref().map_or(0, |w| w.t_ns.min(latency));
        push(record, &mut at, woken, Phase::WakeUp, (Cause::WakeUp, String::new(), Sureness::Sure));
        let end = self.switched.as_ref().map_or(latency, |s| s.t_ns.min(latency));
        for (n, s) in self.stretches.iter().enumerate() {
            if s.to_ns <= at {
                continue;
            }
            if s.from_ns > at {
                // Its CPU made no record yet: who has it then is told by the first one.
                let charge = self.charge(s, n, Sureness::Likely);
                push(record, &mut at, s.from_ns.min(end), Phase::Switch, charge);
            }
            let charge = self.charge(s, n, Sureness::Sure);
            push(record, &mut at, s.to_ns.min(end), Phase::Switch, charge);
        }
        let rest = (Cause::Unexplained, "no record of its CPU".to_owned(), Sureness::Sure);
        push(record, &mut at, end, Phase::Switch, rest);
        let path = (Cause::WakeUp, String::new(), Sureness::Likely);
        push(record, &mut at, latency, Phase::Return, path);
    }

    fn charge(&self, s: &StateStretch, nth: usize, most: Sureness) -> (Cause, String, Sureness) {
        let task = self.name(s.pid);
        let target = self.woken.as_ref().or(self.switched.as_ref()).map(|c| &c.to);
        let seen = if s.silent_ns >= SILENCE_NS { Sureness::Likely } else { most };
        let of = |c: &Option<super::latency::TaskChange>| c.as_ref().map(|c| c.of.clone());
        let told = [of(&self.woken), of(&self.switched)].into_iter().flatten();
        let prio = told.filter(|t| t.pid == s.pid).map(|t| t.prio).next_back();
        let timer = nth == 0
            && self.wake_stack.as_ref().is_some_and(|(_, f)| f.iter().any(|f| f.contains("timer")));
        match (s.context, target.map(|t| t.prio), prio) {
            (Context::Nmi, ..) => (Cause::Nmi, String::new(), seen),
            (Context::Interrupt, ..) if timer => (Cause::TimerInterrupt, String::new(), seen),
            (Context::Interrupt, ..) => (Cause::Interrupt, format!("over {task}"), seen),
            (Context::Softirq, ..) => (Cause::Softirq, format!("over {task}"), seen),
            _ if s.pid == 0 => (Cause::IdleExit, String::new(), Sureness::Likely),
            (_, Some(late), Some(p)) if p > late && late < ORDINARY => {
                let sureness = if s.need_resched { seen } else { Sureness::Likely };
                (Cause::NotPreemptible, task, sureness)
            }
            (_, Some(late), Some(p)) if p <= late && p < ORDINARY => {
                (Cause::HigherPriority, task, seen)
            }
            (_, Some(_), Some(_)) => (Cause::FairShare, task, seen),
            _ => {
                let who = format!("{task} had the CPU; its priority is not in the trace");
                (Cause::Unexplained, who, Sureness::Sure)
            }
        }
    }

    fn chain(&self, record: &mut BlameRecord) {
        if let Some(woken) = &self.woken {
            record.chain.push(self.woken_sentence(woken));
        }
        let latency = record.latency_ns;
        let worth = |p: &&SilentPiece| {
            let ns = p.to_ns.min(latency).saturating_sub(p.from_ns);
            p.from_ns < latency && ns.saturating_mul(WORTH) >= latency && ns < latency
        };
        let mut pieces: Vec<&SilentPiece> = self.pieces.iter().filter(worth).collect();
        order::by_key(&mut pieces, |p| p.from_ns);
        for p in pieces {
            record.chain.push(format!(
                "From {} to {} ({}) nothing was recorded: between {} and {}.",
                micros(p.from_ns),
                micros(p.to_ns),
                micros(p.to_ns.saturating_sub(p.from_ns)),
                p.after,
                p.until
            ));
        }
        record.chain.extend(self.calls.iter().map(super::graph_section::call_sentence));
        match &self.switched {
            Some(switched) => self.switch_sentences(switched, record),
            None if self.kind == LatencyKind::WakeUp => {
                record.chain.push("The switch to it is not in the text.".to_owned());
            }
            None => {}
        }
        if self.kind != LatencyKind::WakeUp
            && let Some((_, frames)) = &self.end_stack
        {
            let place = stack::from_place(frames);
            if !place.is_empty() {
                record.chain.push(format!("At its end it was in {}.", stack::sentence(&place)));
            }
        }
    }

    fn woken_sentence(&self, woken: &super::latency::TaskChange) -> String {
        let over = match woken.context {
            Context::Thread => "by",
            Context::Softirq => "by a soft interrupt over",
            Context::Interrupt => "by an interrupt over",
            Context::Nmi => "by a non-maskable interrupt over",
        };
        let mut out = format!(
            "{} was woken at {} {over} {}, on CPU {}",
            self.name(woken.to.pid),
            micros(woken.t_ns),
            self.name(woken.of.pid),
            woken.record_cpu
        );
        if let Some((t_ns, frames)) = &self.wake_stack {
            let place = stack::from_place(frames);
            let wakes = |f: &&String| !WAKES.iter().any(|w| f.starts_with(w));
            if let Some(by) = place.iter().find(wakes) {
                out.push_str(&format!(", in {by} (its stack was recorded at {})", micros(*t_ns)));
            }
        }
        out.push('.');
        out
    }

    fn switch_sentences(&self, switched: &super::latency::TaskChange, record: &mut BlameRecord) {
        let (late, other) = (self.name(switched.to.pid), self.name(switched.of.pid));
        record.chain.push(format!(
            "It ran from {} on, on CPU {}: {other} gave the CPU to {late}.",
            micros(switched.t_ns),
            switched.cpu
        ));
        if let Some((_, frames)) = &self.end_stack {
            let note = BlameNote {
                kind: BlameNoteKind::Switch,
                tid: switched.to.pid,
                t_ns: switched.t_ns,
                latency_ns: record.latency_ns,
                cpu: switched.cpu,
                other,
                frames: stack::from_place(frames),
                system_call: stack::system_call(frames),
                owners: Vec::new(),
            };
            note.onto(record, 0);
        }
        let own = record.latency_ns.saturating_sub(switched.t_ns);
        if own > 0 {
            record.chain.push(format!(
                "The last {} are the switch itself and the tracer's records of it.",
                micros(own)
            ));
        }
    }

    fn lane(&self, record: &mut BlameRecord) {
        let Some(cpu) = record.cpu else { return };
        let latency = record.latency_ns;
        let spans: Vec<BlameSpan> = self
            .stretches
            .iter()
            .filter(|s| s.from_ns < latency)
            .map(|s| BlameSpan {
                from_ns: s.from_ns,
                to_ns: s.to_ns.min(latency),
                activity: match s.context {
                    Context::Nmi => Activity::Nmi,
                    Context::Interrupt => Activity::Interrupt,
                    Context::Softirq => Activity::Softirq,
                    Context::Thread if s.pid == 0 => Activity::Idle,
                    Context::Thread => Activity::Thread,
                },
                who: match s.context {
                    Context::Thread if s.pid != 0 => self.name(s.pid),
                    _ => String::new(),
                },
            })
            .collect();
        if !spans.is_empty() {
            record.lanes.push(BlameLane { cpu, spans });
        }
    }
}

/// The part from `at` to `to`, joined to the one before where nothing tells them apart.
fn push(
    record: &mut BlameRecord,
    at: &mut i64,
    to: i64,
    phase: Phase,
    (cause, who, sureness): (Cause, String, Sureness),
) {
    let ns = to.saturating_sub(*at);
    if ns <= 0 {
        return;
    }
    let same = |p: &&mut BlamePart| {
        p.phase == phase && p.cause == cause && p.who == who && p.sureness == sureness
    };
    match record.parts.last_mut().filter(same) {
        Some(last) => last.ns = last.ns.saturating_add(ns),
        None => record.parts.push(BlamePart {
            phase,
            from_ns: *at,
            ns,
            cause,
            who,
            sureness,
            ..BlamePart::default()
        }),
    }
    *at = to;
}
