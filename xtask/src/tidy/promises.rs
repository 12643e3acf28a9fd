// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every promise of `docs/promises.md` and `docs/compatibility.md` names a test that is there.
//!
//! Layout: rows of Markdown tables; a test is written `path/to/file.rs::name`
//! between backquotes, and `fn name` stands in that file.
//! Not here: whether the test fails without what was promised; its author tried.

use super::files::File;
use super::finding::Finding;

/// The pages.
const PAGES: [&str; 2] = ["docs/promises.md", "docs/compatibility.md"];

/// Rows without a test, and tests that are not there.
pub(crate) fn check(files: &[File]) -> Vec<Finding> {
    PAGES.iter().flat_map(|page| of_page(page, files)).collect()
}

fn of_page(path: &str, files: &[File]) -> Vec<Finding> {
    let text = |path: &str| files.iter().find(|f| f.path == path).and_then(File::text);
    let page = text(path).unwrap_or_default();
    let mut found = Vec::new();
    for (at, row) in page.lines().enumerate().filter(|(_, l)| is_row(l)) {
        let mut named = 0;
        for (test, name) in tests(row) {
            named += 1;
            if !text(test).is_some_and(|t| t.contains(&format!("fn {name}("))) {
                found.push(Finding::new(
                    (path, at + 1),
                    "promise",
                    format!("there is no test `{name}` in {test}"),
                    "Name the test that took its place, or take the promise back",
                ));
            }
        }
        if named == 0 {
            found.push(Finding::new(
                (path, at + 1),
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
        for path in PAGES {
            let files = [File::fake(path, page), File::fake("a/t.rs", "fn holds() {}")];
            let found = check(&files);
            let lines: Vec<usize> = found.iter().map(|f| f.line).collect();
            assert_eq!(lines, [4, 5]);
            assert!(found.iter().all(|f| f.path == path));
        }
    }
}
