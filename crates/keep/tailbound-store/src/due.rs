// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run that comes or goes changes beside its own rows, in the same transaction: its series is to be looked at again, and its
//! system has another version.

use crate::database::{Database, all, one};
use crate::error::StoreError;
use crate::summary::Rows;
use crate::value::Value;

/// The series of a run that is being added is to be looked at.
pub(crate) fn is_due(db: &mut dyn Database, rows: &Rows) -> Result<(), StoreError> {
    let of = |name: &str| {
        let found = rows.run.iter().find(|(column, _)| *column == name);
        found.map_or(Value::Null, |(_, value)| value.clone())
    };
    let sql = "INSERT INTO series (system, workload, newest, due) VALUES ($1, $2, $3, 1) ON CONFLICT (system, workload) \
        DO UPDATE SET due = series.due + 1, newest = CASE WHEN series.newest < excluded.newest THEN excluded.newest ELSE series.newest END";
    db.execute(sql, &[of("system"), of("workload"), of("started")])?;
    system_changed(db, &of("system"))
}

/// The series of a run that is being deleted is to be looked at, and goes with its last run.
pub(crate) fn changed(db: &mut dyn Database, run: &str) -> Result<(), StoreError> {
    let found = all(db, "SELECT system, workload FROM run WHERE id = $1", &[run.into()])?;
    let Some([system, workload]) = found.first().map(Vec::as_slice) else { return Ok(()) };
    system_changed(db, system)?;
    let of = [system.clone(), workload.clone(), run.into()];
    let rest = "SELECT MAX(started) FROM run WHERE system = $1 AND workload = $2 AND id <> $3";
    let newest = one(db, rest, &of)?;
    match newest.filter(|it| *it != Value::Null) {
        Some(newest) => {
            let sql =
                "UPDATE series SET due = due + 1, newest = $1 WHERE system = $2 AND workload = $3";
            db.execute(sql, &[newest, system.clone(), workload.clone()])
        }
        None => {
            let sql = "DELETE FROM series WHERE system = $1 AND workload = $2";
            db.execute(sql, &[system.clone(), workload.clone()])
        }
    }
    .map(|_| ())
}

/// What the tables say of a system is changed.
pub(crate) fn system_changed(db: &mut dyn Database, system: &Value) -> Result<(), StoreError> {
    let sql = "INSERT INTO system_version (system, version) VALUES ($1, 1) ON CONFLICT (system) DO UPDATE SET version = system_version.version + 1";
    db.execute(sql, std::slice::from_ref(system)).map(|_| ())
}
