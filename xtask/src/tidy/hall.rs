// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program stays thin: arguments to library calls, and nothing else.
//!
//! What it decides can be tested only through a process; in a library crate a test calls it.

use super::files::File;
use super::finding::Finding;

/// The sources of the program.
const HALL: &str = "crates/tailbound/src/";
/// Lines of all of them together.
const LINES_MAX: usize = 12_000;

/// See the module.
pub(super) fn check(files: &[File]) -> Option<Finding> {
    let sources = files.iter().filter(|f| f.path.starts_with(HALL));
    let lines: usize = sources.filter_map(File::text).map(|text| text.lines().count()).sum();
    (lines > LINES_MAX).then(|| {
        Finding::new(
            ("crates/tailbound/src/lib.rs", 1),
            "hall",
            format!("{HALL} has {lines} lines, at most {LINES_MAX}"),
            "Move what decides or computes to the library crate whose subject it is",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_program_are_counted_over_all_of_its_files() {
        let half = "//\n".repeat(LINES_MAX / 2);
        let file = |path: &str, text: &str| File::fake(path, text);
        let full = [
            file("crates/tailbound/src/cli.rs", &half),
            file("crates/tailbound/src/cmd/run.rs", &half),
            file("crates/tailbound/tests/cli/main.rs", &half),
            file("crates/base/tailbound-core/src/lib.rs", &half),
        ];
        assert_eq!(check(&full), None);
        let over: Vec<File> =
            full.into_iter().chain([file("crates/tailbound/src/say.rs", "//\n")]).collect();
        let found = check(&over).expect("a line too many");
        assert_eq!(found.rule, "hall");
        assert!(found.why.contains("12001 lines"), "{}", found.why);
    }
}
