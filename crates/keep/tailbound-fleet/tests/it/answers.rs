// SPDX-License-Identifier: MIT OR Apache-2.0
//! What pages show is there for programs too.
//!
//! Context: tests.

use super::farm::Farm;

#[test]
fn what_a_comparison_a_report_and_a_system_show_is_json_too() {
    let farm = Farm::start(|_| {});
    super::filled(&farm);
    let run = |system: &str| {
        let runs = farm.get(&format!("/api/v1/systems/{system}/runs?limit=2"), None).json();
        let id = |i: usize| runs["runs"][i]["id"].as_str().unwrap().to_owned();
        (id(0), id(1))
    };
    let ((a, b), (c, _)) = (run("press"), run("lathe"));
    let told = farm.get(&format!("/api/v1/compare?run={a}&run={b}&run={c}"), None).json();
    let runs = told["runs"].as_array().unwrap();
    let systems: Vec<&str> = runs.iter().map(|r| r["system"].as_str().unwrap()).collect();
    assert_eq!(systems, ["press", "press", "lathe"]);
    // As the page: an answer, or why there is none.
    assert!(told["comparison"].is_object() != told["why_not"].is_string(), "{told}");
    let page = farm.get(&format!("/compare?run={a}&run={b}&run={c}"), None).text();
    for run in runs {
        assert!(page.contains(run["name"].as_str().unwrap()), "{}", run["name"]);
    }
    // Runs of one system that began in one minute, as all of the lab do, are told apart.
    let same = farm.get(&format!("/api/v1/compare?run={a}&run={a}&run={c}"), None).json();
    let names = |i: usize| same["runs"][i]["name"].as_str().unwrap();
    assert!(names(0).ends_with(&format!(", {}", &a[..12])), "{}", names(0));
    assert!(!names(2).contains(&c[..12]), "{}", names(2));
    let one = farm.get(&format!("/api/v1/runs/{a}/report"), None).json();
    assert_eq!((&one["schema"], &runs[0]["report"]), (&"tailbound-report/1".into(), &one));
    let all = farm.get("/api/v1/systems/press/histograms?since=2026-01-01", None).json();
    let all = all["histograms"].as_array().unwrap();
    assert_eq!(all.len(), 60);
    let first = &all[0]["buckets"][0];
    assert!(first.as_array().is_some_and(|b| b.len() == 3 && b[2].as_u64() > Some(0)), "{first}");
    for (path, status) in [
        (format!("/api/v1/compare?run={a}"), 422),
        ("/api/v1/compare?what=1".to_owned(), 422),
        ("/api/v1/culprits?system=press".to_owned(), 200),
        ("/api/v1/culprits?system=nobody".to_owned(), 404),
    ] {
        assert_eq!(farm.get(&path, None).status, status, "{path}");
    }
}
