// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the controller of a trial calls its players, and how they report back.
//!
//! Context: HOT (one system call a ring, one or none a wait). Units: ns on CLOCK_MONOTONIC.
//! A bell is a counter that only grows; who waits remembers the last count it saw, so no ring
//! is lost. A closed bell stays closed: every waiter ends.
//! Source: futex(2).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tailbound_sys::clock;
use tailbound_sys::futex::{self, Scope};

/// Nobody sleeps longer than this without a look at the stop flag.
const LOOK_NS: i64 = 200_000_000;
const CLOSED: u32 = u32::MAX;

/// A counter others wait on.
#[derive(Debug, Default)]
pub(super) struct Bell(AtomicU32);

impl Bell {
    /// Rings it; everybody who waits on it wakes.
    #[inline]
    pub(super) fn ring(&self) {
        if self.0.load(Ordering::Relaxed) != CLOSED {
            self.0.fetch_add(1, Ordering::Release);
        }
        futex::wake(&self.0, u32::MAX, Scope::Private);
    }

    /// Nobody waits on it any more.
    pub(super) fn close(&self) {
        self.0.store(CLOSED, Ordering::Release);
        futex::wake(&self.0, u32::MAX, Scope::Private);
    }

    /// Rings so far.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Waits for a ring after the first `seen`; how many there were, or `None` when it is
    /// closed or `stop` is set.
    #[inline]
    pub(super) fn wait(&self, seen: u32, stop: &AtomicBool) -> Option<u32> {
        loop {
            match self.count() {
                CLOSED => return None,
                count if count != seen => return Some(count),
                _ if stop.load(Ordering::Relaxed) => return None,
                _ => {}
            }
            let until = clock::now_ns(clock::CLOCK_MONOTONIC).saturating_add(LOOK_NS);
            futex::wait(&self.0, seen, Some(until), Scope::Private);
        }
    }

    /// Waits until it has rung more than `seen` times or `until_ns` has come; did it ring?
    #[inline]
    pub(super) fn wait_until(&self, seen: u32, until_ns: i64) -> bool {
        while self.count() == seen {
            match futex::wait(&self.0, seen, Some(until_ns), Scope::Private) {
                futex::Waited::TimedOut | futex::Waited::Failed(_) => return self.count() != seen,
                _ => {}
            }
        }
        true
    }
}

/// Closes bells when the controller leaves, however it leaves.
#[derive(Debug)]
pub(super) struct Closing<'b>(pub(super) Vec<&'b Bell>);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|bell| bell.close());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn no_ring_is_lost_and_a_closed_bell_sends_home() {
        let bell = Arc::new(Bell::default());
        let stop = AtomicBool::new(false);
        bell.ring();
        bell.ring();
        assert_eq!(bell.wait(0, &stop), Some(2));
        let other = Arc::clone(&bell);
        let waiter = std::thread::spawn(move || other.wait(2, &AtomicBool::new(false)));
        drop(Closing(vec![&bell]));
        bell.ring();
        assert_eq!(waiter.join().expect("it waits"), None);
        stop.store(true, Ordering::Relaxed);
        assert_eq!(Bell::default().wait(0, &stop), None);
        assert!(!Bell::default().wait_until(0, 1));
    }
}
