// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `pi-process`: a lock with inheritance between processes, whose owner may die.
//!
//! Context: SETUP in `check` and `begin`, HOT in the tasks and the controller's trials. Units: ns.
//! The holder is a process of its own and shares nothing but the lock with the others: the
//! urgent task and the spinner, threads of this process on the same CPU. In most trials it
//! releases the lock; now and then it is killed with the lock in its hands, and the urgent task
//! must get it, and EOWNERDEAD.
//! Source: futex(2) FUTEX_LOCK_PI, set_robust_list(2).

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tailbound_core::Context;
use tailbound_core::finding::{Finding, Impact};
use tailbound_core::plan::Plan;
use tailbound_core::policy::Policy;
use tailbound_host::{attributes, clock_id};
use tailbound_sys::clock::{self, CLOCK_MONOTONIC};
use tailbound_sys::error::SysError;
use tailbound_sys::futex::{self, Locked, Scope, Waited};
use tailbound_sys::robust::{self, Shelf};
use tailbound_sys::sched::{self, gettid};
use tailbound_sys::shared::Shared;
use tailbound_sys::{limits, process};

use super::bell::{Bell, Closing};
use super::ledger::Ledger;
use super::pace::Pace;
use super::trials::{self, Timed};
use super::{Phase, count, of_phase, span};
use crate::error::ProbeError;
use crate::kind::{PlantedFault, Prepared, ProbeKind, ProbeOption, Setup};
use crate::peer::{self, Peer, Role};
use crate::thread_group::{
    Finished, ProbeOutput, RecordSlot, Recorders, Running, ThreadContext, ThreadGroup, thread_spec,
};

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "pi-process",
    about: "a lock with inheritance shared by processes, whose owner is killed now and then",
    from: "the urgent task, just before it asks for the lock (FUTEX_LOCK_PI) that another process holds",
    to: "the holder's process, at its first instruction after that: it has inherited the priority",
    replaces: &["pip_stress", "LTP testpi-5, testpi-6"],
    options: &[
        ProbeOption::new(
            "hold",
            "TIME",
            "200us",
            "the lock is held for so much of its holder's own time",
        ),
        ProbeOption::new("spin", "TIME", "300us", "so long the task in between spins"),
        ProbeOption::new(
            "deaths",
            "N",
            "10",
            "in every Nth trial the holder is killed with the lock; 0: in none",
        ),
        ProbeOption::plant("`no-inheritance`: the urgent task does not ask, and polls the lock"),
    ],
    interval: "20ms",
    policy: None,
    event: Some("inversion"),
    property: Some(
        "no task of lower priority ran while the most urgent one waited for another process's lock, and each death of an owner was reported",
    ),
    hog: false,
    takes: &[],
    prepare,
};

/// The holder's process.
pub(crate) const ROLE: Role = Role { name: "lock-holder", run: hold };

const PATIENCE_NS: i64 = 3_000_000_000;
/// A new program may take as long to begin, on a machine that is busy with anything: nothing is measured meanwhile.
const BEGIN_NS: i64 = 60_000_000_000;
/// From one look whether the measurement is to end to the next.
const LOOK_NS: i64 = 50_000_000;

#[derive(Clone, Copy, Debug)]
struct Options {
    hold_ns: i64,
    spin_ns: i64,
    deaths: u64,
    planted: PlantedFault,
    priority: u8,
}

impl Options {
    fn of(setup: &Setup<'_>) -> Result<Self, ProbeError> {
        let options = setup.options();
        let planted = options.plant("no-inheritance")?;
        Ok(Self {
            hold_ns: options.time_ns("hold")?,
            spin_ns: options.time_ns("spin")?,
            deaths: options.count("deaths", 0..=u64::from(u32::MAX))?,
            planted,
            priority: super::controller_priority(setup.plan, 4)?,
        })
    }

    fn below(&self, steps: u8) -> Policy {
        Policy::Fifo(self.priority.saturating_sub(steps).max(1))
    }
}

fn prepare(setup: &Setup<'_>) -> Result<Prepared, ProbeError> {
    let words = Options::of(setup)?;
    let least_ns = words.hold_ns.saturating_add(words.spin_ns).saturating_mul(2);
    let interval_ns = setup.plan.interval_ns;
    if least_ns > interval_ns {
        return Err(ProbeError::HeldTooLong { interval_ns, least_ns });
    }
    super::realtime_allowed(setup, words.priority)?;
    if let Locked::Refused(errno) = futex::try_lock_pi(&AtomicU32::new(1), gettid(), Scope::Shared)
        && errno == super::ENOSYS
    {
        return Err(ProbeError::NoSharedPiLocks);
    }
    Ok(Prepared::with(words, begin))
}

/// Waits until `word` is no longer `seen`, or `until_ns`.
fn changed(word: &AtomicU32, seen: u32, until_ns: Option<i64>) -> bool {
    while word.load(Ordering::Acquire) == seen {
        if let Waited::TimedOut | Waited::Failed(_) =
            futex::wait(word, seen, until_ns, Scope::Shared)
        {
            return word.load(Ordering::Acquire) != seen;
        }
    }
    true
}

fn ring(word: &AtomicU32) {
    word.fetch_add(1, Ordering::Release);
    futex::wake(word, u32::MAX, Scope::Shared);
}

/// The life of the holder's process.
fn hold(words: &[String], descriptors: Vec<OwnedFd>) -> Result<(), SysError> {
    let cpu: u32 = peer::number(words, 0)?;
    let priority: u8 = peer::number(words, 1)?;
    let hold_ns: i64 = peer::number(words, 2)?;
    let clock_id: i32 = peer::number(words, 3)?;
    let Some(memory) = descriptors.into_iter().next() else {
        return Err(SysError::code("peer", "no memory was handed down", 22));
    };
    let shelf = Shared::<Shelf>::from_fd(memory)?;
    sched::set_affinity(0, &[cpu])?;
    limits::guard_realtime(0)?;
    sched::set(0, &attributes(Policy::Fifo(priority)))?;
    let shelf = robust::register(shelf)?;
    let (tid, mut turn) = (gettid(), shelf.turn.load(Ordering::Acquire));
    ring(&shelf.reports);
    loop {
        changed(&shelf.turn, turn, None);
        turn = shelf.turn.load(Ordering::Acquire);
        if futex::lock_pi(&shelf.lock, tid, Scope::Shared) != Locked::Got {
            return Err(SysError::code("futex", "the lock was not free", 0));
        }
        ring(&shelf.reports);
        let mut pace = Pace::default();
        let began = clock::now_ns(clock_id);
        let mut boosted = false;
        loop {
            // Before the clock: taken off its CPU in between, it was not there when the other asked.
            let asked = shelf.asked_ns.load(Ordering::Acquire) != 0;
            let at = clock::now_ns(clock_id);
            if asked && !boosted {
                shelf.boosted_ns.store(at, Ordering::Relaxed);
                boosted = true;
            }
            if pace.step(at) >= hold_ns || at - began > PATIENCE_NS / 3 {
                shelf.released_ns.store(at, Ordering::Release);
                break;
            }
        }
        if shelf.die.load(Ordering::Relaxed) != 0 {
            return process::kill(process::own_pid(), process::SIGKILL);
        }
        // Refused only if it is not ours: the urgent task would say so.
        let _foreign = futex::unlock_pi(&shelf.lock, tid, Scope::Shared);
    }
}

/// What the urgent task and the spinner share with their controller.
#[derive(Debug, Default)]
struct Group {
    urgent: Bell,
    spinner: Bell,
    controller: Bell,
    /// Rung when a new holder is wanted.
    keeper: Bell,
    failed: Mutex<Option<SysError>>,
    left: AtomicU32,
    asked_ns: AtomicI64,
    got_ns: AtomicI64,
    /// 0: got; 1: got, the owner had died; else minus the errno.
    how: AtomicI64,
    spun: Mutex<Pace>,
}

impl Group {
    fn report(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.controller.ring();
        }
    }
}

fn urgent(group: &Group, shelf: &Shelf, planted: PlantedFault, clock_id: i32, stop: &AtomicBool) {
    let (tid, mut rings) = (gettid(), 0);
    while let Some(n) = group.urgent.wait(rings, stop) {
        rings = n;
        let asked = clock::now_ns(clock_id);
        group.asked_ns.store(asked, Ordering::Relaxed);
        shelf.asked_ns.store(asked, Ordering::Release);
        while planted.is_present() && shelf.lock.load(Ordering::Relaxed) & futex::OWNER_MASK != 0 {
            let until = clock::now_ns(CLOCK_MONOTONIC).saturating_add(100_000);
            futex::wait(&shelf.die, shelf.die.load(Ordering::Relaxed), Some(until), Scope::Shared);
        }
        let how = match futex::lock_pi(&shelf.lock, tid, Scope::Shared) {
            Locked::Got => 0,
            Locked::OwnerDied => 1,
            Locked::Refused(errno) => -i64::from(errno),
        };
        group.got_ns.store(clock::now_ns(clock_id), Ordering::Relaxed);
        if how >= 0 {
            let _foreign = futex::unlock_pi(&shelf.lock, tid, Scope::Shared);
        }
        group.how.store(how, Ordering::Relaxed);
        group.report();
    }
}

fn spinner(group: &Group, spin_ns: i64, clock_id: i32, stop: &AtomicBool) {
    let mut rings = 0;
    while let Some(n) = group.spinner.wait(rings, stop) {
        rings = n;
        let (mut pace, began) = (Pace::default(), clock::now_ns(clock_id));
        loop {
            let at = clock::now_ns(clock_id);
            let over = at - began > PATIENCE_NS / 3 || stop.load(Ordering::Relaxed);
            if pace.step(at) >= spin_ns || over {
                break;
            }
        }
        *group.spun.lock().unwrap_or_else(PoisonError::into_inner) = pace;
        group.report();
    }
}

/// How the holder gives the lock back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HolderEnd {
    Releases,
    /// It is killed with the lock.
    Dies,
}

/// What was wrong in a trial.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    /// So long the spinner ran while the urgent task waited, and so long that waited.
    Inverted(i64, i64),
    /// The lock came without word of the owner's death, or with one though it lives.
    DeathReport(HolderEnd),
    /// The kernel refused the lock.
    Refused(i64),
}

#[derive(Debug, Default)]
struct Sum {
    trials: u64,
    deaths: u64,
    stuck: u64,
    ledger: Ledger<(u32, Wrong)>,
}

fn begin(setup: &Setup<'_>, words: Options) -> Result<Running, ProbeError> {
    let mut threads = setup.threads()?;
    let sum = Arc::new(Mutex::new(Sum::default()));
    let cpus = setup.cpus();
    for (&cpu, place) in cpus.iter().zip(0u32..) {
        one_cpu(&mut threads, setup, words, (cpu, place, cpus.len()), &sum)?;
    }
    threads.after(move |_| probe_output(&sum.lock().unwrap_or_else(PoisonError::into_inner)));
    threads.release()
}

fn one_cpu(
    threads: &mut ThreadGroup,
    setup: &Setup<'_>,
    words: Options,
    (cpu, place, of): (u32, u32, usize),
    sum: &Arc<Mutex<Sum>>,
) -> Result<(), ProbeError> {
    let plan: &Plan = setup.plan;
    let clock = clock_id(plan.clock);
    let group = Arc::new(Group::default());
    let shelf = Arc::new(Shared::<Shelf>::new()?);
    let (g, s) = (Arc::clone(&group), Arc::clone(&shelf));
    threads.helper("urgent task", thread_spec(words.below(1), vec![cpu]), move |thread| {
        urgent(&g, &s, words.planted, clock, thread.stop());
        Ok(())
    })?;
    let g = Arc::clone(&group);
    threads.helper("spinner", thread_spec(words.below(2), vec![cpu]), move |thread| {
        spinner(&g, words.spin_ns, clock, thread.stop());
        Ok(())
    })?;
    let keeper = Keeper {
        exe: setup.exe.to_owned(),
        shelf: Arc::clone(&shelf),
        words: [
            cpu.to_string(),
            words.below(3).priority().to_string(),
            words.hold_ns.to_string(),
            clock.to_string(),
        ],
    };
    let g = Arc::clone(&group);
    // Not above anything: what it does takes page faults, and a new program their time.
    threads.helper(
        "keeper of the holder",
        thread_spec(Policy::Other, vec![cpu]),
        move |thread| {
            keeper.keep(&g, thread.stop());
            Ok(())
        },
    )?;
    let phase_ns = plan.interval_ns / i64::try_from(of.max(1)).unwrap_or(1) * i64::from(place);
    let slot =
        |n, context| RecordSlot { phase_ns, context, ..RecordSlot::user(place * 3 + n, Some(cpu)) };
    let mut own_thread = threads.thread(slot(0, Context::User))?;
    let beside = [
        own_thread.beside(slot(1, Context::Wait))?,
        own_thread.beside(slot(2, Context::OwnerDeath))?,
    ];
    let controller = Controller { group, shelf, words, clock, cpu, beside, sum: Arc::clone(sum) };
    let own = thread_spec(plan.policy, vec![cpu]);
    own_thread.start(own, move |thread| controller.run(thread))
}

/// Starts the holder's process, again and again: it dies with this thread.
struct Keeper {
    exe: PathBuf,
    shelf: Arc<Shared<Shelf>>,
    words: [String; 4],
}

impl Keeper {
    fn keep(&self, group: &Group, stop: &AtomicBool) {
        let (mut holder, mut rings) = (None, 0);
        while let Some(n) = group.keeper.wait(rings, stop) {
            rings = n;
            drop(holder.take());
            match Peer::start(&self.exe, ROLE.name, &self.words, &[self.shelf.as_fd()]) {
                Ok(peer) => holder = Some(peer),
                Err(e) => {
                    let why = SysError::code("peer", e.to_string(), 0);
                    *group.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                }
            }
        }
    }
}

/// Where the controller of one CPU works.
struct Controller {
    group: Arc<Group>,
    shelf: Arc<Shared<Shelf>>,
    words: Options,
    clock: i32,
    cpu: u32,
    beside: [Arc<Recorders>; 2],
    sum: Arc<Mutex<Sum>>,
}

impl Controller {
    /// Has the keeper start a new holder, and waits until it is ready to take the lock, or until the measurement is to end: then the
    /// keeper starts none.
    fn holder(&self, stop: &AtomicBool) -> Result<(), SysError> {
        let reports = self.shelf.reports.load(Ordering::Acquire);
        self.group.keeper.ring();
        let from_ns = clock::now_ns(CLOCK_MONOTONIC);
        loop {
            let now_ns = clock::now_ns(CLOCK_MONOTONIC);
            let ready = changed(&self.shelf.reports, reports, Some(now_ns.saturating_add(LOOK_NS)));
            if ready || stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let why = self.group.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(why) = why {
                return Err(why);
            }
            if now_ns.saturating_sub(from_ns) > BEGIN_NS {
                return Err(SysError::code("peer", "the holder's process did not begin", 110));
            }
        }
    }

    fn run(&self, thread: &ThreadContext) -> Result<Finished, SysError> {
        let group = &*self.group;
        let _closing =
            Closing(vec![&group.urgent, &group.spinner, &group.controller, &group.keeper]);
        self.holder(thread.stop())?;
        let mut failed = None;
        let mut found = Sum::default();
        let mut phase = Phase::WarmUp;
        let finished = thread.phases(|schedule, recorder| {
            found = Sum::default();
            let [wait, death] = self.beside.each_ref().map(|r| of_phase(r, phase));
            phase = Phase::Measurement;
            let mut death = trials::writer(death, schedule);
            let mut writers = [recorder, wait].map(|r| trials::writer(r, schedule));
            let ended =
                trials::run(self.clock, schedule, &mut writers, thread.stop(), |n, writers| {
                    let deaths = self.words.deaths;
                    let holder = match deaths != 0 && n % deaths == deaths - 1 {
                        true => HolderEnd::Dies,
                        false => HolderEnd::Releases,
                    };
                    let Some((boost, wait)) = self.trial(holder) else {
                        found.stuck += u64::from(!thread.stop().load(Ordering::Relaxed));
                        return false;
                    };
                    found.trials += 1;
                    if let Some(wrong) = self.judge(wait, holder) {
                        found.ledger.enter(n, (self.cpu, wrong));
                    }
                    [boost, wait].iter().zip(writers).for_each(|(t, w)| t.enter(n, w));
                    if holder == HolderEnd::Dies {
                        found.deaths += 1;
                        let from_ns = self.shelf.released_ns.load(Ordering::Acquire);
                        Timed { from_ns, to_ns: wait.to_ns }.enter(n, &mut death);
                        if let Err(e) = self.holder(thread.stop()) {
                            failed = Some(e);
                            return false;
                        }
                    }
                    true
                });
            death.finish();
            ended
        });
        let mut sum = self.sum.lock().unwrap_or_else(PoisonError::into_inner);
        sum.trials += found.trials;
        sum.deaths += found.deaths;
        sum.stuck += found.stuck;
        sum.ledger.add(&found.ledger);
        failed.map_or(finished, Err)
    }

    /// One inversion: boost and wait of the urgent task.
    fn trial(&self, holder: HolderEnd) -> Option<(Timed, Timed)> {
        let (group, shelf) = (&*self.group, &**self.shelf);
        let until = clock::now_ns(CLOCK_MONOTONIC).saturating_add(PATIENCE_NS);
        shelf.asked_ns.store(0, Ordering::Relaxed);
        shelf.boosted_ns.store(0, Ordering::Relaxed);
        shelf.die.store(u32::from(holder == HolderEnd::Dies), Ordering::Relaxed);
        group.left.store(2, Ordering::Relaxed);
        let reports = shelf.reports.load(Ordering::Acquire);
        ring(&shelf.turn);
        if !changed(&shelf.reports, reports, Some(until)) {
            return None;
        }
        let rung = group.controller.count();
        group.spinner.ring();
        group.urgent.ring();
        if !group.controller.wait_until(rung, until) {
            return None;
        }
        let from_ns = group.asked_ns.load(Ordering::Relaxed);
        let got_ns = group.got_ns.load(Ordering::Relaxed);
        let boosted_ns = shelf.boosted_ns.load(Ordering::Acquire);
        let to_ns = if boosted_ns == 0 { got_ns } else { boosted_ns };
        Some((Timed { from_ns, to_ns }, Timed { from_ns, to_ns: got_ns }))
    }

    fn judge(&self, wait: Timed, holder: HolderEnd) -> Option<Wrong> {
        let pace = *self.group.spun.lock().unwrap_or_else(PoisonError::into_inner);
        let spun_ns = pace.between_ns(wait.from_ns, wait.to_ns);
        match self.group.how.load(Ordering::Relaxed) {
            errno if errno < 0 => Some(Wrong::Refused(-errno)),
            how if (how == 1) != (holder == HolderEnd::Dies) => Some(Wrong::DeathReport(holder)),
            _ if spun_ns > 0 => Some(Wrong::Inverted(spun_ns, wait.span_ns())),
            _ => None,
        }
    }
}

fn probe_output(sum: &Sum) -> ProbeOutput {
    let mut output = ProbeOutput::default();
    let title = |n| format!("a lock shared by processes failed its urgent waiter in {n} trials");
    output.findings.extend(
        sum.ledger
            .finding("shared-lock", title, |(cpu, wrong)| match wrong {
                Wrong::Inverted(spun, waited) => format!(
                    "CPU {cpu}: the urgent task waited {}, and for {} of it the spinner ran",
                    span(*waited),
                    span(*spun)
                ),
                Wrong::DeathReport(HolderEnd::Dies) => format!("CPU {cpu}: the owner was killed, and the next one got no EOWNERDEAD"),
                Wrong::DeathReport(HolderEnd::Releases) => format!("CPU {cpu}: the next owner got EOWNERDEAD although nobody had died"),
                Wrong::Refused(errno) => format!("CPU {cpu}: the kernel refused the lock, errno {errno}"),
            })
            .map(|f| f.remedy("Inheritance must hold across processes, and a robust lock must report the death of its owner (EOWNERDEAD): the futexes of this kernel (CONFIG_FUTEX_PI) do not.")),
    );
    if sum.stuck > 0 {
        output.findings.push(
            Finding::new("trial-stuck", Impact::Violation, "a trial did not end within seconds")
                .meaning("The urgent task never got the lock, although its owner released it or was killed.")
                .remedy("Look for real-time tasks above the controller that do not sleep."),
        );
    }
    output.figures.extend([
        count("inversions", sum.trials, "trials across processes"),
        count("deaths", sum.deaths, "of them, those in which the owner was killed with the lock"),
        count("violations", sum.ledger.n(), "of them, those in which the kernel failed"),
    ]);
    output
}
