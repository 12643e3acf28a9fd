// SPDX-License-Identifier: MIT OR Apache-2.0
//! A value of a column, the same for both databases.

use serde_json::json;
use tailbound_core::csv;

/// A value of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Not known, or there is none.
    Null,
    /// BIGINT.
    Int(i64),
    /// DOUBLE PRECISION.
    Real(f64),
    /// TEXT.
    Text(String),
    /// BYTEA, BLOB.
    Bytes(Vec<u8>),
}

impl Value {
    /// The number, where it is one.
    #[must_use]
    pub fn int(&self) -> Option<i64> {
        if let Self::Int(n) = self { Some(*n) } else { None }
    }

    /// The text, where it is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The bytes, where it is some.
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }

    /// As JSON; bytes as their number, for nobody reads them there.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Int(n) => json!(n),
            Self::Real(n) => json!(n),
            Self::Text(text) => json!(text),
            Self::Bytes(bytes) => json!({ "bytes": bytes.len() }),
        }
    }

    /// As a field of CSV; nothing where there is none.
    #[must_use]
    pub fn csv(&self) -> String {
        match self {
            Self::Text(text) => csv::field(text),
            other => other.shown(),
        }
    }

    /// For a person; nothing where there is none.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Self::Null => String::new(),
            Self::Int(n) => n.to_string(),
            Self::Real(n) => n.to_string(),
            Self::Text(text) => text.clone(),
            Self::Bytes(bytes) => format!("{} bytes", bytes.len()),
        }
    }
}

impl From<i64> for Value {
    fn from(n: i64) -> Self {
        Self::Int(n)
    }
}

impl From<u64> for Value {
    fn from(n: u64) -> Self {
        Self::Int(i64::try_from(n).unwrap_or(i64::MAX))
    }
}

impl From<f64> for Value {
    fn from(n: f64) -> Self {
        Self::Real(n)
    }
}

impl From<bool> for Value {
    fn from(yes: bool) -> Self {
        Self::Int(yes.into())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        // PostgreSQL's TEXT holds no NUL.
        Self::Text(text.replace('\0', "\u{fffd}"))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(it: Option<T>) -> Self {
        it.map_or(Self::Null, Into::into)
    }
}
