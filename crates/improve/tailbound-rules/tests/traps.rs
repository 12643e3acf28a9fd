// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traps that other tools fell into, each a small tree of files; and what must hold on any tree.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tailbound_core::CpuSet;
use tailbound_host::Root;
use tailbound_rules::{
    Answers, CheckScope, Glance, Level, Machine, Sample, ShownChecks, Workload, catalogue,
    preconditions,
};

/// A tree of files.
struct Tree(tempfile::TempDir);

impl Tree {
    /// A machine with four CPUs of which nothing else is known.
    fn new(release: &str) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        tree.file("proc/sys/kernel/osrelease", release);
        tree.file("sys/devices/system/cpu/online", "0-3");
        tree.file("sys/devices/system/cpu/present", "0-3");
        tree.file("proc/cmdline", "root=/dev/sda1 quiet");
        tree
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    fn folder(&self, path: &str) {
        fs::create_dir_all(self.0.path().join(path)).unwrap();
    }

    fn root(&self) -> Root {
        Root::at(self.0.path())
    }

    fn levels(
        &self,
        sample: Option<Sample>,
        workload: Workload,
    ) -> BTreeMap<&'static str, (Level, String)> {
        let wanted = CheckScope { rt_cpus: cpus("2-3"), workload, ..CheckScope::default() };
        let machine = Machine::read(&self.root(), wanted, sample);
        catalogue()
            .iter()
            .map(|c| {
                let seen = c.seen(&machine);
                (c.id, (seen.level, seen.found))
            })
            .collect()
    }

    fn level(&self, id: &str) -> (Level, String) {
        self.levels(None, Workload::Cyclic)[id].clone()
    }
}

fn cpus(text: &str) -> CpuSet {
    text.parse().unwrap()
}

#[test]
fn a_machine_without_frequency_scaling_is_not_praised_for_its_governor() {
    let tree = Tree::new("6.12.1");
    assert_eq!(tree.level("pwr.governor").0, Level::NotApplicable);
    for (cpu, governor) in
        [(0, "powersave"), (1, "performance"), (2, "performance"), (3, "performance")]
    {
        tree.file(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"), governor);
        tree.file(
            &format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_driver"),
            "acpi-cpufreq",
        );
    }
    assert_eq!(tree.level("pwr.governor").0, Level::Bad);
}

/// A cache of 11 ways for four CPUs, of which devices use two.
fn with_resctrl(groups: &[(&str, &str, &str)]) -> Tree {
    let tree = Tree::new("6.12.1");
    for cpu in 0..4 {
        let cache = format!("sys/devices/system/cpu/cpu{cpu}/cache/index3");
        tree.file(&format!("{cache}/level"), "3");
        tree.file(&format!("{cache}/id"), "0");
        tree.file(&format!("{cache}/shared_cpu_list"), "0-3");
    }
    let folder = "sys/fs/resctrl";
    for (file, text) in [
        ("L3/cbm_mask", "7ff"),
        ("L3/min_cbm_bits", "1"),
        ("L3/shareable_bits", "600"),
        ("L3/bit_usage", "0=XXSSSSSSSSS"),
        ("L3/num_closids", "16"),
        ("MB/min_bandwidth", "10"),
        ("MB/bandwidth_gran", "10"),
        ("MB/num_closids", "8"),
    ] {
        tree.file(&format!("{folder}/info/{file}"), text);
    }
    for (name, cpus, schemata) in groups {
        tree.file(&format!("{folder}/{name}/schemata"), schemata);
        tree.file(&format!("{folder}/{name}/cpus_list"), cpus);
    }
    tree
}

#[test]
fn a_cache_is_the_real_time_cpus_own_only_where_nobody_else_fills_their_ways() {
    let checks = ["iso.llc-shared", "iso.cache-ways", "iso.memory-bandwidth"];
    let levels = |tree: &Tree| checks.map(|id| tree.level(id));
    // No hardware: what shares the cache does so, and nothing can be done.
    let none = Tree::new("6.12.1");
    none.file("proc/filesystems", "nodev\tproc");
    assert_eq!(none.level("iso.cache-ways").0, Level::NotApplicable);
    none.file("proc/filesystems", "nodev\tresctrl");
    let (level, found) = none.level("iso.memory-bandwidth");
    assert!(level == Level::Unknown && found.contains("not mounted"), "{found}");
    // Mounted alone it divides nothing.
    let all = with_resctrl(&[("", "0-3", "L3:0=7ff\nMB:0=100")]);
    let [llc, ways, bandwidth] = levels(&all);
    assert_eq!([llc.0, ways.0, bandwidth.0], [Level::Warn; 3]);
    assert!(ways.1.contains("shared with the default group"), "{}", ways.1);
    assert!(ways.1.contains("devices use ways 600 of 7ff in L3 0"), "{}", ways.1);
    assert!(bandwidth.1.contains("the default group 100 %"), "{}", bandwidth.1);
    let own =
        with_resctrl(&[("", "0-1", "L3:0=7f0\nMB:0=50"), ("rt", "2-3", "L3:0=00f\nMB:0=100")]);
    assert_eq!(levels(&own).map(|(level, _)| level), [Level::Ok; 3]);
    // Another group has the same ways, or the group has a CPU for everything else too.
    for (third, cpus) in [("L3:0=003\nMB:0=100", "2-3"), ("L3:0=7f0\nMB:0=50", "1-3")] {
        let tree = with_resctrl(&[
            ("", "0-1", "L3:0=7f0\nMB:0=50"),
            ("rt", cpus, "L3:0=00f\nMB:0=100"),
            ("web", "", third),
        ]);
        assert_eq!(levels(&tree).map(|(level, _)| level), [Level::Warn; 3], "{cpus}");
    }
    // A file that refuses is not praised.
    own.file("sys/fs/resctrl/info/L3/cbm_mask", "all");
    assert_eq!(own.level("iso.cache-ways").0, Level::Unknown);
}

#[test]
fn the_fair_server_is_there_since_6_12_and_unseen_without_debugfs() {
    let tree = Tree::new("6.12.1");
    tree.folder("sys/kernel/debug");
    tree.file("proc/sys/kernel/sched_rt_runtime_us", "-1");
    tree.file("proc/sys/kernel/sched_rt_period_us", "1000000");
    assert_eq!(tree.level("sched.fair-server").0, Level::Unknown, "not mounted");
    for cpu in 0..4 {
        tree.file(&format!("sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime"), "50000000");
        tree.file(&format!("sys/kernel/debug/sched/fair_server/cpu{cpu}/period"), "1000000000");
    }
    // sched_rt_runtime_us = -1, which every guide names, does not switch it off.
    assert_eq!(tree.level("sched.fair-server").0, Level::Bad);
    for cpu in 2..4 {
        tree.file(&format!("sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime"), "0");
    }
    assert_eq!(tree.level("sched.fair-server").0, Level::Ok);
    let old = Tree::new("6.1.0-18-amd64");
    old.folder("sys/kernel/debug/sched");
    assert_eq!(old.level("sched.fair-server").0, Level::NotApplicable);
}

#[test]
fn parameters_that_no_kernel_knows_are_named() {
    let tree = Tree::new("6.12.1");
    tree.file("proc/cmdline", "kthread_cpus=0,1 isolcpus=2-3 irqpoll");
    let (level, found) = tree.level("kern.cmdline-unknown");
    assert!(level == Level::Bad && found.contains("kthread_cpus=0,1"), "{found}");
    assert_eq!(tree.level("kern.cmdline-harmful").0, Level::Bad);
    let tree = Tree::new("6.12.1");
    assert_eq!(tree.level("kern.cmdline-unknown").0, Level::NotApplicable, "no log to read");
    tree.file(
        "dev/kmsg",
        "5,1,0,-;Unknown kernel command line parameters \"foo=1\", will be passed to user space.",
    );
    assert_eq!(tree.level("kern.cmdline-unknown").0, Level::Warn);
    tree.file("dev/kmsg", "4,1,0,-;isolcpus: Invalid flag managed");
    assert_eq!(tree.level("kern.cmdline-rejected").0, Level::Bad);
}

fn interrupt(tree: &Tree, number: u32, cpus: &str, mode: u32) {
    let dir = format!("proc/irq/{number}");
    tree.file(&format!("{dir}/smp_affinity_list"), "0-3");
    tree.file(&format!("{dir}/effective_affinity_list"), cpus);
    tree.file(&format!("{dir}/smp_affinity"), "f");
    let path = tree.0.path().join(format!("{dir}/smp_affinity"));
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn an_interrupt_that_the_kernel_manages_is_told_from_one_that_can_be_moved() {
    let tree = Tree::new("6.12.1");
    tree.file(
        "proc/interrupts",
        "            CPU0       CPU1       CPU2       CPU3\n 24: 1 0 0 0 PCI-MSI 1-edge nvme0q1\n 25: 0 0 5 0 PCI-MSI 2-edge eth0",
    );
    interrupt(&tree, 24, "2", 0o444);
    interrupt(&tree, 25, "0", 0o644);
    let (level, found) = tree.level("irq.managed");
    assert!(level == Level::Warn && found.contains("nvme0q1"), "{found}");
    assert_eq!(tree.level("irq.affinity").0, Level::Ok, "the other one is elsewhere");
    interrupt(&tree, 25, "3", 0o644);
    assert_eq!(tree.level("irq.affinity").0, Level::Bad);
}

#[test]
fn a_partition_that_became_invalid_is_no_partition() {
    let tree = Tree::new("6.12.1");
    tree.file(
        "proc/self/mountinfo",
        "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw",
    );
    tree.file("sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory");
    tree.file("sys/fs/cgroup/cpuset.cpus.isolated", "");
    tree.file(
        "sys/fs/cgroup/rt/cpuset.cpus.partition",
        "isolated invalid (Cpu list in cpuset.cpus not exclusive)",
    );
    let (level, found) = tree.level("iso.partition");
    assert!(level == Level::Bad && found.contains("not exclusive"), "{found}");
    assert_eq!(tree.level("iso.effective-set").0, Level::Warn);
    tree.file("sys/fs/cgroup/rt/cpuset.cpus.partition", "isolated");
    tree.file("sys/fs/cgroup/cpuset.cpus.isolated", "2-3");
    assert_eq!(tree.level("iso.partition").0, Level::Ok);
    assert_eq!(tree.level("iso.effective-set").0, Level::Ok);
}

#[test]
fn the_other_half_of_a_core_counts() {
    let tree = Tree::new("6.12.1");
    let siblings = |pairs: [&str; 4]| {
        for (cpu, list) in pairs.iter().enumerate() {
            tree.file(
                &format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"),
                list,
            );
        }
    };
    siblings(["0,2", "1,3", "0,2", "1,3"]);
    assert_eq!(tree.level("iso.smt-sibling").0, Level::Bad);
    siblings(["0-1", "0-1", "2-3", "2-3"]);
    assert_eq!(tree.level("iso.smt-sibling").0, Level::Ok);
    siblings(["0", "1", "2", "3"]);
    assert_eq!(tree.level("iso.smt-sibling").0, Level::NotApplicable);
}

#[test]
fn a_tick_that_stays_on_is_counted() {
    let tree = Tree::new("6.12.1");
    tree.file("sys/devices/system/cpu/nohz_full", "2-3");
    let head = "            CPU0       CPU1       CPU2       CPU3\nLOC: ";
    let sample = |ticks: u32| {
        let glance = |n: u32| {
            tree.file("proc/interrupts", &format!("{head} 10 10 {n} {n} Local timer interrupts"));
            Glance::take(&tree.root(), &cpus("0-3"))
        };
        Sample::new(5.0, glance(100), glance(100 + ticks))
    };
    let level = |ticks| tree.levels(Some(sample(ticks)), Workload::Polling)["iso.tick-still-on"].0;
    assert_eq!((level(5), level(1250)), (Level::Ok, Level::Bad));
    assert_eq!(tree.level("iso.tick-still-on").0, Level::Unknown, "without watching");
    // Without the tick a program that sleeps only pays for it.
    assert_eq!(tree.level("iso.nohz-full").0, Level::Warn);
    assert_eq!(tree.levels(None, Workload::Polling)["iso.nohz-full"].0, Level::Ok);
}

#[test]
fn stolen_time_is_bad_and_none_since_boot_proves_nothing() {
    let tree = Tree::new("6.12.1");
    tree.file("sys/hypervisor/type", "kvm");
    tree.file("proc/stat", "cpu0 1 0 1 9 0 0 0 7\ncpu1 1 0 1 9 0 0 0 0");
    assert_eq!(tree.level("virt.steal").0, Level::Bad);
    tree.file("proc/stat", "cpu0 1 0 1 9 0 0 0 0");
    assert_eq!(tree.level("virt.steal").0, Level::Unknown);
}

#[test]
fn tracing_that_somebody_left_on_is_found() {
    let tree = Tree::new("6.12.1");
    tree.file("sys/kernel/tracing/current_tracer", "nop");
    tree.file("sys/kernel/tracing/set_event", "");
    tree.folder("sys/kernel/tracing/instances/tailbound-1-2");
    assert_eq!(tree.level("kern.tracing-left-on").0, Level::Ok);
    tree.file("sys/kernel/tracing/set_event", "sched:sched_switch\nsched:sched_waking");
    assert_eq!(tree.level("kern.tracing-left-on"), (Level::Bad, "2 events are on".to_owned()));
    tree.file("sys/kernel/tracing/current_tracer", "function");
    assert!(tree.level("kern.tracing-left-on").1.contains("function"));
}

/// What holds without a file to read: the kernel's version, or nothing of the kind on any machine.
const OK_BY_THEMSELVES: &[&str] =
    &["iso.housekeeping-left", "iso.nohz-full", "kern.cmdline-harmful", "sched.affinity-reset"];

#[test]
fn what_is_absent_is_never_ok() {
    let tree = Tree::new("6.12.1");
    for workload in [Workload::Cyclic, Workload::Polling] {
        for (id, (level, found)) in tree.levels(None, workload) {
            let allowed = OK_BY_THEMSELVES.contains(&id);
            assert!(level != Level::Ok || allowed, "{id}: {found}");
        }
    }
}

/// `/proc/PID/stat` of a thread: flags, policy and priority are fields 9, 41 and 40.
fn thread(tree: &Tree, pid: u32, tid: u32, name: &str, priority: u32, cpus: &str) {
    let dir = format!("proc/{pid}/task/{tid}");
    tree.file(
        &format!("{dir}/stat"),
        &format!(
            "{tid} ({name}) S 1 {pid} {pid} 0 -1 64 0 0 0 0 0 0 0 0 -51 0 2 0 100 1000 10 0 0 0 0 0 0 0 0 0 0 0 0 0 -1 1 {priority} 1 0 0 0"
        ),
    );
    tree.file(&format!("{dir}/status"), &format!("Name:\t{name}\nCpus_allowed_list:\t{cpus}"));
}

/// The program that is asked about, not the one that asks.
#[test]
fn the_groups_and_threads_of_the_program_are_judged() {
    let tree = Tree::new("6.12.1");
    let (base, v1) = ("sys/fs/cgroup/cpu", "2:cpu:");
    tree.file("proc/self/cgroup", &format!("{v1}/"));
    tree.file("proc/77/cgroup", &format!("{v1}/a/none"));
    tree.file("proc/self/mountinfo", "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu");
    tree.file(&format!("{base}/cpu.rt_runtime_us"), "950000");
    tree.file(&format!("{base}/a/none/cpu.rt_runtime_us"), "0");
    tree.file(&format!("{base}/a/cpu.cfs_quota_us"), "20000");
    tree.file(&format!("{base}/a/cpu.cfs_period_us"), "100000");
    thread(&tree, 77, 77, "loop", 20, "1");
    thread(&tree, 77, 78, "helper", 20, "0-3");
    thread(&tree, 9, 9, "other", 5, "0-3");
    tree.file("proc/77/limits", "Max realtime priority 0 0\nMax locked memory 65536 65536 bytes\nMax realtime timeout unlimited unlimited us");
    tree.file("proc/77/status", "Uid:\t0\t0\t0\t0\nCapEff:\t00000000a80425fb");
    let answer = |pid: Option<u32>, id: &str| {
        let machine =
            Machine::read(&tree.root(), CheckScope { pid, ..CheckScope::default() }, None);
        let check = catalogue().into_iter().find(|c| c.id == id).unwrap();
        let seen = check.seen(&machine);
        (seen.level, seen.found, machine.filled(check.now))
    };
    let id = "sched.cgroup-rt-runtime";
    assert_eq!(answer(None, id).0, Level::Ok);
    let (level, found, fix) = answer(Some(77), id);
    assert!(level == Level::Bad && found.contains("process 77, /a/none, has 0 us"), "{found}");
    assert!(fix.contains("echo 950000 > /sys/fs/cgroup/cpu/a/none/cpu.rt_runtime_us"), "{fix}");
    assert_eq!(answer(None, "sched.cpu-quota").0, Level::NotApplicable);
    let (level, found, fix) = answer(Some(77), "sched.cpu-quota");
    assert!(level == Level::Warn && found.contains("0.2 CPUs"), "{found}");
    assert_eq!(fix, "echo -1 > /sys/fs/cgroup/cpu/a/cpu.cfs_quota_us");
    // Two threads of its own that are equal.
    let (level, found, _) = answer(Some(77), "sched.two-rt-one-cpu");
    assert_eq!(level, Level::Warn);
    assert!(
        found.contains("its own helper (78, fifo:20) beside loop (77, fifo:20) on CPU 1"),
        "{found}"
    );
    assert!(!found.contains("other"), "{found}");
    // Root of a container.
    let (level, found, _) = answer(Some(77), "app.limits");
    assert!(
        level == Level::Warn && found.contains("without CAP_SYS_NICE and CAP_IPC_LOCK"),
        "{found}"
    );
}

/// A container that sees neither /proc nor /sys.
#[test]
fn of_a_machine_that_cannot_be_seen_nothing_is_ok() {
    let dir = tempfile::tempdir().unwrap();
    let mut claimed = Vec::new();
    for workload in [Workload::Cyclic, Workload::Polling] {
        let wanted = CheckScope { rt_cpus: cpus("2-3"), workload, ..CheckScope::default() };
        let machine = Machine::read(&Root::at(dir.path()), wanted, None);
        for check in catalogue() {
            let seen = check.seen(&machine);
            if !matches!(seen.level, Level::Unknown | Level::NotApplicable) {
                claimed.push(format!("{}: {:?} {}", check.id, seen.level, seen.found));
            }
        }
    }
    assert!(claimed.is_empty(), "{claimed:#?}");
}

fn hosts() -> Vec<std::path::PathBuf> {
    let base = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../base/tailbound-host/tests/fixtures/hosts");
    let mut all: Vec<_> = fs::read_dir(base).unwrap().map(|e| e.unwrap().path()).collect();
    all.sort();
    all
}

#[test]
fn whole_machines_are_judged_as_their_owners_would() {
    let level = |host: &str, id: &str| {
        let path = hosts().into_iter().find(|h| h.ends_with(host)).unwrap();
        let machine = Machine::read(&Root::at(path), CheckScope::default(), None);
        let check = catalogue().into_iter().find(|c| c.id == id).unwrap();
        check.seen(&machine).level
    };
    assert_eq!(level("rt-pc", "kern.preempt-model"), Level::Ok);
    assert_eq!(level("vm", "pwr.governor"), Level::NotApplicable);
    assert_eq!(level("vm", "kern.preempt-model"), Level::Bad);
    assert_eq!(level("vm", "kern.debug-options"), Level::Bad);
    assert_eq!(level("vm", "sched.cgroup-rt-runtime"), Level::Bad);
    assert_eq!(level("arm-board", "clk.tsc-unstable"), Level::NotApplicable);
    for host in hosts() {
        let answers = Answers::of(&Machine::read(&Root::at(&host), CheckScope::default(), None));
        assert_eq!(answers.all.len(), catalogue().len());
        assert!(answers.json().to_string().contains("preconditions"));
        assert!(answers.text(ShownChecks::All, |_, w| w.to_owned()).contains("checks:"));
    }
}

#[test]
fn preconditions_that_nobody_can_know_are_not_claimed() {
    let tree = Tree::new("6.12.1");
    let machine = Machine::read(
        &tree.root(),
        CheckScope { rt_cpus: cpus("2"), ..CheckScope::default() },
        None,
    );
    for p in preconditions(&machine) {
        assert!(p.holds != Some(true), "{}: {}", p.name, p.evidence);
        assert!(!p.evidence.is_empty());
    }
}

#[test]
fn the_page_of_all_checks_is_the_catalogue() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/check.md");
    let text = fs::read_to_string(page).unwrap();
    let rows: Vec<&str> = text
        .lines()
        .filter_map(|l| l.strip_prefix("| `")?.split_once('`').map(|(id, _)| id))
        .collect();
    let ids: Vec<&str> = catalogue().iter().map(|c| c.id).collect();
    assert_eq!(rows, ids);
    for check in catalogue() {
        assert!(text.contains(check.why), "{}: {}", check.id, check.why);
    }
}

#[test]
fn what_cannot_be_read_is_not_taken_for_nothing() {
    // A folder where a file should be: it is there, and reading it fails.
    let tree = Tree::new("6.12.1");
    tree.file("sys/kernel/tracing/current_tracer", "nop");
    tree.file("sys/kernel/tracing/set_event", "");
    assert_eq!(tree.level("kern.tracing-left-on").0, Level::Ok);
    tree.folder("sys/kernel/tracing/kprobe_events");
    assert_eq!(tree.level("kern.tracing-left-on").0, Level::Unknown);

    for cpu in 2..4 {
        let state = format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state0");
        tree.file(&format!("{state}/latency"), "1");
        tree.file(&format!("{state}/disable"), "0");
    }
    assert_eq!(tree.level("pwr.cstates").0, Level::Ok);
    tree.folder("sys/devices/system/cpu/cpu3/cpuidle/state1/latency");
    assert_eq!(tree.level("pwr.cstates").0, Level::Unknown);

    tree.file("proc/sys/vm/dirty_background_ratio", "5");
    tree.file("proc/sys/vm/dirty_ratio", "10");
    tree.file("proc/sys/vm/dirty_bytes", "0");
    assert_eq!(tree.level("mm.writeback").0, Level::Ok);
    tree.file("proc/sys/vm/dirty_bytes", "many");
    assert_eq!(tree.level("mm.writeback").0, Level::Unknown);
}

#[test]
fn efi_services_are_off_by_the_last_word_on_them_or_kept_to_other_cpus() {
    let tree = Tree::new("6.12.1");
    assert_eq!(tree.level("hw.efi-runtime").0, Level::NotApplicable, "no EFI");
    tree.folder("sys/firmware/efi");
    assert_eq!(tree.level("hw.efi-runtime").0, Level::Unknown, "no configuration");
    tree.file("boot/config-6.12.1", "CONFIG_EFI_DISABLE_RUNTIME=y");
    assert_eq!(tree.level("hw.efi-runtime").0, Level::Ok);
    tree.file("proc/cmdline", "efi=noruntime quiet efi=debug,runtime");
    assert_eq!(tree.level("hw.efi-runtime").0, Level::Warn);
    tree.file("proc/cmdline", "efi=runtime,noruntime");
    assert_eq!(tree.level("hw.efi-runtime").0, Level::Ok);
    // The queue is there while they are on, whatever the command line says.
    let queue = "sys/devices/virtual/workqueue/efi_runtime/cpumask";
    tree.file(queue, "f");
    let (level, found) = tree.level("hw.efi-runtime");
    assert!(level == Level::Warn && found.contains("0-3"), "{found}");
    tree.file(queue, "3");
    assert_eq!(tree.level("hw.efi-runtime").0, Level::Ok);
    let old = Tree::new("5.15.0");
    old.folder("sys/firmware/efi");
    old.file("proc/sys/kernel/version", "#1 SMP PREEMPT_RT Debian");
    old.file("boot/config-5.15.0", "CONFIG_EFI=y");
    assert_eq!(old.level("hw.efi-runtime").0, Level::Ok, "without the option");
}

#[test]
fn a_secure_world_is_told_by_its_kind() {
    let tree = Tree::new("6.12.1");
    assert_eq!(tree.level("hw.op-tee").0, Level::NotApplicable);
    tree.folder("sys/class/tee/teepriv0");
    tree.folder("sys/class/tee/tee0");
    assert_eq!(tree.level("hw.op-tee").0, Level::Unknown, "which one is not told");
    tree.file("sys/class/tee/tee0/implementation_id", "2");
    assert_eq!(tree.level("hw.op-tee").0, Level::Ok, "of AMD");
    tree.file("sys/class/tee/tee0/implementation_id", "1");
    let (level, found) = tree.level("hw.op-tee");
    assert!(level == Level::Warn && found.contains("/dev/tee0"), "{found}");
}

#[test]
fn memory_that_is_scrubbed_is_told_where_a_driver_tells() {
    let tree = Tree::new("6.12.1");
    assert_eq!(tree.level("hw.memory-scrub").0, Level::Unknown);
    tree.file("sys/devices/system/edac/mc/mc0/mc_name", "skx");
    assert_eq!(tree.level("hw.memory-scrub").0, Level::Unknown, "a driver that cannot tell");
    tree.file("sys/devices/system/edac/mc/mc0/sdram_scrub_rate", "0");
    assert_eq!(tree.level("hw.memory-scrub").0, Level::Ok);
    tree.file("sys/devices/system/edac/mc/mc1/sdram_scrub_rate", "24480000");
    let (level, found) = tree.level("hw.memory-scrub");
    assert!(level == Level::Warn && found.contains("mc1 at 24480000"), "{found}");
    let newer = Tree::new("6.15.0");
    let scrub = "sys/bus/edac/devices/cxl_mem0/scrub0/enable_background";
    newer.file(scrub, "0");
    assert_eq!(newer.level("hw.memory-scrub").0, Level::Ok);
    newer.file(scrub, "1");
    assert_eq!(newer.level("hw.memory-scrub").0, Level::Warn);
}

#[test]
fn graphics_are_in_the_processor_where_intels_are() {
    let tree = Tree::new("6.12.1");
    assert_eq!(tree.level("hw.graphics").0, Level::NotApplicable, "no PCI");
    tree.folder("sys/bus/pci/drivers/xe/0000:03:00.0");
    assert_eq!(tree.level("hw.graphics").0, Level::Ok, "a card");
    tree.folder("sys/bus/pci/drivers/amdgpu/module");
    assert_eq!(tree.level("hw.graphics").0, Level::Ok, "no device of it");
    tree.folder("sys/bus/pci/drivers/amdgpu/0000:0c:00.0");
    assert_eq!(tree.level("hw.graphics").0, Level::Unknown);
    tree.folder("sys/bus/pci/drivers/i915/0000:00:02.0");
    assert_eq!(tree.level("hw.graphics").0, Level::Warn);
}

#[test]
fn latency_tracers_are_told_by_the_configuration_or_by_the_kernels_list() {
    let tree = Tree::new("6.12.1");
    assert_eq!(tree.level("kern.latency-tracers").0, Level::Unknown);
    tree.file("sys/kernel/tracing/available_tracers", "function preemptoff nop");
    let (level, found) = tree.level("kern.latency-tracers");
    assert!(level == Level::Warn && found.contains("CONFIG_PREEMPT_TRACER"), "{found}");
    tree.file("boot/config-6.12.1", "CONFIG_TRACING=y");
    assert_eq!(tree.level("kern.latency-tracers").0, Level::Ok);
    tree.file("boot/config-6.12.1", "CONFIG_IRQSOFF_TRACER=y");
    assert_eq!(tree.level("kern.latency-tracers").0, Level::Warn);
}

#[test]
fn pressure_is_counted_where_it_can_be_read() {
    let tree = Tree::new("6.12.1");
    assert_eq!(tree.level("sched.psi").0, Level::NotApplicable);
    tree.file("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0");
    assert_eq!(tree.level("sched.psi").0, Level::Warn);
}

#[test]
fn timers_of_guests_must_not_run_on_real_time_cpus() {
    let tree = Tree::new("6.12.1");
    let thread = |allowed: &str| {
        let dir = "proc/812/task/812";
        // PF_KTHREAD is the field behind the terminal's.
        let stat = format!("812 (kvm-pit/811) S 2 0 0 0 -1 2097216 {}", "0 ".repeat(40));
        tree.file(&format!("{dir}/stat"), stat.trim_end());
        let status = format!("Name:\tkvm-pit/811\nTgid:\t812\nCpus_allowed_list:\t{allowed}");
        tree.file(&format!("{dir}/status"), &status);
    };
    thread("0-3");
    let (level, found) = tree.level("virt.kvm-pit");
    assert!(level == Level::Bad && found.contains("kvm-pit/811"), "{found}");
    thread("0-1");
    assert_eq!(tree.level("virt.kvm-pit").0, Level::Ok);
    tree.file(
        "proc/812/task/812/stat",
        &format!("812 (kvm-pit/8) S 1 0 0 0 -1 0 {}", "0 ".repeat(40)),
    );
    assert_eq!(tree.level("virt.kvm-pit").0, Level::NotApplicable, "a program of that name");
}
