// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run in the lab: boot or resume, wait, read what came back.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::{Value, json};
use tailbound_core::Run;
use tailbound_core::envelope::{self, Envelope};
use tailbound_core::finding::{Finding, Impact};
use tailbound_core::lab::{Job, Tester};
use tailbound_core::limits;
use tailbound_core::number::Real as _;
use tailbound_core::runfile;
use tailbound_sys::given;

use crate::boot::{self, Booted, Ended, Progress, Snapshot};
use crate::boot_files;
use crate::boot_folder::BootFolder;
use crate::cell::{Cell, Prepared};
use crate::diagnose::{self, GuestStage};
use crate::emulator::Emulator;
use crate::error::{FileError, GuestError, LabError, SnapshotError, TesterError, WatchError};
use crate::hash;
use crate::slices;
use crate::snapshot::Place;
use crate::store::Store;

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

/// What watches a guest from within QEMU.
#[derive(Clone, Copy, Debug)]
pub struct Watched<'a> {
    /// A plugin of QEMU.
    pub plugin: &'a [u8],
    /// What it is told.
    pub plan: &'a [u8],
    /// Most bytes that it writes.
    pub log_bytes: u64,
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
    /// What was found wrong on the way and mended.
    pub notes: Vec<String>,
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

impl Cost {
    /// For scripts. It stands beside a run and never in its file, which is the same on every host.
    #[must_use]
    pub fn json(&self) -> Value {
        let seconds = |d: Option<Duration>| d.map(|d| d.as_secs_f64());
        let rate = match (self.executed, seconds(self.cpu)) {
            (Some(n), Some(s)) if s > 0.0 => Some(n.real() / s),
            _ => None,
        };
        json!({
            "resumed": self.resumed,
            "ready_s": seconds(self.ready),
            "host_s": self.host.as_secs_f64(),
            "cpu_s": seconds(self.cpu),
            "instructions": self.instructions,
            "executed": self.executed,
            "executed_per_cpu_s": rate,
        })
    }
}

impl Made {
    /// One line about it.
    #[must_use]
    pub fn summary(&self, title: &str) -> String {
        let from = if self.cost.resumed { "from a snapshot" } else { "from power-on" };
        let count = self.cost.instructions.map_or_else(String::new, |n| {
            let (whole, hundredths) = (n / 1_000_000_000, n / 10_000_000 % 100);
            format!(", after {whole}.{hundredths:02} G guest instructions")
        });
        format!("{title}: done {from} in {:.1} s{count}", self.cost.host.as_secs_f64())
    }
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
    prepared(&cell.prepare(means.emulator)?, means, progress)
}

/// As [`run`], of what is prepared.
///
/// # Errors
/// As [`run`].
pub fn prepared(
    prepared: &Prepared,
    means: &Means<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Made, LabError> {
    to_its_end(prepared, means, None, progress)?.made(prepared)
}

/// As [`prepared`], while a plugin watches the run; second value: its log.
///
/// # Errors
/// As [`run`]; and what the plugin complained of.
pub fn prepared_watched(
    prepared: &Prepared,
    means: &Means<'_>,
    watched: Watched<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Made, File), LabError> {
    let mut ended = to_its_end(prepared, means, Some(watched), progress)?;
    let log = ended.log.take().ok_or(WatchError::NoLog)?;
    Ok((ended.made(prepared)?, log))
}

/// Files of the guest as it is when it takes its job: name and content.
///
/// # Errors
/// As [`run`].
pub fn collect(
    cell: &Cell,
    means: &Means<'_>,
    files: &[String],
    progress: &mut dyn FnMut(Progress),
) -> Result<BTreeMap<String, Vec<u8>>, LabError> {
    let job = Job {
        collect: files.to_vec(),
        limit_s: cell.job.limit_s,
        // The same guest up to its job, so that one snapshot serves both.
        begin_after_ns: cell.job.begin_after_ns,
        ..Job::default()
    };
    let mut prepared = Cell { job, ..cell.clone() }.prepare(means.emulator)?;
    // Nothing is timed, and megabytes sent in short slices would take minutes. The snapshot is the same.
    prepared.setup.slice_us = 0;
    let ended = to_its_end(&prepared, means, None, progress)?;
    let envelope = envelope::read(&ended.results);
    let got = files.iter().filter_map(|f| Some((f.clone(), envelope.file(f)?.to_vec())));
    let got: BTreeMap<String, Vec<u8>> = got.collect();
    if got.is_empty() {
        return Err(ended.failed(&prepared, &[]).into());
    }
    Ok(got)
}

/// A boot that is over.
#[derive(Debug)]
struct Over {
    booted: Booted,
    resumed: bool,
    console: Vec<u8>,
    results: Vec<u8>,
    notes: Vec<String>,
    log: Option<File>,
}

impl Over {
    fn made(self, prepared: &Prepared) -> Result<Made, LabError> {
        if self.booted.ended == Ended::Overtime {
            return Err(self.failed(prepared, &[]).into());
        }
        let envelope = envelope::read(&self.results);
        let run = read(prepared, &envelope, &self)?;
        let booted = &self.booted;
        let cost = Cost {
            ready: booted.ready,
            host: booted.host,
            instructions: booted.instructions,
            executed: booted.work.map(|w| w.0),
            cpu: booted.work.map(|w| w.1),
            resumed: self.resumed,
        };
        Ok(Made { run, console: self.console, cost, notes: self.notes })
    }

    fn failed(&self, prepared: &Prepared, words: &[String]) -> GuestError {
        let console = String::from_utf8_lossy(&self.console);
        let stage = match self.booted.ready {
            Some(_) => GuestStage::AtWork,
            None => GuestStage::Booting,
        };
        GuestError::NoResult {
            kernel: prepared.record.kernel.name.clone(),
            why: diagnose::explain(&self.booted.ended, &console, words, stage),
        }
    }
}

fn to_its_end(
    prepared: &Prepared,
    means: &Means<'_>,
    watched: Option<Watched<'_>>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Over, LabError> {
    let setup = &prepared.setup;
    let mut boot_folder = BootFolder::make(means.store, setup, &prepared.job)?;
    if let Some(w) = watched {
        boot_folder.watch(w.plugin, w.plan, w.log_bytes)?;
    }
    let guest = Guest { prepared, means, boot_folder: &boot_folder };
    let mut notes = Vec::new();
    let (booted, resumed) = if setup.slice_us > 0 {
        guest.in_slices(&mut notes, progress)?
    } else {
        guest.at_once(&mut notes, progress)?
    };
    let console = boot_folder.console();
    let results = given::read(&boot_folder.path(boot_files::RESULTS), limits::RESULT_BYTES_MAX);
    let results = results.unwrap_or_default();
    let log = watched.map(|_| boot_folder.log()).transpose()?;
    let mut booted = booted;
    // It may have come to its end before anybody looked: what is over does not hang on that.
    if boot_folder.overtime()? {
        booted.ended = Ended::Overtime;
    }
    // Where what it sent does not come to its end, and the disk is full, nothing is known of the guest.
    if booted.ended != Ended::Overtime
        && envelope::read(&results).end.is_none()
        && let Some(full) = boot_folder.full(means.store)
    {
        return Err(full.into());
    }
    Ok(Over { booted, resumed, console, results, notes, log })
}

/// One guest that is to be brought to its end.
struct Guest<'a> {
    prepared: &'a Prepared,
    means: &'a Means<'a>,
    boot_folder: &'a BootFolder,
}

impl Guest<'_> {
    fn boot(
        &self,
        snapshot: Snapshot<'_>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Booted, LabError> {
        let (means, setup) = (self.means, &self.prepared.setup);
        let patience = means.host_limit_s;
        boot::boot(
            means.emulator,
            setup,
            self.boot_folder,
            snapshot,
            patience,
            means.stop,
            progress,
        )
    }

    /// From a snapshot where there is one, else from power-on, and a snapshot is made on the way; second value: was it
    /// from a snapshot?
    fn at_once(
        &self,
        notes: &mut Vec<String>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Booted, bool), LabError> {
        let place = place(self.prepared, self.means)?;
        let there = place.as_ref().and_then(|p| p.open(&mut |note| notes.push(note)));
        let make = || match &place {
            Some(place) => Snapshot::Make(self.means.store, place),
            None => Snapshot::None,
        };
        let mut resumed = there.is_some();
        let mut booted = match &there {
            Some(file) => self.boot(Snapshot::Use(file), progress),
            None => self.boot(make(), progress),
        };
        if let (true, Some(why), Some(place)) = (resumed, refused(&booted), &place) {
            place.forget(&not_taken(&why), &mut |n| notes.push(n));
            resumed = false;
            booted = self.boot(make(), progress);
        }
        if let Some(why) = emulator_failed(&booted) {
            notes.push(begun_anew(&why));
            resumed = false;
            booted = self.boot(Snapshot::None, progress);
        }
        Ok((booted?, resumed))
    }

    /// As [`Self::at_once`], where slices are short from the job on: what made the snapshot ends there, as only a QEMU that
    /// goes on from one has the timer that ends slices.
    fn in_slices(
        &self,
        notes: &mut Vec<String>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Booted, bool), LabError> {
        let store = self.means.store;
        // Without snapshots it is one of this run's own.
        let own = store.beside("boots")?;
        let place = match place(self.prepared, self.means)? {
            Some(place) => place,
            None => Place::within(own.path()),
        };
        let mut resumed = true;
        // The second time after a snapshot that was not taken, the third after a standstill.
        for nth in 0..2 {
            let there = place.open(&mut |note| notes.push(note));
            let file = match there {
                Some(file) => file,
                None => {
                    resumed = false;
                    let booted = self.boot(Snapshot::Only(store, &place), progress);
                    if let Some(why) = emulator_failed(&booted).filter(|_| nth == 0) {
                        notes.push(begun_anew(&why));
                        continue;
                    }
                    let booted = booted?;
                    match (&booted.ended, place.open(&mut |note| notes.push(note))) {
                        (Ended::Saved, Some(file)) => file,
                        // Another run, whose limit is lower, has removed it already.
                        (Ended::Saved, None) => continue,
                        _ => return Ok((booted, false)),
                    }
                }
            };
            let booted = self.boot(Snapshot::Use(&file), progress);
            let why = refused(&booted);
            match (booted, why) {
                (Ok(booted), None) if booted.ended != Ended::Standstill => {
                    return Ok((booted, resumed));
                }
                (_, Some(why)) => place.forget(&not_taken(&why), &mut |n| notes.push(n)),
                (Err(e), None) => return Err(e),
                (Ok(_), None) => {}
            }
        }
        let file = place.open(&mut |note| notes.push(note));
        let file = file.ok_or(SnapshotError::NotTaken)?;
        self.boot(Snapshot::Use(&file), progress).map(|booted| (booted, resumed))
    }
}

/// Why QEMU does not take a snapshot, which would fail every later run too.
fn refused(booted: &Result<Booted, LabError>) -> Option<String> {
    match booted {
        Err(LabError::Interrupted) => None,
        Err(e) => Some(e.to_string()),
        Ok(Booted { ended: Ended::Quit(why), .. }) => Some(why.clone()),
        Ok(_) => None,
    }
}

/// Why the emulator did not bring a guest to its end. It hangs once in some hundred boots, and a host that is short of memory
/// kills it: that says nothing of the guest. What a guest executes is the same the second time, or it fails again.
fn emulator_failed(booted: &Result<Booted, LabError>) -> Option<String> {
    match booted {
        Ok(Booted { ended: ended @ (Ended::Quit(_) | Ended::Standstill), .. }) => {
            Some(diagnose::ending(ended))
        }
        Err(
            e @ (LabError::Qemu(_)
            | LabError::Snapshot(SnapshotError::Unsaved(_) | SnapshotError::Unsent)),
        ) => Some(e.to_string()),
        Ok(_) | Err(_) => None,
    }
}

fn begun_anew(why: &str) -> String {
    format!("{why}; the guest is booted once more")
}

fn not_taken(why: &str) -> String {
    format!("QEMU does not go on from it ({why})")
}

/// Where this cell's snapshot is, or will be.
pub(crate) fn place(prepared: &Prepared, means: &Means<'_>) -> Result<Option<Place>, LabError> {
    if !means.snapshots || !prepared.setup.machine.stops || prepared.setup.kvm {
        return Ok(None);
    }
    Place::of(means.store, &prepared.key).map(Some)
}

fn read(prepared: &Prepared, envelope: &Envelope<'_>, over: &Over) -> Result<Run, LabError> {
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
    let failed = || over.failed(prepared, &words);
    let tester = prepared.record.job.tester.as_ref();
    let mut run = match (tester, envelope.file("run"), envelope.file("tester")) {
        (None, Some(bytes), _) if !bytes.is_empty() => {
            runfile::read_run(bytes).map_err(|_| failed())?
        }
        (Some(tester), _, Some(bytes)) if !bytes.is_empty() => imported(tester, bytes)
            .map_err(|source| GuestError::TesterResult { source, otherwise: Box::new(failed()) })?,
        _ => return Err(failed().into()),
    };
    let record = prepared.record.clone();
    let key = serde_json::to_vec(&record).map_err(FileError::Record)?;
    run.header.id = format!("lab-{}", hash::of_bytes(&key).get(..16).unwrap_or_default());
    for word in text("words").lines() {
        run.findings.push(Finding::new("lab-guest", Impact::Notice, word));
    }
    run.findings.extend(tuned(prepared, envelope));
    run.findings.extend(doubts(prepared));
    slices::say(&mut run, &record, envelope.file("shares").unwrap_or_default());
    run.findings.extend(over.booted.not_in_turn.as_deref().map(threads_at_will));
    run.header.lab = Some(Box::new(record));
    Ok(run)
}

/// What the guest says of the profile that it applied.
fn tuned(prepared: &Prepared, envelope: &Envelope<'_>) -> Option<Finding> {
    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct Answer {
        made: usize,
        skipped: Vec<serde_json::Value>,
        plan: Plan,
    }
    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct Plan {
        left_out: Vec<LeftOut>,
    }
    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct LeftOut {
        setting: String,
        why: String,
        harmless: bool,
    }
    let job = prepared.record.job.tune.as_ref()?;
    let answer: Answer = serde_json::from_slice(envelope.file("tune")?).unwrap_or_default();
    let missing: Vec<String> = answer
        .plan
        .left_out
        .iter()
        .filter(|l| !l.harmless)
        .map(|l| format!("{}: {}", l.setting, l.why))
        .collect();
    Some(job.applied(answer.made, answer.skipped.len(), &missing))
}

/// What such a machine cannot tell.
fn doubts(prepared: &Prepared) -> Vec<Finding> {
    let record = &prepared.record;
    let mut found = Vec::new();
    if record.accelerator == "kvm" {
        found.push(Finding::listed(
            "lab-kvm",
            Impact::Doubt,
            "the guest ran under KVM, in real time on a shared host",
        ));
    }
    found
}

/// QEMU's threads race: what that does to figures.
fn threads_at_will(why: &str) -> Finding {
    let what = format!("QEMU's main loop could not be kept from its virtual CPU ({why})");
    Finding::listed("lab-threads", Impact::Doubt, what)
}

fn imported(tester: &Tester, bytes: &[u8]) -> Result<Run, TesterError> {
    let name = tester.command.first().map_or("tester", String::as_str);
    let format =
        tester.format.as_deref().map(str::parse::<tailbound_import::Format>).transpose()?;
    let options = tailbound_import::Options::default();
    Ok(tailbound_import::import_with(format, name, bytes, &options).map_err(Box::new)?)
}
