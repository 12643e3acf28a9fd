// SPDX-License-Identifier: MIT OR Apache-2.0
//! A server of the test's own, a client of few lines, and run files of machines that never were.
//!
//! Context: tests. The run files are written by the run file's own writer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tailbound_core::record::{End, Fact, Header, SecondRecord, ThreadRecord};
use tailbound_core::{EndReason, Run, runfile, utc};
use tailbound_fleet::serve::{Clock, Config, serve, tokens};
use tailbound_store::{Role, Store, StoreLocation, Token};

/// 2026-11-25T12:00:00Z
pub(crate) const NOW_S: i64 = 1_795_608_000;

const HEADER: &str = r#"{"schema":"tailbound-run/1","tool":"tailbound 0.1.0","id":"test","started":"","command":["tailbound","run"],
 "plan":{"probe":"cyclic","interval_ns":1000000,"activations":20000,"warm_up_ns":0,"cpus":"0","policy":"fifo:95","clock":"monotonic",
 "means":"nanosleep","loads":["hackbench"],"requirement":{"deadline_ns":100000,"early_ns":null,"class":"hard","rate":null,"confidence":0.95},
 "raw":false,"paranoid":false},"machine":{}}"#;

/// A run that never was.
#[derive(Clone)]
pub(crate) struct Planted<'a> {
    pub(crate) model: &'a str,
    pub(crate) id: String,
    pub(crate) started_s: i64,
    pub(crate) release: &'a str,
    pub(crate) governor: &'a str,
    pub(crate) loads: &'a str,
    /// Most activations are about as late.
    pub(crate) usual_ns: i64,
    /// The latest one.
    pub(crate) max_ns: i64,
    /// So that no two nights are the same.
    pub(crate) shift_ns: i64,
    /// Whether the file has a record of each second; without them it cannot be judged.
    pub(crate) seconds: Seconds,
}

/// What a planted file says of its seconds.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Seconds {
    None,
    All,
}

impl Planted<'_> {
    /// Its file: 20,000 activations.
    pub(crate) fn file(&self) -> Vec<u8> {
        let header = HEADER.replace("\"hackbench\"", &format!("\"{}\"", self.loads));
        let mut header: Header = serde_json::from_str(&header).unwrap();
        header.started = utc::rfc3339(self.started_s);
        header.id.clone_from(&self.id);
        let facts = [
            ("kernel.release", self.release),
            ("machine.model", self.model),
            ("cpu.model", "Example <CPU>"),
            ("cpu.governor", self.governor),
        ];
        header.machine =
            facts.iter().map(|(name, value)| ((*name).to_owned(), Fact::of(*value))).collect();
        let mut run = Run::new(header);
        let mut thread = ThreadRecord {
            cpu: Some(0),
            context: "user".into(),
            ended: "complete".into(),
            ..ThreadRecord::default()
        };
        for (percent, n) in [(100, 10_000), (110, 9_000), (150, 900), (200, 90), (300, 9)] {
            thread.wakeup.add_many(self.usual_ns * percent / 100 + self.shift_ns, n);
        }
        thread.wakeup.add(self.max_ns);
        let least = self.usual_ns + self.shift_ns;
        let seconds: i64 = if self.seconds == Seconds::All { 20 } else { 0 };
        for second in 0..seconds {
            let usual_ns = self.usual_ns * (20 + second * 7 % 5) / 10;
            run.seconds.push(SecondRecord {
                thread: 0,
                second: second.unsigned_abs(),
                n: 1_000,
                max_ns: if second == 13 { self.max_ns } else { usual_ns },
                argmax: 0,
                min_ns: least,
                sum_ns: 1_000 * (least + 10),
                missed: 0,
            });
        }
        run.threads.push(thread);
        run.end = Some(End { reason: EndReason::Complete, measured_ns: 20_000_000_000, lines: 0 });
        runfile::write_run(&run, Vec::new()).unwrap()
    }
}

/// A run of `model` that began `days` before now: 20,000 activations, most of them at about `usual_ns`.
pub(crate) fn run(model: &str, days: i64, release: &str, usual_ns: i64) -> Vec<u8> {
    let planted = Planted {
        model,
        id: format!("{model} {days}"),
        started_s: NOW_S - days * 86_400,
        release,
        governor: "performance",
        loads: "hackbench",
        usual_ns,
        // A little of everything, so that no two days are the same.
        max_ns: usual_ns * 4 + days * 131 % 17 * 100,
        shift_ns: days * 37 % 11 * 10,
        seconds: Seconds::None,
    };
    planted.file()
}

/// A server that runs.
pub(crate) struct Farm {
    pub(crate) address: SocketAddr,
    pub(crate) place: StoreLocation,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

impl Farm {
    pub(crate) fn start(change: impl FnOnce(&mut Config)) -> Self {
        Self::start_at(Arc::new(AtomicI64::new(NOW_S)), change)
    }

    /// The same with a clock that the test moves.
    pub(crate) fn start_at(clock: Arc<AtomicI64>, change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = StoreLocation::File(folder.path().join("farm.sqlite"));
        let mut config = Config::new(place.clone(), "127.0.0.1:0".parse().unwrap());
        change(&mut config);
        let place = config.store.clone();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (ready, address) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let stopped = async {
                let _ = stopped.await;
            };
            let ready = |at| ready.send(at).unwrap();
            let clock = Clock(Arc::new(move || clock.load(Ordering::Relaxed)));
            serve(config, clock, ready, stopped).unwrap();
        });
        let address = address.recv_timeout(Duration::from_secs(30)).unwrap();
        Self { address, place, stop: Some(stop), thread: Some(thread), _folder: folder }
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.place, "2026-11-25T12:00:00Z").unwrap()
    }

    /// Waits until every series was looked at.
    pub(crate) fn looked(&self) {
        let began = std::time::Instant::now();
        let mut store = self.store();
        while !store.due_series(tailbound_store::Whose::All, 1).unwrap().is_empty() {
            assert!(began.elapsed() < Duration::from_secs(120), "series are not looked at");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// A token of this role; an agent's is for the machine `press`.
    pub(crate) fn token(&self, role: Role) -> String {
        self.kept(role, (role == Role::Agent).then_some("press"))
    }

    /// A token of an agent of this machine.
    pub(crate) fn token_of(&self, system: &str) -> String {
        self.kept(Role::Agent, Some(system))
    }

    fn kept(&self, role: Role, system: Option<&str>) -> String {
        let (id, token) = tokens::made().unwrap();
        let (name, system) = (role.as_str().to_owned(), system.map(str::to_owned));
        let kept = Token { id, name, role, system, created: "2026".to_owned(), revoked: None };
        self.store().keep_token(&kept, &tokens::hashed(&token)).unwrap();
        token
    }

    /// An answer to a request: status, head, body.
    pub(crate) fn ask(&self, request: &[u8]) -> HttpReply {
        asked(self.address, request)
    }

    pub(crate) fn get(&self, path: &str, token: Option<&str>) -> HttpReply {
        let bearer = token.map_or_else(String::new, |t| format!("Authorization: Bearer {t}\r\n"));
        self.ask(
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{bearer}Connection: close\r\n\r\n")
                .as_bytes(),
        )
    }

    pub(crate) fn post(&self, path: &str, token: Option<&str>, body: &[u8]) -> HttpReply {
        let bearer = token.map_or_else(String::new, |t| format!("Authorization: Bearer {t}\r\n"));
        let mut request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\n{bearer}Content-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        )
        .into_bytes();
        request.extend(body);
        self.ask(&request)
    }
}

/// What any server answers to a request.
pub(crate) fn asked(server: SocketAddr, request: &[u8]) -> HttpReply {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // A server that refuses early closes before all is sent.
    let _ = stream.write_all(request);
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    HttpReply::read(&all)
}

impl Drop for Farm {
    fn drop(&mut self) {
        self.stop.take().map(|stop| stop.send(()));
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            panic!("the server ended in a panic");
        }
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct HttpReply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl HttpReply {
    pub(crate) fn read(all: &[u8]) -> Self {
        let end = all.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or(all.len());
        let head = String::from_utf8_lossy(&all[..end]).to_lowercase();
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
        let mut body = all.get(end + 4..).unwrap_or_default().to_vec();
        if head.contains("transfer-encoding: chunked") {
            body = unchunked(&body);
        }
        Self { status, head, body }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

fn unchunked(mut from: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = from.windows(2).position(|w| w == b"\r\n") {
        let n = usize::from_str_radix(&String::from_utf8_lossy(&from[..end]), 16).unwrap();
        body.extend(&from[end + 2..end + 2 + n]);
        from = from.get(end + 4 + n..).unwrap_or_default();
    }
    body
}
