// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tasks of an inversion, and what each stamps: the one that holds the lock, those that
//! hold one lock and want the next, the one that spins in between, and the one that wants.
//!
//! Context: HOT (no allocation; the mutexes around the stamps are never contended: a task
//! writes before it reports, the controller reads when all have). Units: ns on the plan's clock.
//! On one CPU their priorities alone decide who runs. Across two, all but the urgent task sit on the
//! holder's; what they do for a while then counts from the request on, because nobody stops them
//! while it is on its way.
//! Not here: the order of events and their judgement (`trial`).

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tailbound_sys::clock;
use tailbound_sys::futex::{self, Locked, Scope};
use tailbound_sys::sched::gettid;

use super::super::bell::Bell;
use super::super::pace::Pace;
use crate::kind::PlantedFault;
use crate::place::Where;

/// Longest chain of locks.
pub(super) const LOCKS_MAX: usize = 8;
/// A task that is to run for a while gives up after this much more: reading the clock may take
/// longer than a stretch may be interrupted, on an emulated machine.
const PATIENCE_NS: i64 = 1_000_000_000;
/// Across CPUs, so long holder and spinner wait for the request: well below RLIMIT_RTTIME.
const REQUEST_NS: i64 = 100_000_000;

/// How long the tasks are to run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    /// The lock is held for so much of its holder's own time.
    pub(super) hold_ns: i64,
    /// The spinner spins so long.
    pub(super) spin_ns: i64,
}

/// What a task stamped in one trial; 0: never.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TrialStamps {
    /// When it ran, if it spins.
    pub(super) pace: Pace,
    /// Its first instruction.
    pub(super) first_ns: i64,
    /// Just before it asked for the lock it had to wait for.
    pub(super) asked_ns: i64,
    /// Just after it had it.
    pub(super) got_ns: i64,
    /// Its first reading of the clock after the urgent task asked, if it spins.
    pub(super) resumed_ns: i64,
    /// Just before it released its lock.
    pub(super) released_ns: i64,
    /// Its last instruction.
    pub(super) end_ns: i64,
    /// What the kernel refused, if it did.
    pub(super) errno: i32,
}

/// The kind of the lock that the tasks want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockKind {
    /// Its holder inherits the priority of the most urgent waiter.
    Inheriting,
    /// Its holder keeps its priority.
    Plain,
}

impl LockKind {
    /// The one that is tried: without inheritance where that is the planted fault.
    pub(super) fn with(planted: PlantedFault) -> Self {
        match planted {
            PlantedFault::Absent => Self::Inheriting,
            PlantedFault::Present => Self::Plain,
        }
    }
}

/// Where the urgent task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Seating {
    /// On the CPU of the others.
    #[default]
    Together,
    /// On another one.
    Across,
}

impl Seating {
    /// As `--where` says it.
    pub(super) fn of(place: Where) -> Self {
        if place == Where::Other { Self::Across } else { Self::Together }
    }
}

/// What the tasks of one inversion share.
#[derive(Debug, Default)]
pub(super) struct Group {
    seating: Seating,
    /// The chain: the first is held by the least urgent task.
    locks: [AtomicU32; LOCKS_MAX],
    /// Locks with inheritance, or without.
    pub(super) inherit: AtomicBool,
    pub(super) low: Bell,
    pub(super) links: [Bell; LOCKS_MAX],
    pub(super) middle: Bell,
    pub(super) high: Bell,
    pub(super) witness: Bell,
    pub(super) controller: Bell,
    /// Tasks that have not yet reported.
    pub(super) left: AtomicU32,
    /// When the urgent task asked; 0: not yet.
    pub(super) asked_ns: AtomicI64,
    /// Across CPUs, when the urgent task had left its own to the witness; 0: not yet.
    pub(super) asleep_ns: AtomicI64,
    low_seen: Mutex<TrialStamps>,
    middle_seen: Mutex<TrialStamps>,
    high_seen: Mutex<TrialStamps>,
}

fn open(seen: &Mutex<TrialStamps>) -> MutexGuard<'_, TrialStamps> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A lock without inheritance: 0 free, 1 held, 2 held and waited for.
fn take_plain(word: &AtomicU32) {
    if word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
        while word.swap(2, Ordering::Acquire) != 0 {
            futex::wait(word, 2, None, Scope::Private);
        }
    }
}

fn release_plain(word: &AtomicU32) {
    if word.swap(0, Ordering::Release) == 2 {
        futex::wake(word, 1, Scope::Private);
    }
}

impl Group {
    /// Of tasks that are seated so.
    pub(super) fn new(seating: Seating) -> Self {
        Self { seating, ..Self::default() }
    }

    /// Is the urgent task on another CPU than the others?
    pub(super) fn is_across(&self) -> bool {
        self.seating == Seating::Across
    }

    fn take(&self, lock: usize, tid: i32) -> i32 {
        match self.locks.get(lock) {
            None => 0,
            Some(word) if !self.inherit.load(Ordering::Relaxed) => {
                take_plain(word);
                0
            }
            Some(word) => match futex::lock_pi(word, tid, Scope::Private) {
                Locked::Got | Locked::OwnerDied => 0,
                Locked::Refused(errno) => errno,
            },
        }
    }

    fn release(&self, lock: usize, tid: i32) -> i32 {
        match self.locks.get(lock) {
            None => 0,
            Some(word) if !self.inherit.load(Ordering::Relaxed) => {
                release_plain(word);
                0
            }
            Some(word) => futex::unlock_pi(word, tid, Scope::Private).err().unwrap_or(0),
        }
    }

    /// The last task to report wakes the controller.
    fn report(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.controller.ring();
        }
    }

    /// What the tasks saw: the holder, the spinner, the urgent one.
    pub(super) fn seen(&self) -> [TrialStamps; 3] {
        [*open(&self.low_seen), *open(&self.middle_seen), *open(&self.high_seen)]
    }

    /// All bells.
    pub(super) fn bells(&self) -> Vec<&Bell> {
        let mut all = vec![&self.low, &self.middle, &self.high, &self.witness, &self.controller];
        all.extend(&self.links);
        all
    }
}

/// Runs for `length_ns` of its own time, across CPUs from the request on; its last reading of the
/// clock.
#[inline]
fn run_for(
    group: &Group,
    seen: &mut TrialStamps,
    length_ns: i64,
    patience_ns: i64,
    now: impl Fn() -> i64,
    stop: &AtomicBool,
) -> i64 {
    let (began_ns, mut before_ns) = (now(), 0);
    loop {
        // Before the clock: taken off its CPU in between, it was not there when the other asked.
        let asked = group.asked_ns.load(Ordering::Acquire) != 0;
        let at = now();
        let own = seen.pace.step(at);
        if asked && seen.resumed_ns == 0 {
            seen.resumed_ns = at;
        }
        let waits = group.is_across() && !asked && at - began_ns < REQUEST_NS;
        if waits {
            before_ns = own;
        }
        let over = at - began_ns > patience_ns || stop.load(Ordering::Relaxed);
        if over || (!waits && own - before_ns >= length_ns) {
            return at;
        }
    }
}

/// The least urgent task: takes the first lock, says so, and holds it for its time.
pub(super) fn low(group: &Group, lengths: Lengths, clock_id: i32, stop: &AtomicBool) {
    let (tid, mut rings) = (gettid(), 0);
    let now = || clock::now_ns(clock_id);
    let patience_ns = lengths.hold_ns + lengths.spin_ns + PATIENCE_NS;
    while let Some(ring) = group.low.wait(rings, stop) {
        rings = ring;
        let mut seen = TrialStamps { first_ns: now(), ..TrialStamps::default() };
        seen.errno = group.take(0, tid);
        seen.got_ns = now();
        group.controller.ring();
        seen.released_ns = run_for(group, &mut seen, lengths.hold_ns, patience_ns, now, stop);
        seen.errno |= group.release(0, tid);
        seen.end_ns = now();
        *open(&group.low_seen) = seen;
        group.report();
    }
}

/// A link of the chain: holds lock `own` and waits for the one before it.
pub(super) fn link(group: &Group, own: usize, stop: &AtomicBool) {
    let (tid, mut rings) = (gettid(), 0);
    let Some(bell) = group.links.get(own) else { return };
    while let Some(ring) = bell.wait(rings, stop) {
        rings = ring;
        group.take(own, tid);
        group.controller.ring();
        group.take(own.saturating_sub(1), tid);
        group.release(own.saturating_sub(1), tid);
        group.release(own, tid);
        group.report();
    }
}

/// The task in between: wants no lock, only the CPU. Across CPUs it says when it has it.
pub(super) fn middle(group: &Group, lengths: Lengths, clock_id: i32, stop: &AtomicBool) {
    let mut rings = 0;
    let now = || clock::now_ns(clock_id);
    let patience_ns = lengths.spin_ns + PATIENCE_NS;
    while let Some(ring) = group.middle.wait(rings, stop) {
        rings = ring;
        let mut seen = TrialStamps { first_ns: now(), ..TrialStamps::default() };
        if group.is_across() {
            group.controller.ring();
        }
        seen.end_ns = run_for(group, &mut seen, lengths.spin_ns, patience_ns, now, stop);
        *open(&group.middle_seen) = seen;
        group.report();
    }
}

/// The urgent task: wants the last lock of the chain.
pub(super) fn high(group: &Group, last: usize, clock_id: i32, stop: &AtomicBool) {
    let (tid, mut rings) = (gettid(), 0);
    let now = || clock::now_ns(clock_id);
    while let Some(ring) = group.high.wait(rings, stop) {
        rings = ring;
        let mut seen = TrialStamps { first_ns: now(), ..TrialStamps::default() };
        if group.is_across() {
            group.witness.ring();
        }
        seen.asked_ns = now();
        group.asked_ns.store(seen.asked_ns, Ordering::Release);
        seen.errno = group.take(last, tid);
        seen.got_ns = now();
        seen.errno |= group.release(last, tid);
        seen.end_ns = now();
        *open(&group.high_seen) = seen;
        group.report();
    }
}

/// Across CPUs: on the urgent task's CPU, with its priority and behind it. It runs when that
/// one has gone to sleep, so that the request is known to be with the kernel.
pub(super) fn witness(group: &Group, clock_id: i32, stop: &AtomicBool) {
    let mut rings = 0;
    while let Some(ring) = group.witness.wait(rings, stop) {
        rings = ring;
        group.asleep_ns.store(clock::now_ns(clock_id), Ordering::Release);
        group.report();
    }
}
