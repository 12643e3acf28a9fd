// SPDX-License-Identifier: MIT OR Apache-2.0
//! The monitor's dashboard: the real Prometheus reads a real monitor, and answers every question of the dashboard from it.
//!
//! Context: tests.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use tailbound_testing::Prometheus;

use crate::monitor::{Ends, free_port, until};
use crate::observe::{able, tracing};
use crate::{PATIENCE, folder};

fn query(prometheus: &Prometheus, expression: &str) -> Value {
    let answer: Value = serde_json::from_str(&prometheus.query(expression)).unwrap();
    assert_eq!(answer["status"], "success", "{expression}: {answer}");
    answer["data"]["result"].clone()
}

#[test]
fn the_real_prometheus_answers_every_question_of_the_dashboard() {
    if !able() {
        return;
    }
    let (folder, port) = (folder(), free_port());
    let out = folder.path().join("m.jsonl");
    let mut monitor = tracing(&[env!("CARGO_BIN_EXE_tailbound"), "monitor"]);
    monitor.args(["--by", "bpf", "--probe", "--threshold", "1ns", "--every", "1s"]);
    // Nobody takes what it hands in.
    let token = folder.path().join("token");
    std::fs::write(&token, "a-token\n").unwrap();
    std::fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    monitor.args(["--upload", "http://127.0.0.1:1", "--token-file"]).arg(token);
    monitor.arg("--record").arg(folder.path().join("late"));
    monitor.args(["-D", "10min", "--listen", &format!("127.0.0.1:{port}"), "--out"]);
    let mut monitor = Ends(monitor.arg(&out).stderr(Stdio::piped()).spawn().unwrap());
    let counts = || std::fs::read_to_string(&out).ok().filter(|t| t.contains("\"window\""));
    if until(&mut monitor, counts).is_none() {
        return;
    }
    let scraped = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let Some(prometheus) = Prometheus::start(folder.path(), scraped) else { return };
    let page =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/grafana/tailbound-monitor.json");
    let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(page).unwrap()).unwrap();
    let targets = dashboard["panels"].as_array().unwrap().iter();
    let targets: Vec<&Value> = targets.flat_map(|p| p["targets"].as_array().unwrap()).collect();
    assert!(targets.len() >= 15, "{}", targets.len());
    let began = Instant::now();
    for target in targets {
        // What Grafana puts in for "All".
        let expression = target["expr"].as_str().unwrap().replace("$instance", ".*");
        while query(&prometheus, &expression).as_array().is_none_or(Vec::is_empty) {
            let up = query(&prometheus, "up");
            assert!(began.elapsed() < PATIENCE, "no answer to {expression}; up: {up}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    // The probe wakes ten times a second.
    let probe = query(&prometheus, "tailbound_wakeup_wait_seconds_count{comm=\"tailbound-probe\"}");
    let n: f64 = probe[0]["value"][1].as_str().unwrap().parse().unwrap();
    assert!(n > 1.0, "{probe}");
}
