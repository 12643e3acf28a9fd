// SPDX-License-Identifier: MIT OR Apache-2.0
//! What became worse: the change search of `history` over the figures that the store keeps of each run.
//!
//! Units: ns. A series is the same system and the same workload. With many series some changes are found by chance:
//! whoever shows them says how many to expect.

mod kept;
mod text;

pub(crate) use text::NO_FACT;

use serde::{Deserialize, Serialize};
use tailbound_core::number::Real as _;
use tailbound_stats::change::{self, FactChange, Features, Settings};
use tailbound_store::{RunRow, Store, StoreError, SystemName};

use crate::changes;
pub use kept::{kept, look_at, look_at_all, search};

/// How far back, unless something else is asked for.
pub const DAYS: i64 = 180;
/// Newest runs of a series that are looked at.
const RUNS: u32 = 400;

/// A series whose newest change made it worse.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Regression {
    /// Which system.
    pub system: String,
    /// Its name.
    pub name: String,
    /// Which series of it: runs with the same workload.
    pub workload: String,
    /// Loads of the series.
    pub loads: String,
    /// The first run after the change.
    pub since_run: String,
    /// When it began.
    pub since: String,
    /// The last run before the change.
    pub before_run: String,
    /// What moved beyond the margin.
    pub moved: Vec<Moved>,
    /// The kernel before and after, where it is not the same.
    pub kernel: Option<[String; 2]>,
    /// Names of the facts of the machine that changed near it, the nearest first.
    pub changed: Vec<String>,
    /// The same with what they were and are.
    pub facts: Vec<FactChange>,
    /// When the newest run of the series began.
    pub newest: String,
}

/// A figure before and after.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Moved {
    /// Which: a quantile, or the latest.
    pub figure: String,
    /// Before the change, the mean of its runs.
    pub before_ns: f64,
    /// After it.
    pub after_ns: f64,
    /// After by before.
    pub ratio: f64,
}

/// What was looked at and what was found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RegressionSearch {
    /// Series that were long enough.
    pub series: usize,
    /// Series with fewer runs than a change can be told from.
    pub short: usize,
    /// Series with runs that were not looked at yet.
    pub waiting: usize,
    /// The system of each of them.
    #[serde(skip)]
    pub waiting_of: Vec<String>,
    /// Chance level of each search.
    pub level: f64,
    /// The newest first.
    pub regressions: Vec<Regression>,
    /// Each series with what was found of it.
    #[serde(skip)]
    pub told: Vec<SeriesOutcome>,
}

/// What was found of a series.
#[derive(Clone, Debug)]
pub struct SeriesOutcome {
    /// Its system.
    pub system: String,
    /// Its probe and loads.
    pub workload: String,
    /// What came of it.
    pub state: State,
}

/// What came of the search in a series.
#[derive(Clone, Debug)]
pub enum State {
    /// It did not become worse, or is better again.
    Well,
    /// Nothing can be told: why.
    Unknown(String),
    /// It became worse and stayed so.
    Worse(Box<Regression>),
}

/// The figures that a row has, in the order of `change::FIGURES`; those it has not are absent from the search.
fn features(run: &RunRow) -> Features {
    let [p50, p99, p999, p9999, ..] = run.quantiles_ns;
    let all = [p50, run.p90_ns, p99, p999, p9999, run.block_max_ns];
    Features { ns: all.map(|ns| ns.filter(|ns| *ns > 0).map(|ns| ns.real())) }
}

/// What is to be said of one series, the oldest run first: whoever shows it asks here.
fn state_of(
    store: &mut Store,
    system: &SystemName,
    runs: &[RunRow],
    settings: Settings,
) -> Result<State, StoreError> {
    let mut state = of_series(system, runs, settings);
    if let State::Worse(regression) = &mut state {
        let at = runs.iter().position(|run| run.id == regression.since_run);
        regression.facts = changes::near(store, runs, at.unwrap_or(0))?;
        regression.changed = regression.facts.iter().map(|f| f.name.clone()).collect();
    }
    Ok(state)
}

/// Looks for changes in one series, the oldest run first.
fn of_series(system: &SystemName, runs: &[RunRow], settings: Settings) -> State {
    let features: Vec<Features> = runs.iter().map(features).collect();
    let history = change::history(&features, settings);
    if let Some(why) = history.why_not {
        return State::Unknown(why);
    }
    let Some(change) = history.changes.last().filter(|c| c.worse) else { return State::Well };
    let after = runs.get(change.at);
    let before = change.at.checked_sub(1).and_then(|at| runs.get(at));
    let (Some(after), Some(before)) = (after, before) else { return State::Well };
    let moved = change.moved.iter().filter(|m| m.beyond_margin).map(|m| Moved {
        figure: m.figure.to_owned(),
        before_ns: m.before_ns,
        after_ns: m.after_ns,
        ratio: m.ratio,
    });
    let kernel = |run: &RunRow| run.kernel.clone().unwrap_or_else(|| "unknown".to_owned());
    State::Worse(Box::new(Regression {
        system: system.id.clone(),
        name: system.name.clone(),
        workload: after.workload.clone(),
        loads: after.loads.clone(),
        since_run: after.id.clone(),
        since: after.started.clone(),
        before_run: before.id.clone(),
        moved: moved.collect(),
        kernel: (before.kernel_id != after.kernel_id).then(|| [kernel(before), kernel(after)]),
        changed: Vec::new(),
        facts: Vec::new(),
        newest: runs.last().map_or_else(String::new, |run| run.started.clone()),
    }))
}
