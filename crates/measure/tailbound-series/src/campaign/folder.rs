// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of a campaign: its file, and for each system a folder of run files.
//!
//! There is no other state: a run file with its last line is a run that is done, and a
//! file without one, or whose last line says otherwise, is a run to be made again. So a kill
//! at any time loses the run that was being made and nothing else.
//!
//! ```text
//! campaign.toml    SYSTEM/PART.tailbound.jsonl    SYSTEM/PART.html    SYSTEM/PART.failed
//! campaign.html
//! ```

use std::path::{Path, PathBuf};
use tailbound_core::order;

use tailbound_core::campaign::{Part, TimedFrom};
use tailbound_core::{limits, runfile};
use tailbound_stats::campaign::{CampaignRun, CampaignSystem, State};
use tailbound_sys::given;
use tailbound_sys::new_file::{self, Existing};

use super::shipped::{self, Chosen};
use crate::caller::Caller;
use crate::error::SeriesError;

/// The campaign's own file in its folder.
pub const FILE: &str = "campaign.toml";

/// A campaign's folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Takes the folder: a new one, or one that holds this very campaign.
    ///
    /// # Errors
    /// When it is taken ([`SeriesError::is_taken`]), or cannot be read or made.
    pub fn settle(path: &Path, chosen: &Chosen, existing: Existing) -> Result<Self, SeriesError> {
        let cannot = |source| SeriesError::Make { path: path.to_owned(), source };
        let own = path.join(FILE);
        if own.exists() {
            let old = given::text(&own, limits::TEXT_BYTES_MAX).map_err(cannot)?;
            if old != chosen.text && existing == Existing::Keep {
                return Err(SeriesError::OtherCampaign { path: path.to_owned() });
            }
        } else if path.is_dir() && path.read_dir().map_err(cannot)?.next().is_some() {
            return Err(SeriesError::NoCampaign { path: path.to_owned() });
        }
        std::fs::create_dir_all(path).map_err(cannot)?;
        whole(&own, &chosen.text).map_err(cannot)?;
        Ok(Self { path: path.to_owned() })
    }

    /// The campaign of a folder that is there.
    ///
    /// # Errors
    /// When it holds none that can be read.
    pub fn campaign(path: &Path) -> Result<Chosen, SeriesError> {
        let own = path.join(FILE);
        match given::text(&own, limits::TEXT_BYTES_MAX) {
            Err(source) => Err(SeriesError::CampaignMissing { path: own, source }),
            Ok(text) => shipped::parse(&own.display().to_string(), text),
        }
    }

    /// The folder of a system, made where it is not there.
    ///
    /// # Errors
    /// When it is a link, or cannot be made.
    pub fn system(&self, name: &str) -> Result<PathBuf, SeriesError> {
        let path = self.path.join(plain(name));
        // The folder may have come from somebody else, its links with it.
        if path.is_symlink() {
            return Err(SeriesError::Link { path });
        }
        match std::fs::create_dir_all(&path) {
            Err(source) => Err(SeriesError::Make { path, source }),
            Ok(()) => Ok(path),
        }
    }
}

/// The run file of `part`.
#[must_use]
pub fn run_file(system: &Path, part: &str) -> PathBuf {
    system.join(format!("{part}.tailbound.jsonl"))
}

/// The run's own report.
#[must_use]
pub fn report_file(system: &Path, part: &str) -> PathBuf {
    system.join(format!("{part}.html"))
}

/// Where it says why there is no run.
fn failed_file(system: &Path, part: &str) -> PathBuf {
    system.join(format!("{part}.failed"))
}

/// Keeps why a part has no run.
///
/// # Errors
/// When it cannot be written.
pub fn keep_failed(system: &Path, part: &str, why: &str) -> Result<(), SeriesError> {
    let path = failed_file(system, part);
    whole(&path, why).map_err(|source| SeriesError::Make { path, source })
}

/// Forgets it.
pub fn forget_failed(system: &Path, part: &str) {
    // It need not be there.
    drop(std::fs::remove_file(failed_file(system, part)));
}

/// Is it the file of a run that came to its planned end?
#[must_use]
pub fn is_complete(file: &Path) -> bool {
    let read = given::open(file).ok().map(std::io::BufReader::new).map(runfile::read_run);
    matches!(read, Some(Ok(run)) if run.ended_as_planned())
}

/// What is there of each of `parts`, in every system's folder of `folder`; links begin with `prefix`.
///
/// # Errors
/// When the folder cannot be read. A run file that cannot be read is a run that failed.
pub fn systems<C: Caller>(
    folder: &Path,
    parts: &[Part],
    prefix: &str,
    caller: &mut C,
) -> Result<Vec<(String, CampaignSystem)>, SeriesError> {
    let failed = |source| SeriesError::Read { path: folder.to_owned(), source };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            names.push(name(&path));
        }
    }
    order::by(&mut names, Ord::cmp);
    let mut out = Vec::new();
    for name in names {
        let system = folder.join(&name);
        let there = parts.iter().any(|p| run_file(&system, &p.id).exists());
        let noted = parts.iter().any(|p| failed_file(&system, &p.id).exists());
        if !there && !noted {
            continue;
        }
        let places = parts.iter().map(|part| place(&system, &name, part, prefix, caller));
        out.push((name.clone(), CampaignSystem::of(&name, places.collect())));
    }
    Ok(out)
}

fn place<C: Caller>(
    system: &Path,
    system_name: &str,
    part: &Part,
    prefix: &str,
    caller: &mut C,
) -> CampaignRun {
    let path = run_file(system, &part.id);
    let link = |file: &Path| format!("{prefix}{system_name}/{}", name(file));
    let report = report_file(system, &part.id);
    let report = report.exists().then(|| link(&report));
    let failed = given::text(&failed_file(system, &part.id), limits::TEXT_BYTES_MAX).ok();
    let absent = |state| CampaignRun { part: part.id.clone(), state, file: None, report: None };
    if !path.exists() {
        return absent(match (failed, &part.not_in_lab) {
            (Some(why), _) => State::Failed(why.trim().to_owned()),
            (None, Some(why)) if system_name.starts_with("lab-") => State::NotHere(why.clone()),
            (None, _) if part.timed_from == TimedFrom::Outside => {
                State::NotHere(SeriesError::NoSource.to_string())
            }
            _ => State::NotRun,
        });
    }
    // What the page does not need; a folder of one unreadable file still has a page.
    let run = match caller.read(&path, &["raw", "window"]) {
        Ok(run) => run,
        Err(e) => return absent(State::Failed(format!("its file cannot be read: {e}"))),
    };
    let state = match &run.end {
        _ if run.ended_as_planned() => State::Complete(Box::new(run)),
        None => State::Cut(Box::new(run), "cut off".to_owned()),
        Some(e) => {
            let why = e.reason.to_string();
            State::Cut(Box::new(run), why)
        }
    };
    CampaignRun { part: part.id.clone(), state, file: Some(link(&path)), report }
}

/// The last part of a path.
pub(super) fn name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned())
}

/// A name that can be a folder's.
fn plain(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '+' => out.push(c),
            _ if out.ends_with('-') => {}
            _ => out.push('-'),
        }
    }
    let out = out.trim_matches(['-', '.']);
    if out.is_empty() { "system".to_owned() } else { out.to_owned() }
}

/// Writes a file whole or not at all.
pub(super) fn whole(path: &Path, text: &str) -> std::io::Result<()> {
    new_file::write(path, Existing::Replace, text.as_bytes())
}
