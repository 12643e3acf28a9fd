// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers pulses from outside, and records how late each answer was given.
//!
//! Context: HOT (no allocation, lock or panic; system calls: those of the line). Units: ns on the run's clock.
//! Pulses have no schedule: each falls due when it arrives. The schedule of the run only says how long it lasts.
//! Three times of a pulse are recorded: from the arrival to the answer (judged), from the arrival to the thread, and
//! from the thread to the answer. Pulses that never came are counted by their sequence numbers and have no latency.
//! Not here: the lines themselves (`tailbound-sys`, one file each), what the counts mean (`tailbound-probe`).

pub mod clocks;
pub mod datagram;
pub mod kept;
pub mod sender;
pub mod sequence;
pub mod slots;

use core::sync::atomic::{AtomicBool, Ordering};

use crate::cyclic::{LoopEnd, Schedule};
use crate::recorder::{Recorder, Writer};
use kept::{KeptPulse, KeptPulses, PulseMark};
use sequence::{Place, Sequence, Sequences};

/// When a pulse arrived, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// The kernel stamped it then, on the run's clock, and may be wrong by so much.
    Kernel {
        /// The arrival.
        arrived_ns: i64,
        /// How wrong it may be: clocks are compared by reading one between two readings of the other.
        error_ns: i64,
    },
    /// The line has no stamps: the time begins when the thread runs.
    Absent,
    /// The clock of the stamp was set meanwhile: the time begins when the thread runs.
    ClockSet,
}

impl Stamp {
    /// Where the time of a pulse begins whose thread ran then.
    #[must_use]
    pub fn due_ns(self, ran_ns: i64) -> i64 {
        match self {
            Self::Kernel { arrived_ns, .. } => arrived_ns,
            Self::Absent | Self::ClockSet => ran_ns,
        }
    }
}

/// One pulse that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulse {
    /// When it arrived.
    pub stamp: Stamp,
    /// The first reading of the run's clock after the wait for it was over.
    pub ran_ns: i64,
    /// Its number, where the sender gives one.
    pub sequence: Option<Sequence>,
    /// What tells it from all others, where something does.
    pub mark: Option<PulseMark>,
    /// How many before it this machine dropped since the last one, because its queue was full.
    pub dropped: u64,
}

/// What came of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A pulse, which [`PulseLine::answer`] answers.
    Pulse(Pulse),
    /// Something else, which gets no answer.
    Foreign,
    /// Nothing, and the time is over.
    Nothing,
    /// A signal, or a part of a pulse, came first: look at the stop flag, then wait on.
    Interrupted,
    /// The line is gone, with this errno.
    Failed(i32),
}

/// Why an answer was not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerRefusal {
    /// This one was refused, with this errno; the next may be taken.
    Answer(i32),
    /// The line is gone, with this errno.
    Line(i32),
}

/// Where pulses arrive and answers leave.
pub trait PulseLine {
    /// Waits for a pulse until `until_ns`; one that is already there is taken in any case.
    fn wait(&mut self, until_ns: i64) -> Arrival;
    /// Answers the last pulse; the reading of the run's clock right after that.
    ///
    /// # Errors
    /// [`AnswerRefusal`].
    fn answer(&mut self) -> Result<i64, AnswerRefusal>;
    /// Reads the run's clock.
    fn now_ns(&mut self) -> i64;
}

/// How many pulses there were of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PulseTally {
    /// Answered, and recorded.
    pub answered: u64,
    /// Their answers were refused.
    pub refused: u64,
    /// The errno of the last refusal.
    pub errno: i32,
    /// Dropped by this machine, whose queue was full.
    pub dropped: u64,
    /// Left out in the sequence when a later one came.
    pub skipped: u64,
    /// Of those, the ones that came after all.
    pub reordered: u64,
    /// Came twice; each was answered.
    pub twice: u64,
    /// Too old to say whether they came before.
    pub stale: u64,
    /// Of senders beyond those whose sequences are followed.
    pub unfollowed: u64,
    /// Senders whose sequences are followed, those of the warm-up among them.
    pub senders: u64,
    /// Arrivals that were no pulses.
    pub foreign: u64,
    /// Pulses without a stamp of the kernel.
    pub unstamped: u64,
    /// Pulses while the clock of the stamps was set.
    pub clock_set: u64,
    /// Most that a stamp may be wrong by.
    pub error_ns_max: i64,
}

impl PulseTally {
    /// Pulses that never came to the thread.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.skipped.saturating_sub(self.reordered)
    }

    fn place(&mut self, place: Place) {
        match place {
            Place::First | Place::Next => {}
            Place::After(skipped) => self.skipped = self.skipped.saturating_add(skipped),
            Place::Late => self.reordered = self.reordered.saturating_add(1),
            Place::Twice => self.twice = self.twice.saturating_add(1),
            Place::Stale => self.stale = self.stale.saturating_add(1),
            Place::Unfollowed => self.unfollowed = self.unfollowed.saturating_add(1),
        }
    }
}

/// Where the times of each pulse are recorded.
#[derive(Clone, Copy, Debug)]
pub struct Logs<'a> {
    /// From the arrival until the answer was given.
    pub whole: &'a Recorder,
    /// From the arrival until the thread ran.
    pub start: &'a Recorder,
    /// From then until the answer was given.
    pub work: &'a Recorder,
}

/// A pulse that was answered when the schedule was over: it is of the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverduePulse {
    pulse: Pulse,
    given: Result<i64, AnswerRefusal>,
}

/// Answers until the schedule is over or `stop` is set. The longest answers are
/// kept. `overdue`: the pulse that ended the schedule before, and then the one that ended this.
pub fn run<L: PulseLine>(
    line: &mut L,
    schedule: &Schedule,
    logs: &Logs<'_>,
    sequences: &mut Sequences,
    kept: &mut KeptPulses,
    overdue: &mut Option<OverduePulse>,
    stop: &AtomicBool,
) -> (LoopEnd, PulseTally) {
    let Schedule { first_ns, interval_ns, activations } = *schedule;
    let writer = |recorder| Writer::new(recorder, first_ns, interval_ns.max(1));
    let (mut whole, mut start, mut work) =
        (writer(logs.whole), writer(logs.start), writer(logs.work));
    let span_ns = interval_ns.saturating_mul(i64::try_from(activations).unwrap_or(i64::MAX));
    let end_ns = first_ns.saturating_add(span_ns);
    let mut tally = PulseTally::default();
    let passed = |now_ns: i64| {
        let behind = now_ns.saturating_sub(first_ns).max(0);
        behind.checked_div(interval_ns).map_or(0, i64::unsigned_abs).min(activations)
    };
    let mut before = overdue.take();
    let ended = loop {
        let (pulse, given) = if let Some(OverduePulse { pulse, given }) = before.take() {
            (pulse, given)
        } else {
            if stop.load(Ordering::Relaxed) {
                break LoopEnd::Stopped(passed(line.now_ns()));
            }
            let pulse = match line.wait(end_ns) {
                Arrival::Pulse(pulse) => pulse,
                Arrival::Nothing if line.now_ns() >= end_ns => break LoopEnd::Complete,
                Arrival::Nothing | Arrival::Interrupted => continue,
                Arrival::Foreign => {
                    tally.foreign = tally.foreign.saturating_add(1);
                    // Others may send without a pause: the end comes all the same.
                    if line.now_ns() >= end_ns {
                        break LoopEnd::Complete;
                    }
                    continue;
                }
                Arrival::Failed(errno) => break LoopEnd::Failed(errno, passed(line.now_ns())),
            };
            (pulse, line.answer())
        };
        let due_ns = pulse.stamp.due_ns(pulse.ran_ns);
        if due_ns >= end_ns {
            *overdue = Some(OverduePulse { pulse, given });
            break LoopEnd::Complete;
        }
        let repeated = note(&mut tally, &pulse, sequences) == Some(Place::Twice);
        if let Some(mark) = pulse.mark.filter(|_| repeated) {
            kept.repeated(mark);
        }
        match given {
            Ok(given_ns) => {
                let n = tally.answered;
                whole.wake(n, due_ns, given_ns, 0);
                start.wake(n, due_ns, pulse.ran_ns, 0);
                work.wake(n, pulse.ran_ns, given_ns, 0);
                tally.answered = n.saturating_add(1);
                if let Some(mark) = pulse.mark {
                    let Pulse { stamp, ran_ns, .. } = pulse;
                    kept.keep(KeptPulse { mark, stamp, ran_ns, given_ns, repeated });
                }
            }
            Err(AnswerRefusal::Answer(errno)) => {
                tally.refused = tally.refused.saturating_add(1);
                tally.errno = errno;
            }
            Err(AnswerRefusal::Line(errno)) => {
                tally.refused = tally.refused.saturating_add(1);
                tally.errno = errno;
                break LoopEnd::Failed(errno, passed(line.now_ns()));
            }
        }
    };
    tally.senders = sequences.senders();
    whole.finish();
    start.finish();
    work.finish();
    (ended, tally)
}

/// Everything about a pulse but its times; its place, where it has a number.
fn note(tally: &mut PulseTally, pulse: &Pulse, sequences: &mut Sequences) -> Option<Place> {
    tally.dropped = tally.dropped.saturating_add(pulse.dropped);
    match pulse.stamp {
        Stamp::Kernel { error_ns, .. } => tally.error_ns_max = tally.error_ns_max.max(error_ns),
        Stamp::Absent => tally.unstamped = tally.unstamped.saturating_add(1),
        Stamp::ClockSet => tally.clock_set = tally.clock_set.saturating_add(1),
    }
    let place = sequences.place(pulse.sequence?);
    tally.place(place);
    Some(place)
}
