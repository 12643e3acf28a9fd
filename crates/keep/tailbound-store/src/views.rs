// SPDX-License-Identifier: MIT OR Apache-2.0
//! What pages ask of the store: systems, one system's runs, worst cases by day, histograms.
//!
//! Units: ns; days and times are UTC. Nothing here reads a run file: tables and their indexes answer.

use std::collections::{BTreeMap, HashMap};

use tailbound_core::histogram::Bucket;

use crate::buckets;
use crate::chosen::{Since, Whose};
use crate::database::all;
use crate::error::StoreError;
use crate::night::NightState;
use crate::run_row::{RUN, RunRow, int, run_row, text, word};
use crate::store::Store;
use crate::value::Value;

/// The worst case of a system on one day.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct DayMax {
    /// `2026-11-25`.
    pub day: String,
    /// The latest activation.
    pub max_ns: Option<i64>,
    /// How many runs began on that day.
    pub runs: i64,
    /// How many of them were not met.
    pub not_met: i64,
}

/// A system in the overview.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct SystemRow {
    /// Its identity.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Model, where a run told one.
    pub model: Option<String>,
    /// CPU, the same.
    pub cpu_model: Option<String>,
    /// Its newest run.
    pub last: Option<RunRow>,
    /// What its last night says, over all its workloads.
    pub night: Option<NightState>,
    /// Days of the time asked for, in order; days without runs are not in it.
    pub days: Vec<DayMax>,
}

/// A system's identity and name.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SystemName {
    /// Its identity.
    pub id: String,
    /// Its name.
    pub name: String,
}

/// Who made wake-ups late.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Culprit {
    /// What it did.
    pub cause: String,
    /// Who, where it was somebody.
    pub who: String,
    /// Late wake-ups of which it had the greatest share.
    pub wakeups: i64,
    /// Its longest share.
    pub longest_ns: i64,
    /// On how many systems.
    pub systems: i64,
    /// One of them: its name.
    pub system_name: String,
    /// The same: its identity.
    pub system: String,
}

/// A thread's histogram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// Which run.
    pub run: String,
    /// When it began.
    pub started: String,
    /// Number of the thread.
    pub thread: i64,
    /// Its CPU; `None`: several.
    pub cpu: Option<i64>,
    /// `user`, `irq`, …
    pub context: String,
    /// Latest activation.
    pub max_ns: Option<i64>,
    /// In the order of values.
    pub buckets: Vec<Bucket>,
}

/// Buckets of one answer: 24 bytes each.
const BUCKETS_MAX: usize = 2_000_000;

impl Store {
    /// All systems by name, each with its newest run, its last night, and its days since `since`.
    ///
    /// # Errors
    /// The database refuses.
    pub fn systems(&mut self, since: &Since) -> Result<Vec<SystemRow>, StoreError> {
        // The newest run of each system by the index over systems, not by a walk over all runs.
        let by_system = format!(
            "{RUN} JOIN system ON run.id = (SELECT newest.id FROM run AS newest WHERE newest.system = system.id \
             ORDER BY newest.started DESC, newest.id LIMIT 1)"
        );
        let mut last: HashMap<String, RunRow> = all(self.db(), &by_system, &[])?
            .iter()
            .map(|row| (text(row, 1), run_row(row)))
            .collect();
        let mut days = self.days(Whose::All, since)?;
        let rows =
            all(self.db(), "SELECT id, name, model, cpu_model FROM system ORDER BY name", &[])?;
        let mut systems = Vec::with_capacity(rows.len());
        for row in &rows {
            let id = text(row, 0);
            let word = |at: usize| word(row, at);
            systems.push(SystemRow {
                name: text(row, 1),
                model: word(2),
                cpu_model: word(3),
                last: last.remove(&id),
                night: self.last_night(&id)?,
                days: days.remove(&id).unwrap_or_default(),
                id,
            });
        }
        Ok(systems)
    }

    /// All systems by name, without what they measured.
    ///
    /// # Errors
    /// The database refuses.
    pub fn system_names(&mut self) -> Result<Vec<SystemName>, StoreError> {
        let rows = all(self.db(), "SELECT id, name FROM system ORDER BY name", &[])?;
        Ok(rows.iter().map(|row| SystemName { id: text(row, 0), name: text(row, 1) }).collect())
    }

    /// A system by its identity or name, without what it measured.
    ///
    /// # Errors
    /// The database refuses.
    pub fn system_named(&mut self, which: &str) -> Result<Option<SystemName>, StoreError> {
        let sql = "SELECT id, name FROM system WHERE id = $1 OR name = $1";
        let rows = all(self.db(), sql, &[which.into()])?;
        Ok(rows.first().map(|row| SystemName { id: text(row, 0), name: text(row, 1) }))
    }

    /// Worst cases by day since `since`, by system.
    fn days(
        &mut self,
        whose: Whose<'_>,
        since: &Since,
    ) -> Result<BTreeMap<String, Vec<DayMax>>, StoreError> {
        let (condition, values): (&str, Vec<Value>) = match whose {
            Whose::All => ("started >= $1", vec![since.value()]),
            Whose::System(id) => ("system = $1 AND started >= $2", vec![id.into(), since.value()]),
        };
        // By day first: by system first SQLite would walk through the index over systems, over all years.
        let sql = format!(
            "SELECT system, substr(started, 1, 10), MAX(max_ns), COUNT(*), CAST(SUM(CASE WHEN outcome = 'not-met' THEN 1 ELSE 0 END) AS BIGINT) \
             FROM run WHERE {condition} GROUP BY substr(started, 1, 10), system ORDER BY substr(started, 1, 10)"
        );
        let mut by: BTreeMap<String, Vec<DayMax>> = BTreeMap::new();
        for row in all(self.db(), &sql, &values)? {
            by.entry(text(&row, 0)).or_default().push(DayMax {
                day: text(&row, 1),
                max_ns: int(&row, 2),
                runs: int(&row, 3).unwrap_or(0),
                not_met: int(&row, 4).unwrap_or(0),
            });
        }
        Ok(by)
    }

    /// One system by identity or name, with all its days since `since`.
    ///
    /// # Errors
    /// The database refuses.
    pub fn system(&mut self, which: &str, since: &Since) -> Result<Option<SystemRow>, StoreError> {
        let sql = "SELECT id, name, model, cpu_model FROM system WHERE id = $1 OR name = $1";
        let rows = all(self.db(), sql, &[which.into()])?;
        let Some(row) = rows.first() else { return Ok(None) };
        let id = text(row, 0);
        let word = |at: usize| word(row, at);
        Ok(Some(SystemRow {
            name: text(row, 1),
            model: word(2),
            cpu_model: word(3),
            last: self.runs_of(&id, &Since::Ever, 1)?.into_iter().next(),
            night: self.last_night(&id)?,
            days: self.days(Whose::System(&id), since)?.remove(&id).unwrap_or_default(),
            id,
        }))
    }

    /// The newest `most` runs of a system, since `since`; the newest first.
    ///
    /// # Errors
    /// The database refuses.
    pub fn runs_of(
        &mut self,
        system: &str,
        since: &Since,
        most: u32,
    ) -> Result<Vec<RunRow>, StoreError> {
        let sql = format!(
            "{RUN} WHERE run.system = $1 AND run.started >= $2 ORDER BY run.started DESC, run.id LIMIT $3"
        );
        let values = [system.into(), since.value(), Value::Int(most.into())];
        Ok(all(self.db(), &sql, &values)?.iter().map(|row| run_row(row)).collect())
    }

    /// The run of this identity.
    ///
    /// # Errors
    /// The database refuses.
    pub fn run(&mut self, id: &str) -> Result<Option<RunRow>, StoreError> {
        let rows = all(self.db(), &format!("{RUN} WHERE run.id = $1"), &[id.into()])?;
        Ok(rows.first().map(|row| run_row(row)))
    }

    /// Histograms of the runs of a system since `since`, in the order of time.
    ///
    /// # Errors
    /// The database refuses, or a row is damaged; there are too many to be held.
    pub fn histograms_of(
        &mut self,
        system: &str,
        since: &Since,
    ) -> Result<Vec<Histogram>, StoreError> {
        let sql = "SELECT run.id, run.started, histogram.thread, histogram.cpu, histogram.context, histogram.max_ns, histogram.buckets \
            FROM run JOIN histogram ON histogram.run = run.id AND histogram.context = run.context \
            WHERE run.system = $1 AND run.started >= $2 ORDER BY run.started, run.id, histogram.thread";
        let (mut found, mut held) = (Vec::new(), 0usize);
        self.db().rows(sql, &[system.into(), since.value()], &mut |_, row| {
            let bytes = row.get(6).and_then(Value::bytes).unwrap_or_default();
            let buckets = buckets::unpacked(bytes).ok_or_else(|| StoreError::Damaged {
                id: text(row, 0),
                reason: buckets::UNREADABLE.to_owned(),
            })?;
            held += buckets.len();
            if held > BUCKETS_MAX {
                return Err(StoreError::TooMany { most: BUCKETS_MAX });
            }
            found.push(Histogram {
                run: text(row, 0),
                started: text(row, 1),
                thread: int(row, 2).unwrap_or(0),
                cpu: int(row, 3),
                context: text(row, 4),
                max_ns: int(row, 5),
                buckets,
            });
            Ok(())
        })?;
        Ok(found)
    }

    /// The facts that a run knew of its machine, as JSON.
    ///
    /// # Errors
    /// The database refuses.
    pub fn facts_of(&mut self, run: &str) -> Result<Option<String>, StoreError> {
        let sql = "SELECT facts.json FROM run JOIN facts ON facts.id = run.facts WHERE run.id = $1";
        let rows = all(self.db(), sql, &[run.into()])?;
        let whole = |row: &Vec<Value>| row.first().and_then(Value::text).map(str::to_owned);
        Ok(rows.first().and_then(whole))
    }

    /// Who made systems late, since `since`, the longest first.
    ///
    /// # Errors
    /// The database refuses.
    pub fn culprits_of(
        &mut self,
        whose: Whose<'_>,
        since: &Since,
        most: u32,
    ) -> Result<Vec<Culprit>, StoreError> {
        let (condition, mut values): (&str, Vec<Value>) = match whose {
            Whose::All => ("run.started >= $1", vec![since.value()]),
            Whose::System(id) => {
                ("run.system = $1 AND run.started >= $2", vec![id.into(), since.value()])
            }
        };
        values.push(Value::Int(most.into()));
        let sql = format!(
            "SELECT culprit.cause, culprit.who, CAST(SUM(culprit.wakeups) AS BIGINT), MAX(culprit.longest_ns), COUNT(DISTINCT run.system), \
             MIN(system.name), MIN(system.id) FROM run JOIN culprit ON culprit.run = run.id JOIN system ON system.id = run.system \
             WHERE {condition} GROUP BY culprit.cause, culprit.who ORDER BY MAX(culprit.longest_ns) DESC, culprit.who LIMIT ${}",
            values.len()
        );
        let one = |row: &Vec<Value>| Culprit {
            cause: text(row, 0),
            who: text(row, 1),
            wakeups: int(row, 2).unwrap_or(0),
            longest_ns: int(row, 3).unwrap_or(0),
            systems: int(row, 4).unwrap_or(0),
            system_name: text(row, 5),
            system: text(row, 6),
        };
        Ok(all(self.db(), &sql, &values)?.iter().map(one).collect())
    }

    /// The newest run of a system that began before `until` (a date or a time).
    ///
    /// # Errors
    /// The database refuses.
    pub fn run_before(&mut self, system: &str, until: &str) -> Result<Option<RunRow>, StoreError> {
        let sql = format!(
            "{RUN} WHERE run.system = $1 AND run.started < $2 ORDER BY run.started DESC, run.id LIMIT 1"
        );
        let rows = all(self.db(), &sql, &[system.into(), until.into()])?;
        Ok(rows.first().map(|row| run_row(row)))
    }

    /// The newest run of the series of `run` that began before it and before `until`.
    ///
    /// # Errors
    /// The database refuses.
    pub fn run_before_in_series(
        &mut self,
        run: &RunRow,
        until: &str,
    ) -> Result<Option<RunRow>, StoreError> {
        let sql = format!(
            "{RUN} WHERE run.system = $1 AND run.workload = $2 AND run.started < $3 AND run.started < $4 AND run.id <> $5 \
             ORDER BY run.started DESC, run.id LIMIT 1"
        );
        let values = [&run.system, &run.workload, until, &run.started, &run.id];
        let rows = all(self.db(), &sql, &values.map(|v| Value::from(v as &str)))?;
        Ok(rows.first().map(|row| run_row(row)))
    }
}
