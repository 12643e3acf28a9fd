// SPDX-License-Identifier: MIT OR Apache-2.0
//! A whole store as one file, and back: while others use it.
//!
//! A backup is always a store of SQLite, whichever database it is of, without a log beside it. So it is looked at
//! with every verb, and what was backed up from one database is restored into the other.
//! Source: <https://www.sqlite.org/backup.html>, <https://www.sqlite.org/pragma.html#pragma_integrity_check>.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::database::{Database, Dialect, PageCopy, all, one, whole};
use crate::error::StoreError;
use crate::schema::{self, SCHEMA};
use crate::sqlite::{IfMissing, Sqlite};
use crate::store::Store;
use crate::value::Value;

impl Store {
    /// Writes all that is in the store at one moment as a new store of SQLite, the file `to`, which must not be there. Others
    /// read and write meanwhile. How many runs are in it.
    ///
    /// # Errors
    /// The database refuses; what was written is damaged. Then `to` is of no use.
    pub fn backup(&mut self, to: &Path, now: &str) -> Result<u64, StoreError> {
        // Hashes of tokens and the audit log are in it: for nobody else, whatever the umask.
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
        let pages = self.db().copy_pages(to)?;
        let mut copy = Sqlite::open(to, IfMissing::Make)?;
        if pages == PageCopy::NoPages {
            schema::migrate(&mut copy, &to.display().to_string(), now)?;
            // One moment for all tables.
            let db = self.db();
            db.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
            let copied = whole(&mut copy, |copy| copy_rows(db, copy));
            let over = db.script("ROLLBACK");
            copied.and(over)?;
        }
        // One file: the log goes into it, and none is made until somebody opens it.
        copy.script("PRAGMA journal_mode=DELETE")?;
        looked_at(&mut copy, to)?;
        runs(&mut copy)
    }

    /// Puts all that is in the backup `from` into this store, which must have no runs: whole or not at all. How many runs.
    ///
    /// # Errors
    /// There are runs; the backup is missing, damaged, something else, or of another version; the database refuses.
    pub fn restore(&mut self, from: &Path) -> Result<u64, StoreError> {
        let place = from.display().to_string();
        let mut backup = Sqlite::open_reading(from)?;
        // A store that is in use may be given: one moment of it.
        backup.script("BEGIN")?;
        match schema::found(&mut backup)? {
            None => {
                let reason = "it has no tables of one".to_owned();
                return Err(StoreError::Foreign { place, reason });
            }
            Some(found) if found > SCHEMA => {
                return Err(StoreError::Later { place, found, known: SCHEMA });
            }
            Some(found) if found < SCHEMA => return Err(StoreError::Earlier { place, found }),
            Some(_) => {}
        }
        looked_at(&mut backup, from)?;
        let there = self.place().to_string();
        whole(self.db(), |db| {
            let n = runs(db)?;
            if n > 0 {
                return Err(StoreError::NotEmpty { place: there, n });
            }
            copy_rows(&mut backup, db)?;
            runs(db)
        })
    }
}

/// The database's own word on a file.
fn looked_at(db: &mut dyn Database, file: &Path) -> Result<(), StoreError> {
    let place = || file.display().to_string();
    let what = "the look at its integrity failed";
    let said = all(db, "PRAGMA integrity_check", &[])?;
    let words: Vec<&str> = said.iter().filter_map(|row| row.first()?.text()).collect();
    if words != ["ok"] {
        return Err(StoreError::Database { place: place(), what, reason: words.join("; ") });
    }
    let strays = all(db, "PRAGMA foreign_key_check", &[])?;
    if !strays.is_empty() {
        let reason = format!("{} rows point to rows that are not there", strays.len());
        return Err(StoreError::Database { place: place(), what, reason });
    }
    Ok(())
}

fn runs(db: &mut dyn Database) -> Result<u64, StoreError> {
    let n = one(db, "SELECT COUNT(*) FROM run", &[])?.and_then(|v| v.int()).unwrap_or(0);
    Ok(u64::try_from(n).unwrap_or(0))
}

/// All rows of all tables, a row at a time: a run file can be long.
fn copy_rows(from: &mut dyn Database, to: &mut dyn Database) -> Result<(), StoreError> {
    if to.dialect() == Dialect::Postgres {
        // Nobody adds a run between the look and the copy.
        to.script("LOCK TABLE run IN EXCLUSIVE MODE")?;
    }
    // Those first that others point to.
    let tables = schema::tables();
    let others = tables.iter().map(|(name, _)| *name).filter(|n| !schema::DERIVED.contains(n));
    let named = schema::DERIVED.iter().rev().copied().chain(others);
    for name in named {
        let columns = tables.iter().find(|(table, _)| *table == name).map(|(_, columns)| columns);
        let Some(columns) = columns else { continue };
        let places: Vec<String> = (1..=columns.len()).map(|n| format!("${n}")).collect();
        let (columns, places) = (columns.join(", "), places.join(", "));
        // What is left of a machine whose runs are all gone is the same there.
        let sql =
            format!("INSERT INTO {name} ({columns}) VALUES ({places}) ON CONFLICT DO NOTHING");
        from.rows(&format!("SELECT {columns} FROM {name}"), &[], &mut |_, row: &[Value]| {
            to.execute(&sql, row).map(|_| ())
        })?;
    }
    Ok(())
}
