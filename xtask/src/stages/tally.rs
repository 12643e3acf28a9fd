// SPDX-License-Identifier: MIT OR Apache-2.0
//! What came of some checks.
//!
//! A check that cannot run here is skipped with its reason, unless
//! `TAILBOUND_REQUIRE` names the capability it lacks: then it failed.

use serde::{Deserialize, Serialize};
use tailbound_testing::required;

/// What came of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Outcome {
    /// It holds.
    Passed,
    /// It does not; why.
    Failed(String),
    /// It cannot be tried here; why.
    Skipped(String),
}

/// One test, or one check of a stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Check {
    /// The stage or the test program; empty until it is known (`Tally::of`).
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) outcome: Outcome,
}

/// All checks so far, in the order in which they ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    checks: Vec<Check>,
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
            Ok(()) => self.pass(name),
            Err(e) => self.fail(name, format!("{e:#}")),
        }
    }

    pub(crate) fn pass(&mut self, name: &str) {
        self.push(name, Outcome::Passed);
    }

    pub(crate) fn fail(&mut self, name: &str, why: impl Into<String>) {
        self.push(name, Outcome::Failed(why.into()));
    }

    /// A check that no machine owes anyone.
    pub(crate) fn leave_out(&mut self, name: &str, why: impl Into<String>) {
        self.push(name, Outcome::Skipped(why.into()));
    }

    /// A check that lacks `capability`.
    pub(crate) fn skip(&mut self, name: &str, capability: &str, why: &str) {
        if required(capability) {
            self.fail(name, format!("{capability} is required here, but {why}"));
        } else {
            self.leave_out(name, why);
        }
    }

    fn push(&mut self, name: &str, outcome: Outcome) {
        self.checks.push(Check { group: String::new(), name: name.to_owned(), outcome });
    }

    pub(crate) fn absorb(&mut self, other: Self) {
        self.checks.extend(other.checks);
    }

    /// The same, with `group` where a check has none yet.
    pub(crate) fn of(mut self, group: &str) -> Self {
        for check in self.checks.iter_mut().filter(|check| check.group.is_empty()) {
            group.clone_into(&mut check.group);
        }
        self
    }

    pub(crate) fn checks(&self) -> &[Check] {
        &self.checks
    }

    pub(crate) fn passed(&self) -> usize {
        self.checks.iter().filter(|check| check.outcome == Outcome::Passed).count()
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed().next().is_some()
    }

    /// What failed: name and reason.
    pub(crate) fn failed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.checks.iter().filter_map(|check| match &check.outcome {
            Outcome::Failed(why) => Some((check.name.as_str(), why.as_str())),
            Outcome::Passed | Outcome::Skipped(_) => None,
        })
    }

    /// What was skipped: name and reason.
    pub(crate) fn skipped(&self) -> impl Iterator<Item = (&str, &str)> {
        self.checks.iter().filter_map(|check| match &check.outcome {
            Outcome::Skipped(why) => Some((check.name.as_str(), why.as_str())),
            Outcome::Passed | Outcome::Failed(_) => None,
        })
    }

    /// The names of what failed, without what was said of it.
    pub(crate) fn names(&self) -> String {
        self.failed().map(|(name, _)| name).collect::<Vec<_>>().join("; ")
    }

    /// The closing line.
    pub(crate) fn line(&self) -> String {
        let (passed, failed, skipped) =
            (self.passed(), self.failed().count(), self.skipped().count());
        format!("{passed} passed, {failed} failed, {skipped} skipped")
    }
}
