// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals as a file descriptor: Ctrl-C, SIGTERM and a lost terminal arrive where the
//! supervisor waits anyway, and never interrupt a measured thread.
//!
//! Context: SETUP (`block_and_open` before any thread is created), COLD. Source: signalfd(2).

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::error::{SysError, check};

/// The signals that end a run.
pub const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// The ending signals, blocked for this and all later threads, readable here.
#[derive(Debug)]
pub struct Signals(OwnedFd);

impl Signals {
    /// Blocks the ending signals in the calling thread (and its future children) and opens
    /// a descriptor for them. SIGPIPE is ignored: a closed pipe is an error, not an end.
    ///
    /// # Errors
    /// When the kernel has no signalfd.
    pub fn block_and_open() -> Result<Self, SysError> {
        // SAFETY: all-zero bytes are a valid sigset_t, filled by the calls below.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: writes the live set.
        unsafe { libc::sigemptyset(&raw mut set) };
        for signal in ENDING {
            // SAFETY: writes the live set.
            unsafe { libc::sigaddset(&raw mut set, signal) };
        }
        // SAFETY: reads the live set; no old mask is asked for.
        let masked =
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
        if masked != 0 {
            return Err(SysError::code("pthread_sigmask", "", masked));
        }
        // SAFETY: ignoring a signal installs no code.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
        // SAFETY: reads the live set; the returned descriptor is ours alone.
        let raw =
            unsafe { libc::signalfd(-1, &raw const set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC) };
        check(raw, "signalfd", "")?;
        // SAFETY: `raw` is a fresh, valid descriptor.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(raw) }))
    }

    /// Waits up to `timeout_ms` for one of the signals; its number, or `None`.
    pub fn wait(&self, timeout_ms: i32) -> Option<i32> {
        let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one live pollfd.
        if unsafe { libc::poll(&raw mut poll, 1, timeout_ms) } <= 0 {
            return None;
        }
        // SAFETY: all-zero bytes are a valid signalfd_siginfo.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: read(2) writes at most the size of the live struct.
        let got = unsafe { libc::read(self.0.as_raw_fd(), (&raw mut info).cast(), size) };
        (usize::try_from(got) == Ok(size)).then(|| info.ssi_signo.cast_signed())
    }
}

/// Interrupts the sleep of thread `tid` of this process, without any other effect.
pub fn nudge(tid: i32) {
    extern "C" fn nothing(_: i32) {}
    let number = libc::SIGRTMIN() + 1;
    // SAFETY: all-zero bytes are a valid sigaction: no mask, no SA_RESTART.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(i32) as usize;
    // SAFETY: the handler does nothing.
    unsafe { libc::sigaction(number, &raw const action, std::ptr::null_mut()) };
    // SAFETY: integer arguments only; a thread that has ended is ESRCH.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, number) };
}

/// The name of a signal that ends a run.
#[must_use]
pub fn name(signal: i32) -> &'static str {
    match signal {
        libc::SIGINT => "SIGINT",
        libc::SIGTERM => "SIGTERM",
        libc::SIGHUP => "SIGHUP",
        libc::SIGQUIT => "SIGQUIT",
        _ => "a signal",
    }
}
