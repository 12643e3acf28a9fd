// SPDX-License-Identifier: MIT OR Apache-2.0
//! Folders that know no kernel, file, process or clock, so that answers which nobody measured can test them.
//!
//! Their crate has others that do. Which crates may be used at all: `edges`.

use super::files::File;
use super::finding::Finding;

/// What decides there which question is next.
const PURE: &[&str] =
    &["crates/lab/tailbound-search/src/bisect/", "crates/lab/tailbound-search/src/hunt/"];

/// The crates that such a folder may use.
const USED: &[&str] = &["tailbound_core"];

/// What it takes of the standard library.
const STANDARD: &[&str] = &["cmp", "collections", "fmt", "iter", "str"];

/// What one file breaks.
pub(super) fn check(file: &File) -> Vec<Finding> {
    let path = file.path.as_str();
    let folder = PURE.iter().find(|folder| path.starts_with(**folder));
    let (Some(folder), Some(text)) = (folder, file.text()) else { return Vec::new() };
    let own = folder.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let finding = |(i, line): (usize, &str)| {
        let code = line.split("//").next().unwrap_or_default();
        let foreign = foreign(code, own)?;
        let text =
            format!("`{foreign}` is not pure: what is next would depend on more than the answers");
        Some(Finding::new(
            (path, i + 1),
            "purity",
            text,
            "Leave it to `hunt_runs` or `bisect_runs`, or let the caller bring it",
        ))
    };
    text.lines().enumerate().filter_map(finding).collect()
}

/// The first path of a line that leads elsewhere.
fn foreign<'c>(code: &'c str, own: &str) -> Option<&'c str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    code.split(|c| !is_word(c)).find(|path| {
        let mut parts = path.split("::");
        match (parts.next(), parts.next()) {
            (Some("std"), Some(part)) => !STANDARD.contains(&part),
            (Some("crate"), Some(part)) => part != own,
            (Some(name), _) => name.starts_with("tailbound_") && !USED.contains(&name),
            (None, _) => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pure_folder_knows_no_file_process_or_clock() {
        let found = |path: &str, text: &str| check(&File::fake(path, text)).len();
        let bad = "use std::fs;\nuse crate::hunt_runs::Guests;\nuse tailbound_lab::Bench;\n\
                   let now = std::time::Instant::now();\nuse tailbound_sys::{clock, given};\nuse std::{env, fs};\n";
        let good = "use std::collections::BTreeMap;\nuse tailbound_core::Spec;\nuse crate::hunt::Code;\n\
                    use super::space;\n// std::fs\nlet a = i64::MAX;\n";
        assert_eq!(found("crates/lab/tailbound-search/src/hunt/search.rs", bad), 6);
        assert_eq!(found("crates/lab/tailbound-search/src/hunt/search.rs", good), 0);
        assert_eq!(found("crates/lab/tailbound-search/src/bisect/span.rs", good), 1, "the other's");
        assert_eq!(found("crates/lab/tailbound-search/src/hunt_runs/guests.rs", bad), 0);
    }

    #[test]
    fn every_pure_folder_is_there() {
        let project = crate::root::project().expect("the project");
        assert!(PURE.iter().all(|folder| project.join(folder).join("mod.rs").is_file()));
    }
}
