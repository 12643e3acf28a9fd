// SPDX-License-Identifier: MIT OR Apache-2.0
//! Applies the profile of a job, and undoes it when the measurement is over.
//!
//! Context: SETUP, COLD. By the same commands as on any machine, so that a kernel that refuses a
//! change, or an undo that is not exact, is a run that failed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use tailbound_core::lab::TuneJob;
use tailbound_sys::new_file::{self, Existing};

use crate::child::{PROGRAM, start, wait};
use crate::error::GuestError;

const PROFILE: &str = "/run/profile.toml";
/// Some ms a change, of which a profile has some hundred.
const LIMIT_S: u64 = 60;
/// What a command says that did what it was to do.
const DONE: &str = "exit status 0";

/// Applies it; the answer of the command, as JSON.
pub(crate) fn apply(tune: &TuneJob, words: &mut Vec<String>) -> Result<Vec<u8>, GuestError> {
    new_file::write(Path::new(PROFILE), Existing::Replace, tune.profile.as_bytes())
        .map_err(GuestError::file(PROFILE))?;
    let mut arguments = vec!["--profile".to_owned(), PROFILE.to_owned()];
    if !tune.rt_cpus.is_empty() {
        arguments.extend(["--rt-cpus".to_owned(), tune.rt_cpus.clone()]);
    }
    command("apply", &arguments, words)
}

/// Undoes all of it; the answer of the command, as JSON.
pub(crate) fn undo(words: &mut Vec<String>) -> Result<Vec<u8>, GuestError> {
    command("undo", &["--all".to_owned()], words)
}

fn command(
    verb: &'static str,
    arguments: &[String],
    words: &mut Vec<String>,
) -> Result<Vec<u8>, GuestError> {
    let out = format!("/run/tune-{verb}");
    let mut all: Vec<OsString> = ["tune", verb, "--json"].map(OsString::from).to_vec();
    all.extend(arguments.iter().map(OsString::from));
    let pid = start(Path::new(PROGRAM), &all, &out, words)?;
    let how = wait(pid, LIMIT_S, &mut BTreeMap::new())?;
    if how != DONE {
        let said = |path: String| fs::read_to_string(path).unwrap_or_default();
        // `undo` tells what it left in its answer.
        let (err, answer) = (said(format!("{out}.stderr")), said(out.clone()));
        let why = if err.trim().is_empty() { answer } else { err };
        return Err(GuestError::Tune { verb, how, why: why.trim().to_owned() });
    }
    fs::read(&out).map_err(GuestError::file(&out))
}
