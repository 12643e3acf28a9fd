// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulated threads, signals, loads and disturbances.
//!
//! Context: COLD, tests only. Units: ns.

use std::cell::{Cell, RefCell};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tailbound_core::disturbance::{CpuTaken, DisturbanceRecord};
use tailbound_core::finding::{Finding, Impact};
use tailbound_core::plan::Plan;
use tailbound_core::record::{Clocks, Facts, ThreadRecord};
use tailbound_load::{LoadEnd, LoadSample, PhaseChange};
use tailbound_probe::{
    Finished, ProbeError, ProbeOutput, RawSamples, RecordSlot, Recorders, ThreadResult,
};
use tailbound_rt::cyclic::{self, LoopEnd, Schedule};
use tailbound_stats::random::Random;

use super::disk::Memory;
use super::fate::{Fate, FateOfLoad, MS, S};
use super::stage::{SimulatedPort, Stage, Wakes};
use crate::world::{Disturbances, Interruptions, LoadSet, Threads};

/// The run's clock when the warm-up begins.
const EPOCH_NS: i64 = 5_000 * S;
const SIGINT: i32 = 2;

struct One {
    slot: RecordSlot,
    recorders: Arc<Recorders>,
    wakes: Arc<Mutex<Wakes>>,
    thread: JoinHandle<LoopEnd>,
}

/// The measured threads.
pub(super) struct SimulatedThreads {
    stage: Arc<Stage>,
    start_ns: i64,
    all: Vec<One>,
}

impl SimulatedThreads {
    pub(super) fn begin(fate: &Fate, plan: &Plan, stop: &'static AtomicBool) -> Self {
        let n = usize::try_from(fate.threads).unwrap_or(1);
        let stage = Stage::new(EPOCH_NS - MS, n);
        let warm_n = plan.warm_up_ns / plan.interval_ns;
        let start_ns = EPOCH_NS + warm_n * plan.interval_ns;
        let all = tailbound_probe::slots(plan).into_iter().zip(0..).map(|(slot, i)| {
            let samples = if plan.raw { RawSamples::Kept } else { RawSamples::NotKept };
            let recorders = Arc::new(Recorders::new(samples).unwrap_or_else(|e| panic!("{e}")));
            if let Some(deadline) = plan.requirement.deadline_ns {
                recorders.measured.set_threshold_ns(deadline);
            }
            let wakes = Arc::new(Mutex::new(Wakes::new()));
            let mut port = SimulatedPort {
                stage: Arc::clone(&stage),
                thread: i,
                random: fate.random(1 + i as u64),
                stalls: fate.stalls,
                now_ns: EPOCH_NS - MS,
                sleeps: None,
                wakes: Arc::clone(&wakes),
                recorded: false,
                due_ns: 0,
            };
            let warm_up = Schedule {
                first_ns: EPOCH_NS + slot.phase_ns,
                interval_ns: plan.interval_ns,
                activations: warm_n.unsigned_abs(),
            };
            let measurement = Schedule {
                first_ns: start_ns + slot.phase_ns,
                activations: plan.activations,
                ..warm_up
            };
            let sleeps = fate.fails.filter(|f| f.0 == slot.thread).map(|f| f.1);
            let theirs = Arc::clone(&recorders);
            let thread = std::thread::spawn(move || {
                let mut ended = cyclic::run(&mut port, &warm_up, &theirs.warm_up, stop);
                if ended == LoopEnd::Complete {
                    (port.recorded, port.sleeps) = (true, sleeps);
                    ended = cyclic::run(&mut port, &measurement, &theirs.measured, stop);
                } else {
                    ended = LoopEnd::Stopped(0);
                }
                port.stage.end(port.thread);
                ended
            });
            One { slot, recorders, wakes, thread }
        });
        Self { start_ns, all: all.collect(), stage }
    }

    pub(super) fn stage(&self) -> Arc<Stage> {
        Arc::clone(&self.stage)
    }

    pub(super) fn wakes(&self) -> Vec<Arc<Mutex<Wakes>>> {
        self.all.iter().map(|one| Arc::clone(&one.wakes)).collect()
    }
}

impl Threads for SimulatedThreads {
    fn t_ns(&self) -> i64 {
        self.stage.now_ns() - self.start_ns
    }
    fn start_ns(&self) -> i64 {
        self.start_ns
    }
    fn epoch_ns(&self) -> i64 {
        EPOCH_NS
    }
    fn clocks_at_start(&self) -> Clocks {
        let same = self.start_ns;
        Clocks { monotonic_ns: same, boottime_ns: same, realtime_ns: same }
    }
    fn finished(&self) -> bool {
        self.stage.finished()
    }
    fn recorders(&self) -> impl Iterator<Item = (RecordSlot, &Recorders)> {
        self.all.iter().map(|one| (one.slot, &*one.recorders))
    }
    fn tid(&self, _: RecordSlot) -> Option<i32> {
        None
    }
    fn wake(&self) {
        self.stage.interrupt();
    }
    fn join(self) -> Result<(Vec<ThreadResult>, ProbeOutput), ProbeError> {
        let results = self.all.into_iter().map(|One { slot, recorders, thread, .. }| {
            let ended = thread.join().unwrap_or(LoopEnd::Failed(0, 0));
            ThreadResult { slot, recorders, finished: Finished::of(ended) }
        });
        Ok((results.collect(), ProbeOutput::default()))
    }
}

/// Moves the clock, late at times, and brings the signal of the run's fate.
pub(super) struct SimulatedSignals {
    stage: Arc<Stage>,
    memory: Memory,
    random: RefCell<Random>,
    late_looks: bool,
    signal_ns: Cell<Option<i64>>,
    looks: Cell<usize>,
    power_cut: usize,
}

impl SimulatedSignals {
    pub(super) fn new(fate: &Fate, stage: Arc<Stage>, memory: Memory) -> Self {
        let warm = fate.warm_up_ns / fate.interval_ns * fate.interval_ns;
        Self {
            stage,
            memory,
            random: RefCell::new(fate.random(0)),
            late_looks: fate.late_looks,
            signal_ns: Cell::new(fate.signal_ns.map(|t| EPOCH_NS + warm + t)),
            looks: Cell::new(0),
            power_cut: fate.power_cut,
        }
    }
}

impl Interruptions for SimulatedSignals {
    fn wait(&self, timeout_ms: i32) -> Option<i32> {
        self.looks.set(self.looks.get() + 1);
        if self.looks.get() == self.power_cut {
            self.memory.with(|content| {
                content.at_power_cut = content.placed.then(|| content.bytes.clone());
            });
        }
        let mut random = self.random.borrow_mut();
        let late = match random.below(10) {
            0 if self.late_looks => i64::try_from(random.below(4000)).unwrap_or(0) * MS,
            _ => 1 + i64::try_from(random.below(100_000)).unwrap_or(0),
        };
        let now = self.stage.now_ns();
        let until = now + i64::from(timeout_ms.max(0)) * MS + late;
        match self.signal_ns.get().filter(|at| *at <= until) {
            Some(at) => {
                self.signal_ns.set(None);
                self.stage.pass(at.max(now) + 1);
                Some(SIGINT)
            }
            None => {
                self.stage.pass(until);
                None
            }
        }
    }
}

/// At most one load.
pub(super) struct SimulatedLoads {
    fate: Option<FateOfLoad>,
    works: bool,
    dead: bool,
    polls: u64,
}

impl SimulatedLoads {
    pub(super) fn new(fate: &Fate) -> Self {
        Self { fate: fate.load.clone(), works: false, dead: false, polls: 0 }
    }
}

impl LoadSet for SimulatedLoads {
    fn next_change_ns(&self, t_ns: i64) -> Option<i64> {
        let fate = self.fate.as_ref()?;
        [fate.from_ns, fate.from_ns + fate.for_ns].into_iter().find(|at| *at > t_ns)
    }
    fn keep_phases(&mut self, t_ns: i64, end_ns: i64) -> Vec<PhaseChange> {
        let Some(fate) = &self.fate else { return Vec::new() };
        self.dead |= fate.dies_ns.is_some_and(|at| at <= t_ns);
        let into = (t_ns - fate.from_ns).rem_euclid(fate.every_ns);
        let on = t_ns >= fate.from_ns && t_ns < end_ns && into < fate.for_ns && !self.dead;
        if on == std::mem::replace(&mut self.works, on) {
            return Vec::new();
        }
        vec![PhaseChange { load: 0, spec: "simulated".to_owned(), began: on }]
    }
    fn poll(&mut self) -> Vec<LoadSample> {
        self.polls += 1;
        let sample = LoadSample {
            load: 0,
            name: "simulated".to_owned(),
            count: self.polls,
            unit: "rounds",
            span_ns: S,
            at_ns: 0,
        };
        if self.works { vec![sample] } else { Vec::new() }
    }
    fn stop(&mut self) -> Vec<LoadEnd> {
        self.works = false;
        Vec::new()
    }
    fn findings(&self) -> Vec<Finding> {
        let died = Finding::new("load-failed-0", Impact::Doubt, "load simulated failed: killed");
        if self.dead { vec![died] } else { Vec::new() }
    }
}

/// A CPU that goes away.
pub(super) struct SimulatedWatch {
    stage: Arc<Stage>,
    hotplug_ns: Option<i64>,
    told: bool,
}

impl SimulatedWatch {
    pub(super) fn new(fate: &Fate, stage: Arc<Stage>) -> Self {
        Self { stage, hotplug_ns: fate.hotplug_ns.map(|t| EPOCH_NS + t), told: false }
    }

    fn look(&mut self) -> Vec<Finding> {
        let now = self.stage.now_ns();
        if self.told || self.hotplug_ns.is_none_or(|at| at > now) {
            return Vec::new();
        }
        self.told = true;
        vec![Finding::new("cpu-offline", Impact::Unfit, "CPU 0 went offline")]
    }
}

impl Disturbances for SimulatedWatch {
    fn tick(&mut self) -> Vec<Finding> {
        self.look()
    }
    fn taken(&mut self, t_ns: i64, span_ns: i64) -> DisturbanceRecord {
        let cpus = vec![CpuTaken { cpu: 0, steal_ns: 10 * MS, ..CpuTaken::default() }];
        DisturbanceRecord { t_ns, span_ns, cpus, ..DisturbanceRecord::default() }
    }
    fn end(mut self, _: &[ThreadRecord]) -> (Facts, Vec<Finding>) {
        (Facts::new(), self.look())
    }
}
