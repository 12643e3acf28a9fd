// SPDX-License-Identifier: MIT OR Apache-2.0
//! Those who wait, and draw a number when they may go on.
//!
//! Context: HOT (no allocation). Units: ns on the plan's clock.
//! Not here: in which order they should have gone on (the controller).

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU32, Ordering};

use tailbound_sys::clock;
use tailbound_sys::futex::{self, Locked, Scope, Waited};
use tailbound_sys::sched::gettid;

use super::super::bell::Bell;

/// What the players wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Means {
    /// A broadcast that moves them to a lock with inheritance: a condition variable.
    Condition,
    /// A lock with inheritance.
    Lock,
    /// A futex, woken one at a time.
    One,
    /// A futex, all woken at once, on one CPU.
    Broadcast,
}

impl Means {
    /// As written, in the order of [`Means::of`].
    pub(super) const WORDS: &'static [&'static str] = &["condition", "lock", "one", "broadcast"];

    pub(super) fn of(position: usize) -> Self {
        match position {
            0 => Self::Condition,
            1 => Self::Lock,
            2 => Self::One,
            _ => Self::Broadcast,
        }
    }
}

/// One who waits.
#[derive(Debug, Default)]
pub(super) struct Player {
    pub(super) bell: Bell,
    pub(super) tid: AtomicI32,
    /// The number drawn: 0 for the first to go on.
    pub(super) ticket: AtomicU32,
    pub(super) first_ns: AtomicI64,
    /// The wait ended without the lock or the wake-up: an errno, or -1.
    pub(super) failed: AtomicI32,
}

/// What all share; players in the order of their urgency.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) players: Vec<Player>,
    pub(super) controller: Bell,
    pub(super) word: AtomicU32,
    pub(super) lock: AtomicU32,
    pub(super) tickets: AtomicU32,
    pub(super) left: AtomicU32,
}

impl Queue {
    pub(super) fn new(players: usize) -> Self {
        Self {
            players: (0..players).map(|_| Player::default()).collect(),
            controller: Bell::default(),
            word: AtomicU32::new(0),
            lock: AtomicU32::new(0),
            tickets: AtomicU32::new(0),
            left: AtomicU32::new(0),
        }
    }
}

/// Waits as often as it is called to, until the bell is closed.
pub(super) fn play(queue: &Queue, own: usize, means: Means, clock_id: i32, stop: &AtomicBool) {
    let Some(player) = queue.players.get(own) else { return };
    let (tid, mut rings) = (gettid(), 0);
    player.tid.store(tid, Ordering::Release);
    while let Some(ring) = player.bell.wait(rings, stop) {
        rings = ring;
        let word = queue.word.load(Ordering::Acquire);
        queue.controller.ring();
        let failed = wait(queue, word, means, tid);
        player.first_ns.store(clock::now_ns(clock_id), Ordering::Relaxed);
        player.ticket.store(queue.tickets.fetch_add(1, Ordering::AcqRel), Ordering::Relaxed);
        player.failed.store(failed, Ordering::Relaxed);
        if matches!(means, Means::Condition | Means::Lock) && failed == 0 {
            let released = futex::unlock_pi(&queue.lock, tid, Scope::Private);
            player.failed.store(released.err().unwrap_or(0), Ordering::Relaxed);
        }
        let last = queue.left.fetch_sub(1, Ordering::AcqRel) == 1;
        if last || means == Means::One {
            queue.controller.ring();
        }
    }
}

fn wait(queue: &Queue, word: u32, means: Means, tid: i32) -> i32 {
    let waited = match means {
        Means::Lock => {
            return match futex::lock_pi(&queue.lock, tid, Scope::Private) {
                Locked::Got | Locked::OwnerDied => 0,
                Locked::Refused(errno) => errno,
            };
        }
        Means::Condition => {
            futex::wait_requeue_pi(&queue.word, word, None, &queue.lock, Scope::Private)
        }
        Means::One | Means::Broadcast => futex::wait(&queue.word, word, None, Scope::Private),
    };
    match waited {
        Waited::Woken => 0,
        Waited::Failed(errno) => errno,
        _ => -1,
    }
}
