// SPDX-License-Identifier: MIT OR Apache-2.0
//! The setting `coalescing`: on a tree of files, on a machine that is played, and on a device of
//! the kernel in a network of its own.
//!
//! A tap device counts the packets that wait (`rx-frames`) and takes no time (`rx-usecs`), so both
//! a round trip and a refusal are the kernel's own. It has no hardware, which the folder over
//! /sys/class/net says it has. Source: drivers/net/tun.c (tun_set_coalesce).

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use tailbound_host::Root;
use tailbound_host::root::Found;
use tailbound_host::threads::Thread;
use tailbound_sys::coalescing::{Coalescing, get, set};
use tailbound_tune::journal::{Places, Undone};
use tailbound_tune::{
    Machine, Mode, Moment, Plan, Recipe, Refused, State, Step, System, Target, apply, find, undo,
};

use crate::played::{Played, plan};

const INSIDE: &str = "TAILBOUND_TEST_NETWORK";
const TAP: &str = "tap7";

fn planned(root: &Root, value: &str) -> Plan {
    let profile = format!("name = \"test\"\n[settings]\ncoalescing = \"{value}\"\n");
    Recipe { profile, ..Recipe::default() }.plan(root).expect(value)
}

fn target(device: &str) -> Target {
    Target::Coalescing { device: device.to_owned() }
}

#[test]
fn values_are_times_or_off_and_others_are_refused() {
    let of =
        |value: &str| tailbound_tune::settings::named("coalescing").expect("there").value(value);
    assert_eq!(of("off"), of("0us"));
    assert!(of("10us").is_ok() && of("1ms").is_ok());
    for wrong in ["", "on", "10", "-1us", "1.5us", "2ms", "OFF", "adaptive"] {
        let error = of(wrong).expect_err(wrong).to_string();
        assert!(error.contains("off|0us to 1000us"), "{error}");
    }
}

#[test]
fn a_tree_of_files_is_not_asked() {
    let tree = tempfile::tempdir().expect("a folder");
    for (path, text) in [
        ("sys/devices/system/cpu/online", "0-1\n"),
        ("sys/devices/system/cpu/possible", "0-1\n"),
        ("sys/devices/system/cpu/present", "0-1\n"),
        ("sys/class/net/lo/mtu", "1500\n"),
    ] {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        fs::write(path, text).expect("writable");
    }
    let plan = planned(&Root::at(tree.path()), "off");
    assert_eq!(plan.steps, []);
    let left = plan.left_out.first().expect("a reason");
    assert!(left.why.contains("only the kernel tells") && !left.harmless, "{left:?}");
}

/// Dies between the two calls that a change of a driver's own choice takes.
struct Halfway<'a>(&'a mut Played);

impl System for Halfway<'_> {
    fn read(&self, target: &Target) -> Found<State> {
        self.0.read(target)
    }
    fn write(&mut self, target: &Target, _: &State) -> Result<(), Refused> {
        self.0.write(target, &Some(BETWEEN.to_owned()))?;
        std::panic::resume_unwind(Box::new("killed"));
    }
    fn anchor(&self, target: &Target) -> Option<u64> {
        self.0.anchor(target)
    }
    fn moment(&self) -> Found<Moment> {
        self.0.moment()
    }
    fn threads(&self) -> Found<Vec<Thread>> {
        self.0.threads()
    }
}

const OLD: &str = "rx-usecs 50 rx-frames 32 adaptive-rx on adaptive-tx off";
const BETWEEN: &str = "rx-usecs 50 rx-frames 32 adaptive-rx off adaptive-tx off";
const NEW: &str = "rx-usecs 0 rx-frames 1 adaptive-rx off adaptive-tx off";

#[test]
fn a_kill_between_two_calls_is_undone_and_another_writer_is_not() {
    let name = target("eth0").to_string();
    let one = || {
        let (old, new) = (Some(OLD.to_owned()), Some(NEW.to_owned()));
        let setting = "coalescing".to_owned();
        plan(vec![Step { target: target("eth0"), old, new, setting, may_fail: true }])
    };
    let room = tempfile::tempdir().expect("a folder");
    let places = Places::below(room.path());
    let mut machine = Played::with(&[(&name, OLD)]);
    let undone = |machine: &mut Played, number| {
        let transaction = find(&places, number).expect("readable").expect("there");
        undo(machine, &places, &transaction, Mode::default(), "t").expect("writable").left()
    };
    let killed = |machine: &mut Played, what: &dyn Fn(&mut Halfway<'_>)| {
        assert!(catch_unwind(AssertUnwindSafe(|| what(&mut Halfway(machine)))).is_err());
        assert_eq!(machine.get(&name), BETWEEN);
    };
    // While it was applied.
    killed(&mut machine, &|system| {
        drop(apply(system, &places, &one(), "t", &mut |_, _| ()));
    });
    assert_eq!((undone(&mut machine, 1), machine.get(&name)), (0, OLD));
    // While it was undone.
    let number = apply(&mut machine, &places, &one(), "t", &mut |_, _| ()).expect("made").number;
    killed(&mut machine, &|system| {
        let transaction = find(&places, number).expect("readable").expect("there");
        drop(undo(system, &places, &transaction, Mode::default(), "t"));
    });
    assert_eq!((undone(&mut machine, number), machine.get(&name)), (0, OLD));
    // The same state, set by somebody else after it was applied.
    let number = apply(&mut machine, &places, &one(), "t", &mut |_, _| ()).expect("made").number;
    machine.set(&name, BETWEEN);
    assert_eq!((undone(&mut machine, number), machine.get(&name)), (1, BETWEEN));
}

/// The process in a network of its own; the test below starts it.
#[test]
fn the_one_in_a_network_of_its_own() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let before = Coalescing { rx_frames: 16, ..Coalescing::default() };
    set(TAP, before).expect("a tap device counts packets");
    let root = Root::real();
    let off = planned(&root, "off");
    let changed: Vec<&Target> = off.steps.iter().map(|s| &s.target).collect();
    assert_eq!(changed, [&target(TAP)]);
    assert_eq!(off.script().lines().last(), Some("ethtool -C tap7 rx-frames 1"));
    assert_eq!(off.undo_script().lines().last(), Some("ethtool -C tap7 rx-frames 16"));
    let why = |device: &str| {
        let left = off.left_out.iter().find(|l| l.why.contains(device)).expect(device);
        (left.why.as_str(), left.harmless)
    };
    // Hardware whose driver cannot is "not possible here"; no hardware is nothing to do.
    assert_eq!(why("lo"), ("lo: its driver does not coalesce interrupts", false));
    assert_eq!(why("br7"), ("br7 has no hardware that interrupts", true));

    let room = tempfile::tempdir().expect("a folder");
    let places = Places::below(room.path());
    let mut machine = Machine::new(root.clone());
    let go = |machine: &mut Machine, plan: &Plan| {
        apply(machine, &places, plan, "t", &mut |_, _| ()).expect("applied")
    };
    let back = |machine: &mut Machine, number| {
        let transaction = find(&places, number).expect("readable").expect("there");
        let report = undo(machine, &places, &transaction, Mode::default(), "t").expect("writable");
        report.outcomes.into_iter().map(|(_, outcome)| outcome).collect::<Vec<_>>()
    };
    let applied = go(&mut machine, &off);
    assert_eq!(get(TAP).map(|c| c.rx_frames), Ok(1));
    assert_eq!(planned(&root, "off").steps, [], "so already");
    assert_eq!(back(&mut machine, applied.number), [Undone::Restored]);
    assert_eq!(get(TAP), Ok(before));

    // A time, which this driver does not take: passed over with the reason, nothing changed.
    let applied = go(&mut machine, &planned(&root, "10us"));
    let (_, why) = applied.skipped.first().expect("refused");
    assert!(applied.made == 0 && why.contains("tap7") && why.contains("not supported"), "{why}");
    assert_eq!(get(TAP), Ok(before));
    assert_eq!(back(&mut machine, applied.number), []);

    // What another program set meanwhile is left.
    let applied = go(&mut machine, &off);
    set(TAP, Coalescing { rx_frames: 5, ..before }).expect("set");
    assert!(matches!(back(&mut machine, applied.number).as_slice(), [Undone::Foreign { .. }]));
    assert_eq!(get(TAP).map(|c| c.rx_frames), Ok(5));
    // So that a run that did nothing is not taken for one that did this.
    fs::write(format!("/sys/class/net/{TAP}/was-looked-at"), "").expect("memory");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a child of the test, waited for at once")]
fn a_device_of_the_kernel_there_and_back() {
    let net = "/sys/class/net";
    let setup = format!(
        "set -e; mount -t tmpfs tmpfs {net}; mkdir -p {net}/lo/device {net}/{TAP}/device {net}/br7; \
         ip tuntap add dev {TAP} mode tap"
    );
    let inside = |script: &str| Command::new("unshare").args(["-mn", "sh", "-c", script]).output();
    match inside(&setup) {
        Ok(out) if out.status.success() => {}
        Ok(out) => return tailbound_testing::skip("tap", String::from_utf8_lossy(&out.stderr)),
        Err(e) => return tailbound_testing::skip("tap", format!("unshare: {e}")),
    }
    let exe = std::env::current_exe().expect("this test");
    let test = "coalescing::the_one_in_a_network_of_its_own";
    let script = format!(
        "{setup}; {INSIDE}=1 '{}' --exact {test} --nocapture; \
         test -e {net}/{TAP}/was-looked-at",
        exe.display()
    );
    let out = inside(&script).expect("it starts");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(out.status.success(), "{}{}", said(&out.stdout), said(&out.stderr));
}
