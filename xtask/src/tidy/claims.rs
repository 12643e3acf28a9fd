// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every claim of a page for users of another tool (`docs/from-*.md`) has a test, or names the version of that tool.
//!
//! A claim is a section, or an item that begins in bold type. `claims.txt` has a line for each: the words that it
//! begins with, `|`, and tests as `path.rs::name`, or `other: TOOL VERSION, DATE` where the other tool is described.
//! Lines below `# PAGE` are of that page. What a page says to type is read by `tailbound/tests/options/from_pages.rs`.
//! Not here: whether the test would fail; its author tried.

use super::files::File;
use super::finding::Finding;

/// The pages.
const PAGES: &str = "docs/from-";
/// The list.
const LIST: &str = "xtask/src/tidy/claims.txt";
/// How a line begins that describes the other tool.
const OTHER: &str = "other: ";

/// A line of the list.
struct Entry<'a> {
    line: usize,
    page: &'a str,
    claim: &'a str,
    evidence: &'a str,
}

/// Claims without a test, tests that are not there, and lines of claims that are not made any more.
pub(crate) fn check(files: &[File]) -> Vec<Finding> {
    let text = |path: &str| files.iter().find(|f| f.path == path).and_then(File::text);
    let entries = entries(text(LIST).unwrap_or_default());
    let mut found = Vec::new();
    for page in files.iter().filter(|f| f.path.starts_with(PAGES)) {
        for (line, claim) in claims(page.text().unwrap_or_default()) {
            if !entries.iter().any(|e| e.page == page.path && e.claim == claim) {
                found.push(Finding::new(
                    (&page.path, line),
                    "claim",
                    format!("nothing holds \"{claim}\""),
                    format!("Name its test in {LIST}, or the version of the tool that it is about"),
                ));
            }
        }
    }
    for entry in &entries {
        let made = text(entry.page).is_some_and(|t| claims(t).any(|(_, c)| c == entry.claim));
        let why = match evidence_missing(files, entry.evidence) {
            _ if !made => Some(format!("{} does not say \"{}\"", entry.page, entry.claim)),
            Some(test) => Some(format!("there is no test {test}")),
            None => None,
        };
        if let Some(why) = why {
            let remedy = "Name the test that took its place, or take the claim back";
            found.push(Finding::new((LIST, entry.line), "claim", why, remedy));
        }
    }
    found
}

fn entries(list: &str) -> Vec<Entry<'_>> {
    let mut page = "";
    let mut out = Vec::new();
    for (line, text) in (1..).zip(list.lines()) {
        if let Some(name) = text.strip_prefix("# ") {
            page = name;
        } else if let Some((claim, evidence)) = text.split_once(" | ") {
            out.push(Entry { line, page, claim, evidence });
        }
    }
    out
}

/// The claims of a page, each with its line.
fn claims(page: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(page.lines()).filter_map(|(line, text)| {
        let bold = || text.strip_prefix("- **")?.split_once("**").map(|(claim, _)| claim);
        text.strip_prefix("## ").or_else(bold).map(|claim| (line, claim))
    })
}

/// A test of a line that is not there; a line without any test or version.
fn evidence_missing<'a>(files: &[File], evidence: &'a str) -> Option<&'a str> {
    if let Some(tool) = evidence.strip_prefix(OTHER) {
        let dated = tool.rsplit_once(", ").is_some_and(|(_, date)| {
            date.len() == 7 && date.starts_with("20") && tool.contains(|c: char| c.is_ascii_digit())
        });
        return (!dated).then_some(evidence);
    }
    evidence.split(", ").find(|test| {
        let Some((path, name)) = test.split_once("::") else { return true };
        let text = files.iter().find(|f| f.path == path).and_then(File::text);
        !text.is_some_and(|t| t.contains(&format!("fn {name}(")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_without_evidence_is_found_and_so_is_evidence_of_nothing() {
        let page =
            "# From x\n\n## Options\n\n- **Undo.** Always.\n- **In favour of x:** a picture.\n";
        let list = "# docs/from-x.md\nOptions | a/t.rs::holds\nUndo. | a/t.rs::gone\nDrift. | a/t.rs::holds\nIn favour of x: | other: x 1.2, 2026-11\n";
        let of = |list: &str| {
            let files = [
                File::fake("docs/from-x.md", page),
                File::fake(LIST, list),
                File::fake("a/t.rs", "fn holds() {}"),
            ];
            let found = check(&files);
            found.iter().map(|f| (f.path.clone(), f.line)).collect::<Vec<_>>()
        };
        assert_eq!(of(list), [(LIST.to_owned(), 3), (LIST.to_owned(), 4)]);
        let undated = "# docs/from-x.md\nOptions | a/t.rs::holds\nIn favour of x: | other: x\n";
        assert_eq!(of(undated), [("docs/from-x.md".to_owned(), 5), (LIST.to_owned(), 3)]);
    }
}
