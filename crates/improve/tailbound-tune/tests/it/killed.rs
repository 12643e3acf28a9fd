// SPDX-License-Identifier: MIT OR Apache-2.0
//! kill -9 at every single call, of a real process with a real journal over a tree of files.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tailbound_host::Root;
use tailbound_sys::process::{self, Pid};
use tailbound_tune::journal::{self, Places};
use tailbound_tune::{Codec, Machine, Mode, Plan, Step, System as _, Target, apply, undo};

use crate::mortal::Mortal;

const ROOM: &str = "TAILBOUND_TEST_ROOM";
const DIES_AT: &str = "TAILBOUND_TEST_DIES_AT";
const SIGKILL: i32 = 9;

fn death() {
    process::kill(Pid(std::process::id().cast_signed()), SIGKILL).expect("own process");
}

fn furnish(room: &Path) {
    let files = [
        ("proc/sys/vm/swappiness", "60\n"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always\n"),
        ("proc/irq/default_smp_affinity", "f\n"),
        ("etc/keep.conf", "old\n"),
    ];
    for (path, text) in files {
        let path = room.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        fs::write(path, text).expect("writable");
    }
    fs::create_dir_all(room.join("sys/fs/cgroup")).expect("writable");
}

fn the_plan() -> Plan {
    let file = |path: &str| Target::File { path: path.to_owned() };
    let step = |target: Target, old: Option<&str>, new: Option<&str>| Step {
        target,
        old: old.map(str::to_owned),
        new: new.map(str::to_owned),
        setting: "test".to_owned(),
        may_fail: false,
    };
    Plan {
        format: 1,
        name: "killed".to_owned(),
        steps: vec![
            step(Target::setting("/proc/sys/vm/swappiness", Codec::Number), Some("60"), Some("10")),
            step(
                Target::setting("/sys/kernel/mm/transparent_hugepage/enabled", Codec::Choice),
                Some("always"),
                Some("never"),
            ),
            step(Target::Group { path: "/sys/fs/cgroup/rt".to_owned() }, None, Some("new")),
            step(
                Target::setting("/proc/irq/default_smp_affinity", Codec::Mask),
                Some("0-3"),
                Some("0-1"),
            ),
            step(file("/etc/keep.conf"), Some("old\n"), Some("new\n")),
            step(file("/etc/made.d/x.conf"), None, Some("x\n")),
        ],
        ..Plan::default()
    }
}

/// Every file's text, with the form in which the kernel would show it.
fn look(room: &Path) -> BTreeMap<String, String> {
    let machine = Machine::new(Root::at(room));
    let state = |target: &Target| match machine.read(target) {
        Ok(Some(text)) if !matches!(target, Target::Group { .. }) => text,
        Ok(Some(_)) => "there".to_owned(),
        Ok(None) => "absent".to_owned(),
        Err(e) => e.to_string(),
    };
    the_plan().steps.iter().map(|s| (s.target.to_string(), state(&s.target))).collect()
}

/// The process that is killed; the test below starts it.
#[test]
fn the_one_that_is_killed() {
    let (Ok(room), Ok(dies_at)) = (std::env::var(ROOM), std::env::var(DIES_AT)) else { return };
    let room = Path::new(&room);
    let mut system = Mortal {
        machine: &mut Machine::new(Root::at(room)),
        calls: Cell::new(0),
        dies_at: dies_at.parse().expect("a number"),
        death,
    };
    let applied = apply(&mut system, &Places::below(room), &the_plan(), "t", &mut |_, _| ());
    applied.expect("nothing refuses in a tree of files");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a child of the test, waited for at once")]
fn a_kill_after_every_single_operation_is_undone_exactly() {
    let exe = std::env::current_exe().expect("this test");
    let mut survived = false;
    for dies_at in 1..200 {
        let room = tempfile::tempdir().expect("a folder");
        furnish(room.path());
        let before = look(room.path());
        let status = std::process::Command::new(&exe)
            .args(["--exact", "killed::the_one_that_is_killed", "--quiet"])
            .env(ROOM, room.path())
            .env(DIES_AT, dies_at.to_string())
            .output()
            .expect("it starts")
            .status;
        let places = Places::below(room.path());
        for transaction in journal::all(&places).expect("readable").iter().rev() {
            let mut machine = Machine::new(Root::at(room.path()));
            let report = undo(&mut machine, &places, transaction, Mode::default(), "t")
                .expect("the journal can be written");
            assert_eq!(report.left(), 0, "killed at call {dies_at}: {report:?}");
        }
        assert_eq!(look(room.path()), before, "killed at call {dies_at}");
        if status.success() {
            survived = true;
            break;
        }
    }
    assert!(survived, "the plan has fewer calls than that");
}
