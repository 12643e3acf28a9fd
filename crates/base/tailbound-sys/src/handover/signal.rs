// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hand-over by a signal to one thread, which waits for it.
//!
//! Context: HOT. Source: tgkill(2), sigwaitinfo(2), signal(7).
//! A real-time signal, because those queue. Directed at the thread, also between processes: one
//! directed at a process would be measured together with the choice of a thread to take it.

use std::sync::atomic::Ordering;

use tailbound_rt::Wake;
use tailbound_rt::handover::{Give, Take};

use super::site::{Site, while_zero};
use crate::futex;
use crate::sched::gettid;

/// The receiver's thread, stored last, and its process.
const TID: usize = 0;
const PID: usize = 1;

fn number() -> i32 {
    // The first is the C library's to use, the second ends sleeps.
    libc::SIGRTMIN() + 2
}

pub(super) struct Sender {
    site: Site,
    target: Option<(i32, i32)>,
}

impl Sender {
    pub(super) fn new(site: Site) -> Self {
        Self { site, target: None }
    }
}

impl Give for Sender {
    fn prepare(&mut self) -> Result<(), i32> {
        if self.target.is_none() {
            // The receiver, of higher priority, says at once who it is; a signal before it
            // waits would end it.
            let tid = self.site.word(TID);
            while let Some(ended) = while_zero(&self.site, tid) {
                if let Wake::Failed(errno) = ended {
                    return Err(errno);
                }
            }
            let pid = self.site.word(PID).load(Ordering::Relaxed).cast_signed();
            self.target = Some((pid, tid.load(Ordering::Acquire).cast_signed()));
        }
        Ok(())
    }
    fn give(&mut self) -> Result<(), i32> {
        let Some((pid, tid)) = self.target else { return Err(libc::ESRCH) };
        // SAFETY: tgkill(2) on integers.
        match unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, number()) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)),
        }
    }
}

pub(super) struct Receiver {
    site: Site,
    set: Option<libc::sigset_t>,
}

impl Receiver {
    pub(super) fn new(site: Site) -> Self {
        Self { site, set: None }
    }

    fn begin(&mut self) -> libc::sigset_t {
        // SAFETY: all-zero bytes are a valid sigset_t; the calls read and write it alone.
        let set = unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, number());
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            set
        };
        self.set = Some(set);
        let tid = self.site.word(TID);
        self.site.word(PID).store(std::process::id(), Ordering::Relaxed);
        tid.store(gettid().cast_unsigned(), Ordering::Release);
        futex::wake(tid, 1, self.site.scope);
        set
    }
}

impl Take for Receiver {
    fn take(&mut self) -> Wake {
        let set = self.set.unwrap_or_else(|| self.begin());
        // SAFETY: sigwaitinfo(2) reads a live set; no information is asked for.
        if unsafe { libc::sigwaitinfo(&raw const set, std::ptr::null_mut()) } >= 0 {
            return Wake::Due;
        }
        match std::io::Error::last_os_error().raw_os_error().unwrap_or(0) {
            libc::EINTR => Wake::Interrupted,
            errno => Wake::Failed(errno),
        }
    }
}
