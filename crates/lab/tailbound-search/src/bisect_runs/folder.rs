// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of a search: its journal and its run files.

use std::path::{Path, PathBuf};

use tailbound_core::limits;
use tailbound_lab::LabError;
use tailbound_lab::keep::{folders, write_text};
use tailbound_lab::matrix::RunReader;
use tailbound_sys::given;
use tailbound_sys::new_file::Existing;

use super::BisectOptions;
use super::believed;
use super::file_names::JOURNAL;
use super::measure::Measure;
use crate::bisect::Journal;
use crate::error::SearchError;

/// Where nobody names one.
const FOLDER: &str = "bisect";

/// The folder, the journal in it or an empty one, and what is to be said of it. `subject` says of what the search is, to the last
/// option; `measure` is the figure that the run files beside the journal must hold.
pub(super) fn open(
    options: &BisectOptions,
    subject: &str,
    measure: Measure,
    read: &RunReader<'_>,
) -> Result<(PathBuf, Journal, Vec<String>), SearchError> {
    let existing = Existing::replaced_if(options.begins_anew);
    let (folder, mut journal) = match &options.out {
        Some(folder) => (folder.clone(), look(folder, subject, existing)?),
        None => {
            let mut all = folders(FOLDER);
            loop {
                let folder = all.next().ok_or(LabError::Bug)?;
                if let Ok(journal) = look(&folder, subject, existing) {
                    break (folder, journal);
                }
            }
        }
    };
    std::fs::create_dir_all(&folder).map_err(|e| LabError::file(&folder, e))?;
    let notes = match believed::look(&folder, &mut journal, measure, read) {
        Err(_) if options.begins_anew => {
            journal = Journal::new(subject);
            Vec::new()
        }
        looked => looked?,
    };
    Ok((folder, journal, notes))
}

fn look(folder: &Path, subject: &str, existing: Existing) -> Result<Journal, SearchError> {
    let path = folder.join(JOURNAL);
    if !path.exists() {
        return Ok(Journal::new(subject));
    }
    let text = given::text(&path, limits::TEXT_BYTES_MAX)
        .map_err(|e| SearchError::Journal { path: path.clone(), why: e.to_string() })?;
    match Journal::read(&text, subject) {
        Ok(journal) => Ok(journal),
        Err(_) if existing == Existing::Replace => Ok(Journal::new(subject)),
        Err(e) => Err(SearchError::OtherJournal { path, why: e.to_string() }),
    }
}

/// Writes the journal.
pub(super) fn keep(folder: &Path, journal: &Journal) -> Result<(), SearchError> {
    Ok(write_text(&folder.join(JOURNAL), &journal.text())?)
}
