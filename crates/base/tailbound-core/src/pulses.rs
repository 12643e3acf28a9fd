// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pulses of a run with their numbers, so that two runs of the same pulses can be joined; and what the join came to.
//!
//! Units: ns. Who sends writes [`SentPulses`], who answers [`AnsweredPulses`]; a [`PulseJoin`] stands in the run of who
//! sent. Not here: the join (`tailbound_stimulus`).

use serde::{Deserialize, Serialize};

/// Pulses that a source sent: which number a sample's pulse has for who answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentPulses {
    /// Which thread: a channel of the source.
    pub thread: u32,
    /// How many were sent.
    pub n: u64,
    /// Edges that who answers counts, the last return to rest among them; absent: pulses are no edges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edges: Option<u64>,
    /// Numbers within the pulses; absent: they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramNumbers>,
}

/// What stands in the datagrams of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatagramNumbers {
    /// What marks the sender's run: 16 hexadecimal digits.
    pub sender: String,
    /// The number of the pulse that is activation 0.
    pub first: u64,
    /// Its token; that of a later pulse is so many ns more as it was sent later.
    pub token: u64,
}

/// The longest answers of a thread that answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredPulses {
    /// Which thread.
    pub thread: u32,
    /// Edges of the line since it was ready, those of the warm-up too; absent: pulses have numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edges: Option<u64>,
    /// Edges with the level of the one before: what came between was not seen, and not counted.
    #[serde(default)]
    pub unseen: u64,
    /// No answer that is not kept took longer; absent: all are kept, or it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_at_most_ns: Option<i64>,
    /// Those that are kept, in the order of their arrival.
    pub kept: Vec<AnsweredPulse>,
}

/// One answered pulse.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredPulse {
    /// Its number: in its datagram, or from 0 on its line.
    pub number: u64,
    /// Of datagrams: the sender's run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// Of datagrams: the sender's own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// When the kernel stamped it; without a stamp, when the thread ran.
    pub t_ns: i64,
    /// From the stamp until the thread ran; absent: it had no stamp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ns: Option<i64>,
    /// From then until the answer was given.
    pub work_ns: i64,
    /// How wrong the stamp may be.
    pub error_ns: i64,
    /// Its number came more than once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeated: bool,
}

/// The longest pulses of who sent, joined with the answers of who answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PulseJoin {
    /// Which thread of the run of who sent.
    pub thread: u32,
    /// The run of who answered.
    pub answers: String,
    /// Longest pulses that were to be joined.
    pub worst: u64,
    /// Those that were not.
    pub not_joined: Vec<NotJoined>,
    /// Those that were, the longest first.
    pub splits: Vec<PulseSplit>,
}

/// Pulses that were not joined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotJoined {
    /// How many.
    pub n: u64,
    /// Why, as a clause.
    pub reason: String,
}

/// Where the time of one pulse went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PulseSplit {
    /// The pulse, from 0: an activation of the run.
    pub activation: u64,
    /// When it was sent.
    pub t_ns: i64,
    /// All of its time, as it was measured outside.
    pub outside_ns: i64,
    /// From the kernel's stamp until the thread ran.
    pub start_ns: i64,
    /// From then until the answer was given.
    pub work_ns: i64,
    /// What only the outside sees: before the stamp and after the answer was given. Below 0 where the answer was back before the
    /// call that gave it had returned.
    pub rest_ns: i64,
    /// How wrong `start_ns` may be, and by as much `rest_ns`.
    pub error_ns: i64,
}
