// SPDX-License-Identifier: MIT OR Apache-2.0
//! All targets at once: each is taken, gets program and campaign, makes its runs, and gives back its results.
//!
//! Context: COLD. One thread a target: it waits.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use tailbound_sys::new_file::{self, Existing};

use super::target::{Target, Targets};
use super::{EngineError, Load, Task, of};

/// Beside the folders of results: what is noted of each target.
const NOTES: &str = ".fleet";
/// Says among a target's notes that a lease was lost, in which run, and why.
pub const LOST_FILE: &str = "lease.lost";
/// Names a target's results on its machine.
const IDENTITY_FILE: &str = "fleet.id";

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// On which machines.
    pub targets: &'a [Target],
    /// Everything in the file of targets.
    pub all: &'a Targets,
    /// The campaign's text.
    pub campaign: &'a str,
    /// Names of its runs, in order.
    pub parts: &'a [String],
    /// Share of the campaign's lengths.
    pub scale: f64,
    /// This program.
    pub own: &'a Path,
    /// Where results go: a folder for each target.
    pub folder: &'a Path,
}

/// How a target ended.
#[derive(Debug)]
pub struct Outcome {
    /// Its name.
    pub target: String,
    /// Why it did not do all that it was told, if so.
    pub error: Option<EngineError>,
    /// During which run.
    pub part: Option<String>,
}

/// Makes every run on every target. `heard` gets the target and a line about its progress.
#[must_use]
pub fn run(plan: Plan<'_>, heard: &(dyn Fn(&str, &str) + Sync)) -> Vec<Outcome> {
    thread::scope(|scope| {
        let begin = |target: &'_ Target| {
            let target = target.clone();
            scope.spawn(move || {
                let mut part = None;
                let made = one(plan, &target, &mut part, &|line| heard(&target.name, line));
                let error = made.err();
                let part = part.filter(|_| error.is_some());
                Outcome { target: target.name, error, part }
            })
        };
        let begun: Vec<_> = plan.targets.iter().map(begin).collect();
        let ended = begun.into_iter().zip(plan.targets).map(|(thread, target)| {
            thread.join().unwrap_or_else(|_| Outcome {
                target: target.name.clone(),
                error: Some(EngineError::failed("measuring", "a bug of tailbound")),
                part: None,
            })
        });
        ended.collect()
    })
}

fn one(
    plan: Plan<'_>,
    target: &Target,
    at: &mut Option<String>,
    heard: &dyn Fn(&str),
) -> Result<(), EngineError> {
    let notes = plan.folder.join(NOTES).join(&target.name);
    fs::create_dir_all(&notes).map_err(|e| EngineError::file(&notes, e))?;
    let notes = notes.canonicalize().map_err(|e| EngineError::file(&notes, e))?;
    let all = plan.folder.canonicalize().map_err(|e| EngineError::file(plan.folder, e))?;
    let folder = all.join(&target.name);
    let lost = notes.join(LOST_FILE);
    if let Ok(why) = fs::read_to_string(&lost) {
        let (lost, folder) = (lost.display(), folder.display());
        let why = format!("{}; remove {lost} and {folder} to measure again", why.trim());
        return Err(EngineError::Lost(why));
    }
    let identity = identity(&notes)?;
    let load = Load {
        own: plan.own,
        programs: &plan.all.programs,
        campaign: plan.campaign,
        identity: &identity,
        folder: &folder,
        notes: &notes,
    };
    let engine = of(target);
    let mut lease = engine.reserve(&mut |line| heard(line))?;
    let facts = engine.list(Some(&lease))?;
    heard(&format!("held; {}, {}, {} CPUs", facts.kernel, facts.architecture, facts.cpus));
    let placed = engine.put(&lease, &facts, &load)?;
    let mut made = Ok(());
    let of = u32::try_from(plan.parts.len()).unwrap_or(u32::MAX);
    for (which, part) in (1..).zip(plan.parts) {
        *at = Some(part.clone());
        let task = Task { placed: &placed, load: &load, part, at: which, of, scale: plan.scale };
        heard(&format!("{part} begins"));
        match engine.run(&mut lease, &task, &mut |line| heard(line)) {
            Ok(_) => {}
            Err(e) => {
                if let EngineError::Lost(why) = &e {
                    let text = format!("{part}: {why}\n");
                    new_file::write(&lost, Existing::Replace, text.as_bytes())
                        .map_err(|e| EngineError::file(&lost, e))?;
                }
                made = Err(e);
                break;
            }
        }
    }
    // What was measured before is not lost with the lease.
    let got = match &made {
        Err(EngineError::Lost(_)) => Ok(()),
        _ => engine.get(&lease, &placed, &load),
    };
    engine.release(lease);
    made.and(got)
}

/// The name of a target's results, made once: what began under it is resumed.
fn identity(folder: &Path) -> Result<String, EngineError> {
    let path: PathBuf = folder.join(IDENTITY_FILE);
    if let Ok(text) = fs::read_to_string(&path) {
        let text = text.trim();
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Ok(text.to_owned());
        }
    }
    let mut bytes = [0u8; 8];
    getrandom::fill(&mut bytes).map_err(|e| EngineError::failed("naming the results", e))?;
    let text = format!("{:016x}", u64::from_ne_bytes(bytes));
    new_file::write(&path, Existing::Replace, text.as_bytes())
        .map_err(|e| EngineError::file(&path, e))?;
    Ok(text)
}
