// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `ptrace`: another process, one instruction at a time, and nothing more.
//!
//! Context: SETUP in `check` and `begin`, HOT in the steps. Units: ns.
//! On each CPU a process runs a short loop; its tracer, on the same CPU, lets it do one
//! instruction at every due activation. Each step must end in the stop of a step, must have
//! moved on, and between two steps nothing may move.
//! Source: ptrace(2); the regression that ssdd was written for.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tailbound_core::policy::Policy;
use tailbound_host::{attributes, clock_id};
use tailbound_rt::cyclic::Port as _;
use tailbound_sys::clock::{self, CLOCK_MONOTONIC, Nanosleep};
use tailbound_sys::error::SysError;
use tailbound_sys::futex::{self, Scope};
use tailbound_sys::process::{self, Pid};
use tailbound_sys::ptrace::{Steps, Stop, Traced};
use tailbound_sys::sched;
use tailbound_sys::shared::Shared;

use super::count;
use super::ledger::Ledger;
use super::trials::{self, Timed};
use crate::error::ProbeError;
use crate::kind::{PlantedFault, Prepared, ProbeKind, ProbeOption, Setup};
use crate::peer::{self, Peer, Role};
use crate::thread_group::{
    Finished, ProbeOutput, RecordSlot, Running, ThreadContext, ThreadGroup, thread_spec,
};

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "ptrace",
    about: "another process, stepped by single instructions",
    from: "the tracer, just before it asks for a step (PTRACE_SINGLESTEP)",
    to: "the tracer, when it learns that the step is done (return of waitpid)",
    replaces: &["ssdd"],
    options: &[ProbeOption::plant(
        "`signal`: every tenth step a signal is sent to the stepped process",
    )],
    interval: "500us",
    policy: None,
    event: Some("step"),
    property: Some("every step was one instruction and ended in the stop of a step"),
    hog: false,
    takes: &[],
    prepare,
};

/// The stepped process.
pub(crate) const ROLE: Role = Role { name: "stepped", run: stepped };

const SIGUSR1: i32 = 10;
const ETIMEDOUT: i32 = 110;
/// A new program may take as long to begin, on a machine that is busy with anything: nothing is measured meanwhile.
const BEGIN_NS: i64 = 60_000_000_000;
/// The planted signal comes once per this many steps.
const PLANTED_EVERY: u64 = 10;

fn prepare(setup: &Setup<'_>) -> Result<Prepared, ProbeError> {
    let planted = setup.options().plant("signal")?;
    if cfg!(any(target_arch = "arm", target_arch = "riscv64")) {
        return Err(ProbeError::NoSteps);
    }
    let scope = setup.root.parsed::<u32>("/proc/sys/kernel/yama/ptrace_scope").unwrap_or(0);
    if scope >= 3 {
        return Err(ProbeError::TracingForbidden);
    }
    let priority = super::controller_priority(setup.plan, 2)?;
    super::realtime_allowed(setup, priority)?;
    Ok(Prepared::with((priority, planted), begin))
}

/// What a step did wrong.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    /// It ended in this stop.
    Stopped(Stop),
    /// The process stands where it stood.
    Still(u64),
    /// It went on between two steps, for this number of rounds of its loop.
    Moved(u64),
}

#[derive(Debug, Default)]
struct Sum {
    steps: u64,
    ledger: Ledger<(u32, Wrong)>,
    gone: bool,
}

fn begin(
    setup: &Setup<'_>,
    (priority, planted): (u8, PlantedFault),
) -> Result<Running, ProbeError> {
    let mut threads = setup.threads()?;
    let sum = Arc::new(Mutex::new(Sum::default()));
    let cpus = setup.cpus();
    let n = i64::try_from(cpus.len().max(1)).unwrap_or(1);
    let mut peers = Vec::new();
    for (&cpu, place) in cpus.iter().zip(0u32..) {
        let shared = Shared::<Steps>::new()?;
        let words = [cpu.to_string(), (priority - 1).to_string()];
        let peer = Peer::start(setup.exe, ROLE.name, &words, &[shared.as_fd()])?;
        let tracer = Tracer {
            shared,
            pid: peer.pid(),
            cpu,
            clock: clock_id(setup.plan.clock),
            planted,
            sum: Arc::clone(&sum),
        };
        peers.push(peer);
        let phase_ns = setup.plan.interval_ns / n * i64::from(place);
        let slot = RecordSlot { phase_ns, ..RecordSlot::user(place, Some(cpu)) };
        measured(&mut threads, slot, thread_spec(setup.plan.policy, vec![cpu]), tracer)?;
    }
    threads.after(move |_| {
        drop(peers);
        probe_output(&sum.lock().unwrap_or_else(PoisonError::into_inner))
    });
    threads.release()
}

fn measured(
    threads: &mut ThreadGroup,
    slot: RecordSlot,
    spec: tailbound_sys::thread::ThreadSpec,
    tracer: Tracer,
) -> Result<(), ProbeError> {
    threads.measured(slot, spec, move |thread| tracer.run(thread))
}

/// One thread that steps one process.
struct Tracer {
    shared: Shared<Steps>,
    pid: Pid,
    cpu: u32,
    clock: i32,
    planted: PlantedFault,
    sum: Arc<Mutex<Sum>>,
}

impl Tracer {
    /// Seizes the process, lets it begin its loop, and stops it there.
    fn seize(&self, stop: &AtomicBool) -> Result<Traced, SysError> {
        let traced = Traced::seize(self.pid)?;
        self.shared.go.store(1, Ordering::Release);
        futex::wake(&self.shared.go, 1, Scope::Shared);
        let until = clock::now_ns(CLOCK_MONOTONIC).saturating_add(BEGIN_NS);
        while self.shared.rounds.load(Ordering::Relaxed) == 0 && !stop.load(Ordering::Relaxed) {
            let now = clock::now_ns(CLOCK_MONOTONIC);
            if now > until {
                return Err(SysError::code(
                    "ptrace",
                    "the stepped process did not begin",
                    ETIMEDOUT,
                ));
            }
            Nanosleep(CLOCK_MONOTONIC).sleep_until(now.saturating_add(50_000));
        }
        traced.halt()?;
        Ok(traced)
    }

    fn run(&self, thread: &ThreadContext) -> Result<Finished, SysError> {
        let traced = self.seize(thread.stop())?;
        let mut found = Sum::default();
        let mut failed = None;
        let finished = thread.phases(|schedule, recorder| {
            found = Sum::default();
            let rounds = || self.shared.rounds.load(Ordering::Relaxed);
            let (mut stood, mut at) = (rounds(), traced.next_instruction().ok().flatten());
            let mut writers = [trials::writer(recorder, schedule)];
            trials::run(self.clock, schedule, &mut writers, thread.stop(), |n, writers| {
                let moved = rounds().wrapping_sub(stood);
                if moved != 0 {
                    found.ledger.enter(n, (self.cpu, Wrong::Moved(moved)));
                }
                if self.planted.is_present() && n.is_multiple_of(PLANTED_EVERY) {
                    // Gone already shows in the step.
                    drop(process::kill(self.pid, SIGUSR1));
                }
                let from_ns = clock::now_ns(self.clock);
                let stop = traced.step();
                let to_ns = clock::now_ns(self.clock);
                stood = rounds();
                let next = traced.next_instruction().ok().flatten();
                match stop {
                    Ok(Stop::Stepped) if next.is_some() && next == at => {
                        found.ledger.enter(n, (self.cpu, Wrong::Still(next.unwrap_or(0))));
                    }
                    Ok(Stop::Stepped) => {}
                    Ok(stop) => {
                        found.ledger.enter(n, (self.cpu, Wrong::Stopped(stop)));
                        if matches!(stop, Stop::Ended(_)) {
                            found.gone = true;
                            return false;
                        }
                    }
                    Err(e) => {
                        failed = Some(e);
                        return false;
                    }
                }
                at = next;
                found.steps += 1;
                writers.iter_mut().for_each(|w| Timed { from_ns, to_ns }.enter(n, w));
                true
            })
        });
        let mut sum = self.sum.lock().unwrap_or_else(PoisonError::into_inner);
        sum.steps += found.steps;
        sum.gone |= found.gone;
        sum.ledger.add(&found.ledger);
        failed.map_or(finished, Err)
    }
}

/// The life of the stepped process: a loop that counts its rounds.
fn stepped(words: &[String], descriptors: Vec<OwnedFd>) -> Result<(), SysError> {
    let cpu: u32 = peer::number(words, 0)?;
    let priority: u8 = peer::number(words, 1)?;
    let Some(memory) = descriptors.into_iter().next() else {
        return Err(SysError::code("peer", "no memory was handed down", 22));
    };
    let shared = Shared::<Steps>::from_fd(memory)?;
    sched::set_affinity(0, &[cpu])?;
    // Below its tracer on the same CPU, and above everything ordinary: nobody delays a step.
    tailbound_sys::limits::guard_realtime(0)?;
    sched::set(0, &attributes(Policy::Fifo(priority)))?;
    // From its tracer's word on it runs freely for microseconds only, then step by step.
    while shared.go.load(Ordering::Acquire) == 0 {
        futex::wait(&shared.go, 0, None, Scope::Shared);
    }
    while !tailbound_sys::limits::STOP.load(Ordering::Relaxed) {
        shared.rounds.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn probe_output(sum: &Sum) -> ProbeOutput {
    let mut output = ProbeOutput::default();
    let title = |n| format!("{n} steps of a traced process went wrong");
    output.findings.extend(sum.ledger.finding("step-wrong", title, |(cpu, wrong)| match wrong {
        Wrong::Stopped(Stop::Other(signal, event)) => {
            format!("CPU {cpu}: it stopped for signal {signal} (event {event}), not for the step")
        }
        Wrong::Stopped(stop) => format!("CPU {cpu}: {stop:?} instead of a step"),
        Wrong::Still(at) => format!("CPU {cpu}: after the step it was still at {at:#x}"),
        Wrong::Moved(n) => format!("CPU {cpu}: between two steps it went on for {n} rounds"),
    }).map(|f| f.remedy("If nobody sent signals to the stepped process, this kernel's single steps (TIF_SINGLESTEP, the trap flag) are broken.")));
    output.figures.extend([
        count("steps", sum.steps, "single instructions of another process"),
        count(
            "violations",
            sum.ledger.n(),
            "of them, those that were not one instruction and one stop",
        ),
    ]);
    output
}
