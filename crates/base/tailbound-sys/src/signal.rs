// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals that are waited for: Ctrl-C, SIGTERM and a lost terminal arrive where the
//! supervisor waits anyway, and never interrupt a measured thread.
//!
//! Context: SETUP (`block_and_open` before any thread is created), COLD. Source: sigtimedwait(2).
//! Not a signalfd: the kernel wakes who polls one at every signal to any thread of the process,
//! so the supervisor would be woken, and timed, with each signal that a probe hands over.

use crate::clock;
use crate::error::SysError;

/// The signals that end a run.
pub const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// By this a thread of the process asks who waits to look, and not to end. Where nobody waits for it, it does nothing.
pub const LOOK: i32 = libc::SIGURG;

/// Sends [`LOOK`] to this process.
pub fn ask_for_look() {
    // SAFETY: integer arguments only.
    unsafe { libc::kill(libc::getpid(), LOOK) };
}

/// An ending signal that has arrived, is blocked, and that nobody has taken yet. It stays pending: whoever waits for it
/// takes it later. Long work that has no [`Signals`] at hand asks this between two steps.
///
/// Always `None` in a program that blocks none: there the signal has ended it.
#[must_use]
pub fn pending() -> Option<i32> {
    // SAFETY: all-zero bytes are a valid sigset_t, which the call fills.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: writes the live set.
    if unsafe { libc::sigpending(&raw mut set) } != 0 {
        return None;
    }
    // SAFETY: reads the live set.
    ENDING.into_iter().find(|signal| unsafe { libc::sigismember(&raw const set, *signal) } == 1)
}

/// Has this process been stopped (SIGSTOP, Ctrl-Z) and let go on since the last call? SIGCONT, which ends a stop whether it
/// is blocked or not, stays pending until it is taken here.
///
/// Always `false` in a program that has no [`Signals`]: there SIGCONT leaves nothing behind.
#[must_use]
pub fn was_continued() -> bool {
    Signals(set_of(&[libc::SIGCONT])).wait(0).is_some()
}

/// The ending signals, blocked for this and all later threads, waited for here.
pub struct Signals(libc::sigset_t);

impl std::fmt::Debug for Signals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signals")
    }
}

impl Signals {
    /// Blocks the ending signals in the calling thread (and its future children). SIGPIPE is
    /// ignored: a closed pipe is an error, not an end.
    ///
    /// # Errors
    /// When the signals cannot be blocked.
    pub fn block_and_open() -> Result<Self, SysError> {
        // SIGCONT is kept pending for `was_continued`.
        Self(set_of(&[&ENDING[..], &[libc::SIGCONT]].concat())).blocked()?;
        // SAFETY: ignoring a signal installs no code.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
        Ok(Self(set_of(&ENDING)))
    }

    /// The signals by which other programs ask for a status, blocked likewise; they would end this one.
    ///
    /// # Errors
    /// When they cannot be blocked.
    pub fn asking_for_status() -> Result<Self, SysError> {
        Self(set_of(&[libc::SIGUSR1, libc::SIGUSR2])).blocked()
    }

    /// Waits for [`LOOK`] too.
    ///
    /// # Errors
    /// When it cannot be blocked.
    pub fn and_look(mut self) -> Result<Self, SysError> {
        // SAFETY: writes the live set.
        unsafe { libc::sigaddset(&raw mut self.0, LOOK) };
        self.blocked()
    }

    /// Blocks all of them in the calling thread.
    fn blocked(self) -> Result<Self, SysError> {
        // SAFETY: reads the live set; no old mask is asked for.
        let masked = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const self.0, std::ptr::null_mut())
        };
        if masked != 0 {
            return Err(SysError::code("pthread_sigmask", "", masked));
        }
        Ok(self)
    }

    /// Waits up to `timeout_ms` for one of the signals (for ever if that is negative); its
    /// number, or `None`.
    pub fn wait(&self, timeout_ms: i32) -> Option<i32> {
        self.wait_whence(timeout_ms).map(|(signal, _)| signal)
    }

    /// The same, and whether the kernel sent it: then its terminal did, and the whole foreground
    /// process group has got it.
    pub fn wait_whence(&self, timeout_ms: i32) -> Option<(i32, bool)> {
        let span = clock::span(i64::from(timeout_ms).saturating_mul(1_000_000));
        let span = if timeout_ms < 0 { std::ptr::null() } else { &raw const span };
        // SAFETY: all-zero bytes are a valid siginfo_t.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: reads a live set and a live timespec or none, and writes a live siginfo_t.
        let got = unsafe { libc::sigtimedwait(&raw const self.0, &raw mut info, span) };
        (got > 0).then_some((got, info.si_code == libc::SI_KERNEL))
    }
}

fn set_of(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: all-zero bytes are a valid sigset_t, filled by the calls below.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: writes the live set.
    unsafe { libc::sigemptyset(&raw mut set) };
    for signal in signals {
        // SAFETY: writes the live set.
        unsafe { libc::sigaddset(&raw mut set, *signal) };
    }
    set
}

/// Interrupts the sleep of thread `tid` of this process, without any other effect.
pub fn nudge(tid: i32) {
    let number = interrupting();
    // SAFETY: integer arguments only; a thread that has ended is ESRCH.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, number) };
}

/// The signal that interrupts a system call, without any other effect.
pub(crate) fn interrupting() -> i32 {
    extern "C" fn nothing(_: i32) {}
    let number = libc::SIGRTMIN() + 1;
    // SAFETY: all-zero bytes are a valid sigaction: no mask, no SA_RESTART.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(i32) as usize;
    // SAFETY: the handler does nothing.
    unsafe { libc::sigaction(number, &raw const action, std::ptr::null_mut()) };
    number
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_signal_is_waited_for_and_not_acted_on() {
        let signals = Signals::block_and_open().expect("blocked");
        assert_eq!(signals.wait(0), None);
        assert_eq!(pending(), None);
        // SAFETY: to the calling thread, in which it is blocked.
        unsafe { libc::raise(libc::SIGHUP) };
        assert_eq!((pending(), pending()), (Some(libc::SIGHUP), Some(libc::SIGHUP)));
        assert_eq!(signals.wait(-1), Some(libc::SIGHUP));
        assert_eq!(pending(), None);
        assert_eq!(signals.wait(1), None);
        assert!(!was_continued());
        // SAFETY: to the calling thread, in which it is blocked.
        unsafe { libc::raise(libc::SIGCONT) };
        assert_eq!(signals.wait(0), None, "it ends nothing");
        assert!(was_continued() && !was_continued());
        let signals = signals.and_look().expect("blocked");
        // SAFETY: to the calling thread, in which it is blocked.
        unsafe { libc::raise(LOOK) };
        assert_eq!(signals.wait(-1), Some(LOOK));
    }
}
