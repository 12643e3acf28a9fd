// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hand-over by a word in memory: a futex that is woken, and locks with inheritance that are
//! released.
//!
//! Context: HOT. Source: futex(2).
//! A lock can be handed over only by its owner, and has to be the sender's again before the next
//! time: so there are two. The sender holds one, on which the receiver waits; before the stamp it
//! takes the other, and what is timed is the release of the first.

use std::sync::atomic::Ordering;

use tailbound_rt::Wake;
use tailbound_rt::handover::{Give, Take};

use super::site::{Site, while_zero};
use crate::futex::{self, Locked, Waited};
use crate::sched::gettid;

/// Word of the first lock; the second follows.
const LOCKS: usize = 0;
/// Set once the sender holds the first lock.
const READY: usize = 2;

/// Adds one and wakes.
pub(super) struct Waker(pub(super) Site);

impl Give for Waker {
    fn give(&mut self) -> Result<(), i32> {
        let word = self.0.word(0);
        word.fetch_add(1, Ordering::Release);
        futex::wake(word, 1, self.0.scope);
        Ok(())
    }
}

/// Waits until the word is another than it last was.
pub(super) struct Waiter {
    site: Site,
    seen: u32,
}

impl Waiter {
    pub(super) fn new(site: Site) -> Self {
        Self { site, seen: 0 }
    }
}

impl Take for Waiter {
    fn take(&mut self) -> Wake {
        let word = self.site.word(0);
        loop {
            if word.load(Ordering::Acquire) != self.seen {
                self.seen = self.seen.wrapping_add(1);
                return Wake::Due;
            }
            match futex::wait(word, self.seen, None, self.site.scope) {
                Waited::Interrupted => return Wake::Interrupted,
                Waited::Failed(errno) => return Wake::Failed(errno),
                _ => {}
            }
        }
    }
}

/// The owner of the lock on which the other side waits.
pub(super) struct Releaser {
    site: Site,
    tid: i32,
    turn: usize,
}

impl Releaser {
    pub(super) fn new(site: Site) -> Self {
        Self { site, tid: 0, turn: 0 }
    }
}

fn lock(site: &Site, turn: usize, tid: i32) -> Result<(), i32> {
    match futex::lock_pi(site.word(LOCKS + turn % 2), tid, site.scope) {
        Locked::Got => Ok(()),
        Locked::OwnerDied => Err(libc::EOWNERDEAD),
        Locked::Refused(errno) => Err(errno),
    }
}

impl Give for Releaser {
    fn prepare(&mut self) -> Result<(), i32> {
        if self.tid == 0 {
            self.tid = gettid();
            lock(&self.site, self.turn, self.tid)?;
            let ready = self.site.word(READY);
            ready.store(1, Ordering::Release);
            futex::wake(ready, 1, self.site.scope);
        }
        lock(&self.site, self.turn.wrapping_add(1), self.tid)
    }
    fn give(&mut self) -> Result<(), i32> {
        let held = self.site.word(LOCKS + self.turn % 2);
        self.turn = self.turn.wrapping_add(1);
        futex::unlock_pi(held, self.tid, self.site.scope)
    }
}

/// Waits for the lock that the other side holds.
pub(super) struct Locker {
    site: Site,
    tid: i32,
    turn: usize,
}

impl Locker {
    pub(super) fn new(site: Site) -> Self {
        Self { site, tid: 0, turn: 0 }
    }
}

impl Take for Locker {
    fn take(&mut self) -> Wake {
        if self.tid == 0 {
            if let Some(ended) = while_zero(&self.site, self.site.word(READY)) {
                return ended;
            }
            self.tid = gettid();
        }
        match lock(&self.site, self.turn, self.tid) {
            Ok(()) => Wake::Due,
            Err(errno) => Wake::Failed(errno),
        }
    }
    fn settle(&mut self) -> Result<(), i32> {
        let held = self.site.word(LOCKS + self.turn % 2);
        self.turn = self.turn.wrapping_add(1);
        futex::unlock_pi(held, self.tid, self.site.scope)
    }
}
