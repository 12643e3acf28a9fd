// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every disturbance: silent on a quiet host, found when it happens, worded with its figures.
//!
//! Clocks and page faults are tested beside their code.

use std::collections::BTreeMap;

use tailbound_core::disturbance::{CpuTaken, DisturbanceKind, MachineTaken, RanAbove};
use tailbound_core::record::{Fact, Facts, ThreadRecord};
use tailbound_core::recurring::Recurring;
use tailbound_core::{Finding, Impact, Policy};
use tailbound_host::{RealtimeRight, Switches, Watch, WatchPlan, not_locked, not_realtime};

use crate::{Host, plan};

fn begun(host: &Host, plan: &WatchPlan) -> Watch {
    let root = host.root();
    Watch::begin(&root, plan, tailbound_host::inventory(&root), Switches::now(&root))
}

/// What a run over `host` tells, when `event` happens in the middle of it.
fn run(host: &Host, plan: &WatchPlan, event: impl Fn(&Host)) -> (Facts, BTreeMap<String, Finding>) {
    let mut watch = begun(host, plan);
    let mut told: BTreeMap<String, Finding> = BTreeMap::new();
    let mut hear = |list: Vec<Finding>| told.extend(list.into_iter().map(|f| (f.id.clone(), f)));
    hear(watch.tick());
    event(host);
    hear(watch.tick());
    assert_eq!(watch.tick(), [], "nothing is told twice");
    let counters = BTreeMap::from([("minor_faults".to_owned(), 0), ("major_faults".to_owned(), 0)]);
    let threads = [ThreadRecord { counters, ..ThreadRecord::default() }];
    let (facts, last) = watch.end(&threads);
    hear(last);
    (facts, told)
}

fn pc() -> (Host, WatchPlan) {
    (Host::of("rt-pc"), plan("2-3", &[501, 502]))
}
fn board() -> (Host, WatchPlan) {
    (Host::of("arm-board"), plan("3", &[501]))
}

#[track_caller]
fn expect(found: &BTreeMap<String, Finding>, id: &str, impact: Impact, words: &[&str]) {
    let Some(f) = found.get(id) else {
        panic!("no {id} among {:?}", found.keys());
    };
    assert_eq!(f.impact, impact, "{f:?}");
    for word in words {
        assert!(f.title.contains(word), "no `{word}` in `{}`", f.title);
    }
    assert!(!f.meaning.is_empty() && !f.remedy.is_empty(), "{f:?}");
}

#[test]
fn a_quiet_run_tells_only_what_stands_and_says_what_it_watched() {
    let (host, plan) = pc();
    let (facts, found) = run(&host, &plan, |_| {});
    let ids: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(ids, ["fair-server", "idle-states"]);
    assert!(found.values().all(|f| f.impact == Impact::Notice));
    expect(&found, "fair-server", Impact::Notice, &["50 ms in 1000 ms", "CPU 2-3"]);
    expect(&found, "idle-states", Impact::Notice, &["CPU 2", "C6", "133 us"]);
    assert_eq!(facts.keys().filter(|k| !k.starts_with("watch.")).count(), 0, "{facts:?}");
    for name in [
        "suspend",
        "clock-step",
        "clocksource-changed",
        "cpu-offline",
        "affinity-changed",
        "policy-changed",
        "cgroup-quota",
        "thermal",
        "frequency",
        "higher-priority",
        "smt-sibling",
        "kernel-log",
        "page-faults",
        "fair-server",
    ] {
        let fact = facts.get(&format!("watch.{name}"));
        assert!(matches!(fact, Some(Fact::Value(_))), "{name}: {fact:?}");
    }
    assert!(matches!(facts.get("watch.rt-throttling"), Some(Fact::NotApplicable(_))));
    assert!(matches!(facts.get("watch.steal-time"), Some(Fact::NotApplicable(_))));
}

#[test]
fn what_could_not_be_watched_is_named_and_forbids_met() {
    let (host, plan) = pc();
    host.remove("proc");
    let (_, found) = run(&host, &plan, |_| {});
    expect(&found, "unwatched", Impact::Doubt, &["/proc cannot be read", "cgroup-quota"]);
    let (host, plan) = pc();
    host.remove("sys");
    let (_, found) = run(&host, &plan, |_| {});
    expect(&found, "unwatched", Impact::Doubt, &["/sys cannot be read", "thermal"]);
}

#[test]
fn throttling_by_the_kernels_word() {
    let (host, plan) = board();
    let line = "4,99,5000000,-;sched: RT throttling activated\n";
    let (_, found) = run(&host, &plan, |h| h.append("dev/kmsg", line));
    expect(&found, "rt-throttling", Impact::Unfit, &["log"]);
    // A program may write the same words; the kernel gives those another facility.
    let (host, plan) = board();
    let (_, found) = run(&host, &plan, |h| {
        h.append("dev/kmsg", "12,99,5000000,-;sched: RT throttling activated\n");
    });
    assert!(!found.contains_key("rt-throttling"), "{found:?}");
}

#[test]
fn throttling_by_the_run_queue() {
    let (host, plan) = board();
    let (_, found) = run(&host, &plan, |h| {
        h.replace(
            "sys/kernel/debug/sched/debug",
            ".rt_throttled                  : 0",
            ".rt_throttled                  : 1",
        );
    });
    expect(&found, "rt-throttling", Impact::Unfit, &["CPU 3"]);
}

#[test]
fn throttling_by_cpu_time_is_a_doubt_and_so_is_the_fair_server() {
    // Ten seconds pass, in which the thread measured on CPU 3 had 9.5 s.
    let hog = |h: &Host| {
        h.write("proc/uptime", "1010.00 3900.00\n");
        h.write("proc/500/task/501/schedstat", "9500000100 1 1\n");
    };
    let (host, plan) = board();
    let (_, found) = run(&host, &plan, hog);
    expect(&found, "rt-throttling", Impact::Doubt, &["95 %", "CPU 3"]);
    let (host, plan) = pc();
    host.write(
        "proc/500/task/501/stat",
        &std::fs::read_to_string(host.dir.path().join("proc/500/task/502/stat"))
            .expect("stat")
            .replace("502 (", "501 ("),
    );
    let (_, found) = run(&host, &plan, hog);
    expect(&found, "fair-server", Impact::Doubt, &["95 %", "CPU 3"]);
    assert!(!found.contains_key("rt-throttling"), "this kernel has none: {found:?}");
}

#[test]
fn silence_is_no_proof_once_the_kernel_has_spoken() {
    let (facts, found) = run(&Host::of("vm"), &plan("1", &[501]), |_| {});
    assert!(!found.contains_key("rt-throttling"), "that was before the run: {found:?}");
    let fact = facts.get("watch.rt-throttling");
    assert!(matches!(fact, Some(Fact::Unknown(w)) if w.contains("already had")), "{fact:?}");
    expect(
        &found,
        "fair-server",
        Impact::Notice,
        &["not known", "not mounted".trim_start_matches("not ")],
    );
    expect(&found, "virtual-machine", Impact::Notice, &["kvm"]);
    expect(&found, "kernel-debug-options", Impact::Notice, &["PROVE_LOCKING"]);
}

#[test]
fn stolen_time() {
    let (_, found) = run(&Host::of("vm"), &plan("1", &[501]), |h| {
        h.replace(
            "proc/stat",
            "cpu1 1000 0 500 90000 10 0 5 40",
            "cpu1 1000 0 500 90175 10 0 5 65",
        );
    });
    expect(&found, "steal-time", Impact::Notice, &["250 ms", "CPU 1", "12 %"]);
    let (_, found) = run(&Host::of("vm"), &plan("0", &[]), |h| {
        h.replace(
            "proc/stat",
            "cpu1 1000 0 500 90000 10 0 5 40",
            "cpu1 1000 0 500 90175 10 0 5 65",
        );
    });
    assert!(!found.contains_key("steal-time"), "not from a measured CPU: {found:?}");
}

#[test]
fn the_last_word_has_the_last_figures() {
    let host = Host::of("vm");
    let mut watch = begun(&host, &plan("1", &[501]));
    let _ = watch.tick();
    host.replace("proc/stat", "5 40", "5 41");
    let first = watch.tick();
    assert!(first.iter().any(|f| f.id == "steal-time" && f.title.contains("10 ms")), "{first:?}");
    let stolen = |steal_ns| CpuTaken { cpu: 1, steal_ns, ..CpuTaken::default() };
    let taken = watch.taken(7, 5);
    assert_eq!((taken.t_ns, taken.span_ns, taken.cpus), (7, 5, vec![stolen(10_000_000)]));
    host.replace("proc/stat", "5 41", "5 90");
    assert_eq!(watch.tick(), []);
    assert_eq!(watch.taken(0, 0).cpus, [stolen(490_000_000)]);
    assert_eq!(watch.tick(), []);
    assert_eq!(watch.taken(0, 0).cpus, [], "since the look before only");
    let (_, last) = watch.end(&[]);
    assert!(last.iter().any(|f| f.id == "steal-time" && f.title.contains("500 ms")), "{last:?}");
    assert!(
        !last.iter().any(|f| f.id == "virtual-machine"),
        "what has not changed is not repeated"
    );
}

#[test]
fn each_look_reads_what_may_come_with_late_wake_ups() {
    let (host, plan) = pc();
    let group = "sys/fs/cgroup/user.slice/session-1.scope/cpu.stat";
    let stat = |us: u64| format!("nr_periods 9\nnr_throttled 7\nthrottled_usec {us}\n");
    let smis = |n: u64| String::from_utf8([vec![0; 0x34], n.to_le_bytes().to_vec()].concat());
    host.write(group, &stat(5000));
    host.write("dev/cpu/0/msr", &smis(7).unwrap());
    let mut watch = begun(&host, &plan);
    let _ = watch.tick();
    let quiet = watch.taken(1, 1);
    assert_eq!(quiet.cpus.iter().map(|c| c.cpu).collect::<Vec<_>>(), [2, 3], "{quiet:?}");
    assert!(quiet.cpus.iter().all(|c| c.frequency_khz > 0), "{quiet:?}");
    assert!(quiet.machine.is_nothing() && quiet.above.is_empty() && quiet.unread.is_empty());
    host.write(group, &stat(85_000));
    host.write("dev/cpu/0/msr", &smis(9).unwrap());
    host.write("proc/pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=4001\n");
    // Less than 1 ms is none.
    host.write("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=600\n");
    host.write("proc/self/task/502/schedstat", "100 4000 21\n");
    host.write("proc/22/task/22/schedstat", "9000 1000 21\n");
    // Of a lower priority, and the measured ones themselves.
    host.write("proc/60/task/60/schedstat", "99000 1000 21\n");
    host.write("proc/500/task/501/schedstat", "99000 1000 21\n");
    host.write("sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq", "800000\n");
    let _ = watch.tick();
    let taken = watch.taken(2, 1);
    let on = |cpu| CpuTaken { cpu, ..CpuTaken::default() };
    let cpus =
        [CpuTaken { frequency_khz: 800_000, ..on(2) }, CpuTaken { waited_ns: 3000, ..on(3) }];
    assert_eq!(taken.cpus, cpus);
    let machine = MachineTaken {
        quota_ns: 80_000_000,
        smis: 2,
        io_pressure_ns: 4_000_000,
        ..MachineTaken::default()
    };
    assert_eq!((taken.machine, &taken.unread), (machine, &Vec::new()));
    let ran = RanAbove { cpu: 2, thread: "migration/2 (fifo:99)".to_owned(), ns: 7000 };
    assert_eq!(taken.above, [ran]);
    // What cannot be read any more is named, what never could is not, and a thread that ended is neither.
    host.remove("proc/pressure/io");
    host.remove("proc/22");
    host.remove("proc/self/task/502");
    let _ = watch.tick();
    let taken = watch.taken(3, 1);
    assert_eq!(taken.unread, [DisturbanceKind::IoPressure]);
    assert!(taken.cpus.is_empty() && taken.above.is_empty(), "{taken:?}");
    let (facts, _) = watch.end(&[]);
    let read = facts.get("watch.readings").and_then(Fact::as_str).unwrap();
    let (read, not) = read.split_once("; not: ").expect("irq");
    assert!(read.contains("firmware") && read.contains("ran-above"), "{read}");
    assert!(
        not.starts_with("irq-pressure (not applicable: there is no /proc/pressure/irq"),
        "{not}"
    );
}

#[test]
fn who_comes_evenly_is_listed_and_what_does_not_is_left_out() {
    let (host, plan) = pc();
    let turn = |s: u32, even: u32, uneven: u32| {
        host.write("proc/uptime", &format!("{}.00 3900.00\n", 1000 + s));
        host.write("proc/22/task/22/schedstat", &format!("9000 1000 {}\n", 20 + even));
        host.write("sys/kernel/irq/24/per_cpu_count", &format!("9,9,{},4\n", 30 + even));
        host.write("sys/kernel/irq/25/per_cpu_count", &format!("9,9,{},4\n", 30 + uneven));
    };
    host.write("sys/kernel/irq/24/actions", "eth0\n");
    host.write("proc/sys/vm/stat_interval", "1\n");
    host.write("proc/sys/kernel/sched_rt_runtime_us", "-1\n");
    host.write("proc/sys/kernel/sched_rt_period_us", "1000000\n");
    turn(0, 0, 0);
    let mut watch = begun(&host, &plan);
    for s in 1..40 {
        // All of it at once, and every 500 ms.
        turn(s, 2 * s, if s < 20 { s.min(12) } else { 60 });
        let _ = watch.tick();
    }
    let (facts, _) = watch.end(&[]);
    let list = Recurring::of_facts(&facts);
    let found: Vec<(&str, Option<u32>, bool)> = list
        .iter()
        .map(|r| (r.name.as_str(), r.cpu, r.has_period(500_000_000, 1_000_000)))
        .collect();
    let wanted = [
        ("migration/2 (fifo:99)", Some(2), true),
        ("24 (eth0)", Some(2), true),
        ("the update of memory statistics (stat_interval)", None, false),
    ];
    assert_eq!(found, wanted, "{list:?}");
    assert_eq!(list.last().and_then(|r| r.period_ns), Some(1_000_000_000));
}

#[test]
fn a_cpu_goes_and_threads_are_moved_or_demoted() {
    let (host, plan) = pc();
    let (_, found) = run(&host, &plan, |h| {
        h.write("sys/devices/system/cpu/online", "0-2\n");
        h.replace("proc/self/task/502/status", "Cpus_allowed_list:\t3", "Cpus_allowed_list:\t0-2");
    });
    expect(&found, "cpu-offline", Impact::Unfit, &["CPU 3"]);
    expect(&found, "affinity-changed", Impact::Unfit, &["thread 502", "CPU 3", "0-2"]);
    let (host, plan) = pc();
    let (_, found) =
        run(&host, &plan, |h| h.replace("proc/self/task/501/stat", " 2 80 1 ", " 2 0 0 "));
    expect(&found, "policy-changed", Impact::Unfit, &["fifo:80", "other"]);
    let (host, plan) = pc();
    let (_, found) = run(&host, &plan, |h| h.remove("proc/self/task/501"));
    assert!(!found.contains_key("affinity-changed"), "a thread that ended has no place: {found:?}");
}

#[test]
fn quotas_of_both_versions_and_of_groups_around() {
    let (host, plan) = board();
    let (_, found) = run(&host, &plan, |h| {
        h.write(
            "sys/fs/cgroup/system.slice/cpu.stat",
            "nr_periods 9\nnr_throttled 7\nthrottled_usec 350000\n",
        );
    });
    expect(&found, "cgroup-quota", Impact::Doubt, &["7 times", "350 ms", "system.slice"]);
    let (_, found) = run(&Host::of("vm"), &crate::plan("1", &[501]), |h| {
        h.write(
            "sys/fs/cgroup/cpu/job/cpu.stat",
            "nr_periods 3\nnr_throttled 2\nthrottled_time 150000000\n",
        );
    });
    expect(&found, "cgroup-quota", Impact::Doubt, &["2 times", "150 ms", "/job"]);
}

#[test]
fn heat() {
    let (host, plan) = board();
    let (_, found) =
        run(&host, &plan, |h| h.write("sys/class/thermal/thermal_zone0/temp", "81000\n"));
    expect(&found, "thermal", Impact::Notice, &["cpu-thermal", "passive", "80 °C"]);
    assert!(
        !found.values().any(|f| f.title.contains("active trip")),
        "a fan is no brake: {found:?}"
    );
    let (host, plan) = pc();
    let (_, found) = run(&host, &plan, |h| {
        h.write("sys/devices/system/cpu/cpu2/thermal_throttle/core_throttle_count", "8\n");
    });
    expect(&found, "thermal", Impact::Notice, &["CPU 2", "5 times"]);
}

#[test]
fn frequency_settings_and_the_frequency_itself() {
    let (host, plan) = pc();
    let (facts, found) = run(&host, &plan, |h| {
        h.write("sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "powersave\n");
        h.write("sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq", "800000\n");
        h.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq", "900000\n");
    });
    expect(
        &found,
        "frequency",
        Impact::Notice,
        &["from performance to powersave", "CPU 2: 3300 MHz before, 800 MHz after"],
    );
    assert!(!found.values().any(|f| f.title.contains("CPU 0")), "CPU 0 is not measured");
    assert!(facts.contains_key("power.governor"), "the change is among the facts after: {facts:?}");
}

#[test]
fn rivals_are_named_with_what_they_used() {
    let (host, mut plan) = pc();
    plan.policy = Policy::Fifo(50);
    let (facts, found) =
        run(&host, &plan, |h| h.write("proc/60/task/60/schedstat", "3005000 1 1\n"));
    expect(
        &found,
        "higher-priority",
        Impact::Notice,
        &["1 other", "irq/126-eno1 (fifo:50)", "3.00 ms"],
    );
    let fact = facts.get("watch.higher-priority").map(Fact::text).unwrap_or_default();
    assert!(fact.contains("3 threads") && fact.contains("2 of them"), "{fact}");
    let (host, mut plan) = pc();
    plan.policy = Policy::Deadline { runtime_ns: 100_000, period_ns: 1_000_000 };
    let (_, found) = run(&host, &plan, |_| {});
    assert!(!found.contains_key("higher-priority"), "FIFO comes after deadline: {found:?}");
}

#[test]
fn a_rival_born_during_the_run_counts_from_its_birth() {
    let (host, plan) = pc();
    let (_, found) = run(&host, &plan, |h| {
        let stat =
            std::fs::read_to_string(h.dir.path().join("proc/60/task/60/stat")).expect("stat");
        h.write(
            "proc/700/task/700/stat",
            &stat.replace("60 (irq/126-eno1)", "700 (hog)").replace(" 50 1 ", " 90 1 "),
        );
        h.write("proc/700/task/700/status", "Cpus_allowed_list:\t2\n");
        h.write("proc/700/task/700/schedstat", "2000000 1 1\n");
    });
    expect(&found, "higher-priority", Impact::Notice, &["hog (fifo:90)", "2.00 ms"]);
}

#[test]
fn siblings_and_their_load() {
    let (_, found) = run(&Host::of("container"), &plan("1", &[501]), |h| {
        h.replace("proc/stat", "cpu5 1000 0 500 90000", "cpu5 1300 0 500 90700");
    });
    expect(&found, "smt-sibling", Impact::Notice, &["CPU 5 beside CPU 1", "30 % busy"]);
    let (_, found) = run(&Host::of("container"), &plan("1,5", &[501]), |_| {});
    assert!(!found.contains_key("smt-sibling"), "both are measured: {found:?}");
}

#[test]
fn the_clocksource_and_the_kernels_warnings() {
    let (host, plan) = pc();
    let (_, found) = run(&host, &plan, |h| {
        h.write("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
        h.append("dev/kmsg", "4,50,9,-;clocksource: timekeeping watchdog: Marking clocksource 'tsc' as unstable\n6,51,9,-;just information\n");
    });
    expect(&found, "clocksource-changed", Impact::Unfit, &["tsc", "hpet"]);
    expect(&found, "kernel-log", Impact::Notice, &["1 message", "unstable"]);
    // The same counter before and after its frequency was measured again.
    let (host, plan) = pc();
    let source = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    host.write(source, "tsc-early\n");
    let (_, found) = run(&host, &plan, |h| h.write(source, "tsc\n"));
    expect(&found, "clocksource-changed", Impact::Notice, &["tsc-early", "tsc"]);
}

#[test]
fn tracing_that_someone_left_on() {
    let (host, plan) = pc();
    host.write("sys/kernel/tracing/current_tracer", "function_graph\n");
    host.write("sys/kernel/tracing/events/enable", "X\n");
    let (_, found) = run(&host, &plan, |_| {});
    expect(&found, "tracing-active", Impact::Notice, &["function_graph", "some events"]);
    host.write("sys/kernel/tracing/tracing_on", "0\n");
    let (_, found) = run(&host, &plan, |_| {});
    assert!(!found.contains_key("tracing-active"), "switched off: {found:?}");
}

#[test]
fn what_callers_could_not_get() {
    let f = not_realtime(Policy::Fifo(95), Policy::Other, &RealtimeRight::OrdinaryUser);
    assert_eq!((f.id.as_str(), f.impact), ("not-realtime", Impact::Doubt));
    assert!(f.title.contains("fifo:95") && f.title.contains("other"), "{f:?}");
    assert_eq!(not_locked("limit").impact, Impact::Notice);
}
