// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole runs in simulated time: the real supervisor, journal, records and loops, with a clock,
//! threads, signals, loads, disturbances and a disk that are played from a seed.
//!
//! Context: COLD, tests only. Units: ns.
//! One seed is one run (`fate`). The measured loops are those of `tailbound-rt`; each has a
//! thread of its own, and all of them stand still while the supervisor looks (`stage`), so that a
//! seed gives the same run on any machine. What such a run must fulfil is in `tests`.
//! Not here: the start of a run (inventory, loads, locks), which needs a machine: `tests/cli`.
//! Source: the deterministic simulation of FoundationDB and TigerBeetle.

mod disk;
mod fate;
mod parts;
mod stage;
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tailbound_core::Run;
use tailbound_core::runfile::read_run;
use tailbound_host::Root;

use crate::error::RunError;
use crate::journal::Journal;
use crate::output::Output;
use crate::run::finish;
use crate::session::Session;
use crate::supervise::{Subject, Supervisor};
use crate::view::View;
use crate::world::World;
use disk::{Memory, SimulatedDisk};
use fate::Fate;
use parts::{SimulatedLoads, SimulatedSignals, SimulatedThreads, SimulatedWatch};
use stage::Wakes;

struct Simulated;

impl World for Simulated {
    type Threads = SimulatedThreads;
    type Loads = SimulatedLoads;
    type Watch = SimulatedWatch;
    type Signals = SimulatedSignals;
}

/// What became of a simulated run.
struct Played {
    result: Result<(Run, Option<PathBuf>), RunError>,
    /// The wake-ups of each thread in the measurement: due, woken.
    wakes: Vec<Wakes>,
    memory: Memory,
    /// The samples of each thread, where a viewer takes them.
    shown: Vec<Vec<i64>>,
}

const PATH: &str = "simulated.tailbound.jsonl";

const HEADER: &str = concat!(
    r#"{"type":"header","schema":"tailbound-run/1","tool":"t","id":"i","started":"s","command":[],"#,
    r#""plan":{"probe":"cyclic","interval_ns":1000000,"activations":0,"warm_up_ns":0,"cpus":"0","#,
    r#""policy":"other","clock":"monotonic","means":"nanosleep","loads":[],"requirement":{}},"machine":{}}"#
);

/// Plays the run of `fate`.
fn play(fate: &Fate) -> Played {
    let mut header = read_run(HEADER.as_bytes()).unwrap_or_else(|e| panic!("{e}")).header;
    fate.apply(&mut header.plan);
    let session = Session {
        plan: header.plan.clone(),
        findings: Vec::new(),
        command: Vec::new(),
        root: Root::at("/nonexistent"),
        exe: PathBuf::new(),
        loads_optional: false,
        inventory_late: false,
        virtual_time: false,
        refresh_ms: fate.refresh_ms,
        round: None,
        purpose: None,
        machine: None,
        samples: fate.samples(),
        begin_at_ns: None,
        actions: crate::actions::Actions::default(),
    };
    let disk = SimulatedDisk::new(fate);
    let memory = disk.memory();
    let output = Output::on(Path::new(PATH), Box::new(disk)).unwrap_or_else(|e| panic!("{e}"));
    let mut journal = Journal::new(output, header);
    journal.begin();
    // One flag a run: runs are played beside each other.
    let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    let running = SimulatedThreads::begin(fate, &session.plan, stop);
    let stage = running.stage();
    let wakes = running.wakes();
    let signals = SimulatedSignals::new(fate, Arc::clone(&stage), memory.clone());
    let mut loads = SimulatedLoads::new(fate);
    let watch = SimulatedWatch::new(fate, stage);
    let subject = Subject::<Simulated> { running, watch, loads: &mut loads, stop };
    let mut supervisor = Supervisor::new(&session, subject, journal);
    let mut shown = vec![Vec::new(); wakes.len()];
    supervisor.watch_over(&signals, &mut |view| {
        if let View::Samples(samples) = view
            && let Some(of) = usize::try_from(samples.thread).ok().and_then(|i| shown.get_mut(i))
        {
            of.extend_from_slice(samples.errors_ns);
        }
    });
    let result = supervisor
        .into_watched()
        .and_then(|watched| finish(&session, watched, &mut loads, None, &signals, &mut |_| ()));
    let wakes = wakes.iter().map(|w| w.lock().map(|w| w.clone()).unwrap_or_default()).collect();
    Played { result, wakes, memory, shown }
}
