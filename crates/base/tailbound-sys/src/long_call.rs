// SPDX-License-Identifier: MIT OR Apache-2.0
//! One long system call: poll(2) of very many descriptors, without a wait.
//!
//! Context: the call is the load; SETUP in [`LongPoll::new`]. Units: descriptors.
//! The kernel asks one descriptor after the other and does not offer the CPU to anybody in
//! between: where it is not preemptible, nothing but an interrupt runs there before the call ends.
//! Interrupts stay on, and no lock is held. All descriptors are the same one, so one is enough.
//! Not here: how long a call should take (the load `culprit`).
//! Source: poll(2), eventfd(2), getrlimit(2) RLIMIT_NOFILE.

use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use crate::error::{SysError, check};

/// The descriptors of one call, at none of which anything happens.
#[derive(Debug)]
pub struct LongPoll {
    /// What all of `polls` name.
    _silent: OwnedFd,
    polls: Vec<libc::pollfd>,
}

impl LongPoll {
    /// A call of `descriptors`: no more than the process may have open, though it has but one.
    ///
    /// # Errors
    /// EMFILE, ENOMEM.
    pub fn new(descriptors: usize) -> Result<Self, SysError> {
        // SAFETY: integer arguments only; the new descriptor is ours alone.
        let raw = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        check(raw, "eventfd", "")?;
        // SAFETY: `raw` is a fresh, valid descriptor.
        let silent = unsafe { OwnedFd::from_raw_fd(raw) };
        let one = libc::pollfd { fd: silent.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        Ok(Self { _silent: silent, polls: vec![one; descriptors] })
    }

    /// Makes the call.
    ///
    /// # Errors
    /// EINVAL for more descriptors than RLIMIT_NOFILE; ENOMEM; EINTR.
    pub fn call(&mut self) -> Result<(), SysError> {
        let descriptors = self.polls.len();
        let many = || format!("{descriptors} descriptors");
        let count = libc::nfds_t::try_from(descriptors)
            .map_err(|_| SysError::code("poll", many(), libc::EINVAL))?;
        // SAFETY: poll(2) reads and writes the live array of that length.
        if unsafe { libc::poll(self.polls.as_mut_ptr(), count, 0) } < 0 {
            return Err(SysError::last("poll", many()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits;

    #[test]
    fn as_many_as_may_be_open_and_no_more() {
        let (most, _) = limits::get(libc::RLIMIT_NOFILE).expect("own limit");
        let Ok(most) = usize::try_from(most.min(1 << 20)) else { panic!("{most}") };
        let made = |n| LongPoll::new(n).expect("a descriptor").call();
        assert_eq!(made(0), Ok(()));
        assert_eq!(made(most.min(1000)), Ok(()));
        if most < 1 << 20 {
            assert!(made(most + 1).is_err_and(|e| e.errno == libc::EINVAL));
        }
    }
}
