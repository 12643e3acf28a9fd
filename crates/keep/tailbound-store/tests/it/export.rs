// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `Store::export` writes, read by programs that know nothing of it: pyarrow and kcidb-io, where they are installed.
//!
//! Context: tests.

use std::path::Path;
use std::process::Command;

use serde_json::Value as Json;
use tailbound_store::{Filter, Of, Store, TableFormat, tables};
use tailbound_testing::skip;

use crate::{NOW, added, file, on_both};

/// Three runs of two systems with two kernels.
fn filled(store: &mut Store) {
    let first = [
        file("2026-01-01T00:00:00Z", "6.12.1", 50_000),
        file("2026-01-02T00:00:00Z", "6.12.1", 170_000),
    ];
    added(store, &first, Some("press 7, \"left\""));
    added(store, &[file("2026-02-03T00:00:00Z", "6.12.1-rt", 7_000)], Some("=1+1"));
}

fn export(store: &mut Store, of: Of, format: TableFormat, filter: &Filter) -> (u64, Vec<u8>) {
    let mut to = Vec::new();
    let n = store.export(of, format, filter, &mut to).unwrap_or_else(|e| panic!("{e}"));
    (n, to)
}

fn csv(store: &mut Store, of: Of, filter: &Filter) -> Vec<Vec<String>> {
    let (n, bytes) = export(store, of, TableFormat::Csv, filter);
    let text = String::from_utf8(bytes).unwrap_or_else(|e| panic!("{e}"));
    let lines: Vec<Vec<String>> = text.split_terminator("\r\n").map(fields).collect();
    assert_eq!(u64::try_from(lines.len()).ok(), Some(n + 1), "{text}");
    assert!(lines.iter().all(|l| l.len() == lines[0].len()), "{text}");
    lines
}

/// The fields of a line, as RFC 4180 has them.
fn fields(line: &str) -> Vec<String> {
    let (mut all, mut quoted) = (vec![String::new()], false);
    let mut letters = line.chars().peekable();
    while let Some(c) = letters.next() {
        match c {
            '"' if quoted && letters.next_if_eq(&'"').is_some() => {
                all.last_mut().unwrap().push('"')
            }
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(String::new()),
            c => all.last_mut().unwrap().push(c),
        }
    }
    all
}

fn column<'a>(lines: &'a [Vec<String>], name: &str) -> Vec<&'a str> {
    let at = lines[0].iter().position(|n| n == name).unwrap_or_else(|| panic!("{name}"));
    lines[1..].iter().map(|l| l[at].as_str()).collect()
}

#[test]
fn a_row_has_all_columns_of_its_run_and_the_choice_is_that_of_a_list() {
    on_both(|place| {
        let mut store = Store::open_or_make(place, NOW).unwrap_or_else(|e| panic!("{e}"));
        filled(&mut store);
        let lines = csv(&mut store, Of::Runs, &Filter::default());
        let run = tables()
            .into_iter()
            .find(|(name, _)| *name == "run")
            .map(|(_, columns)| columns)
            .unwrap();
        assert_eq!(&lines[0][..run.len()], &run[..]);
        assert_eq!(column(&lines, "max_ns"), ["7000", "170000", "50000"]);
        assert_eq!(
            column(&lines, "system_name"),
            ["'=1+1", "press 7, \"left\"", "press 7, \"left\""]
        );
        assert_eq!(column(&lines, "kernel_release"), ["6.12.1-rt", "6.12.1", "6.12.1"]);
        // Too few activations for it: not known, and so nothing.
        assert_eq!(column(&lines, "p99999_ns"), ["", "", ""]);
        let one = Filter { system: Some("=1+1".to_owned()), ..Filter::default() };
        assert_eq!(column(&csv(&mut store, Of::Runs, &one), "max_ns"), ["7000"]);
        let newest =
            Filter { most: Some(2), until: Some("2026-02".to_owned()), ..Filter::default() };
        assert_eq!(column(&csv(&mut store, Of::Runs, &newest), "max_ns"), ["170000", "50000"]);
    });
}

#[test]
fn buckets_hold_every_activation() {
    on_both(|place| {
        let mut store = Store::open_or_make(place, NOW).unwrap_or_else(|e| panic!("{e}"));
        filled(&mut store);
        let newest = Filter { most: Some(2), ..Filter::default() };
        let lines = csv(&mut store, Of::Buckets, &newest);
        let counts = column(&lines, "count").iter().map(|n| n.parse::<u64>().unwrap()).sum::<u64>();
        assert_eq!(counts, 200);
        let (low, high) = (column(&lines, "low_ns"), column(&lines, "high_ns"));
        let number = |text: &str| text.parse::<i64>().unwrap();
        let holds =
            |ns: i64| low.iter().zip(&high).any(|(l, h)| (number(l)..number(h)).contains(&ns));
        assert!(holds(170_000) && holds(7_000) && !holds(50_000));
    });
}

/// Runs a program of Python that needs `module`, in `folder`; `false`: it is not installed.
fn python(module: &str, folder: &Path, program: &str) -> bool {
    let call = |text: &str| Command::new("python3").args(["-c", text]).current_dir(folder).output();
    match call(&format!("import {module}")) {
        Ok(out) if out.status.success() => {}
        _ => {
            skip(module, format!("python3 has no module {module}"));
            return false;
        }
    }
    let out = call(program).unwrap_or_else(|e| panic!("{e}"));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    true
}

/// Both files hold the same values, and those of Parquet are of the type that their name says.
const SAME: &str = r#"
import csv, pyarrow as pa, pyarrow.parquet as pq
for name, least in (("runs", 3), ("buckets", 9)):
    table = pq.read_table(name + ".parquet")
    rows = list(csv.DictReader(open(name + ".csv", newline="")))
    assert table.num_rows == len(rows) >= least, (name, table.num_rows, len(rows))
    assert table.column_names == list(rows[0])
    for field in table.schema:
        ns, time = field.name.endswith("_ns") and field.name != "mean_ns", field.name in ("started", "added")
        is_a = pa.types.is_int64 if ns else pa.types.is_timestamp if time else lambda t: True
        assert is_a(field.type), field
    for one, other in zip(table.to_pylist(), rows):
        for column, value in one.items():
            text = other[column]
            if value is None: same = text == ""
            elif isinstance(value, float): same = float(text) == value
            elif hasattr(value, "strftime"): same = value.strftime("%Y-%m-%dT%H:%M:%SZ") == text
            else: same = str(value) == text.removeprefix("'")
            assert same, (column, value, text)
"#;

#[test]
fn pyarrow_reads_in_parquet_what_is_in_csv() {
    on_both(|place| {
        let mut store = Store::open_or_make(place, NOW).unwrap_or_else(|e| panic!("{e}"));
        filled(&mut store);
        let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        for (of, name) in [(Of::Runs, "runs"), (Of::Buckets, "buckets")] {
            for (format, suffix) in [(TableFormat::Csv, "csv"), (TableFormat::Parquet, "parquet")] {
                let (_, bytes) = export(&mut store, of, format, &Filter::default());
                std::fs::write(folder.path().join(format!("{name}.{suffix}")), bytes).unwrap();
            }
        }
        python("pyarrow", folder.path(), SAME);
    });
}

fn has_null(json: &Json) -> bool {
    match json {
        Json::Null => true,
        Json::Array(all) => all.iter().any(has_null),
        Json::Object(all) => all.values().any(has_null),
        _ => false,
    }
}

fn texts<'a>(json: &'a Json, list: &str, name: &str) -> Vec<&'a str> {
    let all = json[list].as_array().unwrap_or_else(|| panic!("{list}: {json}"));
    all.iter().map(|one| one[name].as_str().unwrap_or_else(|| panic!("{name}: {one}"))).collect()
}

#[test]
fn a_report_for_kcidb_is_closed_in_itself_and_valid() {
    on_both(|place| {
        let mut store = Store::open_or_make(place, NOW).unwrap_or_else(|e| panic!("{e}"));
        filled(&mut store);
        let mut bytes = Vec::new();
        let origin = "my_lab".parse().unwrap_or_else(|e| panic!("{e}"));
        let n = store
            .export_kcidb(&origin, &Filter::default(), &mut bytes)
            .unwrap_or_else(|e| panic!("{e}"));
        let report: Json = serde_json::from_slice(&bytes).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(n, 3);
        assert!(!has_null(&report), "{report}");
        // A hundred activations are too few to say that a deadline is kept: that is open, and no pass.
        assert_eq!(texts(&report, "tests", "status"), ["DONE", "FAIL", "DONE"]);
        assert_eq!(report["tests"][1]["number"]["value"], 0.000_17);
        let (checkouts, builds) =
            (texts(&report, "checkouts", "id"), texts(&report, "builds", "id"));
        assert_eq!((checkouts.len(), builds.len()), (2, 2));
        assert!(texts(&report, "builds", "checkout_id").iter().all(|id| checkouts.contains(id)));
        assert!(texts(&report, "tests", "build_id").iter().all(|id| builds.contains(id)));
        let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        std::fs::write(folder.path().join("report.json"), bytes).unwrap();
        let valid =
            "import json, kcidb_io; kcidb_io.schema.V5_0.validate(json.load(open('report.json')))";
        python("kcidb_io", folder.path(), valid);
    });
}
