// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pulses and their answers: which answer belongs to which pulse, and what became of every edge.
//!
//! Units: ticks. Nothing is dropped: every pulse ends as one [`PulseOutcome`], every answer edge
//! as one count.
//! Rules: answers come in the order of their pulses. Where every edge is a pulse, the level tells an
//! answer to this pulse from one to the pulse before, so that a late answer is never read as the next one's. Of several pulses that an
//! answer may belong to, it is read as that of the oldest: the longest latency. Only after 16 such answers one after another, which
//! caught nothing up, the older pulses were not answered.
//! Memory: 1,024 open pulses; an older one is not answered.

use std::collections::VecDeque;

use crate::edge::{CaptureLine, Edge, EdgeRule, Level};
use crate::intervals::Intervals;

/// Most pulses that wait for an answer.
const OPEN_MAX: usize = 1 << 10;
/// Answers that may be of several pulses, one after another, before the older pulses are given up.
const AMBIGUOUS_MAX: u32 = 16;

/// Whether an answer came before the next pulse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promptness {
    /// Before the next pulse.
    BeforeNext,
    /// After it.
    AfterNext,
}

/// A pulse that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// When it came.
    pub tick: i64,
    /// From then to the answer.
    pub latency: i64,
    /// Whether that was before the next pulse.
    pub promptness: Promptness,
}

/// What became of a pulse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PulseOutcome {
    /// It was answered.
    Answered(Answered),
    /// No answer came to the pulse at this tick, although there was time for one.
    Unanswered(i64),
    /// The capture ended within one period after the pulse at this tick, before an answer.
    InFlight(i64),
}

/// What became of all edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgeCounts {
    /// Pulses.
    pub pulses: u64,
    /// Of these, answered before the next one.
    pub in_time: u64,
    /// Answered after the next one.
    pub late: u64,
    /// Never answered.
    pub unanswered: u64,
    /// Not yet answered when the capture ended: 0 or 1.
    pub in_flight: u64,
    /// Edges of the answer that repeat the answer to a pulse.
    pub answered_twice: u64,
    /// Edges of the answer that belong to no pulse.
    pub spurious: u64,
    /// Edges of the answer before the first pulse.
    pub before_first: u64,
    /// Answers that may be of several pulses, read as that of the oldest.
    pub ambiguous: u64,
    /// How often older pulses were given up after such answers.
    pub given_up: u64,
}

#[derive(Clone, Copy, Debug)]
struct Pulse {
    tick: i64,
    level: Level,
}

/// What the last answer was, for what repeats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastAnswer {
    None,
    /// An answer to this level that was not repeated.
    Once(Level),
    Repeated,
}

/// Pairs edges that come in the order of their time.
#[derive(Clone, Debug)]
pub struct Pairing {
    rule: EdgeRule,
    open: VecDeque<Pulse>,
    intervals: Intervals,
    counts: EdgeCounts,
    last: LastAnswer,
    ambiguous_in_row: u32,
}

impl Pairing {
    /// Of edges of which `rule` says what they are.
    #[must_use]
    pub fn new(rule: EdgeRule) -> Self {
        Self {
            rule,
            open: VecDeque::new(),
            intervals: Intervals::default(),
            counts: EdgeCounts::default(),
            last: LastAnswer::None,
            ambiguous_in_row: 0,
        }
    }

    /// What was counted so far.
    #[must_use]
    pub fn counts(&self) -> EdgeCounts {
        self.counts
    }

    /// From pulse to pulse.
    #[must_use]
    pub fn intervals(&self) -> &Intervals {
        &self.intervals
    }

    /// The next edge; pulses whose outcome it decides are told in their order.
    pub fn edge(&mut self, edge: Edge, told: &mut dyn FnMut(PulseOutcome)) {
        if !self.rule.counts(edge.level) {
            return;
        }
        match edge.line {
            CaptureLine::Stimulus => {
                self.counts.pulses += 1;
                self.intervals.add(edge.tick);
                self.open.push_back(Pulse { tick: edge.tick, level: edge.level });
                if self.open.len() > OPEN_MAX {
                    self.give_up(1, told);
                }
            }
            CaptureLine::Answer => self.answer(edge, told),
        }
    }

    fn answer(&mut self, edge: Edge, told: &mut dyn FnMut(PulseOutcome)) {
        if self.counts.pulses == 0 {
            self.counts.before_first += 1;
            return;
        }
        let level = self.rule.pulse_level(edge.level);
        let mut candidates =
            self.open.iter().enumerate().filter(|(_, p)| p.level == level).map(|(i, _)| i);
        let Some(oldest) = candidates.next() else {
            self.extra(level);
            return;
        };
        let newest = candidates.next_back();
        let chosen = match newest {
            None => {
                self.ambiguous_in_row = 0;
                oldest
            }
            Some(newest) if self.ambiguous_in_row >= AMBIGUOUS_MAX => {
                self.ambiguous_in_row = 0;
                self.counts.given_up += 1;
                newest
            }
            Some(_) => {
                self.ambiguous_in_row += 1;
                self.counts.ambiguous += 1;
                oldest
            }
        };
        self.give_up(chosen, told);
        let Some(pulse) = self.open.pop_front() else { return };
        let promptness = match self.open.front() {
            Some(next) if next.tick < edge.tick => Promptness::AfterNext,
            _ => Promptness::BeforeNext,
        };
        match promptness {
            Promptness::BeforeNext => self.counts.in_time += 1,
            Promptness::AfterNext => self.counts.late += 1,
        }
        self.last = LastAnswer::Once(level);
        let latency = edge.tick.saturating_sub(pulse.tick);
        told(PulseOutcome::Answered(Answered { tick: pulse.tick, latency, promptness }));
    }

    /// An edge that no open pulse waits for.
    fn extra(&mut self, level: Level) {
        if self.last == LastAnswer::Once(level) {
            self.counts.answered_twice += 1;
            self.last = LastAnswer::Repeated;
        } else {
            self.counts.spurious += 1;
        }
    }

    /// The oldest `n` pulses were not answered.
    fn give_up(&mut self, n: usize, told: &mut dyn FnMut(PulseOutcome)) {
        for pulse in self.open.drain(..n.min(self.open.len())) {
            self.counts.unanswered += 1;
            told(PulseOutcome::Unanswered(pulse.tick));
        }
    }

    /// The capture ends at `tick`.
    pub fn end(&mut self, tick: i64, told: &mut dyn FnMut(PulseOutcome)) {
        let period = self.intervals.median().unwrap_or(i64::MAX);
        let last = self.open.back().copied().filter(|p| tick.saturating_sub(p.tick) <= period);
        if last.is_some() {
            self.open.pop_back();
        }
        self.give_up(self.open.len(), told);
        if let Some(pulse) = last {
            self.counts.in_flight += 1;
            told(PulseOutcome::InFlight(pulse.tick));
        }
    }
}
