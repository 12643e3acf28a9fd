// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was measured, as JSON Lines, so that nothing is measured twice.
//!
//! Units: ns. The first line says of what the journal is; each other line is one variant that was
//! measured, known by its words. Values are kept, not answers: another limit needs no new run. A last line that was
//! cut off is measured again.
//! Not here: whether a value is that of the run file it names, which who goes on has to look at.

use serde::{Deserialize, Serialize};

/// Version of the format.
const VERSION: u32 = 1;

/// What came of a variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measured {
    /// Its figure.
    ValueNs(i64),
    /// It was not built, did not boot or did not measure: why.
    Unfit(String),
}

/// A variant that was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What makes it this variant: words, a commit.
    pub key: String,
    /// What a reader calls it, where that is shorter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The figure, or why there is none.
    pub measured: Measured,
    /// The run file beside the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// SHA-256 of that file; earlier versions did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_sha256: Option<String>,
    /// What is worth knowing about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Line {
    Bisect { version: u32, subject: String },
    Step(Step),
}

/// Why a journal cannot be gone on with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// Of something else.
    #[error("it is of another search ({there}, not {asked})")]
    Other {
        /// What it is of.
        there: String,
        /// What is asked.
        asked: String,
    },
    /// Not of this program, or of a later one.
    #[error("line {line}: {why}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
}

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    subject: String,
    steps: Vec<Step>,
}

impl Journal {
    /// An empty one.
    #[must_use]
    pub fn new(subject: &str) -> Self {
        Self { subject: subject.to_owned(), steps: Vec::new() }
    }

    /// Reads one that must be of `subject`.
    ///
    /// # Errors
    /// It is not, or is no journal.
    pub fn read(text: &str, subject: &str) -> Result<Self, JournalError> {
        let mut journal = Self::new(subject);
        let mut is_headed = false;
        let count = text.lines().count();
        for (i, line) in text.lines().enumerate() {
            let wrong = |why: String| JournalError::Line { line: i + 1, why };
            match serde_json::from_str(line) {
                Ok(Line::Bisect { version, .. }) if version > VERSION => {
                    return Err(wrong(format!("version {version}; this program reads {VERSION}")));
                }
                Ok(Line::Bisect { subject: there, .. }) if there != subject => {
                    return Err(JournalError::Other { there, asked: subject.to_owned() });
                }
                Ok(Line::Bisect { .. }) => is_headed = true,
                Ok(Line::Step(step)) if is_headed => journal.steps.push(step),
                Ok(Line::Step(_)) => return Err(wrong("a step before the first line".to_owned())),
                Err(_) if i + 1 == count && !text.ends_with('\n') => {}
                Err(e) => return Err(wrong(e.to_string())),
            }
        }
        Ok(journal)
    }

    /// What is known of a variant.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Step> {
        self.steps.iter().rev().find(|s| s.key == key)
    }

    /// All of it, in order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Forgets the steps for which `believed` is false: they are measured again.
    pub fn keep(&mut self, believed: impl FnMut(&Step) -> bool) {
        self.steps.retain(believed);
    }

    /// Adds what was measured.
    pub fn add(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// The text of its file.
    #[must_use]
    pub fn text(&self) -> String {
        let first = Line::Bisect { version: VERSION, subject: self.subject.clone() };
        let lines = std::iter::once(first).chain(self.steps.iter().cloned().map(Line::Step));
        // Texts and numbers alone: there is nothing that cannot be written.
        lines.map(|l| serde_json::to_string(&l).unwrap_or_default() + "\n").collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(key: &str, measured: Measured) -> Step {
        let key = key.to_owned();
        Step { key, title: None, measured, run: None, run_sha256: None, note: None }
    }

    fn journal() -> Journal {
        let mut journal = Journal::new("append debian:6.12");
        for (key, measured) in
            [("", Measured::ValueNs(7)), ("a \"b\"", Measured::Unfit("no boot".to_owned()))]
        {
            journal.add(step(key, measured));
        }
        journal
    }

    #[test]
    fn what_was_measured_is_there_again() {
        let written = journal().text();
        let read = Journal::read(&written, "append debian:6.12").unwrap();
        assert_eq!(read, journal());
        assert_eq!(read.get("").map(|s| &s.measured), Some(&Measured::ValueNs(7)));
        assert_eq!(read.get("other"), None);
    }

    #[test]
    fn a_line_of_an_earlier_version_has_no_digest_and_what_is_forgotten_is_not_known() {
        let older = "{\"type\":\"bisect\",\"version\":1,\"subject\":\"x\"}\n\
            {\"type\":\"step\",\"key\":\"a\",\"measured\":{\"value-ns\":7},\"run\":\"step-001.tailbound.jsonl\"}\n";
        let mut read = Journal::read(older, "x").unwrap();
        assert_eq!(read.get("a").map(|s| s.run_sha256.clone()), Some(None));
        assert_eq!(read.text(), older);
        read.add(Step { run_sha256: Some("5e".to_owned()), ..step("b", Measured::ValueNs(8)) });
        read.keep(|s| s.key != "a");
        assert_eq!(read.get("a"), None);
        assert_eq!(Journal::read(&read.text(), "x").unwrap(), read);
    }

    #[test]
    fn a_cut_line_is_measured_again_and_anything_else_is_refused() {
        let written = journal().text();
        let cut = written.get(..written.len() - 5).unwrap();
        assert_eq!(Journal::read(cut, "append debian:6.12").unwrap().steps().len(), 1);
        let other = Journal::read(&written, "append debian:6.1").unwrap_err();
        assert!(matches!(other, JournalError::Other { .. }));
        for wrong in
            ["nonsense\n", "{\"type\":\"step\",\"key\":\"\",\"measured\":{\"value-ns\":1}}\n"]
        {
            assert!(matches!(Journal::read(wrong, "x"), Err(JournalError::Line { line: 1, .. })));
        }
        let later = "{\"type\":\"bisect\",\"version\":9,\"subject\":\"x\"}\n";
        assert!(Journal::read(later, "x").unwrap_err().to_string().contains("version 9"));
    }
}
