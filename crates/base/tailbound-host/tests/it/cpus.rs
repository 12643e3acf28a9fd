// SPDX-License-Identifier: MIT OR Apache-2.0
//! What people may write after `--cpus`, and what they are told when it cannot be.

use tailbound_host::{Cpus, CpusError, Root};

use crate::{Host, set};

fn cpus(host: &Host) -> Cpus {
    Cpus::read(&host.root()).expect("CPUs")
}

fn resolved(cpus: &Cpus, text: &str) -> String {
    match cpus.resolve(text) {
        Ok(set) => format!("ok {set}"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn all_isolated_and_lists() {
    let pc = cpus(&Host::of("rt-pc"));
    assert_eq!(resolved(&pc, "all"), "ok 0-1", "the affinity of the process counts");
    assert_eq!(resolved(&pc, "isolated"), "ok 2-3");
    assert_eq!(resolved(&pc, " 1,3 "), "ok 1,3");
    assert_eq!(pc.housekeeping(&set("2-3")), set("0-1"));
    assert_eq!(pc.housekeeping(&set("0-1")), set("2-3"), "isolated ones if there is no other");
    assert_eq!(pc.housekeeping(&set("0-3")), set(""));
    assert_eq!(pc.housekeeping(&set("2")), set("0-1"), "an isolated CPU stays quiet");
}

#[test]
fn a_partition_isolates_too() {
    let host = Host::of("arm-board");
    assert_eq!(cpus(&host).resolve("isolated"), Err(CpusError::NoneIsolated));
    host.write("sys/fs/cgroup/cpuset.cpus.isolated", "3\n");
    assert_eq!(resolved(&cpus(&host), "isolated"), "ok 3");
}

#[test]
fn what_cannot_be_is_reported_with_what_can() {
    let host = Host::of("vm");
    let vm = cpus(&host);
    assert_eq!(resolved(&vm, "999"), "CPU 999 does not exist; this machine has 0-1");
    assert_eq!(resolved(&vm, "1-3"), "CPUs 2-3 do not exist; this machine has 0-1");
    assert!(resolved(&vm, "").contains("empty"));
    assert!(resolved(&vm, "one").contains("`one` is not a CPU list"));
    assert!(resolved(&vm, "isolated").contains("no CPU is isolated"));
    host.write("sys/devices/system/cpu/online", "0\n");
    let off = resolved(&cpus(&host), "0-1");
    assert!(off.starts_with("CPU 1 is offline; online are 0:"), "{off}");
    let container = cpus(&Host::of("container"));
    let outside = resolved(&container, "1,5");
    assert!(outside.starts_with("CPU 5 is not in this process's cpuset (0-1)"), "{outside}");
    let nothing = tempfile::tempdir().expect("a temporary directory");
    assert!(matches!(Cpus::read(&Root::at(nothing.path())), Err(CpusError::Unreadable(_))));
}

#[test]
fn without_a_cpuset_isolated_cpus_may_still_be_named() {
    let host = Host::of("rt-pc");
    host.remove("sys/fs/cgroup/cpuset.cpus.effective");
    let pc = cpus(&host);
    assert_eq!((pc.cpuset.clone(), resolved(&pc, "2-3")), (None, "ok 2-3".to_owned()));
}
