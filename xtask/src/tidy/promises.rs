// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every promise of `docs/promises.md` names a test that is there.
//!
//! Layout: rows of Markdown tables; a test is written `path/to/file.rs::name`
//! between backquotes, and `fn name` stands in that file.
//! Not here: whether the test fails without what was promised; its author tried.

use super::files::File;
use super::finding::Finding;

/// The page.
pub(crate) const PAGE: &str = "docs/promises.md";

/// Rows without a test, and tests that are not there.
pub(crate) fn check(files: &[File]) -> Vec<Finding> {
    let page = files.iter().find(|f| f.path == PAGE).and_then(File::text).unwrap_or_default();
    let mut found = Vec::new();
    for (at, row) in page.lines().enumerate().filter(|(_, l)| is_row(l)) {
        let mut named = 0;
        for (path, name) in tests(row) {
            named += 1;
            let text = files.iter().find(|f| f.path == path).and_then(File::text);
            if !text.is_some_and(|t| t.contains(&format!("fn {name}("))) {
                found.push(Finding::new(
                    (PAGE, at + 1),
                    "promise",
                    format!("there is no test `{name}` in {path}"),
                    "Name the test that took its place, or take the promise back",
                ));
            }
        }
        if named == 0 {
            found.push(Finding::new(
                (PAGE, at + 1),
                "promise",
                "a promise without a test is a wish",
                "Name a test as `path/to/file.rs::name`",
            ));
        }
    }
    found
}

/// A row of a table that is neither its head nor the line below it.
fn is_row(line: &str) -> bool {
    line.starts_with("| ") && !line.starts_with("| promise")
}

/// Paths and names between backquotes.
fn tests(row: &str) -> impl Iterator<Item = (&str, &str)> {
    row.split('`').skip(1).step_by(2).filter_map(|word| word.split_once(".rs::")).map(
        |(path, name)| {
            let end = path.len() + ".rs".len();
            let whole = row.find(path).and_then(|at| row.get(at..at + end));
            (whole.unwrap_or(path), name)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_without_its_test_is_found() {
        let page = "\
| promise | test |
|---|---|
| kept | `a/t.rs::holds` |
| moved | `a/t.rs::gone` |
| wished for | none |
";
        let files = [File::fake(PAGE, page), File::fake("a/t.rs", "fn holds() {}")];
        let lines: Vec<usize> = check(&files).iter().map(|f| f.line).collect();
        assert_eq!(lines, [4, 5]);
    }
}
