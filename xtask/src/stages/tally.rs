// SPDX-License-Identifier: MIT OR Apache-2.0
//! What came of some checks.
//!
//! Context: COLD. A check that cannot run here is skipped with its reason, unless
//! `TAILBOUND_REQUIRE` names the capability it lacks: then it failed.

use tailbound_testing::required;

/// Counts, and the names of what did not pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    /// What failed, one line each.
    pub(crate) failed: Vec<String>,
    /// What was skipped and why, one line each.
    pub(crate) skipped: Vec<String>,
}

impl Tally {
    /// One check that passed or failed.
    pub(crate) fn one(name: &str, result: anyhow::Result<()>) -> Self {
        let mut tally = Self::default();
        tally.add(name, result);
        tally
    }

    pub(crate) fn add(&mut self, name: &str, result: anyhow::Result<()>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(e) => self.failed.push(format!("{name}: {e:#}")),
        }
    }

    /// A check that lacks `capability`.
    pub(crate) fn skip(&mut self, name: &str, capability: &str, why: &str) {
        if required(capability) {
            self.failed.push(format!("{name}: {capability} is required here, but {why}"));
        } else {
            self.skipped.push(format!("{name}: {why}"));
        }
    }

    pub(crate) fn absorb(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        self.skipped.extend(other.skipped);
    }

    /// The names of what failed, without what was said of it.
    pub(crate) fn names(&self) -> String {
        let name = |line: &String| line.split(": ").next().unwrap_or_default().to_owned();
        self.failed.iter().map(name).collect::<Vec<_>>().join("; ")
    }

    /// The closing line.
    pub(crate) fn line(&self) -> String {
        let Self { passed, failed, skipped } = self;
        format!("{passed} passed, {} failed, {} skipped", failed.len(), skipped.len())
    }
}
