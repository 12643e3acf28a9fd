// SPDX-License-Identifier: MIT OR Apache-2.0
//! [`StimulusRecord`]: what an outside source measured, whole or as far as it came.
//!
//! Units: ticks of the source.
//! A source that streams gives each sample to a [`StimulusSink`] as it comes. The cells have what was not given to the
//! sink: everything of a source that does not stream, and what was lost on the way. So sink and cells together are
//! all pulses, each once. A source fills in what it knows; `None` is: it does not count that.

use super::account::SampleAccount;
use super::plan::{StimulusShape, StimulusSpacing};
use crate::TimeBase;

/// What is known of the answer to a pulse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StimulusReaction {
    /// Before the next pulse, after so many ticks.
    Answered(u64),
    /// After the next pulse, after so many ticks.
    Late(u64),
    /// Not before so many ticks.
    AtLeast(u64),
    /// Nothing: what would tell it was lost.
    Unknown,
}

impl StimulusReaction {
    /// The time that is known.
    #[must_use]
    pub fn ticks(self) -> Option<u64> {
        match self {
            Self::Answered(ticks) | Self::Late(ticks) | Self::AtLeast(ticks) => Some(ticks),
            Self::Unknown => None,
        }
    }
}

/// A pulse and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StimulusSample {
    /// The pulse of its channel, from 0.
    pub number: u64,
    /// When it was sent, since the start.
    pub sent_ticks: u64,
    /// What is known of its answer.
    pub reaction: StimulusReaction,
}

/// How many values lie between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellCount {
    /// No value is less.
    pub least_ticks: u64,
    /// No value is more; `None`: there is no bound.
    pub most_ticks: Option<u64>,
    /// Values.
    pub count: u64,
}

/// Pulses of a channel that the sink was not given: cells with values alone, in the order of their bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellTable {
    /// Of answered pulses.
    pub answered: Vec<CellCount>,
    /// Least times of unanswered ones.
    pub at_least: Vec<CellCount>,
}

/// What a source counted on a channel. `None`: it does not count that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StimulusCounters {
    /// Pulses on the line.
    pub sent: u64,
    /// Pulses whose answer is known; `late` are among them.
    pub answered: u64,
    /// Answers after the next pulse.
    pub late: Option<u64>,
    /// Pulses of which only a least time is known.
    pub unanswered: u64,
    /// Pulses of which nothing is known.
    pub unknown: u64,
    /// Edges or messages that no pulse asked for.
    pub spurious: Option<u64>,
    /// Answers to a pulse that had one, where a number tells so: they are taken for no other's.
    pub twice: Option<u64>,
    /// Messages of others, or to no pulse that is known: they are taken for no answer.
    pub stray: Option<u64>,
    /// Answers, after an unanswered pulse, that may have been to it.
    pub unassigned: Option<u64>,
    /// Pulses of the schedule that were left out.
    pub held: Option<u64>,
    /// Pulses of the schedule that were not sent, because the source was late or was refused.
    pub skipped: Option<u64>,
    /// How often answers came faster than they were taken.
    pub edges_lost: Option<u64>,
    /// Samples that the source did not stream; they are in all its other figures.
    pub dropped: Option<u64>,
}

/// Numbers within the pulses of a channel, by which who answers tells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderNumbers {
    /// What marks the run of the sender.
    pub sender: u64,
    /// The number of pulse 0.
    pub first: u64,
    /// The token of a pulse that was sent at 0 ticks: of a later one it is so many ticks more.
    pub token: u64,
}

/// One channel of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StimulusChannel {
    /// From 0.
    pub number: u8,
    /// For people: `GPIO 2 to GPIO 3`.
    pub name: String,
    /// Sums since the start.
    pub counters: StimulusCounters,
    /// Pulses that the sink was not given.
    pub cells: CellTable,
    /// Pulses that neither the sink was given nor the cells have: nothing is known of their answers. `counters.unknown`
    /// are among them, and those with lower numbers than samples that came.
    pub lost: u64,
    /// The last pulse, by its number, where it was sent less than a period before the end and had waited no longer than
    /// others did: it is none of the unanswered. The sink may have been given it as the last sample.
    pub in_flight: Option<u64>,
    /// The longest, each to the tick, the longest first; those that the sink was given are among them.
    pub worst: Vec<StimulusSample>,
    /// The exact shortest and longest answer of all, where a source has them without samples.
    pub extremes: Option<(u64, u64)>,
    /// What the sink was given; `None`: the source does not stream.
    pub streamed: Option<SampleAccount>,
    /// Numbers within its pulses; `None`: they are edges, which are counted.
    pub numbers: Option<SenderNumbers>,
}

/// When pulses were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StimulusSchedule {
    /// From pulse to pulse, on average.
    pub period_ticks: u64,
    /// Even or random.
    pub spacing: StimulusSpacing,
    /// Of a pulse.
    pub shape: StimulusShape,
    /// From the start to the last look at it.
    pub elapsed_ticks: u64,
    /// As it was planned.
    pub planned_ticks: u64,
}

/// Who measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StimulusOrigin {
    /// Its kind, a word for `header.tool`: `tailbound-box`, `latmon`, `linux`.
    pub tool: &'static str,
    /// What it is, for people: `Raspberry Pi Pico (RP2040)`.
    pub what: String,
    /// Of its program, where it tells.
    pub version: Option<String>,
    /// Where it is: a port, a host.
    pub place: String,
}

/// What a source can never tell, or how far each of its figures may be off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceLimit {
    /// A pulse that is not answered after so many ticks is given up: longer answers are not seen. Never "met".
    GivesUp {
        /// After so many ticks.
        after_ticks: u64,
    },
    /// The next pulse waits for the answer, or for a pause after it: what is late delays all that follow. Never "met".
    WaitsForAnswer,
    /// Each latency may be off by the source's own delays, as they were measured or stated.
    OwnError {
        /// The true latency may be so much less than what was measured.
        less_ns: u64,
        /// The true latency may be so much more.
        more_ns: u64,
        /// How that is known.
        basis: String,
    },
    /// A sentence for the run; no bound follows from it.
    Stated(String),
}

/// Frames between source and host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkLosses {
    /// Pieces that are no frame: cut, flipped, or noise.
    pub damaged: u64,
    /// Frames of another version.
    pub foreign: u64,
    /// Frames that are missing by the count of their sender.
    pub missing: u64,
    /// Frames that came twice.
    pub repeated: u64,
    /// Questions that were asked again because no answer came.
    pub asked_again: u64,
}

/// How a measurement ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StimulusEnd {
    /// As planned, and everything was read.
    Whole,
    /// Somebody ended it; everything until then was read.
    Stopped,
    /// The port or the connection is gone: why. The record is that of the last look.
    Lost(String),
    /// The source does not answer any more. The record is that of the last look.
    Silent,
    /// The source began anew on the way: its figures since are not those of this measurement.
    Restarted,
    /// The source could not keep its schedule, and ended there.
    Slipped,
    /// It refused to go on: why.
    Refused(String),
    /// It had not: this is the last look at a measurement that went on.
    Unfinished,
}

/// What an outside source measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StimulusRecord {
    /// Who measured.
    pub origin: StimulusOrigin,
    /// Length of a tick.
    pub tick: TimeBase,
    /// Each latency is known to so many ticks.
    pub resolution_ticks: u64,
    /// When pulses were sent.
    pub schedule: StimulusSchedule,
    /// One a channel.
    pub channels: Vec<StimulusChannel>,
    /// What it cannot tell.
    pub limits: Vec<SourceLimit>,
    /// What was lost between source and host.
    pub link: LinkLosses,
    /// How it ended.
    pub end: StimulusEnd,
}

/// How far a measurement is, for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StimulusProgress {
    /// Since the start.
    pub elapsed_ns: i64,
    /// Of all channels together.
    pub counters: StimulusCounters,
    /// The longest time that is known until now.
    pub worst_ns: Option<i64>,
}

/// Who takes samples and progress while a source measures.
pub trait StimulusSink {
    /// Before the first sample: the length of a tick, and how many channels there are.
    fn begin(&mut self, tick: TimeBase, channels: u8);
    /// A sample of a channel, about in the order of the pulses.
    fn sample(&mut self, channel: u8, sample: StimulusSample);
    /// About once a second.
    fn progress(&mut self, now: &StimulusProgress);
    /// All that is known by now, from time to time: what is to outlive the program can be kept.
    fn so_far(&mut self, _record: &StimulusRecord) {}
}
