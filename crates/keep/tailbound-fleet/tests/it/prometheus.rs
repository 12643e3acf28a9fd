// SPDX-License-Identifier: MIT OR Apache-2.0
//! The real Prometheus: it takes what the server exposes, and answers every question of the dashboard from it.
//!
//! Context: tests. Source: prometheus(1), its HTTP API.

use std::time::{Duration, Instant};

use tailbound_testing::Prometheus;

use super::farm::Farm;

/// It looks every second; some questions need two looks.
const PATIENCE: Duration = Duration::from_secs(90);

/// What it answers.
fn query(prometheus: &Prometheus, expression: &str) -> serde_json::Value {
    let answer: serde_json::Value = serde_json::from_str(&prometheus.query(expression)).unwrap();
    assert_eq!(answer["status"], "success", "{expression}: {answer}");
    answer["data"]["result"].clone()
}

#[test]
fn the_real_prometheus_answers_every_question_of_the_dashboard() {
    let farm = Farm::start(|_| {});
    super::story::told(&farm);
    let folder = tempfile::tempdir().unwrap();
    let Some(prometheus) = Prometheus::start(folder.path(), farm.address) else { return };
    let page =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/examples/grafana/tailbound.json");
    let dashboard: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(page).unwrap()).unwrap();
    let targets = dashboard["panels"].as_array().unwrap().iter();
    let targets = targets.flat_map(|p| p["targets"].as_array().unwrap());
    let begun = Instant::now();
    for target in targets {
        // What Grafana puts in for "All".
        let expression = target["expr"].as_str().unwrap().replace("$system", ".*");
        while query(&prometheus, &expression).as_array().is_none_or(Vec::is_empty) {
            let up = query(&prometheus, "up");
            assert!(begun.elapsed() < PATIENCE, "no answer to {expression}; up: {up}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    let runs = query(&prometheus, "tailbound_store_runs");
    assert_eq!(runs[0]["value"][1], "1976", "{runs}");
    let latest =
        query(&prometheus, "tailbound_latency_max_seconds{window=\"30d\",system=\"press\"}");
    let seconds: f64 = latest[0]["value"][1].as_str().unwrap().parse().unwrap();
    // What fails each night.
    assert!((399e-6..401e-6).contains(&seconds), "{latest}");
}
