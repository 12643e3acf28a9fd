// SPDX-License-Identifier: MIT OR Apache-2.0
//! The threads of one probe: born ready, released at one common moment, watched over, and
//! brought home with what they recorded.
//!
//! Context: SETUP until the common epoch, then HOT in the bodies. Units: ns.
//! A seat is a place where something is recorded; most have a thread of their own, some
//! share that of another (the sender's round trip). Helpers record nothing. A body begins
//! at the gate's opening and runs warm-up and measurement with the same machine code
//! ([`Stage::phases`]).
//! Not here: what is measured (one file a probe), the schedule of `cyclic` ([`mod@crate::arm`]).

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tailbound_core::plan::Plan;
use tailbound_core::policy::Policy;
use tailbound_core::record::{FigureRecord, TimelineRecord};
use tailbound_core::{Context, Finding};
use tailbound_rt::cyclic::{Ended, Schedule};
use tailbound_rt::recorder::Recorder;
use tailbound_sys::clock;
use tailbound_sys::error::SysError;
use tailbound_sys::limits::{self, Usage};
use tailbound_sys::mem::Prefaulted;
use tailbound_sys::sched;
use tailbound_sys::thread::{self, Birth, Thread};

use crate::arm::{ProbeError, attributes, clock_id};
use crate::watchdog::Watchdog;

/// From the moment all threads wait to the first due activation.
const LEAD_NS: i64 = 500_000;
/// In place of an epoch: go home.
const NO_RUN: i64 = i64::MIN;
const STACK_BYTES: usize = 256 << 10;
/// A thread that used this share of its warm-up as CPU time cannot keep its schedule.
const OVERLOAD: f64 = 0.9;

/// Where something is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Its number, from 0: unique within a run.
    pub thread: u32,
    /// The CPU its thread is pinned to; `None`: not pinned (SCHED_DEADLINE, a plan with tasks).
    pub cpu: Option<u32>,
    /// Its activations fall due this much after those of seat 0.
    pub phase_ns: i64,
    /// What is recorded here: `user` is judged; others (`send`, `round-trip`) stand beside it.
    pub context: Context,
}

impl Seat {
    /// A judged seat on `cpu`, in phase.
    #[must_use]
    pub fn user(thread: u32, cpu: Option<u32>) -> Self {
        Self { thread, cpu, phase_ns: 0, context: Context::User }
    }
}

/// How a thread of `policy` on `cpus` (empty: wherever its creator may run) is born.
#[must_use]
pub fn birth(policy: Policy, cpus: Vec<u32>) -> Birth {
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
    extra: Mutex<Extra>,
}

/// What a probe found beside latencies.
#[derive(Debug, Default)]
pub struct Extra {
    /// Figures.
    pub figures: Vec<FigureRecord>,
    /// What some tasks did.
    pub timelines: Vec<TimelineRecord>,
    /// What a reader must know; a proven violation among it.
    pub findings: Vec<Finding>,
}

impl Extra {
    /// Adds what another found.
    pub fn append(&mut self, other: Self) {
        self.figures.extend(other.figures);
        self.timelines.extend(other.timelines);
        self.findings.extend(other.findings);
    }
}

/// The two recorders of one seat.
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

impl Finished {
    /// Ended so, without counters.
    #[must_use]
    pub fn of(ended: Ended) -> Self {
        Self { ended, usage: Usage::default(), overloaded: false }
    }
}

/// What the body of a thread knows.
pub struct Stage {
    epoch_ns: i64,
    phase_ns: i64,
    interval_ns: i64,
    warm_n: u64,
    activations: u64,
    may_be_busy: bool,
    stop: &'static AtomicBool,
    recorders: Option<Arc<Recorders>>,
    shared: Arc<Shared>,
}

impl Stage {
    /// When the activations of the warm-up fall due.
    #[must_use]
    pub fn warm_up(&self) -> Schedule {
        Schedule {
            first_ns: self.epoch_ns.saturating_add(self.phase_ns),
            interval_ns: self.interval_ns,
            activations: self.warm_n,
        }
    }
    /// When those of the measurement fall due.
    #[must_use]
    pub fn measurement(&self) -> Schedule {
        let warm = self.warm_up();
        let span = self.interval_ns.saturating_mul(i64::try_from(self.warm_n).unwrap_or(0));
        Schedule {
            first_ns: warm.first_ns.saturating_add(span),
            activations: self.activations,
            ..warm
        }
    }
    /// Set when the threads are to end.
    #[must_use]
    pub fn stop(&self) -> &'static AtomicBool {
        self.stop
    }
    /// The recorders of the thread's own seat; a helper has none.
    #[must_use]
    pub fn recorders(&self) -> Option<&Arc<Recorders>> {
        self.recorders.as_ref()
    }
    /// Adds to what the probe found. Takes a lock: before or after the loops only.
    pub fn extra(&self, add: impl FnOnce(&mut Extra)) {
        add(&mut self.shared.extra.lock().unwrap_or_else(PoisonError::into_inner));
    }
    /// Runs `body` twice: over the warm-up, then over the measurement, with the recorder of
    /// each (of the thread's own seat; a helper has no business here).
    ///
    /// # Errors
    /// `EINVAL` for a thread without a seat: a bug of ours.
    pub fn phases(
        &self,
        mut body: impl FnMut(&Schedule, &Recorder) -> Ended,
    ) -> Result<Finished, SysError> {
        let Some(recorders) = &self.recorders else {
            return Err(SysError::code("phases", "a thread without a seat: a bug of ours", 22));
        };
        let warm = self.warm_up();
        let before = limits::thread_usage();
        let ended = body(&warm, &recorders.warm_up);
        let used = limits::thread_usage();
        let span = self.interval_ns.saturating_mul(i64::try_from(self.warm_n).unwrap_or(0));
        #[expect(clippy::cast_precision_loss, reason = "a share of CPU time")]
        let overloaded = !self.may_be_busy
            && self.warm_n >= 100
            && used.since(&before).cpu_ns as f64 > OVERLOAD * span as f64;
        if overloaded || ended != Ended::Complete {
            let ended = match ended {
                Ended::Failed(errno, _) => Ended::Failed(errno, 0),
                _ => Ended::Stopped(0),
            };
            return Ok(Finished { overloaded, ..Finished::of(ended) });
        }
        let ended = body(&self.measurement(), &recorders.measured);
        let usage = limits::thread_usage().since(&used);
        Ok(Finished { ended, usage, overloaded: false })
    }
}

type Body = Box<dyn FnOnce(&Stage) -> Result<Finished, SysError> + Send>;
type After = Box<dyn FnOnce(&[Home]) -> Extra + Send>;

struct Player {
    /// For people: the CPU, or what it is for.
    name: String,
    thread: Thread<Result<Finished, SysError>>,
    tid: Arc<AtomicI64>,
}

struct Place {
    seat: Seat,
    recorders: Arc<Recorders>,
    /// Which player records here.
    player: usize,
    /// It is the player's first: its counters are told here.
    own: bool,
}

/// One thread's seat, its recorders and what it brought home.
pub type Home = (Seat, Arc<Recorders>, Finished);

/// Threads that wait for the epoch. Dropped, they go home.
pub struct Cast {
    places: Vec<Place>,
    players: Vec<Player>,
    shared: Arc<Shared>,
    plan: Plan,
    interval_ns: i64,
    warm_n: u64,
    clock: i32,
    stop: &'static AtomicBool,
    may_be_busy: bool,
    watched: bool,
    after: Option<After>,
    opened: bool,
}

impl Cast {
    /// No thread yet.
    ///
    /// # Errors
    /// The plan's clock is not known to this kernel.
    pub fn new(plan: &Plan, stop: &'static AtomicBool) -> Result<Self, ProbeError> {
        let clock = clock_id(plan.clock);
        clock::resolution_ns(clock)
            .map_err(|source| ProbeError::Clock { clock: plan.clock, source })?;
        let interval_ns = plan.interval_ns.max(1);
        Ok(Self {
            places: Vec::new(),
            players: Vec::new(),
            shared: Arc::new(Shared::default()),
            plan: plan.clone(),
            interval_ns,
            warm_n: u64::try_from(plan.warm_up_ns / interval_ns).unwrap_or(0),
            clock,
            stop,
            may_be_busy: false,
            watched: false,
            after: None,
            opened: false,
        })
    }

    /// The threads are meant to use whole CPUs: a warm-up without sleep is no overload.
    #[must_use]
    pub fn busy(mut self) -> Self {
        self.may_be_busy = true;
        self
    }

    /// A watchdog above all of them ends threads that do not end.
    #[must_use]
    pub fn watched(mut self) -> Self {
        self.watched = true;
        self
    }

    /// A thread with a seat of its own.
    ///
    /// # Errors
    /// No memory for its recorders, or no such thread; nothing is left running when the cast
    /// is dropped.
    pub fn measured(
        &mut self,
        seat: Seat,
        birth: Birth,
        body: impl FnOnce(&Stage) -> Result<Finished, SysError> + Send + 'static,
    ) -> Result<(), ProbeError> {
        let name = seat.cpu.map_or("any".to_owned(), |c| c.to_string());
        let fail = |source| ProbeError::Thread { cpu: name.clone(), source };
        let recorders = Arc::new(Recorders {
            warm_up: Prefaulted::new().map_err(fail)?,
            measured: Prefaulted::new().map_err(fail)?,
        });
        self.prepare(&seat, &recorders);
        let own = Some(Arc::clone(&recorders));
        let player = self.player(name.clone(), seat.phase_ns, own, birth, Box::new(body))?;
        self.places.push(Place { seat, recorders, player, own: true });
        Ok(())
    }

    /// One more seat of the thread that is added next: make it first, move its recorders in.
    ///
    /// # Errors
    /// No memory for its recorders.
    pub fn beside(&mut self, seat: Seat) -> Result<Arc<Recorders>, ProbeError> {
        let name = seat.cpu.map_or("any".to_owned(), |c| c.to_string());
        let fail = |source| ProbeError::Thread { cpu: name.clone(), source };
        let recorders = Arc::new(Recorders {
            warm_up: Prefaulted::new().map_err(fail)?,
            measured: Prefaulted::new().map_err(fail)?,
        });
        self.prepare(&seat, &recorders);
        let place = Place {
            seat,
            recorders: Arc::clone(&recorders),
            player: self.players.len(),
            own: false,
        };
        self.places.push(place);
        Ok(recorders)
    }

    /// A thread without a seat, for the sake of the others.
    ///
    /// # Errors
    /// No such thread.
    pub fn helper(
        &mut self,
        name: &str,
        birth: Birth,
        body: impl FnOnce(&Stage) -> Result<(), SysError> + Send + 'static,
    ) -> Result<(), ProbeError> {
        let body: Body = Box::new(|stage| body(stage).map(|()| Finished::of(Ended::Complete)));
        self.player(name.to_owned(), 0, None, birth, body).map(drop)
    }

    /// What is found out from the records when every thread has ended.
    pub fn after(&mut self, find: impl FnOnce(&[Home]) -> Extra + Send + 'static) {
        self.after = Some(Box::new(find));
    }

    fn prepare(&self, seat: &Seat, recorders: &Recorders) {
        if self.plan.raw && seat.context == Context::User {
            recorders.measured.record_raw();
        }
        // Others are not judged: for them it is chosen from the warm-up.
        if let (Some(deadline), Context::User) = (self.plan.requirement.deadline_ns, seat.context) {
            recorders.measured.set_threshold_ns(deadline);
        }
    }

    fn player(
        &mut self,
        name: String,
        phase_ns: i64,
        recorders: Option<Arc<Recorders>>,
        birth: Birth,
        body: Body,
    ) -> Result<usize, ProbeError> {
        let tid = Arc::new(AtomicI64::new(0));
        let work = Work {
            stage: Stage {
                epoch_ns: 0,
                phase_ns,
                interval_ns: self.interval_ns,
                warm_n: self.warm_n,
                activations: self.plan.activations,
                may_be_busy: self.may_be_busy,
                stop: self.stop,
                recorders,
                shared: Arc::clone(&self.shared),
            },
            tid: Arc::clone(&tid),
        };
        self.shared.running.fetch_add(1, Ordering::Relaxed);
        let thread = thread::spawn(birth, move || work.run(body))
            .map_err(|source| ProbeError::Thread { cpu: name.clone(), source })?;
        self.players.push(Player { name, thread, tid });
        Ok(self.players.len() - 1)
    }

    /// Waits until every thread is ready, sets the common epoch and lets them go.
    ///
    /// # Errors
    /// The first thread that could not get ready (its policy, its CPU).
    pub fn release(mut self) -> Result<Running, ProbeError> {
        let n = u32::try_from(self.players.len()).unwrap_or(u32::MAX);
        if !self.shared.gate.all_waiting(n) {
            self.opened = true;
            self.shared.gate.open(NO_RUN);
            finished(std::mem::take(&mut self.players))?;
        }
        let warm_up_ns =
            self.interval_ns.saturating_mul(i64::try_from(self.warm_n).unwrap_or(i64::MAX));
        let span = warm_up_ns.saturating_add(self.plan.duration_ns());
        let tids = self.players.iter().map(|p| Arc::clone(&p.tid)).collect();
        let watchdog = self.watched.then(|| Watchdog::start(span, tids, self.stop)).flatten();
        let epoch = clock::now_ns(self.clock).saturating_add(LEAD_NS);
        self.opened = true;
        self.shared.gate.open(epoch);
        Ok(Running {
            places: std::mem::take(&mut self.places),
            players: std::mem::take(&mut self.players),
            shared: Arc::clone(&self.shared),
            clock: self.clock,
            start_ns: epoch.saturating_add(warm_up_ns),
            epoch_ns: epoch,
            after: self.after.take(),
            watchdog,
        })
    }
}

impl Drop for Cast {
    fn drop(&mut self) {
        if !self.opened {
            self.shared.gate.open(NO_RUN);
            for player in self.players.drain(..) {
                drop(player.thread.join());
            }
        }
    }
}

/// Threads at work.
pub struct Running {
    places: Vec<Place>,
    players: Vec<Player>,
    shared: Arc<Shared>,
    clock: i32,
    epoch_ns: i64,
    start_ns: i64,
    after: Option<After>,
    watchdog: Option<Watchdog>,
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
    /// Each seat and its recorders.
    pub fn recorders(&self) -> impl Iterator<Item = (Seat, &Recorders)> {
        self.places.iter().map(|p| (p.seat, &*p.recorders))
    }
    /// Kernel thread ids, those of helpers among them.
    #[must_use]
    pub fn tids(&self) -> Vec<i32> {
        self.players
            .iter()
            .filter_map(|p| i32::try_from(p.tid.load(Ordering::Relaxed)).ok())
            .collect()
    }
    /// All thread ids of the probe, the watchdog's too: threads that are no strangers.
    #[must_use]
    pub fn own_tids(&self) -> Vec<i32> {
        let watchdog = self.watchdog.as_ref().and_then(Watchdog::tid);
        self.tids().into_iter().chain(watchdog).collect()
    }
    /// Waits for every thread; they end at the end of their schedule or at the stop flag.
    ///
    /// # Errors
    /// The first thread that could not run.
    pub fn join(self) -> Result<(Vec<Home>, Extra), ProbeError> {
        let ended = finished(self.players);
        drop(self.watchdog);
        let ended = ended?;
        let homes: Vec<Home> = self
            .places
            .into_iter()
            .filter_map(|place| {
                let theirs = ended.get(place.player)?;
                let brought = if place.own { *theirs } else { Finished::of(theirs.ended) };
                Some((place.seat, place.recorders, brought))
            })
            .collect();
        let mut extra =
            std::mem::take(&mut *self.shared.extra.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(after) = self.after {
            extra.append(after(&homes));
        }
        Ok((homes, extra))
    }
}

fn finished(players: Vec<Player>) -> Result<Vec<Finished>, ProbeError> {
    let mut all = Vec::new();
    let mut failed = None;
    for Player { name, thread, .. } in players {
        match thread.join().and_then(|finished| finished) {
            Ok(finished) => all.push(finished),
            Err(source) => failed = failed.or(Some(ProbeError::Thread { cpu: name, source })),
        }
    }
    failed.map_or(Ok(all), Err)
}

/// What one thread does around its body.
struct Work {
    stage: Stage,
    tid: Arc<AtomicI64>,
}

impl Drop for Work {
    /// Counts the thread out, also when it panics or never began: the supervisor waits for that.
    fn drop(&mut self) {
        self.stage.shared.running.fetch_sub(1, Ordering::Release);
        self.stage.shared.gate.leave();
    }
}

impl Work {
    fn run(mut self, body: Body) -> Result<Finished, SysError> {
        self.tid.store(i64::from(sched::gettid()), Ordering::Relaxed);
        match self.stage.shared.gate.wait() {
            None => Ok(Finished::of(Ended::Stopped(0))),
            Some(epoch_ns) => {
                self.stage.epoch_ns = epoch_ns;
                body(&self.stage)
            }
        }
    }
}
