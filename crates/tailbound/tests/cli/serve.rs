// SPDX-License-Identifier: MIT OR Apache-2.0
//! serve: what was answered is kept, however the server ends; tokens; what is refused.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tailbound_core::runfile::write_run;

use crate::{call, folder, read, status, stderr, stdout, tailbound};

const RUN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hostile/data/run.tailbound.jsonl");
/// How often the server is killed; `TAILBOUND_KILLS` asks for more.
const KILLS: u64 = 60;
/// How long the first answer of a server is waited for.
const ANSWERED: Duration = Duration::from_secs(30);

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
            // However busy the host is: from the first answer of this server on.
            let (before, began) = (locked(&answered).len(), Instant::now());
            while locked(&answered).len() == before && began.elapsed() < ANSWERED {
                std::thread::sleep(Duration::from_millis(1));
            }
            // Spread over what an upload takes, so that each of its steps is met.
            std::thread::sleep(Duration::from_micros(kill * 7_919 % 60_000));
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

/// Ends the server with the test.
struct Served {
    server: Child,
    address: String,
}

impl Served {
    fn begin(folder: &Path) -> Self {
        let (server, address) = serving(folder);
        Self { server, address }
    }

    /// A figure of the kernel's about it, in its unit.
    fn status(&self, name: &str) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.server.id())).unwrap();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Sends a request, and all or some of its body; the answer is the caller's to read.
    fn sent(&self, head: &str, body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        // What is refused early is closed while it is sent.
        let _ = stream.write_all(body);
        stream
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn upload(token: &str, bytes: usize) -> String {
    format!(
        "POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: {bytes}\r\nConnection: close\r\n\r\n"
    )
}

/// A run file with so many times 2,500 records of seconds, packed.
fn seconds(pieces: usize) -> Vec<u8> {
    let second = "{\"type\":\"second\",\"thread\":0,\"second\":1,\"n\":1,\"max_ns\":1,\"argmax\":1,\"min_ns\":1,\"sum_ns\":1,\"missed\":0}\n";
    let packed = |bytes: &[u8]| {
        let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        to.write_all(bytes).unwrap();
        to.finish().unwrap()
    };
    let whole = numbered(pieces);
    let mut all = packed(whole.split_inclusive(|b| *b == b'\n').next().unwrap());
    all.extend(packed(second.repeat(2_500).as_bytes()).repeat(pieces));
    all
}

#[test]
fn whatever_is_sent_memory_is_bounded_and_the_server_ends_when_it_is_told_to() {
    const GROWTH_KB: u64 = 256 << 10;
    let folder = folder();
    let at = folder.path();
    let token = token(at, "operator");
    let mut served = Served::begin(at);
    assert!(handed_in(&served.address, &token, &numbered(1)).is_some());
    let before_kb = served.status("VmRSS");
    // Uploads that do not end: 24 of 40 MiB.
    let most = vec![b'x'; 40 << 20];
    let unfinished: Vec<TcpStream> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..24)
            .map(|_| scope.spawn(|| served.sent(&upload(&token, most.len() + 1), &most)))
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(served.status("VmHWM") - before_kb < GROWTH_KB, "{} kB", served.status("VmHWM"));
    drop(unfinished);
    // Three million records in a small file, from many at once; and clients that leave at once.
    let bomb = seconds(1_200);
    assert!(bomb.len() < 2 << 20, "{}", bomb.len());
    let bombs: Vec<TcpStream> =
        (0..6).map(|_| served.sent(&upload(&token, bomb.len()), &bomb)).collect();
    for _ in 0..40 {
        drop(served.sent("GET /api/v1/regressions HTTP/1.1\r\nHost: localhost\r\n\r\n", &[]));
        drop(served.sent("GET /runs/1 HTTP/1.1\r\nHost: localhost\r\n\r\n", &[]));
    }
    std::thread::sleep(Duration::from_secs(2));
    assert!(served.status("Threads") < 40, "{}", served.status("Threads"));
    assert!(
        handed_in(&served.address, &token, &numbered(2)).is_some(),
        "an ordinary upload beside it"
    );
    assert!(served.status("VmHWM") - before_kb < GROWTH_KB, "{} kB", served.status("VmHWM"));
    // In the midst of all that.
    let again: Vec<TcpStream> =
        (0..6).map(|_| served.sent(&upload(&token, bomb.len()), &bomb)).collect();
    let told = Instant::now();
    let end = std::process::Command::new("kill").arg(served.server.id().to_string()).status();
    assert!(end.unwrap().success());
    let ended = loop {
        if let Some(ended) = served.server.try_wait().unwrap() {
            break ended;
        }
        assert!(told.elapsed() < Duration::from_secs(30), "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(ended.code(), Some(0));
    assert!(told.elapsed() < Duration::from_secs(12), "{:?}", told.elapsed());
    drop((bombs, again));
}

#[test]
fn a_key_that_everybody_can_read_is_refused_and_plain_http_is_no_way_round() {
    let folder = folder();
    let at = folder.path();
    let pem = |name: &str, what: &str| {
        let text = format!("-----BEGIN {what}-----\nAAAA\n-----END {what}-----\n");
        std::fs::write(at.join(name), text).unwrap();
    };
    pem("farm.pem", "CERTIFICATE");
    pem("farm.key", "PRIVATE KEY");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(at.join("farm.key"), mode).unwrap();
    let out = call(
        at,
        &[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--cert",
            "farm.pem",
            "--key",
            "farm.key",
            "--store",
            "s.sqlite",
        ],
    );
    assert_eq!(status(&out), 3, "{}", stderr(&out));
    assert!(stderr(&out).contains("everybody on this machine can read it"), "{}", stderr(&out));
    let out = call(at, &["serve", "--listen", "0.0.0.0:0", "--store", "s.sqlite"]);
    assert!(stderr(&out).contains("--closed"), "{}", stderr(&out));
}
