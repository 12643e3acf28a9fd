// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pulses from outside, sent by the test: each that comes is answered once and counted, and what is lost, doubled, out of
//! order or no pulse at all is counted as what it is. No latency of this machine is asserted.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use tailbound_core::{Context, EndReason, Impact, Run};
use tailbound_rt::answer::datagram::{AnswerPacket, BYTES, PulsePacket};
use tailbound_sys::netns;

use crate::{PATIENCE, call, folder, is_root, read, send, skip, status, stderr, tailbound};

/// The program while it answers; ended when it is dropped.
struct Answerer {
    child: Child,
    file: PathBuf,
}

impl Drop for Answerer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Answerer {
    /// Starts it, and waits until it measures.
    fn begun(folder: &Path, words: &[&str]) -> Self {
        let file = folder.join("answers.jsonl");
        let said = folder.join("said");
        let child = tailbound()
            .args(words)
            .args(["-q", "--warm-up", "100ms", "-D", "600s", "--json", "-o", "answers.jsonl"])
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&said).unwrap())
            .spawn()
            .unwrap();
        let mut answerer = Self { child, file };
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let text = std::fs::read_to_string(&answerer.file).unwrap_or_default();
            if text.contains("\"warm-up-over\"") {
                return answerer;
            }
            if let Some(status) = answerer.child.try_wait().unwrap() {
                panic!("{words:?}: {status}: {}", std::fs::read_to_string(said).unwrap());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{words:?} never began");
    }

    /// Waits for its end; its exit status and run.
    fn ended(mut self) -> (i32, Run) {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status.code().unwrap_or(-1), read(&self.file));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("it does not end");
    }

    /// Ends it by Ctrl-C.
    fn interrupted(self) -> Run {
        send(self.child.id(), "INT");
        let (_, run) = self.ended();
        assert_eq!(run.end.as_ref().map(|e| &e.reason), Some(&EndReason::Interrupted));
        run
    }
}

fn figure(run: &Run, name: &str) -> f64 {
    run.figures.iter().find(|f| f.name == name).unwrap_or_else(|| panic!("no {name}")).value
}

fn figures(run: &Run, names: &[&str]) -> Vec<f64> {
    names.iter().map(|name| figure(run, name)).collect()
}

fn has(run: &Run, id: &str) -> Option<Impact> {
    run.findings.iter().find(|f| f.id == id).map(|f| f.impact)
}

/// As many answers in each of the three contexts, and a file whose records agree.
fn is_whole(run: &Run, answers: u64) {
    for context in [Context::User, Context::Start, Context::Work] {
        let all: Vec<u64> =
            run.threads.iter().filter(|t| t.context == context).map(|t| t.wakeup.n).collect();
        assert_eq!(all, [answers], "{}", context.as_str());
    }
    let wrong = run.findings.iter().find(|f| f.id.starts_with("file-"));
    assert!(wrong.is_none(), "{wrong:?}");
    assert!(run.verdict.is_some());
}

/// A port that is free now.
pub(crate) fn free_port(at: Ipv4Addr) -> u16 {
    UdpSocket::bind((at, 0)).unwrap().local_addr().unwrap().port()
}

fn sender_to(at: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    socket.connect(at).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Sends pulse `number` and waits for its answer.
fn ask(socket: &UdpSocket, number: u64) -> AnswerPacket {
    let pulse = PulsePacket { sender: 42, number, token: number ^ 0xffff };
    socket.send(&pulse.bytes()).unwrap();
    let mut bytes = [0; 500];
    let n = socket.recv(&mut bytes).unwrap();
    assert_eq!(n, BYTES, "an answer is as long as its pulse");
    let answer = AnswerPacket::read(&bytes[..n]).unwrap();
    assert_eq!(answer.pulse, pulse);
    answer
}

#[test]
fn what_is_lost_doubled_or_no_pulse_is_counted_as_that() {
    let folder = folder();
    let port = free_port(Ipv4Addr::LOCALHOST);
    let at = format!("127.0.0.1:{port}");
    let answerer = Answerer::begun(folder.path(), &["box", "answer", "--udp", &at, "-L", "none"]);
    let socket = sender_to(at.parse().unwrap());
    // 3 is lost, 4 comes after 5 and twice.
    for number in [0, 1, 2, 5, 4, 4, 6] {
        let answer = ask(&socket, number);
        assert!(answer.arrived_ns == 0 || answer.ran_ns >= answer.arrived_ns);
    }
    let an_answer = AnswerPacket {
        pulse: PulsePacket { sender: 42, number: 7, token: 0 },
        arrived_ns: 1,
        ran_ns: 2,
    };
    for no_pulse in [&b"no pulse"[..], &an_answer.bytes(), &[0; 1000]] {
        socket.send(no_pulse).unwrap();
    }
    // Answered after them: they got none.
    ask(&socket, 7);
    let run = answerer.interrupted();
    is_whole(&run, 8);
    let names = ["answered", "lost", "reordered", "twice", "foreign", "refused", "dropped"];
    assert_eq!(figures(&run, &names), [8.0, 1.0, 1.0, 1.0, 3.0, 0.0, 0.0]);
    assert_eq!(figure(&run, "senders"), 1.0);
    assert_eq!(has(&run, "pulses-lost"), Some(Impact::Doubt));
    assert_eq!(has(&run, "pulses-twice"), Some(Impact::Notice));
    assert_eq!(has(&run, "answer-path"), Some(Impact::Notice));
    assert_eq!(run.header.plan.probe, "answer-udp");
    assert_eq!(run.header.plan.late_word(), "pulse");
}

#[test]
fn each_way_of_waiting_answers_every_pulse() {
    for by in ["poll", "read", "io_uring", "busy"] {
        let folder = folder();
        let port = free_port(Ipv4Addr::LOCALHOST);
        let at = format!("127.0.0.1:{port}");
        let words = ["measure", "answer-udp", "--address", &at, "--by", by, "-p", "other"];
        let answerer = Answerer::begun(folder.path(), &words);
        let socket = sender_to(at.parse().unwrap());
        for number in 0..30 {
            ask(&socket, number);
        }
        let run = answerer.interrupted();
        is_whole(&run, 30);
        assert_eq!(figures(&run, &["answered", "lost", "foreign"]), [30.0, 0.0, 0.0], "{by}");
    }
}

#[test]
fn another_machine_is_answered_and_a_stranger_is_not() {
    if !is_root() {
        return skip("root", "network namespaces");
    }
    let folder = folder();
    let path = folder.path().to_owned();
    // Threads have namespaces of their own: the other tests stay where they are.
    let done = std::thread::spawn(move || {
        let ends = [Ipv4Addr::new(10, 7, 0, 1), Ipv4Addr::new(10, 7, 0, 2)];
        let pair = match netns::veth_pair(ends) {
            Ok(pair) => pair,
            Err(e) => return skip("root", e),
        };
        netns::enter(pair.namespaces[0].as_fd()).unwrap();
        let words = ["measure", "answer-udp", "--address", "0.0.0.0:2307", "--sender", "10.7.0.2"];
        let answerer = Answerer::begun(&path, &words);
        let stranger = sender_to("10.7.0.1:2307".parse().unwrap());
        let pulse = PulsePacket { sender: 1, number: 0, token: 0 };
        stranger.send(&pulse.bytes()).unwrap();
        netns::enter(pair.namespaces[1].as_fd()).unwrap();
        let socket = sender_to("10.7.0.1:2307".parse().unwrap());
        for number in 0..50 {
            ask(&socket, number);
        }
        stranger.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        assert!(stranger.recv(&mut [0; 100]).is_err(), "a stranger was answered");
        let run = answerer.interrupted();
        is_whole(&run, 50);
        assert_eq!(figures(&run, &["answered", "lost", "foreign"]), [50.0, 0.0, 1.0]);
    });
    done.join().unwrap();
}

#[test]
fn one_machine_sends_and_another_answers() {
    let folder = folder();
    let at = format!("127.0.0.1:{}", free_port(Ipv4Addr::LOCALHOST));
    let words = ["box", "answer", "--udp", &at, "-L", "none", "-p", "other"];
    let answerer = Answerer::begun(folder.path(), &words);
    // So patient that no stall of this machine makes an answer one that did not come.
    let via = format!("linux:{at},policy=other,patience=60s");
    let words =
        ["box", "run", "--via", &via, "-i", "2ms", "-D", "400ms", "-q", "-o", "asked.jsonl"];
    let asked = call(folder.path(), &words);
    assert_eq!(status(&asked), 0, "{}", stderr(&asked));
    let run = read(&folder.path().join("asked.jsonl"));
    let [thread] = run.threads.as_slice() else { panic!("one channel") };
    let counted = figures(&run, &["pulses", "answered", "unanswered", "answered-twice", "stray"]);
    let pulses = thread.wakeup.n as f64;
    assert_eq!(counted, [pulses, pulses, 0.0, 0.0, 0.0]);
    assert_eq!(pulses + figure(&run, "skipped"), 200.0);
    assert_eq!((thread.context, &run.header.tool[..5]), (Context::External, "linux"));
    assert!(run.header.source.is_some_and(|s| s.lost.iter().any(|l| l.contains("sent to itself"))));
    let answers = answerer.interrupted();
    assert_eq!(figures(&answers, &["senders", "lost", "twice"]), [1.0, 0.0, 0.0]);
}

#[test]
fn a_latmon_of_ours_gives_what_another_source_measures_and_is_never_met() {
    let folder = folder();
    let at = format!("127.0.0.1:{}", free_port(Ipv4Addr::LOCALHOST));
    let words = ["box", "answer", "--udp", &at, "-L", "none", "-p", "other"];
    let answerer = Answerer::begun(folder.path(), &words);
    let said = folder.path().join("latmon");
    let via = format!("linux:{at}");
    let child = tailbound()
        .args(["box", "latmon", "--listen", "127.0.0.1:0", "--via", &via])
        .stderr(std::fs::File::create(&said).unwrap())
        .spawn()
        .unwrap();
    let latmon = Answerer { child, file: said.clone() };
    let begun = Instant::now();
    let place = loop {
        let text = std::fs::read_to_string(&said).unwrap();
        if let Some(place) = text.lines().find_map(|line| line.strip_prefix("latmon at ")) {
            break place.to_owned();
        }
        assert!(begun.elapsed() < PATIENCE, "{text}");
        std::thread::sleep(Duration::from_millis(20));
    };
    let via = format!("latmon:{place}");
    let words = ["box", "run", "--via", &via, "-D", "3s", "-d", "1h", "-q", "-o", "asked.jsonl"];
    let asked = call(folder.path(), &words);
    assert_ne!(status(&asked), 0, "no deadline is met: {}", stderr(&asked));
    let run = read(&folder.path().join("asked.jsonl"));
    for id in ["source-gives-up", "source-waits"] {
        assert_eq!(has(&run, id), Some(Impact::Doubt), "{id}");
    }
    drop((latmon, answerer));
}

#[test]
fn a_serial_port_is_answered_until_it_goes_away() {
    let Ok((person, terminal)) =
        tailbound_sys::terminal::pair(tailbound_sys::terminal::WindowSize::USUAL)
    else {
        return skip("pseudo-terminal", "none to be had");
    };
    let folder = folder();
    let name = format!("/proc/self/fd/{}", terminal.as_raw_fd());
    let port = std::fs::read_link(name).unwrap().to_string_lossy().into_owned();
    let words = ["box", "answer", "--port", &port, "--frame", "2", "--counting", "-L", "none"];
    let answerer = Answerer::begun(folder.path(), &words);
    for number in [254, 255, 1, 2] {
        assert_eq!(tailbound_sys::ipc::write(person.as_fd(), &[number, 9]).unwrap(), 2);
        let mut answer = [0; 2];
        let mut came = 0;
        while came < 2 {
            came += tailbound_sys::ipc::read(person.as_fd(), &mut answer[came..]).unwrap();
        }
        assert_eq!(answer, [number, 9]);
    }
    drop((person, terminal));
    let (status, run) = answerer.ended();
    assert_eq!(run.end.as_ref().map(|e| &e.reason), Some(&EndReason::Failed));
    assert_eq!(status, i32::from(run.verdict.as_ref().unwrap().outcome.exit_status()));
    assert_eq!(status, 3, "{:?}", run.findings);
    assert_eq!(has(&run, "thread-failed-0"), Some(Impact::Unfit));
    // What was measured is kept.
    for context in [Context::User, Context::Start, Context::Work] {
        let thread = run.threads.iter().find(|t| t.context == context).unwrap();
        assert_eq!(thread.wakeup.n, 4);
    }
    assert_eq!(figures(&run, &["answered", "lost", "torn"]), [4.0, 1.0, 0.0]);
    assert_eq!(has(&run, "pulses-lost"), Some(Impact::Doubt));
}

#[test]
fn what_cannot_be_answered_is_refused_before_anything_starts() {
    let folder = folder();
    let used = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let used = used.local_addr().unwrap().to_string();
    let cases: [(&str, i32, &str); 12] = [
        ("box answer", 2, "--udp"),
        ("box answer --udp 127.0.0.1:1 --port /dev/null", 2, "--port"),
        ("box answer --port /dev/null --sender ::1", 2, "--sender"),
        ("box answer --udp here", 2, "address and a port"),
        ("box answer --udp 127.0.0.1:0 --by luck", 2, "poll, read, io_uring, busy"),
        ("box answer --udp 127.0.0.1:0 --probe cyclic", 2, "--probe"),
        ("box answer --udp 127.0.0.1:0 --sleep timerfd", 2, "--sleep"),
        ("box answer --udp 127.0.0.1:0 -p deadline:1ms/2ms", 2, "SCHED_DEADLINE"),
        ("box answer --udp 192.0.2.1:2307", 3, "192.0.2.1"),
        ("box answer --port /dev/null", 3, "/dev/null"),
        ("measure answer-udp", 2, "--address is needed"),
        ("measure answer-uart", 2, "--port is needed"),
    ];
    let in_use = format!("box answer --udp {used}");
    for (line, expected, hint) in cases.into_iter().chain([(in_use.as_str(), 3, "in use")]) {
        let words: Vec<&str> = line.split(' ').chain(["-D", "1s", "-q"]).collect();
        let out = call(folder.path(), &words);
        let said = stderr(&out);
        assert_eq!(status(&out), expected, "{line}: {said}");
        assert!(said.contains(hint), "{line}: {said}");
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}
