// SPDX-License-Identifier: MIT OR Apache-2.0
//! fleet on a place of labgrid: a real coordinator, exporter and client on loopback. The board is a server of ssh, a switch of
//! its power, which labgrid's own driver asks over HTTP, ends and starts it, and a port at which its console speaks.
//!
//! Context: tests. Source: labgrid's documentation: places, NetworkService, NetworkPowerPort with the model `simplerest`,
//! NetworkSerialPort, strategies.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tailbound_sys::process::{Pid, descendants, kill};
use tailbound_testing::skip;

use crate::sshd;
use crate::{CAMPAIGN, PATIENCE, logs, machine, send, status, stderr, stdout, tailbound};

/// Where labgrid's programs are: on the path, or where scripts/deps puts them.
fn programs() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_BIN_EXE_tailbound")).parent()?.parent()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all: Vec<PathBuf> = std::env::split_paths(&path).collect();
    all.push(target.join("labgrid/bin"));
    all.into_iter().find(|p| p.join("labgrid-coordinator").exists())
}

/// A serial port that several may read at a time.
#[derive(Clone, Default)]
struct Console(Arc<Mutex<Vec<TcpStream>>>);

impl Console {
    fn serve(&self) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let its = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                its.0.lock().unwrap().push(stream.unwrap());
            }
        });
        port
    }

    fn say(&self, text: &str) {
        self.0.lock().unwrap().retain_mut(|s| s.write_all(text.as_bytes()).is_ok());
    }
}

/// Answers GET /1/0 and /1/1 by ending and starting the server of ssh; what was asked, in order. Its console says that it boots.
fn switch(at: PathBuf, ssh_port: u16, asked: Arc<Mutex<Vec<String>>>, console: Console) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut board = Some(sshd::started(&at, ssh_port));
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().unwrap().unwrap();
            while lines.next().is_some_and(|l| l.is_ok_and(|l| !l.is_empty())) {}
            // `GET /end HTTP/1.1`: the test is over.
            let what = first.split(' ').nth(1).unwrap_or_default().to_owned();
            match what.as_str() {
                "/1/0" => drop(board.take()),
                "/1/1" => {
                    board = Some(sshd::started(&at, ssh_port));
                    console.say("U-Boot\r\npress login: ");
                }
                _ => {}
            }
            asked.lock().unwrap().push(what.clone());
            drop(
                stream.write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                ),
            );
            if what == "/end" {
                break;
            }
        }
    });
    port
}

/// A laboratory with one board, `press`.
struct Laboratory {
    programs: PathBuf,
    coordinator: String,
    daemons: Vec<Child>,
    asked: Arc<Mutex<Vec<String>>>,
    switch: u16,
    console: Console,
    folder: tempfile::TempDir,
}

impl Laboratory {
    /// `None` where it cannot run.
    fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            skip("labgrid", "there is no labgrid-coordinator (scripts/deps test installs labgrid)");
            return None;
        };
        if !sshd::able() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().to_owned();
        let (ssh, _) = sshd::configured(&at, "");
        let asked = Arc::default();
        let console = Console::default();
        let serial = console.serve();
        let switch = switch(at.clone(), ssh, Arc::clone(&asked), console.clone());
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let coordinator = format!("127.0.0.1:{port}");
        let user = stdout(&Command::new("id").arg("-un").output().unwrap());
        let resources = format!(
            "board:\n  NetworkService:\n    address: 127.0.0.1\n    port: {ssh}\n    username: {}\n  NetworkPowerPort:\n    model: simplerest\n    host: 'http://127.0.0.1:{switch}/{{index}}/{{value}}'\n    index: '1'\n  NetworkSerialPort:\n    host: 127.0.0.1\n    port: {serial}\n    protocol: raw\n",
            user.trim()
        );
        fs::write(at.join("exporter.yaml"), resources).unwrap();
        let daemons = Vec::new();
        let mut lab = Self { programs, coordinator, daemons, asked, switch, console, folder };
        let at = lab.coordinator.clone();
        lab.daemon(&["labgrid-coordinator", "-l", &at]);
        lab.wait("the coordinator", |l| TcpStream::connect(&l.coordinator).is_ok());
        let exporter = ["labgrid-exporter", "-c", &at, "--hostname", "127.0.0.1", "-n", "exporter"];
        lab.daemon(&[&exporter[..], &["exporter.yaml"]].concat());
        lab.wait("the exporter", |l| {
            stdout(&l.call(&["labgrid-client", "resources"]).output().unwrap())
                .contains("NetworkService")
        });
        for words in
            [&["create"][..], &["add-match", "exporter/board/*"], &["set-tags", "board=press"]]
        {
            lab.press(words);
        }
        Some(lab)
    }

    fn at(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn environment(&self, command: &mut Command) {
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.programs.display()));
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("LG_COORDINATOR", &self.coordinator);
    }

    fn call(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.programs.join(words[0]));
        command.args(&words[1..]);
        self.environment(&mut command);
        command
    }

    /// What labgrid-client answers about the place.
    fn press(&self, words: &[&str]) -> String {
        let words = [&["labgrid-client", "-p", "press"], words].concat();
        let out = self.call(&words).output().unwrap();
        assert!(out.status.success(), "{words:?}: {}{}", stdout(&out), stderr(&out));
        stdout(&out)
    }

    fn is_free(&self) -> bool {
        self.press(&["show"]).contains("acquired: None")
    }

    fn daemon(&mut self, words: &[&str]) {
        let log = File::create(self.at(&format!("{}.log", words[0]))).unwrap();
        let also = log.try_clone().unwrap();
        self.daemons.push(self.call(words).stdout(log).stderr(also).spawn().unwrap());
    }

    fn wait(&self, what: &str, is: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !is(self) {
            if begun.elapsed() > PATIENCE {
                panic!("{what}: it did not come to be:\n{}", logs(self.folder.path()));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn fleet(&self, words: &[&str]) -> Command {
        let mut command = tailbound();
        command.arg("fleet").args(words);
        self.environment(&mut command);
        command
    }

    fn run(&self, campaign: &str, targets: &str, out: &str) -> Command {
        let words = ["run", campaign, "--on", targets, "-o", out, "--yes", "--format", "ktap"];
        self.fleet(&words)
    }

    /// A long campaign, once its run has begun.
    fn begin(&self, targets: &str, out: &str) -> Child {
        let said = self.at(&format!("{out}.said"));
        let mut command = self.run("long.toml", targets, out);
        command.stdout(Stdio::piped()).stderr(File::create(&said).unwrap());
        let child = command.spawn().unwrap();
        self.wait(out, |_| fs::read_to_string(&said).unwrap_or_default().contains("short begins"));
        child
    }
}

impl Drop for Laboratory {
    fn drop(&mut self) {
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.switch)) {
            drop(stream.write_all(b"GET /end HTTP/1.1\r\n\r\n"));
        }
        for daemon in self.daemons.iter_mut().rev() {
            send(daemon.id(), "KILL");
            drop(daemon.wait());
        }
    }
}

#[test]
fn a_place_of_labgrid_is_acquired_cycled_measured_and_given_back() {
    let Some(lab) = Laboratory::start() else { return };
    let _machine = machine();
    let write = |file: &str, text: &str| fs::write(lab.at(file), text).unwrap();
    let scratch = lab.at("scratch").display().to_string();
    let common = format!(
        "[[target]]\nname = \"press\"\nengine = \"labgrid\"\ncoordinator = \"{}\"\nconfig = \"ssh_config\"\nfolder = \"{scratch}\"\ncpus = \"0\"\n",
        lab.coordinator
    );
    let press = format!("{common}place = \"press\"\n");
    write("press.toml", &press);
    write("cycled.toml", &format!("{common}place-tags = [\"board=press\"]\npower-cycle = true\n"));
    write("short.toml", CAMPAIGN);
    write("long.toml", &CAMPAIGN.replace("loops = 200", "loops = 600000"));
    write("middle.toml", &CAMPAIGN.replace("loops = 200", "loops = 15000"));

    // By a reservation, after its power was off and on; then the place is given back.
    let first = lab.run("short.toml", "cycled.toml", "out").output().unwrap();
    assert_eq!(status(&first), 0, "{}{}", stdout(&first), stderr(&first));
    assert_eq!(stdout(&first), "KTAP version 1\n1..1\nok 1 press.short\n");
    assert_eq!(*lab.asked.lock().unwrap(), ["/1/0", "/1/1"]);
    assert!(lab.at("out/press/press/short.tailbound.jsonl").exists());
    assert!(lab.is_free());

    // A person's place is theirs: nothing is measured, nothing is switched.
    lab.press(&["acquire"]);
    let held = lab.run("short.toml", "press.toml", "held").output().unwrap();
    assert_eq!(status(&held), 3, "{}", stderr(&held));
    assert!(stdout(&held).contains("has the place press"), "{}", stdout(&held));
    let words = ["power", "cycle", "--on", "press.toml", "--target", "press"];
    let refused = lab.fleet(&words).output().unwrap();
    assert_eq!(status(&refused), 3, "{}", stdout(&refused));
    assert_eq!(lab.asked.lock().unwrap().len(), 2, "a person's board was switched");
    lab.press(&["release"]);

    // By hand, when it is free.
    let switched = lab.fleet(&words).output().unwrap();
    assert_eq!(status(&switched), 0, "{}{}", stdout(&switched), stderr(&switched));
    assert_eq!(lab.asked.lock().unwrap()[2..], ["/1/0", "/1/1"]);
    let words = ["targets", "--on", "press.toml"];
    let free = lab.fleet(&words).output().unwrap();
    assert!(status(&free) == 0 && stdout(&free).contains("free"), "{}", stdout(&free));

    // Taken away in the midst of a run: said, noted, not repeated; who has it now keeps it.
    let said = lab.at("taken.said");
    let mut taken = lab.run("middle.toml", "press.toml", "taken");
    taken.stdout(Stdio::piped()).stderr(File::create(&said).unwrap());
    let taken = taken.spawn().unwrap();
    lab.wait("taken", |_| fs::read_to_string(&said).unwrap().contains("short begins"));
    lab.press(&["release", "--kick"]);
    lab.press(&["acquire"]);
    let lost = taken.wait_with_output().unwrap();
    assert_eq!(status(&lost), 5, "{}", stdout(&lost));
    assert!(stdout(&lost).contains("lease was lost"), "{}", stdout(&lost));
    assert!(!lab.is_free(), "what somebody else has was given back");
    assert!(lab.at("taken/.fleet/press/lease.lost").exists());
    lab.press(&["release"]);

    // However a fleet run ends, the place is free again.
    for signal in ["KILL", "INT"] {
        let mut child = lab.begin("press.toml", signal);
        send(child.id(), signal);
        child.wait().unwrap();
        lab.wait("the place", Laboratory::is_free);
    }
}

/// Powers the board with labgrid's own driver, and reads its console until it has booted.
const STRATEGY: &str = r#"
import attr
from labgrid.factory import target_factory
from labgrid.strategy import Strategy, StrategyError

@target_factory.reg_driver
@attr.s(eq=False)
class PressStrategy(Strategy):
    bindings = {"power": "PowerProtocol", "console": "ConsoleProtocol"}

    def transition(self, state):
        if state != "booted":
            raise StrategyError(f"the press has no state {state}")
        self.target.activate(self.console)
        self.target.activate(self.power)
        self.power.cycle()
        self.console.expect("login: ", timeout=60)
"#;

const ENVIRONMENT: &str = "targets:
  press:
    resources:
      RemotePlace:
        name: press
    drivers:
      NetworkPowerDriver: {}
      SerialDriver: {}
      PressStrategy: {}
imports:
- strategy.py
";

/// Processes whose words contain `word`.
fn processes(word: &str) -> Vec<u32> {
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|e| e.file_name().to_str()?.parse().ok());
    let is = |p: &u32| {
        let words = fs::read(format!("/proc/{p}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(word)
    };
    numbers.filter(is).collect()
}

#[test]
fn a_strategy_of_labgrid_boots_the_board_and_its_console_says_why_it_died() {
    let Some(lab) = Laboratory::start() else { return };
    let _machine = machine();
    let write = |file: &str, text: &str| fs::write(lab.at(file), text).unwrap();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let scratch = lab.at("scratch").display().to_string();
    let common = format!(
        "[[target]]\nname = \"press\"\nengine = \"labgrid\"\nconfig = \"ssh_config\"\nfolder = \"{scratch}\"\ncpus = \"0\"\nplace = \"press\"\nenvironment = \"environment.yaml\"\n"
    );
    let booted = format!("{common}state = \"booted\"\n");
    write("booted.toml", &format!("{booted}kernel = \"{}\"\n", kernel.trim()));
    write("other.toml", &format!("{booted}kernel = \"0.1-rt\"\n"));
    write("nowhere.toml", &format!("{common}state = \"nowhere\"\n"));
    write("unheard.toml", &format!("{booted}console = \"uart2\"\n"));
    write("environment.yaml", ENVIRONMENT);
    write("strategy.py", STRATEGY);
    write("short.toml", CAMPAIGN);
    write("long.toml", &CAMPAIGN.replace("loops = 200", "loops = 600000"));
    // Its kernel speaks all the time.
    let console = lab.console.clone();
    let lives = Arc::new(AtomicBool::new(true));
    let still = Arc::clone(&lives);
    std::thread::spawn(move || {
        while still.load(Relaxed) {
            console.say("[    1.0] a line of its kernel\r\n");
            std::thread::sleep(Duration::from_millis(20));
        }
    });

    // Booted by its strategy, measured, given back; its console is kept beside what is noted of the run.
    let first = lab.run("short.toml", "booted.toml", "out").output().unwrap();
    assert_eq!(status(&first), 0, "{}{}", stdout(&first), stderr(&first));
    assert_eq!(stdout(&first), "KTAP version 1\n1..1\nok 1 press.short\n");
    assert_eq!(*lab.asked.lock().unwrap(), ["/1/0", "/1/1"]);
    let kept = fs::read_to_string(lab.at("out/.fleet/press/short.console.txt")).unwrap();
    assert!(kept.contains("] a line of its kernel\n"), "{kept}");
    assert!(lab.is_free());

    // What did not boot, or booted something else, is not measured.
    for (targets, why) in [
        ("nowhere.toml", "the press has no state nowhere"),
        ("other.toml", &format!("it runs the kernel {}", kernel.trim()) as &str),
        ("unheard.toml", "the place has no console `uart2`; it has: NetworkSerialPort"),
    ] {
        let refused = lab.run("short.toml", targets, targets.split('.').next().unwrap());
        let refused = { refused }.output().unwrap();
        assert_eq!(status(&refused), 3, "{}", stderr(&refused));
        assert!(stdout(&refused).contains(why), "{}{}", stdout(&refused), stderr(&refused));
        assert!(lab.is_free(), "after {targets}");
    }

    // However a fleet run ends, its strategy's drivers end with it.
    let mut killed = lab.begin("booted.toml", "killed");
    let environment = "environment.yaml\0--place\0press";
    assert!(!processes(environment).is_empty(), "who serves the board?");
    send(killed.id(), "KILL");
    killed.wait().unwrap();
    lab.wait("the place", |l| l.is_free() && processes(environment).is_empty());

    // The board dies in the midst of a run: what its console said last is in the reason.
    let dies = lab.begin("booted.toml", "dies");
    lives.store(false, Relaxed);
    lab.console.say("Kernel panic - not syncing: \x1b[31mtested\r\n");
    // The sessions of its sshd with all that runs in them, not the sshd itself.
    let served = lab.at("sshd_config").display().to_string();
    let sshds = processes(&served).into_iter().map(|p| Pid(p.try_into().unwrap()));
    for process in sshds.flat_map(descendants) {
        // One may have ended with another.
        drop(kill(process, 9));
    }
    let died = dies.wait_with_output().unwrap();
    assert_eq!(status(&died), 5, "{}", stdout(&died));
    let told = stdout(&died);
    assert!(told.contains("lease was lost") && told.contains("its console said last: "), "{told}");
    assert!(told.contains("Kernel panic - not syncing: "), "{told}");
    let said = fs::read_to_string(lab.at("dies.said")).unwrap();
    assert!(said.contains("console: Kernel panic - not syncing: "), "{said}");
    assert!(!said.contains('\x1b'), "{said}");
    lab.wait("the place", Laboratory::is_free);
}
