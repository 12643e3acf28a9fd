// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of one form: a call that one place makes for all others, and the files that may make it nevertheless.
//!
//! What is looked at is the program: tests work in folders of their own, `xtask` below the project.

use super::files::File;
use super::finding::Finding;

/// A call that is made in one place.
pub(super) struct Rule {
    /// As findings name it.
    pub(super) name: &'static str,
    /// Parts of lines, in halves where their own file would find itself.
    pub(super) calls: &'static [&'static str],
    /// Files that may, and why.
    pub(super) may: &'static [(&'static str, &'static str)],
    /// What is wrong with a call elsewhere.
    pub(super) wrong: &'static str,
    /// What to do.
    pub(super) instead: &'static str,
}

impl Rule {
    /// What one file breaks.
    pub(super) fn check(&self, file: &File) -> Vec<Finding> {
        let path = file.path.as_str();
        let ours = path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
        let Some(text) = file.text().filter(|_| ours && !is_test(path)) else { return Vec::new() };
        if self.may.iter().any(|(may, _)| *may == path) {
            return Vec::new();
        }
        let program = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]"));
        let finding = |(i, line): (usize, &str)| {
            let code = line.trim_start();
            let found = |call: &&&str| !code.starts_with("//") && code.contains(**call);
            let call = self.calls.iter().find(found)?;
            let text = format!("`{call}` {}", self.wrong);
            Some(Finding::new((path, i + 1), self.name, text, self.instead))
        };
        program.enumerate().filter_map(finding).collect()
    }

    /// Exceptions that no longer make a call.
    #[cfg(test)]
    pub(super) fn needless(&self) -> Vec<&'static str> {
        let project = crate::root::project().expect("the project");
        let is_needless = |path: &&str| {
            let text = std::fs::read_to_string(project.join(path)).expect(path);
            !self.calls.iter().any(|call| text.contains(call))
        };
        self.may.iter().map(|(path, _)| *path).filter(is_needless).collect()
    }
}

/// Modules of tests alone.
fn is_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    ["tests.rs", "checks.rs"].contains(&name)
        || name.ends_with("_tests.rs")
        || path.contains("/tests/")
}
