// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of a search: its journal and its run files.
//!
//! Context: COLD.

use std::path::{Path, PathBuf};

use tailbound_bisect::Journal;
use tailbound_core::limits;
use tailbound_sys::given;

use crate::cli_bisect::SearchArgs;
use crate::input;
use crate::names;
use crate::say::Failure;

/// Where nobody names one.
const FOLDER: &str = "bisect";
const JOURNAL: &str = "journal.jsonl";

/// The folder, and the journal in it or an empty one. `subject` says of what the search is, to the last option.
pub(super) fn open(args: &SearchArgs, subject: &str) -> Result<(PathBuf, Journal), Failure> {
    let (folder, journal) = match &args.out {
        Some(folder) => (folder.clone(), look(folder, subject, args.force)?),
        None => {
            let mut all = names::numbered(Path::new(FOLDER));
            loop {
                let folder = all.next().ok_or_else(Failure::bug)?;
                if let Ok(journal) = look(&folder, subject, args.force) {
                    break (folder, journal);
                }
            }
        }
    };
    std::fs::create_dir_all(&folder)
        .map_err(|e| Failure::cannot(format!("{}: {e}", folder.display())))?;
    Ok((folder, journal))
}

fn look(folder: &Path, subject: &str, force: bool) -> Result<Journal, Failure> {
    let path = folder.join(JOURNAL);
    if !path.exists() {
        return Ok(Journal::new(subject));
    }
    let text = given::text(&path, limits::TEXT_BYTES_MAX)
        .map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
    match Journal::read(&text, subject) {
        Ok(journal) => Ok(journal),
        Err(_) if force => Ok(Journal::new(subject)),
        Err(e) => Err(Failure::usage(format!(
            "{}: {e}: choose another --out, or give --force to begin anew there",
            path.display()
        ))),
    }
}

/// Writes the journal.
pub(super) fn keep(folder: &Path, journal: &Journal) -> Result<(), Failure> {
    input::write(&folder.join(JOURNAL), &journal.text(), true)
}

/// The name of the run file of a step.
pub(super) fn run_name(steps: usize) -> String {
    format!("step-{steps:03}.tailbound.jsonl")
}
