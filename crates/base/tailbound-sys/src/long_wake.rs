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
    visitor: OwnedFd,
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
            let epoll = epoll()?;
            for name in &names {
                control(&epoll, libc::EPOLL_CTL_ADD, name)?;
            }
            others.push(epoll);
        }
        others.append(&mut names);
        Ok(Self { event, visitor: epoll()?, _others: others })
    }

    /// Waits for the eventfd too and at once no more: takes the lock twice, for a moment.
    ///
    /// # Errors
    /// ENOMEM, ENOSPC; EEXIST and ENOENT where two threads do so at a time.
    pub fn visit(&self) -> Result<(), SysError> {
        control(&self.visitor, libc::EPOLL_CTL_ADD, &self.event)?;
        control(&self.visitor, libc::EPOLL_CTL_DEL, &self.event)
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

fn epoll() -> Result<OwnedFd, SysError> {
    // SAFETY: an integer argument only.
    own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }, "epoll_create1")
}

fn control(epoll: &OwnedFd, what: i32, event: &OwnedFd) -> Result<(), SysError> {
    let mut wanted = libc::epoll_event { events: libc::EPOLLPRI as u32, u64: 0 };
    // SAFETY: epoll_ctl(2) reads one live epoll_event; both descriptors are open.
    let done =
        unsafe { libc::epoll_ctl(epoll.as_raw_fd(), what, event.as_raw_fd(), &raw mut wanted) };
    check(done, "epoll_ctl", "eventfd").map(drop)
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
        assert_eq!(wake.visit(), Ok(()));
        assert_eq!(wake.call(), Ok(()));
        assert_eq!(wake.visit(), Ok(()));
        let mut count = [0u8; 8];
        assert_eq!(ipc::read(wake.event.as_fd(), &mut count).expect("a count"), 8);
        assert_eq!(u64::from_ne_bytes(count), 2);
    }
}
