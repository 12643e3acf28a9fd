// SPDX-License-Identifier: MIT OR Apache-2.0
//! One write(2) that holds a lock of the kernel, with interrupts disabled, for as long as is asked for:
//! to an eventfd that very many wait for.
//!
//! Context: the call is the load; SETUP in [`LongWake::new`]. Units: those who wait.
//! The kernel asks each of those who wait, whether it is to be woken, under the lock of the queue and
//! with interrupts disabled; here all of them wait for urgent data, which an eventfd never has, so that
//! nobody is woken. A second thread that writes at the same time spins for the lock. With PREEMPT_RT the
//! lock is one that sleeps, and interrupts stay on.
//! Not here: how long a call should take (the load `culprit`).
//! Source: eventfd(2), epoll(7), fs/eventfd.c, fs/eventpoll.c (`ep_poll_callback`).

use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};

use crate::error::{SysError, check};
use crate::ipc;

/// Epoll instances; of each pair of one of these and of one descriptor of the eventfd the kernel makes one that
/// waits.
const EPOLLS: usize = 100;

/// The eventfd and those who wait for it.
#[derive(Debug)]
pub struct LongWake {
    event: OwnedFd,
    /// Held open: closing one ends its waiting.
    _others: Vec<OwnedFd>,
}

impl LongWake {
    /// An eventfd that at least `waiters` wait for.
    ///
    /// # Errors
    /// EMFILE; ENOMEM; ENOSPC where /proc/sys/fs/epoll/max_user_watches is reached.
    pub fn new(waiters: usize) -> Result<Self, SysError> {
        // SAFETY: integer arguments only.
        let event = own(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) }, "eventfd")?;
        let mut names = Vec::new();
        for _ in 0..waiters.div_ceil(EPOLLS).max(1) {
            let name = event.as_fd().try_clone_to_owned();
            names.push(name.map_err(|_| SysError::last("dup", "eventfd"))?);
        }
        let mut others = Vec::new();
        for _ in 0..EPOLLS {
            // SAFETY: an integer argument only.
            let epoll = own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }, "epoll_create1")?;
            for name in &names {
                let urgent = libc::EPOLLPRI as u32;
                let mut wanted = libc::epoll_event { events: urgent, u64: 0 };
                // SAFETY: epoll_ctl(2) reads one live epoll_event; both descriptors are open.
                let added = unsafe {
                    libc::epoll_ctl(
                        epoll.as_raw_fd(),
                        libc::EPOLL_CTL_ADD,
                        name.as_raw_fd(),
                        &raw mut wanted,
                    )
                };
                check(added, "epoll_ctl", "eventfd")?;
            }
            others.push(epoll);
        }
        others.append(&mut names);
        Ok(Self { event, _others: others })
    }

    /// Makes the call.
    ///
    /// # Errors
    /// EINTR. That of a count of 2^64 is not waited for.
    pub fn call(&self) -> Result<(), SysError> {
        ipc::write(self.event.as_fd(), &1u64.to_ne_bytes())
            .map(drop)
            .map_err(|e| SysError::code("write", "eventfd", e.raw_os_error().unwrap_or(0)))
    }
}

fn own(raw: i32, call: &'static str) -> Result<OwnedFd, SysError> {
    check(raw, call, "")?;
    // SAFETY: `raw` is a fresh, valid descriptor that nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_woken_and_the_count_is_kept() {
        let wake = LongWake::new(1000).expect("descriptors");
        assert_eq!(wake.call(), Ok(()));
        assert_eq!(wake.call(), Ok(()));
        let mut count = [0u8; 8];
        assert_eq!(ipc::read(wake.event.as_fd(), &mut count).expect("a count"), 8);
        assert_eq!(u64::from_ne_bytes(count), 2);
    }
}
