// SPDX-License-Identifier: MIT OR Apache-2.0
//! Something noticed about the machine or the run that a reader must know.

use serde::{Deserialize, Serialize};

use crate::finding_kinds;
use crate::words::open_words;

open_words! {
    /// What a finding does to the verdict. Ordered: the greatest one counts, and one that this
    /// version does not know may be the gravest.
    Impact {
        /// Worth knowing; the figures stand.
        Notice = "notice",
        /// The figures stand, but "met" cannot be claimed on them.
        Doubt = "doubt",
        /// The kernel was seen to do what it must not: the run has failed.
        Violation = "violation",
        /// The figures do not describe this machine: exit status 3.
        Unfit = "unfit",
    }
}

impl Impact {
    /// Whether "met" cannot be claimed beside it: so with all but a notice, known or not.
    #[must_use]
    pub fn forbids_met(self) -> bool {
        self != Self::Notice
    }
}

/// The finding of a run whose tool records only what is above a threshold, and recorded nothing.
pub const NOTHING_FOUND: &str = "source-nothing-found";

/// Something noticed, what it means and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable name for scripts: `rt-throttling`, `steal-time`, …
    pub id: String,
    /// What it does to the verdict.
    pub impact: Impact,
    /// One line: what was seen, with figures.
    pub title: String,
    /// What it means for the figures.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub meaning: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

impl Finding {
    /// A finding without meaning and remedy yet.
    #[must_use]
    pub fn new(id: &str, impact: Impact, title: impl Into<String>) -> Self {
        Self {
            id: id.to_owned(),
            impact,
            title: title.into(),
            meaning: String::new(),
            remedy: String::new(),
        }
    }
    /// A finding with the words that all of its kind have (`finding_kinds`).
    #[must_use]
    pub fn listed(id: &str, impact: Impact, title: impl Into<String>) -> Self {
        let plain = Self::new(id, impact, title);
        match finding_kinds::of(id) {
            Some(kind) => plain.meaning(kind.meaning).remedy(kind.remedy),
            None => plain,
        }
    }
    /// Adds what it means.
    #[must_use]
    pub fn meaning(mut self, text: impl Into<String>) -> Self {
        self.meaning = text.into();
        self
    }
    /// Adds what to do.
    #[must_use]
    pub fn remedy(mut self, text: impl Into<String>) -> Self {
        self.remedy = text.into();
        self
    }
}
