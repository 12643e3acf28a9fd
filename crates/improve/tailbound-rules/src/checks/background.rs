// SPDX-License-Identifier: MIT OR Apache-2.0
//! RCU, watchdogs, machine checks: the kernel's own regular work.
//!
//! Source: Documentation/admin-guide/{kernel-parameters.txt,lockup-watchdogs.rst},
//! Documentation/RCU/, Documentation/arch/x86/x86_64/machinecheck.rst.

use super::{PLAIN, few, none_of_rt, number};
use crate::check::{Check, Group};
use crate::machine::Machine;
use crate::need::Need;
use crate::outcome::{CheckOutcome, Level, Look};

const CHECK: Check = Check { group: Group::Background, needs: &[Need::RtCpus], ..PLAIN };

pub(super) static CHECKS: &[Check] = &[
    Check {
        id: "rcu.nocb",
        why: "RCU callbacks run in softirqs of the real-time CPU",
        for_good: "boot with rcu_nocbs={rt}",
        undo: "remove it and reboot",
        source: "kernel-parameters.txt (rcu_nocbs=)",
        look: nocb,
        ..CHECK
    },
    Check {
        id: "rcu.nocb-threads",
        why: "callbacks that were moved to threads which still run there are moved nowhere",
        now: "tailbound tune set kernel-threads=housekeeping --rt-cpus {rt}",
        undo: "tailbound tune undo",
        source: "kernel-per-CPU-kthreads.rst",
        look: nocb_threads,
        ..CHECK
    },
    Check {
        id: "rcu.expedited",
        why: "expedited grace periods interrupt every CPU",
        now: "echo 1 > /sys/kernel/rcu_normal; echo 0 > /sys/kernel/rcu_expedited",
        for_good: "boot with rcupdate.rcu_normal_after_boot=1",
        undo: "echo 0 > /sys/kernel/rcu_normal",
        source: "kernel-parameters.txt (rcupdate.)",
        needs: &[],
        look: expedited,
        ..CHECK
    },
    Check {
        id: "rcu.kthread-prio",
        why: "RCU that starves beside real-time threads ends in a stall, and in memory running out",
        for_good: "boot with rcutree.kthread_prio=N, above the busiest real-time thread of the other CPUs",
        source: "kernel-parameters.txt (rcutree.kthread_prio=)",
        needs: &[],
        look: |m| {
            if !m.is_rt() && m.config("RCU_BOOST")?.as_deref() != Some("y") {
                return Ok(CheckOutcome::not_applicable(
                    "without PREEMPT_RT and RCU_BOOST it has no priority",
                ));
            }
            number(m, "/sys/module/rcutree/parameters/kthread_prio", |n| n >= 1, Level::Warn)
        },
        ..CHECK
    },
    Check {
        id: "wd.nmi",
        why: "an interrupt that cannot be masked every few seconds, and one counter of the CPU less",
        now: "echo 0 > /proc/sys/kernel/nmi_watchdog",
        for_good: "boot with nmi_watchdog=0",
        undo: "echo 1 > /proc/sys/kernel/nmi_watchdog",
        source: "lockup-watchdogs.rst",
        needs: &[],
        look: |m| number(m, "/proc/sys/kernel/nmi_watchdog", |n| n == 0, Level::Warn),
        ..CHECK
    },
    Check {
        id: "wd.soft",
        why: "a timer every 4 s, and a thread of the highest class, on each CPU that is watched",
        now: "echo {hk} > /proc/sys/kernel/watchdog_cpumask",
        for_good: "kernel.watchdog_cpumask = {hk} in /etc/sysctl.d",
        undo: "write the old list back",
        source: "lockup-watchdogs.rst",
        look: soft,
        ..CHECK
    },
    Check {
        id: "mce.poll",
        why: "banks of machine checks are polled for corrected errors on every CPU",
        now: "tailbound tune set corrected-errors=ignore (corrected errors are then not reported)",
        for_good: "boot with mce=ignore_ce",
        undo: "tailbound tune undo",
        source: "machinecheck.rst",
        needs: &[Need::X86, Need::Metal, Need::RtCpus],
        look: machine_checks,
        ..CHECK
    },
];

fn nocb(m: &Machine) -> Look {
    let threads = m.threads()?;
    let covered = |cpu: u32| {
        threads.iter().any(|t| {
            t.kernel && (t.name == format!("rcuop/{cpu}") || t.name == format!("rcuos/{cpu}"))
        })
    };
    let missing: tailbound_core::CpuSet = m.rt.iter().filter(|c| !covered(*c)).collect();
    Ok(if missing.is_empty() {
        CheckOutcome::ok("callbacks of the real-time CPUs are handled by threads")
    } else {
        CheckOutcome::warn(format!("callbacks of CPUs {missing} run there"))
    })
}

fn nocb_threads(m: &Machine) -> Look {
    let mut any = false;
    let mut inside = Vec::new();
    for t in m.threads()?.iter().filter(|t| t.kernel) {
        if t.name.starts_with("rcuo") {
            any = true;
            if t.allowed.as_ref().is_ok_and(|a| !m.rt_in(a).is_empty()) {
                inside.push(t.name.clone());
            }
        }
    }
    Ok(match (any, inside.is_empty()) {
        (false, _) => CheckOutcome::not_applicable("there are no such threads"),
        (true, true) => CheckOutcome::ok("they run elsewhere"),
        (true, false) => CheckOutcome::bad(format!("on real-time CPUs: {}", few(&inside, 3))),
    })
}

fn expedited(m: &Machine) -> Look {
    if m.is_rt() {
        return Ok(CheckOutcome::ok("PREEMPT_RT never expedites"));
    }
    let normal = m.number("/sys/kernel/rcu_normal")?;
    let expedited = m.number("/sys/kernel/rcu_expedited")?;
    Ok(CheckOutcome::ok_if(
        normal == 1,
        if expedited != 0 { Level::Bad } else { Level::Warn },
        format!("rcu_normal {normal}, rcu_expedited {expedited}"),
    ))
}

fn soft(m: &Machine) -> Look {
    if m.number("/proc/sys/kernel/soft_watchdog") == Ok(0) {
        return Ok(CheckOutcome::ok("it is off"));
    }
    let cpus = m.root.cpus("/proc/sys/kernel/watchdog_cpumask")?;
    let seen = none_of_rt(m, "watchdog_cpumask", &cpus);
    Ok(if seen.level == Level::Bad { CheckOutcome { level: Level::Warn, ..seen } } else { seen })
}

fn machine_checks(m: &Machine) -> Look {
    let mut polled = Vec::new();
    for cpu in m.rt.iter() {
        let base = format!("/sys/devices/system/machinecheck/machinecheck{cpu}");
        let ignored = m.number(&format!("{base}/ignore_ce"))? == 1;
        let interval = m.number(&format!("{base}/check_interval"))?;
        if !ignored && interval != 0 {
            polled.push(cpu);
        }
    }
    let polled: tailbound_core::CpuSet = polled.into_iter().collect();
    Ok(if polled.is_empty() {
        CheckOutcome::ok("not polled")
    } else {
        CheckOutcome::warn(format!("polled on CPUs {polled}"))
    })
}
