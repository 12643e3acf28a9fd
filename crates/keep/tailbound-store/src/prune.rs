// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which runs go when a store becomes too large. A worst case never does.
//!
//! Within each series (system, workload and kernel) a run older than asked for stays where it is the worst of its
//! month, the worst of all, the first or the last; where its verdict is `not-met`, where a person wrote something about it, or
//! where it knows no latest activation at all. What goes is deleted: rows and file.

use std::collections::HashMap;

use crate::database::{Database, all, one, whole};
use crate::due;
use crate::error::StoreError;
use crate::place::StoreLocation;
use crate::store::Store;
use crate::value::Value;

/// Runs of one transaction: what changes is written beside the store first, some 0.2 MB a run.
const TOGETHER: usize = 16;

/// A run as the policy sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// SHA-256 of its file.
    pub id: String,
    /// System, workload and kernel.
    pub series: [String; 3],
    /// When it began, RFC 3339.
    pub started: String,
    /// The latest activation.
    pub max_ns: Option<i64>,
    /// Its verdict is `not-met`, or a person wrote something about it.
    pub keep: bool,
}

/// Of `runs`, those that may go: all began before `before` (RFC 3339).
#[must_use]
pub fn may_go(runs: &[Candidate], before: &str) -> Vec<String> {
    let mut worst: HashMap<(&[String; 3], &str), &Candidate> = HashMap::new();
    let mut ends: HashMap<&[String; 3], (&Candidate, &Candidate)> = HashMap::new();
    for run in runs {
        // A year and its month; the empty one is that of all time.
        for month in [run.started.get(..7).unwrap_or_default(), ""] {
            let it = worst.entry((&run.series, month)).or_insert(run);
            // Of several that are equally late the first stays.
            if (run.max_ns, std::cmp::Reverse(&run.started))
                > (it.max_ns, std::cmp::Reverse(&it.started))
            {
                *it = run;
            }
        }
        let (first, last) = ends.entry(&run.series).or_insert((run, run));
        if run.started < first.started {
            *first = run;
        }
        if run.started > last.started {
            *last = run;
        }
    }
    let stays = |run: &Candidate| {
        run.keep
            || run.max_ns.is_none()
            || run.started.as_str() >= before
            || [run.started.get(..7).unwrap_or_default(), ""]
                .iter()
                .any(|month| worst.get(&(&run.series, *month)).is_some_and(|w| w.id == run.id))
            || ends
                .get(&run.series)
                .is_some_and(|(first, last)| first.id == run.id || last.id == run.id)
    };
    runs.iter().filter(|run| !stays(run)).map(|run| run.id.clone()).collect()
}

/// What becomes of the log's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogLength {
    /// It keeps its room.
    Kept,
    /// It gives its room back.
    Emptied,
}

impl Store {
    /// The runs that the policy lets go, of those that began before `before`.
    ///
    /// # Errors
    /// The database refuses.
    pub fn may_go(&mut self, before: &str) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT id, system, workload, kernel, started, max_ns, \
            CASE WHEN outcome = 'not-met' OR EXISTS (SELECT 1 FROM annotation WHERE annotation.run = run.id) THEN 1 ELSE 0 END \
            FROM run ORDER BY started, id";
        let rows = all(self.db(), sql, &[])?;
        let one = |row: &Vec<Value>| {
            let text =
                |at: usize| row.get(at).and_then(|v| v.text()).unwrap_or_default().to_owned();
            Candidate {
                id: text(0),
                series: [text(1), text(2), text(3)],
                started: text(4),
                max_ns: row.get(5).and_then(Value::int),
                keep: row.get(6).and_then(Value::int) != Some(0),
            }
        };
        let runs: Vec<Candidate> = rows.iter().map(one).collect();
        Ok(may_go(&runs, before))
    }

    /// Deletes runs, some at a time, so that little room is needed: on a full disk what is kept in reserve is enough. Stopped on the
    /// way, some of them are gone and the others are as they were.
    ///
    /// # Errors
    /// The database refuses.
    pub fn delete(&mut self, ids: &[String]) -> Result<(), StoreError> {
        for some in ids.chunks(TOGETHER) {
            self.in_need(|db| whole(db, |db| some.iter().try_for_each(|id| gone(db, id))))?;
            self.write_log_back(LogLength::Kept)?;
        }
        // The store's file stays as long as it is, with room in it; the log's room is the disk's again, and the reserve is filled from it.
        self.write_log_back(LogLength::Emptied)?;
        self.refill_reserve();
        Ok(())
    }

    /// What is in the log beside the store is written into it, as far as nobody reads what was before: the log begins anew then.
    pub(crate) fn write_log_back(&mut self, length: LogLength) -> Result<(), StoreError> {
        if matches!(self.place(), StoreLocation::Server(_)) {
            return Ok(());
        }
        let sql = match length {
            LogLength::Kept => "PRAGMA wal_checkpoint(PASSIVE)",
            LogLength::Emptied => "PRAGMA wal_checkpoint(TRUNCATE)",
        };
        // It says in a row whether others were in the way.
        self.in_need(|db| db.rows(sql, &[], &mut |_, _| Ok(())).map(|_| ()))
    }

    /// Is there room within the store's file, of runs that were deleted?
    pub(crate) fn has_room_within(&mut self) -> bool {
        let is_file = matches!(self.place(), StoreLocation::File(_));
        let free = is_file.then(|| one(self.db(), "PRAGMA freelist_count", &[]));
        matches!(free, Some(Ok(Some(Value::Int(1..)))))
    }
}

/// Deletes one run; its series is looked at again.
fn gone(db: &mut dyn Database, id: &str) -> Result<(), StoreError> {
    for table in ["run_file", "histogram", "maximum", "finding", "culprit", "annotation"] {
        db.execute(&format!("DELETE FROM {table} WHERE run = $1"), &[id.into()])?;
    }
    due::changed(db, id)?;
    db.execute("DELETE FROM run WHERE id = $1", &[id.into()])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: &str, started: &str, max_ns: i64) -> Candidate {
        let series = ["board".to_owned(), "load".to_owned(), "6.12".to_owned()];
        Candidate {
            id: id.to_owned(),
            series,
            started: started.to_owned(),
            max_ns: Some(max_ns),
            keep: false,
        }
    }

    #[test]
    fn worst_cases_stay() {
        let mut runs = vec![
            run("first", "2026-01-01T00:00:00Z", 1),
            run("worst of january", "2026-01-02T00:00:00Z", 90),
            run("as late, later", "2026-01-03T00:00:00Z", 90),
            run("nothing", "2026-01-04T00:00:00Z", 5),
            run("worst of all", "2026-02-01T00:00:00Z", 500),
            run("of february", "2026-02-02T00:00:00Z", 400),
            run("new", "2026-03-01T00:00:00Z", 2),
            run("last", "2026-03-02T00:00:00Z", 3),
        ];
        let gone = |runs: &[Candidate]| may_go(runs, "2026-03-01").join(", ");
        assert_eq!(gone(&runs), "as late, later, nothing, of february");
        // On another kernel it is the worst of its own.
        if let Some(of_february) = runs.get_mut(5) {
            of_february.series[2] = "6.13".to_owned();
        }
        assert_eq!(gone(&runs), "as late, later, nothing");
        if let Some(nothing) = runs.get_mut(3) {
            nothing.keep = true;
        }
        if let Some(unknown) = runs.get_mut(2) {
            unknown.max_ns = None;
        }
        assert_eq!(gone(&runs), "");
    }
}
