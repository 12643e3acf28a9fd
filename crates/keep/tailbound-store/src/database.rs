// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the store needs of a database: few words, which SQLite and PostgreSQL both understand.
//!
//! Statements are written once, in what both have in common: placeholders `$1`, `$2`, … in the order
//! of their first use, `ON CONFLICT`, no types of either. Differences are in [`Dialect`] alone.

use std::path::Path;

use crate::cancellation::Cancellation;
use crate::error::StoreError;
use crate::value::Value;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// A migration's words for its own types: `{int}`, `{real}`, `{text}`, `{bytes}`, `{strict}`.
    pub(crate) fn of_types(self, sql: &str) -> String {
        let (int, real, text, bytes, strict) = match self {
            Self::Sqlite => ("INTEGER", "REAL", "TEXT", "BLOB", " STRICT"),
            Self::Postgres => ("BIGINT", "DOUBLE PRECISION", "TEXT", "BYTEA", ""),
        };
        let words = [
            ("{int}", int),
            ("{real}", real),
            ("{text}", text),
            ("{bytes}", bytes),
            ("{strict}", strict),
        ];
        words.iter().fold(sql.to_owned(), |sql, (word, is)| sql.replace(word, is))
    }
}

/// Whether a database was copied page by page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageCopy {
    Done,
    /// It has no pages of SQLite.
    NoPages,
}

/// What is done with each row; an error ends the statement.
pub type EachRow<'a> = &'a mut dyn FnMut(&[String], &[Value]) -> Result<(), StoreError>;

/// A connection.
pub(crate) trait Database: Send {
    /// Which kind.
    fn dialect(&self) -> Dialect;
    /// Several statements without values.
    fn script(&mut self, sql: &str) -> Result<(), StoreError>;
    /// One statement; how many rows it changed.
    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, StoreError>;
    /// One statement; names of its columns and a row at a time.
    fn rows(
        &mut self,
        sql: &str,
        values: &[Value],
        each: EachRow<'_>,
    ) -> Result<Vec<String>, StoreError>;
    /// A person's statement, which cannot change anything, for at most so long.
    fn only_reading(
        &mut self,
        sql: &str,
        seconds: u32,
        each: EachRow<'_>,
    ) -> Result<Vec<String>, StoreError>;
    /// Statements end when it says so. [`StoreError::Cancelled`]: one was given up, and the connection cannot be used any more.
    fn cancelled_by(&mut self, cancel: Option<Cancellation>) -> Result<(), StoreError>;
    /// Copies the database page by page into a new file, as it is at one moment.
    fn copy_pages(&mut self, _to: &Path) -> Result<PageCopy, StoreError> {
        Ok(PageCopy::NoPages)
    }
}

/// All rows of a statement.
pub(crate) fn all(
    db: &mut dyn Database,
    sql: &str,
    values: &[Value],
) -> Result<Vec<Vec<Value>>, StoreError> {
    let mut rows = Vec::new();
    db.rows(sql, values, &mut |_, row| {
        rows.push(row.to_vec());
        Ok(())
    })?;
    Ok(rows)
}

/// The first value of the first row.
pub(crate) fn one(
    db: &mut dyn Database,
    sql: &str,
    values: &[Value],
) -> Result<Option<Value>, StoreError> {
    let rows = all(db, sql, values)?;
    Ok(rows.into_iter().next().and_then(|row| row.into_iter().next()))
}

/// Does `work` whole or not at all.
pub(crate) fn whole<T>(
    db: &mut dyn Database,
    work: impl FnOnce(&mut dyn Database) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    // SQLite: whoever will write waits here, not in the middle of its work.
    db.script(match db.dialect() {
        Dialect::Sqlite => "BEGIN IMMEDIATE",
        Dialect::Postgres => "BEGIN",
    })?;
    match work(db).and_then(|done| db.script("COMMIT").map(|()| done)) {
        Ok(done) => Ok(done),
        Err(e) => {
            // What failed is told, not that it cannot be taken back as well: the connection's end does that.
            let _ = db.script("ROLLBACK");
            Err(e)
        }
    }
}
