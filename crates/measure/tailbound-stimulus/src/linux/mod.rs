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
use tailbound_core::cpus::MAX_CPU;
use tailbound_core::policy::{ParsePolicyError, Policy};
use tailbound_core::units::{ParseTimeError, parse_ns};
use tailbound_rt::answer::sender::{self, SAMPLES, SenderLogs, SenderPlan, SenderTally};
use tailbound_rt::answer::slots::{PulseSlot, SLOTS, Slots};
use tailbound_rt::ring::Ring;
use tailbound_rt::spread::Spread;
use tailbound_rt::{LoopEnd, Recorder, Schedule};
use tailbound_sys::answer::sender::SenderUdp;
use tailbound_sys::clock::{CLOCK_MONOTONIC, now_ns};
use tailbound_sys::error::SysError;
use tailbound_sys::limits;
use tailbound_sys::mem::{self, Prefaulted};
use tailbound_sys::thread::{self, Thread, ThreadSpec};

use crate::StimulusError;
use crate::stopped::is_stopped;
use samples::SampleFeed;

/// Shortest interval: a pulse, its stamps and its answer are half a dozen system calls.
const PERIOD_MIN_NS: i64 = 20_000;
const SECOND_NS: i64 = 1_000_000_000;
const LOOK: Duration = Duration::from_millis(20);
/// From the start of the thread to the first pulse.
const LEAD_NS: i64 = 20_000_000;

/// A pulse without an answer for so long is given up, unless somebody says otherwise.
const PATIENCE_NS: i64 = SECOND_NS;
/// Pulses that wait for an answer at a time.
const FOLLOWED: i64 = SLOTS as i64;
const STACK_BYTES: usize = 256 << 10;

/// What is wrong with the text that names a sender.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SenderTextError {
    #[error("`{to}` is not HOST:PORT, such as 192.168.1.7:2307")]
    NoPort { to: String },
    #[error(transparent)]
    Policy(#[from] ParsePolicyError),
    #[error("`{text}` is no number of a CPU")]
    NoCpu { text: String },
    #[error(transparent)]
    Patience(#[from] ParseTimeError),
    #[error("`{word}` is not one of policy=, cpu=, patience=")]
    NoSuchWord { word: String },
}

type PulseSlots = Slots<Box<[PulseSlot]>>;

/// The sender and whom it asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinuxSender {
    /// `HOST:PORT` of the machine that answers.
    pub to: String,
    /// Of the thread that sends.
    pub policy: Policy,
    /// Where it runs; `None`: anywhere.
    pub cpu: Option<u32>,
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

type Sent = (LoopEnd, SenderTally, SenderUdp, PulseSlots);

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
        self.check(plan)?;
        let to = self.resolved()?;
        let memory = self.prepare()?;
        let own_error = own_error::measured(self, plan, stop)?;
        let line = SenderUdp::open(to, CLOCK_MONOTONIC)?;
        // The first pulses find cold caches and neighbours that are not known yet, and show whether the card stamps.
        let warm_up = warm_up_pulses(plan.period_ns);
        let slots = no_pulse();
        let begins = self.plan(plan, name(), warm_up);
        let (warmed, line, slots) = self.phase(line, slots, begins, &mut |_| {}, stop)?;
        if is_stopped(stop) {
            return Err(StimulusError::Ended);
        }
        let pulses = u64::try_from(plan.duration_ns / plan.period_ns).unwrap_or(0);
        let goes_on = SenderPlan {
            first_number: warmed.tally.sent,
            schedule: Schedule { activations: pulses, ..begins.schedule },
            ..begins
        };
        sink.begin(TimeBase::NANOSECOND, 1);
        let begun_ns = now_ns(CLOCK_MONOTONIC);
        let mut samples = SampleFeed::new(sink, begun_ns);
        let report =
            record::SenderReport { sender: self, plan, to, sends: goes_on, own_error, memory };
        let mut look = |shared: &Shared| {
            samples.take(shared, begun_ns);
            samples.copy(&report, shared, begun_ns);
        };
        let (phase, ..) = self.phase(line, slots, goes_on, &mut look, stop)?;
        Ok(report.record(&phase, samples))
    }

    /// `HOST:PORT`, then in any order `,policy=fifo:90`, `,cpu=3`, `,patience=1s`.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub(crate) fn read(text: &str) -> Result<Self, SenderTextError> {
        let mut words = text.split(',');
        let to = words.next().unwrap_or_default().to_owned();
        let has_port = to.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port != 0)
        });
        if !has_port {
            return Err(SenderTextError::NoPort { to });
        }
        let mut sender = Self { to, policy: Policy::Other, cpu: None, patience_ns: PATIENCE_NS };
        for word in words {
            match word.split_once('=') {
                Some(("policy", text)) => {
                    sender.policy = text.parse()?;
                }
                Some(("cpu", text)) => {
                    let cpu = text.parse().ok().filter(|cpu| *cpu <= MAX_CPU);
                    let none = || SenderTextError::NoCpu { text: text.to_owned() };
                    sender.cpu = Some(cpu.ok_or_else(none)?);
                }
                Some(("patience", text)) => {
                    sender.patience_ns = parse_ns(text)?;
                }
                _ => return Err(SenderTextError::NoSuchWord { word: word.to_owned() }),
            }
        }
        Ok(sender)
    }

    /// At short intervals fewer are followed than would fit into the patience.
    fn patience_at(&self, plan: &StimulusPlan) -> i64 {
        self.patience_ns.min(plan.period_ns.saturating_mul(FOLLOWED - 1))
    }

    /// How the thread runs, for people.
    fn how(&self) -> String {
        match self.cpu {
            Some(cpu) => format!("{} on CPU {cpu}", self.policy),
            None => format!("{} on any CPU", self.policy),
        }
    }

    fn thread(&self) -> ThreadSpec {
        let cpus = Vec::from_iter(self.cpu);
        ThreadSpec {
            attributes: tailbound_host::attributes(self.policy),
            group: tailbound_host::cgroups::to_join(&cpus),
            cpus,
            stack_bytes: STACK_BYTES,
        }
    }

    /// What a real-time thread needs; whether its memory is locked.
    fn prepare(&self) -> Result<Result<(), SysError>, StimulusError> {
        if !self.policy.is_realtime() {
            return Ok(Ok(()));
        }
        limits::guard_realtime(0)?;
        Ok(mem::lock_all())
    }

    /// Can datagrams follow this plan?
    fn check(&self, plan: &StimulusPlan) -> Result<(), StimulusError> {
        let impossible = |reason: &str| Err(StimulusError::Impossible(format!("linux: {reason}")));
        if let Policy::Deadline { .. } | Policy::Unknown(_) = self.policy {
            return impossible(
                "policy: choose fifo:N, rr:N or other; SCHED_DEADLINE threads run in their own periods, not when a pulse is due",
            );
        }
        if plan.period_ns < PERIOD_MIN_NS {
            return impossible("an interval of less than 20us: datagrams cannot follow it");
        }
        if plan.channels != 1 {
            return impossible("more than one channel: a sender has one");
        }
        if plan.duration_ns < plan.period_ns {
            return impossible("the duration is shorter than one interval");
        }
        if self.patience_at(plan) < plan.deadline_ns.unwrap_or(1) {
            return impossible(
                "the patience, or 4,095 intervals, is shorter than the deadline: what is later could not be told",
            );
        }
        Ok(())
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
        SenderPlan {
            schedule,
            spread,
            sender,
            first_number: 0,
            patience_ns: self.patience_at(plan),
        }
    }

    /// One loop in a thread of its own, `look` meanwhile in this one.
    fn phase(
        &self,
        mut line: SenderUdp,
        mut slots: PulseSlots,
        mut plan: SenderPlan,
        look: &mut dyn FnMut(&Shared),
        stop: &AtomicBool,
    ) -> Result<(Phase, SenderUdp, PulseSlots), StimulusError> {
        let shared = Arc::new(Shared {
            answered: Prefaulted::new()?,
            at_least: Prefaulted::new()?,
            lateness: Prefaulted::new()?,
            samples: Prefaulted::new()?,
            stop: AtomicBool::new(false),
        });
        let own = Arc::clone(&shared);
        let (alive, over) = mpsc::channel::<()>();
        let thread: Thread<Sent> = thread::spawn(self.thread(), move || {
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
            if is_stopped(stop) {
                shared.stop.store(true, Ordering::Relaxed);
            }
            look(&shared);
        }
        let (ended, tally, line, slots) = thread.join()?;
        look(&shared);
        Ok((Phase { ended, tally, shared }, line, slots))
    }
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

/// Where pulses are followed, before the first one.
fn no_pulse() -> PulseSlots {
    Slots::over(vec![PulseSlot::default(); SLOTS].into())
}
