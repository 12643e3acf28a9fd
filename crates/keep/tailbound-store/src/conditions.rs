// SPDX-License-Identifier: MIT OR Apache-2.0
//! On which days what a system was measured with changed: its kernel, its configuration, or the method.
//!
//! Days are UTC. Pure but for one query, which an index answers.

use std::collections::{BTreeMap, BTreeSet};

use crate::chosen::{Since, Whose};
use crate::database::all;
use crate::error::StoreError;
use crate::store::Store;
use crate::value::Value;

/// What changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// Another kernel, or the same one built or started otherwise.
    Kernel,
    /// Another fact of the machine: a governor, a setting, its hardware.
    Configuration,
    /// Another version of what measures, or a workload that was not there before.
    Method,
}

impl Condition {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Configuration => "configuration",
            Self::Method => "method",
        }
    }
}

/// A day on which something changed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ConditionChange {
    /// `2026-11-25`.
    pub day: String,
    /// What changed.
    pub what: Vec<Condition>,
}

/// A run's conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunConditions {
    /// When it began.
    pub(crate) started: String,
    /// `workload.id`.
    pub(crate) workload: String,
    /// `kernel.id`.
    pub(crate) kernel: String,
    /// `facts.id`.
    pub(crate) facts: String,
    /// Name and version of what measured.
    pub(crate) tool: String,
}

/// On more than one in so many days no configuration changes: then some fact is restless, and says nothing.
const RESTLESS: usize = 3;

/// The days on which something changed, of a system's runs in the order of time.
#[must_use]
pub(crate) fn changes(runs: &[RunConditions]) -> Vec<ConditionChange> {
    let day = |run: &RunConditions| run.started.get(..10).unwrap_or_default().to_owned();
    let Some(first_day) = runs.first().map(day) else { return Vec::new() };
    let mut before: BTreeMap<&str, &RunConditions> = BTreeMap::new();
    let mut by: BTreeMap<String, BTreeSet<Condition>> = BTreeMap::new();
    let mut days: BTreeSet<String> = BTreeSet::new();
    for run in runs {
        let at = day(run);
        days.insert(at.clone());
        let mut mark = |what: Condition| {
            by.entry(at.clone()).or_default().insert(what);
        };
        match before.insert(&run.workload, run) {
            None if at != first_day => mark(Condition::Method),
            None => {}
            Some(old) => {
                if old.kernel != run.kernel {
                    mark(Condition::Kernel);
                } else if old.facts != run.facts {
                    mark(Condition::Configuration);
                }
                if old.tool != run.tool {
                    mark(Condition::Method);
                }
            }
        }
    }
    let n = by.values().filter(|what| what.contains(&Condition::Configuration)).count();
    if n > (days.len() / RESTLESS).max(1) {
        by.values_mut().for_each(|what| {
            what.remove(&Condition::Configuration);
        });
    }
    by.into_iter()
        .filter(|(_, what)| !what.is_empty())
        .map(|(day, what)| ConditionChange { day, what: what.into_iter().collect() })
        .collect()
}

impl Store {
    /// The days on which something changed, by system.
    ///
    /// # Errors
    /// The database refuses.
    pub fn condition_changes(
        &mut self,
        whose: Whose<'_>,
        since: &Since,
    ) -> Result<BTreeMap<String, Vec<ConditionChange>>, StoreError> {
        let columns = "SELECT system, started, workload, kernel, facts, tool FROM run WHERE";
        let (condition, values): (&str, Vec<Value>) = match whose {
            Whose::All => ("started >= $1", vec![since.value()]),
            Whose::System(id) => ("system = $1 AND started >= $2", vec![id.into(), since.value()]),
        };
        let sql = format!("{columns} {condition} ORDER BY system, started, id");
        let mut by: BTreeMap<String, Vec<RunConditions>> = BTreeMap::new();
        for row in all(self.db(), &sql, &values)? {
            let text = |at: usize| row.get(at).and_then(Value::text).unwrap_or_default().to_owned();
            by.entry(text(0)).or_default().push(RunConditions {
                started: text(1),
                workload: text(2),
                kernel: text(3),
                facts: text(4),
                tool: text(5),
            });
        }
        Ok(by.into_iter().map(|(system, runs)| (system, changes(&runs))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(day: usize, workload: &str, [kernel, facts, tool]: [&str; 3]) -> RunConditions {
        RunConditions {
            started: format!("2026-11-{day:02}T00:00:00Z"),
            workload: workload.to_owned(),
            kernel: kernel.to_owned(),
            facts: facts.to_owned(),
            tool: tool.to_owned(),
        }
    }

    #[test]
    fn each_change_is_marked_once_on_its_day() {
        let of = |day: usize| {
            let kernel = if day < 5 { "a" } else { "b" };
            let facts = if day < 5 {
                "x"
            } else if day < 8 {
                "y"
            } else {
                "z"
            };
            [kernel, facts, if day < 10 { "1" } else { "2" }]
        };
        let runs: Vec<RunConditions> =
            (1..15).flat_map(|day| ["cpu", "disk"].map(|w| run(day, w, of(day)))).collect();
        let told: Vec<(String, Vec<&str>)> = changes(&runs)
            .into_iter()
            .map(|c| (c.day, c.what.into_iter().map(Condition::as_str).collect()))
            .collect();
        let mark = |day: &str, what: &'static str| (day.to_owned(), vec![what]);
        let expected = [
            mark("2026-11-05", "kernel"),
            mark("2026-11-08", "configuration"),
            mark("2026-11-10", "method"),
        ];
        assert_eq!(told, expected);
        // A fact that differs each night is no change of the configuration.
        let restless: Vec<RunConditions> =
            (1..15).map(|day| run(day, "cpu", ["a", &day.to_string(), "1"])).collect();
        assert!(changes(&restless).is_empty() && changes(&[]).is_empty());
    }
}
