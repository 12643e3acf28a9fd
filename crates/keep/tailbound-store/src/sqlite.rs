// SPDX-License-Identifier: MIT OR Apache-2.0
//! A store in a file: SQLite.
//!
//! Write-ahead log with `synchronous=FULL`: what was answered survives a power failure
//! (<https://www.sqlite.org/pragma.html#pragma_synchronous>). Others may read meanwhile; a second writer waits.

use std::fs::{OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, ToSql, params_from_iter};

use tailbound_core::printable;

use crate::cancellation::Cancellation;
use crate::database::{Database, Dialect, EachRow, PageCopy};
use crate::error::StoreError;
use crate::value::Value;

/// How long a writer waits for another one.
const BUSY: Duration = Duration::from_secs(30);
/// From one attempt to the next, where SQLite itself does not wait.
const AGAIN: Duration = Duration::from_millis(20);
/// The table that only a store has.
const SCHEMA_TABLE: &str = "tailbound_schema";
/// Of a foreign table's name.
const NAME_CHARS: usize = 40;
/// Instructions of SQLite's machine between two looks at the clock.
const STEPS: i32 = 10_000;

/// What is done where there is no store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfMissing {
    /// It is an error.
    Fail,
    /// One is made.
    Make,
}

/// A connection to a file.
pub(crate) struct Sqlite {
    connection: Connection,
    place: String,
}

impl Sqlite {
    /// Opens the file.
    pub(crate) fn open(path: &Path, missing: IfMissing) -> Result<Self, StoreError> {
        let place = path.display().to_string();
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        if missing == IfMissing::Make {
            flags |= OpenFlags::SQLITE_OPEN_CREATE;
        } else if !path.exists() {
            return Err(StoreError::Missing { place });
        }
        if missing == IfMissing::Make {
            private(path)?;
        }
        let failed = |e: rusqlite::Error| database(&place, "it cannot be opened", &e);
        let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(BUSY).map_err(failed)?;
        if let Some(tables) = foreign(&connection).map_err(failed)? {
            let reason = format!("it is a database of something else, with {tables}");
            return Err(StoreError::Foreign { place, reason });
        }
        with_log(&connection).map_err(failed)?;
        connection
            .execute_batch(
                "PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA trusted_schema=OFF;",
            )
            .map_err(failed)?;
        Ok(Self { connection, place })
    }

    /// Opens the file to read it: nothing of it or beside it is changed.
    pub(crate) fn open_reading(path: &Path) -> Result<Self, StoreError> {
        let place = path.display().to_string();
        if !path.exists() {
            return Err(StoreError::Missing { place });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let failed = |e: rusqlite::Error| database(&place, "it cannot be opened", &e);
        let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(BUSY).map_err(failed)?;
        connection.execute_batch("PRAGMA trusted_schema=OFF").map_err(failed)?;
        Ok(Self { connection, place })
    }
}

/// Makes the file for its owner alone, whatever the umask: hashes of tokens and the audit log are in it. What SQLite puts
/// beside it gets the same rights.
fn private(path: &Path) -> Result<(), StoreError> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        // One that somebody made empty becomes a store: a new one, and as closed.
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            let is_empty =
                std::fs::symlink_metadata(path).is_ok_and(|it| it.is_file() && it.len() == 0);
            if is_empty {
                // Who may not leaves it to SQLite.
                let _ = std::fs::set_permissions(path, Permissions::from_mode(0o600));
            }
            Ok(())
        }
        // Whatever is there, SQLite says what is wrong with it.
        Err(e) if e.kind() == ErrorKind::StorageFull => {
            let place = path.display().to_string();
            Err(StoreError::Full { place, what: "it cannot be made" })
        }
        Err(_) => Ok(()),
    }
}

/// Names of what is in a database that is none of ours; `None`: it is ours, or empty. Looked at before anything is changed.
fn foreign(connection: &Connection) -> rusqlite::Result<Option<String>> {
    const NAMED: usize = 3;
    let mut statement = connection
        .prepare("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")?;
    let names = statement.query_map([], |row| row.get::<_, String>(0))?;
    let names = names.collect::<rusqlite::Result<Vec<_>>>()?;
    if names.is_empty() || names.iter().any(|name| name == SCHEMA_TABLE) {
        return Ok(None);
    }
    let some: Vec<String> =
        names.iter().take(NAMED).map(|name| printable::excerpt(name, NAME_CHARS)).collect();
    let more = if names.len() > NAMED { " and more" } else { "" };
    Ok(Some(format!("{}{more}", some.join(", "))))
}

/// Turns the write-ahead log on, waiting for others who do so at the same time: each of two that make a store has read the first
/// page, and SQLite refuses the second at once instead of waiting, as neither could go on
/// (<https://www.sqlite.org/c3ref/busy_handler.html>).
fn with_log(connection: &Connection) -> rusqlite::Result<()> {
    let begun = Instant::now();
    loop {
        match connection.execute_batch("PRAGMA journal_mode=WAL") {
            Err(e)
                if e.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
                    && begun.elapsed() < BUSY =>
            {
                std::thread::park_timeout(AGAIN);
            }
            done => return done,
        }
    }
}

fn database(place: &str, what: &'static str, e: &rusqlite::Error) -> StoreError {
    if e.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) {
        let reason = "it is no database of SQLite".to_owned();
        return StoreError::Foreign { place: place.to_owned(), reason };
    }
    if e.sqlite_error_code() == Some(rusqlite::ErrorCode::AuthorizationForStatementDenied) {
        return StoreError::NoReading { place: place.to_owned() };
    }
    if e.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted) {
        return StoreError::Cancelled;
    }
    // The memory that connections share is a file beside it, which needs room as well.
    let shared = e.sqlite_error().is_some_and(|e| e.extended_code == SQLITE_IOERR_SHMSIZE);
    if shared || e.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull) {
        return StoreError::Full { place: place.to_owned(), what };
    }
    StoreError::Database { place: place.to_owned(), what, reason: e.to_string() }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(n) => ValueRef::Integer(*n),
            Self::Real(n) => ValueRef::Real(*n),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn value(it: ValueRef<'_>) -> Value {
    match it {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(n) => Value::Int(n),
        ValueRef::Real(n) => Value::Real(n),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
    }
}

impl Database for Sqlite {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn script(&mut self, sql: &str) -> Result<(), StoreError> {
        let failed = |e| database(&self.place, "a statement failed", &e);
        self.connection.execute_batch(sql).map_err(failed)
    }

    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, StoreError> {
        let failed = |e| database(&self.place, "it cannot be written", &e);
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        statement.execute(params_from_iter(values)).map(|n| n as u64).map_err(failed)
    }

    fn rows(
        &mut self,
        sql: &str,
        values: &[Value],
        each: EachRow<'_>,
    ) -> Result<Vec<String>, StoreError> {
        let failed = |e| database(&self.place, "it cannot be read", &e);
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        let names: Vec<String> = statement.column_names().iter().map(|n| (*n).to_owned()).collect();
        let mut rows = statement.query(params_from_iter(values)).map_err(failed)?;
        let mut one = Vec::with_capacity(names.len());
        while let Some(row) = rows.next().map_err(failed)? {
            one.clear();
            for at in 0..names.len() {
                one.push(value(row.get_ref(at).map_err(failed)?));
            }
            each(&names, &one)?;
        }
        Ok(names)
    }

    fn only_reading(
        &mut self,
        sql: &str,
        seconds: u32,
        each: EachRow<'_>,
    ) -> Result<Vec<String>, StoreError> {
        self.refuse_writes(sql)?;
        self.script("PRAGMA query_only=ON")?;
        let answer = self.guarded(sql, seconds, each);
        self.script("PRAGMA query_only=OFF")?;
        answer
    }

    fn cancelled_by(&mut self, cancel: Option<Cancellation>) -> Result<(), StoreError> {
        let failed = |e| database(&self.place, "a statement failed", &e);
        let ends = cancel.map(|cancel| move || cancel.is_cancelled());
        self.connection.progress_handler(STEPS, ends).map_err(failed)
    }

    fn copy_pages(&mut self, to: &Path) -> Result<PageCopy, StoreError> {
        let mut to = Sqlite::open(to, IfMissing::Make)?;
        let failed = |e| database(&to.place, "the backup failed", &e);
        let copying = Backup::new(&self.connection, &mut to.connection).map_err(failed)?;
        // All pages in one step: the log lets others write meanwhile, and none of them makes it begin again.
        if copying.step(-1).map_err(failed)? == StepResult::Done {
            return Ok(PageCopy::Done);
        }
        let (place, reason) = (to.place.clone(), "others keep it locked".to_owned());
        Err(StoreError::Database { place, what: "the backup failed", reason })
    }
}

impl Sqlite {
    fn refuse_writes(&self, sql: &str) -> Result<(), StoreError> {
        let failed = |e| database(&self.place, "the query failed", &e);
        let statement = self.connection.prepare(sql).map_err(failed)?;
        if statement.readonly() && statement.column_count() > 0 {
            return Ok(());
        }
        Err(StoreError::NoReading { place: self.place.clone() })
    }

    /// ATTACH and PRAGMA count as reading, and reach other files and settings: what a statement may do is named.
    fn guarded(
        &mut self,
        sql: &str,
        seconds: u32,
        each: EachRow<'_>,
    ) -> Result<Vec<String>, StoreError> {
        let end = Instant::now() + Duration::from_secs(seconds.into());
        let place = self.place.clone();
        let failed = |e| database(&place, "the query failed", &e);
        self.connection.authorizer(Some(only_reads)).map_err(failed)?;
        self.connection
            .progress_handler(STEPS, Some(move || Instant::now() > end))
            .map_err(failed)?;
        let answer = self.rows(sql, &[], each).map_err(|e| match e {
            StoreError::Cancelled => StoreError::Database {
                place: place.clone(),
                what: "the query failed",
                reason: format!("it was interrupted after {seconds} s"),
            },
            other => other,
        });
        self.connection.progress_handler(0, None::<fn() -> bool>).map_err(failed)?;
        self.connection.authorizer(None::<fn(AuthContext<'_>) -> Authorization>).map_err(failed)?;
        answer
    }
}

/// What a person's statement may do.
fn only_reads(what: AuthContext<'_>) -> Authorization {
    match what.action {
        AuthAction::Select
        | AuthAction::Read { .. }
        | AuthAction::Function { .. }
        | AuthAction::Recursive => Authorization::Allow,
        _ => Authorization::Deny,
    }
}
