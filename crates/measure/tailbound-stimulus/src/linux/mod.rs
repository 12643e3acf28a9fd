// SPDX-License-Identifier: MIT OR Apache-2.0
//! This machine as the source: datagrams to a machine that answers them (`tailbound box answer --udp`).
//!
//! Context: SETUP, COLD; the loop is HOT (`tailbound_rt::answer::sender`). Units: ns.
//! Its own error is measured before: the same loop, at the same policy, to its own socket.

mod own_error;
mod record;
mod samples;

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use tailbound_box::TimeBase;
use tailbound_box::stimulus::{
    StimulusPlan, StimulusProgress, StimulusRecord, StimulusSink, StimulusSpacing,
};
use tailbound_rt::answer::sender::{self, SAMPLES, SenderLogs, SenderPlan, SenderTally};
use tailbound_rt::answer::slots::Slots;
use tailbound_rt::ring::Ring;
use tailbound_rt::spread::Spread;
use tailbound_rt::{LoopEnd, Recorder, Schedule};
use tailbound_sys::answer::sender::SenderUdp;
use tailbound_sys::clock::{CLOCK_MONOTONIC, now_ns};
use tailbound_sys::mem::Prefaulted;
use tailbound_sys::thread::{self, Thread, ThreadSpec};
use tailbound_sys::{limits, signal};

use crate::StimulusError;
use samples::Samples;

/// Shortest interval: a pulse, its stamps and its answer are half a dozen system calls.
const PERIOD_MIN_NS: i64 = 20_000;
const SECOND_NS: i64 = 1_000_000_000;
const LOOK: Duration = Duration::from_millis(20);
/// From the start of the thread to the first pulse.
const LEAD_NS: i64 = 20_000_000;

/// The sender and whom it asks.
#[derive(Clone, Debug)]
pub struct LinuxSender {
    /// `HOST:PORT` of the machine that answers.
    pub to: String,
    /// Policy, priority and CPUs of the thread that sends.
    pub thread: ThreadSpec,
    /// The same for people: `fifo:90 on CPU 3`.
    pub how: String,
    /// A pulse without an answer for so long is given up.
    pub patience_ns: i64,
}

/// What the sending thread writes and this one reads.
struct Shared {
    answered: Prefaulted<Recorder>,
    at_least: Prefaulted<Recorder>,
    lateness: Prefaulted<Recorder>,
    samples: Prefaulted<Ring<3, SAMPLES>>,
    stop: AtomicBool,
}

/// How one phase ended.
struct Phase {
    ended: LoopEnd,
    tally: SenderTally,
    shared: Arc<Shared>,
}

type Sent = (LoopEnd, SenderTally, SenderUdp, Box<Slots>);

impl LinuxSender {
    /// Sends pulses as planned, until an ending signal is pending or `stop` is set.
    ///
    /// # Errors
    /// The host is not known, the thread or its socket is refused, or the plan is none that datagrams can follow. What
    /// ends a measurement that had begun is in the record.
    pub fn measure(
        &self,
        plan: &StimulusPlan,
        sink: &mut dyn StimulusSink,
        stop: &AtomicBool,
    ) -> Result<StimulusRecord, StimulusError> {
        check(plan)?;
        let to = self.resolved()?;
        let own_error = own_error::measured(self, plan, stop)?;
        let line = SenderUdp::open(to, CLOCK_MONOTONIC)?;
        // The first pulses find cold caches and neighbours that are not known yet, and show whether the card stamps.
        let warm_up = warm_up_pulses(plan.period_ns);
        let sender = name();
        let slots = Box::new(Slots::new());
        let plan_of = |sender, pulses| self.plan(plan, sender, pulses);
        let (_, line, slots) =
            self.phase(line, slots, plan_of(sender.wrapping_add(1), warm_up), &mut |_| {}, stop)?;
        let pulses = u64::try_from(plan.duration_ns / plan.period_ns).unwrap_or(0);
        let plan_ns = plan_of(sender, pulses);
        sink.begin(TimeBase::NANOSECOND, 1);
        let mut samples = Samples::new(sink);
        let begun_ns = now_ns(CLOCK_MONOTONIC);
        let (phase, ..) =
            self.phase(line, slots, plan_ns, &mut |shared| samples.take(shared, begun_ns), stop)?;
        let elapsed_ns = now_ns(CLOCK_MONOTONIC).saturating_sub(begun_ns + LEAD_NS).max(0);
        let outcome = record::Outcome { sender: self, plan, to, own_error, elapsed_ns };
        Ok(outcome.record(&phase, samples))
    }

    fn resolved(&self) -> Result<SocketAddr, StimulusError> {
        let unreachable =
            |reason: String| StimulusError::Unreachable { place: self.to.clone(), reason };
        let mut found = self.to.to_socket_addrs().map_err(|e| {
            unreachable(format!("{e}: write the host or the address of the machine that answers and its port, such as 192.168.1.7:2307"))
        })?;
        found.next().ok_or_else(|| unreachable("this host has no address".to_owned()))
    }

    fn plan(&self, plan: &StimulusPlan, sender: u64, pulses: u64) -> SenderPlan {
        let spread = match plan.spacing {
            StimulusSpacing::Even => Spread::default(),
            StimulusSpacing::Random(seed) => {
                Spread { seed: u64::from(seed), window_ns: plan.period_ns / 2 }
            }
        };
        let schedule = Schedule { first_ns: 0, interval_ns: plan.period_ns, activations: pulses };
        SenderPlan { schedule, spread, sender, patience_ns: self.patience_ns }
    }

    /// One loop in a thread of its own, `look` meanwhile in this one.
    fn phase(
        &self,
        mut line: SenderUdp,
        mut slots: Box<Slots>,
        mut plan: SenderPlan,
        look: &mut dyn FnMut(&Shared),
        stop: &AtomicBool,
    ) -> Result<(Phase, SenderUdp, Box<Slots>), StimulusError> {
        let shared = Arc::new(Shared {
            answered: Prefaulted::new()?,
            at_least: Prefaulted::new()?,
            lateness: Prefaulted::new()?,
            samples: Prefaulted::new()?,
            stop: AtomicBool::new(false),
        });
        let own = Arc::clone(&shared);
        let (alive, over) = mpsc::channel::<()>();
        let thread: Thread<Sent> = thread::spawn(self.thread.clone(), move || {
            plan.schedule.first_ns = now_ns(CLOCK_MONOTONIC).saturating_add(LEAD_NS);
            let logs = SenderLogs {
                answered: &own.answered,
                at_least: &own.at_least,
                lateness: &own.lateness,
                samples: &own.samples,
            };
            let (ended, tally) = sender::run(&mut line, &plan, &logs, &mut slots, &own.stop);
            drop(alive);
            (ended, tally, line, slots)
        })?;
        // Nothing is ever sent on it: it is gone with the thread, also where that never began.
        while over.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            let ends = stop.load(Ordering::Relaxed)
                || limits::STOP.load(Ordering::Relaxed)
                || signal::pending().is_some();
            if ends {
                shared.stop.store(true, Ordering::Relaxed);
            }
            look(&shared);
        }
        let (ended, tally, line, slots) = thread.join()?;
        look(&shared);
        Ok((Phase { ended, tally, shared }, line, slots))
    }
}

/// Can datagrams follow this plan?
fn check(plan: &StimulusPlan) -> Result<(), StimulusError> {
    let impossible = |reason: &str| Err(StimulusError::Impossible(reason.to_owned()));
    if plan.period_ns < PERIOD_MIN_NS {
        return impossible("linux: an interval of less than 20us: datagrams cannot follow it");
    }
    if plan.channels != 1 {
        return impossible("linux: more than one channel: a sender has one");
    }
    if plan.duration_ns < plan.period_ns {
        return impossible("linux: the duration is shorter than one interval");
    }
    Ok(())
}

/// About half a second, three pulses at least.
fn warm_up_pulses(period_ns: i64) -> u64 {
    u64::try_from(SECOND_NS / 2 / period_ns).unwrap_or(0).clamp(3, 5_000)
}

/// What marks this run's pulses among those of others.
fn name() -> u64 {
    let real = now_ns(tailbound_sys::clock::CLOCK_REALTIME).cast_unsigned();
    real.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(std::process::id()) << 32
}
