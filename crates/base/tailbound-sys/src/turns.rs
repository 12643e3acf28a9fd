// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two tasks that take turns by a futex: what a hand-over costs with nothing else in it.
//!
//! Context: HOT of a load, never of a measured loop (probes have hand-overs of their own).
//! The word lies in shared counters, so that the two may be threads or processes.
//! Source: futex(2).

use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::SysError;
use crate::ipc::SharedCounters;

/// Whose turn it is: 0 or 1.
#[derive(Clone, Copy, Debug)]
pub struct Turns<'a>(&'a AtomicU32);

impl<'a> Turns<'a> {
    /// The word is slot `slot` of `memory`, which must be used for nothing else. It is 0's turn.
    #[must_use]
    pub fn new(memory: &'a SharedCounters, slot: usize) -> Self {
        // SAFETY: four aligned bytes of a live slot that nobody accesses in another way.
        Self(unsafe { AtomicU32::from_ptr(memory.slot(slot).as_ptr().cast()) })
    }

    /// Sleeps until it is the turn of `who`.
    ///
    /// # Errors
    /// ENOSYS where the kernel has no futexes.
    pub fn wait(self, who: u32) -> Result<(), SysError> {
        loop {
            let now = self.0.load(Ordering::Acquire);
            if now == who {
                return Ok(());
            }
            self.call(libc::FUTEX_WAIT, now)?;
        }
    }

    /// Gives the turn to `who`, and wakes it.
    ///
    /// # Errors
    /// ENOSYS where the kernel has no futexes.
    pub fn give(self, who: u32) -> Result<(), SysError> {
        self.0.store(who, Ordering::Release);
        self.call(libc::FUTEX_WAKE, 1)
    }

    fn call(self, what: i32, value: u32) -> Result<(), SysError> {
        let no_limit = std::ptr::null::<libc::timespec>();
        // SAFETY: the word lives in a mapping that outlives `self`; no time limit is given.
        let done =
            unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), what, value, no_limit) };
        let error = SysError::last("futex", "");
        // Changed before the kernel looked, or a signal: the caller looks again.
        let again = [libc::EAGAIN, libc::EINTR].contains(&error.errno);
        if done < 0 && !again { Err(error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_alternate_between_threads() {
        let Ok(memory) = SharedCounters::new(1) else { panic!("mmap") };
        let turns = Turns::new(&memory, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..1000 {
                    assert!(turns.wait(1).is_ok() && turns.give(0).is_ok());
                }
            });
            for _ in 0..1000 {
                assert!(turns.wait(0).is_ok() && turns.give(1).is_ok());
            }
            assert_eq!(turns.wait(0), Ok(()));
        });
    }
}
