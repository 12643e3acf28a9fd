// SPDX-License-Identifier: MIT OR Apache-2.0
//! All targets at once: each is taken, gets program and campaign, makes its runs, and gives back its results.
//!
//! One thread a target: it waits.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use tailbound_agent::wire::number;
use tailbound_core::printable;
use tailbound_core::units::format_ns_i64;
use tailbound_series::campaign::folder;
use tailbound_sys::new_file::{self, Existing};

use super::aligned::{Aligned, Meeting, Offset};
use super::kept::{self, How};
use super::target::{Target, Targets};
use super::{Engine, EngineError, Lease, Load, Task, of};

/// Beside the folders of results: what is noted of each target.
const NOTES: &str = ".fleet";
/// Says among a target's notes that a lease was lost, in which run, and why.
pub const LOST_FILE: &str = "lease.lost";
/// Names a target's results on its machine.
const IDENTITY_FILE: &str = "fleet.id";

/// Of what a run said last, when it left no file.
const LINES: usize = 3;
const LINE_CHARS: usize = 300;

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
    /// What becomes of results on other machines.
    pub there: There,
    /// All targets begin each run at one instant, so long after all of them are ready.
    pub aligned: Option<Duration>,
}

/// What becomes of results on other machines when they were brought here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum There {
    /// They are removed, once all runs are complete and here.
    Remove,
    /// They stay.
    Keep,
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
    /// What was said last of each run that ended with an error, by its name.
    pub said: BTreeMap<String, String>,
    /// How runs began with those of the other targets, by name.
    pub aligned: BTreeMap<String, Aligned>,
}

/// Makes every run on every target. `heard` gets the target and a line about its progress.
///
/// # Errors
/// The folder holds runs of another campaign, or cannot be made.
pub fn run(
    plan: Plan<'_>,
    heard: &(dyn Fn(&str, &str) + Sync),
) -> Result<Vec<Outcome>, EngineError> {
    if plan.aligned.is_some() {
        can_be_aligned(&plan)?;
    }
    kept::settle(plan.folder, &plan.folder.join(NOTES), plan.campaign)?;
    let meeting = plan.aligned.map(|lead| Meeting::new(plan.targets.len(), lead));
    let meeting = meeting.as_ref();
    let ended = thread::scope(|scope| {
        let begin = |target: &'_ Target| {
            let (target, name) = (target.clone(), target.name.clone());
            scope.spawn(move || {
                let mut went = Went::default();
                // Whatever it ends by, nobody waits for it.
                let _leaves = meeting.map(|m| Leaves { meeting: m, name: &name });
                let made =
                    one(plan, &target, meeting, &mut went, &|line| heard(&target.name, line));
                let error = made.err();
                let part = went.at.filter(|_| error.is_some());
                Outcome { target: target.name, error, part, said: went.said, aligned: went.aligned }
            })
        };
        let begun: Vec<_> = plan.targets.iter().map(begin).collect();
        let ended = begun.into_iter().zip(plan.targets).map(|(thread, target)| {
            thread.join().unwrap_or_else(|_| Outcome {
                target: target.name.clone(),
                error: Some(EngineError::failed("measuring", "a bug of tailbound")),
                part: None,
                said: BTreeMap::new(),
                aligned: BTreeMap::new(),
            })
        });
        ended.collect()
    });
    Ok(ended)
}

/// How far a target is.
#[derive(Default)]
struct Went {
    at: Option<String>,
    said: BTreeMap<String, String>,
    aligned: BTreeMap<String, Aligned>,
}

/// Leaves the meeting when it is dropped.
struct Leaves<'a> {
    meeting: &'a Meeting,
    name: &'a str,
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.meeting.leave(self.name);
    }
}

/// The file of a run that is here, of a target whose runs are in a folder of its own name.
fn file(plan: &Plan<'_>, target: &Target, part: &str) -> PathBuf {
    folder::run_file(&plan.folder.join(&target.name).join(&target.name), part)
}

fn is_here(plan: &Plan<'_>, target: &Target, part: &str) -> bool {
    target.reach.names_its_folder() && kept::is_complete(&file(plan, target, part))
}

/// Every target has a clock, and each run is to be made by all of them or by none.
fn can_be_aligned(plan: &Plan<'_>) -> Result<(), EngineError> {
    if let Some(target) = plan.targets.iter().find(|t| !t.reach.has_clock()) {
        let what = "clock that can be asked: leave out --aligned, or choose others with --target";
        return Err(EngineError::Cannot { engine: target.reach.engine(), what });
    }
    for part in plan.parts {
        let (here, open): (Vec<&Target>, Vec<&Target>) =
            plan.targets.iter().partition(|t| is_here(plan, t, part));
        if let (Some(here), Some(open)) = (here.first(), open.first()) {
            return Err(EngineError::NotTogether {
                part: part.clone(),
                here: here.name.clone(),
                open: open.name.clone(),
            });
        }
    }
    Ok(())
}

fn one(
    plan: Plan<'_>,
    target: &Target,
    meeting: Option<&Meeting>,
    went: &mut Went,
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
    kept::same_way(&notes, &folder, &How { scale: plan.scale, cpus: target.cpus.clone() })?;
    let engine = of(target);
    let mut lease = engine.reserve(&mut |line| heard(line))?;
    let facts = engine.list(Some(&lease))?;
    heard(&format!("held; {}, {}, {} CPUs", facts.kernel, facts.architecture, facts.cpus));
    let placed = engine.put(&lease, &facts, &load)?;
    let mut made = Ok(());
    let of = u32::try_from(plan.parts.len()).unwrap_or(u32::MAX);
    for (at, part) in (1..).zip(plan.parts) {
        if is_here(&plan, target, part) {
            heard(&format!("{part} is complete already"));
            continue;
        }
        went.at = Some(part.clone());
        let ready = Ready { engine: engine.as_ref(), meeting };
        let task = Task {
            placed: &placed,
            load: &load,
            part,
            at,
            of,
            scale: plan.scale,
            begin_at_ns: None,
        };
        made = ready.run(task, &mut lease, went, heard);
        if let Err(e) = &made {
            if let EngineError::Lost(why) = e {
                let text = format!("{part}: {why}\n");
                new_file::write(&lost, Existing::Replace, text.as_bytes())
                    .map_err(|e| EngineError::file(&lost, e))?;
            }
            break;
        }
    }
    // What was measured before is not lost with the lease.
    let got = match &made {
        Err(EngineError::Lost(_)) => Ok(()),
        _ => engine.get(&lease, &placed, &load),
    };
    let all_here =
        made.is_ok() && got.is_ok() && plan.parts.iter().all(|p| is_here(&plan, target, p));
    let forgotten = match plan.there {
        There::Remove if all_here => engine.forget(&lease, &placed, &load),
        There::Remove | There::Keep => Ok(()),
    };
    engine.release(lease);
    made.and(got).and(forgotten)
}

/// A target with all that its runs need.
struct Ready<'a> {
    engine: &'a dyn Engine,
    meeting: Option<&'a Meeting>,
}

impl Ready<'_> {
    /// Makes one run, with the others where they are to begin together.
    fn run(
        &self,
        mut task: Task<'_>,
        lease: &mut Lease,
        went: &mut Went,
        heard: &dyn Fn(&str),
    ) -> Result<(), EngineError> {
        let part = task.part;
        let begins = self.meeting.map(|m| together(m, lease)).transpose()?;
        task.begin_at_ns = begins.map(|(at_ns, before)| at_ns.saturating_add(before.ahead_ns));
        heard(&format!("{part} begins"));
        let mut last = LastWords::default();
        let status = self.engine.run(lease, &task, &mut |line| {
            last.hear(line);
            heard(line);
        })?;
        // 1: a claim of the publication does not hold, which is an answer.
        if !matches!(status, 0 | 1) {
            went.said.insert(part.to_owned(), last.with(status));
            return Ok(());
        }
        if let Some((at_ns, before)) = begins {
            let aligned = Aligned::of(at_ns, before, Offset::of(lease)?);
            aligned.keep(task.load.notes, part)?;
            let error = format_ns_i64(aligned.error_ns);
            heard(&format!("{part} began with the others, within {error}"));
            went.aligned.insert(part.to_owned(), aligned);
        }
        Ok(())
    }
}

/// When the next run begins, on this machine's clock, and how that of the machine under `lease` differs from it.
fn together(meeting: &Meeting, lease: &Lease) -> Result<(i64, Offset), EngineError> {
    let before = Offset::of(lease)?;
    meeting.arrive().map(|at_ns| (at_ns, before))
}

/// The last lines that a run said.
#[derive(Default)]
struct LastWords(VecDeque<String>);

impl LastWords {
    fn hear(&mut self, line: &str) {
        let line = printable::excerpt(line.trim(), LINE_CHARS);
        if !line.is_empty() {
            self.0.push_back(line);
        }
        if self.0.len() > LINES {
            self.0.pop_front();
        }
    }

    fn with(self, status: i32) -> String {
        let said = Vec::from(self.0).join(" / ");
        let said = if said.is_empty() { "it said nothing" } else { said.as_str() };
        format!("there is no run file: {said} (exit status {status})")
    }
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
    let text = number().map_err(|e| EngineError::failed("naming the results", e))?;
    new_file::write(&path, Existing::Replace, text.as_bytes())
        .map_err(|e| EngineError::file(&path, e))?;
    Ok(text)
}
