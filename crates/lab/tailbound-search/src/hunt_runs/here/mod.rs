// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worst workload of this machine. A machine never shows the same twice, so what the search found
//! is no result: what is left of it is measured again, in turn with the worst single load, and `compare` judges.
//!
//! Units: ns. A run of a candidate: `machine`. Not here: which candidate is next ([`crate::hunt`]).

mod answer;
mod machine;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tailbound_sys::new_file::Existing;

use serde_json::Value;
use tailbound_core::Run;
use tailbound_core::plan::RunConfig;
use tailbound_core::units::{exact, parse_ns};
use tailbound_host::Root;
use tailbound_lab::LabError;
use tailbound_lab::keep::write_text;
use tailbound_report::Style;
use tailbound_report::compare::Answer;
use tailbound_run::{Request, resolve};
use tailbound_series::Caller;
use tailbound_series::rounds::{self as series, Progress, Series, Variant};
use tailbound_stats::compare::{Settings, Systems};
use tailbound_stats::random::Random;

use self::machine::Here;
use super::corpus::{CorpusHeader, Folder, HereHow};
use super::{
    FolderReader, HuntCaller, HuntEnd, HuntListener, HuntOptions, MachineOptions, SearchStop,
    shrinking,
};
use crate::error::SearchError;
use crate::hunt::{Candidate, End, Entry, Guidance, Origin, Search, Shrunk, machine as space};

const EACH_NS: i64 = 2_000_000_000;
/// Shorter ones have no tail.
const EACH_MIN_NS: i64 = 200_000_000;
const ROUNDS: u32 = 2;
const ROUNDS_MAX: u32 = 100;
/// Of the last measurement: more than `compare` needs.
const LAST_ROUNDS: u32 = 12;
const WARM_UP: &str = "200ms";
/// Its folder.
const LAST: &str = "last";
/// Names of the two in the last measurement.
const SINGLE: &str = "single";
const FOUND: &str = "found";

/// What was found here.
#[derive(Debug)]
pub struct MachineHunt {
    header: CorpusHeader,
    how: HereHow,
    folder: PathBuf,
    search: Search,
    single: Option<Entry>,
    /// None where nothing later than a single load was found, or it was interrupted.
    shrunk: Option<Shrunk>,
    judged: Option<Answer>,
    settings: Settings,
    runs: usize,
    took: Duration,
    interrupted: bool,
}

impl MachineHunt {
    /// For people.
    #[must_use]
    pub fn text(&self, style: Style) -> String {
        answer::text(self, style.width)
    }

    /// For scripts.
    #[must_use]
    pub fn json(&self) -> Value {
        answer::json(self)
    }

    /// How it ended.
    #[must_use]
    pub fn end(&self) -> HuntEnd {
        if self.interrupted { HuntEnd::Interrupted } else { HuntEnd::Done }
    }
}

/// The running kernel.
pub(super) fn kernel() -> String {
    let release = Root::real().read_trimmed("/proc/sys/kernel/osrelease");
    release.unwrap_or_else(|_| "unknown".to_owned())
}

/// How candidates are measured.
pub(super) fn how(options: &MachineOptions) -> Result<HereHow, SearchError> {
    let run_ns = match &options.each {
        None => EACH_NS,
        Some(text) => parse_ns(text).map_err(SearchError::Each)?,
    };
    if run_ns < EACH_MIN_NS {
        return Err(SearchError::EachTooShort { least_ns: EACH_MIN_NS });
    }
    let rounds = options.rounds.unwrap_or(ROUNDS);
    if !(1..=ROUNDS_MAX).contains(&rounds) {
        return Err(SearchError::CandidateRounds { most: ROUNDS_MAX });
    }
    Ok(HereHow { run_ns, rounds, cpus: options.cpus.clone() })
}

/// Hunts on this machine.
pub(super) fn hunt<C: Caller<Error: Into<SearchError>>>(
    options: &HuntOptions,
    folder: &Path,
    header: CorpusHeader,
    caller: &mut HuntCaller<'_, C>,
) -> Result<MachineHunt, SearchError> {
    let how = header.here.clone().ok_or(LabError::Bug)?;
    let base = config(&how, None);
    resolve(&Request { config: base.clone(), bare: false }, &Root::real())?;
    let mut folder = Folder::open(folder, &header)?;
    let path = folder.path.clone();
    let file = path.join("measurement.toml");
    write_text(&file, &base.to_toml()?)?;
    let common: Vec<OsString> = vec!["--config".into(), file.into()];
    let listener = caller.listener;
    listener.begins();
    let begin = Instant::now();
    let until = options.length.map(|length| begin + length);
    let mut here = Here {
        caller: &mut caller.machine,
        folder: &path,
        common: common.clone(),
        rounds: how.rounds,
        order: Random::new(header.seed),
        until,
        shown: Box::new(move |runs| listener.searching(runs, until)),
        runs: 0,
        interrupted: false,
        broken: None,
    };
    let mut search = Search::new(space(), header.seed, Guidance::chance_if(header.random));
    super::searched(options.evaluations, &mut search, &mut folder, &mut here, listener)?;
    here.broken.take().map_or(Ok(()), Err)?;
    let Some(worst) = search.worst().cloned() else {
        return Err(super::nothing(&search, SearchStop::by_signal_if(here.interrupted)));
    };
    here.until = None;
    let mut found = MachineHunt {
        single: search.worst_of_base().cloned(),
        header,
        how,
        folder: path.clone(),
        search,
        shrunk: None,
        judged: None,
        settings: Settings::default(),
        runs: 0,
        took: Duration::ZERO,
        interrupted: here.interrupted,
    };
    if worst.origin != Origin::Base && !here.interrupted {
        here.shown = shrinking(listener);
        let latest_ns = worst.latest_ns().unwrap_or(0);
        let of = (&worst.candidate, latest_ns);
        let less = super::smaller(of, options.within, &space(), &mut folder, &mut here)?;
        listener.clear();
        here.broken.take().map_or(Ok(()), Err)?;
        if let (End::Done, Some(single)) = (less.end, &found.single) {
            let pair = [(SINGLE, &single.candidate), (FOUND, &less.candidate)];
            let last =
                Last { machine: here.caller, listener, rounds: caller.rounds, runs: caller.runs };
            found.judged = last.measure(&found, pair, &common)?;
        }
        found.interrupted = here.interrupted || (less.end == End::Done && found.judged.is_none());
        found.shrunk = Some(less);
    }
    here.clean();
    (found.runs, found.took) = (here.runs, begin.elapsed());
    Ok(found)
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

/// The last measurement.
struct Last<'a, C> {
    machine: &'a mut C,
    listener: &'a dyn HuntListener,
    rounds: &'a mut dyn Progress,
    runs: &'a FolderReader<'a>,
}

impl<C: Caller<Error: Into<SearchError>>> Last<'_, C> {
    /// Measures the two in turn; nothing where it was interrupted.
    fn measure(
        self,
        found: &MachineHunt,
        pair: [(&str, &Candidate); 2],
        common: &[OsString],
    ) -> Result<Option<Answer>, SearchError> {
        let mut variants = Vec::new();
        for (name, candidate) in pair {
            let config = config(&found.how, Some(candidate));
            let plan = resolve(&Request { config, bare: false }, &Root::real())?.plan;
            variants.push(Variant {
                name: name.to_owned(),
                words: machine::words(candidate),
                plan,
            });
        }
        let mut series = Series {
            id: format!("hunt-{}", std::process::id()),
            seed: found.header.seed,
            rounds: LAST_ROUNDS,
            folder: found.folder.join(LAST),
            variants,
        };
        // Another find than the last one of this folder is measured anew.
        if series.settle(Some(found.header.seed), Existing::Keep).is_err() {
            series.settle(Some(found.header.seed), Existing::Replace)?;
        }
        self.listener.note("The worst single load and what was found are measured in turn");
        let made = series::make(&series, common, self.machine, self.rounds);
        self.listener.clear();
        if made.map_err(Into::into)? {
            return Ok(None);
        }
        let runs: Vec<Run> = (self.runs)(&series.folder)?;
        let order: Vec<String> = pair.iter().map(|(name, _)| (*name).to_owned()).collect();
        let systems = Systems::of(&[(LAST.to_owned(), runs)], &order);
        let systems = systems.map_err(|e| SearchError::NotCompared { why: e.to_string() })?;
        Ok(Some(Answer::of(systems, found.settings)))
    }
}
