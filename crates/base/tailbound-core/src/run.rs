// SPDX-License-Identifier: MIT OR Apache-2.0
//! [`Run`]: a whole run, read back from its lines.
//!
//! Units: ns.

use crate::blame::BlameRecord;
use crate::context::Context;
use crate::cycle::CycleRecord;
use crate::distribution::Distribution;
use crate::disturbance::DisturbanceRecord;
use crate::ended::EndReason;
use crate::finding::Finding;
use crate::paths::PathsRecord;
use crate::pulses::{AnsweredPulses, PulseJoin, SentPulses};
use crate::record::{
    BenchmarkRecord, BlockRecord, End, Event, ExceedanceRecord, Facts, FigureRecord, Header, Line,
    LoadRecord, RawRecord, SecondRecord, SelfCost, ThreadRecord, TimelineRecord, WindowRecord,
};
use crate::rules::ViolationRecord;
use crate::tasks::TaskRecord;
use crate::units::format_span;
use crate::verdict::Verdict;

/// A whole run, read back.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// First line.
    pub header: Header,
    /// Events.
    pub events: Vec<Event>,
    /// Per-second records, in file order.
    pub seconds: Vec<SecondRecord>,
    /// Moving statistics.
    pub windows: Vec<WindowRecord>,
    /// Stretches of the schedule, in file order.
    pub blocks: Vec<BlockRecord>,
    /// Exceedances.
    pub exceedances: Vec<ExceedanceRecord>,
    /// Late wake-ups that were taken apart.
    pub blames: Vec<BlameRecord>,
    /// Watched threads as tasks.
    pub tasks: Vec<TaskRecord>,
    /// Cycles of threads that were watched.
    pub cycles: Vec<CycleRecord>,
    /// Rules that watched threads broke.
    pub violations: Vec<ViolationRecord>,
    /// Exact paths of the kernel, where the run was watched from within the emulator.
    pub paths: Option<Box<PathsRecord>>,
    /// What was taken of the measured CPUs, look by look.
    pub disturbances: Vec<DisturbanceRecord>,
    /// Numbers of pulses that were sent.
    pub sent_pulses: Vec<SentPulses>,
    /// The longest answers to pulses.
    pub answered_pulses: Vec<AnsweredPulses>,
    /// The longest pulses, joined with their answers.
    pub pulse_joins: Vec<PulseJoin>,
    /// Achieved load.
    pub loads: Vec<LoadRecord>,
    /// Benchmarks and what they cost.
    pub benchmarks: Vec<BenchmarkRecord>,
    /// Figures of the probe.
    pub figures: Vec<FigureRecord>,
    /// What some tasks did.
    pub timelines: Vec<TimelineRecord>,
    /// Raw samples, still packed.
    pub raw: Vec<RawRecord>,
    /// Threads and contexts.
    pub threads: Vec<ThreadRecord>,
    /// Costs of the tool itself.
    pub self_cost: SelfCost,
    /// Facts at the end.
    pub after: Facts,
    /// Findings.
    pub findings: Vec<Finding>,
    /// The verdict, if the run came so far.
    pub verdict: Option<Verdict>,
    /// The last line; `None`: the file was cut off.
    pub end: Option<End>,
}

impl Run {
    /// A run with a header and nothing else yet.
    #[must_use]
    pub fn new(header: Header) -> Self {
        Self {
            header,
            events: Vec::new(),
            seconds: Vec::new(),
            windows: Vec::new(),
            blocks: Vec::new(),
            exceedances: Vec::new(),
            blames: Vec::new(),
            tasks: Vec::new(),
            cycles: Vec::new(),
            violations: Vec::new(),
            paths: None,
            disturbances: Vec::new(),
            sent_pulses: Vec::new(),
            answered_pulses: Vec::new(),
            pulse_joins: Vec::new(),
            loads: Vec::new(),
            benchmarks: Vec::new(),
            figures: Vec::new(),
            timelines: Vec::new(),
            raw: Vec::new(),
            threads: Vec::new(),
            self_cost: SelfCost::new(),
            after: Facts::new(),
            findings: Vec::new(),
            verdict: None,
            end: None,
        }
    }

    /// Puts one line where it belongs. A second header is ignored. Of several records of one thread
    /// and context the last one counts (it knows more); of several findings with one id likewise,
    /// unless the earlier one is graver: no order of lines takes a doubt away.
    pub fn absorb(&mut self, line: Line) {
        match line {
            Line::Header(_) => {}
            Line::Event(e) => self.events.push(e),
            Line::Second(s) => self.seconds.push(s),
            Line::Window(w) => self.windows.push(w),
            Line::Block(b) => self.blocks.push(b),
            Line::Exceedance(e) => self.exceedances.push(e),
            Line::Blame(b) => self.blames.push(*b),
            Line::Task(t) => match self.tasks.iter_mut().find(|old| old.thread == t.thread) {
                Some(old) => *old = *t,
                None => self.tasks.push(*t),
            },
            Line::Cycle(c) => self.cycles.push(*c),
            Line::Violation(v) => self.violations.push(*v),
            Line::Paths(p) => self.paths = Some(p),
            Line::Disturbance(d) => self.disturbances.push(d),
            Line::SentPulses(p) => self.sent_pulses.push(p),
            Line::AnsweredPulses(p) => self.answered_pulses.push(*p),
            Line::PulseJoin(j) => self.pulse_joins.push(*j),
            Line::Load(l) => self.loads.push(l),
            Line::Benchmark(w) => self.benchmarks.push(w),
            Line::Figure(f) => self.figures.push(f),
            Line::Timeline(t) => self.timelines.push(t),
            Line::Raw(r) => self.raw.push(r),
            Line::Thread(t) => {
                let same =
                    |old: &&mut ThreadRecord| old.thread == t.thread && old.context == t.context;
                match self.threads.iter_mut().find(same) {
                    Some(old) => *old = *t,
                    None => self.threads.push(*t),
                }
            }
            Line::SelfCost { values } => self.self_cost = values,
            Line::After { facts } => self.after = facts,
            Line::Finding(f) => match self.findings.iter_mut().find(|old| old.id == f.id) {
                Some(old) if old.impact <= f.impact => *old = f,
                Some(_) => {}
                None => self.findings.push(f),
            },
            Line::Verdict(v) => self.verdict = Some(v),
            Line::End(e) => self.end = Some(e),
        }
    }

    /// Every record but the last, in the order of the run file.
    pub fn lines(&self) -> Box<dyn Iterator<Item = Line> + '_> {
        let all = std::iter::once(Line::Header(Box::new(self.header.clone())))
            .chain(self.events.iter().cloned().map(Line::Event))
            .chain(self.seconds.iter().cloned().map(Line::Second))
            .chain(self.windows.iter().cloned().map(Line::Window))
            .chain(self.blocks.iter().cloned().map(Line::Block))
            .chain(self.exceedances.iter().cloned().map(Line::Exceedance))
            .chain(self.blames.iter().cloned().map(|b| Line::Blame(Box::new(b))))
            .chain(self.tasks.iter().cloned().map(|t| Line::Task(Box::new(t))))
            .chain(self.cycles.iter().cloned().map(|c| Line::Cycle(Box::new(c))))
            .chain(self.violations.iter().cloned().map(|v| Line::Violation(Box::new(v))))
            .chain(self.paths.iter().cloned().map(Line::Paths))
            .chain(self.disturbances.iter().cloned().map(Line::Disturbance))
            .chain(self.sent_pulses.iter().cloned().map(Line::SentPulses))
            .chain(self.answered_pulses.iter().map(|p| Line::AnsweredPulses(Box::new(p.clone()))))
            .chain(self.pulse_joins.iter().map(|j| Line::PulseJoin(Box::new(j.clone()))))
            .chain(self.loads.iter().cloned().map(Line::Load))
            .chain(self.raw.iter().cloned().map(Line::Raw))
            .chain(self.threads.iter().map(|t| Line::Thread(Box::new(t.clone()))))
            .chain(
                (!self.self_cost.is_empty())
                    .then(|| Line::SelfCost { values: self.self_cost.clone() }),
            )
            .chain((!self.after.is_empty()).then(|| Line::After { facts: self.after.clone() }))
            .chain(self.findings.iter().cloned().map(Line::Finding))
            .chain(self.verdict.iter().cloned().map(Line::Verdict))
            .chain(self.benchmarks.iter().cloned().map(Line::Benchmark))
            .chain(self.figures.iter().cloned().map(Line::Figure))
            .chain(self.timelines.iter().cloned().map(Line::Timeline));
        // One copy of so long a chain, not one for each crate that reads it.
        Box::new(all)
    }

    /// Contexts in the order they appear (`user`; `irq`, `thread`, `user`; …).
    #[must_use]
    pub fn contexts(&self) -> Vec<Context> {
        contexts(&self.threads)
    }

    /// The context that is judged: [`Context::judged`]. `None`: the run has no thread.
    #[must_use]
    pub fn judged_context(&self) -> Option<Context> {
        Context::judged(&self.contexts())
    }

    /// Whether the run ended as its plan wanted: [`EndReason::is_as_planned`]. One without a
    /// last line was cut off, and did not.
    #[must_use]
    pub fn ended_as_planned(&self) -> bool {
        let cut = || self.findings.iter().any(|f| f.id == "file-cut-after-verdict");
        self.end.as_ref().is_some_and(|e| e.reason.is_as_planned()) && !cut()
    }

    /// Why it ended; without a last line, because it was cut off.
    #[must_use]
    pub fn end_reason(&self) -> EndReason {
        self.end.as_ref().map_or(EndReason::CutOff, |e| e.reason)
    }

    /// All threads of one context together: per wake-up, and per due activation.
    #[must_use]
    pub fn total(&self, context: impl Into<Context>) -> (Distribution, Distribution) {
        let context = context.into();
        let (mut wakeup, mut due) = (Distribution::default(), Distribution::default());
        for t in self.threads.iter().filter(|t| t.context == context) {
            wakeup.merge(&t.wakeup);
            due.merge(&t.wakeup);
            due.merge(&t.missed);
        }
        (wakeup, due)
    }

    /// [`Run::total`] of the judged context; empty where the run has no thread.
    #[must_use]
    pub fn judged_total(&self) -> (Distribution, Distribution) {
        self.judged_context().map(|c| self.total(c)).unwrap_or_default()
    }

    /// Measured length of the schedule: from the last line, else from the per-second records.
    #[must_use]
    pub fn measured_ns(&self) -> i64 {
        let seconds = || self.seconds.iter().map(|s| s.second.saturating_add(1)).max().unwrap_or(0);
        self.end.as_ref().map_or_else(
            || i64::try_from(seconds()).unwrap_or(0).saturating_mul(1_000_000_000),
            |e| e.measured_ns,
        )
    }

    /// The same; `None` where a file of another tool does not tell.
    #[must_use]
    pub fn known_length_ns(&self) -> Option<i64> {
        let ns = self.measured_ns();
        (ns > 0 || self.header.source.is_none()).then_some(ns)
    }

    /// The same for people: `60 s`, or that it is unknown.
    #[must_use]
    pub fn length_words(&self) -> String {
        self.known_length_ns().map_or_else(|| "unknown: not in the file".to_owned(), format_span)
    }
}

/// Contexts in the order in which they first appear.
#[must_use]
pub fn contexts<'t>(threads: impl IntoIterator<Item = &'t ThreadRecord>) -> Vec<Context> {
    let mut out: Vec<Context> = Vec::new();
    for t in threads {
        if !out.contains(&t.context) {
            out.push(t.context);
        }
    }
    out
}
