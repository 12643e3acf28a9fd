// SPDX-License-Identifier: MIT OR Apache-2.0
//! One boot from power-on to its end, watched: the guest's stop, a snapshot there, its
//! job, and every way it can end.
//!
//! Units: ns of the guest (instructions × 2^shift), s of the host.
//! While a guest runs nobody asks it anything: a question wakes QEMU's main loop, which then
//! runs timers at a moment that the host chooses, and some boots on a loaded host were others (seen on
//! 7.2). Its instructions are counted where it stands still: at its stop and at its end.
//! The guest's own watchdogs are its first process and the kernel's lockup detector, both in
//! its own time; the host's are its patience, and a guest that executes nothing.
//! Source: QEMU qapi/replay.json (`query-replay`), qapi/run-state.json, qapi/migration.json.

use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tailbound_core::limits;
use tailbound_paths::log::Newest;
use tailbound_sys::process::Pid;

use crate::boot_files;
use crate::boot_folder::BootFolder;
use crate::cache::{self, CacheScope, Limits};
use crate::emulator::Emulator;
use crate::error::{GuestError, LabError, QemuError, SnapshotError};
use crate::qemu::Running;
use crate::qmp::{Heard, Qmp};
use crate::setup::Setup;
use crate::snapshot::{self, Place, Received};
use crate::store::Store;

/// How often the guest is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// Without any processor time for that long, a guest is stuck: idle time is skipped.
const STANDSTILL: Duration = Duration::from_secs(60);
/// QEMU's control line keeps back what follows an event of the watchdog for a second, by a timer of the
/// host's clock, and a guest that has such a timer executes in slices of the host's time.
const EVENT_TIMER: Duration = Duration::from_millis(1100);
/// A kernel that KVM runs is up within that time.
const KVM_BOOT_S: u64 = 60;
/// What a snapshot may hold beyond the guest's memory.
const STATE_BEYOND_MEMORY: u64 = 256 << 20;
/// What the guest says before it takes its job.
const READY: &str = "tailbound guest: ready";

/// How a boot ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The guest restarted, as it does when it is done.
    Restarted,
    /// Its snapshot was made, and nothing more was asked for.
    Saved,
    /// The kernel panicked.
    Panicked,
    /// The host's patience was over.
    HostLimit(u64),
    /// Its own time was over.
    Overtime,
    /// It executed nothing any more.
    Standstill,
    /// KVM did not bring it up in these seconds.
    KvmSilent(u64),
    /// QEMU ended by itself, with this output.
    Quit(String),
}

/// What a guest is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// From power-on to its job.
    Booting,
    /// Its state comes from a snapshot.
    Loading,
    /// A snapshot of it is made.
    Saving,
    /// It has its job.
    AtWork,
}

/// Where it is, for those who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What the guest is doing.
    pub phase: Phase,
    /// Where a watched guest is.
    pub newest: Newest,
}

/// A snapshot after boot.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Snapshot<'a> {
    /// None: boot to the end.
    None,
    /// Made here on the way, for this place.
    Make(&'a Store, &'a Place),
    /// Made here for this place, where the boot then ends.
    Only(&'a Store, &'a Place),
    /// Begin from this one.
    Use(&'a File),
}

/// What a boot left behind.
#[derive(Clone, Debug)]
pub struct Booted {
    /// How it ended.
    pub ended: Ended,
    /// Instructions executed as last seen; `None` under KVM.
    pub instructions: Option<u64>,
    /// Instructions that this QEMU executed and the CPU time it took for them, as last seen
    /// together.
    pub work: Option<(u64, Duration)>,
    /// The host's time until the guest took its job.
    pub ready: Option<Duration>,
    /// The host's time until the end.
    pub host: Duration,
    /// Why QEMU's threads were not kept in turn; `None`: they were, or KVM ran the guest.
    pub not_in_turn: Option<String>,
}

/// How it is known that a guest takes its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JobTaking {
    /// It lets its watchdog stop it at one instant of its time.
    AtWatchdog,
    /// It says so on its console.
    AtConsoleWord,
}

/// What a guest begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GuestOrigin {
    Kernel,
    Snapshot,
}

/// A boot that is watched.
pub(crate) struct Watch<'a> {
    pub(crate) qmp: Qmp,
    running: &'a Running,
    boot_folder: &'a BootFolder,
    state_bytes_max: u64,
    begun: Instant,
    host_limit_s: u64,
    kvm: bool,
    stop: &'a AtomicBool,
    progress: &'a mut dyn FnMut(Progress),
    phase: Phase,
    instructions: Option<u64>,
    /// Those of the snapshot, which another QEMU executed.
    inherited: u64,
    work: Option<(u64, Duration)>,
    cpu: Duration,
    moved: Instant,
    ready: Option<Duration>,
}

/// Boots, and stays until it ended.
///
/// # Errors
/// QEMU cannot be started or used; a signal came. What the guest does is no error here.
pub(crate) fn boot(
    emulator: &Emulator,
    setup: &Setup,
    boot_folder: &BootFolder,
    snapshot: Snapshot<'_>,
    host_limit_s: u64,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Booted, LabError> {
    let incoming = match snapshot {
        Snapshot::Use(file) => Some(file),
        _ => None,
    };
    let begun = Instant::now();
    let (mut running, stream) = Running::start(emulator, setup, boot_folder, incoming)?;
    let mut watch =
        Watch::open(&running, stream, setup, boot_folder, host_limit_s, stop, progress, begun)?;
    let not_in_turn = watch.begin(match incoming {
        Some(_) => GuestOrigin::Snapshot,
        None => GuestOrigin::Kernel,
    })?;
    let taking = match setup.machine.stops && incoming.is_none() {
        true => JobTaking::AtWatchdog,
        false => JobTaking::AtConsoleWord,
    };
    let ended = watch.until_end(taking, snapshot)?;
    let ended = match ended {
        Ended::Quit(_) => Ended::Quit(boot_folder.complaint()),
        other => other,
    };
    let booted = Booted {
        ended,
        instructions: watch.instructions,
        work: watch.work,
        ready: watch.ready,
        host: begun.elapsed(),
        not_in_turn,
    };
    running.end();
    Ok(booted)
}

/// What a boot that is to be stopped begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begin<'a> {
    pub(crate) emulator: &'a Emulator,
    pub(crate) setup: &'a Setup,
    pub(crate) boot_folder: &'a BootFolder,
    /// The snapshot.
    pub(crate) incoming: &'a File,
    pub(crate) host_limit_s: u64,
    pub(crate) stop: &'a AtomicBool,
}

/// What is done with a guest that stands still.
pub(crate) type OnStop<'a> = dyn FnMut(&mut Watch<'_>) -> Result<(), LabError> + 'a;

/// Goes on from a snapshot until the guest is stopped from within; what `then` does is done there, and QEMU ended.
///
/// # Errors
/// As [`boot`]; the guest ended before.
pub(crate) fn until_stopped(
    begin: Begin<'_>,
    progress: &mut dyn FnMut(Progress),
    then: &mut OnStop<'_>,
) -> Result<(), LabError> {
    let begun = Instant::now();
    let (mut running, stream) =
        Running::start(begin.emulator, begin.setup, begin.boot_folder, Some(begin.incoming))?;
    let (limit, stop) = (begin.host_limit_s, begin.stop);
    let mut watch = Watch::open(
        &running,
        stream,
        begin.setup,
        begin.boot_folder,
        limit,
        stop,
        progress,
        begun,
    )?;
    let _not_in_turn = watch.begin(GuestOrigin::Snapshot)?;
    loop {
        match watch.qmp.hear(LOOK) {
            Heard::Event(event) if event == "STOP" => break,
            Heard::Closed => {
                let said = begin.boot_folder.complaint();
                return Err(QemuError::Complaint { said }.into());
            }
            Heard::Event(event) if event == "SHUTDOWN" => {
                return Err(SnapshotError::Over.into());
            }
            _ => {
                if let Some(ended) = watch.look()? {
                    return Err(SnapshotError::NotReached { ended }.into());
                }
            }
        }
    }
    running.at_will();
    then(&mut watch)?;
    running.end();
    Ok(())
}

impl<'a> Watch<'a> {
    /// Opens the control line.
    #[expect(clippy::too_many_arguments, reason = "what a boot is given, once")]
    fn open(
        running: &'a Running,
        stream: UnixStream,
        setup: &Setup,
        boot_folder: &'a BootFolder,
        host_limit_s: u64,
        stop: &'a AtomicBool,
        progress: &'a mut dyn FnMut(Progress),
        begun: Instant,
    ) -> Result<Self, LabError> {
        let qmp = Qmp::new(stream).map_err(|e| match boot_folder.complaint() {
            said if said.is_empty() => e,
            said => QemuError::Complaint { said }.into(),
        })?;
        Ok(Self {
            qmp,
            running,
            boot_folder,
            state_bytes_max: (u64::from(setup.memory_mib) << 20) + STATE_BEYOND_MEMORY,
            begun,
            host_limit_s,
            kvm: setup.kvm,
            stop,
            progress,
            phase: Phase::Booting,
            instructions: None,
            inherited: 0,
            work: None,
            cpu: Duration::ZERO,
            moved: begun,
            ready: None,
        })
    }

    /// Lets the guest go; says why QEMU's threads are not kept in turn, where they are not.
    fn begin(&mut self, origin: GuestOrigin) -> Result<Option<String>, LabError> {
        let not_in_turn = if self.kvm { None } else { self.take_turns()? };
        match origin {
            GuestOrigin::Kernel => drop(self.qmp.ask("cont", &json!({}))?),
            GuestOrigin::Snapshot => {
                self.phase = Phase::Loading;
                self.resume()?;
            }
        }
        Ok(not_in_turn)
    }

    /// Has QEMU's main loop run only while its virtual CPUs wait; says why where it does not.
    fn take_turns(&mut self) -> Result<Option<String>, LabError> {
        let cpus = self.qmp.ask("query-cpus-fast", &json!({}))?;
        let thread = cpus.pointer("/0/thread-id").and_then(Value::as_i64);
        let thread = thread.and_then(|t| i32::try_from(t).ok()).map(Pid);
        let thread = thread.ok_or(QemuError::NoCpuThread)?;
        Ok(self.running.take_turns(thread))
    }

    /// Waits until the snapshot is loaded, then lets the guest go on.
    fn resume(&mut self) -> Result<(), LabError> {
        loop {
            let status = self.qmp.ask("query-status", &json!({}))?;
            if status.get("status").and_then(Value::as_str) != Some("inmigrate") {
                break;
            }
            self.look()?;
            let _ = self.qmp.hear(Duration::from_millis(20));
        }
        self.count();
        self.inherited = self.instructions.unwrap_or(0);
        self.go_on()
    }

    fn go_on(&mut self) -> Result<(), LabError> {
        self.takes_its_job();
        self.qmp.go_on()
    }

    fn takes_its_job(&mut self) {
        (self.ready, self.phase) = (Some(self.begun.elapsed()), Phase::AtWork);
    }

    fn until_end(&mut self, taking: JobTaking, snapshot: Snapshot<'_>) -> Result<Ended, LabError> {
        let make = match snapshot {
            Snapshot::Make(store, place) | Snapshot::Only(store, place) => Some((store, place)),
            _ => None,
        };
        loop {
            match self.qmp.hear(LOOK) {
                Heard::Event(event) => match event.as_str() {
                    "WATCHDOG" if taking == JobTaking::AtWatchdog && self.ready.is_none() => {
                        let since = Instant::now();
                        self.phase = Phase::Saving;
                        self.asleep()?;
                        match make {
                            Some((store, place)) => self.save(store, place)?,
                            // Saving brings some devices up to date, which the guest could see:
                            // so a run without a snapshot is saved as well, to nowhere.
                            None if !self.kvm => self.migrate(None).map(drop)?,
                            None => {}
                        }
                        self.count();
                        if matches!(snapshot, Snapshot::Only(..)) {
                            return Ok(Ended::Saved);
                        }
                        while since.elapsed() < EVENT_TIMER {
                            self.look()?;
                            let _ = self.qmp.hear(EVENT_TIMER.saturating_sub(since.elapsed()));
                        }
                        self.go_on()?;
                    }
                    // It is stopped there, and has sent everything.
                    "SHUTDOWN" => {
                        self.count();
                        let panicked = self.console_contains("Kernel panic - not syncing");
                        return Ok(if panicked { Ended::Panicked } else { Ended::Restarted });
                    }
                    _ => {}
                },
                Heard::Closed => return Ok(Ended::Quit(String::new())),
                Heard::Silence => {
                    if taking == JobTaking::AtConsoleWord
                        && self.ready.is_none()
                        && self.console_contains(READY)
                    {
                        self.takes_its_job();
                    }
                    if let Some(ended) = self.look()? {
                        return Ok(ended);
                    }
                }
            }
        }
    }

    /// Were all its CPUs asleep when it was stopped? Only then was that the same instant as always.
    fn asleep(&mut self) -> Result<(), LabError> {
        let words = json!({"command-line": "info registers -a"});
        let answer = self.qmp.ask("human-monitor-command", &words)?;
        let awake = answer.as_str().is_some_and(|text| text.contains("HLT=0"));
        if awake && !self.kvm {
            return Err(SnapshotError::Awake.into());
        }
        Ok(())
    }

    /// Reads QEMU's instruction count; only while the guest is stopped.
    fn count(&mut self) {
        // KVM counts nothing and answers 0.
        let answer = self.qmp.ask("query-replay", &json!({})).ok().filter(|_| !self.kvm);
        let now = answer.and_then(|a| a.get("icount").and_then(Value::as_u64));
        self.instructions = now.or(self.instructions);
        if let (Some(now), Some(cpu)) = (now, self.running.cpu()) {
            self.work = Some((now.saturating_sub(self.inherited), cpu));
        }
    }

    /// Was the work ended?
    pub(crate) fn interrupted(&self) -> Result<(), LabError> {
        if self.stop.load(Ordering::Relaxed) { Err(LabError::Interrupted) } else { Ok(()) }
    }

    /// The watchdogs' look, from outside.
    fn look(&mut self) -> Result<Option<Ended>, LabError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        let cpu = self.running.cpu().unwrap_or_default();
        if cpu != self.cpu {
            (self.cpu, self.moved) = (cpu, Instant::now());
        }
        for line in [boot_files::CONSOLE, boot_files::RESULTS] {
            if self
                .boot_folder
                .path(line)
                .metadata()
                .is_ok_and(|m| m.len() > limits::RESULT_BYTES_MAX)
            {
                let most_mib = limits::RESULT_BYTES_MAX >> 20;
                return Err(GuestError::TooMuch { most_mib, line }.into());
            }
        }
        let host = self.begun.elapsed();
        let at_work = self.phase == Phase::AtWork;
        let newest = if at_work { self.boot_folder.newest() } else { Newest::default() };
        (self.progress)(Progress { phase: self.phase, newest });
        Ok(if self.kvm && self.ready.is_none() && host.as_secs() > KVM_BOOT_S {
            Some(Ended::KvmSilent(KVM_BOOT_S))
        } else if self.boot_folder.overtime()? {
            Some(Ended::Overtime)
        } else if host.as_secs() > self.host_limit_s {
            Some(Ended::HostLimit(self.host_limit_s))
        } else if !self.kvm && self.moved.elapsed() > STANDSTILL {
            Some(Ended::Standstill)
        } else {
            None
        })
    }

    /// Keeps the machine's state at `place`.
    fn save(&mut self, store: &Store, place: &Place) -> Result<(), LabError> {
        // A search makes one for each variant: all of them stay within the limit while it goes on. What cannot be removed is
        // told where the next command begins.
        let _left = cache::prune(store, Limits::of_environment()?, CacheScope::Remade);
        let making = place.begin(store)?;
        let received = self.migrate(Some(making.file()))?;
        making.finish(&received)
    }

    /// Has QEMU send its state, to be written to `file` or to be forgotten.
    pub(crate) fn migrate(&mut self, file: Option<&File>) -> Result<Received, LabError> {
        let listener = self.boot_folder.listen()?;
        let (over, most) = (AtomicBool::new(false), self.state_bytes_max);
        std::thread::scope(|scope| {
            let receiver = scope.spawn(|| snapshot::receive(&listener, file, most, &over));
            let sent = self.send();
            over.store(true, Ordering::Relaxed);
            let received = receiver.join().unwrap_or_else(|_| Err(io::Error::other("panicked")));
            let failed = |e| LabError::from(SnapshotError::Unsaved(e));
            match (sent, received) {
                (Ok(()), received) => received.map_err(failed),
                (Err(LabError::Interrupted), _) => Err(LabError::Interrupted),
                (Err(_), Err(e)) => Err(failed(e)),
                (Err(e), Ok(_)) => Err(e),
            }
        })
    }

    fn send(&mut self) -> Result<(), LabError> {
        self.qmp.ask("migrate", &json!({ "uri": format!("unix:{}", boot_files::STATE) }))?;
        loop {
            let state = self.qmp.ask("query-migrate", &json!({}))?;
            match state.get("status").and_then(Value::as_str) {
                Some("completed") => return Ok(()),
                Some("failed") => {
                    return Err(SnapshotError::Unsent.into());
                }
                _ => {}
            }
            self.look()?;
            let _ = self.qmp.hear(Duration::from_millis(20));
        }
    }

    /// Does the console output contain `words`?
    fn console_contains(&self, words: &str) -> bool {
        String::from_utf8_lossy(&self.boot_folder.console()).contains(words)
    }
}
