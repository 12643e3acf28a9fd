// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stops the recording as soon as a wake-up was late: what comes after it would overwrite what came before.
//!
//! Context: COLD, in a thread of its own that sleeps until then. It is woken once, and not again before the recording went on.
//! Source: ring_buffer poll in kernel/bpf/ringbuf.c.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tailbound_host::TracefsError;
use tailbound_host::tracefs::Switch;
use tailbound_sys::SysError;
use tailbound_sys::bpf::RingWaiter;
use tailbound_sys::clock::{CLOCK_MONOTONIC, now_ns};

const STACK_BYTES: usize = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Since when.
    Recording {
        from_ns: i64,
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
        let mut state = self.state();
        if let State::Recording { from_ns } = *state {
            self.switch.set(false)?;
            *state = State::Stopped { from_ns, until_ns: now_ns(CLOCK_MONOTONIC) };
        }
        Ok(())
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
            loop {
                let state = own.state();
                let waited = own.changed.wait_while(state, |s| matches!(s, State::Stopped { .. }));
                let state = *waited.unwrap_or_else(PoisonError::into_inner);
                // Where it cannot stop it, the next look does.
                if state == State::Ended || late.wait().is_err() || own.stop().is_err() {
                    return;
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
            State::Recording { from_ns } => (from_ns, now_ns(CLOCK_MONOTONIC)),
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

    /// Goes on; what was recorded before is still there unless it was read.
    ///
    /// # Errors
    /// [`TracefsError`].
    pub(super) fn go_on(&self) -> Result<(), TracefsError> {
        let mut state = self.0.state();
        self.0.switch.set(true)?;
        *state = State::Recording { from_ns: now_ns(CLOCK_MONOTONIC) };
        self.0.changed.notify_one();
        Ok(())
    }

    /// The thread does nothing any more.
    pub(super) fn end(&self) {
        *self.0.state() = State::Ended;
        self.0.changed.notify_one();
    }
}
