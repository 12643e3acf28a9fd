// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the threads of a probe wait for the common epoch.
//!
//! Context: SETUP. Units: ns.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// In place of an epoch: there will be no run.
const NO_RUN: i64 = i64::MIN;

/// A gate that opens once, for all.
#[derive(Debug, Default)]
pub(super) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    arrived: u32,
    gone: u32,
    epoch_ns: Option<i64>,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread waits here; yields the epoch, or `None` when there will be no run.
    pub(super) fn wait(&self) -> Option<i64> {
        let mut state = self.lock();
        state.arrived += 1;
        self.changed.notify_all();
        let waiting = |s: &mut State| s.epoch_ns.is_none();
        let state = self.changed.wait_while(state, waiting).unwrap_or_else(PoisonError::into_inner);
        state.epoch_ns.filter(|epoch| *epoch != NO_RUN)
    }

    /// A thread has ended, or never began.
    pub(super) fn leave(&self) {
        self.lock().gone += 1;
        self.changed.notify_all();
    }

    /// Waits until each of `n` threads waits; `false` if one has gone instead.
    pub(super) fn all_waiting(&self, n: u32) -> bool {
        let state = self.lock();
        let missing = |s: &mut State| s.arrived + s.gone < n;
        self.changed.wait_while(state, missing).unwrap_or_else(PoisonError::into_inner).gone == 0
    }

    /// Lets all of them begin; the first activations fall due at `epoch_ns`.
    pub(super) fn open(&self, epoch_ns: i64) {
        self.lock().epoch_ns = Some(epoch_ns);
        self.changed.notify_all();
    }

    /// Lets all of them end without a run.
    pub(super) fn cancel(&self) {
        self.open(NO_RUN);
    }
}
