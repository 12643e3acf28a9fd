// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stops the recording as soon as a wake-up was late: what comes after it would overwrite what came before.
//!
//! Context: COLD, in a thread of its own that sleeps until then. It is woken once, stops the recording and asks the monitor to look at once, so
//! that the recorder is off no longer than that takes. Then it rests: a machine that is late all the time wakes it once a second at most.
//! Source: ring_buffer poll in kernel/bpf/ringbuf.c.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tailbound_host::TracefsError;
use tailbound_host::tracefs::Switch;
use tailbound_sys::SysError;
use tailbound_sys::bpf::RingWaiter;
use tailbound_sys::clock::{CLOCK_MONOTONIC, now_ns};
use tailbound_sys::signal;

const STACK_BYTES: usize = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Since when; until when no late wake-up stops it.
    Recording {
        from_ns: i64,
        rest_until_ns: i64,
    },
    /// From when until when it was recorded.
    Stopped {
        from_ns: i64,
        until_ns: i64,
    },
    Ended,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    switch: Switch,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // One word: it is right whoever panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) -> Result<(), TracefsError> {
        self.stop_in(&mut self.state())
    }

    fn stop_in(&self, state: &mut State) -> Result<(), TracefsError> {
        if let State::Recording { from_ns, .. } = *state {
            self.switch.set(false)?;
            *state = State::Stopped { from_ns, until_ns: now_ns(CLOCK_MONOTONIC) };
        }
        Ok(())
    }

    /// Sleeps until a late wake-up would stop it; `false`: there is nothing to do any more.
    fn is_armed(&self) -> bool {
        let mut state = self.state();
        loop {
            let rest_ns = match *state {
                State::Ended => return false,
                State::Stopped { .. } => None,
                State::Recording { rest_until_ns, .. } => {
                    Some(rest_until_ns.saturating_sub(now_ns(CLOCK_MONOTONIC)))
                }
            };
            state = match rest_ns {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(ns) if ns <= 0 => return true,
                Some(ns) => {
                    let rest = Duration::from_nanos(ns.unsigned_abs());
                    let waited = self.changed.wait_timeout(state, rest);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// A wake-up was late: off, unless it rests again meanwhile. Has the monitor to look?
    fn late(&self) -> Result<bool, TracefsError> {
        let mut state = self.state();
        match *state {
            State::Recording { rest_until_ns, .. } if rest_until_ns <= now_ns(CLOCK_MONOTONIC) => {
                self.stop_in(&mut state).map(|()| true)
            }
            _ => Ok(false),
        }
    }
}

/// See the module.
pub(super) struct Stop(Arc<Shared>);

impl Stop {
    /// Begins the thread; nothing is recorded yet.
    ///
    /// # Errors
    /// No thread can be made.
    pub(super) fn begin(late: RingWaiter, switch: Switch) -> Result<Self, SysError> {
        let state = Mutex::new(State::Stopped { from_ns: 0, until_ns: 0 });
        let shared = Arc::new(Shared { state, changed: Condvar::new(), switch });
        let own = Arc::clone(&shared);
        let run = move || {
            while own.is_armed() {
                // Where it cannot stop it, the next look does.
                match late.wait().ok().and_then(|()| own.late().ok()) {
                    Some(true) => signal::ask_for_look(),
                    Some(false) => {}
                    None => return,
                }
            }
        };
        let thread = std::thread::Builder::new().name("recorder".into()).stack_size(STACK_BYTES);
        thread.spawn(run).map_err(|e| {
            SysError::code("clone", "the recorder's thread", e.raw_os_error().unwrap_or(0))
        })?;
        Ok(Self(shared))
    }

    pub(super) fn is_on(&self) -> bool {
        matches!(*self.0.state(), State::Recording { .. })
    }

    /// What is recorded: from when until when. Of what was before and after nothing is known.
    pub(super) fn span_ns(&self) -> (i64, i64) {
        match *self.0.state() {
            State::Recording { from_ns, .. } => (from_ns, now_ns(CLOCK_MONOTONIC)),
            State::Stopped { from_ns, until_ns } => (from_ns, until_ns),
            State::Ended => (0, 0),
        }
    }

    /// Off, if it is not already.
    ///
    /// # Errors
    /// [`TracefsError`].
    pub(super) fn stop(&self) -> Result<(), TracefsError> {
        self.0.stop()
    }

    /// Goes on, and is not stopped before `rest_until_ns`; what was recorded before is still there unless it was read. For how long it was off.
    ///
    /// # Errors
    /// [`TracefsError`].
    pub(super) fn go_on(&self, rest_until_ns: i64) -> Result<i64, TracefsError> {
        let mut state = self.0.state();
        self.0.switch.set(true)?;
        let from_ns = now_ns(CLOCK_MONOTONIC);
        let off_ns = match *state {
            State::Stopped { until_ns, .. } => from_ns.saturating_sub(until_ns),
            _ => 0,
        };
        *state = State::Recording { from_ns, rest_until_ns };
        self.0.changed.notify_one();
        Ok(off_ns)
    }

    /// The thread does nothing any more.
    pub(super) fn end(&self) {
        *self.0.state() = State::Ended;
        self.0.changed.notify_one();
    }
}
