// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits for a descriptor by epoll; the stamp is taken when epoll_wait returns, the eight bytes
//! are read after it.
//!
//! Context: HOT. Source: epoll(7).

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use tailbound_rt::Wake;
use tailbound_rt::handover::Take;

use super::descriptor;
use crate::error::{SysError, check};

pub(super) struct Waiter {
    set: OwnedFd,
    fd: Arc<OwnedFd>,
}

impl Waiter {
    pub(super) fn new(fd: Arc<OwnedFd>) -> Result<Self, SysError> {
        // SAFETY: integers and one live event; the new descriptor is ours alone.
        let set = unsafe {
            let raw = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            check(raw, "epoll_create1", "")?;
            let set = OwnedFd::from_raw_fd(raw);
            let mut event = libc::epoll_event { events: libc::EPOLLIN.cast_unsigned(), u64: 0 };
            let added = libc::epoll_ctl(raw, libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &raw mut event);
            check(added, "epoll_ctl", "")?;
            set
        };
        Ok(Self { set, fd })
    }
}

impl Take for Waiter {
    fn take(&mut self) -> Wake {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: epoll_wait(2) writes at most one live event.
        let n = unsafe { libc::epoll_wait(self.set.as_raw_fd(), &raw mut event, 1, -1) };
        if n > 0 {
            return Wake::Due;
        }
        match std::io::Error::last_os_error().raw_os_error().unwrap_or(0) {
            libc::EINTR => Wake::Interrupted,
            errno => Wake::Failed(errno),
        }
    }
    fn settle(&mut self) -> Result<(), i32> {
        match descriptor::read(&self.fd) {
            Wake::Failed(errno) => Err(errno),
            _ => Ok(()),
        }
    }
}
