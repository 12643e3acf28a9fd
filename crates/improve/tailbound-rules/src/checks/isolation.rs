// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs that are kept for real-time work: by boot parameters, by cpuset partitions, by affinities.
//!
//! Source: Documentation/admin-guide/{cpu-isolation,cgroup-v2}.rst,
//! Documentation/admin-guide/kernel-per-CPU-kthreads.rst, Documentation/core-api/workqueue.rst.

use tailbound_core::CpuSet;
use tailbound_host::cgroups;
use tailbound_host::root::empty_if_absent;
use tailbound_host::threads::Thread;

use super::{PLAIN, caches, few, mask_file};
use crate::check::{Check, Group};
use crate::machine::{Machine, Workload};
use crate::need::Need;
use crate::outcome::{CheckOutcome, Level, Look};

const CHECK: Check = Check { group: Group::Isolation, needs: &[Need::RtCpus], ..PLAIN };

pub(super) static CHECKS: &[Check] = &[
    Check {
        id: "iso.boot-domain",
        why: "/sys/devices/system/cpu/isolated shows isolcpus= only, never partitions made at run time",
        now: "tailbound tune isolate {rt}",
        for_good: "boot with isolcpus=domain,managed_irq,{rt}",
        source: "kernel-parameters.txt (isolcpus=)",
        look: boot_domain,
        ..CHECK
    },
    Check {
        id: "iso.partition",
        why: "a partition that became invalid is an ordinary group again, and nobody is told",
        now: "tailbound tune isolate {rt}",
        undo: "tailbound tune undo",
        source: "cgroup-v2.rst (cpuset.cpus.partition)",
        look: partition,
        ..CHECK
    },
    Check {
        id: "iso.effective-set",
        why: "the CPUs that are isolated now, by partitions",
        now: "tailbound tune isolate {rt}",
        undo: "tailbound tune undo",
        source: "cgroup-v2.rst (cpuset.cpus.isolated)",
        look: effective_set,
        ..CHECK
    },
    Check {
        id: "iso.runtime-strength",
        why: "a partition of an older kernel keeps load balancing away, and little else",
        now: "tailbound tune isolate {rt} (it adds what the partition does not do)",
        for_good: "a kernel whose partitions move kernel threads and timers too (7.x), or isolcpus=",
        source: "kernel/sched/isolation.c of 6.12 and 7.2",
        look: runtime_strength,
        ..CHECK
    },
    Check {
        id: "iso.nohz-full",
        why: "without the tick a program that never sleeps is not interrupted; one that sleeps pays for it at every entry into the kernel",
        for_good: "boot with nohz_full={rt} for programs that never sleep, without it for others",
        undo: "remove it and reboot",
        source: "cpu-isolation.rst",
        look: nohz_full,
        ..CHECK
    },
    Check {
        id: "iso.tick-still-on",
        why: "the tick stays on where a second thread, perf, a CPU timer, an unstable clock or the fair server needs it",
        now: "take the reason away: trace timer:tick_stop names it",
        source: "include/trace/events/timer.h (tick_stop)",
        needs: &[Need::RtCpus, Need::Sample],
        look: tick_still_on,
        ..CHECK
    },
    Check {
        id: "iso.housekeeping-left",
        why: "RCU, kernel workers and interrupts need CPUs too; the kernel keeps CPU 0 for itself",
        now: "choose other CPUs for real-time work",
        source: "cpu-isolation.rst",
        look: housekeeping_left,
        ..CHECK
    },
    Check {
        id: "iso.smt-sibling",
        why: "two logical CPUs of a core share its execution units: the other one costs 10 to 100 % of the time",
        now: "tailbound tune set siblings=off --rt-cpus {rt}",
        for_good: "boot with nosmt",
        undo: "tailbound tune undo",
        source: "cpu-isolation.rst",
        look: smt_sibling,
        ..CHECK
    },
    Check {
        id: "iso.llc-shared",
        why: "neighbours that share the last-level cache drive real-time lines out of it",
        now: "tailbound tune set cache-ways=2 --rt-cpus {rt}",
        undo: "tailbound tune undo",
        source: "Documentation/filesystems/resctrl.rst",
        look: caches::llc_shared,
        ..CHECK
    },
    Check {
        id: "iso.cache-ways",
        why: "what other groups or devices may fill is not the real-time CPUs' own",
        now: "tailbound tune set cache-ways=2 --rt-cpus {rt}",
        undo: "tailbound tune undo",
        source: "Documentation/filesystems/resctrl.rst (shareable_bits, bit_usage)",
        look: caches::cache_ways,
        ..CHECK
    },
    Check {
        id: "iso.memory-bandwidth",
        why: "a neighbour that uses all of the memory's bandwidth makes each miss of a cache slow",
        now: "tailbound tune set memory-bandwidth=50% --rt-cpus {rt}",
        undo: "tailbound tune undo",
        source: "Documentation/filesystems/resctrl.rst",
        look: caches::memory_bandwidth,
        ..CHECK
    },
    Check {
        id: "iso.foreign-tasks",
        why: "a thread that may run on a real-time CPU will wake up there some day",
        now: "tailbound tune set threads=housekeeping --rt-cpus {rt}",
        for_good: "CPUAffinity={hk} in /etc/systemd/system.conf",
        undo: "tailbound tune undo",
        source: "cpu-isolation.rst",
        look: |m| movable(m, ThreadKind::Program),
        ..CHECK
    },
    Check {
        id: "iso.kthreads",
        why: "kernel threads that are bound to no CPU run for milliseconds",
        now: "tailbound tune set kernel-threads=housekeeping --rt-cpus {rt}",
        for_good: "boot with isolcpus=domain,{rt}",
        undo: "tailbound tune undo",
        source: "kernel-per-CPU-kthreads.rst",
        look: |m| movable(m, ThreadKind::Kernel),
        ..CHECK
    },
    Check {
        id: "iso.workqueue-unbound",
        why: "unbound kernel workers (writeback, file systems) land on real-time CPUs",
        now: "echo {mask} > /sys/devices/virtual/workqueue/cpumask",
        for_good: "boot with workqueue.unbound_cpus={hk}",
        undo: "write the old mask back",
        source: "workqueue.rst",
        look: |m| mask_file(m, "/sys/devices/virtual/workqueue/cpumask"),
        ..CHECK
    },
    Check {
        id: "iso.workqueue-sysfs",
        why: "each work queue in sysfs has CPUs of its own",
        now: "tailbound tune set own-workqueues=housekeeping --rt-cpus {rt}",
        undo: "tailbound tune undo",
        source: "workqueue.rst",
        look: own_workqueues,
        ..CHECK
    },
    Check {
        id: "iso.wq-bound-noise",
        why: "work that is bound to a CPU cannot be moved, only avoided",
        now: "tailbound run --observe tracepoints names who ran",
        source: "kernel-per-CPU-kthreads.rst",
        look: |_| {
            Ok(CheckOutcome::unknown("only a trace tells: tailbound run --observe tracepoints"))
        },
        ..CHECK
    },
    Check {
        id: "iso.ipi-broadcast",
        why: "seccomp, membarrier and TLB flushes of a program interrupt every CPU that runs one of its threads, isolated or not",
        now: "keep threads that map and unmap memory out of the program on the real-time CPUs",
        source: "cpu-isolation.rst",
        needs: &[Need::RtCpus, Need::Sample],
        look: ipi_broadcast,
        ..CHECK
    },
    Check {
        id: "iso.ipi-sender",
        why: "who sent the last interrupt to an isolated CPU is whom to move",
        now: "tailbound run --observe tracepoints",
        source: "include/trace/events/ipi.h",
        look: |_| {
            Ok(CheckOutcome::unknown(
                "the kernel keeps no record: the event ipi_send_cpu tells while it is traced",
            ))
        },
        ..CHECK
    },
];

fn boot_domain(m: &Machine) -> Look {
    let boot = m.root.cpus("/sys/devices/system/cpu/isolated")?;
    let partitions = cgroups::partition(&m.root).is_some();
    if boot == m.rt {
        return Ok(CheckOutcome::ok(format!("isolcpus= has {boot}")));
    }
    if boot.is_empty() {
        let text = "nothing was isolated at boot";
        return Ok(if partitions {
            CheckOutcome::ok(format!("{text}; a partition does it"))
        } else {
            CheckOutcome::warn(text)
        });
    }
    Ok(CheckOutcome::warn(format!("isolcpus= has {boot}, and the real-time CPUs are {}", m.rt)))
}

fn partition(m: &Machine) -> Look {
    let mount = cgroups::cpuset_v2(&m.root)?;
    let path = format!("{mount}/{}/cpuset.cpus.partition", cgroups::PARTITION);
    let mut invalid = Vec::new();
    let mut valid = Vec::new();
    let own = m.root.read_trimmed(&path).ok().map(|t| (cgroups::PARTITION.to_owned(), t));
    let others = m.root.list(&mount)?.into_iter().filter_map(|dir| {
        let text = m.root.read_trimmed(&format!("{mount}/{dir}/cpuset.cpus.partition")).ok()?;
        (dir != cgroups::PARTITION).then_some((dir, text))
    });
    for (dir, text) in own.into_iter().chain(others) {
        if text.contains("invalid") {
            invalid.push(format!("{dir}: {text}"));
        } else if text != "member" {
            valid.push(format!("{dir}: {text}"));
        }
    }
    Ok(match (invalid.as_slice(), valid.as_slice()) {
        ([], []) => CheckOutcome::warn("there is no partition"),
        ([], _) => CheckOutcome::ok(few(&valid, 3)),
        _ => CheckOutcome::bad(few(&invalid, 3)),
    })
}

fn effective_set(m: &Machine) -> Look {
    let mount = cgroups::cpuset_v2(&m.root)?;
    let isolated = m.root.cpus(&format!("{mount}/cpuset.cpus.isolated"))?;
    let boot = empty_if_absent(m.root.cpus("/sys/devices/system/cpu/isolated"))?;
    let missing = m.rt.minus(&isolated).minus(&boot);
    Ok(if missing.is_empty() {
        CheckOutcome::ok(format!(
            "isolated: {}",
            if isolated.is_empty() { &boot } else { &isolated }
        ))
    } else {
        CheckOutcome::warn(format!("CPUs {missing} are in no isolated partition"))
    })
}

fn runtime_strength(m: &Machine) -> Look {
    if cgroups::partition(&m.root).is_none() {
        return Ok(CheckOutcome::not_applicable("there is no partition"));
    }
    let (major, minor) = m.linux()?;
    Ok(match (major, minor) {
        (7.., _) => CheckOutcome::ok(format!("Linux {major}.{minor}")),
        _ => CheckOutcome::warn(format!(
            "Linux {major}.{minor}: a partition stops load balancing and unbound work, not kernel threads and timers"
        )),
    })
}

fn nohz_full(m: &Machine) -> Look {
    if m.online.is_empty() {
        return Ok(CheckOutcome::unknown("/sys/devices/system/cpu cannot be read"));
    }
    let set = empty_if_absent(m.root.cpus("/sys/devices/system/cpu/nohz_full"))?;
    let without = m.rt.minus(&set);
    Ok(match m.wanted.workload {
        Workload::Polling if without.is_empty() => CheckOutcome::ok(format!("nohz_full={set}")),
        Workload::Polling => CheckOutcome::bad(format!("CPUs {without} keep their tick")),
        Workload::Cyclic if m.rt_in(&set).is_empty() => {
            CheckOutcome::ok("off, which suits programs that sleep")
        }
        Workload::Cyclic => CheckOutcome::warn(format!(
            "nohz_full={set}: programs that sleep pay for it at each entry into the kernel"
        )),
    })
}

fn tick_still_on(m: &Machine) -> Look {
    let set = m.rt_in(&empty_if_absent(m.root.cpus("/sys/devices/system/cpu/nohz_full"))?);
    if set.is_empty() {
        return Ok(CheckOutcome::not_applicable("nohz_full= has none of the real-time CPUs"));
    }
    let Some(sample) = &m.sample else { return Ok(CheckOutcome::unknown("no sample")) };
    let n = sample.of_class("LOC", &set)?;
    let rate = n as f64 / sample.seconds;
    let found = format!("{rate:.1} timer interrupts a second on CPUs {set}");
    Ok(CheckOutcome::ok_if(rate <= 2.0 * set.len() as f64, Level::Bad, found))
}

fn housekeeping_left(m: &Machine) -> Look {
    if m.online.is_empty() {
        return Ok(CheckOutcome::unknown("/sys/devices/system/cpu cannot be read"));
    }
    if m.rt.contains(0) {
        return Ok(CheckOutcome::bad("CPU 0 is among the real-time CPUs"));
    }
    let wanted = if m.online.len() > 8 { 2 } else { 1 };
    let found = format!("CPUs {} are left for everything else", m.hk);
    Ok(match m.hk.len() {
        0 => CheckOutcome::bad("no CPU is left for everything else"),
        n if n < wanted => CheckOutcome::warn(found),
        _ => CheckOutcome::ok(found),
    })
}

fn smt_sibling(m: &Machine) -> Look {
    let mut outside = Vec::new();
    let mut shared = false;
    for cpu in m.rt.iter() {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let siblings = m.root.cpus(&path)?;
        shared |= siblings.len() > 1;
        outside.extend(siblings.minus(&m.rt).and(&m.online).iter());
    }
    let outside: CpuSet = outside.into_iter().collect();
    Ok(match (shared, outside.is_empty()) {
        (false, _) => CheckOutcome::not_applicable("no real-time CPU shares its core"),
        (true, true) => CheckOutcome::ok("all siblings are real-time CPUs or off"),
        (true, false) => CheckOutcome::bad(format!(
            "CPUs {outside} share cores with real-time CPUs and do other work"
        )),
    })
}

/// Whose threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadKind {
    Kernel,
    Program,
}

fn movable(m: &Machine, kind: ThreadKind) -> Look {
    let kernel = kind == ThreadKind::Kernel;
    let mut names = Vec::new();
    // This program has ended before anybody could be disturbed by it.
    let own = m.root.is_real().then(std::process::id);
    let movable = |t: &&Thread| t.kernel == kernel && !t.fixed && Some(t.pid) != own;
    for thread in m.threads()?.iter().filter(movable) {
        let Ok(allowed) = &thread.allowed else { continue };
        // A thread that is pinned there alone was put there by somebody.
        let placed = !kernel && allowed.minus(&m.rt).is_empty();
        if !m.rt_in(allowed).is_empty() && !placed && Some(thread.pid) != m.wanted.pid {
            names.push(format!("{} ({})", thread.name, thread.tid));
        }
    }
    Ok(match names.len() {
        0 => CheckOutcome::ok("none may run on the real-time CPUs"),
        1 => {
            CheckOutcome::bad(format!("1 thread may run on the real-time CPUs: {}", few(&names, 1)))
        }
        n => CheckOutcome::bad(format!(
            "{n} threads may run on the real-time CPUs: {}",
            few(&names, 3)
        )),
    })
}

fn own_workqueues(m: &Machine) -> Look {
    const BASE: &str = "/sys/devices/virtual/workqueue";
    let mut inside = Vec::new();
    let mut any = false;
    for name in m.root.list(BASE)? {
        let Ok(text) = m.root.read_trimmed(&format!("{BASE}/{name}/cpumask")) else { continue };
        any = true;
        if CpuSet::of_mask(&text).is_some_and(|cpus| !m.rt_in(&cpus).is_empty()) {
            inside.push(name);
        }
    }
    Ok(match (any, inside.is_empty()) {
        (false, _) => CheckOutcome::not_applicable("no work queue shows its CPUs"),
        (true, true) => CheckOutcome::ok("none of them may use the real-time CPUs"),
        (true, false) => {
            CheckOutcome::bad(format!("they may use real-time CPUs: {}", few(&inside, 4)))
        }
    })
}

fn ipi_broadcast(m: &Machine) -> Look {
    let Some(sample) = &m.sample else { return Ok(CheckOutcome::unknown("no sample")) };
    let (tlb, calls) = (sample.of_class("TLB", &m.rt)?, sample.of_class("CAL", &m.rt)?);
    let found = format!(
        "{tlb} TLB flushes and {calls} function calls from other CPUs in {:.0} s",
        sample.seconds
    );
    Ok(CheckOutcome::ok_if(tlb == 0 && calls == 0, Level::Warn, found))
}
