// SPDX-License-Identifier: MIT OR Apache-2.0
//! A line of the audit log, and how one is written in a transaction. Who reads them: [`crate::Store::audited`].

use tailbound_core::printable::excerpt;

use crate::database::Database;
use crate::error::StoreError;
use crate::summary::TEXT_CHARS;
use crate::value::Value;

/// A line of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Audited {
    /// When, RFC 3339.
    pub at: String,
    /// Name and identity of the token, or `this machine`.
    pub who: String,
    /// What was done, or refused.
    pub what: String,
}

/// Writes down what was done, in the transaction that is open.
pub(crate) fn write_down(db: &mut dyn Database, done: &Audited) -> Result<(), StoreError> {
    let sql = "INSERT INTO audit (at, who, what) VALUES ($1, $2, $3)";
    // Names in it are those of strangers: each is a line, and one line.
    let line = |text: &str| Value::from(excerpt(text, TEXT_CHARS));
    let values = [done.at.as_str().into(), line(&done.who), line(&done.what)];
    db.execute(sql, &values).map(|_| ())
}
