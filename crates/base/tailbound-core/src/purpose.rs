// SPDX-License-Identifier: MIT OR Apache-2.0
//! What persons state about a run and no machine can know: a title, who measured, and the
//! requirement that it answers.
//!
//! One line of text each, refused where it is typed if it is not; a run file of
//! others may hold anything, so whoever shows it makes it safe as all text of a file.
//! Not here: the deadline and how strictly it is judged ([`crate::requirement`]).

use serde::{Deserialize, Serialize};

use crate::plan::RunConfig;
use crate::printable::is_harmful;

/// Longest statement, in characters.
pub const CHARS_MAX: usize = 200;

/// What persons stated; what they did not is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purpose {
    /// What the run is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Who measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// The requirement that it answers, as documents call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requirement: Option<String>,
}

/// Why a text is no statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PurposeError {
    /// There is none.
    #[error("{option}: write a text, or leave the option out")]
    Empty {
        /// The option.
        option: &'static str,
    },
    /// More than a line holds.
    #[error("{option}: longer than {CHARS_MAX} characters; write one line")]
    TooLong {
        /// The option.
        option: &'static str,
    },
    /// A character that moves a cursor or breaks a line.
    #[error("{option}: a control character or a second line; write one line of plain text")]
    Control {
        /// The option.
        option: &'static str,
    },
}

impl Purpose {
    /// What a run configuration states; `None` where it states nothing.
    ///
    /// # Errors
    /// The option whose text is not one line.
    pub fn stated(config: &RunConfig) -> Result<Option<Box<Self>>, PurposeError> {
        let purpose = Self {
            title: line("--title", config.title.as_deref())?,
            operator: line("--operator", config.operator.as_deref())?,
            requirement: line("--requirement", config.requirement.as_deref())?,
        };
        Ok((purpose != Self::default()).then(|| Box::new(purpose)))
    }
}

fn line(option: &'static str, text: Option<&str>) -> Result<Option<String>, PurposeError> {
    let Some(text) = text.map(str::trim_ascii) else { return Ok(None) };
    if text.is_empty() {
        return Err(PurposeError::Empty { option });
    }
    if text.contains(|c| is_harmful(c) || c == '\n' || c == '\t') {
        return Err(PurposeError::Control { option });
    }
    if text.chars().count() > CHARS_MAX {
        return Err(PurposeError::TooLong { option });
    }
    Ok(Some(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_one_line_of_plain_text() {
        let config = |text: &str| RunConfig { operator: Some(text.into()), ..RunConfig::default() };
        let stated =
            Purpose::stated(&config(" A. Nother \u{e9} ")).map(|p| p.and_then(|p| p.operator));
        assert_eq!(stated, Ok(Some("A. Nother \u{e9}".to_owned())));
        assert_eq!(Purpose::stated(&RunConfig::default()), Ok(None));
        let option = "--operator";
        for wrong in ["a\nb", "a\tb", "\u{1b}[2J", "a\u{202e}b", "a\u{2028}b"] {
            assert_eq!(Purpose::stated(&config(wrong)), Err(PurposeError::Control { option }));
        }
        assert_eq!(Purpose::stated(&config("  ")), Err(PurposeError::Empty { option }));
        let long = "é".repeat(CHARS_MAX + 1);
        assert_eq!(Purpose::stated(&config(&long)), Err(PurposeError::TooLong { option }));
        assert!(Purpose::stated(&config(&"é".repeat(CHARS_MAX))).is_ok());
    }
}
