// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the host knows of one channel of the box, and what it makes of it at the end.
//!
//! Units: ticks. The cells of the box hold every pulse, the samples most of them: what a cell has more than the samples
//! in it is what was lost on the way. A look at cells while the box counts on is older than the last samples, so that
//! the difference may be too small, and never too large.

use tailbound_wire::{CELLS, Cells, Counters, Hello, PulseRecord, Reaction, Shelf};

use super::Streaming;
use crate::stimulus::{
    CellCount, CellTable, SampleAccount, StimulusChannel, StimulusCounters, StimulusReaction,
    StimulusSample,
};

/// The cells and the worst of a channel as they were read.
#[derive(Clone, Default)]
pub(crate) struct Snapshot {
    pub(crate) answered: Vec<u32>,
    pub(crate) at_least: Vec<u32>,
    pub(crate) worst: Vec<PulseRecord>,
}

/// Samples of a kind that came.
#[derive(Clone, Copy, Default)]
struct Tally {
    answered: u64,
    late: u64,
    unanswered: u64,
    unknown: u64,
}

/// One channel.
#[derive(Clone)]
pub(crate) struct LineState {
    pub(crate) counters: Counters,
    /// When they last grew.
    pub(crate) grown_ns: i64,
    pub(crate) scratch: Snapshot,
    pub(crate) snapshot: Snapshot,
    pub(crate) longest_ticks: u32,
    account: SampleAccount,
    /// The sample with the highest number.
    last: Option<PulseRecord>,
    longest_answer_ticks: u32,
    tally: Tally,
    answered: Box<Cells>,
    at_least: Box<Cells>,
}

impl LineState {
    pub(crate) fn new() -> Self {
        Self {
            counters: Counters::new(),
            grown_ns: 0,
            scratch: Snapshot::default(),
            snapshot: Snapshot::default(),
            longest_ticks: 0,
            account: SampleAccount::default(),
            last: None,
            longest_answer_ticks: 0,
            tally: Tally::default(),
            answered: Box::default(),
            at_least: Box::default(),
        }
    }

    /// A sample came; for the sink, unless it came before.
    pub(crate) fn sample(&mut self, record: &PulseRecord) -> Option<StimulusSample> {
        if !self.account.take(record.number) {
            return None;
        }
        if self.last.is_none_or(|last| last.number < record.number) {
            self.last = Some(*record);
        }
        if let Reaction::Answered(ticks) | Reaction::Late(ticks) = record.reaction {
            self.longest_answer_ticks = self.longest_answer_ticks.max(ticks);
        }
        let tally = &mut self.tally;
        self.longest_ticks = self.longest_ticks.max(record.reaction.ticks());
        match record.reaction {
            Reaction::Answered(ticks) => {
                tally.answered += 1;
                self.answered.count(ticks);
            }
            Reaction::Late(ticks) => {
                tally.answered += 1;
                tally.late += 1;
                self.answered.count(ticks);
            }
            Reaction::AtLeast(ticks) => {
                tally.unanswered += 1;
                self.at_least.count(ticks);
            }
            Reaction::Unknown => tally.unknown += 1,
        }
        Some(sample(record))
    }

    /// Cells that were read, into the scratch.
    pub(crate) fn cells(&mut self, shelf: Shelf, first: u16, counts: &[u32]) {
        let into = match shelf {
            Shelf::Answered => &mut self.scratch.answered,
            Shelf::AtLeast => &mut self.scratch.at_least,
        };
        into.resize(CELLS, 0);
        for (to, from) in into.iter_mut().skip(usize::from(first)).zip(counts) {
            *to = *from;
        }
    }

    /// All of the scratch was read.
    pub(crate) fn commit(&mut self) {
        self.snapshot = std::mem::take(&mut self.scratch);
        let longest = self.snapshot.worst.iter().map(|w| w.reaction.ticks()).max();
        self.longest_ticks = self.longest_ticks.max(longest.unwrap_or(0));
    }

    /// Pulses whose outcome the box has told.
    pub(crate) fn closed(&self) -> u64 {
        let c = &self.counters;
        c.answered.saturating_add(c.unanswered).saturating_add(c.unknown)
    }

    /// Whether every sample came that the box had room for.
    pub(crate) fn is_drained(&self) -> bool {
        self.account.came.saturating_add(self.counters.dropped) >= self.closed()
    }

    /// The counters of now, of which the samples may know more than the last look.
    pub(crate) fn counted(&self) -> StimulusCounters {
        let (c, t) = (&self.counters, &self.tally);
        let answered = c.answered.max(t.answered);
        let unanswered = c.unanswered.max(t.unanswered);
        let unknown = c.unknown.max(t.unknown);
        StimulusCounters {
            sent: c.sent.max(self.account.behind).max(answered + unanswered + unknown),
            answered,
            late: Some(c.late.max(t.late)),
            unanswered,
            unknown,
            spurious: Some(c.spurious),
            unassigned: Some(c.unassigned),
            held: Some(c.held),
            edges_lost: Some(c.edges_lost),
            dropped: Some(c.dropped),
            ..StimulusCounters::default()
        }
    }

    /// The last pulse of a measurement that was stopped, where it had no time to be answered; its cell is emptied.
    ///
    /// Without samples it is known only where it is the one pulse that was not answered.
    fn in_flight(&self, period_ticks: u64, at_least: &mut Vec<CellCount>) -> Option<u64> {
        let of_worst = self.snapshot.worst.iter().filter_map(|worst| match worst.reaction {
            Reaction::Answered(ticks) | Reaction::Late(ticks) => Some(ticks),
            _ => None,
        });
        let longest = u64::from(of_worst.max().unwrap_or(0).max(self.longest_answer_ticks));
        let is_young = |ticks: u64| ticks < period_ticks && ticks <= longest;
        let last = self.counters.sent.checked_sub(1)?;
        if let Some(record) = self.last.filter(|record| record.number == last) {
            let Reaction::AtLeast(ticks) = record.reaction else { return None };
            return is_young(ticks.into()).then_some(last);
        }
        let [cell] = at_least.as_slice() else { return None };
        let is_one = self.counters.unanswered == 1 && cell.count == 1 && self.counters.held == 0;
        (is_one && cell.most_ticks.is_some_and(is_young)).then(|| {
            at_least.clear();
            last
        })
    }

    /// All of it, for the record; of a measurement that was stopped, the period.
    pub(crate) fn channel(
        mut self,
        number: u8,
        hello: &Hello,
        streaming: Streaming,
        stopped_period_ticks: Option<u64>,
    ) -> StimulusChannel {
        let answered = rest(&self.snapshot.answered, &self.answered);
        let mut at_least = rest(&self.snapshot.at_least, &self.at_least);
        let in_flight =
            stopped_period_ticks.and_then(|period| self.in_flight(period, &mut at_least));
        let sum = |cells: &[CellCount]| cells.iter().map(|c| c.count).sum::<u64>();
        let mut counters = self.counted();
        counters.answered = counters.answered.max(self.tally.answered + sum(&answered));
        counters.unanswered = counters.unanswered.max(self.tally.unanswered + sum(&at_least));
        let closed = counters.answered + counters.unanswered + counters.unknown;
        counters.sent = counters.sent.max(closed);
        let known = self.account.came + sum(&answered) + sum(&at_least);
        // A sample of it is among those that came.
        let is_elsewhere = in_flight.is_some_and(|number| !self.account.has(number));
        let lost = closed.max(self.account.behind).saturating_sub(known + u64::from(is_elsewhere));
        counters.unanswered -= u64::from(in_flight.is_some()).min(counters.unanswered);
        let [out, back] = hello.pins.map(|pin| u32::from(pin) + 2 * u32::from(number));
        let worst = &mut self.snapshot.worst;
        worst.sort_unstable_by_key(|w| (std::cmp::Reverse(w.reaction.ticks()), w.number));
        worst.dedup_by_key(|w| w.number);
        StimulusChannel {
            number,
            name: format!("GPIO {out} to GPIO {back}"),
            counters,
            cells: CellTable { answered, at_least },
            lost,
            in_flight,
            worst: worst.iter().map(sample).collect(),
            extremes: None,
            streamed: (streaming == Streaming::Samples).then_some(self.account),
            numbers: None,
        }
    }
}

/// What the box counted and no sample told.
fn rest(all: &[u32], streamed: &Cells) -> Vec<CellCount> {
    let both = all.iter().zip(streamed.counts()).enumerate();
    both.filter_map(|(cell, (all, came))| {
        let count = u64::from(all.saturating_sub(*came));
        let next = cell + 1;
        let most = if next < CELLS { Cells::least(next) - 1 } else { u64::from(u32::MAX) };
        // The last cell has also what is longer than a number of the box.
        let most_ticks = (next < CELLS).then_some(most);
        (count > 0).then(|| CellCount { least_ticks: Cells::least(cell), most_ticks, count })
    })
    .collect()
}

fn sample(record: &PulseRecord) -> StimulusSample {
    let reaction = match record.reaction {
        Reaction::Answered(ticks) => StimulusReaction::Answered(ticks.into()),
        Reaction::Late(ticks) => StimulusReaction::Late(ticks.into()),
        Reaction::AtLeast(ticks) => StimulusReaction::AtLeast(ticks.into()),
        Reaction::Unknown => StimulusReaction::Unknown,
    };
    StimulusSample { number: record.number, sent_ticks: record.sent_ticks, reaction }
}
