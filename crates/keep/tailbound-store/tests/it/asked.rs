// SPDX-License-Identifier: MIT OR Apache-2.0
//! What pages ask of the store, on both databases: nights, lists, conditions, notes and acknowledgements.
//!
//! Context: tests.

use std::time::{Duration, Instant};

use tailbound_store::{
    Cancellation, Condition, RunQuery, RunSubmission, Since, Store, StoreError, StoreLocation,
    Verdict, Way, Whose, acknowledged,
};

use crate::server::Server;
use crate::{NOW, asked, file, incoming, on_both};

/// Three nights of the board `press`: the last two are not met; then one whose clock is in 2099.
fn filled(store: &mut Store) {
    let runs = [
        ("2026-11-21T00:00:00Z", "6.12.1", 50_000),
        ("2026-11-22T00:00:00Z", "6.12.1", 170_000),
        ("2026-11-23T00:00:00Z", "6.12.1-rt", 180_000),
        ("2099-01-01T00:00:00Z", "6.12.1-rt", 7_000),
    ];
    for (n, (started, release, max_ns)) in runs.into_iter().enumerate() {
        let incoming = incoming(&file(started, release, max_ns));
        let given = RunSubmission {
            incoming: &incoming,
            system: Some("press"),
            who: None,
            way: Way::Machine,
        };
        let came = format!("2026-11-2{}T01:00:00Z", n + 1);
        // The last one comes in the same night as the one before.
        let came = if n == 3 { "2026-11-23T02:00:00Z" } else { came.as_str() };
        store.add_given(&[given], came).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn what_pages_ask_is_answered_alike_by_both() {
    on_both(|place| {
        let mut store = Store::open_or_make(place, NOW).unwrap_or_else(|e| panic!("{e}"));
        filled(&mut store);
        the_night(&mut store);
        lists(&mut store);
        remarks(&mut store);
        store.rebuild(&mut |_, _| {}).unwrap_or_else(|e| panic!("{place}: {e}"));
        the_night(&mut store);
    });
}

fn the_night(store: &mut Store) {
    let all = store.systems(&Since::Ever).unwrap_or_else(|e| panic!("{e}"));
    let press = all.first().unwrap_or_else(|| panic!("no system"));
    let night = press.night.as_ref().unwrap_or_else(|| panic!("no night"));
    // The newest is the one that came last, wherever its clock is.
    assert_eq!(night.newest, "2026-11-23T02:00:00Z");
    let last = press.last.as_ref().and_then(|l| l.clock_said.as_deref());
    assert_eq!(last, Some("2099-01-01T00:00:00Z"));
    assert_eq!((night.verdict, night.not_met, night.runs), (Verdict::NotMet, 1, 2));
    assert_eq!(night.not_met_since.as_deref(), Some("2026-11-22T00:00:00Z"));
    let worst = night.worst().unwrap_or_else(|| panic!("nothing is worst"));
    assert_eq!((worst.max_ns, worst.deadline_ns), (Some(180_000), Some(100_000)));
    let changes = store
        .condition_changes(Whose::System(&press.id), &Since::Ever)
        .unwrap_or_else(|e| panic!("{e}"));
    let changes = changes.into_values().next().unwrap_or_default();
    let told: Vec<(&str, &[Condition])> =
        changes.iter().map(|c| (c.day.as_str(), c.what.as_slice())).collect();
    assert_eq!(told, [("2026-11-23", [Condition::Kernel].as_slice())]);
}

fn lists(store: &mut Store) {
    let asked = |query: RunQuery| RunQuery { most: 2, ..query };
    let text = |t: &str| Some(t.to_owned());
    let queries = [
        (RunQuery::default(), 4, 2),
        (RunQuery { skip: 2, ..RunQuery::default() }, 4, 2),
        (RunQuery { outcome: text("not-met"), ..RunQuery::default() }, 2, 2),
        (
            RunQuery { kernel: text("6.12.1-rt"), loads: text("hackbench"), ..RunQuery::default() },
            2,
            2,
        ),
        (
            RunQuery {
                since: text("2026-11-22"),
                until: text("2026-11-23"),
                ..RunQuery::default()
            },
            1,
            1,
        ),
        (RunQuery { words: text("PRESS"), ..RunQuery::default() }, 4, 2),
        (RunQuery { words: text("%_\\'"), ..RunQuery::default() }, 0, 0),
        (RunQuery { system: text("nobody"), ..RunQuery::default() }, 0, 0),
    ];
    for (query, total, shown) in queries {
        let query = asked(query);
        let page = store.runs_page(&query).unwrap_or_else(|e| panic!("{query:?}: {e}"));
        assert_eq!((page.total, page.runs.len()), (total, shown), "{query:?}");
    }
    let newest = store.runs_page(&asked(RunQuery::default())).unwrap_or_else(|e| panic!("{e}"));
    let newest = newest.runs.first().cloned().unwrap_or_else(|| panic!("no run"));
    let before = store.run_before_in_series(&newest, &newest.started);
    let before = before.unwrap_or_else(|e| panic!("{e}")).map(|r| r.started);
    assert_eq!(before.as_deref(), Some("2026-11-23T00:00:00Z"));
    let kinds = store.run_kinds().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((kinds.loads, kinds.kernels.len()), (vec!["hackbench".to_owned()], 2));
}

fn remarks(store: &mut Store) {
    let run = store.runs_page(&RunQuery { most: 1, ..RunQuery::default() });
    let run = run.unwrap_or_else(|e| panic!("{e}")).runs.remove(0);
    store.note(&run.id, NOW, "a person", "A new Fan").unwrap_or_else(|e| panic!("{e}"));
    let words = RunQuery { words: Some("new fan".to_owned()), most: 9, ..RunQuery::default() };
    assert_eq!(store.runs_page(&words).unwrap_or_else(|e| panic!("{e}")).total, 1);
    let notes = store.notes(std::slice::from_ref(&run.id)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(notes.first().map(|n| n.message.as_str()), Some("A new Fan"));
    let series = [run.system.as_str(), run.workload.as_str()];
    assert!(store.acknowledge([series[0], "none"], NOW, "a", "b").is_ok_and(|a| a.is_none()));
    for message in ["known", "known, and mended"] {
        let kept = store.acknowledge(series, NOW, "a person", message);
        assert!(kept.unwrap_or_else(|e| panic!("{e}")).is_some_and(|a| a.newest == run.started));
    }
    let all = store.acknowledgements().unwrap_or_else(|e| panic!("{e}"));
    let of = |since: &str| acknowledged(&all, series[0], series[1], since).map(|a| &a.message);
    assert_eq!(of("2026-11-22T00:00:00Z").map(String::as_str), Some("known, and mended"));
    // What begins later is new.
    assert_eq!((of("2026-11-24T00:00:00Z"), all.len()), (None, 1));
}

/// Of PostgreSQL; SQLite looks itself while it works.
#[test]
fn a_question_whose_client_left_ends_while_the_server_works_on_it() {
    let Some(server) = Server::start() else { return };
    let place: StoreLocation = server.url().parse().unwrap_or_else(|e| panic!("{e}"));
    let mut store = Store::open_or_make(&place, NOW).unwrap_or_else(|e| panic!("{e}"));
    let cancel = Cancellation::default();
    store.cancelled_by(Some(&cancel)).unwrap_or_else(|e| panic!("{e}"));
    let begun = Instant::now();
    let answer = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut other = Store::open(&place, NOW).unwrap_or_else(|e| panic!("{e}"));
            let works = "SELECT pid FROM pg_catalog.pg_stat_activity WHERE query LIKE '%pg_sleep(900)%' AND pid <> pg_backend_pid()";
            while asked(&mut other, works).unwrap_or_else(|e| panic!("{e}")).is_empty() {
                std::thread::yield_now();
            }
            cancel.cancel();
        });
        // No row comes before its end.
        store.query("SELECT pg_sleep(900)", 1000, &mut |_, _| Ok(()))
    });
    assert!(matches!(answer, Err(StoreError::Cancelled)), "{answer:?}");
    assert!(begun.elapsed() < Duration::from_secs(600), "{:?}", begun.elapsed());
    // What is asked next over this connection could be what the server gives up.
    assert!(matches!(store.cancelled_by(None), Err(StoreError::Cancelled)));

    let mut store = Store::open(&place, NOW).unwrap_or_else(|e| panic!("{e}"));
    store.cancelled_by(Some(&Cancellation::default())).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(store.count().ok(), Some(0));
    assert!(store.cancelled_by(None).is_ok() && store.count().is_ok());
}
