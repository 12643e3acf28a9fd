// SPDX-License-Identifier: MIT OR Apache-2.0
//! The real Prometheus: it takes what the server exposes, and answers every question of the dashboard from it.
//!
//! Context: tests. Source: prometheus(1), its HTTP API.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tailbound_testing::skip;

use super::farm::{Answer, Farm, asked};

/// It looks every second; some questions need two looks.
const PATIENCE: Duration = Duration::from_secs(90);

/// One of the test's own, on loopback, which ends with this.
struct Prometheus {
    child: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    /// `None` where it is not installed.
    fn start(scraped: SocketAddr) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let config = format!(
            "global:\n  scrape_interval: 1s\nscrape_configs:\n- job_name: tailbound\n  static_configs:\n  - targets: [\"{scraped}\"]\n"
        );
        std::fs::write(folder.path().join("prometheus.yml"), config).unwrap();
        let started = Command::new("prometheus")
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"])
            .arg("--web.listen-address=127.0.0.1:0")
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut child) = started else {
            skip("prometheus", "there is no prometheus (Debian package prometheus)");
            return None;
        };
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        // The port that it got is in its log.
        let at = lines.by_ref().find_map(|line| {
            let (_, at) = line.split_once("\"Listening on\" address=")?;
            at.split_whitespace().next()?.parse().ok()
        });
        // A pipe that nobody reads would stop it.
        std::thread::spawn(move || lines.for_each(drop));
        let address = at.unwrap_or_else(|| panic!("prometheus ended before it listened"));
        let prometheus = Self { child, address, _folder: folder };
        // It listens before it has read its data.
        let begun = Instant::now();
        while prometheus.get("/-/ready").status != 200 {
            assert!(begun.elapsed() < PATIENCE, "prometheus is not ready");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(prometheus)
    }

    fn get(&self, path: &str) -> Answer {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        asked(self.address, request.as_bytes())
    }

    /// The answer to a question in its language.
    fn query(&self, expression: &str) -> serde_json::Value {
        let mut escaped = String::new();
        for byte in expression.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => escaped.push(char::from(byte)),
                _ => escaped.push_str(&format!("%{byte:02X}")),
            }
        }
        let answer = self.get(&format!("/api/v1/query?query={escaped}")).json();
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        answer["data"]["result"].clone()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_real_prometheus_answers_every_question_of_the_dashboard() {
    let farm = Farm::start(|_| {});
    super::filled(&farm);
    let Some(prometheus) = Prometheus::start(farm.address) else { return };
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/grafana/tailbound.json");
    let dashboard: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(page).unwrap()).unwrap();
    let targets = dashboard["panels"].as_array().unwrap().iter();
    let targets = targets.flat_map(|p| p["targets"].as_array().unwrap());
    let begun = Instant::now();
    for target in targets {
        // What Grafana puts in for "All".
        let expression = target["expr"].as_str().unwrap().replace("$system", ".*");
        while prometheus.query(&expression).as_array().is_none_or(Vec::is_empty) {
            let up = prometheus.query("up");
            assert!(begun.elapsed() < PATIENCE, "no answer to {expression}; up: {up}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    let runs = prometheus.query("tailbound_store_runs");
    assert_eq!(runs[0]["value"][1], "120", "{runs}");
    let latest = prometheus.query("tailbound_latency_max_seconds{window=\"30d\",system=\"press\"}");
    let seconds: f64 = latest[0]["value"][1].as_str().unwrap().parse().unwrap();
    // Four times the usual 9 us, and a little of each day.
    assert!((36e-6..38e-6).contains(&seconds), "{latest}");
}
