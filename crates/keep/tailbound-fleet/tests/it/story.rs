// SPDX-License-Identifier: MIT OR Apache-2.0
//! A farm's story of 200 nights, and what page, API and metrics make of it in the morning: all three alike.
//!
//! Context: tests. Five boards with two runs a night, `hackbench` at 00:03 and `disk` at 00:28:
//!
//! ```text
//! press  hackbench fails each night since ten nights, disk is met     lathe  silent for six days now, and once before
//! mill   25 % worse since the governor changed seven nights ago       drill  another kernel since twenty nights
//! crane  fails each night, and has had runs of 2099 and of 1970
//! ```

use serde_json::Value;
use tailbound_core::utc;
use tailbound_store::{Incoming, Role, RunSubmission, Store, Way};

use crate::farm::{Farm, NOW_S, Planted, Seconds};

const NIGHTS: i64 = 200;
const DAY_S: i64 = 86_400;
/// Midnight of the last night.
const LAST_S: i64 = NOW_S - 12 * 3600;
const LOADS: [(&str, i64); 2] = [("hackbench", 180), ("disk", 1680)];

fn day(night: i64) -> String {
    utc::rfc3339(LAST_S - night * DAY_S).chars().take(10).collect()
}

/// The board's run of `night` nights ago; none where it was silent.
fn planted(
    board: &'static str,
    night: i64,
    (loads, at_s): (&'static str, i64),
) -> Option<Planted<'static>> {
    let mut run = Planted {
        model: board,
        id: format!("{board} {night} {loads}"),
        started_s: LAST_S - night * DAY_S + at_s,
        release: "6.12.1",
        governor: "performance",
        loads,
        usual_ns: 5_000,
        max_ns: 20_000 + night * 131 % 17 * 100,
        shift_ns: night * 37 % 11 * 10,
        seconds: Seconds::All,
    };
    let hackbench = loads == "hackbench";
    match board {
        "press" if hackbench && night < 10 => run.max_ns = 400_000,
        "lathe" if night < 6 || (100..106).contains(&night) => return None,
        "mill" if hackbench && night < 7 => {
            run.governor = "powersave";
            run.usual_ns = 6_250;
        }
        "mill" if night < 7 => run.governor = "powersave",
        "drill" if night < 20 => run.release = "6.12.2",
        "crane" if hackbench && night < 30 => run.max_ns = 150_000,
        _ => {}
    }
    match (board, night, loads) {
        ("crane", 3, "disk") => run.started_s = 4_070_908_800,
        ("crane", 2, "disk") => run.started_s = 180,
        _ => {}
    }
    Some(run)
}

const BOARDS: [&str; 5] = ["lathe", "mill", "drill", "press", "crane"];

/// By the server's own thread or by this one, whoever is first: pages only read what was found.
fn looked(store: &mut Store) {
    tailbound_fleet::regressions::look_at_all(store, &utc::rfc3339(LAST_S)).unwrap();
}

/// The farm after 200 nights.
pub(crate) fn told(farm: &Farm) {
    let mut store = farm.store();
    for night in (0..NIGHTS).rev() {
        let mut runs = Vec::new();
        for board in BOARDS {
            for load in LOADS {
                let Some(run) = planted(board, night, load) else { continue };
                runs.push((board, Incoming::read(run.file().as_slice()).unwrap()));
            }
        }
        let given: Vec<RunSubmission<'_>> = runs
            .iter()
            .map(|(board, incoming)| RunSubmission {
                incoming,
                system: Some(board),
                who: None,
                way: Way::Machine,
            })
            .collect();
        store.add_given(&given, &utc::rfc3339(LAST_S - night * DAY_S + 3600)).unwrap();
    }
    looked(&mut store);
}

fn board<'a>(all: &'a Value, name: &str) -> &'a Value {
    let boards = all["systems"].as_array().unwrap();
    boards.iter().find(|b| b["name"] == name).unwrap_or_else(|| panic!("no {name}: {all}"))
}

fn metric(text: &str, line: &str) -> Option<f64> {
    let found = text.lines().find_map(|l| l.strip_prefix(line)?.trim().parse().ok());
    found.filter(|v: &f64| v.is_finite())
}

#[test]
fn two_hundred_nights_are_told_alike_on_page_api_and_metrics() {
    let farm = Farm::start(|_| {});
    told(&farm);
    let api = farm.get("/api/v1/systems", None).json();
    let page = farm.get("/", None).text();
    let metrics = farm.get("/metrics", None).text();
    the_morning(&api, &page, &metrics);
    a_failure_each_night(&api, &page, &metrics);
    a_wrong_clock(&farm, &api, &page, &metrics);
    what_became_worse(&farm, &api, &page, &metrics);
    a_silence_and_a_kernel(&farm, &api, &page, &metrics);
    every_run_is_reached(&farm);
    what_changed_and_compare(&farm);
    what_people_know(&farm);
}

fn the_morning(api: &Value, page: &str, metrics: &str) {
    let m = &api["morning"];
    let counts = ["systems", "not_met", "worse", "silent"].map(|n| m[n].as_i64().unwrap());
    assert_eq!(counts, [5, 2, 1, 1], "{m}");
    for words in ["2 not met", "1 became worse", "1 silent since 2026-11-19", "no agent unheard of"]
    {
        assert!(page.contains(words), "{words}: {page}");
    }
    let panel = metrics
        .lines()
        .filter(|l| l.starts_with("tailbound_last_night_workloads") && l.contains("\"not-met\""))
        .filter(|l| !l.ends_with(" 0"));
    assert_eq!(panel.count(), 2, "{metrics}");
    // Not met first, then what became worse, then who is silent.
    let order: Vec<&str> =
        api["systems"].as_array().unwrap().iter().map(|b| b["name"].as_str().unwrap()).collect();
    assert_eq!(order, ["crane", "press", "mill", "lathe", "drill"]);
    let places = order.iter().map(|name| page.find(&format!(">{name}</a>")).unwrap());
    assert!(places.is_sorted(), "{page}");
}

fn a_failure_each_night(api: &Value, page: &str, metrics: &str) {
    let press = board(api, "press");
    // Its newest run is met, and that is not its state.
    assert_eq!(press["last"]["outcome"], "met", "{press}");
    assert_eq!(press["state"], format!("1 of 2 not met, since {}", day(9)));
    let worst = &press["night"]["workloads"][0];
    assert_eq!((&worst["loads"], &worst["verdict"]), (&"hackbench".into(), &"not-met".into()));
    assert_eq!((&worst["max_ns"], &worst["deadline_ns"]), (&400_000.into(), &100_000.into()));
    assert!(press["headroom"].as_f64().unwrap() < -2.9, "{press}");
    assert!(page.contains(&format!("since {}", day(9))) && page.contains("300 % over"), "{page}");
    let since = utc::from_date_time(&day(9), "00:03:00").unwrap();
    let line = "tailbound_not_met_since_timestamp_seconds{system=\"press\"}";
    assert_eq!(metric(metrics, line).map(|v| v as i64), Some(since), "{metrics}");
    let line = "tailbound_last_night_workloads{system=\"press\",verdict=\"met\"}";
    assert_eq!(metric(metrics, line), Some(1.0));
}

fn a_wrong_clock(farm: &Farm, api: &Value, page: &str, metrics: &str) {
    let crane = board(api, "crane");
    assert_eq!(crane["state"], format!("1 of 2 not met, since {}", day(29)), "{crane}");
    let newest = crane["last"]["started"].as_str().unwrap();
    assert!(newest.starts_with(&day(0)) && crane["last"]["clock_said"].is_null(), "{crane}");
    assert!(crane["silent_since"].is_null());
    let at = metric(metrics, "tailbound_last_run_timestamp_seconds{system=\"crane\"}").unwrap();
    assert!((at as i64) < NOW_S && (at as i64) > NOW_S - DAY_S, "{at}");
    assert!(!page.contains("2099"), "{page}");
    let runs = farm.get("/api/v1/runs?system=crane&limit=10", None).json();
    let wrong: Vec<(&str, &str)> = runs["runs"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|r| Some((r["clock_said"].as_str()?, r["started"].as_str()?)))
        .collect();
    let at = |night: i64| format!("{}T01:00:00Z", day(night));
    let expected = [("1970-01-01T00:03:00Z", at(2)), ("2099-01-01T00:00:00Z", at(3))];
    assert_eq!(wrong, expected.each_ref().map(|(said, at)| (*said, at.as_str())), "{runs}");
    let list = farm.get("/runs?system=crane", None).text();
    assert!(list.contains("clock wrong: 2099-01-01") && list.contains("clock wrong: 1970-01-01"));
    // After a rebuild it is the same.
    let mut store = farm.store();
    store.rebuild(&mut |_, _| {}).unwrap();
    looked(&mut store);
    assert_eq!(board(&farm.get("/api/v1/systems", None).json(), "crane"), crane);
}

fn what_became_worse(farm: &Farm, api: &Value, page: &str, metrics: &str) {
    let worse = &board(api, "mill")["worse"];
    assert_eq!(worse.as_array().unwrap().len(), 1, "{worse}");
    let (one, first) = (&worse[0], format!("{}T00:03:00Z", day(6)));
    assert_eq!((&one["since"], &one["loads"]), (&first.as_str().into(), &"hackbench".into()));
    let fact = &one["facts"][0];
    assert_eq!((&fact["name"], &fact["off"]), (&"cpu.governor".into(), &0.into()), "{one}");
    let words = "cpu.governor: performance → powersave";
    for path in ["/regressions", "/systems/mill"] {
        let text = farm.get(path, None).text();
        assert!(text.contains(words) && text.contains(&day(6)), "{path}: {text}");
        assert!(!text.contains("no recorded fact"), "{path}");
    }
    assert!(page.contains(&format!("became worse on {}", day(6))), "{page}");
    assert!(page.contains(&format!("configuration changed on {}", day(6))), "{page}");
    for (system, n) in [("mill", 1.0), ("press", 0.0), ("drill", 0.0)] {
        let line = format!("tailbound_regressions{{system=\"{system}\"}}");
        assert_eq!(metric(metrics, &line), Some(n), "{system}");
    }
    let all = farm.get("/api/v1/regressions", None).json();
    assert_eq!(all["regressions"][0]["since"], first);
}

fn a_silence_and_a_kernel(farm: &Farm, api: &Value, page: &str, metrics: &str) {
    let lathe = board(api, "lathe");
    let since = format!("{}T00:28:00Z", day(6));
    assert_eq!(lathe["silent_since"], since);
    assert!(page.contains("silent since"), "{page}");
    let line = "tailbound_last_run_timestamp_seconds{system=\"lathe\"}";
    let at = utc::from_date_time(&day(6), "00:28:00").unwrap();
    assert_eq!(metric(metrics, line).map(|v| v as i64), Some(at));
    let drill = board(api, "drill");
    assert_eq!(drill["changes"][0]["day"], day(19), "{drill}");
    assert_eq!(drill["changes"][0]["what"], serde_json::json!(["kernel"]));
    assert!(drill["worse"].as_array().unwrap().is_empty());
    assert!(page.contains(&format!("kernel changed on {}", day(19))), "{page}");
    // A picture of two loads has a line for each.
    let maxima = farm.get("/api/v1/systems/drill/maxima?since=2026-11-01", None).json();
    assert_eq!(maxima["by_load"].as_array().unwrap().len(), 2, "{maxima}");
    let system = farm.get("/systems/drill", None).text();
    assert!(system.contains("The newest 60 of 400.") && system.contains("a colour for each load"));
}

fn every_run_is_reached(farm: &Farm) {
    let list = |query: &str| farm.get(&format!("/runs?{query}"), None).text();
    let first = list("system=press");
    assert!(first.contains("Runs 1 to 60 of 400") && first.contains(">Older<"), "{first}");
    let last = list("system=press&page=7");
    assert!(last.contains("Runs 361 to 400 of 400") && !last.contains(">Older<"), "{last}");
    for (query, n) in [
        ("system=press&load=disk", 200),
        ("system=press&verdict=not-met", 10),
        ("system=drill&kernel=6.12.2", 40),
        ("system=press&load=hackbench&verdict=not-met&from=2026-11-20&to=2026-11-22", 3),
        ("words=crane&verdict=not-met", 30),
        ("words=100%25", 0),
    ] {
        let all = farm.get(&format!("/api/v1/runs?{query}"), None).json();
        assert_eq!(all["total"], n, "{query}: {all}");
        assert!(list(query).contains(&format!("{n}")), "{query}");
    }
    for (query, status) in [("verdict=good", 422), ("system=nobody", 404), ("to=soon", 422)] {
        assert_eq!(farm.get(&format!("/runs?{query}"), None).status, status, "{query}");
    }
    let id = farm.get("/api/v1/runs?system=crane&load=disk&limit=4", None).json();
    let id = id["runs"][3]["id"].as_str().unwrap().to_owned();
    let report = farm.get(&format!("/runs/{id}"), None).text();
    for words in ["Download the run file", ">crane</a>", "/runs/", "Its clock was wrong", "UTC"] {
        assert!(report.contains(words), "{words}");
    }
}

fn what_changed_and_compare(farm: &Farm) {
    let today = day(0);
    // Two runs a night: the one before is that of the night before, with the same load.
    let path = format!("/api/v1/changed?system=press&from={today}&to={today}");
    let told = farm.get(&path, None).json();
    assert_ne!(told["a"]["id"], told["b"]["id"]);
    assert_eq!(told["a"]["loads"], told["b"]["loads"]);
    assert!(told["a"]["started"].as_str().unwrap().starts_with(&day(1)), "{told}");
    let id = told["b"]["id"].as_str().unwrap();
    let same = farm.get(&format!("/changed?run={id}&run={id}"), None);
    assert!(same.status == 422 && same.text().contains("the same run"), "{same:?}");
    let older = told["a"]["id"].as_str().unwrap();
    let compared = farm.get(&format!("/compare?run={older}&run={id}"), None).text();
    assert!(compared.contains("2 runs of one system compared: press"), "{}", &compared[..2000]);
    let other = farm.get("/api/v1/runs?system=mill&limit=1", None).json();
    let other = other["runs"][0]["id"].as_str().unwrap();
    let three = farm.get(&format!("/api/v1/compare?run={older}&run={id}&run={other}"), None).json();
    assert_eq!(three["heading"], "3 runs of 2 systems compared");
}

fn what_people_know(farm: &Farm) {
    let operator = farm.token(Role::Operator);
    let press = farm.get("/api/v1/systems/press", None).json();
    let workload = press["night"]["workloads"][0]["workload"].as_str().unwrap();
    let body = format!("{{\"workload\":\"{workload}\",\"message\":\"fan <broken>\"}}");
    let path = "/api/v1/systems/press/acknowledge";
    let reader = farm.token(Role::Reader);
    assert_eq!(farm.post(path, None, body.as_bytes()).status, 401);
    assert_eq!(farm.post(path, Some(&reader), body.as_bytes()).status, 403);
    assert_eq!(farm.post(path, Some(&operator), body.as_bytes()).status, 201);
    let known = "known to operator, 2026-11-25: fan &lt;broken&gt;";
    for page in ["/", "/systems/press"] {
        let text = farm.get(page, None).text();
        assert!(text.contains(known), "{page}: {text}");
    }
    // It is not met still, and comes after what nobody knows of yet.
    let all = farm.get("/api/v1/systems", None).json();
    assert_eq!(
        (&all["morning"]["not_met"], &all["systems"][1]["name"]),
        (&2.into(), &"press".into())
    );
    assert_eq!(board(&all, "press")["known"][0]["acknowledged"]["author"], "operator");
    let run = press["last"]["id"].as_str().unwrap();
    let noted = farm.post(
        &format!("/api/v1/runs/{run}/notes"),
        Some(&operator),
        b"message=new+power%20supply",
    );
    assert_eq!(noted.status, 201, "{noted:?}");
    for page in
        [format!("/runs/{run}"), "/runs?system=press".to_owned(), format!("/runs/{run}/note")]
    {
        assert!(farm.get(&page, None).text().contains("new power supply"), "{page}");
    }
    let found = farm.get("/api/v1/runs?words=POWER%20supply", None).json();
    assert_eq!(found["total"], 1, "{found}");
    for wrong in ["message=", "{\"message\":7}", "nothing"] {
        let told =
            farm.post(&format!("/api/v1/runs/{run}/notes"), Some(&operator), wrong.as_bytes());
        assert_eq!(told.status, 422, "{wrong}");
    }
}
