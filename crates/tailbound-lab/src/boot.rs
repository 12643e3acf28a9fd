// SPDX-License-Identifier: MIT OR Apache-2.0
//! One boot from power-on to its end, watched: the guest's stop, a snapshot there, its
//! job, and every way it can end.
//!
//! Context: COLD. Units: ns of the guest (instructions × 2^shift), s of the host.
//! Two watchdogs: the guest's own time, read as QEMU's instruction count, and the host's.
//! Source: QEMU qapi/replay.json (`query-replay`), qapi/run-state.json, qapi/migration.json.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::error::LabError;
use crate::qemu::{Emulator, Lines, Running, Setup, quoted};
use crate::qmp::{ENDING, Heard, Qmp};
use crate::store::unique;

/// How often the guest is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// Without one instruction executed for that long, a guest is stuck.
const STANDSTILL: Duration = Duration::from_secs(60);
/// A kernel that KVM runs is up within that time.
const KVM_BOOT_S: u64 = 60;
/// Times a panicking kernel is let go on, to print and restart.
const PANICS_MAX: u32 = 8;

/// How a boot ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The guest restarted, as it does when it is done.
    Restarted,
    /// The kernel panicked.
    Panicked,
    /// Its virtual time was over.
    VirtualLimit(u64),
    /// The host's patience was over.
    HostLimit(u64),
    /// It executed nothing any more.
    Standstill,
    /// KVM did not bring it up in these seconds.
    KvmSilent(u64),
    /// QEMU ended by itself: what it said.
    Quit(String),
}

/// Where it is, for those who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Did the guest take its job?
    pub at_work: bool,
    /// Its time since power-on; `None` under KVM.
    pub virtual_ns: Option<u64>,
    /// The host's time since the start.
    pub host: Duration,
}

/// Patience with a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Its own time, from power-on.
    pub virtual_s: u64,
    /// The host's.
    pub host_s: u64,
}

/// A snapshot after boot.
#[derive(Clone, Copy, Debug)]
pub enum Snapshot<'a> {
    /// None: boot to the end.
    None,
    /// Made here on the way.
    Make(&'a Path),
    /// Begin from this one.
    Use(&'a Path),
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
}

struct Watch<'a> {
    qmp: Qmp,
    running: &'a Running,
    begun: Instant,
    limits: Limits,
    shift: u8,
    kvm: bool,
    stop: &'a AtomicBool,
    progress: &'a mut dyn FnMut(Progress),
    instructions: Option<u64>,
    /// Those of the snapshot, which another QEMU executed.
    inherited: u64,
    work: Option<(u64, Duration)>,
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
    lines: &Lines<'_>,
    snapshot: Snapshot<'_>,
    limits: Limits,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Booted, LabError> {
    let incoming = match snapshot {
        Snapshot::Use(path) => Some(path),
        _ => None,
    };
    let lines = Lines { incoming, ..lines.clone() };
    let begun = Instant::now();
    let (mut running, stream) = Running::start(emulator, setup, &lines)?;
    let opened = Qmp::new(stream).map_err(|e| match running.complaint() {
        said if said.is_empty() => e,
        said => LabError::cannot(said),
    })?;
    let mut watch = Watch {
        qmp: opened,
        running: &running,
        begun,
        limits,
        shift: setup.shift,
        kvm: setup.kvm,
        stop,
        progress,
        instructions: None,
        inherited: 0,
        work: None,
        moved: begun,
        ready: None,
    };
    if incoming.is_some() {
        watch.resume()?;
    }
    let make = match snapshot {
        Snapshot::Make(path) => Some(path),
        _ => None,
    };
    let ended = watch.until_end(setup.machine.stops && incoming.is_none(), make, lines.console)?;
    let ended = match ended {
        Ended::Quit(_) => Ended::Quit(running.complaint()),
        other => other,
    };
    let booted = Booted {
        ended,
        instructions: watch.instructions,
        work: watch.work,
        ready: watch.ready,
        host: begun.elapsed(),
    };
    running.end();
    Ok(booted)
}

impl Watch<'_> {
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
        self.look()?;
        self.inherited = self.instructions.unwrap_or(0);
        self.go_on()
    }

    fn go_on(&mut self) -> Result<(), LabError> {
        self.ready = Some(self.begun.elapsed());
        self.qmp.ask("cont", &json!({})).map(drop)
    }

    fn until_end(
        &mut self,
        stops: bool,
        make: Option<&Path>,
        console: &Path,
    ) -> Result<Ended, LabError> {
        let (mut panics, mut restarted): (u32, Option<Instant>) = (0, None);
        loop {
            match self.qmp.hear(LOOK) {
                Heard::Event(event) => match event.as_str() {
                    "GUEST_PANICKED" if stops && self.ready.is_none() && is_ready(console) => {
                        if let Some(path) = make {
                            self.save(path)?;
                        }
                        self.go_on()?;
                    }
                    "GUEST_PANICKED" => {
                        panics += 1;
                        if panics > PANICS_MAX {
                            return Ok(Ended::Panicked);
                        }
                        // It has not printed yet: its last words come when it goes on.
                        self.qmp.ask("cont", &json!({}))?;
                    }
                    "SHUTDOWN" => restarted = Some(Instant::now()),
                    _ => {}
                },
                Heard::Closed if panics > 0 => return Ok(Ended::Panicked),
                Heard::Closed if restarted.is_some() => return Ok(Ended::Restarted),
                Heard::Closed => return Ok(Ended::Quit(String::new())),
                // Everything was sent before; QEMU 7.2 waits for itself for ever where a question
                // meets its end, so it is asked no more, and ended.
                Heard::Silence if restarted.is_some() => {
                    if restarted.is_some_and(|since| since.elapsed() > ENDING) {
                        return Ok(if panics > 0 { Ended::Panicked } else { Ended::Restarted });
                    }
                }
                Heard::Silence => {
                    if !stops && self.ready.is_none() && is_ready(console) {
                        self.ready = Some(self.begun.elapsed());
                    }
                    if let Some(ended) = self.look()? {
                        return Ok(ended);
                    }
                }
            }
        }
    }

    /// The watchdogs' look.
    fn look(&mut self) -> Result<Option<Ended>, LabError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        let now = match self.qmp.ask("query-replay", &json!({})) {
            // KVM counts nothing and answers 0.
            Ok(answer) => answer.get("icount").and_then(Value::as_u64).filter(|_| !self.kvm),
            // A QEMU that is ending does not answer, which the next look hears; one that hangs
            // does not either, and stands still.
            Err(_) => self.instructions,
        };
        if self.kvm || now != self.instructions {
            self.moved = Instant::now();
        }
        self.instructions = now.or(self.instructions);
        if let (Some(now), Some(cpu)) = (now, self.running.cpu()) {
            self.work = Some((now.saturating_sub(self.inherited), cpu));
        }
        let virtual_ns = self.instructions.map(|n| n << self.shift.min(10));
        let host = self.begun.elapsed();
        (self.progress)(Progress { at_work: self.ready.is_some(), virtual_ns, host });
        let Limits { virtual_s, host_s } = self.limits;
        Ok(if virtual_ns.is_some_and(|ns| ns / 1_000_000_000 > virtual_s) {
            Some(Ended::VirtualLimit(virtual_s))
        } else if self.kvm && self.ready.is_none() && host.as_secs() > KVM_BOOT_S {
            Some(Ended::KvmSilent(KVM_BOOT_S))
        } else if host.as_secs() > host_s {
            Some(Ended::HostLimit(host_s))
        } else if self.moved.elapsed() > STANDSTILL {
            Some(Ended::Standstill)
        } else {
            None
        })
    }

    /// Writes the machine's state beside `path` and renames it there.
    fn save(&mut self, path: &Path) -> Result<(), LabError> {
        let part = path.with_extension(format!("part-{}", unique()));
        let uri = format!("exec:cat > {}", quoted(&part)?);
        self.qmp.ask("migrate", &json!({ "uri": uri }))?;
        loop {
            let state = self.qmp.ask("query-migrate", &json!({}))?;
            match state.get("status").and_then(Value::as_str) {
                Some("completed") => break,
                Some("failed") => {
                    drop(std::fs::remove_file(&part));
                    return Err(LabError::cannot(format!(
                        "no snapshot could be written to {}: is the disk full?",
                        part.display()
                    )));
                }
                _ => {}
            }
            self.look()?;
            let _ = self.qmp.hear(Duration::from_millis(20));
        }
        std::fs::rename(&part, path).map_err(|e| LabError::file(path, &e))
    }
}

fn is_ready(console: &Path) -> bool {
    std::fs::read(console)
        .is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains("tailbound guest: ready"))
}
