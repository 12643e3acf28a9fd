// SPDX-License-Identifier: MIT OR Apache-2.0
//! The section of the changelog that a release is about.

use std::fs;

use anyhow::Context as _;

use super::Release;

/// That of its version, or what is not released yet.
pub(super) fn section(release: &Release) -> anyhow::Result<String> {
    let text = fs::read_to_string(release.project.join("CHANGELOG.md"))?;
    found(&text, &release.version)
        .context("CHANGELOG.md has neither a section of this version nor [Unreleased]")
}

fn found(text: &str, version: &str) -> Option<String> {
    let sections: Vec<&str> = text.split("\n## ").skip(1).collect();
    let of = |name: &str| sections.iter().find(|s| s.starts_with(&format!("[{name}]")));
    let section = of(version).or_else(|| of("Unreleased"))?;
    let body = section.split_once('\n').map_or("", |(_, body)| body).trim();
    Some(format!("# Tailbound {version}\n\n{body}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_the_section_of_its_version() {
        let text = "# Changelog\n\n## [Unreleased]\n\nnew\n\n## [0.2.0] - 2026-12-01\n\nold\n";
        assert_eq!(found(text, "0.2.0").unwrap(), "# Tailbound 0.2.0\n\nold\n");
        assert_eq!(found(text, "0.3.0").unwrap(), "# Tailbound 0.3.0\n\nnew\n");
        assert_eq!(found("# Changelog\n", "0.3.0"), None);
    }
}
