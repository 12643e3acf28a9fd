// SPDX-License-Identifier: MIT OR Apache-2.0
//! A Prometheus of the test's own, on loopback: it reads metrics each second and answers questions about them.
//!
//! Context: COLD, tests only. Source: prometheus(1), its HTTP API.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::skip;

/// It begins within this, on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// It ends with this.
#[derive(Debug)]
pub struct Prometheus {
    child: Child,
    address: SocketAddr,
}

impl Prometheus {
    /// Begins one that reads `scraped`, and keeps its data in `folder`. `None` where it is not installed, which is said.
    ///
    /// # Panics
    /// It is installed, and does not begin.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "a server of the test's own, which ends with this"
    )]
    pub fn start(folder: &Path, scraped: SocketAddr) -> Option<Self> {
        let config = format!(
            "global:\n  scrape_interval: 1s\nscrape_configs:\n- job_name: tailbound\n  static_configs:\n  - targets: [\"{scraped}\"]\n"
        );
        let file = File::create_new(folder.join("prometheus.yml"));
        let written = file.and_then(|mut file| file.write_all(config.as_bytes()));
        assert!(written.is_ok(), "{}: {written:?}", folder.display());
        let started = Command::new("prometheus")
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"])
            .arg("--web.listen-address=127.0.0.1:0")
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut child) = started else {
            skip("prometheus", "there is no prometheus (Debian package prometheus)");
            return None;
        };
        let mut lines = BufReader::new(child.stderr.take()?).lines().map_while(Result::ok);
        // The port that it got is in its log.
        let at = lines.by_ref().find_map(|line| {
            let (_, at) = line.split_once("\"Listening on\" address=")?;
            at.split_whitespace().next()?.parse().ok()
        });
        // A pipe that nobody reads would stop it.
        std::thread::spawn(move || lines.for_each(drop));
        assert!(at.is_some(), "prometheus ended before it listened");
        let prometheus = Self { child, address: at? };
        // It listens before it has read its data.
        let begun = Instant::now();
        while !prometheus.get("/-/ready").is_some_and(|answer| answer.contains(" 200 ")) {
            assert!(begun.elapsed() < PATIENCE, "prometheus is not ready");
            std::thread::park_timeout(Duration::from_millis(50));
        }
        Some(prometheus)
    }

    fn get(&self, path: &str) -> Option<String> {
        let mut to = TcpStream::connect(self.address).ok()?;
        // Of this version, so that the answer comes in one piece.
        write!(to, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
        let mut answer = String::new();
        to.read_to_string(&mut answer).ok()?;
        Some(answer)
    }

    /// The answer to a question in its language: JSON, as its HTTP API has it.
    #[must_use]
    pub fn query(&self, expression: &str) -> String {
        let mut escaped = String::new();
        for byte in expression.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => escaped.push(char::from(byte)),
                _ => escaped.push_str(&format!("%{byte:02X}")),
            }
        }
        let answer = self.get(&format!("/api/v1/query?query={escaped}")).unwrap_or_default();
        answer.split_once("\r\n\r\n").map_or_else(String::new, |(_, body)| body.to_owned())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
