// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the server keeps of a system is what the store has of it, whoever changed the store.
//!
//! Context: tests. Every answer is compared with that of a server which began just now and keeps nothing yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::Value;
use tailbound_core::utc;
use tailbound_store::{Incoming, SeriesState, Store, Whose};

use crate::farm::{Farm, NOW_S, run};

const DAY_S: i64 = 86_400;

/// Adds a run as another process does.
fn added(store: &mut Store, system: &str, days: i64, usual_ns: i64) {
    let incoming = Incoming::read(run(system, days, "6.12.1", usual_ns).as_slice()).unwrap();
    store.add(&[incoming], Some(system), &utc::rfc3339(NOW_S)).unwrap();
}

/// What a server says of the farm, by page, API and metrics.
fn said(farm: &Farm) -> [String; 3] {
    ["/", "/api/v1/systems", "/metrics"].map(|path| farm.get(path, None).text())
}

/// The server says what one says that has read nothing before; which is what the API says.
fn as_new(farm: &Farm, clock: &Arc<AtomicI64>) -> Value {
    // By the thread of this server alone: nothing changes in between.
    farm.looked();
    let place = farm.place.clone();
    let new = Farm::start_at(Arc::clone(clock), |config| config.store = place);
    assert_eq!(said(farm), said(&new));
    farm.get("/api/v1/systems", None).json()
}

#[test]
fn what_others_do_to_the_store_is_shown_at_once() {
    let clock = Arc::new(AtomicI64::new(NOW_S));
    let farm = Farm::start_at(Arc::clone(&clock), |_| {});
    assert_eq!(as_new(&farm, &clock)["systems"], Value::Array(Vec::new()));
    let mut store = farm.store();
    for system in ["press", "lathe", "mill", "drill", "crane"] {
        (0..5).rev().for_each(|day| added(&mut store, system, day, 5_000));
    }
    assert_eq!(as_new(&farm, &clock)["morning"]["systems"], 5);
    // One of five: it alone is read again. Then most of them.
    added(&mut store, "press", 5, 40_000);
    let all = as_new(&farm, &clock);
    let press = |all: &Value| {
        let boards = all["systems"].as_array().unwrap().clone();
        boards.into_iter().find(|b| b["name"] == "press").unwrap()
    };
    assert_eq!(press(&all)["days"].as_array().unwrap().len(), 6);
    for system in ["lathe", "mill", "drill", "crane", "saw"] {
        added(&mut store, system, 6, 5_000);
    }
    assert_eq!(as_new(&farm, &clock)["morning"]["systems"], 6);

    // A run goes; the last run of a system takes it along; all is made again.
    let id = |system: &str, days: i64, usual_ns: i64| {
        Incoming::read(run(system, days, "6.12.1", usual_ns).as_slice()).unwrap().packed.id
    };
    store.delete(&[id("press", 5, 40_000), id("saw", 6, 5_000)]).unwrap();
    assert_eq!(press(&as_new(&farm, &clock))["days"].as_array().unwrap().len(), 5);
    store.rebuild(&mut |_, _| {}).unwrap();
    as_new(&farm, &clock);

    // What a person says, and what a search found, without a run.
    let system = press(&as_new(&farm, &clock));
    let workload = system["last"]["workload"].as_str().unwrap();
    let series = [system["id"].as_str().unwrap(), workload];
    store.acknowledge(series, &utc::rfc3339(NOW_S), "a person", "known").unwrap().unwrap();
    let found = tailbound_store::DueSeries {
        system: series[0].to_owned(),
        workload: workload.to_owned(),
        newest: utc::rfc3339(NOW_S),
        due: 0,
    };
    let mut worse = tailbound_fleet::regressions::Regression {
        system: series[0].to_owned(),
        name: "press".to_owned(),
        workload: workload.to_owned(),
        since: utc::rfc3339(NOW_S - 2 * DAY_S),
        ..Default::default()
    };
    let keep = |store: &mut Store, worse: &_| {
        let json = serde_json::to_string(worse).unwrap();
        store.keep_series(&found, SeriesState::Worse, &json, &utc::rfc3339(NOW_S)).unwrap();
    };
    keep(&mut store, &worse);
    assert_eq!(as_new(&farm, &clock)["morning"]["worse"], 1);
    worse.loads = "another".to_owned();
    keep(&mut store, &worse);
    assert_eq!(press(&as_new(&farm, &clock))["worse"][0]["loads"], "another");

    // The days move on with the clock, without anything in the store.
    clock.store(NOW_S + 27 * DAY_S, Ordering::Relaxed);
    let all = as_new(&farm, &clock);
    assert_eq!(press(&all)["days"].as_array().unwrap().len(), 3, "of thirty days up to today");
    assert_eq!(all["morning"]["silent"], 5);
}

/// The verb of the command line reads what is kept, and searches where that is not known or not current; it writes nothing.
#[test]
fn a_search_now_says_what_the_page_says_when_all_was_looked_at() {
    let farm = Farm::start(|_| {});
    super::filled(&farm);
    let since = tailbound_store::Since::From(utc::rfc3339(NOW_S - 180 * DAY_S));
    let mut store = farm.store();
    let page = || farm.get("/api/v1/regressions", None).json();
    let as_json = |store: &mut Store| {
        let found = tailbound_fleet::regressions::search(store, &since, None).unwrap();
        assert_eq!(found.told.len(), 2);
        serde_json::to_value(&found).unwrap()
    };
    let kept = as_json(&mut store);
    assert_eq!(kept, page());
    assert_eq!(kept["regressions"][0]["name"], "press");
    // Nothing was looked at: the same is found, and is still to be looked at.
    let folder = tempfile::tempdir().unwrap();
    let place = tailbound_store::StoreLocation::File(folder.path().join("other.sqlite"));
    let mut other = Store::open_or_make(&place, "2026-11-25T12:00:00Z").unwrap();
    for listed in store.list(&tailbound_store::Filter::default()).unwrap() {
        let file = store.file(&listed.id).unwrap();
        let incoming = Incoming::read(file.as_slice()).unwrap();
        other.add(&[incoming], Some(&listed.system), "2026-11-25T12:00:00Z").unwrap();
    }
    let before = other.due_series(Whose::All, 9).unwrap();
    assert_eq!(as_json(&mut other), kept);
    assert_eq!(other.due_series(Whose::All, 9).unwrap(), before);
    assert_eq!(before.len(), 2);
    // What is current is read, not searched.
    tailbound_fleet::regressions::look_at_all(&mut other, &utc::rfc3339(NOW_S)).unwrap();
    let press = other.system_named("press").unwrap().unwrap();
    let mut due = before.into_iter().find(|s| s.system == press.id).unwrap();
    due.due = 0;
    other.keep_series(&due, SeriesState::Well, "null", "2026-11-25T12:00:00Z").unwrap();
    assert_eq!(as_json(&mut other)["regressions"], Value::Array(Vec::new()));
    // What another version wrote is searched.
    other.keep_series(&due, SeriesState::Worse, "{\"x\":1}", "2026-11-25T12:00:00Z").unwrap();
    assert_eq!(as_json(&mut other)["regressions"], kept["regressions"]);
}
