// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every finding that is made is in the table of findings, and every one of the table is made.
//!
//! An id that is put together (`late-start-{cpu}`) is known by what it begins with.
//! Not here: what the table says (`tailbound-core/src/finding_kinds`).

use std::collections::BTreeSet;

use super::files::File;
use super::finding::Finding;

/// The table.
const TABLE: &str = "crates/base/tailbound-core/src/finding_kinds/";
/// What stands before the id of a finding that is made.
const MAKERS: &[&str] = &["Finding::new(", "Finding::listed(", ".doubt(", ".finding("];

/// See the module.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let mut table: Vec<(&str, usize, String)> = Vec::new();
    for file in files.iter().filter(|f| f.path.starts_with(TABLE)) {
        let text = file.text().unwrap_or_default();
        for (line, id) in literals(text, "FindingKind::new(") {
            table.push((&file.path, line, id));
        }
    }
    let known: BTreeSet<&str> = table.iter().map(|(.., id)| id.as_str()).collect();
    let mut found = Vec::new();
    let mut text_of_makers = String::new();
    for file in files.iter().filter(|f| makes(&f.path)) {
        let text = file.text().unwrap_or_default();
        let program = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        text_of_makers.push_str(program);
        for (line, id) in MAKERS.iter().flat_map(|maker| literals(program, maker)) {
            let whole = id.split("-{").next().unwrap_or(&id);
            if !known.contains(whole) && !is_begun(whole, &known) {
                found.push(Finding::new(
                    (&file.path, line),
                    "finding-kind",
                    format!("the finding `{id}` is not in {TABLE}"),
                    "Add it there: reports and the site say of it what the table says",
                ));
            }
        }
    }
    for (path, line, id) in &table {
        let forms = [format!("\"{id}\""), format!("\"{id}-{{")];
        // `clock-{id}-{name}`
        let made = forms.iter().any(|form| text_of_makers.contains(form)) || id == "clock-back";
        if !made {
            found.push(Finding::new(
                (path, *line),
                "finding-kind",
                format!("no finding `{id}` is made"),
                "Take it out, or name the id it has now",
            ));
        }
    }
    found
}

fn makes(path: &str) -> bool {
    let is_test =
        path.ends_with("/tests.rs") || path.ends_with("_tests.rs") || path.contains("/tests/");
    path.starts_with("crates/")
        && path.ends_with(".rs")
        && !is_test
        && !path.contains("/simulated/")
        && !path.starts_with(TABLE)
}

/// `clock` of `clock-{id}-{name}`.
fn is_begun(whole: &str, known: &BTreeSet<&str>) -> bool {
    known.iter().any(|id| id.strip_prefix(whole).is_some_and(|rest| rest.starts_with('-')))
}

/// Each first argument of a call that is a literal, or a literal that is formatted, with its line.
fn literals<'a>(text: &'a str, call: &'a str) -> impl Iterator<Item = (usize, String)> + 'a {
    text.match_indices(call).filter_map(move |(at, _)| {
        let rest = text.get(at + call.len()..)?.trim_start();
        let rest = rest.strip_prefix("&format!(").map_or(rest, str::trim_start);
        let id = rest.strip_prefix('"')?.split('"').next()?;
        let line = text.get(..at)?.matches('\n').count() + 1;
        Some((line, id.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_that_is_not_in_the_table_is_found_and_one_that_is_made_nowhere() {
        let table = "FindingKind::new(\"suspend\", \"It was.\"), FindingKind::new(\n    \"late\", \"It.\").numbered(),\nFindingKind::new(\"gone\", \"\")";
        let source = "Finding::listed(\"suspend\", x)\nFinding::new(\n    &format!(\"late-{cpu}\"), x)\nFinding::new(\"strange\", x)\n#[cfg(test)]\nmod tests {\nFinding::new(\"x\")";
        let files = [
            File::fake(&format!("{TABLE}machine.rs"), table),
            File::fake("crates/base/tailbound-host/src/a.rs", source),
            File::fake("crates/base/tailbound-host/tests/a.rs", "Finding::new(\"y\", x)"),
        ];
        let found: Vec<String> =
            check(&files).iter().map(|f| format!("{}:{}", f.path, f.line)).collect();
        assert_eq!(
            found,
            ["crates/base/tailbound-host/src/a.rs:4", &format!("{TABLE}machine.rs:3")]
        );
    }
}
