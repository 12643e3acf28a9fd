// SPDX-License-Identifier: MIT OR Apache-2.0
//! One channel: pulses that were planned, edges that came, and which belongs to which.
//!
//! With `Stimulus::Toggle` the line changes its level at each pulse and the machine copies it: an edge up
//! answers a pulse up. So the answer to the pulse before is told from one to this. When two pulses of one
//! level are open, no edge of this level can be told any more: until the machine owes nothing (`Doubt`), each
//! pulse counts as unanswered with the time that had passed, which is right whichever it was. Meanwhile pulses
//! are `REST` periods apart. The doubt ends with a pulse before which an edge came and then `QUIET` periods
//! of silence.
//!
//! With `Stimulus::Pulse` all pulses are of one kind, so that the doubt begins one pulse earlier.

use crate::cells::Cells;
use crate::counters::Counters;
use crate::intervals::Intervals;
use crate::message::Stimulus;
use crate::worst::Worst;

/// Pulses that are planned and not yet sent, at most.
const AHEAD: usize = 8;

/// Periods between pulses while answers are owed.
const REST: u32 = 8;

/// Periods without an edge after which nothing is owed.
const QUIET: u32 = 4;

/// Of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelLevel {
    /// 0.
    Low,
    /// 1.
    High,
}

/// What is known of the answer to a pulse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// Before the next pulse, after so many ticks.
    Answered(u32),
    /// After the next pulse, after so many ticks.
    Late(u32),
    /// Not before so many ticks.
    AtLeast(u32),
    /// Edges were lost.
    Unknown,
}

impl Reaction {
    /// The time that is known; 0 where none is.
    #[must_use]
    pub const fn ticks(self) -> u32 {
        match self {
            Self::Answered(ticks) | Self::Late(ticks) | Self::AtLeast(ticks) => ticks,
            Self::Unknown => 0,
        }
    }
}

/// A pulse and what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PulseRecord {
    /// The pulse, from 0.
    pub number: u64,
    /// When it was sent, in ticks since the start.
    pub sent_ticks: u64,
    /// What is known of its answer.
    pub reaction: Reaction,
}

impl PulseRecord {
    pub(crate) const NONE: Self =
        Self { number: 0, sent_ticks: 0, reaction: Reaction::Answered(0) };
}

#[derive(Debug, Clone, Copy)]
struct Pulse {
    number: u64,
    ticks: u64,
}

/// Whether an edge can be told to be the answer to a pulse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doubt {
    None,
    /// Answers are owed, and no edge came since.
    Silent,
    /// Answers are owed; the last edge came then.
    Heard(u64),
}

/// One channel of the box.
#[derive(Debug, Clone)]
pub struct Channel {
    stimulus: Stimulus,
    intervals: Intervals,
    /// When the last planned pulse is due.
    planned_ticks: u64,
    ahead: [u64; AHEAD],
    ahead_first: usize,
    ahead_length: usize,
    /// The open pulse of each kind.
    open: [Option<Pulse>; 2],
    doubt: Doubt,
    /// Of the answer, unless edges were lost.
    level: Option<ChannelLevel>,
    now_ticks: u64,
    /// What was counted.
    pub counters: Counters,
    /// Reactions that are known.
    pub answered: Cells,
    /// Least times of those that are not.
    pub at_least: Cells,
    /// The longest of both.
    pub worst: Worst,
}

impl Channel {
    /// Nothing sent, the line low.
    #[must_use]
    pub const fn new(stimulus: Stimulus, intervals: Intervals) -> Self {
        Self {
            stimulus,
            intervals,
            planned_ticks: 0,
            ahead: [0; AHEAD],
            ahead_first: 0,
            ahead_length: 0,
            open: [None; 2],
            doubt: Doubt::None,
            level: Some(ChannelLevel::Low),
            now_ticks: 0,
            counters: Counters::new(),
            answered: Cells::new(),
            at_least: Cells::new(),
            worst: Worst::new(),
        }
    }

    /// As [`Channel::new`], in place: a channel has 20 KiB, more than a small stack.
    pub const fn begin(&mut self, stimulus: Stimulus, intervals: Intervals) {
        self.stimulus = stimulus;
        self.intervals = intervals;
        self.planned_ticks = 0;
        self.ahead_first = 0;
        self.ahead_length = 0;
        self.open = [None; 2];
        self.doubt = Doubt::None;
        self.level = Some(ChannelLevel::Low);
        self.now_ticks = 0;
        self.counters = Counters::new();
        self.answered.clear();
        self.at_least.clear();
        self.worst.clear();
    }

    /// The interval before the pulse to plan next; none where enough are planned.
    pub fn plan(&mut self) -> Option<u32> {
        if self.ahead_length == AHEAD {
            return None;
        }
        let interval = match self.doubt {
            Doubt::None => self.intervals.next(),
            Doubt::Silent | Doubt::Heard(_) => {
                self.counters.held = self.counters.held.saturating_add(u64::from(REST - 1));
                self.intervals.period_ticks().saturating_mul(REST)
            }
        };
        self.planned_ticks = self.planned_ticks.saturating_add(u64::from(interval));
        let place = (self.ahead_first + self.ahead_length) % AHEAD;
        if let Some(to) = self.ahead.get_mut(place) {
            *to = self.planned_ticks;
        }
        self.ahead_length += 1;
        Some(interval)
    }

    /// An edge to `level`, its time as the lower 31 bits of ticks since the start. Edges come in their order.
    pub fn edge(
        &mut self,
        low_ticks: u32,
        level: ChannelLevel,
        tell: &mut impl FnMut(PulseRecord),
    ) {
        let ticks = self.whole(low_ticks);
        self.pass(ticks, tell);
        if self.level == Some(level) {
            // Edges alternate: one between is missing.
            self.lose(tell);
            return;
        }
        self.level = Some(level);
        if self.stimulus == Stimulus::Pulse && level == ChannelLevel::Low {
            return;
        }
        self.assign(ticks, level, tell);
    }

    fn assign(&mut self, ticks: u64, level: ChannelLevel, tell: &mut impl FnMut(PulseRecord)) {
        let in_doubt = self.doubt != Doubt::None;
        if in_doubt {
            self.doubt = Doubt::Heard(ticks);
        }
        let open =
            self.kind_mut(level).filter(|open| open.is_some_and(|pulse| pulse.ticks <= ticks));
        let Some(pulse) = open.and_then(Option::take) else {
            let count =
                if in_doubt { &mut self.counters.unassigned } else { &mut self.counters.spurious };
            *count = count.saturating_add(1);
            return;
        };
        let passed = since(pulse.ticks, ticks);
        let reaction = if in_doubt {
            Reaction::AtLeast(passed)
        } else if pulse.number.saturating_add(1) < self.counters.sent {
            Reaction::Late(passed)
        } else {
            Reaction::Answered(passed)
        };
        self.close(pulse, reaction, tell);
    }

    /// All edges until then were taken: pulses that were due are sent.
    pub fn pass(&mut self, ticks: u64, tell: &mut impl FnMut(PulseRecord)) {
        while self.ahead_length > 0 {
            let Some(&due) = self.ahead.get(self.ahead_first).filter(|due| **due <= ticks) else {
                break;
            };
            self.ahead_first = (self.ahead_first + 1) % AHEAD;
            self.ahead_length -= 1;
            self.send(due, tell);
        }
        self.now_ticks = self.now_ticks.max(ticks);
    }

    fn send(&mut self, ticks: u64, tell: &mut impl FnMut(PulseRecord)) {
        let pulse = Pulse { number: self.counters.sent, ticks };
        self.counters.sent = self.counters.sent.saturating_add(1);
        let quiet = u64::from(self.intervals.period_ticks()).saturating_mul(u64::from(QUIET));
        if let Doubt::Heard(last) = self.doubt
            && ticks.saturating_sub(last) >= quiet
        {
            self.doubt = Doubt::None;
            // What is open was not answered, and will not be.
            self.end_open(ticks, tell);
        }
        let level = if self.stimulus == Stimulus::Pulse || pulse.number.is_multiple_of(2) {
            ChannelLevel::High
        } else {
            ChannelLevel::Low
        };
        if let Some(before) = self.kind_mut(level).and_then(|open| open.replace(pulse)) {
            if self.doubt == Doubt::None {
                self.doubt = Doubt::Silent;
            }
            self.close(before, Reaction::AtLeast(since(before.ticks, ticks)), tell);
        }
    }

    /// Edges were lost: what is open cannot be known any more.
    pub fn lose(&mut self, tell: &mut impl FnMut(PulseRecord)) {
        self.counters.edges_lost = self.counters.edges_lost.saturating_add(1);
        self.doubt = Doubt::Silent;
        self.level = None;
        for kind in 0..self.open.len() {
            if let Some(pulse) = self.open.get_mut(kind).and_then(Option::take) {
                self.close(pulse, Reaction::Unknown, tell);
            }
        }
    }

    /// All of the time whose lower 31 bits these are: the nearest to the last one.
    fn whole(&self, low_ticks: u32) -> u64 {
        let ahead = low_ticks.wrapping_sub(self.now_ticks as u32) & 0x7FFF_FFFF;
        if ahead < 0x4000_0000 {
            self.now_ticks.saturating_add(u64::from(ahead))
        } else {
            // An edge that was taken after a pulse behind it was passed.
            self.now_ticks.saturating_sub(u64::from(0x8000_0000 - ahead))
        }
    }

    /// The end, its time as the lower 31 bits of ticks: what is open counts with the time that has passed.
    pub fn end(&mut self, low_ticks: u32, tell: &mut impl FnMut(PulseRecord)) {
        let ticks = self.whole(low_ticks);
        self.pass(ticks, tell);
        self.ahead_length = 0;
        self.end_open(ticks, tell);
    }

    /// When the planned pulse at this place, from 0, is due.
    #[must_use]
    pub fn due(&self, place: usize) -> Option<u64> {
        if place >= self.ahead_length {
            return None;
        }
        self.ahead.get((self.ahead_first + place) % AHEAD).copied()
    }

    /// Pulses that are planned and not sent.
    #[must_use]
    pub const fn planned(&self) -> usize {
        self.ahead_length
    }

    fn end_open(&mut self, ticks: u64, tell: &mut impl FnMut(PulseRecord)) {
        // The older first.
        if let [Some(high), Some(low)] = self.open
            && low.number < high.number
        {
            self.open.swap(0, 1);
        }
        for kind in 0..self.open.len() {
            if let Some(pulse) = self.open.get_mut(kind).and_then(Option::take) {
                self.close(pulse, Reaction::AtLeast(since(pulse.ticks, ticks)), tell);
            }
        }
    }

    fn kind_mut(&mut self, level: ChannelLevel) -> Option<&mut Option<Pulse>> {
        self.open.get_mut(match level {
            ChannelLevel::High => 0,
            ChannelLevel::Low => 1,
        })
    }

    fn close(&mut self, pulse: Pulse, reaction: Reaction, tell: &mut impl FnMut(PulseRecord)) {
        let outcome = PulseRecord { number: pulse.number, sent_ticks: pulse.ticks, reaction };
        let counters = &mut self.counters;
        match reaction {
            Reaction::Answered(ticks) | Reaction::Late(ticks) => {
                counters.answered = counters.answered.saturating_add(1);
                if matches!(reaction, Reaction::Late(_)) {
                    counters.late = counters.late.saturating_add(1);
                }
                self.answered.count(ticks);
                self.worst.keep(outcome);
            }
            Reaction::AtLeast(ticks) => {
                counters.unanswered = counters.unanswered.saturating_add(1);
                self.at_least.count(ticks);
                self.worst.keep(outcome);
            }
            Reaction::Unknown => counters.unknown = counters.unknown.saturating_add(1),
        }
        tell(outcome);
    }
}

fn since(sent: u64, ticks: u64) -> u32 {
    u32::try_from(ticks.saturating_sub(sent)).unwrap_or(u32::MAX)
}
