// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the site is for readers of reports: `TAILBOUND_SITE`, or the line of `packaging/site`.
//!
//! Compiled into programs that are given to others; without an address their reports link nowhere.

use std::path::Path;

/// The address, if there is one.
pub(crate) fn address(project: &Path) -> Option<String> {
    let given = std::env::var("TAILBOUND_SITE").ok();
    let filed = || std::fs::read_to_string(project.join("packaging/site")).ok();
    given.or_else(filed).as_deref().and_then(line)
}

/// The first line that is no comment.
fn line(text: &str) -> Option<String> {
    let mut lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines.next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_no_address() {
        assert_eq!(line("# such as https://x.invalid/\n\n"), None);
        assert_eq!(line("# it\n https://x.invalid/ \n").as_deref(), Some("https://x.invalid/"));
    }
}
