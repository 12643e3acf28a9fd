// SPDX-License-Identifier: MIT OR Apache-2.0
//! What people say: notes of runs, and what they know already of a series.
//!
//! A change point moves as runs are added, so an acknowledgement, like a notice, is kept with how far the series was known:
//! what began up to there is known, what begins later is new.

use crate::database::all;
use crate::error::StoreError;
use crate::store::Store;
use crate::value::Value;

/// What a person says of a run.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct RunNote {
    /// Of which run.
    pub run: String,
    /// When it was written.
    pub at: String,
    /// Who wrote it.
    pub author: String,
    /// What.
    pub message: String,
}

/// What a person knows already: a series that became worse, or is not met.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Acknowledgement {
    /// Of which system (`system.id`).
    pub system: String,
    /// Of which series of it (`workload.id`).
    pub workload: String,
    /// When the newest run began that was known: what began later is not acknowledged.
    pub newest: String,
    /// When it was written.
    pub at: String,
    /// Who wrote it.
    pub author: String,
    /// What.
    pub message: String,
}

impl Acknowledgement {
    /// Is what began then known?
    #[must_use]
    pub fn covers(&self, system: &str, workload: &str, since: &str) -> bool {
        self.system == system && self.workload == workload && since <= self.newest.as_str()
    }
}

/// The newest acknowledgement of what began then.
#[must_use]
pub fn acknowledged<'a>(
    all: &'a [Acknowledgement],
    system: &str,
    workload: &str,
    since: &str,
) -> Option<&'a Acknowledgement> {
    all.iter().rev().find(|a| a.covers(system, workload, since))
}

fn text(row: &[Value], at: usize) -> String {
    row.get(at).and_then(Value::text).unwrap_or_default().to_owned()
}

impl Store {
    /// Notes of these runs, in the order of time.
    ///
    /// # Errors
    /// The database refuses.
    pub fn notes(&mut self, runs: &[String]) -> Result<Vec<RunNote>, StoreError> {
        let sql =
            "SELECT run, at, author, message FROM annotation WHERE run = $1 ORDER BY at, author";
        let mut notes = Vec::new();
        for run in runs {
            let rows = all(self.db(), sql, &[run.as_str().into()])?;
            notes.extend(rows.iter().map(|row| RunNote {
                run: text(row, 0),
                at: text(row, 1),
                author: text(row, 2),
                message: text(row, 3),
            }));
        }
        Ok(notes)
    }

    /// All acknowledgements, in the order of time.
    ///
    /// # Errors
    /// The database refuses.
    pub fn acknowledgements(&mut self) -> Result<Vec<Acknowledgement>, StoreError> {
        let sql = "SELECT system, workload, newest, at, author, message FROM acknowledgement ORDER BY at, system, workload";
        let one = |row: &Vec<Value>| Acknowledgement {
            system: text(row, 0),
            workload: text(row, 1),
            newest: text(row, 2),
            at: text(row, 3),
            author: text(row, 4),
            message: text(row, 5),
        };
        Ok(all(self.db(), sql, &[])?.iter().map(one).collect())
    }

    /// Keeps one for all runs of the series that are there. `None`: there is none.
    ///
    /// # Errors
    /// The database refuses.
    pub fn acknowledge(
        &mut self,
        [system, workload]: [&str; 2],
        at: &str,
        author: &str,
        message: &str,
    ) -> Result<Option<Acknowledgement>, StoreError> {
        let sql = "SELECT started FROM run WHERE system = $1 AND workload = $2 ORDER BY started DESC LIMIT 1";
        let newest = all(self.db(), sql, &[system.into(), workload.into()])?;
        let Some(newest) = newest.first().map(|row| text(row, 0)) else { return Ok(None) };
        let sql = "INSERT INTO acknowledgement (system, workload, newest, at, author, message) VALUES ($1, $2, $3, $4, $5, $6) \
            ON CONFLICT (system, workload, at) DO UPDATE SET message = $6";
        let values = [system, workload, &newest, at, author, message].map(Value::from);
        self.db().execute(sql, &values)?;
        let word = str::to_owned;
        Ok(Some(Acknowledgement {
            system: word(system),
            workload: word(workload),
            newest,
            at: word(at),
            author: word(author),
            message: word(message),
        }))
    }
}
