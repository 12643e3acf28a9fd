// SPDX-License-Identifier: MIT OR Apache-2.0
//! One broken rule, and how it is told.

use std::fmt;

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) rule: &'static str,
    /// What is wrong and why it matters.
    pub(crate) why: String,
    /// What to do.
    pub(crate) remedy: String,
    /// Told, but does not fail.
    pub(crate) warning: bool,
}

impl Finding {
    pub(crate) fn new(
        (path, line): (&str, usize),
        rule: &'static str,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            path: path.to_owned(),
            line,
            rule,
            why: why.into(),
            remedy: remedy.into(),
            warning: false,
        }
    }

    pub(crate) fn warning(mut self) -> Self {
        self.warning = true;
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.warning { "warning: " } else { "" };
        let Self { path, line, rule, why, remedy, .. } = self;
        write!(f, "{path}:{line}: {kind}{rule}: {why}. {remedy}.")
    }
}
