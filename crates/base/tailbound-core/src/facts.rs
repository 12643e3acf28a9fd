// SPDX-License-Identifier: MIT OR Apache-2.0
//! A fact about a machine, and how it is read: also one that a later version may have written.
//!
//! A fact is an object with one of three names; fields beside it are passed
//! over, and an object with none of the three is a fact that is not known here.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::words::Word;

/// A fact about the machine, or why it is not known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", from = "Read")]
pub enum Fact {
    /// Its value.
    Value(serde_json::Value),
    /// It exists but could not be read: the reason.
    Unknown(String),
    /// This machine has no such thing: the reason.
    NotApplicable(String),
}

impl Fact {
    /// A value of any serialisable kind.
    pub fn of(value: impl Into<serde_json::Value>) -> Self {
        Self::Value(value.into())
    }
    /// The value as text for people.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Value(serde_json::Value::String(s)) => s.clone(),
            Self::Value(v) => v.to_string(),
            Self::Unknown(why) => format!("unknown: {why}"),
            Self::NotApplicable(why) => format!("not applicable: {why}"),
        }
    }
    /// The value if it is a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Value(v) => v.as_str(),
            _ => None,
        }
    }
}

/// Facts by dotted name (`kernel.release`, `cpu.model`, …), in the order of their names.
pub type Facts = BTreeMap<String, Fact>;

/// A fact as it stands in a file.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Read {
    // Present and `null` is a value; absent is not.
    #[serde(default, deserialize_with = "present")]
    value: Option<Value>,
    unknown: Option<String>,
    not_applicable: Option<String>,
    #[serde(flatten)]
    others: BTreeMap<String, serde::de::IgnoredAny>,
}

fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

impl From<Read> for Fact {
    fn from(read: Read) -> Self {
        match (read.value, read.unknown, read.not_applicable) {
            (Some(value), ..) => Self::Value(value),
            (None, Some(why), _) => Self::Unknown(why),
            (None, None, Some(why)) => Self::NotApplicable(why),
            (None, None, None) => {
                let name = read.others.keys().next().map_or("", String::as_str);
                Self::Unknown(format!(
                    "a kind of fact that this version does not know: `{}`",
                    Word::new(name)
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_a_later_version_are_kept_or_known_to_be_unknown() {
        let read = |text: &str| serde_json::from_str::<Fact>(text).map_err(|e| e.to_string());
        assert_eq!(read(r#"{"value":3,"since":"boot"}"#), Ok(Fact::of(3)));
        assert_eq!(read(r#"{"value":null}"#), Ok(Fact::Value(Value::Null)));
        assert_eq!(read(r#"{"unknown":"EACCES"}"#), Ok(Fact::Unknown("EACCES".into())));
        assert_eq!(read(r#"{"not-applicable":"x"}"#), Ok(Fact::NotApplicable("x".into())));
        let estimated = read(r#"{"estimated":3}"#).unwrap_or_else(|e| panic!("{e}"));
        assert!(estimated.text().contains("`estimated`"), "{estimated:?}");
        assert!(read("7").is_err() && read(r#"{"unknown":7}"#).is_err());
    }
}
