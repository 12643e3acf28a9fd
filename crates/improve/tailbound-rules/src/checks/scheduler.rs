// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the scheduler may do to a real-time thread.
//!
//! Source: Documentation/scheduler/{sched-rt-group,sched-deadline,sched-bwc}.rst,
//! sched(7), kernel/sched/deadline.c.

use tailbound_core::Policy;
use tailbound_core::order;
use tailbound_host::threads::Thread;

use super::{PLAIN, few, number};
use crate::check::{Check, Group};
use crate::machine::Machine;
use crate::need::Need;
use crate::outcome::{CheckOutcome, Level, Look};

const CHECK: Check = Check { group: Group::Scheduler, ..PLAIN };
/// The release that brought the fair server.
const FAIR_SERVER_SINCE: (u32, u32) = (6, 12);

pub(super) static CHECKS: &[Check] = &[
    Check {
        id: "sched.rt-throttle",
        why: "all real-time threads of a CPU stop for what is left of each second",
        now: "echo -1 > /proc/sys/kernel/sched_rt_runtime_us (only where every real-time thread sleeps)",
        for_good: "kernel.sched_rt_runtime_us = -1 in /etc/sysctl.d",
        undo: "echo 950000 > /proc/sys/kernel/sched_rt_runtime_us",
        source: "sched-rt-group.rst",
        look: rt_throttle,
        ..CHECK
    },
    Check {
        id: "sched.fair-server",
        why: "ordinary threads that starve get 50 ms a second above FIFO 99, whatever sched_rt_runtime_us says",
        now: "tailbound tune set fair-server=off --rt-cpus {rt}",
        for_good: "a unit that does so at boot: nothing else keeps it",
        undo: "tailbound tune undo",
        source: "kernel/sched/deadline.c (dl_server)",
        needs: &[Need::RtCpus],
        look: |m| server(m, "fair_server"),
        ..CHECK
    },
    Check {
        id: "sched.ext-server",
        why: "as the fair server, for threads of a BPF scheduler",
        now: "tailbound tune set ext-server=off --rt-cpus {rt}",
        undo: "tailbound tune undo",
        source: "kernel/sched/deadline.c",
        needs: &[Need::RtCpus],
        look: |m| server(m, "ext_server"),
        ..CHECK
    },
    Check {
        id: "sched.cgroup-rt-runtime",
        why: "in a group without real-time budget even root may not make real-time threads",
        now: "echo 950000 > {budget} (the groups above need as much)",
        for_good: "boot with rt_group_sched=0, or give the container a budget",
        undo: "write the old value back",
        source: "sched-rt-group.rst",
        look: cgroup_runtime,
        ..CHECK
    },
    Check {
        id: "sched.rt-hog",
        why: "a real-time thread that never sleeps starves kernel workers and RCU of its CPU",
        now: "move it to a CPU of its own, or lower it",
        source: "sched(7)",
        look: |_| {
            Ok(CheckOutcome::unknown(
                "a run tells: tailbound run finds real-time threads beside the measurement",
            ))
        },
        ..CHECK
    },
    Check {
        id: "sched.prio-99",
        why: "priority 99 competes with the threads that migrate tasks and stop CPUs: a mistake there hangs the machine",
        now: "tailbound tune set THREAD --policy fifo:90",
        undo: "tailbound tune undo",
        source: "sched(7)",
        look: prio_99,
        ..CHECK
    },
    Check {
        id: "sched.prio-order",
        why: "a thread that waits for one of lower priority waits for everything in between",
        now: "tailbound tune set THREAD --policy fifo:N",
        undo: "tailbound tune undo",
        source: "Documentation/core-api/real-time/differences.rst",
        needs: &[Need::Target],
        look: prio_order,
        ..CHECK
    },
    Check {
        id: "sched.two-rt-one-cpu",
        why: "a thread of higher priority on the same CPU goes first: that is no fault of the kernel",
        now: "tailbound tune move THREAD --cpus LIST",
        undo: "tailbound tune undo",
        source: "sched(7)",
        needs: &[Need::Target],
        look: two_on_one,
        ..CHECK
    },
    Check {
        id: "sched.timer-migration",
        why: "timers of a real-time CPU move to another one, which then wakes it up",
        now: "echo 0 > /proc/sys/kernel/timer_migration",
        for_good: "kernel.timer_migration = 0 in /etc/sysctl.d",
        undo: "echo 1 > /proc/sys/kernel/timer_migration",
        source: "Documentation/admin-guide/sysctl/kernel.rst",
        needs: &[Need::RtCpus],
        look: |m| number(m, "/proc/sys/kernel/timer_migration", |n| n == 0, Level::Warn),
        ..CHECK
    },
    Check {
        id: "sched.numa-balancing",
        why: "the kernel unmaps pages to find out who uses them: faults and TLB flushes in real-time threads",
        now: "echo 0 > /proc/sys/kernel/numa_balancing",
        for_good: "kernel.numa_balancing = 0 in /etc/sysctl.d",
        undo: "write the old value back",
        source: "Documentation/admin-guide/sysctl/kernel.rst",
        needs: &[Need::Numa],
        look: |m| number(m, "/proc/sys/kernel/numa_balancing", |n| n == 0, Level::Bad),
        ..CHECK
    },
    Check {
        id: "sched.cpu-quota",
        why: "a group that has used up its quota stands still for the rest of the period, its ordinary threads at least",
        now: "{lift}",
        for_good: "CPUQuota= (empty) in the unit",
        undo: "write the old value back",
        source: "sched-bwc.rst",
        look: cpu_quota,
        ..CHECK
    },
    Check {
        id: "sched.affinity-reset",
        why: "before Linux 6.2, enabling the cpuset controller gave every thread of the group all CPUs again",
        now: "set the affinities again after it",
        source: "kernel/cgroup/cpuset.c (user_cpus_ptr)",
        look: |m| {
            let (major, minor) = m.linux()?;
            Ok(if (major, minor) >= (6, 2) {
                CheckOutcome::ok(format!("Linux {major}.{minor} keeps them"))
            } else {
                CheckOutcome::warn(format!("Linux {major}.{minor} forgets them"))
            })
        },
        ..CHECK
    },
    Check {
        id: "sched.psi",
        why: "the scheduler counts pressure (PSI) at each switch and wake-up, and a work item sums it up every 2 s",
        for_good: "boot with psi=0, where no systemd-oomd or Kubernetes needs it",
        source: "Documentation/core-api/real-time/kernel-configuration.rst",
        look: |m| {
            m.root.read_trimmed("/proc/pressure/cpu")?;
            Ok(CheckOutcome::warn("it is on"))
        },
        ..CHECK
    },
    Check {
        id: "sched.rseq-slice",
        why: "since Linux 7.0 an ordinary thread may ask for a longer time slice in a critical section",
        source: "Documentation/userspace-api/rseq.rst",
        look: |m| {
            let path = "/proc/sys/kernel/rseq_slice_extension_nsec";
            match m.number(path) {
                Ok(ns) => Ok(CheckOutcome::ok(format!("a slice is extended by at most {ns} ns"))),
                Err(why) => Ok(why),
            }
        },
        ..CHECK
    },
];

fn rt_throttle(m: &Machine) -> Look {
    if let Ok(Some(line)) = m.said(&["RT throttling activated"]) {
        return Ok(CheckOutcome::bad(format!("it has happened: {line}")));
    }
    let state = m.word("sched.rt_throttling")?;
    Ok(if state == "off" {
        CheckOutcome::ok("off: a real-time thread that never sleeps keeps its CPU")
    } else {
        CheckOutcome::warn(format!("on: {state}"))
    })
}

fn server(m: &Machine, name: &str) -> Look {
    let mut on = Vec::new();
    for cpu in m.rt.iter() {
        let path = format!("sched/{name}/cpu{cpu}/runtime");
        match m.root.debugfs(&path) {
            Ok(text) if text == "0" => {}
            Ok(_) => on.push(cpu),
            Err(_) if m.linux()? < FAIR_SERVER_SINCE => {
                return Ok(CheckOutcome::not_applicable("Linux before 6.12 has no such server"));
            }
            Err(why) => return Ok(why.into()),
        }
    }
    Ok(if on.is_empty() {
        CheckOutcome::ok("off on the real-time CPUs")
    } else {
        let on: tailbound_core::CpuSet = on.into_iter().collect();
        CheckOutcome::bad(format!("on for CPUs {on}"))
    })
}

fn cgroup_runtime(m: &Machine) -> Look {
    let group = m.group()?;
    let budget = group.budget.as_ref().map_err(|e| CheckOutcome::from(e.clone()))?;
    let found = format!(
        "the group of {}, {}, has {} us in each period",
        m.process(),
        group.path,
        budget.runtime_us
    );
    Ok(CheckOutcome::ok_if(budget.runtime_us != 0, Level::Bad, found))
}

fn prio_99(m: &Machine) -> Look {
    let high = |t: &&Thread| {
        let own = t.kernel && (t.name.starts_with("migration/") || t.name.starts_with("watchdog"));
        let measuring = t.name.starts_with("tailbound");
        (t.policy.priority() >= 99 || matches!(t.policy, Policy::Deadline { .. }))
            && !own
            && !measuring
    };
    let names: Vec<String> =
        m.threads()?.iter().filter(high).map(|t| format!("{} ({})", t.name, t.tid)).collect();
    Ok(if names.is_empty() {
        CheckOutcome::ok("none but the kernel's own")
    } else {
        CheckOutcome::warn(few(&names, 4))
    })
}

fn prio_order(m: &Machine) -> Look {
    let target = m.target()?;
    let highest = target.iter().map(|t| t.policy.priority()).max().unwrap_or(0);
    if highest == 0 {
        return Ok(CheckOutcome::not_applicable("the program has no real-time thread"));
    }
    let below: Vec<String> = m
        .threads()?
        .iter()
        .filter(|t| t.kernel && (t.name.starts_with("ktimers/") || t.name.starts_with("irq_work/")))
        .filter(|t| {
            t.policy.priority() < highest && m.rt_in(&[t.last_cpu].into_iter().collect()).len() == 1
        })
        .map(|t| format!("{} ({})", t.name, t.policy))
        .collect();
    Ok(if below.is_empty() {
        CheckOutcome::ok(format!("the program has priority {highest}"))
    } else {
        CheckOutcome::warn(format!(
            "the program has priority {highest}, and what serves timerfd and the like less: {}",
            few(&below, 3)
        ))
    })
}

fn two_on_one(m: &Machine) -> Look {
    let target = m.target()?;
    let (mut own, mut others) = (Vec::new(), Vec::new());
    for one in target.iter().filter(|t| t.policy.is_realtime()) {
        let Ok(cpus) = &one.allowed else { continue };
        for other in m.threads()?.iter().filter(|t| t.tid != one.tid && t.policy.is_realtime()) {
            let both = other.allowed.as_ref().map(|a| a.and(cpus)).unwrap_or_default();
            let stopper = other.kernel && other.name.starts_with("migration/");
            if both.is_empty() || stopper || other.policy.priority() < one.policy.priority() {
                continue;
            }
            if other.pid != one.pid {
                others.push(format!("{} ({})", other.name, other.policy));
            } else if other.policy.priority() > one.policy.priority() || other.tid > one.tid {
                // Of two that are equal, one line.
                own.push(format!(
                    "its own {} ({}, {}) beside {} ({}, {}) on CPUs {both}",
                    other.name, other.tid, other.policy, one.name, one.tid, one.policy
                ));
            }
        }
    }
    for all in [&mut own, &mut others] {
        order::by(all, Ord::cmp);
        all.dedup();
    }
    own.append(&mut others);
    Ok(if own.is_empty() {
        CheckOutcome::ok("nothing of equal or higher priority on its CPUs")
    } else {
        CheckOutcome::warn(few(&own, 4))
    })
}

fn cpu_quota(m: &Machine) -> Look {
    let group = m.group()?;
    Ok(match group.quota.as_ref().map_err(|e| CheckOutcome::from(e.clone()))? {
        None => CheckOutcome::ok("no quota"),
        Some(quota) => CheckOutcome::warn(format!(
            "the group of {}, {}, may use {} CPUs",
            m.process(),
            group.path,
            quota.share
        )),
    })
}
