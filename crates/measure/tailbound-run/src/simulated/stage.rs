// SPDX-License-Identifier: MIT OR Apache-2.0
//! The simulated clock, and the measured threads that live by it.
//!
//! Context: COLD, tests only. Units: ns.
//! Time is the supervisor's: it moves only when it waits, and while it moves each thread runs until its
//! next wake-up would be later. So whatever the host does, the supervisor sees the same.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tailbound_rt::cyclic::{Port, Wake};
use tailbound_stats::random::Random;

use super::fate::{MS, S};

/// Due and woken, of each wake-up.
pub(super) type Wakes = Vec<(i64, i64)>;

/// Where a thread stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Runs,
    /// Sleeps until then.
    Sleeps(i64),
    Ended,
}

#[derive(Debug)]
struct State {
    now_ns: i64,
    threads: Vec<(Standing, bool)>,
}

/// The clock and its threads.
#[derive(Debug)]
pub(super) struct Stage {
    state: Mutex<State>,
    changed: Condvar,
}

impl Stage {
    pub(super) fn new(now_ns: i64, threads: usize) -> Arc<Self> {
        let threads = vec![(Standing::Runs, false); threads];
        Arc::new(Self { state: Mutex::new(State { now_ns, threads }), changed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now_ns(&self) -> i64 {
        self.lock().now_ns
    }

    /// Lets time pass until `to_ns`.
    pub(super) fn pass(&self, to_ns: i64) {
        let mut state = self.lock();
        state.now_ns = state.now_ns.max(to_ns);
        self.run(state, |standing, now| matches!(standing, Standing::Sleeps(at) if at <= now));
    }

    /// Interrupts every sleep.
    pub(super) fn interrupt(&self) {
        let mut state = self.lock();
        for (standing, interrupted) in &mut state.threads {
            *interrupted = matches!(standing, Standing::Sleeps(_));
        }
        self.run(state, |standing, _| matches!(standing, Standing::Sleeps(_)));
    }

    /// Runs the threads that `wakes` names, until all sleep or have ended.
    fn run(&self, mut state: MutexGuard<'_, State>, wakes: impl Fn(Standing, i64) -> bool) {
        let now = state.now_ns;
        for (standing, _) in &mut state.threads {
            if wakes(*standing, now) {
                *standing = Standing::Runs;
            }
        }
        self.changed.notify_all();
        while state.threads.iter().any(|(standing, _)| *standing == Standing::Runs) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn finished(&self) -> bool {
        self.lock().threads.iter().all(|(standing, _)| *standing == Standing::Ended)
    }

    pub(super) fn end(&self, thread: usize) {
        if let Some((standing, _)) = self.lock().threads.get_mut(thread) {
            *standing = Standing::Ended;
        }
        self.changed.notify_all();
    }

    /// Sleeps until `at_ns`; the time when it was interrupted, if it was.
    fn sleep(&self, thread: usize, at_ns: i64) -> Option<i64> {
        let mut state = self.lock();
        if at_ns <= state.now_ns {
            return None;
        }
        if let Some((standing, _)) = state.threads.get_mut(thread) {
            *standing = Standing::Sleeps(at_ns);
        }
        self.changed.notify_all();
        let stands =
            |state: &State| state.threads.get(thread).is_some_and(|t| t.0 != Standing::Runs);
        while stands(&state) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let now = state.now_ns;
        let interrupted = state.threads.get_mut(thread).map(|t| std::mem::take(&mut t.1));
        (interrupted == Some(true)).then_some(now)
    }
}

/// One measured thread's way to the simulated kernel.
pub(super) struct SimulatedPort {
    pub(super) stage: Arc<Stage>,
    pub(super) thread: usize,
    pub(super) random: Random,
    pub(super) stalls: bool,
    /// The time of the thread.
    pub(super) now_ns: i64,
    /// Sleeps that succeed.
    pub(super) sleeps: Option<u64>,
    pub(super) wakes: Arc<Mutex<Wakes>>,
    pub(super) recorded: bool,
    pub(super) due_ns: i64,
}

impl SimulatedPort {
    fn delay_ns(&mut self) -> i64 {
        let up_to = |r: &mut Random, n: i64| {
            i64::try_from(r.below(usize::try_from(n).unwrap_or(1))).unwrap_or(0)
        };
        let r = &mut self.random;
        match r.below(if self.stalls { 40 } else { 1000 }) {
            0 if self.stalls => up_to(r, 3 * S),
            1 if self.stalls => up_to(r, 30 * MS),
            2 => up_to(r, MS),
            _ => 1000 + up_to(r, 40_000),
        }
    }
}

impl Port for SimulatedPort {
    fn sleep_until(&mut self, due_ns: i64) -> Wake {
        if self.sleeps == Some(0) {
            return Wake::Failed(22);
        }
        let at = self.now_ns.max(due_ns).saturating_add(self.delay_ns());
        if let Some(interrupted_ns) = self.stage.sleep(self.thread, at) {
            self.now_ns = self.now_ns.max(interrupted_ns);
            return Wake::Interrupted;
        }
        self.sleeps = self.sleeps.map(|n| n - 1);
        self.now_ns = at;
        self.due_ns = due_ns;
        Wake::Due
    }

    fn now_ns(&mut self) -> i64 {
        if self.recorded {
            let mut wakes = self.wakes.lock().unwrap_or_else(PoisonError::into_inner);
            wakes.push((self.due_ns, self.now_ns));
        }
        self.now_ns
    }
}
