// SPDX-License-Identifier: MIT OR Apache-2.0
//! `docs/store.md` against what is there, and the queries of `examples/store/questions.sql`, run on both databases.
//!
//! Context: tests.

use tailbound_store::{Store, tables};

use crate::{NOW, added, asked, file, on_both};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/store.md");

const QUESTIONS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/store/questions.sql");

fn text(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Its sections `` ### `table` ``, each with the columns of its list.
fn described(page: &str) -> Vec<(&str, Vec<&str>)> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut within = false;
    for line in page.lines() {
        if line.starts_with('#') {
            let name = line.strip_prefix("### `").and_then(|rest| rest.split('`').next());
            within = name.is_some();
            all.extend(name.map(|name| (name, Vec::new())));
        } else if let Some((_, columns)) = all.last_mut().filter(|_| within)
            && let Some(cell) = line.strip_prefix("- `")
        {
            columns.extend(cell.split('`').next());
        }
    }
    all
}

/// The questions, each with the comment that asks it.
fn queries(file: &str) -> Vec<&str> {
    file.split("\n\n").skip(1).collect()
}

/// Of these the page has the names alone.
const OF_THE_SERVER: [&str; 7] =
    ["token", "work", "batch", "notice", "delivery", "series", "system_version"];

#[test]
fn the_page_has_all_tables_and_columns() {
    let page = text(PAGE);
    let (own, open): (Vec<_>, Vec<_>) =
        tables().into_iter().partition(|(name, _)| OF_THE_SERVER.contains(name));
    assert_eq!(described(&page), open);
    let kept = page.split("### What the server keeps for itself").nth(1).unwrap_or_default();
    for (name, _) in own {
        assert!(kept.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn every_query_of_the_examples_runs_on_both() {
    let file_text = text(QUESTIONS);
    let queries = queries(&file_text);
    assert_eq!(queries.len(), 10);
    on_both(|place| {
        let mut store = Store::open_or_make(place, NOW).unwrap_or_else(|e| panic!("{e}"));
        let files = [
            file("2026-01-01T00:00:00Z", "6.12.1", 50_000),
            file("2026-02-02T00:00:00Z", "6.12.1", 170_000),
            file("2026-02-03T00:00:00Z", "6.12.1-rt", 7_000),
        ];
        added(&mut store, &files, Some("press 7"));
        let first = store.identify("2026-01-01T00:00:00Z-50000").unwrap_or_else(|e| panic!("{e}"));
        store.note(&first, NOW, "a person", "a new power supply").unwrap_or_else(|e| panic!("{e}"));
        for sql in &queries {
            let rows = asked(&mut store, sql).unwrap_or_else(|e| panic!("{place}: {sql}: {e}"));
            // The runs of the test have no culprits.
            assert!(!rows.is_empty() || sql.contains("culprit"), "{place}: no answer: {sql}");
        }
    });
}
