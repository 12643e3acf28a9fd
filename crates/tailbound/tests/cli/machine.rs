// SPDX-License-Identifier: MIT OR Apache-2.0
//! One machine is measured by one fleet or by persons, not by both: who waits, who is refused, and what the run file says.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use tailbound_sys::process::{Pid, kill};

use crate::fleet::{CAMPAIGN, TARGETS};
use crate::{LOCK_FOLDER, PATIENCE, folder, read, status, stderr, tailbound};

const SHORT: [&str; 8] = ["run", "-q", "-l", "100", "-i", "1ms", "--load", "none"];

/// The program on a machine whose lock is in `at`.
fn on(at: &Path, words: &[&str]) -> Command {
    let mut command = tailbound();
    command.args(words).env(LOCK_FOLDER, at).current_dir(at);
    command
}

fn lock(at: &Path) -> File {
    let path = at.join("tailbound.machine");
    File::options().create(true).truncate(false).write(true).open(path).unwrap()
}

/// A run of a person that has begun; it ends with the test.
fn long(at: &Path) -> Child {
    let words =
        [&SHORT[..3], &["1000000", "-i", "1ms", "--load", "none", "-o", "long.jsonl"]].concat();
    let mut child = on(at, &words).stdout(Stdio::null()).spawn().unwrap();
    let (lock, begun) = (lock(at), Instant::now());
    while lock.try_lock().is_ok() {
        lock.unlock().unwrap();
        assert!(
            child.try_wait().unwrap().is_none() && begun.elapsed() < PATIENCE,
            "it has no share"
        );
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    child
}

fn ended(mut child: Child) {
    kill(Pid(child.id().try_into().unwrap()), 15).unwrap();
    child.wait().unwrap();
}

#[test]
fn a_person_is_refused_while_a_fleet_measures_or_waits() {
    let folder = folder();
    let at = folder.path();
    std::fs::write(at.join("short.toml"), CAMPAIGN).unwrap();
    // Not this process: what it starts would have the machine from it.
    let mut fleet = Command::new("flock")
        .args(["tailbound.machine", "cat"])
        .current_dir(at)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while lock(at).try_lock().is_ok() {
        assert!(begun.elapsed() < PATIENCE, "flock(1) does not lock");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let own = format!("(process {})", fleet.id());
    for words in [&SHORT[..], &["campaign", "run", "short.toml", "--yes"]] {
        let out = on(at, words).output().unwrap();
        assert_eq!(status(&out), 3, "{words:?}: {}", stderr(&out));
        for told in ["a fleet or an agent", &own, "--wait-for-machine"] {
            assert!(stderr(&out).contains(told), "{words:?}: {}", stderr(&out));
        }
    }
    assert!(std::fs::read_dir(at).unwrap().count() == 2, "something was written");
    let words = [&SHORT[..], &["--wait-for-machine", "-o", "r.jsonl"]].concat();
    let mut waits = on(at, &words).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut told = String::new();
    BufReader::new(waits.stderr.take().unwrap()).read_line(&mut told).unwrap();
    assert!(told.contains("waits until that is over"), "{told}");
    drop(fleet.stdin.take());
    fleet.wait().unwrap();
    assert_eq!(waits.wait().unwrap().code(), Some(0));
    assert!(read(&at.join("r.jsonl")).findings.iter().all(|f| f.id != "measured-beside"));
}

#[test]
fn persons_measure_beside_each_other_and_the_run_says_so() {
    let folder = folder();
    let at = folder.path();
    let other = long(at);
    let out = on(at, &[&SHORT[..], &["-o", "r.jsonl"]].concat()).output().unwrap();
    let number = other.id();
    ended(other);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let run = read(&at.join("r.jsonl"));
    let beside = run.findings.iter().find(|f| f.id == "measured-beside");
    let title = &beside.unwrap_or_else(|| panic!("{:?}", run.findings)).title;
    assert!(title.contains(&format!("(process {number})")), "{title}");
}

#[test]
fn a_fleet_leaves_a_machine_alone_while_a_person_measures() {
    let folder = folder();
    let at = folder.path();
    std::fs::write(at.join("targets.toml"), TARGETS).unwrap();
    std::fs::write(at.join("short.toml"), CAMPAIGN).unwrap();
    let words = ["fleet", "run", "short.toml", "--on", "targets.toml", "-o", "out", "--yes"];
    let person = long(at);
    let out = on(at, &words).output().unwrap();
    assert_eq!(status(&out), 3, "{}", stderr(&out));
    assert!(String::from_utf8_lossy(&out.stdout).contains("a person measures on it"), "{out:?}");
    ended(person);
    // Its own runs have the machine from it.
    let out = on(at, &words).output().unwrap();
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let run = read(&at.join("out/desk/desk/short.tailbound.jsonl"));
    assert!(run.findings.iter().all(|f| f.id != "measured-beside"), "{:?}", run.findings);
}
