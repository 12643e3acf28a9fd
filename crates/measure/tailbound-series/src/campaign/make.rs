// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs of a campaign on this machine, each in a process of its own.
//!
//! Units: ns.

use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;

use tailbound_core::campaign::{Part, TimedFrom};
use tailbound_core::plan::RunConfig;
use tailbound_core::{Plan, Run};

use super::CampaignEnd;
use super::folder::{self, Folder};
use super::follow::{Follow, SoFar};
use super::options::Options;
use super::pieces::Pieces;
use super::shipped::Chosen;
use crate::caller::Caller;
use crate::error::SeriesError;

/// What a run takes besides warm-up and measurement.
const OVERHEAD_NS: i64 = 1_000_000_000;

/// A source of pulses rounds its interval to ticks of its own: by less than this part.
const CLOCKS_APART: u64 = 100;

/// What a campaign needs beside its runs.
pub trait CampaignCaller: Caller {
    /// What `config` comes to on this machine, or why it cannot be made here; without the default load where `part` only times benchmarks or is timed from outside.
    ///
    /// # Errors
    /// When it cannot be made here.
    fn plan(&mut self, config: &RunConfig, part: &Part) -> Result<Plan, Self::Error>;

    /// Writes the page of a run of benchmarks alone, whose file is `file`, to `page`.
    ///
    /// # Errors
    /// When it cannot be written.
    fn page(&mut self, run: &Run, file: &Path, page: &Path) -> Result<(), Self::Error>;
}

/// What is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Ahead<'a> {
    /// Runs that are complete already.
    pub kept: usize,
    /// Runs to be made.
    pub open: usize,
    /// How many of them are benchmarks alone, whose length nobody knows.
    pub benchmarks: usize,
    /// About how long the others take.
    pub left_ns: i64,
    /// Where they go.
    pub folder: &'a Path,
}

/// The run that is being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now<'a> {
    /// Which, from 0.
    pub at: usize,
    /// Of how many.
    pub of: usize,
    /// Its part's name.
    pub part: &'a str,
    /// Since the first run began.
    pub elapsed_ns: i64,
    /// About how long this run and all after it still take.
    pub left_ns: i64,
}

/// Hears how far a campaign is.
pub trait Progress {
    /// A part cannot be made here.
    fn refused(&mut self, part: &str, why: &str);
    /// Before the first run.
    fn begins(&mut self, ahead: &Ahead<'_>);
    /// Some ten times per second; `follow` tells what the run says so far.
    fn tick(&mut self, now: &Now<'_>, follow: &mut Follow);
    /// A run is complete.
    fn done(&mut self, now: &Now<'_>, so_far: Option<SoFar>);
    /// A run is not.
    fn failed(&mut self, part: &str, why: &str);
}

/// A run to be made.
struct Job<'a> {
    part: &'a Part,
    config: RunConfig,
    plan: Plan,
    /// What pieces of it that are there leave to be measured; `None`: there are none.
    left_ns: Option<i64>,
}

/// Makes every one of `parts` that is not there yet.
///
/// # Errors
/// When a run cannot be started or its files cannot be written. A run that fails is noted in the folder, and the
/// next one is made.
pub fn make<C: CampaignCaller>(
    options: &Options,
    chosen: &Chosen,
    parts: &[Part],
    folder: &Folder,
    caller: &mut C,
    progress: &mut dyn Progress,
) -> Result<CampaignEnd, C::Error> {
    let name = options.system.clone().map_or_else(release, Ok)?;
    let system = folder.system(&name)?;
    let mut open: Vec<Job<'_>> = Vec::new();
    let (mut kept, mut refused) = (0, Vec::new());
    for part in parts {
        let config = options.config(&chosen.file.name, part);
        if part.timed_from == TimedFrom::Outside && options.via.is_none() {
            // Who has no source of pulses has everything else: not a failure of this machine.
            folder::forget_failed(&system, &part.id);
            progress.refused(&part.id, &SeriesError::NoSource.to_string());
            continue;
        }
        let plan = match caller.plan(&config, part) {
            Ok(plan) => plan,
            Err(e) => {
                refused.push((part, e.to_string()));
                continue;
            }
        };
        let file = folder::run_file(&system, &part.id);
        let mut left_ns = None;
        if part.timed_from == TimedFrom::Outside {
            let pieces = Pieces::settle(&file, &plan, caller)?;
            if options.force {
                pieces.forget();
            } else {
                left_ns = pieces.left_ns(&plan);
                pieces.merge(&plan)?;
            }
        }
        match caller.complete(&file) {
            Some(run) if same(&run.header.plan, &plan, part) => kept += 1,
            Some(_) if !options.force => {
                return Ok(CampaignEnd::taken(SeriesError::OtherOptions { path: file }));
            }
            _ => open.push(Job { part, config, plan, left_ns }),
        }
    }
    for (part, why) in &refused {
        folder::keep_failed(&system, &part.id, why)?;
        progress.refused(&part.id, why);
    }
    let pace = Pace::new(&open);
    let benchmarks = open.iter().filter(|j| j.part.only_work).count();
    let left_ns = pace.left_ns(0);
    progress.begins(&Ahead { kept, open: open.len(), benchmarks, left_ns, folder: &system });
    for (at, job) in open.iter().enumerate() {
        if one(job, &system, options, &pace.starts(at), caller, progress)? {
            return Ok(CampaignEnd::by_signal());
        }
    }
    Ok(CampaignEnd::default())
}

/// The same but for the ticks of a source of pulses.
pub(super) fn near(a: i64, b: i64) -> bool {
    a.abs_diff(b) <= b.unsigned_abs() / CLOCKS_APART
}

/// Is the run that is there the one that would be made?
fn same(there: &Plan, wanted: &Plan, part: &Part) -> bool {
    match part.timed_from {
        TimedFrom::Outside => {
            near(there.interval_ns, wanted.interval_ns)
                && near(there.duration_ns(), wanted.duration_ns())
        }
        TimedFrom::Inside if part.only_work => there.work == wanted.work,
        TimedFrom::Inside => there == wanted,
    }
}

/// Makes one run; `true`: ended by a signal.
fn one<C: CampaignCaller>(
    job: &Job<'_>,
    system: &Path,
    options: &Options,
    pace: &Started<'_>,
    caller: &mut C,
    progress: &mut dyn Progress,
) -> Result<bool, C::Error> {
    let id = &job.part.id;
    folder::forget_failed(system, id);
    let file = folder::run_file(system, id);
    let mut arguments = match (job.part.timed_from, &options.via) {
        (TimedFrom::Outside, Some(via)) => {
            let rest = job.left_ns.map(|ns| format!("{ns}ns"));
            let duration = rest.or_else(|| job.config.duration.clone());
            outside_arguments(&RunConfig { duration, ..job.config.clone() }, via)
        }
        _ => inside_arguments(job, system)?,
    };
    arguments.extend(["--quiet", "--force", "--out"].map(OsString::from));
    arguments.push(file.clone().into());
    if let Some(at) = &options.begin_at {
        arguments.extend(["--begin-at".into(), at.into()]);
    }
    let mut follow = Follow::new(&file);
    let ended =
        caller.make(&arguments, system, &mut || progress.tick(&pace.now(id), &mut follow))?;
    if job.part.timed_from == TimedFrom::Outside && caller.complete(&file).is_some() {
        Pieces::settle(&file, &job.plan, caller)?.merge(&job.plan)?;
    }
    let whole = caller.complete(&file);
    // A run beside the default load has its page from its own child.
    if let (Some(run), false) = (&whole, job.part.has_default_load()) {
        caller.page(run, &file, &folder::report_file(system, id))?;
    }
    if ended.interrupted {
        return Ok(true);
    }
    follow.look();
    match whole {
        Some(_) => progress.done(&pace.now(id), follow.so_far()),
        None => {
            let why = ended.reason("it ended without a message");
            folder::keep_failed(system, id, why)?;
            progress.failed(id, why);
        }
    }
    Ok(false)
}

/// The options of a child that has the machine pulsed and timed from outside.
fn outside_arguments(config: &RunConfig, via: &str) -> Vec<OsString> {
    let flags = [
        ("--interval", &config.interval),
        ("--duration", &config.duration),
        ("--deadline", &config.deadline),
    ];
    let given = flags.into_iter().filter_map(|(flag, value)| Some((flag, value.as_deref()?)));
    let given = given.flat_map(|(flag, value)| [flag, value]);
    ["box", "run", "--via", via].into_iter().chain(given).map(OsString::from).collect()
}

/// The options of a child that makes `job`; what a run needs to know lies in a file beside its own.
fn inside_arguments(job: &Job<'_>, system: &Path) -> Result<Vec<OsString>, SeriesError> {
    let id = &job.part.id;
    let words: Vec<OsString> = if job.part.only_work {
        let benchmarks = job.config.work.iter().flatten().map(OsString::from);
        let repeat = job.plan.work.as_ref().map_or(1, |w| w.repeat).to_string();
        ["measure", "benchmark"]
            .map(OsString::from)
            .into_iter()
            .chain(benchmarks)
            .chain(["--repeat".into(), repeat.into()])
            .collect()
    } else {
        let toml = system.join(format!("{id}.toml"));
        let unsaid = |source| SeriesError::Config { path: toml.clone(), source };
        let text = job.config.to_toml().map_err(unsaid)?;
        folder::whole(&toml, &text).map_err(|e| SeriesError::unwritten(&toml, e))?;
        let report = folder::report_file(system, id);
        vec![
            "run".into(),
            "--yes".into(),
            "--config".into(),
            toml.into(),
            "--report".into(),
            report.into(),
        ]
    };
    Ok(words)
}

/// The kernel's release, which tells one system of a machine from another.
fn release() -> Result<String, SeriesError> {
    std::fs::read_to_string("/proc/sys/kernel/osrelease")
        .map(|t| t.trim().to_owned())
        .map_err(SeriesError::Release)
}

/// How long the runs take.
struct Pace {
    begun: Instant,
    lengths_ns: Vec<i64>,
}

/// The same, while one of them is made.
struct Started<'a> {
    pace: &'a Pace,
    at: usize,
    begun: Instant,
}

impl Pace {
    fn new(open: &[Job<'_>]) -> Self {
        let length = |job: &Job<'_>| {
            let planned_ns = job.left_ns.unwrap_or_else(|| job.plan.duration_ns());
            let own = if job.part.only_work { 0 } else { planned_ns };
            own.saturating_add(job.plan.warm_up_ns).saturating_add(OVERHEAD_NS)
        };
        Self { begun: Instant::now(), lengths_ns: open.iter().map(length).collect() }
    }

    fn left_ns(&self, from: usize) -> i64 {
        self.lengths_ns.iter().skip(from).fold(0, |a, b| a.saturating_add(*b))
    }

    fn starts(&self, at: usize) -> Started<'_> {
        Started { pace: self, at, begun: Instant::now() }
    }
}

impl Started<'_> {
    fn now<'a>(&self, part: &'a str) -> Now<'a> {
        let since = |at: Instant| i64::try_from(at.elapsed().as_nanos()).unwrap_or(i64::MAX);
        let left_ns = self.pace.left_ns(self.at).saturating_sub(since(self.begun));
        Now {
            at: self.at,
            of: self.pace.lengths_ns.len(),
            part,
            elapsed_ns: since(self.pace.begun),
            left_ns: left_ns.max(self.pace.left_ns(self.at + 1)),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use tailbound_stats::campaign::State;
    use tailbound_sys::new_file::Existing;

    use super::super::{find, wanted};
    use super::*;
    use crate::testing::Fake;

    #[derive(Default)]
    pub(in super::super) struct Heard(Vec<String>);

    impl Progress for Heard {
        fn refused(&mut self, part: &str, why: &str) {
            self.0.push(format!("{part} refused: {why}"));
        }
        fn begins(&mut self, ahead: &Ahead<'_>) {
            self.0.push(format!("{} there, {} open", ahead.kept, ahead.open));
        }
        fn tick(&mut self, now: &Now<'_>, follow: &mut Follow) {
            follow.look();
            assert!(now.at < now.of && now.left_ns >= 0);
        }
        fn done(&mut self, now: &Now<'_>, _: Option<SoFar>) {
            self.0.push(format!("{} done", now.part));
        }
        fn failed(&mut self, part: &str, why: &str) {
            self.0.push(format!("{part} failed: {why}"));
        }
    }

    fn options(cpus: Option<&str>) -> Options {
        Options {
            cpus: cpus.map(str::to_owned),
            system: Some("a/b".to_owned()),
            ..Options::default()
        }
    }

    #[test]
    fn a_campaign_is_resumed_and_what_failed_is_made_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("c");
        let chosen = find("mckenney-2009").expect("shipped");
        let parts: Vec<Part> =
            wanted(&chosen, &[]).expect("parts").into_iter().filter(|p| !p.only_work).collect();
        let taken = Folder::settle(&path, &chosen, Existing::Keep).expect("a new folder");
        let first = format!("{}.tailbound.jsonl", parts[0].id);
        let mut caller = Fake { fails: vec![first.clone()], ..Fake::default() };
        let mut heard = Heard::default();
        let none = options(None);
        let made = make(&none, &chosen, &parts, &taken, &mut caller, &mut heard).expect("made");
        assert!(!made.interrupted && made.taken.is_none());
        assert_eq!(heard.0[1], format!("{} failed: no such CPU", parts[0].id));
        let there = folder::systems(&path, &parts, "", &mut caller).expect("read");
        assert_eq!((there.len(), there[0].0.as_str()), (1, "a-b"));
        assert!(matches!(&there[0].1.places[0].state, State::Failed(why) if why == "no such CPU"));
        let mut caller = Fake::default();
        let mut heard = Heard::default();
        make(&none, &chosen, &parts, &taken, &mut caller, &mut heard).expect("made");
        assert_eq!(heard.0[0], format!("{} there, 1 open", parts.len() - 1));
        assert_eq!(caller.made, [first]);
        let there = folder::systems(&path, &parts, "", &mut caller).expect("read");
        let complete =
            |p: &tailbound_stats::campaign::CampaignRun| matches!(p.state, State::Complete(_));
        assert!(there[0].1.places.iter().all(complete));
    }

    #[test]
    fn what_cannot_be_made_here_is_noted_and_the_folder_of_another_is_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        let chosen = find("mckenney-2009").expect("shipped");
        let parts = wanted(&chosen, &[]).expect("parts");
        let taken = Folder::settle(folder.path(), &chosen, Existing::Keep).expect("a new folder");
        let (mut caller, mut heard) = (Fake::default(), Heard::default());
        make(&options(Some("none")), &chosen, &parts, &taken, &mut caller, &mut heard)
            .expect("nothing to do");
        assert!(caller.made.is_empty() && heard.0.len() == parts.len() + 1, "{:?}", heard.0);
        let other = find("osadl-farm").expect("shipped");
        let e = Folder::settle(folder.path(), &other, Existing::Keep).expect_err("another");
        assert!(e.is_taken() && e.kind() == tailbound_core::FailureKind::Usage, "{e}");
    }

    #[test]
    fn a_run_that_is_timed_from_outside_needs_a_source_of_pulses_and_asks_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let chosen = find("altenberg-2016").expect("shipped");
        let only = ["pin".to_owned(), "user".to_owned()];
        let parts = wanted(&chosen, &only).expect("parts");
        assert_eq!((parts[0].id.as_str(), parts[1].id.as_str()), ("user", "pin"));
        let taken = Folder::settle(folder.path(), &chosen, Existing::Keep).expect("a new folder");
        let (mut caller, mut heard) = (Fake::default(), Heard::default());
        make(&options(None), &chosen, &parts, &taken, &mut caller, &mut heard).expect("made");
        assert_eq!(caller.made.len(), 1);
        assert!(heard.0[0].starts_with("pin refused: it is timed from outside"), "{:?}", heard.0);
        let there = folder::systems(folder.path(), &parts, "", &mut caller).expect("read");
        assert!(
            matches!(&there[0].1.places[1].state, State::NotHere(why) if why.contains("--via"))
        );
        let with = Options { via: Some("pico:/dev/ttyACM0".to_owned()), ..options(None) };
        let mut heard = Heard::default();
        make(&with, &chosen, &parts, &taken, &mut caller, &mut heard).expect("made");
        assert_eq!(heard.0, ["1 there, 1 open", "pin done"]);
        let mut heard = Heard::default();
        make(&with, &chosen, &parts, &taken, &mut caller, &mut heard).expect("there");
        assert_eq!(heard.0, ["2 there, 0 open"]);
        let config = with.config("altenberg-2016", &parts[1]);
        let words = outside_arguments(&config, "pico:/dev/ttyACM0");
        assert_eq!(
            words,
            [
                "box",
                "run",
                "--via",
                "pico:/dev/ttyACM0",
                "--interval",
                "100us",
                "--duration",
                "12h"
            ]
        );
    }
}
