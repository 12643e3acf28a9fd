// SPDX-License-Identifier: MIT OR Apache-2.0
//! serve: what was answered is kept, however the server ends; tokens; what is refused.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tailbound_core::runfile::write_run;

use crate::{call, folder, read, status, stderr, stdout, tailbound};

const RUN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hostile/data/run.tailbound.jsonl");
/// How often the server is killed; `TAILBOUND_KILLS` asks for more.
const KILLS: u64 = 60;

/// A server that runs, and where.
fn serving(folder: &Path) -> (Child, String) {
    let mut server = tailbound()
        .current_dir(folder)
        .args(["serve", "--listen", "127.0.0.1:0", "--store", "s.sqlite"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(server.stderr.take().unwrap()).read_line(&mut said).unwrap();
    let address = said.split("http://").nth(1).and_then(|rest| rest.split('/').next());
    let address = address.unwrap_or_else(|| panic!("{said}")).to_owned();
    (server, address)
}

/// Run file number `n`, unlike all others.
fn numbered(n: usize) -> Vec<u8> {
    let mut run = read(Path::new(RUN));
    run.header.id = format!("number-{n}");
    write_run(&run, Vec::new()).unwrap()
}

/// Hands in a run; its identity, where the server answered that it has it.
fn handed_in(address: &str, token: &str, file: &[u8]) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    let head = format!(
        "POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        file.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(file).ok()?;
    let mut all = String::new();
    // What came before the end of the server counts.
    let _ = stream.read_to_string(&mut all);
    let body = all.starts_with("HTTP/1.1 20").then(|| all.split("\r\n\r\n").nth(1))??;
    let answer: serde_json::Value = serde_json::from_str(body).ok()?;
    answer["run"].as_str().map(str::to_owned)
}

/// A token of this role, for the store of the folder.
fn token(folder: &Path, role: &str) -> String {
    let out =
        call(folder, &["serve", "token", "add", "bench", "--role", role, "--store", "s.sqlite"]);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    stdout(&out).trim().to_owned()
}

fn locked<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap()
}

#[test]
fn what_was_answered_survives_a_kill_at_any_time() {
    let folder = folder();
    let at = folder.path();
    let token = token(at, "agent");
    let kills = std::env::var("TAILBOUND_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(KILLS);
    let (next, answered) = (AtomicUsize::new(0), Mutex::new(Vec::<(usize, String)>::new()));
    for kill in 0..kills {
        let (mut server, address) = serving(at);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        if let Some(id) = handed_in(&address, &token, &numbered(n)) {
                            locked(&answered).push((n, id));
                        }
                    }
                });
            }
            // Spread over what an upload takes, so that each of its steps is met.
            std::thread::sleep(Duration::from_micros(20_000 + kill * 7_919 % 60_000));
            server.kill().unwrap();
            over.store(true, Ordering::Relaxed);
        });
        server.wait().unwrap();
    }
    let answered = locked(&answered);
    assert!(!answered.is_empty(), "no upload was ever answered");
    for (n, id) in answered.iter() {
        let out = call(at, &["store", "get", id, "-o", "-", "--store", "s.sqlite"]);
        assert_eq!(status(&out), 0, "{id} was answered and is lost: {}", stderr(&out));
        assert!(out.stdout == numbered(*n), "{id} is not what was sent");
    }
    let check = call(
        at,
        &[
            "store",
            "query",
            "SELECT COUNT(*) AS n FROM run WHERE id NOT IN (SELECT run FROM run_file)",
            "--csv",
            "--store",
            "s.sqlite",
        ],
    );
    assert_eq!(stdout(&check).lines().nth(1), Some("0"), "a run without its file");
}

#[test]
fn tokens_are_listed_without_themselves_and_revoked() {
    let folder = folder();
    let at = folder.path();
    let token = token(at, "reader");
    let ls = call(at, &["serve", "token", "ls", "--json", "--store", "s.sqlite"]);
    assert!(stdout(&ls).contains("\"reader\"") && !stdout(&ls).contains(&token), "{}", stdout(&ls));
    for (expected, words) in [(0, "bench"), (2, "bench")] {
        let out = call(at, &["serve", "token", "revoke", words, "--store", "s.sqlite"]);
        assert_eq!(status(&out), expected, "{}", stderr(&out));
    }
}

#[test]
fn what_cannot_be_served_is_said() {
    let folder = folder();
    let at = folder.path();
    std::fs::write(at.join("no.pem"), "nothing").unwrap();
    std::fs::write(
        at.join("no.sqlite"),
        "this is no database, and long enough to be told from one",
    )
    .unwrap();
    for (expected, words, told) in [
        (2, &["serve", "--listen", "0.0.0.0:0", "--store", "s.sqlite"][..], "--cert"),
        (2, &["serve", "--listen", "nowhere", "--store", "s.sqlite"], "nowhere"),
        (2, &["serve", "--cert", "no.pem", "--store", "s.sqlite"], "--key"),
        (2, &["serve", "--webhook", "http://farm.example/x", "--store", "s.sqlite"], "--webhook"),
        (
            3,
            &[
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--cert",
                "no.pem",
                "--key",
                "no.pem",
                "--store",
                "s.sqlite",
            ],
            "no.pem",
        ),
        (2, &["serve", "--store", "no.sqlite"], "no store of Tailbound"),
        (
            2,
            &[
                "serve", "token", "add", "x", "--role", "reader", "--system", "y", "--store",
                "s.sqlite",
            ],
            "agent",
        ),
    ] {
        let out = call(at, words);
        assert_eq!(status(&out), expected, "{words:?}: {}", stderr(&out));
        assert!(stderr(&out).contains(told), "{words:?}: {}", stderr(&out));
    }
}
