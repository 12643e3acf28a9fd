// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the run file goes that has what cyclictest cannot tell.
//!
//! Context: SETUP. It never fails a script: where it cannot be written, that is a note.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tailbound_core::plan::Plan;
use tailbound_run::{Output, RunError};
use tailbound_sys::new_file::Existing;

use crate::options::Options;

/// The variable of the environment that names the run file.
pub const OUT_VARIABLE: &str = "TAILBOUND_CYCLICTEST_OUT";

/// By the variable, else beside a file that was asked for; none: there is no place that somebody named.
pub(crate) fn path(options: &Options, variable: Option<OsString>) -> Option<PathBuf> {
    let beside = |file: &PathBuf| {
        let mut name = file.clone().into_os_string();
        name.push(".tailbound.jsonl");
        PathBuf::from(name)
    };
    let files = options.json.as_ref().or(options.histfile.as_ref());
    let regular = |file: &&PathBuf| {
        file.as_os_str() != "-" && file.metadata().map_or(true, |meta| meta.is_file())
    };
    variable
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
        .or_else(|| files.filter(regular).map(beside))
}

/// Opens it, or says why there is none; without one records that only a file needs are let go.
///
/// # Errors
/// Not even /dev/null can be opened.
pub(crate) fn open(
    path: Option<&Path>,
    plan: &Plan,
    note: &mut dyn FnMut(&str),
) -> Result<Output, RunError> {
    if let Some(path) = path {
        match Output::open(path, plan, Existing::replaced_if(true)) {
            Ok(output) => return Ok(output),
            Err(e) => note(&format!("no run file: {e}")),
        }
    }
    Output::open(Path::new("/dev/null"), plan, Existing::replaced_if(true))
}
