// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every campaign file of the tests begins with: a text, and one system of this machine's kind.
//!
//! Not here: its steps, which each test adds.

/// The head of the campaign `small`, which differs from its text in `differs` (a TOML list).
pub(crate) fn head(differs: &str) -> String {
    let version = std::fs::read_to_string("/proc/version").unwrap_or_default();
    let kind = if version.contains("PREEMPT_RT") { "preempt-rt" } else { "stock" };
    format!(
        r#"name = "small"
differs = {differs}
[text]
title = "A text"
authors = ["A. Author"]
year = 2008
machine = "not named"
about = "How late?"
[[system]]
id = "any"
name = "their kernel"
kind = "{kind}"
"#
    )
}

/// A step `id` whose run is described by `lines` of TOML.
pub(crate) fn step(id: &str, lines: &str) -> String {
    format!(
        "[[step]]\nid = \"{id}\"\ntitle = \"Step\"\ntold = \"some sleeps\"\n[step.run]\n{lines}\n"
    )
}
