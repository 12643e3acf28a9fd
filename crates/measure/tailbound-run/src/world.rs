// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run meets outside of itself, as traits: threads that are measured, loads, the machine's
//! disturbances, signals.
//!
//! Units: ns of the run's clock, from the first due activation.
//! [`Machine`] is the real one. The other (`simulated`) plays thousands of runs with clocks, threads
//! and disks of its own, so that what the supervisor and the session do with them can be tested.
//! Not here: the file (`disk`).

use tailbound_core::disturbance::DisturbanceRecord;
use tailbound_core::finding::Finding;
use tailbound_core::record::{Clocks, Facts, ThreadRecord};
use tailbound_host::Watch;
use tailbound_load::{LoadEnd, LoadSample, Loads, PhaseChange};
use tailbound_probe::{ProbeError, ProbeOutput, RecordSlot, Recorders, Running, ThreadResult};
use tailbound_sys::signal::{self, Signals};

/// The parts of one world, which belong together.
pub(crate) trait World {
    type Threads: Threads;
    type Loads: LoadSet;
    type Watch: Disturbances;
    type Signals: Interruptions;
}

/// The machine that this program runs on.
pub(crate) struct Machine;

impl World for Machine {
    type Threads = Running;
    type Loads = Loads;
    type Watch = Watch;
    type Signals = Signals;
}

/// The measured threads at work.
pub(crate) trait Threads {
    /// Time since the first due activation of the measurement.
    fn t_ns(&self) -> i64;
    /// That activation, on the run's clock.
    fn start_ns(&self) -> i64;
    /// The first due activation of the warm-up, on the run's clock.
    fn epoch_ns(&self) -> i64;
    /// What the clocks of the system read at the start.
    fn clocks_at_start(&self) -> Clocks;
    /// Every thread has ended.
    fn finished(&self) -> bool;
    /// Each slot and its recorders.
    fn recorders(&self) -> impl Iterator<Item = (RecordSlot, &Recorders)>;
    /// The kernel's number of the thread of a slot.
    fn tid(&self, slot: RecordSlot) -> Option<i32>;
    /// Interrupts their sleep, so that they see the stop flag.
    fn wake(&self);
    /// Waits for every thread.
    fn join(self) -> Result<(Vec<ThreadResult>, ProbeOutput), ProbeError>;
}

impl Threads for Running {
    fn t_ns(&self) -> i64 {
        Self::t_ns(self)
    }
    fn start_ns(&self) -> i64 {
        Self::start_ns(self)
    }
    fn epoch_ns(&self) -> i64 {
        Self::epoch_ns(self)
    }
    fn clocks_at_start(&self) -> Clocks {
        Self::clocks_at_start(self)
    }
    fn finished(&self) -> bool {
        Self::finished(self)
    }
    fn recorders(&self) -> impl Iterator<Item = (RecordSlot, &Recorders)> {
        Self::recorders(self)
    }
    fn tid(&self, slot: RecordSlot) -> Option<i32> {
        let threads = self.measured_threads().into_iter();
        threads
            .filter(|t| (t.thread, t.context) == (slot.thread, slot.context))
            .map(|t| t.tid)
            .next()
    }
    fn wake(&self) {
        self.tids().into_iter().for_each(signal::nudge);
    }
    fn join(self) -> Result<(Vec<ThreadResult>, ProbeOutput), ProbeError> {
        Self::join(self)
    }
}

/// The loads beside them.
pub(crate) trait LoadSet {
    /// When a load begins or ends next.
    fn next_change_ns(&self, t_ns: i64) -> Option<i64>;
    /// Begins and ends those whose time it is.
    fn keep_phases(&mut self, t_ns: i64, end_ns: i64) -> Vec<PhaseChange>;
    /// What they did since the last time.
    fn poll(&mut self) -> Vec<LoadSample>;
    /// Ends them all.
    fn stop(&mut self) -> Vec<LoadEnd>;
    /// What a reader must know of them.
    fn findings(&self) -> Vec<Finding>;
}

impl LoadSet for Loads {
    fn next_change_ns(&self, t_ns: i64) -> Option<i64> {
        Self::next_change_ns(self, t_ns)
    }
    fn keep_phases(&mut self, t_ns: i64, end_ns: i64) -> Vec<PhaseChange> {
        Self::keep_phases(self, t_ns, end_ns)
    }
    fn poll(&mut self) -> Vec<LoadSample> {
        Self::poll(self)
    }
    fn stop(&mut self) -> Vec<LoadEnd> {
        Self::stop(self)
    }
    fn findings(&self) -> Vec<Finding> {
        Self::findings(self)
    }
}

/// What disturbs a run from outside.
pub(crate) trait Disturbances {
    /// What is newly noticed, once a second.
    fn tick(&mut self) -> Vec<Finding>;
    /// What was taken between the two newest looks: in `span_ns`, up to `t_ns`.
    fn taken(&mut self, t_ns: i64, span_ns: i64) -> DisturbanceRecord;
    /// The last look: facts that changed, and findings.
    fn end(self, threads: &[ThreadRecord]) -> (Facts, Vec<Finding>);
}

impl Disturbances for Watch {
    fn tick(&mut self) -> Vec<Finding> {
        Self::tick(self)
    }
    fn taken(&mut self, t_ns: i64, span_ns: i64) -> DisturbanceRecord {
        Self::taken(self, t_ns, span_ns)
    }
    fn end(self, threads: &[ThreadRecord]) -> (Facts, Vec<Finding>) {
        Self::end(self, threads)
    }
}

/// Signals that end a run.
pub(crate) trait Interruptions {
    /// Waits for at most `timeout_ms`; the number of a signal that came.
    fn wait(&self, timeout_ms: i32) -> Option<i32>;
}

impl Interruptions for Signals {
    fn wait(&self, timeout_ms: i32) -> Option<i32> {
        Self::wait(self, timeout_ms)
    }
}
