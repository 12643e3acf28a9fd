// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arms the measured threads and releases them at one common moment.
//!
//! Context: SETUP until the common epoch, then HOT in the threads. Units: ns.
//! Each thread is born with its policy, moves to its CPU, touches its stack, and waits;
//! when all wait, the epoch is set. Thread k of n is phased k/n of an interval, so that
//! they do not all wake at once. The warm-up runs the very same code into a recorder of
//! its own: what it saw is discarded *and* reported.
//! Source: sched(7), clock_nanosleep(2).

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tailbound_core::plan::{Clock, Means, Plan};
use tailbound_core::policy::Policy;
use tailbound_rt::cyclic::{self, Ended, Port, Schedule};
use tailbound_rt::recorder::Recorder;
use tailbound_sys::clock::{self, Nanosleep, NanosleepRelative};
use tailbound_sys::cobalt::Cobalt;
use tailbound_sys::error::SysError;
use tailbound_sys::evl::Evl;
use tailbound_sys::limits::{self, Usage};
use tailbound_sys::mem::Prefaulted;
use tailbound_sys::sched::{self, Attributes};
use tailbound_sys::thread::{self, Birth, Thread};
use tailbound_sys::timer::{PosixTimer, Timerfd};

/// From the moment all threads wait to the first due activation.
const LEAD_NS: i64 = 500_000;
/// In place of an epoch: go home.
const NO_RUN: i64 = i64::MIN;
const STACK_BYTES: usize = 256 << 10;
/// A thread that used this share of its warm-up as CPU time cannot keep its schedule.
const OVERLOAD: f64 = 0.9;

/// Why a probe could not start.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A system call was refused.
    #[error("thread on CPU {cpu}: {source}")]
    Thread {
        /// Which CPU, or `any`.
        cpu: String,
        /// What was refused.
        source: SysError,
    },
    /// The plan's clock is not known to this kernel.
    #[error("clock `{clock}`: {source}")]
    Clock {
        /// The clock.
        clock: Clock,
        /// What was refused.
        source: SysError,
    },
}

/// Where one measured thread sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Number of the thread, from 0.
    pub thread: u32,
    /// The CPU it is pinned to; `None`: not pinned (SCHED_DEADLINE, a plan with tasks).
    pub cpu: Option<u32>,
    /// Its activations fall due this much after those of thread 0.
    pub phase_ns: i64,
}

/// One seat a CPU of the plan, phased over one interval; or as many as the plan has tasks, not
/// pinned and all due together: what parallel sleepers do to each other is the question then.
#[must_use]
pub fn seats(plan: &Plan) -> Vec<Seat> {
    if let Some(tasks) = plan.tasks {
        return (0..tasks).map(|thread| Seat { thread, cpu: None, phase_ns: 0 }).collect();
    }
    let n = i64::try_from(plan.cpus.len().max(1)).unwrap_or(1);
    let pinned = !matches!(plan.policy, Policy::Deadline { .. });
    plan.cpus
        .iter()
        .zip(0u32..)
        .map(|(cpu, thread)| Seat {
            thread,
            cpu: pinned.then_some(cpu),
            phase_ns: plan.interval_ns / n * i64::from(thread),
        })
        .collect()
}

/// The kernel's number of a clock.
#[must_use]
pub fn clock_id(clock: Clock) -> i32 {
    match clock {
        Clock::Monotonic => clock::CLOCK_MONOTONIC,
        Clock::Tai => clock::CLOCK_TAI,
        Clock::Boottime => clock::CLOCK_BOOTTIME,
        Clock::Realtime => clock::CLOCK_REALTIME,
    }
}

/// The kernel's parameters of a policy.
#[must_use]
pub fn attributes(policy: Policy) -> Attributes {
    let none = Attributes::default();
    match policy {
        Policy::Other => Attributes { policy: sched::SCHED_OTHER, ..none },
        Policy::Batch => Attributes { policy: sched::SCHED_BATCH, ..none },
        Policy::Idle => Attributes { policy: sched::SCHED_IDLE, ..none },
        Policy::Fifo(p) => Attributes { policy: sched::SCHED_FIFO, priority: u32::from(p), ..none },
        Policy::Rr(p) => Attributes { policy: sched::SCHED_RR, priority: u32::from(p), ..none },
        Policy::Deadline { runtime_ns, period_ns } => Attributes {
            policy: sched::SCHED_DEADLINE,
            runtime_ns,
            deadline_ns: period_ns,
            period_ns,
            ..none
        },
    }
}

/// May this process create threads of `policy`? Tries it.
///
/// # Errors
/// What the kernel refused, and what it would need.
pub fn allowed(policy: Policy) -> Result<(), SysError> {
    thread::spawn(birth(policy, Vec::new()), || ())?.join()
}

fn birth(policy: Policy, cpus: Vec<u32>) -> Birth {
    Birth { attributes: attributes(policy), cpus, stack_bytes: STACK_BYTES }
}

/// Where the threads wait for the epoch.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    arrived: u32,
    gone: u32,
    epoch_ns: Option<i64>,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// A thread waits here; yields the epoch, or `None` when there will be no run.
    fn wait(&self) -> Option<i64> {
        let mut state = self.lock();
        state.arrived += 1;
        self.changed.notify_all();
        let waiting = |s: &mut GateState| s.epoch_ns.is_none();
        let state = self.changed.wait_while(state, waiting).unwrap_or_else(PoisonError::into_inner);
        state.epoch_ns.filter(|epoch| *epoch != NO_RUN)
    }
    /// A thread has ended, or never began.
    fn leave(&self) {
        self.lock().gone += 1;
        self.changed.notify_all();
    }
    /// Waits until each of `n` threads waits; `false` if one has gone instead.
    fn all_waiting(&self, n: u32) -> bool {
        let state = self.lock();
        let missing = |s: &mut GateState| s.arrived + s.gone < n;
        self.changed.wait_while(state, missing).unwrap_or_else(PoisonError::into_inner).gone == 0
    }
    fn open(&self, epoch_ns: i64) {
        self.lock().epoch_ns = Some(epoch_ns);
        self.changed.notify_all();
    }
}

/// What the threads share with the supervisor.
#[derive(Debug, Default)]
struct Shared {
    gate: Gate,
    running: AtomicU64,
}

/// The two recorders of one thread.
#[derive(Debug)]
pub struct Recorders {
    /// What the warm-up saw.
    pub warm_up: Prefaulted<Recorder>,
    /// The measurement.
    pub measured: Prefaulted<Recorder>,
}

/// What one thread brought home.
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    /// How the measured loop ended.
    pub ended: Ended,
    /// Counters of the thread over the measured loop.
    pub usage: Usage,
    /// The thread used almost all of its CPU in the warm-up: the interval is too short here.
    pub overloaded: bool,
}

struct Member {
    seat: Seat,
    recorders: Arc<Recorders>,
    thread: Thread<Result<Finished, SysError>>,
    tid: Arc<AtomicI64>,
}

/// Threads that wait for the epoch. Dropped, they go home.
pub struct Armed {
    members: Vec<Member>,
    shared: Arc<Shared>,
    clock: i32,
    warm_up_ns: i64,
    opened: bool,
}

/// Arms one thread a seat.
///
/// # Errors
/// [`ProbeError`]; nothing is left running then.
pub fn arm(plan: &Plan, seats: &[Seat], stop: &'static AtomicBool) -> Result<Armed, ProbeError> {
    let id = clock_id(plan.clock);
    clock::resolution_ns(id).map_err(|source| ProbeError::Clock { clock: plan.clock, source })?;
    let interval = plan.interval_ns.max(1);
    let warm_n = u64::try_from(plan.warm_up_ns / interval).unwrap_or(0);
    let shared = Arc::new(Shared::default());
    let mut armed = Armed {
        members: Vec::new(),
        shared: Arc::clone(&shared),
        clock: id,
        warm_up_ns: i64::try_from(warm_n).unwrap_or(0).saturating_mul(interval),
        opened: false,
    };
    for &seat in seats {
        let fail = |source| ProbeError::Thread {
            cpu: seat.cpu.map_or("any".to_owned(), |c| c.to_string()),
            source,
        };
        let recorders = Arc::new(Recorders {
            warm_up: Prefaulted::new().map_err(fail)?,
            measured: Prefaulted::new().map_err(fail)?,
        });
        if plan.raw {
            recorders.measured.record_raw();
        }
        if let Some(deadline) = plan.requirement.deadline_ns {
            recorders.measured.set_threshold_ns(deadline);
        }
        let tid = Arc::new(AtomicI64::new(0));
        let work = Work {
            seat,
            means: plan.means,
            clock: id,
            interval_ns: interval,
            warm_n,
            activations: plan.activations,
            paranoid: plan.paranoid,
            recorders: Arc::clone(&recorders),
            shared: Arc::clone(&shared),
            tid: Arc::clone(&tid),
            stop,
        };
        shared.running.fetch_add(1, Ordering::Relaxed);
        // Tasks that are not pinned still keep to the measured CPUs, which their creator has left.
        let cpus = match (seat.cpu, plan.tasks) {
            (None, Some(_)) => plan.cpus.iter().collect(),
            (cpu, _) => cpu.into_iter().collect(),
        };
        let thread = thread::spawn(birth(plan.policy, cpus), move || work.run()).map_err(fail)?;
        armed.members.push(Member { seat, recorders, thread, tid });
    }
    Ok(armed)
}

impl Armed {
    /// Waits until every thread is ready, sets the common epoch and lets them go.
    ///
    /// # Errors
    /// The first thread that could not get ready (its policy, its CPU).
    pub fn release(mut self) -> Result<Running, ProbeError> {
        let n = u32::try_from(self.members.len()).unwrap_or(u32::MAX);
        if !self.shared.gate.all_waiting(n) {
            self.opened = true;
            self.shared.gate.open(NO_RUN);
            home(std::mem::take(&mut self.members))?;
        }
        let epoch = clock::now_ns(self.clock).saturating_add(LEAD_NS);
        self.opened = true;
        self.shared.gate.open(epoch);
        Ok(Running {
            members: std::mem::take(&mut self.members),
            shared: Arc::clone(&self.shared),
            clock: self.clock,
            start_ns: epoch.saturating_add(self.warm_up_ns),
            epoch_ns: epoch,
        })
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        if !self.opened {
            self.shared.gate.open(NO_RUN);
            for member in self.members.drain(..) {
                drop(member.thread.join());
            }
        }
    }
}

/// Threads at work.
pub struct Running {
    members: Vec<Member>,
    shared: Arc<Shared>,
    clock: i32,
    epoch_ns: i64,
    start_ns: i64,
}

impl Running {
    /// Time on the run's clock since the first due activation of the measurement;
    /// negative during the warm-up.
    #[must_use]
    pub fn t_ns(&self) -> i64 {
        clock::now_ns(self.clock).saturating_sub(self.start_ns)
    }
    /// The first due activation of the measurement, on the run's clock.
    #[must_use]
    pub fn start_ns(&self) -> i64 {
        self.start_ns
    }
    /// The first due activation of the warm-up, on the run's clock.
    #[must_use]
    pub fn epoch_ns(&self) -> i64 {
        self.epoch_ns
    }
    /// Every thread has ended.
    #[must_use]
    pub fn finished(&self) -> bool {
        self.shared.running.load(Ordering::Acquire) == 0
    }
    /// Each thread's seat and recorders.
    pub fn recorders(&self) -> impl Iterator<Item = (Seat, &Recorders)> {
        self.members.iter().map(|m| (m.seat, &*m.recorders))
    }
    /// Kernel thread ids.
    #[must_use]
    pub fn tids(&self) -> Vec<i32> {
        self.members
            .iter()
            .filter_map(|m| i32::try_from(m.tid.load(Ordering::Relaxed)).ok())
            .collect()
    }
    /// Waits for every thread; they end at the end of their schedule or at the stop flag.
    ///
    /// # Errors
    /// The first thread that could not run.
    pub fn join(self) -> Result<Vec<Home>, ProbeError> {
        home(self.members)
    }
}

/// One thread's seat, its recorders and what it brought home.
pub type Home = (Seat, Arc<Recorders>, Finished);

fn home(members: Vec<Member>) -> Result<Vec<Home>, ProbeError> {
    let mut all = Vec::new();
    let mut failed = None;
    for member in members {
        let cpu = member.seat.cpu.map_or("any".to_owned(), |c| c.to_string());
        match member.thread.join().and_then(|finished| finished) {
            Ok(finished) => all.push((member.seat, member.recorders, finished)),
            Err(source) => failed = failed.or(Some(ProbeError::Thread { cpu, source })),
        }
    }
    failed.map_or(Ok(all), Err)
}

/// What one thread is to do.
struct Work {
    seat: Seat,
    means: Means,
    clock: i32,
    interval_ns: i64,
    warm_n: u64,
    activations: u64,
    paranoid: bool,
    recorders: Arc<Recorders>,
    shared: Arc<Shared>,
    tid: Arc<AtomicI64>,
    stop: &'static AtomicBool,
}

impl Drop for Work {
    /// Counts the thread out, also when it panics or never began: the supervisor waits for that.
    fn drop(&mut self) {
        self.shared.running.fetch_sub(1, Ordering::Release);
        self.shared.gate.leave();
    }
}

impl Work {
    fn run(&self) -> Result<Finished, SysError> {
        self.tid.store(i64::from(sched::gettid()), Ordering::Relaxed);
        let Some(epoch) = self.shared.gate.wait() else {
            return Ok(Finished {
                ended: Ended::Stopped(0),
                usage: Usage::default(),
                overloaded: false,
            });
        };
        let first = epoch.saturating_add(self.seat.phase_ns);
        match self.means {
            Means::Nanosleep => self.with(Nanosleep(self.clock), first),
            Means::NanosleepRelative => self.with(NanosleepRelative(self.clock), first),
            Means::Timerfd => self.with(Timerfd::new(self.clock, first, self.interval_ns)?, first),
            Means::PosixTimer => {
                self.with(PosixTimer::new(self.clock, first, self.interval_ns)?, first)
            }
            Means::Cobalt => self.with(Cobalt::new(self.clock)?, first),
            Means::Evl => self.with(Evl::new(self.clock)?, first),
        }
    }

    fn with<P: Port>(&self, mut port: P, first_ns: i64) -> Result<Finished, SysError> {
        if self.paranoid {
            tailbound_sys::seccomp::confine()?;
        }
        let warm = Schedule { first_ns, interval_ns: self.interval_ns, activations: self.warm_n };
        let span = self.interval_ns.saturating_mul(i64::try_from(self.warm_n).unwrap_or(0));
        let before = limits::thread_usage();
        let ended = cyclic::run(&mut port, &warm, &self.recorders.warm_up, self.stop);
        let used = limits::thread_usage();
        #[expect(clippy::cast_precision_loss, reason = "a share of CPU time")]
        let overloaded =
            self.warm_n >= 100 && used.since(&before).cpu_ns as f64 > OVERLOAD * span as f64;
        if overloaded || ended != Ended::Complete {
            let ended = if let Ended::Failed(errno, _) = ended {
                Ended::Failed(errno, 0)
            } else {
                Ended::Stopped(0)
            };
            return Ok(Finished { ended, usage: Usage::default(), overloaded });
        }
        let measured = Schedule {
            first_ns: first_ns.saturating_add(span),
            interval_ns: self.interval_ns,
            activations: self.activations,
        };
        let ended = cyclic::run(&mut port, &measured, &self.recorders.measured, self.stop);
        let usage = limits::thread_usage().since(&used);
        Ok(Finished { ended, usage, overloaded: false })
    }
}
