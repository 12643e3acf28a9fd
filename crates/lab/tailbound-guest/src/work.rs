// SPDX-License-Identifier: MIT OR Apache-2.0
//! Does the job: settings, the measuring process, its files.
//!
//! Context: SETUP, COLD. Units: s of the guest's clock.
//! The measuring process and this one run with low real-time priorities: hundreds of load
//! tasks would starve a normal one, and the run would end long after its measurement.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use tailbound_core::lab::{Job, Tester};
use tailbound_sys::ipc;
use tailbound_sys::new_file::{self, Existing};
use tailbound_sys::process;

use crate::child::{PROGRAM, start, wait};
use crate::error::GuestError;
use crate::shares;
use crate::tune;

const CAMPAIGN: &str = "/run/campaign.toml";
/// The run, as it is sent, and where it grows.
pub(crate) const RUN: &str = "run";
pub(crate) const OUT: &str = "/run/out";
const SIGTERM: i32 = 15;
/// What loads need to take their memory and start their tasks.
const LOADS_START_MS: i32 = 2000;
/// What they have for ending.
const LOADS_END_S: u64 = 10;
/// Longest answer of a tester that is sent.
const TESTER_BYTES_MAX: u64 = 64 << 20;

/// What came of it.
pub(crate) struct Work {
    pub(crate) files: Vec<(String, Vec<u8>)>,
    pub(crate) status: String,
}

/// Runs the job.
pub(crate) fn run(job: &Job, words: &mut Vec<String>) -> Result<Work, GuestError> {
    let mut before = Vec::new();
    if job.count_ns > 0 && job.collect.is_empty() {
        match shares::count(job.count_ns) {
            Ok(counts) => before.push(("shares".to_owned(), serde_json::to_vec(&counts)?)),
            Err(e) => words.push(format!("shares of the CPUs: {e}")),
        }
    }
    if job.begin_after_ns > 0 {
        std::thread::park_timeout(Duration::from_nanos(job.begin_after_ns));
    }
    if !job.collect.is_empty() {
        let mut files = Vec::new();
        for path in &job.collect {
            collect(&mut files, path, Path::new(path));
        }
        return Ok(Work { files, status: "exit status 0".to_owned() });
    }
    for (path, value) in &job.settings {
        fs::write(path, value).map_err(|why| GuestError::Setting {
            path: path.clone(),
            value: value.clone(),
            why,
        })?;
    }
    new_file::write(Path::new(CAMPAIGN), Existing::Replace, job.campaign.as_bytes())
        .map_err(GuestError::file(CAMPAIGN))?;
    let tuned = job.tune.as_ref().map(|tune| tune::apply(tune, words)).transpose()?;
    let mut work = match &job.tester {
        None => measure(job, words),
        Some(tester) => with_tester(job, tester, words),
    }?;
    work.files.append(&mut before);
    if let Some(applied) = tuned {
        work.files.push(("tune".to_owned(), applied));
        work.files.push(("untune".to_owned(), tune::undo(words)?));
    }
    Ok(work)
}

fn measure(job: &Job, words: &mut Vec<String>) -> Result<Work, GuestError> {
    let mut arguments: Vec<OsString> =
        ["run", "--yes", "--config", CAMPAIGN, "--out", "-", "--quiet"]
            .map(OsString::from)
            .to_vec();
    arguments.extend(job.arguments.iter().map(OsString::from));
    let own = start(Path::new(PROGRAM), &arguments, OUT, words)?;
    let ended = wait(own, job.limit_s, &mut BTreeMap::new())?;
    let mut files = Vec::new();
    collect(&mut files, RUN, Path::new(OUT));
    collect(&mut files, "stderr", Path::new("/run/out.stderr"));
    Ok(Work { files, status: ended })
}

/// Another program measures; the campaign's loads run beside it, started by `tailbound load`.
fn with_tester(job: &Job, tester: &Tester, words: &mut Vec<String>) -> Result<Work, GuestError> {
    let [program, rest @ ..] = tester.command.as_slice() else {
        return Err(GuestError::NoCommand);
    };
    let loads: Vec<OsString> = job.arguments.iter().map(OsString::from).collect();
    let load = if loads.is_empty() {
        None
    } else {
        let mut arguments = vec![OsString::from("load"), OsString::from("--quiet")];
        arguments.extend(loads);
        Some(start(Path::new(PROGRAM), &arguments, "/run/load", words)?)
    };
    if load.is_some() {
        // Loads take their memory and start their tasks first.
        ipc::wait_readable(&[], LOADS_START_MS)?;
    }
    let arguments: Vec<OsString> = rest.iter().map(OsString::from).collect();
    let own = start(Path::new(program), &arguments, "/run/out", words)?;
    let mut others = BTreeMap::new();
    let ended = wait(own, job.limit_s, &mut others)?;
    if let Some(load) = load {
        match others.remove(&load.0) {
            Some(how) => words.push(format!("the load ended before the tester: {how}")),
            None => {
                drop(process::kill(load, SIGTERM));
                words.push(format!("load: {}", wait(load, LOADS_END_S, &mut others)?));
            }
        }
    }
    let mut files = Vec::new();
    let answer = tester.file.as_deref().unwrap_or("/run/out");
    collect(&mut files, "tester", Path::new(answer));
    collect(&mut files, "stderr", Path::new("/run/out.stderr"));
    collect(&mut files, "load-stderr", Path::new("/run/load.stderr"));
    Ok(Work { files, status: ended })
}

pub(crate) fn collect(files: &mut Vec<(String, Vec<u8>)>, name: &str, path: &Path) {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let read = File::open(path).map(|f| f.take(TESTER_BYTES_MAX).read_to_end(&mut bytes));
    if read.is_ok() {
        files.push((name.to_owned(), bytes));
    }
}
