// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stores of every schema that there was become one of this, with all that was in them, on both databases.
//!
//! Context: tests. Each is made by the steps that made it then, and has the rows of runs that this version makes, as far as it had the
//! columns, and a row of each table that people fill.

use sha2::{Digest as _, Sha256};
use tailbound_core::record::{End, Fact, Header, SecondRecord, ThreadRecord};
use tailbound_core::{EndReason, Run, runfile};

use super::*;
use crate::sqlite::IfMissing;
use crate::{Incoming, RunSubmission, Since, Store, StoreLocation, Way, Whose};

#[expect(dead_code, reason = "the other tests need more of it")]
#[expect(clippy::disallowed_methods, reason = "the server's programs are started by the test")]
#[path = "../../tests/it/server.rs"]
mod server;

const NOW: &str = "2026-11-25T00:00:00Z";
/// The first half of the SHA-256 of each step when it was committed: stores have it, and it never changes again.
const COMMITTED: [&str; 11] = [
    "01b362610bdbd15e",
    "051afe4ab446b871",
    "070a36c18de35b2b",
    "9b94c32cb187ef06",
    "1649018852738778",
    "cb9516ca2d09b42a",
    "53d8e29634f852f7",
    "f7d432f2d4973f67",
    "a63bb3ad8db8e77c",
    "57765958e50670c8",
    "cac3ea202b8197c7",
];
/// Filled by runs, in an order in which each row finds those that it points to.
const OF_RUNS: [&str; 10] = [
    "system",
    "kernel",
    "facts",
    "workload",
    "run",
    "run_file",
    "histogram",
    "finding",
    "culprit",
    "maximum",
];
const HEADER: &str = r#"{"schema":"tailbound-run/1","tool":"tailbound 0.1.0","id":"test","started":"","command":["tailbound","run"],
 "plan":{"probe":"cyclic","interval_ns":1000000,"activations":100,"warm_up_ns":0,"cpus":"0","policy":"fifo:95","clock":"monotonic",
 "means":"nanosleep","loads":["hackbench"],"requirement":{"deadline_ns":100000,"early_ns":null,"class":"hard","rate":null,"confidence":0.95},
 "raw":false,"paranoid":false},"machine":{}}"#;

const MAX_OF_2099_NS: i64 = 6_000;

fn ok<T, E: std::fmt::Display>(it: Result<T, E>) -> T {
    it.unwrap_or_else(|e| panic!("{e}"))
}

/// A run file of 100 activations in one second.
fn file(started: &str, max_ns: i64) -> Vec<u8> {
    let mut header: Header = ok(serde_json::from_str(HEADER));
    started.clone_into(&mut header.started);
    header.id = format!("{started}-{max_ns}");
    header.machine.insert("kernel.release".to_owned(), Fact::of("6.12.1"));
    let mut run = Run::new(header);
    let mut thread = ThreadRecord {
        cpu: Some(0),
        context: "user".into(),
        ended: "complete".into(),
        ..ThreadRecord::default()
    };
    thread.wakeup.add_many(2_000, 99);
    thread.wakeup.add(max_ns);
    run.threads.push(thread);
    run.seconds.push(SecondRecord {
        thread: 0,
        second: 0,
        n: 100,
        max_ns,
        argmax: 0,
        min_ns: 2_000,
        sum_ns: 198_000 + max_ns,
        missed: 0,
    });
    run.end = Some(End { reason: EndReason::Complete, measured_ns: 100_000_000, lines: 0 });
    ok(runfile::write_run(&run, Vec::new()))
}

/// Two runs that were right, and one whose clock was in 2099.
fn files() -> [Vec<u8>; 3] {
    [
        file("2026-11-01T00:00:00Z", 5_000),
        file("2026-11-02T00:00:00Z", 170_000),
        file("2099-01-01T00:00:00Z", MAX_OF_2099_NS),
    ]
}

fn rows(db: &mut dyn Database, table: &str, columns: &[&str]) -> Vec<Vec<Value>> {
    ok(all(db, &format!("SELECT {0} FROM {table} ORDER BY {0}", columns.join(", ")), &[]))
}

fn put(db: &mut dyn Database, table: &str, columns: &[&str], row: &[Value]) {
    let places: Vec<String> = (1..=row.len()).map(|n| format!("${n}")).collect();
    let (names, places) = (columns.join(", "), places.join(", "));
    ok(db.execute(&format!("INSERT INTO {table} ({names}) VALUES ({places})"), row));
}

/// Something of each kind; what points to another row finds it.
fn of_people(columns: &[(&str, Kind)]) -> Vec<Value> {
    let one = |(name, kind): &(&str, Kind)| match (kind, *name) {
        (_, "id" | "work" | "notice") => "x".into(),
        // No notice is of a run that began after it was made.
        (Kind::Text, "newest") => "2026".into(),
        (Kind::Text, name) => name.into(),
        (Kind::Int, _) => Value::Int(7),
        (Kind::Real, _) => Value::Real(0.5),
        (Kind::Bytes, _) => Value::Bytes(vec![1, 2]),
    };
    columns.iter().map(one).collect()
}

/// A row of a run, as a schema kept it that ordered runs by what their clocks said.
fn by_its_own_clock(columns: &[&str], mut row: Vec<Value>, said: &Value) -> Vec<Value> {
    if *said != Value::Null
        && let Some(at) = columns.iter().position(|name| *name == "started")
    {
        row[at] = said.clone();
    }
    row
}

/// What a step of the way changes in a store.
fn fill(db: &mut dyn Database, schema: i64, full: &mut dyn Database) {
    let tables = typed_at(schema);
    for (table, columns) in &tables {
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        if OF_RUNS.contains(table) {
            let said = match *table {
                "run" => rows(full, "run", &[&names[..], &["clock_said"]].concat()),
                _ => Vec::new(),
            };
            for (at, row) in rows(full, table, &names).into_iter().enumerate() {
                let said = said.get(at).and_then(|row| row.last()).filter(|_| schema < 8);
                put(
                    db,
                    table,
                    &names,
                    &by_its_own_clock(&names, row, said.unwrap_or(&Value::Null)),
                );
            }
        } else if !["series", "system_version"].contains(table) {
            put(db, table, &names, &of_people(columns));
        }
    }
}

/// A store that this version made.
fn full(folder: &std::path::Path) -> Store {
    let mut store = ok(Store::open_or_make(&StoreLocation::File(folder.join("full.sqlite")), NOW));
    let incoming: Vec<Incoming> =
        files().iter().map(|file| ok(Incoming::read(file.as_slice()))).collect();
    let one =
        |incoming| RunSubmission { incoming, system: Some("press"), who: None, way: Way::Archive };
    ok(store.add_given(&incoming.iter().map(one).collect::<Vec<_>>(), NOW));
    store
}

fn migrated(place: &StoreLocation, schema: i64, full: &mut Store) {
    let mut store = ok(Store::made_at(place, schema));
    fill(store.db(), schema, full.db());
    drop(store);
    let mut store = ok(Store::open(place, NOW));
    assert_eq!(ok(found(store.db())), Some(SCHEMA), "{place}: schema {schema}");
    for (table, columns) in typed_at(schema) {
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let is = rows(store.db(), table, &names);
        let mut was = rows(full.db(), table, &names);
        if table == "maximum" && schema < 8 {
            // By a clock that was wrong: made again by `rebuild`.
            was.retain(|row| row.last() != Some(&Value::Int(MAX_OF_2099_NS)));
        }
        if OF_RUNS.contains(&table) {
            assert_eq!(is, was, "{place}: schema {schema}: {table}");
        } else if !["series", "system_version"].contains(&table) {
            assert_eq!(is, [of_people(&columns)], "{place}: schema {schema}: {table}");
        }
    }
    // It is a store as any other: its files, what pages ask, what is still to be looked at, and all of it made again.
    for file in files() {
        let id = ok(Incoming::read(file.as_slice())).packed.id;
        assert!(ok(store.file(&id)) == file, "{place}: schema {schema}");
    }
    let systems = ok(store.systems(&Since::Ever));
    let newest = systems[0].last.as_ref().map(|last| last.started.as_str());
    assert_eq!(newest, Some(NOW), "{place}: schema {schema}: ordered by when it arrived");
    let due: i64 = ok(store.due_series(Whose::All, 9)).iter().map(|series| series.due).sum();
    assert_eq!(due, if schema < 10 { 3 } else { 0 }, "{place}: schema {schema}");
    assert_eq!(ok(store.rebuild(&mut |_, _| {})), 3);
    let run: Vec<&str> = typed()
        .into_iter()
        .filter(|(table, _)| *table == "run")
        .flat_map(|(_, columns)| columns.into_iter().map(|(name, _)| name))
        // How they came was not known before it.
        .filter(|name| schema >= 8 || *name != "arrival")
        .collect();
    assert_eq!(rows(store.db(), "run", &run), rows(full.db(), "run", &run), "{place}: {schema}");
}

impl Store {
    /// A store as the version of a schema made it.
    fn made_at(place: &StoreLocation, schema: i64) -> Result<Self, StoreError> {
        let mut it = Self::connected(place, IfMissing::Make)?;
        migrate_to(it.db(), schema, NOW)?;
        Ok(it)
    }
}

#[test]
fn a_store_of_each_earlier_schema_becomes_one_of_this_with_all_its_rows() {
    let folder = ok(tempfile::tempdir());
    let mut full = full(folder.path());
    let server = server::Server::start();
    for schema in 1..SCHEMA {
        migrated(
            &StoreLocation::File(folder.path().join(format!("{schema}.sqlite"))),
            schema,
            &mut full,
        );
        if let Some(server) = &server {
            migrated(&ok(server.database(&format!("schema{schema}")).parse()), schema, &mut full);
        }
    }
}

#[test]
fn no_step_that_stores_have_taken_is_changed() {
    let half = |sql: &str| -> String {
        Sha256::digest(sql).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    };
    let now: Vec<String> = MIGRATIONS.iter().map(|(_, sql)| half(sql)).collect();
    assert_eq!(now, COMMITTED, "a step was changed: add one behind the last instead");
}

/// Branches of development had other steps 3, 6 and 8: their stores are refused, and nothing of them is changed.
#[test]
fn a_store_whose_schema_went_another_way_is_refused_in_words() {
    let folder = ok(tempfile::tempdir());
    for (number, other) in [(3, 4), (6, 7), (8, 10)] {
        let place = StoreLocation::File(folder.path().join(format!("{number}.sqlite")));
        let mut store = ok(Store::made_at(&place, number - 1));
        let (what, sql) = MIGRATIONS[other - 1];
        ok(store.db().script(&Dialect::Sqlite.of_types(sql)));
        let row = [Value::Int(number), what.into(), NOW.into()];
        put(store.db(), "tailbound_schema", &["number", "what", "applied"], &row);
        drop(store);
        let e = Store::open(&place, NOW).map(|_| ()).unwrap_err();
        assert!(matches!(e, StoreError::OtherSchema { .. }), "{e}");
        let words = e.to_string();
        assert!(words.contains(&format!("its schema {number} is \"{what}\"")), "{words}");
        assert_eq!(ok(found(ok(Store::connected(&place, IfMissing::Fail)).db())), Some(number));
    }
}
