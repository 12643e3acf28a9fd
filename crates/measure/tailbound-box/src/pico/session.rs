// SPDX-License-Identifier: MIT OR Apache-2.0
//! A measurement with the box, from the first question to the record.
//!
//! Units: ns of the host's clock. Order: who is there; end what an earlier host left; set, stream, start; counters
//! each second, cells and the worst every [`PAGES_NS`]; is it still measuring; stop; the samples that are on their way;
//! everything once more. However it ends, the record has what was known by then.
//! A question goes out when the one before was answered, and the box answers in their order: behind the answer to a
//! new `AskHello` no older answer can come.

use std::collections::VecDeque;

use tailbound_wire::{BoxFault, Counters, Hello, Message, Set};

use super::greeting::{self, BoxRefusal};
use super::line::LineState;
use super::link::{Heard, Link};
use super::look::{self, BoxQuery};
use super::settings::{BoxBefore, limits, set};
use crate::TimeBase;
use crate::stimulus::{
    StimulusCounters, StimulusEnd, StimulusOrigin, StimulusPlan, StimulusProgress, StimulusRecord,
    StimulusSchedule, StimulusSink,
};

/// From one look at the counters to the next.
const LOOK_NS: i64 = 1_000_000_000;
/// From one reading of all cells to the next, while it measures.
const PAGES_NS: i64 = 10_000_000_000;
/// Samples that do not come for so long come no more.
const DRAINED_NS: i64 = 300_000_000;

/// Whether the box sends every sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Streaming {
    /// All of them: exact, and each second known. USB carries them, a UART at 10 kHz does not.
    #[default]
    Samples,
    /// Counters and cells alone.
    Cells,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Greeting,
    OldStreamEnd,
    Set,
    OldStop,
    Stream,
    Start,
    Measuring,
    StillMeasuring,
    Stop,
    Barrier,
    Drain,
    Reading,
    StreamEnd,
    Over,
}

/// A measurement.
pub struct BoxSession {
    link: Link,
    plan: StimulusPlan,
    place: String,
    streaming: Streaming,
    phase: Phase,
    hello: Option<Hello>,
    set: Option<Set>,
    lines: Vec<LineState>,
    looks: VecDeque<BoxQuery>,
    started_ns: i64,
    ended_ns: i64,
    look_ns: i64,
    pages_ns: i64,
    sampled_ns: i64,
    end: Option<StimulusEnd>,
    refusal: Option<BoxRefusal>,
    before: BoxBefore,
}

impl BoxSession {
    /// Begins one; `place` is the port, for people.
    #[must_use]
    pub fn begin(place: String, plan: StimulusPlan, streaming: Streaming, now_ns: i64) -> Self {
        let mut link = Link::new();
        link.ask(Message::AskHello, now_ns);
        Self {
            link,
            plan,
            place,
            streaming,
            phase: Phase::Greeting,
            hello: None,
            set: None,
            lines: Vec::new(),
            looks: VecDeque::new(),
            started_ns: now_ns,
            ended_ns: now_ns,
            look_ns: now_ns,
            pages_ns: now_ns,
            sampled_ns: now_ns,
            end: None,
            refusal: None,
            before: BoxBefore::Idle,
        }
    }

    /// Bytes for the box.
    #[must_use]
    pub fn outgoing(&self) -> &[u8] {
        self.link.outgoing()
    }

    /// So many of them went.
    pub fn sent(&mut self, bytes: usize) {
        self.link.sent(bytes);
    }

    /// Whether there is nothing more to do.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// When [`BoxSession::at`] is to be called at the latest.
    #[must_use]
    pub fn due_ns(&self) -> i64 {
        let own = match self.phase {
            // A look waits until the one before is over.
            Phase::Measuring if self.link.is_waiting() => self.planned_end_ns(),
            Phase::Measuring => self.look_ns.min(self.planned_end_ns()),
            Phase::Drain if !self.link.is_waiting() => self.sampled_ns.saturating_add(DRAINED_NS),
            _ => i64::MAX,
        };
        self.link.due_ns().map_or(own, |due| due.min(own))
    }

    fn planned_end_ns(&self) -> i64 {
        self.started_ns.saturating_add(self.plan.duration_ns)
    }

    /// Somebody wants it to end.
    pub fn stop(&mut self, now_ns: i64) {
        if self.is_measuring() {
            self.conclude(StimulusEnd::Stopped, now_ns);
        } else if self.hello.is_none() || self.lines.is_empty() {
            self.refuse(BoxRefusal::Ended);
        }
    }

    /// The port is gone.
    pub fn lost(&mut self, why: &str, now_ns: i64) {
        self.cut(StimulusEnd::Lost(why.to_owned()), now_ns);
    }

    /// Time passes.
    pub fn at(&mut self, now_ns: i64, sink: &mut dyn StimulusSink) {
        if self.is_over() {
            return;
        }
        if !self.link.at(now_ns) {
            if self.phase == Phase::Greeting {
                return self.refuse(greeting::silence(self.link.bytes, self.link.losses()));
            }
            return self.cut(StimulusEnd::Silent, now_ns);
        }
        match self.phase {
            Phase::Measuring => {
                if now_ns >= self.planned_end_ns() {
                    self.conclude(StimulusEnd::Whole, now_ns);
                } else if now_ns >= self.look_ns && !self.link.is_waiting() {
                    self.look(now_ns, sink);
                }
            }
            Phase::Drain if now_ns >= self.sampled_ns.saturating_add(DRAINED_NS) => {
                self.read_all(now_ns);
            }
            _ => {}
        }
    }

    /// Bytes from the box.
    pub fn take(&mut self, bytes: &[u8], now_ns: i64, sink: &mut dyn StimulusSink) {
        for byte in bytes {
            if self.is_over() {
                return;
            }
            match self.link.take(*byte) {
                None => {}
                Some(Heard::Samples(batch)) => {
                    self.sampled_ns = now_ns;
                    if self.phase == Phase::Start {
                        // The answer was lost, and it has begun.
                        self.started(now_ns, sink);
                    }
                    self.samples(&batch, sink);
                    if self.phase == Phase::Drain && self.is_drained() {
                        self.read_all(now_ns);
                    }
                }
                Some(Heard::Slipped) if self.is_measuring() => {
                    self.conclude(StimulusEnd::Slipped, now_ns);
                }
                Some(Heard::Slipped) => self.slipped(),
                Some(Heard::Answer(message)) => self.answered(&message, now_ns, sink),
                Some(Heard::Refused(fault)) => self.refused(fault, now_ns),
            }
        }
    }

    /// Whether pulses are being sent.
    #[must_use]
    pub fn is_measuring(&self) -> bool {
        matches!(self.phase, Phase::Measuring)
    }

    /// It slipped while it was about to be ended.
    fn slipped(&mut self) {
        if matches!(self.end, Some(StimulusEnd::Whole | StimulusEnd::Stopped)) {
            self.end = Some(StimulusEnd::Slipped);
        }
    }

    fn samples(&mut self, batch: &tailbound_wire::SampleBatch, sink: &mut dyn StimulusSink) {
        // What comes before the start is of an earlier host.
        if matches!(
            self.phase,
            Phase::Greeting | Phase::OldStreamEnd | Phase::Set | Phase::OldStop | Phase::Stream
        ) {
            return;
        }
        let Some(line) = self.lines.get_mut(usize::from(batch.channel)) else { return };
        for record in batch.outcomes.iter().take(usize::from(batch.length)) {
            if let Some(sample) = line.sample(record) {
                sink.sample(batch.channel, sample);
            }
        }
    }

    fn ask(&mut self, phase: Phase, message: Message, now_ns: i64) {
        self.phase = phase;
        self.link.ask(message, now_ns);
    }

    fn refuse(&mut self, refusal: BoxRefusal) {
        self.refusal = Some(refusal);
        self.phase = Phase::Over;
    }

    /// Nothing more can be asked.
    fn cut(&mut self, end: StimulusEnd, now_ns: i64) {
        if self.is_over() {
            return;
        }
        let begun = !matches!(
            self.phase,
            Phase::Greeting
                | Phase::OldStreamEnd
                | Phase::Set
                | Phase::OldStop
                | Phase::Stream
                | Phase::Start
        );
        if !begun {
            return self.refuse(BoxRefusal::Lost(match end {
                StimulusEnd::Lost(why) => why,
                _ => "the box does not answer any more".to_owned(),
            }));
        }
        if self.end.is_none() {
            self.ended_ns = now_ns;
        }
        self.end = Some(end);
        self.phase = Phase::Over;
    }

    /// No more pulses: is it measuring still? Then stop.
    fn conclude(&mut self, end: StimulusEnd, now_ns: i64) {
        self.ended_ns = now_ns;
        let is_planned = matches!(end, StimulusEnd::Whole | StimulusEnd::Stopped);
        self.end = Some(end);
        self.looks.clear();
        match self.set.filter(|_| is_planned) {
            // A box that measures refuses it.
            Some(set) => self.ask(Phase::StillMeasuring, Message::Set(set), now_ns),
            None => self.ask(Phase::Stop, Message::Stop, now_ns),
        }
    }

    fn refused(&mut self, fault: BoxFault, now_ns: i64) {
        match (self.phase, fault) {
            (Phase::Set, BoxFault::Measuring) => {
                self.before = BoxBefore::Measuring;
                self.ask(Phase::OldStop, Message::Stop, now_ns);
            }
            (Phase::StillMeasuring, BoxFault::Measuring) => {
                self.ask(Phase::Stop, Message::Stop, now_ns);
            }
            (Phase::Greeting | Phase::OldStreamEnd | Phase::OldStop, fault) => {
                self.refuse(BoxRefusal::Refused { what: "to be greeted", fault });
            }
            (Phase::Set | Phase::Stream, fault) => {
                self.refuse(BoxRefusal::Refused { what: "these settings", fault });
            }
            (Phase::Start, fault) => {
                self.refuse(BoxRefusal::Refused { what: "to start", fault });
            }
            (_, fault) => {
                let why = format!("the box refused to go on: {}", greeting::reason(fault));
                self.cut(StimulusEnd::Refused(why), now_ns);
            }
        }
    }

    fn answered(&mut self, message: &Message, now_ns: i64, sink: &mut dyn StimulusSink) {
        match (self.phase, message) {
            (Phase::Greeting, Message::Hello(hello)) => self.greeted(*hello, now_ns),
            (Phase::OldStreamEnd | Phase::OldStop, _) => match self.set {
                Some(set) => self.ask(Phase::Set, Message::Set(set), now_ns),
                None => self.refuse(BoxRefusal::Ended),
            },
            (Phase::Set, _) => match self.streaming {
                Streaming::Samples => self.ask(Phase::Stream, Message::Stream, now_ns),
                Streaming::Cells => self.start(now_ns),
            },
            (Phase::Stream, _) => self.start(now_ns),
            (Phase::Start, _) => self.started(now_ns, sink),
            (Phase::StillMeasuring, _) => {
                // What was to be measured was not, whoever ended it.
                if self.end != Some(StimulusEnd::Slipped) {
                    let why = "the box had ended the measurement by itself before";
                    self.end = Some(StimulusEnd::Refused(why.to_owned()));
                }
                self.ask(Phase::Stop, Message::Stop, now_ns);
            }
            (Phase::Stop, _) => self.ask(Phase::Barrier, Message::AskHello, now_ns),
            (Phase::Barrier, _) => {
                look::counters(self.channels(), &mut self.looks);
                self.phase = Phase::Drain;
                self.sampled_ns = now_ns;
                self.next_look(now_ns);
            }
            (Phase::Measuring | Phase::Drain | Phase::Reading, message)
                if self.read(message, now_ns) =>
            {
                self.next_look(now_ns);
            }
            (Phase::StreamEnd, _) => self.phase = Phase::Over,
            _ => {}
        }
    }

    fn tick(&self) -> Option<TimeBase> {
        self.hello.and_then(|hello| TimeBase::of_hz(hello.tick_hz.into()))
    }

    fn channels(&self) -> u8 {
        self.plan.channels
    }

    fn greeted(&mut self, hello: Hello, now_ns: i64) {
        let checked = greeting::greeted(&hello).and_then(|()| set(&self.plan, &hello));
        match checked {
            Ok(set) => {
                self.hello = Some(hello);
                self.set = Some(set);
                self.ask(Phase::OldStreamEnd, Message::StreamEnd, now_ns);
            }
            Err(refusal) => self.refuse(refusal),
        }
    }

    fn start(&mut self, now_ns: i64) {
        self.lines = (0..self.channels()).map(|_| LineState::new()).collect();
        self.ask(Phase::Start, Message::Start, now_ns);
    }

    fn started(&mut self, now_ns: i64, sink: &mut dyn StimulusSink) {
        if let Some(tick) = self.tick() {
            sink.begin(tick, self.channels());
        }
        self.phase = Phase::Measuring;
        self.started_ns = now_ns;
        self.look_ns = now_ns.saturating_add(LOOK_NS);
        self.pages_ns = now_ns.saturating_add(PAGES_NS);
    }

    /// A look is due.
    fn look(&mut self, now_ns: i64, sink: &mut dyn StimulusSink) {
        sink.progress(&self.progress(now_ns));
        self.look_ns = now_ns.saturating_add(LOOK_NS);
        look::counters(self.channels(), &mut self.looks);
        if now_ns >= self.pages_ns {
            self.pages_ns = now_ns.saturating_add(PAGES_NS);
            self.all_pages();
        }
        self.next_look(now_ns);
    }

    fn all_pages(&mut self) {
        for (channel, line) in (0..).zip(&self.lines) {
            look::pages(channel, line.counters.unanswered, &mut self.looks);
        }
    }

    fn next_look(&mut self, now_ns: i64) {
        while let Some(look) = self.looks.pop_front() {
            if let Some(message) = look.question() {
                self.link.ask(message, now_ns);
                return;
            }
            if let BoxQuery::Commit(channel) = look
                && let Some(line) = self.lines.get_mut(usize::from(channel))
            {
                line.commit();
            }
        }
        match self.phase {
            Phase::Drain if self.streaming == Streaming::Cells || self.is_drained() => {
                self.read_all(now_ns);
            }
            Phase::Reading => {
                self.fell_short();
                self.ask(Phase::StreamEnd, Message::StreamEnd, now_ns);
            }
            _ => {}
        }
    }

    fn is_drained(&self) -> bool {
        self.lines.iter().all(LineState::is_drained)
    }

    /// The samples have come: everything else.
    fn read_all(&mut self, now_ns: i64) {
        if self.link.is_waiting() {
            // Its answer goes on.
            return;
        }
        self.phase = Phase::Reading;
        look::counters(self.channels(), &mut self.looks);
        self.all_pages();
        self.next_look(now_ns);
    }

    /// One answer of a look. `false`: it ended the measurement.
    fn read(&mut self, message: &Message, now_ns: i64) -> bool {
        match message {
            Message::Counters(channel, counters) => {
                return self.counted(*channel, *counters, now_ns);
            }
            Message::Cells(cells) => {
                let length = usize::from(cells.length);
                if let Some(line) = self.lines.get_mut(usize::from(cells.piece.channel)) {
                    let counts = cells.counts.get(..length).unwrap_or_default();
                    line.cells(cells.piece.shelf, cells.piece.first, counts);
                }
            }
            Message::Worst(worst) => {
                if let Some(line) = self.lines.get_mut(usize::from(worst.channel)) {
                    let entries = worst.entries.iter().take(usize::from(worst.length));
                    line.scratch.worst.extend(entries);
                }
            }
            _ => {}
        }
        true
    }

    fn counted(&mut self, channel: u8, counters: Counters, now_ns: i64) -> bool {
        let Some(line) = self.lines.get_mut(usize::from(channel)) else { return true };
        let before = line.counters;
        if counters.sent < before.sent || counters.answered < before.answered {
            self.cut(StimulusEnd::Restarted, now_ns);
            return false;
        }
        if counters.sent > before.sent {
            line.grown_ns = now_ns;
        }
        line.counters = counters;
        true
    }

    /// A channel that sent far fewer pulses than its time had slots was not measuring all the time.
    fn fell_short(&mut self) {
        if !matches!(self.end, Some(StimulusEnd::Whole | StimulusEnd::Stopped)) {
            return;
        }
        let Some(set) = self.set else { return };
        let due = self.elapsed_ticks() / u64::from(set.period_ticks.max(1));
        // The start and the end are known to some ms; slots that are held are counted before they pass.
        let allowed = due / 50 + self.ticks(50_000_000) / u64::from(set.period_ticks.max(1)) + 100;
        let short = |line: &LineState| {
            line.counters.sent.saturating_add(line.counters.held).saturating_add(allowed) < due
        };
        if self.lines.iter().any(short) {
            let why = "a channel sent fewer pulses than its schedule has: it had ended by itself";
            self.end = Some(StimulusEnd::Refused(why.to_owned()));
        }
    }

    fn ticks(&self, ns: i64) -> u64 {
        let hz = self.hello.map_or(0, |h| h.tick_hz);
        let ticks = i128::from(ns.max(0)) * i128::from(hz) / 1_000_000_000;
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }

    fn elapsed_ticks(&self) -> u64 {
        self.ticks(self.ended_ns.saturating_sub(self.started_ns))
    }

    fn progress(&self, now_ns: i64) -> StimulusProgress {
        let mut all = StimulusCounters::default();
        let sum = |a: Option<u64>, b: Option<u64>| Some(a.unwrap_or(0) + b.unwrap_or(0));
        for counted in self.lines.iter().map(LineState::counted) {
            all.sent += counted.sent;
            all.answered += counted.answered;
            all.unanswered += counted.unanswered;
            all.unknown += counted.unknown;
            all.late = sum(all.late, counted.late);
            all.spurious = sum(all.spurious, counted.spurious);
            all.dropped = sum(all.dropped, counted.dropped);
        }
        let base = self.tick();
        let longest = self.lines.iter().map(|line| line.longest_ticks).max().filter(|t| *t > 0);
        StimulusProgress {
            elapsed_ns: now_ns.saturating_sub(self.started_ns),
            counters: all,
            worst_ns: base.zip(longest).map(|(base, ticks)| base.latency_ns(ticks.into())),
        }
    }

    /// What was measured.
    ///
    /// # Errors
    /// Nothing was: why.
    pub fn finish(mut self) -> Result<StimulusRecord, BoxRefusal> {
        if let Some(refusal) = self.refusal {
            return Err(refusal);
        }
        let end = self.end.take().ok_or(BoxRefusal::Ended)?;
        let (lines, elapsed_ticks) = (std::mem::take(&mut self.lines), self.elapsed_ticks());
        self.record(lines, elapsed_ticks, end).ok_or(BoxRefusal::Ended)
    }

    /// What was measured by now; none where it does not measure.
    #[must_use]
    pub fn so_far(&self, now_ns: i64) -> Option<StimulusRecord> {
        let elapsed_ticks = self.ticks(now_ns.saturating_sub(self.started_ns));
        let lines = self.is_measuring().then(|| self.lines.clone())?;
        self.record(lines, elapsed_ticks, StimulusEnd::Unfinished)
    }

    fn record(
        &self,
        lines: Vec<LineState>,
        elapsed_ticks: u64,
        end: StimulusEnd,
    ) -> Option<StimulusRecord> {
        let (hello, set, tick) = (self.hello?, self.set?, self.tick()?);
        let schedule = StimulusSchedule {
            period_ticks: set.period_ticks.into(),
            spacing: self.plan.spacing,
            shape: self.plan.shape,
            elapsed_ticks,
            planned_ticks: self.ticks(self.plan.duration_ns),
        };
        let [major, minor, patch] = hello.firmware;
        let lines = (0..).zip(lines);
        let is_stopped = matches!(end, StimulusEnd::Whole | StimulusEnd::Stopped);
        let stopped = is_stopped.then_some(set.period_ticks.into());
        Some(StimulusRecord {
            origin: StimulusOrigin {
                tool: "tailbound-box",
                what: greeting::chip(hello.chip).to_owned(),
                version: Some(format!("{major}.{minor}.{patch}")),
                place: self.place.clone(),
            },
            tick,
            resolution_ticks: 1,
            schedule,
            channels: lines
                .map(|(n, line)| line.channel(n, &hello, self.streaming, stopped))
                .collect(),
            limits: limits(&hello, tick, self.before),
            link: self.link.losses(),
            end,
        })
    }
}
