// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs candidates on this machine: each some times, in rounds of random order, so that what comes and goes on the
//! machine falls on all of them.
//!
//! Every run is a process of its own. Units: ns. A candidate counts for the least of its latest
//! wake-ups: what happened in one round alone may have been anything.

use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;

use tailbound_series::Caller;
use tailbound_stats::random::Random;

use super::super::guests::{first_line, interval};
use crate::error::SearchError;
use crate::hunt::{Candidate, End, Evaluator, Figures, Outcome};

/// A run of it, as the file is called while it is read.
const FILE: &str = "candidate.tailbound.jsonl";
/// The page beside it.
const PAGE: &str = "candidate.html";

/// What a run says of a load that was none.
const NO_LOAD: [&str; 2] = ["load-failed", "load-idle"];

/// Why a run says nothing of its candidate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum NoFigure {
    /// A load that failed or did nothing is not what was to be tried.
    #[error("{0}")]
    Load(String),
    #[error("no wake-up was measured")]
    Nothing,
    /// It left no run; what the program said.
    #[error("{0}")]
    Run(String),
}

/// This machine.
pub(super) struct Here<'a, C> {
    pub(super) caller: &'a mut C,
    pub(super) folder: &'a Path,
    /// What all runs have in common.
    pub(super) common: Vec<OsString>,
    /// Runs of each candidate.
    pub(super) rounds: u32,
    /// Of the order of runs.
    pub(super) order: Random,
    /// Nothing is begun after this time.
    pub(super) until: Option<Instant>,
    /// Told how many runs were made.
    pub(super) shown: Box<dyn FnMut(usize) + 'a>,
    pub(super) runs: usize,
    pub(super) interrupted: bool,
    /// This program could not start or read a run: no fault of a candidate.
    pub(super) broken: Option<SearchError>,
}

/// The words of `run` for a candidate.
pub(super) fn words(candidate: &Candidate) -> Vec<String> {
    ["--load", &candidate.load(), "--interval", &interval(candidate)].map(str::to_owned).to_vec()
}

impl<C: Caller<Error: Into<SearchError>>> Here<'_, C> {
    /// The latest wake-up of one run, or why there is none; nothing where it was interrupted.
    fn one(&mut self, candidate: &Candidate) -> Result<Option<Result<i64, NoFigure>>, SearchError> {
        let file = self.folder.join(FILE);
        let mut all: Vec<OsString> = vec!["run".into()];
        all.extend(self.common.iter().cloned());
        all.extend(words(candidate).into_iter().map(OsString::from));
        all.extend(["--quiet", "--force", "--yes", "--out"].map(OsString::from));
        all.push(file.clone().into());
        let (shown, runs) = (&mut self.shown, self.runs);
        let ended = self.caller.make(&all, self.folder, &mut || shown(runs)).map_err(Into::into)?;
        if ended.interrupted {
            self.interrupted = true;
            return Ok(None);
        }
        self.runs += 1;
        let run = self.caller.complete(&file);
        let latest = run.map(|run| {
            let idle = run.findings.iter().find(|f| NO_LOAD.contains(&f.id.as_str()));
            match (idle, run.judged_total().0.max_ns) {
                (Some(why), _) => Err(NoFigure::Load(why.title.clone())),
                (None, Some(ns)) => Ok(ns),
                (None, None) => Err(NoFigure::Nothing),
            }
        });
        let reason = || first_line(ended.reason("it left no complete run and no message"));
        Ok(Some(latest.unwrap_or_else(|| Err(NoFigure::Run(reason())))))
    }

    /// Takes the last candidate's files away.
    pub(super) fn clean(&self) {
        for path in [PAGE, FILE].map(|name| self.folder.join(name)) {
            // Where it was never made there is nothing to remove.
            drop(std::fs::remove_file(path));
        }
    }

    /// All rounds of a batch; `None` where time was up or a signal came.
    fn rounds(&mut self, batch: &[Candidate]) -> Result<Option<Vec<Outcome>>, SearchError> {
        let mut found: Vec<Result<i64, NoFigure>> = vec![Ok(i64::MAX); batch.len()];
        for _ in 0..self.rounds {
            let mut order: Vec<usize> = (0..batch.len()).collect();
            self.order.shuffle(&mut order);
            for at in order {
                let (Some(candidate), Some(place)) = (batch.get(at), found.get_mut(at)) else {
                    continue;
                };
                let Ok(least) = *place else { continue };
                if self.until.is_some_and(|until| Instant::now() >= until) {
                    return Ok(None);
                }
                let Some(made) = self.one(candidate)? else { return Ok(None) };
                *place = made.map(|ns: i64| ns.min(least));
            }
        }
        let outcome = |made: Result<i64, NoFigure>| match made {
            Ok(latest_ns) => Outcome::Ran(Figures { latest_ns, ..Figures::default() }),
            Err(why) => Outcome::Failed(why.to_string()),
        };
        Ok(Some(found.into_iter().map(outcome).collect()))
    }
}

impl<C: Caller<Error: Into<SearchError>>> Evaluator for Here<'_, C> {
    fn evaluate(&mut self, batch: &[Candidate], told: &mut dyn FnMut(Outcome)) -> End {
        match self.rounds(batch) {
            Ok(Some(all)) => {
                all.into_iter().for_each(told);
                End::Done
            }
            Ok(None) => End::Early,
            Err(failure) => {
                self.broken.get_or_insert(failure);
                End::Early
            }
        }
    }
}
