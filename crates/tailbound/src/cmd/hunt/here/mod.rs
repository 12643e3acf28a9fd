// SPDX-License-Identifier: MIT OR Apache-2.0
//! `hunt --here`: the worst workload of this machine. A machine never shows the same twice, so what the search found
//! is no result: what is left of it is measured again, in turn with the worst single load, and `compare` judges.
//!
//! Units: ns. A run of a candidate: `machine`. Not here: which candidate is next (`tailbound-hunt`).

mod answer;
mod machine;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tailbound_core::Run;
use tailbound_core::plan::RunConfig;
use tailbound_core::units::{exact, parse_ns};
use tailbound_host::Root;
use tailbound_hunt::{Candidate, End, Entry, Origin, Search, Shrunk, machine as space};
use tailbound_report::compare::Answer;
use tailbound_run::{Request, resolve};
use tailbound_series::rounds::{self as series, Series, Variant};
use tailbound_stats::compare::{Settings, Systems};
use tailbound_stats::random::Random;

use self::machine::Here;
use super::corpus::{Folder, Header, HereHow};
use super::progress::Line;
use crate::caller::Machine;
use crate::cli_hunt::HuntArgs;
use crate::cmd::rounds::Shown;
use crate::input;
use crate::say::{self, Failure};

const EACH_NS: i64 = 2_000_000_000;
/// Shorter ones have no tail.
const EACH_MIN_NS: i64 = 200_000_000;
const ROUNDS: u32 = 2;
const ROUNDS_MAX: u32 = 100;
/// Of the last measurement: more than `compare` needs.
const LAST_ROUNDS: u32 = 12;
const WARM_UP: &str = "200ms";
/// Names of the two in the last measurement.
const SINGLE: &str = "single";
const FOUND: &str = "found";

/// What was found here.
struct FoundHere<'a> {
    header: &'a Header,
    how: &'a HereHow,
    folder: &'a Path,
    search: &'a Search,
    single: Option<&'a Entry>,
    /// None where nothing later than a single load was found, or it was interrupted.
    shrunk: Option<Shrunk>,
    judged: Option<Answer>,
    settings: Settings,
    runs: usize,
    took: Duration,
    interrupted: bool,
}

/// The running kernel.
pub(super) fn kernel() -> String {
    let release = Root::real().read_trimmed("/proc/sys/kernel/osrelease");
    release.unwrap_or_else(|_| "unknown".to_owned())
}

/// How candidates are measured.
pub(super) fn how(args: &HuntArgs) -> Result<HereHow, Failure> {
    let run_ns = match &args.each {
        None => EACH_NS,
        Some(text) => parse_ns(text).map_err(|e| Failure::usage(format!("--each: {e}")))?,
    };
    if run_ns < EACH_MIN_NS {
        return Err(Failure::usage(format!("--each: write at least {}", exact(EACH_MIN_NS))));
    }
    let rounds = args.rounds.unwrap_or(ROUNDS);
    if !(1..=ROUNDS_MAX).contains(&rounds) {
        return Err(Failure::usage(format!("--rounds: write 1 to {ROUNDS_MAX}")));
    }
    Ok(HereHow { run_ns, rounds, cpus: args.cpus.clone() })
}

/// `tailbound lab hunt --here`
pub(super) fn hunt(
    args: &HuntArgs,
    length: Option<Duration>,
    folder: &Path,
    header: &Header,
) -> Result<ExitCode, Failure> {
    let how = header.here.as_ref().ok_or_else(Failure::bug)?;
    let base = config(how, None);
    resolve(&Request { config: base.clone(), bare: false }, &Root::real())?;
    let mut folder = Folder::open(folder, header)?;
    let path = folder.path.clone();
    let file = path.join("measurement.toml");
    input::write(&file, &base.to_toml().map_err(Failure::cannot)?, true)?;
    let common: Vec<OsString> = vec!["--config".into(), file.into()];
    let line = Line::new(args.host.quiet);
    let begin = Instant::now();
    let until = length.map(|length| begin + length);
    let mut here = Here {
        caller: Machine::default(),
        folder: &path,
        common: common.clone(),
        rounds: how.rounds,
        order: Random::new(header.seed),
        until,
        shown: line.shown(until),
        runs: 0,
        interrupted: false,
        broken: None,
    };
    let mut search = Search::new(space(), header.seed, header.random);
    super::searched(args, &mut search, &mut folder, &mut here, &line)?;
    here.broken.take().map_or(Ok(()), Err)?;
    let Some(worst) = search.worst().cloned() else {
        return Err(super::nothing(&search, here.interrupted));
    };
    let single = search.worst_of_base();
    here.until = None;
    let mut found = FoundHere {
        header,
        how,
        folder: &path,
        search: &search,
        single,
        shrunk: None,
        judged: None,
        settings: Settings::default(),
        runs: 0,
        took: Duration::ZERO,
        interrupted: here.interrupted,
    };
    if worst.origin != Origin::Base && !here.interrupted {
        here.shown = line.shrinking();
        let (within, latest_ns) = (args.within / 100.0, worst.latest_ns().unwrap_or(0));
        let of = (&worst.candidate, latest_ns);
        let less = super::smaller(of, within, &space(), &mut folder, &mut here)?;
        line.clear();
        here.broken.take().map_or(Ok(()), Err)?;
        if let (End::Done, Some(single)) = (less.end, single) {
            let pair = [(SINGLE, &single.candidate), (FOUND, &less.candidate)];
            found.judged = last(&found, args, pair, &common, &mut here.caller)?;
        }
        found.interrupted = here.interrupted || (less.end == End::Done && found.judged.is_none());
        found.shrunk = Some(less);
    }
    here.clean();
    (found.runs, found.took) = (here.runs, begin.elapsed());
    answer::answer(&found, &args.host)?;
    Ok(if found.interrupted { ExitCode::from(5) } else { ExitCode::SUCCESS })
}

/// What all runs, or one candidate's, are asked for.
fn config(how: &HereHow, candidate: Option<&Candidate>) -> RunConfig {
    RunConfig {
        duration: Some(exact(how.run_ns)),
        warm_up: Some(WARM_UP.to_owned()),
        cpus: how.cpus.clone(),
        load: candidate.map(|c| vec![c.load()]),
        interval: candidate.map(super::guests::interval),
        ..RunConfig::default()
    }
}

/// Measures the two in turn; nothing where it was interrupted.
fn last(
    found: &FoundHere<'_>,
    args: &HuntArgs,
    pair: [(&str, &Candidate); 2],
    common: &[OsString],
    caller: &mut Machine,
) -> Result<Option<Answer>, Failure> {
    let mut variants = Vec::new();
    for (name, candidate) in pair {
        let config = config(found.how, Some(candidate));
        let plan = resolve(&Request { config, bare: false }, &Root::real())?.plan;
        variants.push(Variant { name: name.to_owned(), words: machine::words(candidate), plan });
    }
    let mut series = Series {
        id: format!("hunt-{}", std::process::id()),
        seed: found.header.seed,
        rounds: LAST_ROUNDS,
        folder: found.folder.join("last"),
        variants,
    };
    // Another find than the last one of this folder is measured anew.
    if series.settle(Some(found.header.seed), false).is_err() {
        series.settle(Some(found.header.seed), true)?;
    }
    if !args.host.quiet {
        say::note("The worst single load and what was found are measured in turn");
    }
    let mut shown = Shown::new(args.host.quiet);
    let made = series::make(&series, common, caller, &mut shown);
    shown.clear();
    if made? {
        return Ok(None);
    }
    let runs: Vec<Run> = input::runs(&input::in_folder(&series.folder)?)?;
    let order: Vec<String> = pair.iter().map(|(name, _)| (*name).to_owned()).collect();
    let systems = Systems::of(&[(input::name(&series.folder), runs)], &order);
    Ok(Some(Answer::of(systems.map_err(Failure::cannot)?, found.settings)))
}
