// SPDX-License-Identifier: MIT OR Apache-2.0
//! A real server and a real agent, as processes, and what the tests ask of them.
//!
//! Context: tests. Waits for events, never for times; [`PATIENCE`] ends a test that hangs.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tailbound_agent::client::{Client, PlainHttp, Server};

use crate::certificates;

pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// One run of 0.1 s without loads.
pub(crate) const QUIET: &str =
    "loops = 100\ninterval = \"1ms\"\nwarm-up = \"0s\"\nload = [\"none\"]";
/// One that is never over while a test waits for something else.
pub(crate) const LONG: &str = "duration = \"20min\"\ninterval = \"1ms\"\nload = [\"none\"]";

/// Tests of this file measure on this machine, one at a time.
pub(crate) fn machine() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn tailbound() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailbound"));
    command.env("NO_COLOR", "1");
    command
}

pub(crate) fn campaign(options: &str) -> String {
    format!(
        "name = \"short\"\n[text]\ntitle = \"t\"\nauthors = [\"n\"]\nyear = 2026\nmachine = \"any\"\nabout = \"a\"\n\
         [[system]]\nid = \"any\"\nname = \"any\"\nkind = \"stock\"\n\
         [[step]]\nid = \"short\"\ntitle = \"t\"\ntold = \"t\"\nours = \"the same\"\n[step.run]\n{options}\n"
    )
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), output.stderr.as_slice()].concat())
        .into_owned()
}

/// A process that ends with the test.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    /// SIGTERM, and its end.
    pub(crate) fn ended(mut self) -> Option<i32> {
        let pid = tailbound_sys::process::Pid(self.0.id().try_into().unwrap());
        tailbound_sys::process::kill(pid, 15).unwrap();
        self.0.wait().unwrap().code()
    }

    pub(crate) fn killed(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A folder with a store, tokens of the machine `press` and of an operator, and a certificate.
pub(crate) struct Farm {
    folder: tempfile::TempDir,
    pub(crate) tls: bool,
    /// The store, and where its server and whoever looks into it run: on another disk than the rest.
    disk: Option<crate::small_disk::Disk>,
}

impl Farm {
    pub(crate) fn new(tls: bool) -> Self {
        Self::of(Self { folder: tempfile::tempdir().unwrap(), tls, disk: None })
    }

    /// One whose store is alone on a disk of so many KiB; none where such a disk cannot be made.
    pub(crate) fn on_a_disk_of(kib: u32) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let disk = crate::small_disk::Disk::of(kib, folder.path())?;
        Some(Self::of(Self { folder, tls: false, disk: Some(disk) }))
    }

    fn of(farm: Self) -> Self {
        certificates::write(&farm.at("farm.pem"), &farm.at("farm.key"));
        for (name, role) in [("press", "agent"), ("desk", "operator")] {
            let words = ["serve", "token", "add", name, "--role", role, "--store", farm.store()];
            let made = farm.call(&words);
            assert!(made.status.success(), "{}", said(&made));
            let path = farm.at(&format!("{name}.token"));
            fs::write(&path, &made.stdout).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        farm
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn store(&self) -> &'static str {
        if self.disk.is_some() { crate::small_disk::STORE } else { "s.sqlite" }
    }

    /// The disk of the store, where it is another one.
    pub(crate) fn disk(&self) -> &crate::small_disk::Disk {
        self.disk.as_ref().unwrap()
    }

    /// The program, where the store is.
    fn beside_the_store(&self) -> Command {
        let mut command = match &self.disk {
            None => tailbound(),
            Some(disk) => disk.inside(env!("CARGO_BIN_EXE_tailbound")),
        };
        command.env("NO_COLOR", "1").current_dir(self.path());
        command
    }

    pub(crate) fn call(&self, words: &[&str]) -> Output {
        self.beside_the_store().args(words).output().unwrap()
    }

    /// A server at this port (0: any), and its port.
    pub(crate) fn serve(&self, port: u16, more: &[&str]) -> (Process, u16) {
        let mut command = self.beside_the_store();
        command.args(["serve", "--store", self.store()]);
        command.args(["--listen", &format!("127.0.0.1:{port}")]).args(more);
        if self.tls {
            command.args(["--cert", "farm.pem", "--key", "farm.key"]);
        }
        let mut server = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut words = String::new();
        BufReader::new(server.stderr.take().unwrap()).read_line(&mut words).unwrap();
        let port = words.split("127.0.0.1:").nth(1).and_then(|r| r.split('/').next()?.parse().ok());
        let port = port.unwrap_or_else(|| panic!("the server says: {words}"));
        (Process(server), port)
    }

    pub(crate) fn url(&self, port: u16) -> String {
        if self.tls {
            format!("https://localhost:{port}")
        } else {
            format!("http://127.0.0.1:{port}")
        }
    }

    /// The agent of the press, asking at `port`; what it says goes to `agent.log`.
    pub(crate) fn agent_command(&self, port: u16, more: &[&str]) -> Command {
        let mut command = tailbound();
        command.current_dir(self.path()).args(["agent", "--server", &self.url(port)]);
        command.args(["--token-file", "press.token", "--spool", "spool", "--every", "1s"]);
        if self.tls {
            command.args(["--ca", "farm.pem"]);
        }
        command.args(more).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    pub(crate) fn agent(&self, port: u16, more: &[&str]) -> Process {
        let log = File::options().create(true).append(true).open(self.at("agent.log")).unwrap();
        Process(self.agent_command(port, more).stderr(log).spawn().unwrap())
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.at("agent.log")).unwrap_or_default()
    }

    /// What `serve` says of itself and of work, with the operator's token.
    pub(crate) fn desk(&self, port: u16) -> Client {
        let server = Server {
            url: self.url(port),
            token_file: self.at("desk.token"),
            ca: self.tls.then(|| self.at("farm.pem")),
            plain_http: PlainHttp::Refused,
        };
        Client::open(&server).unwrap()
    }

    /// Hands out a campaign.
    pub(crate) fn hand_out(&self, port: u16, id: &str, options: &str) {
        let order = json!({
            "id": id, "system": "press", "campaign": campaign(options), "of_a_later_version": [1],
        });
        let _: Value = self.desk(port).post("/api/v1/work", &order).unwrap();
    }

    /// The work, once it is in one of these states.
    pub(crate) fn work(&self, port: u16, id: &str, states: &[&str]) -> Value {
        let desk = self.desk(port);
        let path = format!("/api/v1/work/{id}");
        self.until(&format!("{id} is one of {states:?}"), || {
            let work: Value = desk.get(&path, Duration::ZERO).ok()?;
            states.contains(&work["state"].as_str()?).then_some(work)
        })
    }

    /// The first answer; a test that waits too long fails with what the agent said.
    pub(crate) fn until<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(it) = look() {
                return it;
            }
            assert!(begun.elapsed() < PATIENCE, "never: {what}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The agent is known to the server.
    pub(crate) fn heard_of(&self, port: u16) {
        let desk = self.desk(port);
        self.until("the agent asks", || {
            let all: Value = desk.get("/api/v1/agents", Duration::ZERO).ok()?;
            (all["agents"][0]["system"] == "press").then_some(())
        });
    }

    /// Lines of the audit log that contain `what`.
    pub(crate) fn audited(&self, what: &str) -> usize {
        let out = self.call(&["serve", "audit", "-n", "10000", "--store", self.store()]);
        said(&out).lines().filter(|l| l.contains(what)).count()
    }

    /// How many runs the store has.
    pub(crate) fn runs(&self) -> usize {
        let out = self.call(&["store", "ls", "--json", "--store", self.store()]);
        let all: Value = serde_json::from_slice(&out.stdout).unwrap();
        all["runs"].as_array().map_or(0, Vec::len)
    }

    /// Pieces of work in the agent's spool.
    pub(crate) fn spooled(&self) -> usize {
        let entries = fs::read_dir(self.at("spool")).into_iter().flatten().flatten();
        entries.filter(|e| e.path().is_dir()).count()
    }
}
