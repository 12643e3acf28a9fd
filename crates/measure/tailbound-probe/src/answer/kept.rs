// SPDX-License-Identifier: MIT OR Apache-2.0
//! The longest answers, as a record of the run: for who timed the pulses from outside.
//!
//! Units: ns.

use tailbound_core::order;
use tailbound_core::pulses::{AnsweredPulse, AnsweredPulses};
use tailbound_rt::answer::Stamp;
use tailbound_rt::answer::kept::{KeptPulse, KeptPulses};

/// Edges of a line, from which its pulses have their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EdgeTotals {
    pub(crate) edges: u64,
    pub(crate) unseen: u64,
}

/// The record of a measurement that began at `first_ns`; nothing where no pulse can be told from the others.
pub(super) fn record(
    kept: &KeptPulses,
    line: Option<EdgeTotals>,
    first_ns: i64,
) -> Option<AnsweredPulses> {
    let mut all: Vec<AnsweredPulse> =
        kept.entries().iter().map(|pulse| one(pulse, line, first_ns)).collect();
    order::by_key(&mut all, |pulse| pulse.t_ns);
    (!all.is_empty()).then(|| AnsweredPulses {
        thread: 0,
        edges: line.map(|line| line.edges),
        unseen: line.map_or(0, |line| line.unseen),
        others_at_most_ns: kept.others_at_most_ns(),
        kept: all,
    })
}

fn one(pulse: &KeptPulse, line: Option<EdgeTotals>, first_ns: i64) -> AnsweredPulse {
    let KeptPulse { mark, stamp, ran_ns, given_ns, repeated } = *pulse;
    let due_ns = stamp.due_ns(ran_ns);
    let error_ns = match stamp {
        Stamp::Kernel { error_ns, .. } => Some(error_ns),
        Stamp::Absent | Stamp::ClockSet => None,
    };
    let is_datagram = line.is_none();
    AnsweredPulse {
        number: mark.number,
        sender: is_datagram.then(|| format!("{:016x}", mark.sender)),
        token: is_datagram.then_some(mark.token),
        t_ns: due_ns.saturating_sub(first_ns),
        start_ns: error_ns.map(|_| ran_ns.saturating_sub(due_ns)),
        work_ns: given_ns.saturating_sub(ran_ns),
        error_ns: error_ns.unwrap_or(0),
        repeated,
    }
}
