// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was found of each series when a run of it arrived, kept in the store.
//!
//! [`look_at`] is the only way in, [`kept`] and [`search`] the only ways out: what lies between is the search as it is.

use serde_json::json;
use tailbound_core::order;
use tailbound_core::utc;
use tailbound_stats::change::Settings;
use tailbound_store::{
    DueSeries, KeptSeries, SeriesState, Since, Store, StoreError, SystemName, Whose,
};

use super::{DAYS, RUNS, Regression, RegressionSearch, SeriesOutcome, State, state_of};

const S_PER_DAY: i64 = 86_400;
/// Series that are asked for at a time.
const TOGETHER: u32 = 256;

/// The day before which runs do not count, where the newest began at `newest`; all count where that is no time.
fn first_day(newest: &str) -> Since {
    let at = newest
        .get(..10)
        .zip(newest.get(11..19))
        .and_then(|(date, time)| utc::from_date_time(date, time));
    let Some(at) = at else { return Since::Ever };
    let mut day = utc::rfc3339(at.saturating_sub(DAYS * S_PER_DAY));
    day.truncate(10);
    Since::From(day)
}

/// What is to be said of a series now: of its newest runs, within so many days of the newest of them.
fn state_now(
    store: &mut Store,
    system: &SystemName,
    workload: &str,
    newest: &str,
) -> Result<State, StoreError> {
    let of = [system.id.as_str(), workload];
    let mut runs = store.runs_of_series(of, &first_day(newest), RUNS)?;
    runs.reverse();
    state_of(store, system, &runs, Settings::default())
}

/// Looks at a series that is due, and keeps what is found.
///
/// # Errors
/// The database refuses.
pub fn look_at(store: &mut Store, due: &DueSeries, now: &str) -> Result<(), StoreError> {
    let Some(system) = store.system_named(&due.system)? else { return Ok(()) };
    let (state, json) = match state_now(store, &system, &due.workload, &due.newest)? {
        State::Well => (SeriesState::Well, json!(null)),
        State::Unknown(why) => (SeriesState::Unknown, json!(why)),
        State::Worse(regression) => (SeriesState::Worse, json!(regression)),
    };
    store.keep_series(due, state, &json.to_string(), now)
}

/// Looks at everything that is due.
///
/// # Errors
/// The database refuses.
pub fn look_at_all(store: &mut Store, now: &str) -> Result<(), StoreError> {
    loop {
        let due = store.due_series(Whose::All, TOGETHER)?;
        if due.is_empty() {
            return Ok(());
        }
        for series in &due {
            look_at(store, series, now)?;
        }
    }
}

/// What was found of all series with a run since `since`, or of one system's.
///
/// # Errors
/// The database refuses.
pub fn kept(
    store: &mut Store,
    since: &Since,
    only: Option<&SystemName>,
) -> Result<RegressionSearch, StoreError> {
    let mut found = RegressionSearch::new(Settings::default());
    for series in all(store, since, only)? {
        let state = state_kept(&series);
        // What cannot be read is of another version: what it found is not known until it is looked at again.
        let is_lost = series.state.is_some() && state.is_none();
        if series.due > 0 || is_lost {
            found.waiting += 1;
            found.waiting_of.push(series.system.clone());
        }
        if let Some(state) = state {
            found.add(state, since);
        }
    }
    Ok(found.in_order())
}

/// The same as it is now: a series with runs that were not looked at is looked at, and what is found is not kept.
///
/// # Errors
/// The database refuses.
pub fn search(
    store: &mut Store,
    since: &Since,
    only: Option<&SystemName>,
) -> Result<RegressionSearch, StoreError> {
    let mut found = RegressionSearch::new(Settings::default());
    for series in all(store, since, only)? {
        let state = match state_kept(&series).filter(|_| series.due == 0) {
            Some(state) => state,
            None => {
                let system = SystemName { id: series.system, name: series.name.clone() };
                state_now(store, &system, &series.workload, &series.newest)?
            }
        };
        let workload = match series.loads.as_str() {
            "" => format!("{} without load", series.probe),
            loads => format!("{} beside {loads}", series.probe),
        };
        let state = found.add(state, since);
        found.told.push(SeriesOutcome { system: series.name, workload, state });
    }
    Ok(found.in_order())
}

fn all(
    store: &mut Store,
    since: &Since,
    only: Option<&SystemName>,
) -> Result<Vec<KeptSeries>, StoreError> {
    store.kept_series(only.map_or(Whose::All, |system| Whose::System(&system.id)), since)
}

/// As it was written down; `None`: it was never looked at, or another version wrote what cannot be read.
fn state_kept(series: &KeptSeries) -> Option<State> {
    match series.state? {
        SeriesState::Well => Some(State::Well),
        SeriesState::Unknown => serde_json::from_str(&series.json).ok().map(State::Unknown),
        SeriesState::Worse => {
            let mut read: Box<Regression> = serde_json::from_str(&series.json).ok()?;
            read.name.clone_from(&series.name);
            Some(State::Worse(read))
        }
    }
}

impl RegressionSearch {
    fn new(settings: Settings) -> Self {
        Self { level: settings.level, ..Self::default() }
    }

    /// Counts a series; what is said of it: one that became worse before `since` is as it was then.
    fn add(&mut self, state: State, since: &Since) -> State {
        let state = match (state, since) {
            (State::Worse(r), Since::From(at)) if r.since < *at => State::Well,
            (state, _) => state,
        };
        match &state {
            State::Unknown(_) => self.short += 1,
            State::Well => self.series += 1,
            State::Worse(regression) => {
                self.series += 1;
                self.regressions.push(Regression::clone(regression));
            }
        }
        state
    }

    /// The newest first.
    fn in_order(mut self) -> Self {
        order::by(&mut self.regressions, |a, b| b.since.cmp(&a.since));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_from_the_newest_run() {
        assert_eq!(first_day("2026-11-25T12:00:00Z"), Since::from("2026-05-29"));
        assert_eq!(first_day("no time"), Since::Ever);
        assert_eq!(first_day(""), Since::Ever);
    }
}
