// SPDX-License-Identifier: MIT OR Apache-2.0
//! Of which runs pages ask: since when, of whom, and of lists which page and which kind of runs.

use crate::database::all;
use crate::error::StoreError;
use crate::run_row::{RUN, RunRow, run_row};
use crate::store::Store;
use crate::value::Value;

/// Since when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Since {
    /// All there is.
    #[default]
    Ever,
    /// From this date or time on.
    From(String),
}

impl Since {
    /// The value that no earlier time is below: all texts come after the empty one.
    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Ever => "".into(),
            Self::From(at) => at.as_str().into(),
        }
    }
}

impl From<&str> for Since {
    fn from(at: &str) -> Self {
        Self::From(at.to_owned())
    }
}

impl From<Option<String>> for Since {
    fn from(at: Option<String>) -> Self {
        at.map_or(Self::Ever, Self::From)
    }
}

/// Of whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose<'a> {
    /// Of all systems.
    All,
    /// Of the one of this identity.
    System(&'a str),
}

/// Which runs a list shows; what is not given is not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunQuery {
    /// Of the system of this identity.
    pub system: Option<String>,
    /// Begun at or after this, as RFC 3339 or its beginning.
    pub since: Option<String>,
    /// Begun before this.
    pub until: Option<String>,
    /// With exactly these loads; empty: without load.
    pub loads: Option<String>,
    /// On a kernel of this release.
    pub kernel: Option<String>,
    /// With this verdict.
    pub outcome: Option<String>,
    /// With these words in the name of system or run, kernel, loads, doubts or notes.
    pub words: Option<String>,
    /// How many of the newest are passed over.
    pub skip: u64,
    /// At most so many.
    pub most: u32,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct RunPage {
    /// The newest first.
    pub runs: Vec<RunRow>,
    /// How many there are in all.
    pub total: u64,
}

/// What a list can be narrowed to.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct RunKinds {
    /// Loads; the empty text is none.
    pub loads: Vec<String>,
    /// Releases of kernels.
    pub kernels: Vec<String>,
}

/// Kinds that are offered at most.
const KINDS: i64 = 200;

impl RunQuery {
    /// Conditions in SQL and their values, in the order of their first use.
    fn conditions(&self) -> (String, Vec<Value>) {
        let (mut words, mut values) = (vec!["1 = 1".to_owned()], Vec::<Value>::new());
        let exact = [
            ("run.system = ", &self.system),
            ("run.started >= ", &self.since),
            ("run.started < ", &self.until),
            ("workload.loads = ", &self.loads),
            ("kernel.release = ", &self.kernel),
            ("run.outcome = ", &self.outcome),
        ];
        for (condition, value) in exact {
            if let Some(value) = value {
                values.push(value.as_str().into());
                words.push(format!("{condition}${}", values.len()));
            }
        }
        if let Some(text) = self.words.as_deref().map(str::trim).filter(|t| !t.is_empty()) {
            let escaped =
                text.to_lowercase().replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
            values.push(format!("%{escaped}%").into());
            let n = values.len();
            let columns = [
                "system.name",
                "run.name",
                "run.id",
                "kernel.release",
                "workload.loads",
                "workload.probe",
                "run.reasons",
            ];
            let mut any: Vec<String> = columns
                .iter()
                .map(|column| format!("LOWER({column}) LIKE ${n} ESCAPE '\\'"))
                .collect();
            any.push(format!(
                "EXISTS (SELECT 1 FROM annotation WHERE annotation.run = run.id AND LOWER(annotation.message) LIKE ${n} ESCAPE '\\')"
            ));
            words.push(format!("({})", any.join(" OR ")));
        }
        (words.join(" AND "), values)
    }
}

impl Store {
    /// A page of the runs that are asked for, the newest first, and how many there are.
    ///
    /// # Errors
    /// The database refuses.
    pub fn runs_page(&mut self, query: &RunQuery) -> Result<RunPage, StoreError> {
        let (conditions, mut values) = query.conditions();
        let joined = "JOIN system ON system.id = run.system";
        let sql = format!(
            "SELECT COUNT(*) FROM run JOIN kernel ON kernel.id = run.kernel JOIN workload ON workload.id = run.workload {joined} WHERE {conditions}"
        );
        let total = all(self.db(), &sql, &values)?;
        let total = total.first().and_then(|row| row.first()).and_then(Value::int).unwrap_or(0);
        let n = values.len();
        values.push(Value::Int(query.most.into()));
        values.push(Value::Int(i64::try_from(query.skip).unwrap_or(i64::MAX)));
        let sql = format!(
            "{RUN} {joined} WHERE {conditions} ORDER BY run.started DESC, run.id LIMIT ${} OFFSET ${}",
            n + 1,
            n + 2
        );
        let runs = all(self.db(), &sql, &values)?.iter().map(|row| run_row(row)).collect();
        Ok(RunPage { runs, total: u64::try_from(total).unwrap_or(0) })
    }

    /// Loads and kernels of the store's runs.
    ///
    /// # Errors
    /// The database refuses.
    pub fn run_kinds(&mut self) -> Result<RunKinds, StoreError> {
        let mut texts = |sql: &str| -> Result<Vec<String>, StoreError> {
            let rows = all(self.db(), sql, &[Value::Int(KINDS)])?;
            Ok(rows.iter().filter_map(|row| row.first()?.text().map(str::to_owned)).collect())
        };
        Ok(RunKinds {
            loads: texts("SELECT DISTINCT loads FROM workload ORDER BY loads LIMIT $1")?,
            kernels: texts(
                "SELECT DISTINCT release FROM kernel WHERE release IS NOT NULL ORDER BY release DESC LIMIT $1",
            )?,
        })
    }
}
