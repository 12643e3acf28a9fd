// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pulses from outside, by a simulated box at a pseudo-terminal: run, check and flash as their users see them.

use std::process::Stdio;
use std::time::{Duration, Instant};

use tailbound_core::{Context, EndReason, Impact};

use crate::probe_answer::free_port;
use crate::pty_box::{PtyBox, Weather};
use crate::simulated_box::SimulatedBox;
use crate::{PATIENCE, call, folder, read, send, status, stderr, stdout, tailbound};

/// 6 to 40 µs.
fn quick(_: u8, number: u64) -> Option<u64> {
    Some(400 + number * 7_919 % 2_100)
}

fn with_gaps(_: u8, number: u64) -> Option<u64> {
    (number % 500 != 7).then_some(400)
}

fn words<'a>(via: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut all =
        vec!["box", "run", "--via", via, "-i", "100us", "-D", "1200ms", "-o", "run.jsonl"];
    all.extend(more);
    all
}

#[test]
fn a_machine_in_time_is_met_and_its_run_is_like_any_other() {
    let Some(at) = PtyBox::new(SimulatedBox::new(quick), Weather::default()) else { return };
    let here = folder();
    let via = format!("pico:{}", at.port.display());
    let out = call(here.path(), &words(&via, &["-d", "100us", "--json"]));
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let run = read(&here.path().join("run.jsonl"));
    let of = at.into_box();
    let [thread] = run.threads.as_slice() else { panic!("one channel") };
    let told = of.truth.len() as u64;
    // The last pulse may have been in flight, and is no unanswered one.
    assert!(thread.wakeup.n == told || thread.wakeup.n + 1 == told, "{}", thread.wakeup.n);
    assert_eq!((thread.context, thread.missed.n), (Context::External, 0));
    assert!(thread.wakeup.max_ns <= Some(40_000) && thread.wakeup.min_ns >= Some(6_400));
    assert_eq!(run.end.as_ref().map(|e| e.reason), Some(EndReason::Complete));
    let firmware = concat!(
        "tailbound-box ",
        env!("CARGO_PKG_VERSION_MAJOR"),
        ".",
        env!("CARGO_PKG_VERSION_MINOR")
    );
    assert!(run.header.tool.starts_with(firmware), "{}", run.header.tool);
    for verb in [&["report", "run.jsonl"][..], &["bound", "run.jsonl"], &["show", "run.jsonl"]] {
        let out = call(here.path(), verb);
        assert!([0, 5].contains(&status(&out)), "{verb:?}: {}", stderr(&out));
    }
}

#[test]
fn unanswered_pulses_and_late_ones_are_no_met() {
    let Some(at) = PtyBox::new(SimulatedBox::new(with_gaps), Weather::default()) else { return };
    let here = folder();
    let via = format!("pico:{}", at.port.display());
    let out = call(here.path(), &words(&via, &["-d", "10ms", "--no-samples", "-q"]));
    assert_eq!(status(&out), 5, "{}{}", stdout(&out), stderr(&out));
    let run = read(&here.path().join("run.jsonl"));
    let unanswered = run.findings.iter().find(|f| f.id == "source-unanswered");
    assert_eq!(unanswered.map(|f| f.impact), Some(Impact::Doubt));
    assert!(run.threads[0].missed.n > 0);
    let out = call(here.path(), &words(&via, &["-d", "5us", "--force"]));
    assert_eq!(status(&out), 1, "{}{}", stdout(&out), stderr(&out));
}

#[test]
fn ctrl_c_keeps_the_result_so_far() {
    let Some(at) = PtyBox::new(SimulatedBox::new(quick), Weather::default()) else { return };
    let here = folder();
    let words = [
        "box",
        "run",
        "--via",
        &format!("pico:{}", at.port.display()),
        "-i",
        "1ms",
        "-D",
        "600s",
        "-o",
        "run.jsonl",
    ];
    let mut child = tailbound()
        .args(words)
        .current_dir(here.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    send(child.id(), "INT");
    let ended = child.wait().unwrap();
    assert!(ended.code().is_some(), "{ended:?}");
    let run = read(&here.path().join("run.jsonl"));
    assert_eq!(run.end.as_ref().map(|e| e.reason), Some(EndReason::Interrupted));
    let of = at.into_box();
    assert!(!of.is_measuring(), "the box was stopped");
    let (n, told) = (run.threads[0].wakeup.n, of.truth.len() as u64);
    assert!(n == told || n + 1 == told, "{n} of {told}");
}

#[test]
fn a_kill_leaves_what_was_measured_a_while_before() {
    let Some(at) = PtyBox::new(SimulatedBox::new(quick), Weather::default()) else { return };
    let here = folder();
    let via = format!("pico:{}", at.port.display());
    let words = ["box", "run", "--via", &via, "-i", "1ms", "-D", "600s", "-o", "run.jsonl"];
    let mut child = tailbound()
        .args(words)
        .current_dir(here.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (file, begun) = (here.path().join("run.jsonl"), Instant::now());
    while !file.exists() {
        assert!(begun.elapsed() < PATIENCE && child.try_wait().unwrap().is_none(), "no copy");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let run = read(&file);
    assert_eq!(run.end.as_ref().map(|e| e.reason), Some(EndReason::CutOff));
    assert!(run.findings.iter().any(|f| f.id == "source-ended"), "{:?}", run.findings);
    let told = at.into_box().truth.len() as u64;
    let n = run.threads[0].wakeup.n;
    assert!(0 < n && n <= told, "{n} of {told}");
}

#[test]
fn a_kill_of_the_sender_of_datagrams_leaves_its_pulses_too() {
    let nobody = std::net::UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
    let here = folder();
    let via = format!("linux:{},policy=other,patience=50ms", nobody.local_addr().unwrap());
    let words = ["box", "run", "--via", &via, "-i", "1ms", "-D", "600s", "-q", "-o", "run.jsonl"];
    let child = Ended(tailbound().args(words).current_dir(here.path()).spawn().unwrap());
    wait_for(&here.path().join("run.jsonl"));
    drop(child);
    let run = read(&here.path().join("run.jsonl"));
    assert_eq!(run.end.as_ref().map(|e| e.reason), Some(EndReason::CutOff));
    assert!(run.threads[0].missed.n > 0, "none was answered");
    assert!(run.findings.iter().any(|f| f.id == "source-ended"), "{:?}", run.findings);
}

/// A program that is killed when the test is over.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn wait_for(file: &std::path::Path) {
    let begun = Instant::now();
    while !file.exists() {
        assert!(begun.elapsed() < PATIENCE, "no {}", file.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A folder with an `ssh` that runs its words here, by a shell as sshd does, and `tailbound` beside it.
fn with_ssh() -> (tempfile::TempDir, std::ffi::OsString) {
    use std::os::unix::fs::PermissionsExt as _;
    let here = folder();
    let bin = here.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let script = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\n[ $# = 3 ] || exit 64\n\
        case \"$2\" in\n\
        nowhere) echo 'ssh: Could not resolve hostname nowhere' >&2; exit 255;;\n\
        bare) PATH=/usr/bin:/bin; export PATH;;\n\
        esac\nexec sh -c \"$3\"\n";
    std::fs::write(bin.join("ssh"), script).unwrap();
    std::fs::set_permissions(bin.join("ssh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tailbound"), bin.join("tailbound")).unwrap();
    let mut path = bin.into_os_string();
    path.push(":/usr/bin:/bin");
    (here, path)
}

#[test]
fn a_machine_that_answers_by_ssh_gets_each_word_as_it_is_and_its_run_file_comes_back() {
    let (here, path) = with_ssh();
    let at = format!("127.0.0.1:{}", free_port(std::net::Ipv4Addr::LOCALHOST));
    let via = format!("linux:{at},policy=other,patience=60s");
    let title = "the \"board's\" $HOME; exit 3 `id` \\ *";
    let out = tailbound()
        .args(["box", "run", "--via", &via, "-i", "2ms", "-D", "400ms", "-q", "-o", "run.jsonl"])
        .args(["--answer", "ssh:me@board", "--", "--udp", &at, "-L", "none", "-p", "other"])
        .args(["--title", title])
        .env("PATH", path)
        .current_dir(here.path())
        .output()
        .unwrap();
    assert_eq!(status(&out), 0, "{}{}", stdout(&out), stderr(&out));
    let answers = read(&here.path().join("run.answers.tailbound.jsonl"));
    let purpose = answers.header.purpose.as_ref().and_then(|p| p.title.clone());
    assert_eq!(purpose.as_deref(), Some(title));
    assert_eq!(answers.end.as_ref().map(|e| e.reason), Some(EndReason::Complete));
    let run = read(&here.path().join("run.jsonl"));
    assert!(!run.pulse_joins[0].splits.is_empty(), "{:?}", run.pulse_joins[0].not_joined);
}

#[test]
fn a_host_that_cannot_answer_by_ssh_is_told_what_to_do() {
    for (host, told) in [
        ("nowhere", &["Could not resolve hostname", "ssh itself failed"][..]),
        ("bare", &["no `tailbound` in the PATH"]),
        ("board", &["it ended before it answered", "--address none"]),
    ] {
        let (here, path) = with_ssh();
        let place = format!("ssh:{host}");
        let out = tailbound()
            .args(["box", "run", "--via", "linux:127.0.0.1:9,policy=other", "-D", "400ms", "-q"])
            .args(["-o", "run.jsonl", "--answer", &place, "--", "--udp", "none"])
            .env("PATH", path)
            .current_dir(here.path())
            .output()
            .unwrap();
        assert_eq!(status(&out), 3, "{host}: {}", stderr(&out));
        for words in told {
            assert!(stderr(&out).contains(words), "{host}: {}", stderr(&out));
        }
        let left = std::fs::read_dir(here.path()).unwrap().flatten().map(|e| e.file_name());
        assert_eq!(left.collect::<Vec<_>>(), ["bin"], "{host}: nothing else is left");
    }
}

#[test]
fn who_answers_by_ssh_ends_with_the_pulses_and_says_all_it_knows() {
    let (here, path) = with_ssh();
    let at = format!("127.0.0.1:{}", free_port(std::net::Ipv4Addr::LOCALHOST));
    let via = format!("linux:{at},policy=other,patience=1s");
    let mut child = Ended(
        tailbound()
            .args(["box", "run", "--via", &via, "-i", "2ms", "-D", "600s", "-q", "-o", "run.jsonl"])
            .args(["--answer", "ssh:board", "--", "--udp", &at, "-L", "none", "-p", "other"])
            .env("PATH", path)
            .current_dir(here.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap(),
    );
    // The first copy: pulses are sent.
    wait_for(&here.path().join("run.jsonl"));
    send(child.0.id(), "INT");
    assert!(child.0.wait().unwrap().code().is_some());
    let answers = read(&here.path().join("run.answers.tailbound.jsonl"));
    assert_eq!(answers.end.as_ref().map(|e| e.reason), Some(EndReason::Interrupted));
    let run = read(&here.path().join("run.jsonl"));
    assert_eq!(run.end.as_ref().map(|e| e.reason), Some(EndReason::Interrupted));
    assert!(!run.pulse_joins[0].splits.is_empty(), "{:?}", run.pulse_joins[0].not_joined);
}

#[test]
fn one_command_starts_who_answers_too_and_both_run_files_are_there() {
    let here = folder();
    let at = format!("127.0.0.1:{}", free_port(std::net::Ipv4Addr::LOCALHOST));
    // So patient that no stall of this machine makes an answer one that did not come.
    let via = format!("linux:{at},policy=other,patience=60s");
    let asked = ["box", "run", "--via", &via, "-i", "2ms", "-D", "400ms", "-q", "-o", "run.jsonl"];
    let answer = ["--answer", "here", "--", "--udp", &at, "-L", "none", "-p", "other"];
    // Who answers goes on for longer than pulses are planned; as many of them are its own.
    let out = call(here.path(), &[&asked[..], &answer[..]].concat());
    assert_eq!(status(&out), 0, "{}{}", stdout(&out), stderr(&out));
    assert!(stdout(&out).contains("run.answers.tailbound.jsonl"), "{}", stdout(&out));
    let (run, answers) = (
        read(&here.path().join("run.jsonl")),
        read(&here.path().join("run.answers.tailbound.jsonl")),
    );
    let counted = answers.figures.iter().find(|f| f.name == "answered").map(|f| f.value);
    assert!(counted >= Some(run.threads[0].wakeup.n as f64), "{counted:?}");
    assert_eq!(answers.end.as_ref().map(|e| e.reason), Some(EndReason::Complete));
    let [join] = run.pulse_joins.as_slice() else { panic!("one channel") };
    assert_eq!(join.answers, answers.header.id);
    assert_eq!(join.worst, run.exceedances.len() as u64, "each has its parts or a reason");
    assert!(!join.splits.is_empty(), "{:?}", join.not_joined);
    for split in &join.splits {
        let parts = split.start_ns + split.work_ns + split.rest_ns;
        assert_eq!(parts, split.outside_ns, "{split:?}");
    }
    assert!(stdout(&out).contains("longest pulses are joined"), "{}", stdout(&out));
    // Both files are enough to join them later, and the answer is the same.
    let files = ["box", "join", "run.jsonl", "run.answers.tailbound.jsonl", "-o", "again.jsonl"];
    let out = call(here.path(), &files);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    assert_eq!(read(&here.path().join("again.jsonl")).pulse_joins, run.pulse_joins);
    let out = call(here.path(), &["show", "again.jsonl", "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(value["pulse_joins"][0]["worst"], join.worst);
}

#[test]
fn who_cannot_answer_is_told_before_the_first_pulse_in_its_own_words() {
    let here = folder();
    let via = "linux:127.0.0.1:9,policy=other";
    let asked = ["box", "run", "--via", via, "-D", "400ms", "-q", "-o", "run.jsonl"];
    for (answer, told) in [
        (&["--answer", "here", "--", "--udp", "nowhere"][..], "box answer: it ended before"),
        (&["--answer", "there", "--", "--udp", "x"], "none of here, ssh:HOST"),
    ] {
        let out = call(here.path(), &[&asked[..], answer].concat());
        assert!([2, 3].contains(&status(&out)), "{}", stderr(&out));
        assert!(stderr(&out).contains(told), "{}", stderr(&out));
    }
    assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn a_pulled_cable_is_said_and_what_was_measured_is_kept() {
    let weather = Weather { pulled_after: Some(Duration::from_millis(700)), ..Weather::default() };
    let Some(at) = PtyBox::new(SimulatedBox::new(quick), weather) else { return };
    let here = folder();
    let via = format!("pico:{}", at.port.display());
    let out = call(here.path(), &words(&via, &["-d", "100us", "-D", "30s"]));
    assert_eq!(status(&out), 5, "{}{}", stdout(&out), stderr(&out));
    assert!(stdout(&out).contains("the port is gone"), "{}", stdout(&out));
    let run = read(&here.path().join("run.jsonl"));
    assert_eq!(run.end.as_ref().map(|e| e.reason), Some(EndReason::Failed));
    let n = run.threads[0].wakeup.n;
    let told = at.into_box().truth.len() as u64;
    // What lay unread in the port went with the cable: how much that is depends on the machine.
    assert!(0 < n && n <= told, "{n} of {told}");
}

#[test]
fn a_box_with_its_wire_is_checked_and_one_without_is_refused() {
    for (wire, expected) in [(Some(1), 0), (None, 1), (Some(7), 1)] {
        let mut of = SimulatedBox::new(|_, _| Some(1));
        of.wires[0] = wire;
        let Some(at) = PtyBox::new(of, Weather::default()) else { return };
        let here = folder();
        let via = format!("pico:{}", at.port.display());
        let out = call(here.path(), &["box", "check", "--via", &via]);
        assert_eq!(status(&out), expected, "{}{}", stdout(&out), stderr(&out));
        let words = if expected == 0 { "The box can be used." } else { "connect GPIO 2" };
        assert!(stdout(&out).contains(words), "{}", stdout(&out));
    }
}

#[test]
fn the_firmware_goes_to_a_drive_or_a_file() {
    let here = folder();
    let drive = here.path().join("RPI-RP2");
    std::fs::create_dir(&drive).unwrap();
    std::fs::write(drive.join("INFO_UF2.TXT"), "Model: Raspberry Pi RP2\nBoard-ID: RPI-RP2\n")
        .unwrap();
    let out = call(here.path(), &["box", "flash", "--to", "RPI-RP2"]);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let out = call(here.path(), &["box", "flash", "--chip", "rp2040", "--out", "box.uf2"]);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let written = std::fs::read(drive.join("tailbound-box.uf2")).unwrap();
    assert_eq!(written, std::fs::read(here.path().join("box.uf2")).unwrap());
    let out = call(here.path(), &["box", "flash", "--to", "RPI-RP2", "--chip", "rp2350"]);
    assert_eq!((status(&out), stderr(&out).contains("rp2040")), (2, true), "{}", stderr(&out));
}

#[test]
fn what_is_no_source_is_refused_with_those_that_there_are() {
    let here = folder();
    for (line, expected, words) in [
        ("box run", 2, "--via"),
        ("box run --via scope:1", 2, "pico:PORT"),
        ("box run --via pico:/nonexistent/tty", 3, "/dev/serial/by-id"),
        ("box run --via pico:/dev/null", 3, "no serial port"),
        ("box run --via pico:/dev/null --stimulus blink", 2, "toggle, pulse"),
        ("box run --via pico:/dev/null --spacing odd", 2, "random:SEED"),
        ("box run --via pico:/dev/null -i 0", 2, "--interval"),
        ("box run --via capture:/nonexistent.vcd", 2, "/nonexistent.vcd"),
        ("box check --via capture:x.vcd", 2, "pico:PORT"),
        ("box flash --to .", 3, "INFO_UF2.TXT"),
        ("box flash --chip rp9999", 2, "rp2040"),
    ] {
        let words_of: Vec<&str> = line.split(' ').collect();
        let out = call(here.path(), &words_of);
        assert_eq!(status(&out), expected, "{line}: {}", stderr(&out));
        assert!(stderr(&out).contains(words), "{line}: {}", stderr(&out));
    }
}
