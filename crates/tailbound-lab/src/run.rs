// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run in the lab: boot or resume, wait, read what came back.
//!
//! Context: COLD.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tailbound_core::envelope::{self, Envelope};
use tailbound_core::finding::{Finding, Impact};
use tailbound_core::lab::Tester;
use tailbound_core::limits;
use tailbound_core::record::Run;
use tailbound_core::runfile;
use tailbound_sys::given;

use crate::boot::{self, Booted, Ended, Progress, Snapshot};
use crate::cell::{Cell, Prepared};
use crate::diagnose;
use crate::error::LabError;
use crate::hash;
use crate::qemu::{Emulator, Lines};
use crate::store::Store;

/// Snapshots kept; each is about as large as what the guest's memory holds.
const SNAPSHOTS_MAX: usize = 24;

/// How a run is made, which its result does not depend on.
#[derive(Clone, Debug)]
pub struct Means<'a> {
    /// QEMU.
    pub emulator: &'a Emulator,
    /// The store.
    pub store: &'a Store,
    /// Begin from snapshots, and make them.
    pub snapshots: bool,
    /// The host's patience.
    pub host_limit_s: u64,
    /// Ends the work when set.
    pub stop: &'a AtomicBool,
}

/// What came of it.
#[derive(Debug)]
pub struct Made {
    /// The run.
    pub run: Run,
    /// The guest's console.
    pub console: Vec<u8>,
    /// What was done, for the curious; not part of the run.
    pub cost: Cost,
}

/// What it cost the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Until the guest took its job.
    pub ready: Option<Duration>,
    /// Until the end.
    pub host: Duration,
    /// Instructions the guest executed since power-on, as last seen.
    pub instructions: Option<u64>,
    /// Those that were executed for this run, without a snapshot's.
    pub executed: Option<u64>,
    /// CPU time of QEMU for them, its own start included.
    pub cpu: Option<Duration>,
    /// Did it begin from a snapshot?
    pub resumed: bool,
}

/// Makes one run.
///
/// # Errors
/// What is missing before the boot; the console's end and what it means where no run came back.
pub fn run(
    cell: &Cell,
    means: &Means<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Made, LabError> {
    let prepared = cell.prepare(means.emulator, means.store)?;
    means.store.sweep("boots");
    let folder = means.store.beside("boots")?;
    let path = |name: &str| folder.path().join(name);
    let (console, results, job, errors) =
        (path("console"), path("results"), path("job.json"), path("qemu.err"));
    fs::write(&job, &prepared.job).map_err(|e| LabError::file(&job, &e))?;
    let snapshot = snapshot_path(&prepared, means)?;
    let there = snapshot.as_deref().is_some_and(Path::is_file);
    let lines = Lines {
        console: &console,
        results: &results,
        job: cell.machine.stops.then_some(job.as_path()),
        incoming: None,
        errors: &errors,
    };
    let snapshot = match snapshot.as_deref() {
        Some(path) if there => Snapshot::Use(path),
        Some(path) => Snapshot::Make(path),
        None => Snapshot::None,
    };
    let patience = means.host_limit_s;
    let (emulator, setup, stop) = (means.emulator, &prepared.setup, means.stop);
    let mut booted = boot::boot(emulator, setup, &lines, snapshot, patience, stop, progress)?;
    if booted.ended == Ended::Standstill {
        // An emulator that hangs (seen once in some hundred boots) says nothing about the
        // guest: what it executes is the same the second time, or it stands still again.
        booted = boot::boot(emulator, setup, &lines, Snapshot::None, patience, stop, progress)?;
    }
    let console = given::end(&console, limits::CONSOLE_BYTES_MAX).unwrap_or_default();
    let results = given::read(&results, limits::RESULT_BYTES_MAX).unwrap_or_default();
    let envelope = envelope::read(&results);
    let run = read(&prepared, &envelope, &booted, &console)?;
    let cost = Cost {
        ready: booted.ready,
        host: booted.host,
        instructions: booted.instructions,
        executed: booted.work.map(|w| w.0),
        cpu: booted.work.map(|w| w.1),
        resumed: there,
    };
    Ok(Made { run, console, cost })
}

fn snapshot_path(prepared: &Prepared, means: &Means<'_>) -> Result<Option<PathBuf>, LabError> {
    if !means.snapshots || !prepared.setup.machine.stops || prepared.setup.kvm {
        return Ok(None);
    }
    let room = means.store.room("snapshots")?;
    let path = room.join(format!("{}.vmstate", prepared.key));
    if !path.is_file() {
        forget_oldest(&room);
    }
    Ok(Some(path))
}

/// Removes the oldest snapshots beyond what is kept: each can be made again.
fn forget_oldest(room: &Path) {
    let age = |path: &PathBuf| fs::metadata(path).and_then(|m| m.modified()).ok();
    let mut all: Vec<PathBuf> =
        fs::read_dir(room).into_iter().flatten().flatten().map(|e| e.path()).collect();
    all.sort_by_key(age);
    let surplus = (all.len() + 1).saturating_sub(SNAPSHOTS_MAX);
    for path in all.iter().take(surplus) {
        drop(fs::remove_file(path));
    }
}

fn read(
    prepared: &Prepared,
    envelope: &Envelope<'_>,
    booted: &Booted,
    console: &[u8],
) -> Result<Run, LabError> {
    let text = |name: &str| {
        envelope.file(name).map(|b| String::from_utf8_lossy(b).into_owned()).unwrap_or_default()
    };
    let mut words: Vec<String> = text("words").lines().map(str::to_owned).collect();
    words.extend(
        text("stderr")
            .lines()
            .rev()
            .take(8)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .map(str::to_owned),
    );
    words.extend(envelope.end.clone().filter(|s| s != "exit status 0"));
    let failed = || {
        let console = String::from_utf8_lossy(console);
        LabError::cannot(format!(
            "{}: {}",
            prepared.record.kernel.name,
            diagnose::explain(&booted.ended, &console, &words, booted.ready.is_some())
        ))
    };
    let tester = prepared.record.job.tester.as_ref();
    let mut run = match (tester, envelope.file("run"), envelope.file("tester")) {
        (None, Some(bytes), _) if !bytes.is_empty() => {
            runfile::read_run(bytes).map_err(|_| failed())?
        }
        (Some(tester), _, Some(bytes)) if !bytes.is_empty() => {
            imported(tester, bytes).map_err(|e| LabError::cannot(format!("{e}\n{}", failed())))?
        }
        _ => return Err(failed()),
    };
    let record = prepared.record.clone();
    let key = serde_json::to_vec(&record).map_err(LabError::cannot)?;
    run.header.id = format!("lab-{}", hash::of_bytes(&key).get(..16).unwrap_or_default());
    for word in text("words").lines() {
        run.findings.push(Finding::new("lab-guest", Impact::Notice, word));
    }
    run.findings.extend(doubts(prepared));
    run.header.lab = Some(Box::new(record));
    Ok(run)
}

/// What such a machine cannot tell.
fn doubts(prepared: &Prepared) -> Vec<Finding> {
    let record = &prepared.record;
    let mut found = Vec::new();
    if record.accelerator == "kvm" {
        found.push(
            Finding::new(
                "lab-kvm",
                Impact::Doubt,
                "the guest ran under KVM, in the time of a shared host",
            )
            .meaning(
                "These latencies are the host's as much as the guest's, and no two runs agree.",
            )
            .remedy("Leave --kvm away for figures that repeat."),
        );
    } else if record.smp > 1 {
        found.push(
            Finding::new("lab-smp", Impact::Doubt, format!("{} CPUs took turns in slices of virtual time", record.smp))
                .meaning("QEMU runs the CPUs of a counted guest one after the other: a wake-up waits for other CPUs' slices, which no machine does.")
                .remedy("Use --smp 1, or read docs/virtual-time.md for what more CPUs can tell."),
        );
    }
    found
}

fn imported(tester: &Tester, bytes: &[u8]) -> Result<Run, LabError> {
    let name = tester.command.first().map_or("tester", String::as_str);
    let format = tester
        .format
        .as_deref()
        .map(str::parse::<tailbound_import::Format>)
        .transpose()
        .map_err(LabError::usage)?;
    tailbound_import::import_with(format, name, bytes, &tailbound_import::Options::default())
        .map_err(LabError::cannot)
}
