// SPDX-License-Identifier: MIT OR Apache-2.0
//! What became of the pulses and edges of a channel.
//!
//! Every pulse that was sent and is not open is one of answered, unanswered or unknown.

/// Sums since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Pulses on the line.
    pub sent: u64,
    /// Pulses whose answer is known to the tick; `late` are among them.
    pub answered: u64,
    /// Answers that came when the next pulse was already sent.
    pub late: u64,
    /// Pulses of which only a least time is known: no answer came, or one that cannot be told from another's.
    pub unanswered: u64,
    /// Pulses that were open when edges were lost.
    pub unknown: u64,
    /// Edges that no open pulse asked for: a second edge, ringing, noise.
    pub spurious: u64,
    /// Edges, after an unanswered pulse, that may have been its answer.
    pub unassigned: u64,
    /// Slots of the schedule that were left out to let owed answers come.
    pub held: u64,
    /// How often edges came faster than they were taken. Each is one edge or more.
    pub edges_lost: u64,
    /// SampleBatch that were not streamed because the host was slow; they are in all other figures.
    pub dropped: u64,
}

/// Values in the order in which they are sent.
pub(crate) const COUNTERS: usize = 10;

impl Counters {
    /// Nothing counted.
    #[must_use]
    pub const fn new() -> Self {
        Self::from_values([0; COUNTERS])
    }

    pub(crate) const fn values(&self) -> [u64; COUNTERS] {
        [
            self.sent,
            self.answered,
            self.late,
            self.unanswered,
            self.unknown,
            self.spurious,
            self.unassigned,
            self.held,
            self.edges_lost,
            self.dropped,
        ]
    }

    pub(crate) const fn from_values(values: [u64; COUNTERS]) -> Self {
        let [
            sent,
            answered,
            late,
            unanswered,
            unknown,
            spurious,
            unassigned,
            held,
            edges_lost,
            dropped,
        ] = values;
        Self {
            sent,
            answered,
            late,
            unanswered,
            unknown,
            spurious,
            unassigned,
            held,
            edges_lost,
            dropped,
        }
    }
}
