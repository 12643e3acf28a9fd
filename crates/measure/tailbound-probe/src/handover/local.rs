// SPDX-License-Identifier: MIT OR Apache-2.0
//! The threads of a hand-over: what a receiver and a sender take along to their CPUs.
//!
//! Context: HOT once the gate is open. Units: ns.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tailbound_rt::cyclic::{LoopEnd, Schedule};
use tailbound_rt::handover::line::Phase;
use tailbound_rt::handover::{
    Acknowledgement, Block, Give, Log, Onward, Receiver, ReturnLeg, Sender, Take,
};
use tailbound_rt::recorder::{Recorder, Writer};
use tailbound_sys::clock::Nanosleep;
use tailbound_sys::error::SysError;
use tailbound_sys::shared::Shared;

use crate::thread_group::{Finished, Recorders, ThreadContext};

/// The line of the way back of a round trip: it has one receiver, on line 0.
pub(super) const BACK: usize = 1;

/// A bug of ours that is told as an errno: EINVAL.
const LOST: i32 = 22;

/// A writer for one phase of a schedule.
pub(super) fn log<'r>(recorder: &'r Recorder, schedule: &Schedule) -> Log<'r> {
    Log::Own(Writer::new(recorder, schedule.first_ns, schedule.interval_ns))
}

/// The recorder of a phase.
pub(super) fn of_phase(recorders: &Recorders, phase: usize) -> &Recorder {
    if phase == 0 { &recorders.warm_up } else { &recorders.measured }
}

/// A receiver.
pub(super) struct Receiving {
    pub(super) memory: Arc<Shared<Block>>,
    pub(super) clock: i32,
    pub(super) inlet: Box<dyn Take + Send>,
    /// Where it hands on to, and by which line.
    pub(super) onward: Option<(Box<dyn Give + Send>, usize)>,
    pub(super) line: usize,
    pub(super) taken: usize,
    /// Of the whole ring, at its last receiver.
    pub(super) whole: Option<Arc<Recorders>>,
}

impl Receiving {
    pub(super) fn run(mut self, thread: &ThreadContext) -> Result<Finished, SysError> {
        let mut number = 0;
        thread.phases(|schedule, recorder| {
            let ended = self.phase(number, schedule, recorder, thread.stop());
            number += 1;
            ended
        })
    }

    fn phase(
        &mut self,
        number: usize,
        schedule: &Schedule,
        recorder: &Recorder,
        stop: &AtomicBool,
    ) -> LoopEnd {
        let at = self.memory.phases.get(number).and_then(|phase| {
            Some((phase, phase.lines.get(self.line)?, phase.taken.get(self.taken)?))
        });
        let Some((phase, line, taken)) = at else { return LoopEnd::Failed(LOST, 0) };
        let onward = self.onward.as_mut().and_then(|(outlet, line)| {
            Some(Onward { outlet: &mut **outlet, line: phase.lines.get(*line)? })
        });
        let whole = self.whole.as_ref();
        Receiver {
            port: &mut Nanosleep(self.clock),
            inlet: &mut *self.inlet,
            line,
            taken,
            onward,
            log: log(recorder, schedule),
            whole: whole.map_or(Log::Nowhere, |r| log(of_phase(r, number), schedule)),
        }
        .run(schedule, stop)
    }
}

/// A sender, in this process or another.
pub(super) struct Sending {
    pub(super) memory: Arc<Shared<Block>>,
    pub(super) clock: i32,
    pub(super) outlet: Box<dyn Give + Send>,
    /// Where answers arrive.
    pub(super) answers: Option<Box<dyn Take + Send>>,
    /// Whose receipt it waits for.
    pub(super) taken: Vec<usize>,
    pub(super) rehearse_ns: Option<i64>,
    pub(super) stall: Option<(u64, i64)>,
}

/// Where the three contexts of a sender go.
pub(super) struct Logs<'a> {
    pub(super) send: Log<'a>,
    pub(super) round_trip: Log<'a>,
    pub(super) back: Log<'a>,
}

impl Sending {
    /// With recorders of its own; `beside`: those of the round trip and of the way back.
    pub(super) fn run(
        mut self,
        thread: &ThreadContext,
        beside: Option<&[Arc<Recorders>; 2]>,
    ) -> Result<Finished, SysError> {
        let mut number = 0;
        thread.phases(|schedule, recorder| {
            let ended = match self.memory.clone().phases.get(number) {
                None => LoopEnd::Failed(LOST, 0),
                Some(phase) => {
                    let of = |i: usize| {
                        beside
                            .and_then(|b| b.get(i))
                            .map_or(Log::Nowhere, |r| log(of_phase(r, number), schedule))
                    };
                    let send = log(recorder, schedule);
                    let logs = Logs { send, round_trip: of(0), back: of(1) };
                    self.phase(phase, schedule, logs, thread.stop())
                }
            };
            number += 1;
            ended
        })
    }

    /// One phase, whoever records it.
    pub(super) fn phase(
        &mut self,
        phase: &Phase,
        schedule: &Schedule,
        logs: Logs<'_>,
        stop: &AtomicBool,
    ) -> LoopEnd {
        let taken: Vec<&Acknowledgement> =
            self.taken.iter().filter_map(|i| phase.taken.get(*i)).collect();
        let (Some(line), Some(back)) = (phase.lines.first(), phase.lines.get(BACK)) else {
            return LoopEnd::Failed(LOST, 0);
        };
        let Logs { send, round_trip, back: way_back } = logs;
        Sender {
            port: &mut Nanosleep(self.clock),
            outlet: &mut *self.outlet,
            line,
            taken: &taken,
            answer: self.answers.as_mut().map(|inlet| ReturnLeg {
                inlet: &mut **inlet,
                line: back,
                round_trip,
                back: way_back,
            }),
            log: send,
            rehearse_ns: self.rehearse_ns,
            stall: self.stall,
        }
        .run(schedule, stop)
    }
}
