// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of a campaign: its file, and for each system a folder of run files.
//!
//! Context: COLD. There is no other state: a run file with its last line is a run that is done, and a
//! file without one, or whose last line says otherwise, is a run to be made again. So a kill
//! at any time loses the run that was being made and nothing else.
//!
//! ```text
//! campaign.toml    SYSTEM/PART.tailbound.jsonl    SYSTEM/PART.html    SYSTEM/PART.failed
//! campaign.html
//! ```

use std::path::{Path, PathBuf};

use tailbound_core::Run;
use tailbound_core::campaign::Part;
use tailbound_report::campaign::{Measured, Place, State};
use tailbound_sys::new_file::{self, Existing};

use super::shipped::{self, Chosen};
use crate::input;
use crate::say::Failure;

/// The campaign's own file in its folder.
pub(super) const FILE: &str = "campaign.toml";

/// A campaign's folder.
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Takes the folder: a new one, or one that holds this very campaign; or why it is taken.
    pub(super) fn settle(
        path: &Path,
        chosen: &Chosen,
        force: bool,
    ) -> Result<Result<Self, String>, Failure> {
        let cannot = |e: std::io::Error| Failure::cannot(format!("{}: {e}", path.display()));
        let own = path.join(FILE);
        if own.exists() {
            let old = tailbound_sys::given::text(&own, tailbound_core::limits::TEXT_BYTES_MAX)
                .map_err(cannot)?;
            if old != chosen.text && !force {
                return Ok(Err(format!(
                    "{} holds another campaign, or another version of it: choose another --out, or give --force to keep those of its runs that were made with the same options",
                    path.display()
                )));
            }
        } else if path.is_dir() && path.read_dir().map_err(cannot)?.next().is_some() {
            return Ok(Err(format!(
                "{} exists and holds no campaign: choose another --out",
                path.display()
            )));
        }
        std::fs::create_dir_all(path).map_err(cannot)?;
        whole(&own, &chosen.text).map_err(cannot)?;
        Ok(Ok(Self { path: path.to_owned() }))
    }

    /// The campaign of a folder that is there.
    pub(super) fn campaign(path: &Path) -> Result<Chosen, Failure> {
        let own = path.join(FILE);
        let text = tailbound_sys::given::text(&own, tailbound_core::limits::TEXT_BYTES_MAX)
            .map_err(|e| {
                Failure::usage(format!(
                    "{}: {e}; a campaign's folder holds it, or name one with --campaign",
                    own.display()
                ))
            })?;
        shipped::parse(&own.display().to_string(), text)
    }

    /// The folder of a system, made where it is not there.
    pub(super) fn system(&self, name: &str) -> Result<PathBuf, Failure> {
        let path = self.path.join(plain(name));
        // The folder may have come from somebody else, its links with it.
        if path.is_symlink() {
            return Err(Failure::usage(format!(
                "{}: it is a symbolic link, and runs are kept in folders: remove it, or choose another --out or --system",
                path.display()
            )));
        }
        std::fs::create_dir_all(&path)
            .map_err(|e| Failure::cannot(format!("{}: {e}", path.display())))?;
        Ok(path)
    }
}

/// The run file of `part`.
pub(super) fn run_file(system: &Path, part: &str) -> PathBuf {
    system.join(format!("{part}.tailbound.jsonl"))
}

/// The run's own report.
pub(super) fn report_file(system: &Path, part: &str) -> PathBuf {
    system.join(format!("{part}.html"))
}

/// Where it says why there is no run.
fn failed_file(system: &Path, part: &str) -> PathBuf {
    system.join(format!("{part}.failed"))
}

/// Keeps why a part has no run.
pub(super) fn keep_failed(system: &Path, part: &str, why: &str) -> Result<(), Failure> {
    let path = failed_file(system, part);
    whole(&path, why).map_err(|e| Failure::cannot(format!("{}: {e}", path.display())))
}

/// Forgets it.
pub(super) fn forget_failed(system: &Path, part: &str) {
    // It need not be there.
    drop(std::fs::remove_file(failed_file(system, part)));
}

/// Did the run come to its end?
pub(super) fn is_complete(run: &Run) -> bool {
    run.ended_as_planned()
}

/// The complete run of `part`, where there is one.
pub(super) fn complete(system: &Path, part: &str) -> Option<Run> {
    let path = run_file(system, part);
    // A file that cannot be read holds no run: it is made again.
    path.exists().then(|| input::run(&path).ok()).flatten().filter(is_complete)
}

/// What is there of each of `parts`, in every system's folder of `folder`; links begin with `prefix`.
pub(super) fn systems(
    folder: &Path,
    parts: &[Part],
    prefix: &str,
) -> Result<Vec<(String, Measured)>, Failure> {
    let failed = |e: std::io::Error| Failure::usage(format!("{}: {e}", folder.display()));
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            names.push(input::name(&path));
        }
    }
    names.sort();
    let mut out = Vec::new();
    for name in names {
        let system = folder.join(&name);
        let there: Vec<PathBuf> =
            parts.iter().map(|p| run_file(&system, &p.id)).filter(|p| p.exists()).collect();
        let noted = parts.iter().any(|p| failed_file(&system, &p.id).exists());
        if there.is_empty() && !noted {
            continue;
        }
        let mut places = Vec::new();
        for part in parts {
            places.push(place(&system, &name, part, prefix)?);
        }
        out.push((name.clone(), Measured::of(&name, places)));
    }
    Ok(out)
}

fn place(system: &Path, name: &str, part: &Part, prefix: &str) -> Result<Place, Failure> {
    let path = run_file(system, &part.id);
    let link = |file: &Path| format!("{prefix}{name}/{}", input::name(file));
    let report = report_file(system, &part.id);
    let report = report.exists().then(|| link(&report));
    let failed = tailbound_sys::given::text(
        &failed_file(system, &part.id),
        tailbound_core::limits::TEXT_BYTES_MAX,
    )
    .ok();
    let absent = |state| Place { part: part.id.clone(), state, file: None, report: None };
    if !path.exists() {
        return Ok(absent(match (failed, &part.not_in_lab) {
            (Some(why), _) => State::Failed(why.trim().to_owned()),
            (None, Some(why)) if name.starts_with("lab-") => State::NotHere(why.clone()),
            _ => State::NotRun,
        }));
    }
    // What the page does not need; a folder of one unreadable file still has a page.
    let run = match input::runs_without(std::slice::from_ref(&path), &["raw", "window"]) {
        Ok(runs) => runs.into_iter().next(),
        Err(e) => return Ok(absent(State::Failed(format!("its file cannot be read: {}", e.text)))),
    };
    let Some(run) = run else { return Ok(absent(State::NotRun)) };
    let state = match &run.end {
        _ if is_complete(&run) => State::Complete(Box::new(run)),
        None => State::Cut(Box::new(run), "cut off".to_owned()),
        Some(e) => {
            let why = e.reason.to_string();
            State::Cut(Box::new(run), why)
        }
    };
    Ok(Place { part: part.id.clone(), state, file: Some(link(&path)), report })
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
fn whole(path: &Path, text: &str) -> std::io::Result<()> {
    new_file::write(path, Existing::Replace, text.as_bytes())
}
