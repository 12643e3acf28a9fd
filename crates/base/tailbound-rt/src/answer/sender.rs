// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sends numbered pulses on an absolute schedule, and times their answers.
//!
//! Context: HOT (no allocation, lock or panic; system calls: those of the line). Units: ns.
//! A pulse's time is from the stamp of its leaving to that of its answer's arrival, by the clock of the card where it
//! stamped both, else by the kernel's stamps on CLOCK_REALTIME. Where a stamp is missing the clock of the thread stands
//! in for it, which makes the time longer, never shorter. Answers belong to pulses by their numbers, so order, loss and
//! duplication on the way decide nothing else. A pulse is given up after a stated patience: its time is at least that.
//! What this thread was too late to send is left out and counted, never sent in a burst.
//! Not here: sockets (`tailbound-sys`), who answers ([`super::run`]).

use core::sync::atomic::{AtomicBool, Ordering};

use super::clocks::{ClockPair, Compared};
use super::datagram::PulsePacket;
use super::slots::{Arrived, Left, PulseSlot, Retired, Slots};
use crate::cyclic::{LoopEnd, Schedule};
use crate::recorder::{Recorder, Writer};
use crate::ring::Ring;
use crate::spread::Spread;

/// Samples between two looks of the reader: two seconds of 10 kHz.
pub const SAMPLES: usize = 1 << 14;

/// When a datagram passed the edge of this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgeStamps {
    /// By the kernel, on CLOCK_REALTIME.
    pub kernel_ns: Option<i64>,
    /// By the card, on its own clock.
    pub card_ns: Option<i64>,
}

/// Both stamps of one arrival: two of them tell how fast the card's clock runs against CLOCK_REALTIME.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StampPair {
    /// On CLOCK_REALTIME.
    pub kernel_ns: i64,
    /// On the card's clock.
    pub card_ns: i64,
}

/// One reading of both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockReading {
    /// The run's clock.
    pub run_ns: i64,
    /// CLOCK_REALTIME, right after.
    pub real_ns: i64,
    /// The run's clock again.
    pub after_ns: i64,
}

/// What came of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderEvent {
    /// A stamp of a pulse that left.
    Left(PulsePacket, EdgeStamps),
    /// An answer.
    Answer {
        /// To this pulse.
        pulse: PulsePacket,
        /// When it arrived.
        stamps: EdgeStamps,
        /// When it was taken.
        taken: ClockReading,
        /// Arrivals that this machine dropped before it, because its queue was full.
        dropped: u64,
    },
    /// Something else.
    Foreign,
    /// The network says that nobody listens there, with this errno.
    Unreachable(i32),
    /// Nothing, and the time is over.
    Nothing,
    /// A signal came first.
    Interrupted,
    /// The line is gone, with this errno.
    Failed(i32),
}

/// Where pulses leave and answers arrive.
pub trait SenderLine {
    /// Waits for stamps and answers until `until_ns`; what is there is taken in any case, stamps first.
    fn wait(&mut self, until_ns: i64) -> SenderEvent;
    /// Sends a pulse.
    ///
    /// # Errors
    /// [`super::AnswerRefusal`].
    fn send(&mut self, pulse: &PulsePacket) -> Result<(), super::AnswerRefusal>;
    /// Reads both clocks.
    fn read(&mut self) -> ClockReading;
}

/// How often what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderTally {
    /// Pulses that the kernel took.
    pub sent: u64,
    /// Of these, answered within the patience; the late ones too.
    pub answered: u64,
    /// Answered after the next pulse was sent.
    pub late: u64,
    /// Not answered within the patience.
    pub unanswered: u64,
    /// Of these, the ones that were answered after all.
    pub overdue: u64,
    /// Answers to a pulse that had one.
    pub twice: u64,
    /// Answers to no pulse that is known: never sent, or very old.
    pub spurious: u64,
    /// Arrivals that were no answers to this sender.
    pub foreign: u64,
    /// Arrivals that this machine dropped.
    pub dropped: u64,
    /// Pulses that the kernel refused.
    pub refused: u64,
    /// Times that the network said that nobody listens there.
    pub unreachable: u64,
    /// The errno of the last refusal, by the kernel or by the network.
    pub errno: i32,
    /// Pulses of the schedule that were left out, because this thread was late.
    pub held: u64,
    /// Answered pulses that the card stamped at both ends.
    pub by_card: u64,
    /// Answered pulses whose leaving the kernel did not stamp.
    pub unstamped_left: u64,
    /// Answered pulses whose answer the kernel did not stamp.
    pub unstamped_answer: u64,
    /// Answered pulses timed by the thread's clock, because CLOCK_REALTIME was set meanwhile.
    pub clock_set: u64,
    /// The first arrival that has both stamps.
    pub first_pair: Option<StampPair>,
    /// The last one.
    pub last_pair: Option<StampPair>,
}

/// Where times go.
#[derive(Clone, Copy, Debug)]
pub struct SenderLogs<'a> {
    /// Of answered pulses.
    pub answered: &'a Recorder,
    /// Least times of unanswered ones.
    pub at_least: &'a Recorder,
    /// How late pulses were sent.
    pub lateness: &'a Recorder,
    /// Each pulse, as [`PulseSample::pack`] has it.
    pub samples: &'a Ring<3, SAMPLES>,
}

/// What came of a pulse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PulseTime {
    /// Answered before the next one was sent.
    Answered(i64),
    /// Answered after that.
    Late(i64),
    /// Not answered for so long.
    AtLeast(i64),
}

/// One pulse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PulseSample {
    /// From 0.
    pub number: u64,
    /// When it was sent, on the run's clock.
    pub sent_ns: i64,
    /// What came of it.
    pub time: PulseTime,
}

impl PulseSample {
    const KIND_BITS: u32 = 2;

    /// As words of a ring: number; when; time and, in the lowest bits, which kind.
    #[must_use]
    pub fn pack(&self) -> [u64; 3] {
        let (kind, ns) = match self.time {
            PulseTime::Answered(ns) => (0, ns),
            PulseTime::Late(ns) => (1, ns),
            PulseTime::AtLeast(ns) => (2, ns),
        };
        let ns = ns.max(0).unsigned_abs();
        [self.number, self.sent_ns.cast_unsigned(), ns.wrapping_shl(Self::KIND_BITS) | kind]
    }

    /// The reverse.
    #[must_use]
    pub fn unpack([number, sent, time]: [u64; 3]) -> Self {
        let ns = time.wrapping_shr(Self::KIND_BITS).cast_signed();
        let time = match time & 3 {
            0 => PulseTime::Answered(ns),
            1 => PulseTime::Late(ns),
            _ => PulseTime::AtLeast(ns),
        };
        Self { number, sent_ns: sent.cast_signed(), time }
    }
}

/// What is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderPlan {
    /// When pulses fall due.
    pub schedule: Schedule,
    /// At random around it.
    pub spread: Spread,
    /// What marks this run's pulses.
    pub sender: u64,
    /// The number of the first one: those of a warm-up come before. In what is recorded it is 0.
    pub first_number: u64,
    /// A pulse without an answer is given up after so long.
    pub patience_ns: i64,
}

struct Sending<'a, M> {
    plan: &'a SenderPlan,
    answered: Writer<'a>,
    at_least: Writer<'a>,
    lateness: Writer<'a>,
    samples: &'a Ring<3, SAMPLES>,
    slots: &'a mut Slots<M>,
    clocks: ClockPair,
    /// How often CLOCK_REALTIME was set.
    sets: u64,
    tally: SenderTally,
}

/// Sends until the schedule is over or `stop` is set, then waits for answers that are due.
pub fn run<L: SenderLine, M: AsMut<[PulseSlot]>>(
    line: &mut L,
    plan: &SenderPlan,
    logs: &SenderLogs<'_>,
    slots: &mut Slots<M>,
    stop: &AtomicBool,
) -> (LoopEnd, SenderTally) {
    let Schedule { first_ns, interval_ns, activations } = plan.schedule;
    let interval_ns = interval_ns.max(1);
    let writer = |recorder| Writer::spread(recorder, first_ns, interval_ns, plan.spread);
    slots.clear(plan.first_number);
    let mut sending = Sending {
        plan,
        answered: writer(logs.answered),
        at_least: writer(logs.at_least),
        lateness: writer(logs.lateness),
        samples: logs.samples,
        slots,
        clocks: ClockPair::default(),
        sets: 0,
        tally: SenderTally::default(),
    };
    let mut activation = 0u64;
    let mut ended = LoopEnd::Complete;
    while activation < activations {
        if stop.load(Ordering::Relaxed) {
            ended = LoopEnd::Stopped(activation);
            break;
        }
        let due_ns = sending.due_ns(activation);
        let now = line.read();
        let event = if now.run_ns < due_ns {
            line.wait(due_ns)
        } else {
            match sending.send(line, activation, due_ns, now) {
                Ok(()) => {
                    activation = activation.wrapping_add(sending.steps(activation, now.run_ns));
                    sending.settle(now);
                    continue;
                }
                Err(errno) => SenderEvent::Failed(errno),
            }
        };
        if let SenderEvent::Failed(errno) = event {
            ended = LoopEnd::Failed(errno, activation);
            break;
        }
        sending.take(event);
    }
    sending.wait_for_the_rest(line);
    (ended, sending.finish())
}

impl<M: AsMut<[PulseSlot]>> Sending<'_, M> {
    fn due_ns(&self, activation: u64) -> i64 {
        let Schedule { first_ns, interval_ns, .. } = self.plan.schedule;
        let even_ns = interval_ns.wrapping_mul(activation.cast_signed());
        first_ns.wrapping_add(even_ns).wrapping_add(self.plan.spread.delay_ns(activation))
    }

    /// From this activation to the next one that is not over; those between are left out.
    fn steps(&mut self, activation: u64, now_ns: i64) -> u64 {
        let Schedule { first_ns, interval_ns, activations } = self.plan.schedule;
        let passed = now_ns.saturating_sub(first_ns).max(0).checked_div(interval_ns.max(1));
        let current = passed.map_or(0, i64::unsigned_abs).max(activation);
        let next = if current > activation && self.due_ns(current) > now_ns {
            current
        } else {
            current.wrapping_add(1)
        };
        let steps = next.min(activations).wrapping_sub(activation).max(1);
        self.tally.held = self.tally.held.saturating_add(steps.wrapping_sub(1));
        steps
    }

    fn send<L: SenderLine>(
        &mut self,
        line: &mut L,
        activation: u64,
        due_ns: i64,
        now: ClockReading,
    ) -> Result<(), i32> {
        self.compare(now);
        let number = self.plan.first_number.wrapping_add(self.tally.sent);
        if let Some(retired) = self.slots.make_room(number, now) {
            self.record(retired);
        }
        let token = now.run_ns.cast_unsigned();
        let pulse = PulsePacket { sender: self.plan.sender, number, token };
        self.lateness.wake(activation, due_ns, now.run_ns, 0);
        match line.send(&pulse) {
            Ok(()) => {
                self.slots.sent(number, token, now, self.sets);
                self.tally.sent = self.tally.sent.saturating_add(1);
                Ok(())
            }
            Err(super::AnswerRefusal::Answer(errno)) => {
                self.tally.refused = self.tally.refused.saturating_add(1);
                self.tally.errno = errno;
                Ok(())
            }
            Err(super::AnswerRefusal::Line(errno)) => {
                self.tally.refused = self.tally.refused.saturating_add(1);
                self.tally.errno = errno;
                Err(errno)
            }
        }
    }

    fn compare(&mut self, now: ClockReading) {
        if self.clocks.compare(now.run_ns, now.real_ns, now.after_ns) == Compared::Set {
            self.sets = self.sets.saturating_add(1);
        }
    }

    fn take(&mut self, event: SenderEvent) {
        let tally = &mut self.tally;
        match event {
            SenderEvent::Left(pulse, stamps) if pulse.sender == self.plan.sender => {
                // Of a pulse that is long over, a stamp has no use.
                let (Left::Noted | Left::Unknown) = self.slots.left(&pulse, stamps);
            }
            SenderEvent::Answer { pulse, stamps, taken, dropped } => {
                tally.dropped = tally.dropped.saturating_add(dropped);
                if pulse.sender != self.plan.sender {
                    tally.foreign = tally.foreign.saturating_add(1);
                    return;
                }
                self.compare(taken);
                if let EdgeStamps { kernel_ns: Some(kernel_ns), card_ns: Some(card_ns) } = stamps {
                    let pair = StampPair { kernel_ns, card_ns };
                    self.tally.first_pair.get_or_insert(pair);
                    self.tally.last_pair = Some(pair);
                }
                let count = match self.slots.answered(&pulse, stamps, taken, self.sets) {
                    Arrived::First => return,
                    Arrived::Overdue => &mut self.tally.overdue,
                    Arrived::Twice => &mut self.tally.twice,
                    Arrived::Unknown => &mut self.tally.spurious,
                };
                *count = count.saturating_add(1);
            }
            SenderEvent::Left(..) | SenderEvent::Foreign => {
                tally.foreign = tally.foreign.saturating_add(1);
            }
            SenderEvent::Unreachable(errno) => {
                tally.unreachable = tally.unreachable.saturating_add(1);
                tally.errno = errno;
            }
            SenderEvent::Nothing | SenderEvent::Interrupted | SenderEvent::Failed(_) => {}
        }
    }

    /// Records what is decided, in the order of the pulses.
    fn settle(&mut self, now: ClockReading) {
        while let Some(retired) = self.slots.retire(now, self.plan.patience_ns) {
            self.record(retired);
        }
    }

    fn record(&mut self, retired: Retired) {
        let Retired { sent_ns, time, basis, .. } = retired;
        let number = retired.number.wrapping_sub(self.plan.first_number);
        let tally = &mut self.tally;
        let bump = |count: &mut u64, is: bool| *count = count.saturating_add(u64::from(is));
        let (is_answered, ns) = match time {
            PulseTime::Answered(ns) | PulseTime::Late(ns) => (true, ns),
            PulseTime::AtLeast(ns) => (false, ns),
        };
        bump(&mut tally.late, matches!(time, PulseTime::Late(_)));
        bump(&mut tally.by_card, basis.by_card);
        bump(&mut tally.clock_set, basis.clock_set);
        bump(&mut tally.unstamped_left, basis.unstamped_left);
        bump(&mut tally.unstamped_answer, basis.unstamped_answer);
        let (count, log) = if is_answered {
            (&mut tally.answered, &mut self.answered)
        } else {
            (&mut tally.unanswered, &mut self.at_least)
        };
        bump(count, true);
        log.wake(number, sent_ns, sent_ns.saturating_add(ns), 0);
        self.samples.push(PulseSample { number, sent_ns, time }.pack());
    }

    /// Every pulse has its patience, the last one too.
    fn wait_for_the_rest<L: SenderLine>(&mut self, line: &mut L) {
        let end_ns = line.read().run_ns.saturating_add(self.plan.patience_ns);
        loop {
            let now = line.read();
            self.settle(now);
            if self.slots.is_settled() || now.run_ns >= end_ns {
                break;
            }
            match line.wait(end_ns) {
                SenderEvent::Failed(_) => break,
                event => self.take(event),
            }
        }
        let now = line.read();
        while let Some(retired) = self.slots.retire(now, 0) {
            self.record(retired);
        }
    }

    fn finish(self) -> SenderTally {
        let Self { mut answered, mut at_least, mut lateness, tally, .. } = self;
        answered.finish();
        at_least.finish();
        lateness.finish();
        tally
    }
}
