// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stressor of stress-ng, where that is installed: what other people load machines with.
//!
//! Units: bogo operations, as stress-ng counts them.
//! stress-ng tells what it did when it ends, and not before: it is run again and again, a slice
//! of seconds each, and what each slice did is counted at its end. Between two slices are some
//! milliseconds without it.
//! Where permitted its temporary files lie in memory that nobody else sees, and its System V
//! objects in a namespace of their own: both are gone with it, however it ends.
//! Source: stress-ng(1): --metrics, --yaml, --timeout, --temp-path.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use tailbound_sys::environment::Environment;
use tailbound_sys::process::Pid;
use tailbound_sys::{private, program, sched};

use crate::child::{Child, StandardOutput};
use crate::error::LoadError;
use crate::failure::{Explain, Failure};
use crate::kind::{CPUS, Load, LoadKind, Note, Start, Started, Turn};
use crate::options::Reader;
use crate::{file, machine};

pub(crate) static KIND: LoadKind = LoadKind {
    name: "stress-ng",
    unit: "bogo-ops",
    about: "a stressor of the program stress-ng, where that is installed",
    options: &[
        ("stressor", "its name, of those that `stress-ng --stressors` lists"),
        ("workers", "workers of it (default: 1 per CPU)"),
        (
            "slice",
            "length of a slice in whole seconds, after which stress-ng reports its count and is started again (default 2s)",
        ),
        CPUS,
    ],
    coarse: true,
    command: None,
    prepare: |r| Ok(Start::new(Options::read(r)?, start)),
};

const SECOND_NS: i64 = 1_000_000_000;
const SLICE_DEFAULT_S: i64 = 2;
/// Where its files lie, for it alone.
const FOLDER: &str = "/tmp";
/// Exit status of stress-ng when a stressor could not run here; stress-ng(1).
const NO_RESOURCE: i32 = 3;
const NOT_IMPLEMENTED: i32 = 4;

/// Which stressor, how many of it, and how long at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Options {
    stressor: String,
    workers: Option<usize>,
    slice_s: i64,
}

impl Options {
    fn read(r: &Reader<'_>) -> Result<Self, LoadError> {
        let stressor = r.spec.option("stressor").ok_or_else(|| {
            r.missing("stressor", "one of those that `stress-ng --stressors` lists, for example stress-ng:stressor=matrix")
        })?;
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if stressor.is_empty() || stressor.starts_with('-') || !stressor.chars().all(is_name) {
            return Err(r.bad("stressor", "write a name that `stress-ng --stressors` lists"));
        }
        let slice = r.time_ns("slice", SECOND_NS)?.unwrap_or(SLICE_DEFAULT_S * SECOND_NS);
        if slice % SECOND_NS != 0 {
            return Err(r.bad("slice", "write whole seconds"));
        }
        Ok(Self {
            stressor: stressor.to_owned(),
            workers: r.tasks("workers")?,
            slice_s: slice / SECOND_NS,
        })
    }
}

struct StressNg {
    program: PathBuf,
    arguments: Vec<OsString>,
    stressor: String,
    slice_s: i64,
    child: Child,
    metrics: File,
    pid: Pid,
    done: u64,
}

fn start(options: Options, note: Note<'_>) -> Started {
    let program = program::find("stress-ng")
        .map_err(Failure::NotInstalled)
        .remedy("install the package stress-ng, or choose another load")?;
    let writable = file::first_writable()?;
    let metrics = file::make(&writable)?.0;
    let folder = private_folder();
    if let Err(why) = &folder {
        note(format!(
            "its temporary files and System V objects are not its own ({why}): what it leaves when killed stays"
        ));
    }
    let cpus = sched::affinity(0)?.len().max(1);
    let workers = options.workers.unwrap_or(cpus);
    let mut words = vec![
        format!("--{}", options.stressor),
        workers.to_string(),
        "--timeout".into(),
        options.slice_s.to_string(),
        "--metrics".into(),
        "--yaml".into(),
        "/proc/self/fd/3".into(),
    ];
    // It refuses to begin where it may not write, and by itself it takes the current folder.
    let place = if folder.is_ok() { PathBuf::from(FOLDER) } else { writable };
    words.extend(["--temp-path".into(), place.display().to_string()]);
    note(format!("{workers} workers, counted every {} s", options.slice_s));
    let mut it = StressNg {
        program,
        arguments: words.into_iter().map(OsString::from).collect(),
        stressor: options.stressor,
        slice_s: options.slice_s,
        child: Child::new(StandardOutput::Kept, Environment::Clean)?,
        metrics,
        pid: Pid(0),
        done: 0,
    };
    it.slice()?;
    Ok(Box::new(it))
}

/// Files in memory of its own, at most an eighth of what is available.
fn private_folder() -> Result<(), Failure> {
    private::own_mounts()?;
    let bytes = machine::block_bytes(None, 256 << 20, 1, &mut |_| {})?;
    private::memory_files(Path::new(FOLDER), bytes as u64)?;
    Ok(private::own_ipc()?)
}

impl StressNg {
    fn slice(&mut self) -> Result<(), Failure> {
        self.metrics.set_len(0).on("its metrics")?;
        self.pid = self.child.run(&self.program, &self.arguments, Some(self.metrics.as_fd()))?;
        Ok(())
    }

    /// What it did, by its own report.
    fn reported(&mut self) -> Result<u64, Failure> {
        let mut text = String::new();
        self.metrics.rewind().on("its metrics")?;
        self.metrics.read_to_string(&mut text).on("its metrics")?;
        bogo_ops(&text)
            .ok_or_else(|| Failure::Said(self.child.last_words()).on("it reported no metrics"))
    }
}

/// The sum over all stressors of a YAML file of stress-ng's.
fn bogo_ops(yaml: &str) -> Option<u64> {
    let counts = yaml.lines().filter_map(|l| l.trim().strip_prefix("bogo-ops:"));
    counts
        .map(|n| n.trim().parse::<u64>().ok())
        .try_fold(None, |sum: Option<u64>, n| Some(Some(sum.unwrap_or(0).saturating_add(n?))))?
}

impl Load for StressNg {
    fn source(&self) -> Option<BorrowedFd<'_>> {
        Some(self.child.source())
    }

    fn count(&self) -> u64 {
        self.done
    }

    fn turn(&mut self, ended: &[(Pid, ExitStatus)]) -> Result<Turn, Failure> {
        self.child.listen();
        let Some((_, status)) = ended.iter().find(|(pid, _)| *pid == self.pid) else {
            return Ok(Turn::Going);
        };
        if !status.success() {
            let hint = match status.code() {
                Some(NO_RESOURCE) => "resources are missing, ask for fewer workers=",
                Some(NOT_IMPLEMENTED) => "this stressor cannot run here",
                _ => "`stress-ng --stressors` lists the names it knows",
            };
            let what = format!("stress-ng --{}", self.stressor);
            return Err(Failure::Ended { what, how: self.child.end(*status) }.remedy(hint));
        }
        let done = self.reported()?;
        if done == 0 {
            let words = self.child.last_words();
            let why = words.lines().find(|l| l.contains("skip")).unwrap_or("no further message");
            return Err(Failure::Said(why.to_owned())
                .on(format_args!("stress-ng --{} did nothing in a slice", self.stressor))
                .remedy(format_args!(
                    "write a longer slice= than {}s if it is slow",
                    self.slice_s
                )));
        }
        self.done = self.done.saturating_add(done);
        self.slice()?;
        Ok(Turn::Going)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::read;

    #[test]
    fn options_are_read() {
        let asked = read("stress-ng:stressor=vm,workers=3,slice=5s", Options::read);
        let wanted = Options { stressor: "vm".into(), workers: Some(3), slice_s: 5 };
        assert_eq!(asked, wanted);
        let usual = read("stress-ng:stressor=cpu", Options::read);
        assert_eq!((usual.workers, usual.slice_s), (None, SLICE_DEFAULT_S));
    }

    #[test]
    fn what_it_did_is_read_from_its_own_account() {
        let yaml = "metrics:\n    - stressor: matrix\n      bogo-ops: 7330\n      bogo-ops-per-second-real-time: 7.5\n    - stressor: vm\n      bogo-ops: 3\n";
        assert_eq!(bogo_ops(yaml), Some(7333));
        assert_eq!(bogo_ops("metrics:\n"), None);
        assert_eq!(bogo_ops("bogo-ops: many\n"), None);
    }
}
