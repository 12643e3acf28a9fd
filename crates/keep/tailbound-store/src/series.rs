// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was found of each series (runs of one system and workload), and which series are to be looked at.
//!
//! A run that is added makes its series due, in the same transaction, whoever adds it. The search is done by `tailbound-fleet`, which
//! knows the method; what it found is kept here as its JSON, and read by every page. All of it follows from the run files.

use crate::chosen::{Since, Whose};
use crate::database::{all, whole};
use crate::due;
use crate::error::StoreError;
use crate::run_row::{RUN, RunRow, run_row};
use crate::store::Store;
use crate::value::Value;

/// What was found of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesState {
    /// It did not become worse, or is better again.
    Well,
    /// Nothing can be told.
    Unknown,
    /// It became worse and stayed so.
    Worse,
}

impl SeriesState {
    const ALL: [Self; 3] = [Self::Well, Self::Unknown, Self::Worse];

    fn as_str(self) -> &'static str {
        match self {
            Self::Well => "well",
            Self::Unknown => "unknown",
            Self::Worse => "worse",
        }
    }

    fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}

/// A series with runs that were not looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueSeries {
    /// `system.id`.
    pub system: String,
    /// `workload.id`.
    pub workload: String,
    /// When its newest run began.
    pub newest: String,
    /// How many runs came or went since it was looked at.
    pub due: i64,
}

/// A series as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptSeries {
    /// `system.id`.
    pub system: String,
    /// Its name.
    pub name: String,
    /// `workload.id`.
    pub workload: String,
    /// Its probe.
    pub probe: String,
    /// Its loads.
    pub loads: String,
    /// When its newest run began.
    pub newest: String,
    /// How many runs came or went since it was looked at.
    pub due: i64,
    /// What was found; `None`: it was never looked at.
    pub state: Option<SeriesState>,
    /// The same as whoever looked wrote it down.
    pub json: String,
}

/// Whose series, as SQL that has one value.
fn whose_are(whose: Whose<'_>) -> (&'static str, &str) {
    match whose {
        Whose::All => ("$1 = ''", ""),
        Whose::System(id) => ("series.system = $1", id),
    }
}

impl Store {
    /// At most so many series that are to be looked at, those first that were not for longest.
    ///
    /// # Errors
    /// The database refuses.
    pub fn due_series(
        &mut self,
        whose: Whose<'_>,
        most: u32,
    ) -> Result<Vec<DueSeries>, StoreError> {
        let (condition, system) = whose_are(whose);
        let sql = format!(
            "SELECT system, workload, newest, due FROM series WHERE due > 0 AND {condition} ORDER BY COALESCE(looked, ''), newest DESC, system, workload LIMIT $2"
        );
        let rows = all(self.db(), &sql, &[system.into(), Value::Int(most.into())])?;
        let text = |row: &[Value], at: usize| {
            row.get(at).and_then(Value::text).unwrap_or_default().to_owned()
        };
        let one = |row: &Vec<Value>| DueSeries {
            system: text(row, 0),
            workload: text(row, 1),
            newest: text(row, 2),
            due: row.get(3).and_then(Value::int).unwrap_or(0),
        };
        Ok(rows.iter().map(one).collect())
    }

    /// Keeps what was found of a series that was due. A run that came meanwhile makes it due still.
    ///
    /// # Errors
    /// The database refuses.
    pub fn keep_series(
        &mut self,
        of: &DueSeries,
        state: SeriesState,
        json: &str,
        now: &str,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE series SET due = CASE WHEN due > $1 THEN due - $1 ELSE 0 END, state = $2, json = $3, looked = $4 \
            WHERE system = $5 AND workload = $6";
        let system = Value::from(of.system.as_str());
        let workload = of.workload.as_str().into();
        let due = Value::Int(of.due);
        let values =
            [due, state.as_str().into(), json.into(), now.into(), system.clone(), workload];
        whole(self.db(), |db| {
            db.execute(sql, &values)?;
            due::system_changed(db, &system)
        })
    }

    /// Series with a run since `since` as they were found.
    ///
    /// # Errors
    /// The database refuses.
    pub fn kept_series(
        &mut self,
        whose: Whose<'_>,
        since: &Since,
    ) -> Result<Vec<KeptSeries>, StoreError> {
        let (condition, system) = whose_are(whose);
        let sql = format!(
            "SELECT series.system, system.name, series.workload, series.due, series.state, series.json, series.newest, workload.probe, workload.loads \
             FROM series JOIN system ON system.id = series.system JOIN workload ON workload.id = series.workload WHERE {condition} AND series.newest >= $2 ORDER BY system.name, series.workload"
        );
        let rows = all(self.db(), &sql, &[system.into(), since.value()])?;
        let text = |row: &[Value], at: usize| {
            row.get(at).and_then(Value::text).unwrap_or_default().to_owned()
        };
        let one = |row: &Vec<Value>| KeptSeries {
            system: text(row, 0),
            name: text(row, 1),
            workload: text(row, 2),
            due: row.get(3).and_then(Value::int).unwrap_or(0),
            state: row.get(4).and_then(Value::text).and_then(SeriesState::of),
            json: text(row, 5),
            newest: text(row, 6),
            probe: text(row, 7),
            loads: text(row, 8),
        };
        Ok(rows.iter().map(one).collect())
    }

    /// The newest `most` runs of a series, since `since`; the newest first.
    ///
    /// # Errors
    /// The database refuses.
    pub fn runs_of_series(
        &mut self,
        [system, workload]: [&str; 2],
        since: &Since,
        most: u32,
    ) -> Result<Vec<RunRow>, StoreError> {
        let sql = format!(
            "{RUN} WHERE run.system = $1 AND run.workload = $2 AND run.started >= $3 ORDER BY run.started DESC, run.id LIMIT $4"
        );
        let values = [system.into(), workload.into(), since.value(), Value::Int(most.into())];
        Ok(all(self.db(), &sql, &values)?.iter().map(|row| run_row(row)).collect())
    }
}
