// SPDX-License-Identifier: MIT OR Apache-2.0
//! What both sides of a hand-over map: the stamp on its way, who has taken it, and words for
//! media that live in memory.
//!
//! Context: HOT. Units: ns. Every line has one writer; a reader sees its fields whole once it
//! has seen the sequence number that was stored after them.
//! All zero bytes are a valid block before the first hand-over.

use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use super::Relay;

/// Most receivers of one sender, and most hops of a ring.
pub const RECEIVERS_MAX: usize = 64;
/// The warm-up and the measurement.
pub const PHASES: usize = 2;

/// One hand-over, as its receiver reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Number of the due activation.
    pub activation: u64,
    /// When the first sender was due.
    pub due_ns: i64,
    /// When the first sender of a ring stamped.
    pub begun_ns: i64,
    /// When this sender stamped.
    pub sent_ns: i64,
    /// Activations missed since the one before: how many, and how long after the due time of
    /// the one before the way was free again.
    pub missed: u64,
    /// See `missed`.
    pub missed_error_ns: i64,
}

/// How a phase ended, as its receivers read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Close {
    /// Activations accounted for.
    pub accounted: u64,
    /// Missed after the last message.
    pub missed: u64,
    /// As in [`Message`].
    pub missed_error_ns: i64,
}

/// The stamps from one sender to its receivers. On cache lines of its own.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Line {
    sequence: AtomicU64,
    activation: AtomicU64,
    due_ns: AtomicI64,
    begun_ns: AtomicI64,
    sent_ns: AtomicI64,
    missed: AtomicU64,
    missed_error_ns: AtomicI64,
    closed: AtomicU64,
    accounted: AtomicU64,
    close_missed: AtomicU64,
    close_error_ns: AtomicI64,
}

impl Line {
    /// Sender: puts a message on the line; its sequence number, from 1.
    #[inline]
    pub fn post(&self, message: &Message) -> u64 {
        self.activation.store(message.activation, Ordering::Relaxed);
        self.due_ns.store(message.due_ns, Ordering::Relaxed);
        self.begun_ns.store(message.begun_ns, Ordering::Relaxed);
        self.sent_ns.store(message.sent_ns, Ordering::Relaxed);
        self.missed.store(message.missed, Ordering::Relaxed);
        self.missed_error_ns.store(message.missed_error_ns, Ordering::Relaxed);
        let sequence = self.sequence.load(Ordering::Relaxed).wrapping_add(1);
        self.sequence.store(sequence, Ordering::Release);
        sequence
    }

    /// Receiver: the message on the line and its sequence number, if it is not `seen`.
    #[inline]
    pub fn read(&self, seen: u64) -> Option<(u64, Message)> {
        let sequence = self.sequence.load(Ordering::Acquire);
        if sequence == seen {
            return None;
        }
        Some((
            sequence,
            Message {
                activation: self.activation.load(Ordering::Relaxed),
                due_ns: self.due_ns.load(Ordering::Relaxed),
                begun_ns: self.begun_ns.load(Ordering::Relaxed),
                sent_ns: self.sent_ns.load(Ordering::Relaxed),
                missed: self.missed.load(Ordering::Relaxed),
                missed_error_ns: self.missed_error_ns.load(Ordering::Relaxed),
            },
        ))
    }

    /// Sender: nothing follows. One more hand-over has to wake the receivers.
    pub fn close(&self, close: &Close) {
        self.accounted.store(close.accounted, Ordering::Relaxed);
        self.close_missed.store(close.missed, Ordering::Relaxed);
        self.close_error_ns.store(close.missed_error_ns, Ordering::Relaxed);
        self.closed.store(1, Ordering::Release);
    }

    /// Receiver: has the sender closed?
    pub fn closed(&self) -> Option<Close> {
        (self.closed.load(Ordering::Acquire) != 0).then(|| Close {
            accounted: self.accounted.load(Ordering::Relaxed),
            missed: self.close_missed.load(Ordering::Relaxed),
            missed_error_ns: self.close_error_ns.load(Ordering::Relaxed),
        })
    }
}

/// A receiver's acknowledgement. On cache lines of its own.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Acknowledgement {
    received_ns: AtomicI64,
    sequence: AtomicU64,
}

impl Acknowledgement {
    /// Receiver: message `sequence` was received at `received_ns`.
    #[inline]
    pub fn publish(&self, sequence: u64, received_ns: i64) {
        self.received_ns.store(received_ns, Ordering::Relaxed);
        self.sequence.store(sequence, Ordering::Release);
    }

    /// Sender: when message `sequence` was received, if it has been.
    #[inline]
    pub fn received_ns(&self, sequence: u64) -> Option<i64> {
        (self.sequence.load(Ordering::Acquire) == sequence)
            .then(|| self.received_ns.load(Ordering::Relaxed))
    }
}

/// What one phase of a pair, broadcast or ring needs.
#[derive(Debug)]
#[repr(C)]
pub struct Phase {
    /// One a hop; the last is the way back of a round trip.
    pub lines: [Line; RECEIVERS_MAX],
    /// One a receiver.
    pub taken: [Acknowledgement; RECEIVERS_MAX],
    /// Latency of the sender's own schedule, from a sender in another process.
    pub send: Relay,
    /// Round trips.
    pub round_trip: Relay,
    /// The way back of round trips, or whole rings.
    pub back: Relay,
}

/// Protocol between a remote sender and the measuring process.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Control {
    /// Where both are: see `tailbound-probe`.
    pub state: AtomicU32,
    /// The sender's thread, once there is one.
    pub tid: AtomicU32,
    /// The stop flag, for a process that cannot see the static one.
    pub stop: AtomicU32,
    /// First due time of the warm-up.
    pub first_ns: AtomicI64,
    /// An errno, when the sender failed.
    pub failed: AtomicU32,
    /// Activations the sender accounted for in each phase.
    pub accounted: [AtomicU64; PHASES],
}

/// Words of a medium that lives in memory: locks, counters, objects of the C library.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Words(pub [AtomicU32; 128]);

/// Everything that one sender and its receivers share.
#[derive(Debug)]
#[repr(C)]
pub struct Block {
    /// Between processes.
    pub control: Control,
    /// One area a hop.
    pub words: [Words; RECEIVERS_MAX],
    /// Warm-up, measurement.
    pub phases: [Phase; PHASES],
}
