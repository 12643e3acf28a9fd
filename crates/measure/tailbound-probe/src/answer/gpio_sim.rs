// SPDX-License-Identifier: MIT OR Apache-2.0
//! A simulated chip with two lines, and a thread that makes edges on the first: the probe `answer-gpio` without a wire.
//!
//! Context: SETUP in `make`, HOT in the thread (one pwrite(2) an edge). Units: ns.
//! The chip goes when it is dropped. One that a killed process left is removed by the next.
//! Source: the kernel's admin-guide/gpio/gpio-sim.rst (Linux 5.17); configfs is needed, and root.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use tailbound_rt::cyclic::{Port as _, Schedule, Wake};
use tailbound_sys::SysError;
use tailbound_sys::clock::Nanosleep;

use crate::error::ProbeError;
use crate::thread_group::ThreadContext;

const CONFIG: &str = "/sys/kernel/config";
const NAME: &str = "tailbound-";
/// Lines: pulses, answers.
const LINES: &str = "2";

/// The chip.
#[derive(Debug)]
pub(super) struct SimulatedChip {
    folder: PathBuf,
    file: PathBuf,
    pull: PathBuf,
}

impl SimulatedChip {
    /// Makes it.
    ///
    /// # Errors
    /// The kernel has no gpio-sim, or nobody but root may.
    pub(super) fn make() -> Result<Self, ProbeError> {
        let all = Path::new(CONFIG).join("gpio-sim");
        if !all.exists() {
            return Err(ProbeError::NoGpioSim);
        }
        remove_left(&all);
        let folder = all.join(format!("{NAME}{}", std::process::id()));
        let cannot = |path: &Path, source| ProbeError::GpioSim { path: path.to_owned(), source };
        fs::create_dir(&folder).map_err(|e| cannot(&folder, e))?;
        // From here on it is removed.
        let mut chip = Self { folder, file: PathBuf::new(), pull: PathBuf::new() };
        let bank = chip.folder.join("bank");
        let text = |path: PathBuf| fs::read_to_string(path).map(|t| t.trim().to_owned());
        let made = || -> io::Result<(PathBuf, PathBuf)> {
            fs::create_dir(&bank)?;
            set(&bank.join("num_lines"), LINES)?;
            set(&chip.folder.join("live"), "1")?;
            let (device, name) =
                (text(chip.folder.join("dev_name"))?, text(bank.join("chip_name"))?);
            let pull = Path::new("/sys/devices/platform").join(device).join(&name);
            Ok((Path::new("/dev").join(name), pull.join("sim_gpio0/pull")))
        };
        (chip.file, chip.pull) = made().map_err(|e| cannot(&chip.folder, e))?;
        Ok(chip)
    }

    /// The chip's file.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// What makes edges on line 0.
    ///
    /// # Errors
    /// The file is gone.
    pub(super) fn pulses(&self) -> Result<SimulatedPulses, SysError> {
        let path = self.pull.display().to_string();
        let opened = File::options().write(true).open(&self.pull);
        let pull =
            opened.map_err(|e| SysError::code("open", path, e.raw_os_error().unwrap_or(0)))?;
        Ok(SimulatedPulses { pull, rises: true })
    }
}

impl Drop for SimulatedChip {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// A file of the kernel, which takes a word.
fn set(path: &Path, word: &str) -> io::Result<()> {
    File::options().write(true).open(path)?.write_all_at(word.as_bytes(), 0)
}

/// What cannot be removed stays: there is nothing more to do.
fn remove(folder: &Path) {
    drop(set(&folder.join("live"), "0"));
    drop(fs::remove_dir(folder.join("bank")));
    drop(fs::remove_dir(folder));
}

/// Chips of processes that are gone.
fn remove_left(all: &Path) {
    let Ok(entries) = fs::read_dir(all) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid =
            name.to_str().and_then(|n| n.strip_prefix(NAME)).and_then(|n| n.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            remove(&entry.path());
        }
    }
}

/// What a sleep came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slept {
    Due,
    Stopped,
}

fn sleeps(port: &mut Nanosleep, due_ns: i64, thread: &ThreadContext) -> Slept {
    while port.sleep_until(due_ns) != Wake::Due {
        if thread.stop().load(Ordering::Relaxed) {
            return Slept::Stopped;
        }
    }
    if thread.stop().load(Ordering::Relaxed) { Slept::Stopped } else { Slept::Due }
}

/// Edges on the line of pulses.
#[derive(Debug)]
pub(super) struct SimulatedPulses {
    pull: File,
    rises: bool,
}

impl SimulatedPulses {
    /// An edge at each activation of warm-up and measurement.
    ///
    /// # Errors
    /// The chip is gone.
    pub(super) fn run(mut self, thread: &ThreadContext, clock: i32) -> Result<(), SysError> {
        for schedule in [thread.warm_up(), thread.measurement()] {
            self.edges(&schedule, thread, clock)?;
        }
        // The end of a thread takes longer than its sleep, and would be in the way of the last answer.
        let Schedule { first_ns, interval_ns, activations } = thread.measurement();
        let span_ns = interval_ns.saturating_mul(i64::try_from(activations).unwrap_or(i64::MAX));
        sleeps(&mut Nanosleep(clock), first_ns.saturating_add(span_ns), thread);
        Ok(())
    }

    fn edges(
        &mut self,
        schedule: &Schedule,
        thread: &ThreadContext,
        clock: i32,
    ) -> Result<(), SysError> {
        let mut port = Nanosleep(clock);
        let mut due_ns = schedule.first_ns.saturating_add(schedule.interval_ns / 2);
        for _ in 0..schedule.activations {
            if sleeps(&mut port, due_ns, thread) == Slept::Stopped {
                return Ok(());
            }
            let word = if self.rises { "pull-up" } else { "pull-down" };
            self.rises = !self.rises;
            self.pull
                .write_all_at(word.as_bytes(), 0)
                .map_err(|e| SysError::code("write", "pull", e.raw_os_error().unwrap_or(0)))?;
            due_ns = due_ns.saturating_add(schedule.interval_ns);
        }
        Ok(())
    }
}
