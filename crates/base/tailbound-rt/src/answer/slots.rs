// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pulses that were sent, until what came of them is decided, and a while longer: for answers that come twice.
//!
//! Context: HOT. Units: ns.

use super::datagram::PulsePacket;
use super::sender::{ClockReading, EdgeStamps, PulseTime};

/// Pulses that are followed at a time: 0.4 s of 10 kHz.
pub const SLOTS: usize = 1 << 12;

/// A pulse that is followed.
#[derive(Clone, Copy, Debug, Default)]
pub struct PulseSlot {
    number: u64,
    token: u64,
    sent: ClockReading,
    /// How often CLOCK_REALTIME had been set.
    sets: u64,
    left: EdgeStamps,
    answer: Option<Answer>,
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    stamps: EdgeStamps,
    taken: ClockReading,
    sets: u64,
}

/// Where a stamp of leaving belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    Noted,
    Unknown,
}

/// Where an answer belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrived {
    /// To a pulse that waited for it.
    First,
    /// To one that was given up.
    Overdue,
    /// To one that had an answer.
    Twice,
    /// To none.
    Unknown,
}

/// How a pulse was timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TimeBasis {
    pub(super) by_card: bool,
    pub(super) clock_set: bool,
    pub(super) unstamped_left: bool,
    pub(super) unstamped_answer: bool,
}

/// A pulse that is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Retired {
    pub(super) number: u64,
    pub(super) sent_ns: i64,
    pub(super) time: PulseTime,
    pub(super) basis: TimeBasis,
}

/// All of them, in memory of the caller's, `Box<[PulseSlot]>` say: 0.6 MB are too much for the stack of a
/// thread.
#[derive(Debug)]
pub struct Slots<M> {
    all: M,
    /// The first pulse that is not decided.
    oldest: u64,
    /// The number of the next pulse.
    next: u64,
    /// The card stamps pulses: their stamps are waited for.
    card: bool,
}

#[expect(clippy::cast_possible_truncation, reason = "less than the number of slots")]
fn place(number: u64) -> usize {
    (number & (SLOTS as u64).wrapping_sub(1)) as usize
}

impl<M: AsMut<[PulseSlot]>> Slots<M> {
    /// None sent. `all` has [`SLOTS`] slots: pulses that have no place in fewer are not followed.
    pub const fn over(all: M) -> Self {
        Self { all, oldest: 0, next: 0, card: false }
    }

    /// None sent, every page of it touched. That the card stamps is known from the warm-up on.
    pub(super) fn clear(&mut self, first: u64) {
        self.all.as_mut().fill(PulseSlot::default());
        (self.oldest, self.next) = (first, first);
    }

    fn at(&mut self, number: u64) -> Option<&mut PulseSlot> {
        let is_there = number < self.next && self.next.wrapping_sub(number) <= SLOTS as u64;
        self.all.as_mut().get_mut(place(number)).filter(|_| is_there)
    }

    fn of(&mut self, pulse: &PulsePacket) -> Option<&mut PulseSlot> {
        self.at(pulse.number).filter(|slot| slot.token == pulse.token)
    }

    /// The pulse in whose place this one comes, if it is not decided.
    pub(super) fn make_room(&mut self, number: u64, now: ClockReading) -> Option<Retired> {
        (number.wrapping_sub(self.oldest) >= SLOTS as u64).then(|| self.retire(now, 0)).flatten()
    }

    pub(super) fn sent(&mut self, number: u64, token: u64, sent: ClockReading, sets: u64) {
        let slot =
            PulseSlot { number, token, sent, sets, left: EdgeStamps::default(), answer: None };
        if let Some(at) = self.all.as_mut().get_mut(place(number)) {
            *at = slot;
        }
        self.next = number.wrapping_add(1);
    }

    pub(super) fn left(&mut self, pulse: &PulsePacket, stamps: EdgeStamps) -> Left {
        let Some(slot) = self.of(pulse) else { return Left::Unknown };
        // The kernel and the card tell one after the other.
        slot.left.kernel_ns = slot.left.kernel_ns.or(stamps.kernel_ns);
        slot.left.card_ns = slot.left.card_ns.or(stamps.card_ns);
        self.card |= stamps.card_ns.is_some();
        Left::Noted
    }

    pub(super) fn answered(
        &mut self,
        pulse: &PulsePacket,
        stamps: EdgeStamps,
        taken: ClockReading,
        sets: u64,
    ) -> Arrived {
        let oldest = self.oldest;
        let Some(slot) = self.of(pulse) else { return Arrived::Unknown };
        if slot.answer.is_some() {
            return Arrived::Twice;
        }
        slot.answer = Some(Answer { stamps, taken, sets });
        if slot.number < oldest { Arrived::Overdue } else { Arrived::First }
    }

    pub(super) fn is_settled(&self) -> bool {
        self.oldest == self.next
    }

    /// The oldest pulse, if it is decided or was sent `patience_ns` ago.
    pub(super) fn retire(&mut self, now: ClockReading, patience_ns: i64) -> Option<Retired> {
        let (oldest, card) = (self.oldest, self.card);
        let next = self.at(oldest.wrapping_add(1)).map(|next| next.sent);
        let slot = *self.at(oldest)?;
        let is_stamped = slot.left.kernel_ns.is_some() && (!card || slot.left.card_ns.is_some());
        let is_old = now.run_ns.saturating_sub(slot.sent.run_ns) >= patience_ns;
        let is_decided = slot.answer.is_some() && is_stamped;
        if !(is_old || is_decided) {
            return None;
        }
        self.oldest = oldest.wrapping_add(1);
        let (time, basis) = match slot.answer {
            Some(answer) => slot.answered(&answer, next),
            None => (PulseTime::AtLeast(slot.waited_ns(now)), TimeBasis::default()),
        };
        Some(Retired { number: slot.number, sent_ns: slot.sent.run_ns, time, basis })
    }
}

impl PulseSlot {
    fn answered(&self, answer: &Answer, next: Option<ClockReading>) -> (PulseTime, TimeBasis) {
        let thread_ns = answer.taken.run_ns.saturating_sub(self.sent.run_ns).max(0);
        let (ns, basis) = self.time(answer, thread_ns);
        // Both by the thread's clock: one to another.
        let is_late = next.is_some_and(|next| {
            self.sent.run_ns.saturating_add(ns) > next.run_ns && answer.taken.run_ns > next.run_ns
        });
        (if is_late { PulseTime::Late(ns) } else { PulseTime::Answered(ns) }, basis)
    }

    fn time(&self, answer: &Answer, thread_ns: i64) -> (i64, TimeBasis) {
        let mut basis = TimeBasis::default();
        if let (Some(left_ns), Some(arrived_ns)) = (self.left.card_ns, answer.stamps.card_ns)
            && let ns @ 0.. = arrived_ns.saturating_sub(left_ns)
            // What the thread did before and after contains it: a clock that was set is not believed.
            && ns <= thread_ns.saturating_add(thread_ns / 1000).saturating_add(1)
        {
            basis.by_card = true;
            return (ns, basis);
        }
        basis.unstamped_left = self.left.kernel_ns.is_none();
        basis.unstamped_answer = answer.stamps.kernel_ns.is_none();
        let left_ns = self.left.kernel_ns.unwrap_or(self.sent.real_ns);
        let arrived_ns = answer.stamps.kernel_ns.unwrap_or(answer.taken.real_ns);
        let ns = arrived_ns.saturating_sub(left_ns);
        if self.sets != answer.sets || ns < 0 {
            basis.clock_set = true;
            return (thread_ns, basis);
        }
        (ns, basis)
    }

    /// For how long there was no answer.
    fn waited_ns(&self, now: ClockReading) -> i64 {
        let since_called_ns = now.run_ns.saturating_sub(self.sent.run_ns);
        // What passed before it left is no wait for an answer.
        let left_ns = self.left.kernel_ns.unwrap_or(self.sent.real_ns);
        let queued_ns = left_ns.saturating_sub(self.sent.real_ns).clamp(0, since_called_ns.max(0));
        since_called_ns.saturating_sub(queued_ns).max(0)
    }
}
