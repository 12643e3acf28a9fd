// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which series are to be looked at, whatever happened to their runs: added, deleted, made again, of an earlier version.
//!
//! Context: tests.

use tailbound_store::{DueSeries, SeriesState, Since, Store, StoreLocation, Whose};

use crate::{NOW, added, file, incoming, on_both};

fn due(store: &mut Store) -> Vec<(String, i64)> {
    let due = store.due_series(Whose::All, 100).unwrap_or_else(|e| panic!("{e}"));
    due.into_iter().map(|DueSeries { newest, due, .. }| (newest, due)).collect()
}

fn looked_at(store: &mut Store) {
    for series in store.due_series(Whose::All, 100).unwrap_or_else(|e| panic!("{e}")) {
        let kept = store.keep_series(&series, SeriesState::Well, "null", NOW);
        kept.unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn a_series_is_due_when_its_runs_change_and_only_then() {
    on_both(|place| {
        let mut store = Store::open_or_make(place, NOW).unwrap_or_else(|e| panic!("{e}"));
        let day = |n: u32| file(&format!("2026-01-{n:02}T00:00:00Z"), "6.12.1", 5_000);
        added(&mut store, &[day(1), day(3), day(2)], Some("a"));
        assert_eq!(due(&mut store), [("2026-01-03T00:00:00Z".to_owned(), 3)], "{place}");
        // A run that comes while it is looked at makes it due still.
        let series = store.due_series(Whose::All, 1).unwrap_or_else(|e| panic!("{e}")).remove(0);
        added(&mut store, &[day(4)], Some("a"));
        let kept = store.keep_series(&series, SeriesState::Worse, "{\"x\":1}", NOW);
        kept.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(due(&mut store), [("2026-01-04T00:00:00Z".to_owned(), 1)], "{place}");
        looked_at(&mut store);
        assert_eq!(added(&mut store, &[day(4)], Some("a")).len(), 1);
        assert_eq!(due(&mut store), [], "{place}: the same run again is nothing new");
        let kept = store
            .kept_series(Whose::All, &Since::from("2026-01-04"))
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(kept.len(), 1);
        assert_eq!((kept[0].name.as_str(), kept[0].state), ("a", Some(SeriesState::Well)));
        assert_eq!(
            store.kept_series(Whose::All, &Since::from("2026-02")).map(|all| all.len()).ok(),
            Some(0)
        );
        assert_eq!(
            store.kept_series(Whose::System("nobody"), &Since::Ever).map(|all| all.len()).ok(),
            Some(0)
        );

        // Made again, nothing is known any more; deleted, another run is the newest, and the last one takes the series with it.
        store.rebuild(&mut |_, _| {}).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(due(&mut store), [("2026-01-04T00:00:00Z".to_owned(), 4)], "{place}");
        looked_at(&mut store);
        let id = |n: u32| incoming(&day(n)).packed.id;
        store.delete(&[id(4)]).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(due(&mut store), [("2026-01-03T00:00:00Z".to_owned(), 1)], "{place}");
        store.delete(&[id(1), id(2), id(3)]).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(due(&mut store), [], "{place}");
        assert_eq!(store.count().ok(), Some(0));
    });
}

/// What takes a store back to each of the versions before this table.
const BEFORE: [&str; 4] = [
    "DROP TABLE system_version; DELETE FROM tailbound_schema WHERE number = 11",
    "DROP TABLE series; DELETE FROM tailbound_schema WHERE number = 10",
    "DROP TABLE acknowledgement; DELETE FROM tailbound_schema WHERE number = 9",
    "DROP INDEX run_conditions; ALTER TABLE run DROP COLUMN clock_said; ALTER TABLE run DROP COLUMN arrival; \
     ALTER TABLE run DROP COLUMN p90_ns; ALTER TABLE run DROP COLUMN block_max_ns; DELETE FROM tailbound_schema WHERE number = 8",
];

fn taken_back(place: &StoreLocation, sql: &str) {
    match place {
        StoreLocation::File(path) => {
            let db = rusqlite::Connection::open(path).unwrap_or_else(|e| panic!("{e}"));
            db.execute_batch(sql).unwrap_or_else(|e| panic!("{e}"));
        }
        StoreLocation::Server(url) => {
            let client = postgres::Client::connect(url, postgres::NoTls);
            let mut client = client.unwrap_or_else(|e| panic!("{e}"));
            client.batch_execute(sql).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

#[test]
fn a_store_of_an_earlier_version_has_all_its_series_due() {
    on_both(|place| {
        let mut store = Store::open_or_make(place, NOW).unwrap_or_else(|e| panic!("{e}"));
        let files = [
            file("2026-01-01T00:00:00Z", "6.12.1", 5_000),
            file("2026-01-02T00:00:00Z", "6.12.1", 5_000),
        ];
        added(&mut store, &files, Some("a"));
        added(&mut store, &[file("2026-01-05T00:00:00Z", "6.12.1", 6_000)], Some("b"));
        drop(store);
        for versions in 2..=BEFORE.len() {
            for sql in BEFORE.iter().take(versions) {
                taken_back(place, sql);
            }
            let mut store = Store::open(place, NOW).unwrap_or_else(|e| panic!("{e}"));
            let mut found = due(&mut store);
            found.sort();
            let expected =
                [("2026-01-02T00:00:00Z".to_owned(), 2), ("2026-01-05T00:00:00Z".to_owned(), 1)];
            assert_eq!(found, expected, "{place}, {versions} versions back");
            assert_eq!(store.acknowledgements().ok(), Some(Vec::new()), "{place}");
            let systems = store.systems(&Since::Ever).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(systems.len(), 2, "{place}");
            looked_at(&mut store);
        }
    });
}
