// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each hand-over on one CPU: from the sender's call to the receiver's user mode, by who had the CPU.
//!
//! Units: ns of QEMU's clock.
//! The sender is woken by a timer ([`crate::wakeups`]), and then leaves user mode for its call: the first time that it does so
//! by no interrupt or exception. The receiver is the first other thread that is in user mode after the first of these calls.
//!
//! ```text
//! sender in user mode ─► its call ─► another thread has the CPU ─► perhaps the sender again ─► the receiver in user mode
//! ```

use std::iter::Peekable;
use std::vec::IntoIter;

use tailbound_core::paths::SENDERS_CALL;

use crate::log::Record;
use crate::record::{kind, state};
use crate::wakeups::WakeUp;

/// What a hand-over is made of, in the order of [`HandOver::legs`].
pub const LEGS: [&str; 5] =
    [SENDERS_CALL, "the receiver", "the sender again", "other threads", "reading the clocks"];

/// One hand-over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandOver {
    /// The sender left user mode for the call.
    pub call_ns: u64,
    /// The receiver was in user mode.
    pub user_ns: u64,
    /// How long the sender was out of user mode before, perhaps behind its first stamp.
    pub away_ns: u64,
    /// Time on the CPU from the call on: the sender's up to the first switch, in user mode again or not, the receiver's, the sender's behind that,
    /// and that of others.
    pub turns_ns: [u64; 4],
}

impl HandOver {
    /// Lengths of [`LEGS`]: what the sample has besides is the reading of the clocks.
    #[must_use]
    pub fn legs(&self, latency_ns: i64) -> [i64; 5] {
        let [first, receiver, again, others] = self.turns_ns.map(u64::cast_signed);
        let reading = latency_ns - self.user_ns.saturating_sub(self.call_ns).cast_signed();
        [first, receiver, again, others, reading]
    }

    /// As a wake-up whose timer was due, and came, at the call.
    #[must_use]
    pub fn as_wake_up(&self) -> WakeUp {
        WakeUp {
            due_ns: self.call_ns,
            taken_ns: self.call_ns,
            user_ns: self.user_ns,
            away_ns: [self.away_ns, 0, 0, 0],
            ..WakeUp::default()
        }
    }
}

/// Before a call.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    /// Since when an interrupt has the CPU, if one has it.
    since_ns: Option<u64>,
    away_ns: u64,
}

/// One that is under way.
#[derive(Debug)]
struct Open {
    call_ns: u64,
    away_ns: u64,
    /// Since when the thread has the CPU that has it.
    since_ns: u64,
    /// Threads that had it, and for how long.
    turns: Vec<(u64, u64)>,
}

/// See the module.
#[derive(Debug)]
pub struct HandOvers {
    sender: u64,
    receiver: Option<u64>,
    /// When the sender is in user mode before each of its calls.
    woken: Peekable<IntoIter<u64>>,
    state: u8,
    current: u64,
    /// When the last interrupt or exception was taken.
    taken_ns: u64,
    /// The sender was woken, and has not called yet.
    before: Option<Before>,
    /// It called, and still has the CPU; or the hand-over is under way.
    open: Option<Open>,
    /// Whole ones, in their order.
    pub all: Vec<HandOver>,
}

impl HandOvers {
    /// Of the thread with these wake-ups.
    #[must_use]
    pub fn new(sender: u64, wakeups: &[WakeUp]) -> Self {
        let woken: Vec<u64> = wakeups.iter().map(|w| w.user_ns).collect();
        Self {
            sender,
            receiver: None,
            woken: woken.into_iter().peekable(),
            state: 0,
            current: 0,
            taken_ns: 0,
            before: None,
            open: None,
            all: Vec::new(),
        }
    }

    /// The next record.
    pub fn add(&mut self, r: &Record) {
        match r.kind {
            kind::RETURN if r.value == self.sender && self.woken.next_if_eq(&r.t_ns).is_some() => {
                self.before = Some(Before::default());
            }
            kind::ENTER => self.taken_ns = r.t_ns,
            kind::STATE => {
                let (was, is) = (self.state & state::USER != 0, r.state & state::USER != 0);
                self.state = r.state;
                match (was, is) {
                    (true, false) if self.current == self.sender => self.leaves(r.t_ns),
                    (false, true) => self.in_user(r.t_ns),
                    _ => {}
                }
            }
            kind::SWITCH => {
                self.turn(r.t_ns);
                self.current = r.value;
            }
            _ => {}
        }
    }

    /// The sender is out of user mode: by an interrupt, or by its call.
    fn leaves(&mut self, t_ns: u64) {
        let Some(before) = &mut self.before else { return };
        if self.taken_ns == t_ns {
            before.since_ns = Some(t_ns);
            return;
        }
        let (call_ns, away_ns) = (t_ns, before.away_ns);
        self.open = Some(Open { call_ns, away_ns, since_ns: t_ns, turns: Vec::new() });
        self.before = None;
    }

    /// The thread that has the CPU has had it until now.
    fn turn(&mut self, t_ns: u64) {
        if let Some(open) = &mut self.open {
            open.turns.push((self.current, t_ns - open.since_ns));
            open.since_ns = t_ns;
        }
    }

    fn in_user(&mut self, t_ns: u64) {
        if self.current == self.sender {
            if let Some(before) = &mut self.before
                && let Some(since_ns) = before.since_ns.take()
            {
                before.away_ns += t_ns - since_ns;
            }
            return;
        }
        if self.open.is_none() || *self.receiver.get_or_insert(self.current) != self.current {
            return;
        }
        self.turn(t_ns);
        let Some(open) = self.open.take() else { return };
        let mut one = HandOver {
            call_ns: open.call_ns,
            user_ns: t_ns,
            away_ns: open.away_ns,
            ..HandOver::default()
        };
        let [first, receiver, again, others] = &mut one.turns_ns;
        for (nth, (thread, ns)) in open.turns.into_iter().enumerate() {
            let place = match nth {
                0 => &mut *first,
                _ if thread == self.current => &mut *receiver,
                _ if thread == self.sender => &mut *again,
                _ => &mut *others,
            };
            *place += ns;
        }
        self.all.push(one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 7;
    const R: u64 = 8;

    fn record(t_ns: u64, kind: u8, state: u8, value: u64) -> Record {
        Record { t_ns, cpu: 0, state, kind, value }
    }

    /// Thread 7 is woken at 100, is interrupted from 110 to 115, and calls at 120; 8 blocks at a lock that 7 still holds, and
    /// 9 comes between.
    fn all() -> Vec<HandOver> {
        let woken = WakeUp { thread: S, user_ns: 100, ..WakeUp::default() };
        let mut all = HandOvers::new(S, &[woken]);
        for r in [
            // It was in user mode once more before: not judged.
            record(40, kind::SWITCH, 0, S),
            record(50, kind::STATE, state::USER, 0xb),
            record(50, kind::RETURN, state::USER, S),
            record(60, kind::STATE, 0, 0xe),
            record(70, kind::SWITCH, 0, R),
            record(80, kind::STATE, state::USER, 0xb),
            record(85, kind::STATE, 0, 0xe),
            record(90, kind::SWITCH, 0, S),
            record(100, kind::STATE, state::USER, 0xb),
            record(100, kind::RETURN, state::USER, S),
            record(110, kind::ENTER, state::USER, 0xa),
            record(110, kind::STATE, state::INTERRUPTS_OFF, 0xa),
            record(115, kind::STATE, state::USER, 0xb),
            record(120, kind::STATE, state::INTERRUPTS_OFF, 0xe),
            record(150, kind::SWITCH, 0, R),
            record(170, kind::SWITCH, 0, S),
            record(200, kind::SWITCH, 0, 9),
            record(204, kind::SWITCH, 0, R),
            record(260, kind::STATE, state::USER, 0xb),
            record(270, kind::STATE, 0, 0xe),
        ] {
            all.add(&r);
        }
        all.all
    }

    #[test]
    fn a_hand_over_is_what_each_thread_had_of_the_cpu() {
        let [one] = all().try_into().unwrap();
        assert_eq!((one.call_ns, one.user_ns, one.away_ns), (120, 260, 5));
        assert_eq!(one.turns_ns, [30, 76, 30, 4]);
        assert_eq!(one.legs(183), [30, 76, 30, 4, 43]);
        assert_eq!(one.legs(183).iter().sum::<i64>(), 183);
    }
}
