// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is read of each fake host; that the names are the documented ones; that nothing a
//! file may hold stops the reading.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tailbound_core::record::{Fact, Facts};
use tailbound_host::{Root, inventory};

use crate::Host;

const HOSTS: [&str; 4] = ["rt-pc", "arm-board", "container", "vm"];

fn text(facts: &Facts, name: &str) -> String {
    facts.get(name).map_or_else(|| "(absent)".to_owned(), Fact::text)
}

fn check(host: &str, expect: &[(&str, &str)]) {
    let facts = inventory(&Host::of(host).root());
    for (name, want) in expect {
        let got = text(&facts, name);
        assert!(
            got == *want || (want.ends_with('…') && got.starts_with(want.trim_end_matches('…'))),
            "{host}: {name} = {got}, not {want}"
        );
    }
}

#[test]
fn a_real_time_pc() {
    check(
        "rt-pc",
        &[
            ("kernel.preempt", "rt"),
            ("kernel.irq_threads", "true"),
            ("kernel.lockdown", "none"),
            ("kernel.hz", "1000"),
            ("cpu.isolated", "2-3"),
            ("cpu.nohz_full", "2-3"),
            ("power.governor", r#"{"0-1":"powersave","2-3":"performance"}"#),
            ("power.boost", "true"),
            ("power.cpu_dma_latency_us", "2000000000"),
            ("sched.fair_server", r#"{"period_ns":1000000000,"runtime_ns":50000000}"#),
            ("sched.rt_throttling", "not applicable: Linux 6.12…"),
            ("mem.transparent_hugepages", "always"),
            ("kernel.pressure_memory", "1.5"),
            ("virt.kind", "none"),
            ("virt.container", "none"),
            ("virt.steal", "not applicable: this is no guest"),
            ("limits.memlock_bytes", "unlimited"),
        ],
    );
}

#[test]
fn an_arm_board() {
    check(
        "arm-board",
        &[
            ("machine.model", "Example Single Board 4"),
            ("machine.compatible", "example,sbc-4 vendor,soc-2711"),
            ("cpu.model", "ARM implementer 0x41 part 0xd08 revision 3"),
            ("cpu.microcode", "not applicable: …"),
            ("kernel.preempt", "full"),
            ("kernel.hz", "unknown: neither /proc/config.gz…"),
            ("sched.rt_throttling", "950000 of 1000000 us"),
            ("sched.fair_server", "not applicable: …"),
            ("virt.kind", "unknown: no sign of a hypervisor…"),
            ("cgroup.cpu_quota", "0.5"),
            ("limits.rtprio", "0"),
        ],
    );
}

#[test]
fn a_container_without_debugfs() {
    check(
        "container",
        &[
            ("virt.container", "podman"),
            ("cpu.siblings", r#"["0,4","1,5","2,6","3,7"]"#),
            ("cgroup.cpuset", "0-1"),
            ("cgroup.cpu_quota", "2.0"),
            ("kernel.tracer", "unknown: there is no /sys/kernel/tracing"),
            ("kernel.preempt", "unknown: chosen at boot, and neither debugfs…"),
            ("sched.fair_server", "not applicable: Linux before 6.12…"),
            ("power.governor", "not applicable: …"),
            ("limits.capabilities", "[]"),
        ],
    );
}

#[test]
fn a_guest() {
    check(
        "vm",
        &[
            ("virt.kind", "kvm"),
            ("virt.steal", "true"),
            ("virt.container", "none"),
            ("kernel.config_source", "/proc/config.gz"),
            ("kernel.debug_options", r#"["PROVE_LOCKING"]"#),
            ("kernel.preempt", "none"),
            ("sched.rt_throttling", "950000 of 1000000 us"),
            ("sched.fair_server", "unknown: nothing is mounted at /sys/kernel/debug"),
            ("cgroup.rt_runtime_us", "0"),
            ("cgroup.cpu_quota", "0.25"),
        ],
    );
}

#[test]
fn every_name_is_documented_and_every_documented_name_exists() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/facts.md");
    let page = fs::read_to_string(path).expect("docs/facts.md");
    let documented: BTreeSet<String> = page
        .lines()
        .filter_map(|l| l.strip_prefix("- `")?.split_once('`'))
        .map(|(name, _)| name.to_owned())
        .collect();
    for root in HOSTS.iter().map(|h| Host::of(h).root()).chain([Root::real()]) {
        let names: BTreeSet<String> = inventory(&root).into_keys().collect();
        assert_eq!(names, documented);
    }
}

#[test]
fn an_empty_tree_has_no_value_and_claims_none() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for (name, fact) in inventory(&Root::at(dir.path())) {
        assert!(!matches!(fact, Fact::Value(_)), "{name} = {}", fact.text());
    }
}

#[test]
fn rubbish_in_every_file_stops_nothing() {
    for rubbish in ["", "\0\0\0", "-", "((((", "99999999999999999999", "\u{fffd}[", "a:b:c\n;,;\n"]
    {
        let host = Host::of("rt-pc");
        overwrite(host.dir.path(), rubbish);
        let facts = inventory(&host.root());
        assert!(facts.len() > 100, "{rubbish:?}");
        let plan = crate::plan("2-3", &[501, 502]);
        let mut watch = tailbound_host::Watch::begin(
            &host.root(),
            &plan,
            tailbound_host::inventory(&host.root()),
            tailbound_host::Switches::now(&host.root()),
        );
        let _ = watch.tick();
        let _ = watch.end(&[]);
    }
}

fn overwrite(dir: &Path, text: &str) {
    for entry in fs::read_dir(dir).expect("a directory").filter_map(Result::ok) {
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() {
            overwrite(&entry.path(), text);
        } else if kind.is_file() {
            fs::write(entry.path(), text).expect("written");
        }
    }
}
