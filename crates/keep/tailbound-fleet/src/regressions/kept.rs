// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was found of each series when a run of it arrived, kept in the store.
//!
//! [`look_at`] is the only way in and [`kept`] the only way out: what lies between is the search as it is.

use serde_json::json;
use tailbound_core::utc;
use tailbound_stats::change::Settings;
use tailbound_store::{
    DueSeries, KeptSeries, SeriesState, Since, Store, StoreError, SystemName, Whose,
};

use super::{DAYS, RUNS, Regression, RegressionSearch, State, state_of};

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

/// Looks at a series that is due, and keeps what is found: of its newest runs, within so many days of the newest of them.
///
/// # Errors
/// The database refuses.
pub fn look_at(store: &mut Store, due: &DueSeries, now: &str) -> Result<(), StoreError> {
    let Some(system) = store.system_named(&due.system)? else { return Ok(()) };
    let of = [due.system.as_str(), due.workload.as_str()];
    let mut runs = store.runs_of_series(of, &first_day(&due.newest), RUNS)?;
    runs.reverse();
    let (state, json) = match state_of(store, &system, &runs, Settings::default())? {
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
    let whose = only.map_or(Whose::All, |system| Whose::System(&system.id));
    let all = store.kept_series(whose, since)?;
    let counts = |r: &Regression| match since {
        Since::Ever => true,
        Since::From(at) => r.since >= *at,
    };
    let mut found =
        RegressionSearch { level: Settings::default().level, ..RegressionSearch::default() };
    for series in &all {
        let worse = match series.state {
            Some(SeriesState::Worse) => regression(series),
            _ => None,
        };
        // What cannot be read is of another version: what it found is not known until it is looked at again.
        let is_lost = series.state == Some(SeriesState::Worse) && worse.is_none();
        if series.due > 0 || is_lost {
            found.waiting += 1;
            found.waiting_of.push(series.system.clone());
        }
        match series.state {
            None => {}
            Some(SeriesState::Unknown) => found.short += 1,
            Some(SeriesState::Well) => found.series += 1,
            Some(SeriesState::Worse) => {
                found.series += 1;
                found.regressions.extend(worse.filter(counts));
            }
        }
    }
    found.regressions.sort_by(|a, b| b.since.cmp(&a.since));
    Ok(found)
}

/// As it was written down; `None` where another version wrote what cannot be read.
fn regression(series: &KeptSeries) -> Option<Regression> {
    let mut read: Regression = serde_json::from_str(&series.json).ok()?;
    read.name.clone_from(&series.name);
    Some(read)
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
