// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same tests on SQLite and on a real server of PostgreSQL, which they start themselves.
//!
//! Context: tests. Run files are written by the run file's own writer.
#![expect(clippy::disallowed_methods, reason = "the server's programs are started by the test")]

mod asked;
mod backup;
mod export;
mod page;
mod series;
mod server;
mod work;

use tailbound_core::lab::LabRecord;
use tailbound_core::record::{End, Fact, Header, ThreadRecord};
use tailbound_core::{EndReason, Run, runfile};
use tailbound_store::{Added, Filter, Incoming, Store, StoreError, StoreLocation, Value};

use server::Server;

const NOW: &str = "2026-11-25T00:00:00Z";
const HEADER: &str = r#"{"schema":"tailbound-run/1","tool":"tailbound 0.1.0","id":"test","started":"","command":["tailbound","run"],
 "plan":{"probe":"cyclic","interval_ns":1000000,"activations":100,"warm_up_ns":0,"cpus":"0","policy":"fifo:95","clock":"monotonic",
 "means":"nanosleep","loads":["hackbench"],"requirement":{"deadline_ns":100000,"early_ns":null,"class":"hard","rate":null,"confidence":0.95},
 "raw":false,"paranoid":false},"machine":{}}"#;

/// A run file of 100 activations, the latest `max_ns` late.
fn file(started: &str, release: &str, max_ns: i64) -> Vec<u8> {
    let mut header: Header = serde_json::from_str(HEADER).unwrap_or_else(|e| panic!("{e}"));
    started.clone_into(&mut header.started);
    header.id = format!("{started}-{max_ns}");
    let facts = [
        ("kernel.release", release),
        ("cpu.model", "Example CPU"),
        ("machine.model", "Board \u{fc}"),
    ];
    header.machine =
        facts.iter().map(|(name, value)| ((*name).to_owned(), Fact::of(*value))).collect();
    let mut run = Run::new(header);
    let mut thread = ThreadRecord {
        cpu: Some(0),
        context: "user".into(),
        ended: "complete".into(),
        ..ThreadRecord::default()
    };
    thread.wakeup.add_many(2_000, 60);
    thread.wakeup.add_many(3_000, 39);
    thread.wakeup.add(max_ns);
    run.threads.push(thread);
    run.end = Some(End { reason: EndReason::Complete, measured_ns: 100_000_000, lines: 0 });
    runfile::write_run(&run, Vec::new()).unwrap_or_else(|e| panic!("{e}"))
}

fn incoming(bytes: &[u8]) -> Incoming {
    Incoming::read(bytes).unwrap_or_else(|e| panic!("{e}"))
}

fn added(store: &mut Store, files: &[Vec<u8>], system: Option<&str>) -> Vec<Added> {
    let runs: Vec<Incoming> = files.iter().map(|f| incoming(f)).collect();
    store.add(&runs, system, NOW).unwrap_or_else(|e| panic!("{e}"))
}

fn asked(store: &mut Store, sql: &str) -> Result<Vec<Vec<Value>>, StoreError> {
    let mut rows = Vec::new();
    store.query(sql, 10, &mut |_, row| {
        rows.push(row.to_vec());
        Ok(())
    })?;
    Ok(rows)
}

/// Does `test` with a store of each kind.
fn on_both(test: impl Fn(&StoreLocation)) {
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    test(&StoreLocation::File(folder.path().join("store.sqlite")));
    if let Some(server) = Server::start() {
        test(&server.url().parse().unwrap_or_else(|e| panic!("{e}")));
    }
}

#[test]
fn what_goes_in_comes_out_and_twice_is_once() {
    on_both(|place| {
        assert!(
            Store::open(place, NOW).is_err_and(|e| matches!(e, StoreError::Missing { .. })),
            "{place}"
        );
        let mut store = Store::open_or_make(place, NOW).unwrap_or_else(|e| panic!("{e}"));
        let files = [
            file("2026-01-01T00:00:00Z", "6.12.1", 50_000),
            file("2026-01-02T00:00:00Z", "6.12.1-rt", 7_000),
        ];
        assert_eq!(added(&mut store, &files, None), [Added::New, Added::New]);
        assert_eq!(added(&mut store, &files[..1], None), [Added::Already]);
        // Opened again, by somebody else.
        let mut store = Store::open(place, NOW).unwrap_or_else(|e| panic!("{e}"));
        let list = store.list(&Filter::default()).unwrap_or_else(|e| panic!("{e}"));
        let shown: Vec<_> = list
            .iter()
            .map(|l| (l.system.as_str(), l.kernel.as_deref(), l.max_ns, l.activations))
            .collect();
        assert_eq!(
            shown,
            [
                ("Board \u{fc}", Some("6.12.1-rt"), Some(7_000), 100),
                ("Board \u{fc}", Some("6.12.1"), Some(50_000), 100)
            ]
        );
        let since = Filter { since: Some("2026-01-02".to_owned()), ..Filter::default() };
        assert_eq!(store.list(&since).map(|l| l.len()).ok(), Some(1));
        let other = Filter { system: Some("no such".to_owned()), ..Filter::default() };
        assert_eq!(store.list(&other).map(|l| l.len()).ok(), Some(0));
        for (listed, bytes) in list.iter().zip(files.iter().rev()) {
            let id = store.identify(&listed.id[..12]).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(id, listed.id);
            assert_eq!(store.file(&id).ok().as_ref(), Some(bytes));
        }
        assert!(store.identify("2026-01-01T00:00:00Z-50000").is_ok());
        assert!(matches!(store.identify("xyz"), Err(StoreError::NoSuchRun(_))));
        assert!(matches!(store.identify(""), Err(StoreError::Several { n: 2, .. })));
    });
}

#[test]
fn figures_are_those_of_the_run() {
    on_both(|place| {
        let mut store = Store::open_or_make(place, NOW).unwrap_or_else(|e| panic!("{e}"));
        added(&mut store, &[file("2026-01-01T00:00:00Z", "6.12.1", 150_000)], Some("press 7"));
        let rows = asked(
            &mut store,
            "SELECT system.name, run.outcome, run.activations, run.missed, run.deadline_ns, run.p50_ns, run.max_ns, run.p99999_ns, \
             workload.loads, workload.interval_ns FROM run JOIN system ON system.id = run.system JOIN workload ON workload.id = run.workload",
        );
        let rows = rows.unwrap_or_else(|e| panic!("{e}"));
        let Some(row) = rows.first() else { panic!("no row") };
        assert_eq!(
            row[..5],
            [
                "press 7".into(),
                "not-met".into(),
                Value::Int(100),
                Value::Int(0),
                Value::Int(100_000)
            ]
        );
        assert!(row[5].int().is_some_and(|ns| (1_998..=2_002).contains(&ns)), "{row:?}");
        assert_eq!(
            row[6..],
            [Value::Int(150_000), Value::Null, "hackbench".into(), Value::Int(1_000_000)]
        );
        // A sum is a number on both.
        let sum = asked(&mut store, "SELECT SUM(n), MAX(max_ns), COUNT(*) FROM histogram");
        assert_eq!(sum.ok(), Some(vec![vec![Value::Int(100), Value::Int(150_000), Value::Int(1)]]));
        let buckets = asked(&mut store, "SELECT n FROM histogram WHERE context = 'user'");
        assert_eq!(buckets.map(|r| r.len()).ok(), Some(1));
    });
}

#[test]
fn a_run_in_virtual_time_stands_where_it_was_added() {
    on_both(|place| {
        let mut store = Store::open_or_make(place, NOW).unwrap_or_else(|e| panic!("{e}"));
        let files =
            [("tcg", NOW), ("kvm", "2026-01-01T00:00:09Z")].map(|(accelerator, expected)| {
                let mut run = incoming(&file("2026-01-01T00:00:09Z", "6.12.1", 5_000)).run;
                let lab = LabRecord { accelerator: accelerator.to_owned(), ..LabRecord::default() };
                run.header.lab = Some(Box::new(lab));
                (runfile::write_run(&run, Vec::new()).unwrap_or_else(|e| panic!("{e}")), expected)
            });
        for (bytes, expected) in files {
            let id = incoming(&bytes).packed.id;
            assert_eq!(added(&mut store, &[bytes], None), [Added::New], "{place}");
            let listed = store.list(&Filter::default()).unwrap_or_else(|e| panic!("{e}"));
            let of = listed.iter().find(|r| r.id == id).map(|r| r.started.as_str());
            assert_eq!(of, Some(expected), "{place}");
        }
    });
}

#[test]
fn a_query_changes_nothing_and_ends() {
    on_both(|place| {
        let mut store = Store::open_or_make(place, NOW).unwrap_or_else(|e| panic!("{e}"));
        added(&mut store, &[file("2026-01-01T00:00:00Z", "6.12.1", 5_000)], None);
        for sql in [
            "DELETE FROM run_file",
            "DROP TABLE run",
            "INSERT INTO annotation VALUES ('a', 'b', 'c', 'd')",
            "UPDATE run SET max_ns = 0 RETURNING id",
            "COMMIT",
            "SELECT 1; DELETE FROM run_file",
            "ATTACH DATABASE '/tmp/x' AS x",
            "PRAGMA writable_schema=ON",
            "SELECT nonsense",
            "",
        ] {
            assert!(asked(&mut store, sql).is_err(), "{place}: {sql}");
        }
        let endless =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT MAX(i) FROM n";
        let ended = store.query(endless, 1, &mut |_, _| Ok(()));
        assert!(ended.is_err(), "{place}");
        // It works on, and can still be written.
        assert_eq!(
            asked(&mut store, "SELECT COUNT(*) FROM run").ok(),
            Some(vec![vec![Value::Int(1)]])
        );
        let more = [file("2026-01-03T00:00:00Z", "6.12.1", 6_000)];
        assert_eq!(added(&mut store, &more, None), [Added::New]);
    });
}

#[test]
fn everything_is_made_again_from_the_run_files() {
    on_both(|place| {
        let mut store = Store::open_or_make(place, NOW).unwrap_or_else(|e| panic!("{e}"));
        let files = [
            file("2026-01-01T00:00:00Z", "6.12.1", 5_000),
            file("2026-01-02T00:00:00Z", "6.12.2", 9_000),
        ];
        added(&mut store, &files, Some("a"));
        let tables = [
            "run",
            "system",
            "kernel",
            "facts",
            "workload",
            "histogram",
            "finding",
            "culprit",
            "series",
            "run_file",
        ];
        let all = |store: &mut Store| -> Vec<_> {
            let one = |t: &&str| {
                asked(store, &format!("SELECT * FROM {t} ORDER BY 1, 2"))
                    .unwrap_or_else(|e| panic!("{e}"))
            };
            tables.iter().map(one).collect()
        };
        let before = all(&mut store);
        let mut told = Vec::new();
        assert_eq!(store.rebuild(&mut |done, of| told.push((done, of))).ok(), Some(2), "{place}");
        assert_eq!(told, [(1, 2), (2, 2)]);
        assert_eq!(all(&mut store), before, "{place}");
    });
}

#[test]
fn what_may_go_goes_and_the_worst_stays() {
    on_both(|place| {
        let mut store = Store::open_or_make(place, NOW).unwrap_or_else(|e| panic!("{e}"));
        let day = |n: u32, max_ns| file(&format!("2026-01-{n:02}T00:00:00Z"), "6.12.1", max_ns);
        let files: Vec<_> =
            [4_000, 9_000, 5_000, 6_000].iter().zip(1..).map(|(ns, n)| day(n, *ns)).collect();
        added(&mut store, &files, None);
        let go = store.may_go("2026-02-01").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(go, [incoming(&files[2]).packed.id]);
        store.delete(&go).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(store.count().ok(), Some(3));
        assert!(matches!(store.file(&go[0]), Err(StoreError::NoSuchRun(_))));
        assert_eq!(added(&mut store, &files[2..3], None), [Added::New]);
    });
}

#[test]
fn what_is_no_run_or_no_store_is_refused() {
    assert!(Incoming::read(&b"{\"schema\":\"something\"}\n"[..]).is_err());
    assert!(Incoming::read(&b""[..]).is_err());
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let text = folder.path().join("text");
    std::fs::write(&text, "this is no database at all, but a text that is long enough")
        .unwrap_or_else(|e| panic!("{e}"));
    let place = StoreLocation::File(text.clone());
    assert!(matches!(Store::open_or_make(&place, NOW), Err(StoreError::Foreign { .. })));
    assert!(std::fs::read_to_string(&text).is_ok_and(|t| t.starts_with("this is no")));
    let nowhere: StoreLocation =
        "postgresql://tailbound@%2Fno%2Fsuch%2Ffolder/x".parse().unwrap_or_else(|e| panic!("{e}"));
    let error = Store::open(&nowhere, NOW).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("no connection") && !error.contains("tailbound@"), "{error}");
}

#[test]
fn a_database_of_something_else_is_not_touched() {
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let path = folder.path().join("firefox.sqlite");
    let other = rusqlite::Connection::open(&path).unwrap_or_else(|e| panic!("{e}"));
    other.execute_batch("CREATE TABLE bookmarks (x)").unwrap_or_else(|e| panic!("{e}"));
    drop(other);
    let before = std::fs::read(&path).ok();
    let place = StoreLocation::File(path.clone());
    for error in [Store::open_or_make(&place, NOW).err(), Store::open(&place, NOW).err()] {
        let words = error.as_ref().map(ToString::to_string).unwrap_or_default();
        assert!(matches!(error, Some(StoreError::Foreign { .. })), "{words}");
        assert!(words.contains("bookmarks"), "{words}");
    }
    assert_eq!(std::fs::read(&path).ok(), before, "not a byte of it");
    let beside = std::fs::read_dir(folder.path()).map(|all| all.count()).ok();
    assert_eq!(beside, Some(1), "and nothing beside it");
}

#[test]
fn a_new_store_is_its_owners_alone_and_keeps_some_room() {
    use std::os::unix::fs::MetadataExt as _;
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let path = folder.path().join("s.sqlite");
    let place = StoreLocation::File(path.clone());
    // Also where somebody made the file, empty, for everybody to read.
    std::fs::File::create(&path).unwrap_or_else(|e| panic!("{e}"));
    let mut store = Store::open_or_make(&place, NOW).unwrap_or_else(|e| panic!("{e}"));
    added(&mut store, &[file("2026-01-01T00:00:00Z", "6.12.1", 5_000)], None);
    for entry in std::fs::read_dir(folder.path()).into_iter().flatten().flatten() {
        let mode = entry.metadata().map(|m| m.mode() & 0o777).ok();
        assert_eq!(mode, Some(0o600), "{}", entry.path().display());
    }
    let reserve = folder.path().join("s.sqlite-reserve");
    let held = || std::fs::metadata(&reserve).map(|m| m.blocks() * 512).unwrap_or(0);
    assert!(held() >= 4 << 20, "{}", held());
    // In need it is emptied; a run is added when it was filled again.
    std::fs::File::create(&reserve).unwrap_or_else(|e| panic!("{e}"));
    added(&mut store, &[file("2026-01-02T00:00:00Z", "6.12.1", 5_000)], None);
    assert!(held() >= 4 << 20, "{}", held());
}

#[test]
fn what_strangers_call_things_is_one_short_line() {
    on_both(|place| {
        let mut store = Store::open_or_make(place, NOW).unwrap_or_else(|e| panic!("{e}"));
        let release = format!("6.12\n2026 root: forged {}", "x".repeat(1 << 20));
        let read = incoming(&file("2026-01-01T00:00:00Z", &release, 5_000));
        let given = tailbound_store::RunSubmission {
            incoming: &read,
            system: Some("press\n2026-11-25 operator: forged"),
            who: Some("agent x\ny"),
            way: tailbound_store::Way::Machine,
        };
        store.add_given(&[given], NOW).unwrap_or_else(|e| panic!("{e}"));
        let audit = store.audited(10).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(audit.len(), 1);
        assert!(!format!("{}{}", audit[0].who, audit[0].what).contains('\n'), "{audit:?}");
        let list = store.list(&Filter::default()).unwrap_or_else(|e| panic!("{e}"));
        let kernel = list[0].kernel.clone().unwrap_or_default();
        assert!(kernel.len() < 2_000 && !kernel.contains('\n'), "{}", kernel.len());
        assert!(!list[0].system.contains('\n') && list[0].system.starts_with("press"));
        let facts = store.facts_of(&read.packed.id).ok().flatten().unwrap_or_default();
        assert!(facts.contains("a store keeps no fact of") && facts.len() < 64 << 10, "{facts}");
    });
}

/// SQLite does not wait by itself there: each of two that begin a file has read it already.
#[test]
fn a_store_waits_for_another_that_is_begun() {
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let path = folder.path().join("s.sqlite");
    let other = rusqlite::Connection::open(&path).unwrap_or_else(|e| panic!("{e}"));
    let began = other.execute_batch("BEGIN IMMEDIATE; CREATE TABLE begun (x)");
    began.unwrap_or_else(|e| panic!("{e}"));
    std::thread::scope(|s| {
        let place = StoreLocation::File(path);
        let store = s.spawn(move || Store::open_or_make(&place, NOW).map(|_| ()));
        std::thread::park_timeout(std::time::Duration::from_millis(300));
        other.execute_batch("ROLLBACK").unwrap_or_else(|e| panic!("{e}"));
        let opened = store.join().ok();
        assert!(matches!(opened, Some(Ok(()))), "{opened:?}");
    });
}

#[test]
fn a_store_of_a_later_version_is_refused_and_two_may_begin_at_once() {
    on_both(|place| {
        std::thread::scope(|s| {
            let begin = || Store::open_or_make(place, NOW).map(|_| ()).map_err(|e| e.to_string());
            let all: Vec<_> = (0..4).map(|_| s.spawn(begin)).collect();
            for one in all {
                assert_eq!(one.join().ok(), Some(Ok(())), "{place}");
            }
        });
        let StoreLocation::File(path) = place else { return };
        let db = rusqlite::Connection::open(path).unwrap_or_else(|e| panic!("{e}"));
        db.execute("INSERT INTO tailbound_schema VALUES (99, 'of the future', '')", [])
            .unwrap_or_else(|e| panic!("{e}"));
        let error = Store::open(place, NOW).err();
        assert!(matches!(error, Some(StoreError::Later { found: 99, .. })), "{error:?}");
    });
}
