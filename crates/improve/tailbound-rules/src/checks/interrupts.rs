// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts: where they go, who moves them, how urgent their threads are.
//!
//! Source: Documentation/core-api/irq/irq-affinity.rst, kernel/irq/proc.c,
//! irqbalance(1), Documentation/admin-guide/kernel-parameters.txt (threadirqs, irqaffinity=).

use std::collections::BTreeSet;

use tailbound_host::root::empty_if_absent;

use super::{PLAIN, few, mask_file};
use crate::check::{Check, Group};
use crate::machine::Machine;
use crate::need::Need;
use crate::outcome::{CheckOutcome, Look};

const CHECK: Check = Check { group: Group::Interrupts, ..PLAIN };

pub(super) static CHECKS: &[Check] = &[
    Check {
        id: "irq.default-affinity",
        why: "interrupts that are requested later land where this mask says",
        now: "echo {mask} > /proc/irq/default_smp_affinity",
        for_good: "boot with irqaffinity={hk}",
        undo: "write the old mask back",
        source: "irq-affinity.rst",
        needs: &[Need::RtCpus],
        look: |m| mask_file(m, "/proc/irq/default_smp_affinity"),
        ..CHECK
    },
    Check {
        id: "irq.affinity",
        why: "the interrupt of a device preempts every thread of its CPU",
        now: "tailbound tune set interrupts=housekeeping --rt-cpus {rt}",
        for_good: "boot with irqaffinity={hk}, and ban {rt} from irqbalance",
        undo: "tailbound tune undo",
        source: "irq-affinity.rst",
        needs: &[Need::RtCpus],
        look: affinity,
        ..CHECK
    },
    Check {
        id: "irq.managed",
        why: "the kernel alone places these interrupts; they come only where a thread of that CPU uses the device",
        now: "do not use the device from the real-time CPUs, or give it fewer queues",
        for_good: "boot with isolcpus=managed_irq,{rt}",
        source: "kernel-parameters.txt (isolcpus=managed_irq)",
        needs: &[Need::RtCpus],
        look: managed,
        ..CHECK
    },
    Check {
        id: "irq.rate",
        why: "each interrupt takes 1 to 50 us from whatever runs",
        now: "by kind: move the device's interrupt; no mprotect and munmap beside (TLB); no perf (NMI, PMI)",
        source: "cpu-isolation.rst",
        needs: &[Need::RtCpus, Need::Sample],
        look: rate,
        ..CHECK
    },
    Check {
        id: "irq.irqbalance",
        why: "irqbalance moves interrupts back some seconds later",
        now: "systemctl stop irqbalance",
        for_good: "IRQBALANCE_BANNED_CPULIST={rt} in /etc/default/irqbalance",
        undo: "systemctl start irqbalance",
        source: "irqbalance(1)",
        needs: &[Need::RtCpus],
        look: irqbalance,
        ..CHECK
    },
    Check {
        id: "irq.thread-priority",
        why: "interrupt threads are FIFO 50 by default: above every program below 50, and equal to each other",
        now: "tailbound tune irq DEVICE --policy fifo:80",
        for_good: "a rule in a profile: [[thread]] name = \"irq/*-DEVICE\"",
        undo: "tailbound tune undo",
        source: "Documentation/core-api/real-time/theory.rst",
        look: thread_priority,
        ..CHECK
    },
    Check {
        id: "irq.threaded",
        why: "handlers that are no threads have no priority: they go before everything",
        for_good: "boot with threadirqs, or use PREEMPT_RT",
        source: "kernel-parameters.txt (threadirqs)",
        look: threaded,
        ..CHECK
    },
    Check {
        id: "irq.shared",
        why: "on a shared line the handler of the other device runs first",
        now: "put the card into another slot, or let its driver use MSI",
        source: "proc_interrupts(5)",
        look: shared,
        ..CHECK
    },
    Check {
        id: "irq.storm-spurious",
        why: "an interrupt that nobody takes is polled for, or switched off",
        now: "mend the driver or firmware of the device",
        source: "kernel/irq/spurious.c",
        look: spurious,
        ..CHECK
    },
    Check {
        id: "irq.handler-duration",
        why: "a handler that runs for long delays every thread of its CPU",
        now: "tailbound run --observe tracepoints measures them",
        for_good: "boot with irqhandler.duration_warn_us=N",
        source: "kernel-parameters.txt (irqhandler.duration_warn_us=)",
        look: handler_duration,
        ..CHECK
    },
];

fn affinity(m: &Machine) -> Look {
    let all = m.interrupts()?;
    let mut inside = Vec::new();
    for line in all.lines.iter().filter(|l| l.managed != Ok(true)) {
        let cpus = line.effective.as_ref().or(line.affinity.as_ref());
        if cpus.is_ok_and(|c| !m.rt_in(c).is_empty()) {
            inside.push(format!("{} ({})", line.number, line.actions.join(", ")));
        }
    }
    Ok(match inside.len() {
        0 => CheckOutcome::ok("no interrupt goes to the real-time CPUs"),
        n => CheckOutcome::bad(format!("{n} go to real-time CPUs: {}", few(&inside, 3))),
    })
}

fn managed(m: &Machine) -> Look {
    let all = m.interrupts()?;
    let mut inside = Vec::new();
    let mut any = false;
    let mut untold = None;
    for line in &all.lines {
        match &line.managed {
            Ok(true) => {
                any = true;
                if line.effective.as_ref().is_ok_and(|c| !m.rt_in(c).is_empty()) {
                    inside.push(format!("{} ({})", line.number, line.actions.join(", ")));
                }
            }
            Ok(false) => {}
            Err(why) => untold = Some(why.clone()),
        }
    }
    if !inside.is_empty() {
        return Ok(CheckOutcome::warn(format!("on real-time CPUs: {}", few(&inside, 3))));
    }
    match untold.filter(|_| !any) {
        Some(why) => Ok(why.into()),
        None if any => Ok(CheckOutcome::ok("managed interrupts go to other CPUs")),
        None => Ok(CheckOutcome::not_applicable("the kernel manages none")),
    }
}

fn rate(m: &Machine) -> Look {
    let Some(sample) = &m.sample else { return Ok(CheckOutcome::unknown("no sample")) };
    // The timer of the CPU itself is its own work.
    let came: Vec<String> = sample
        .interrupts(&m.rt)?
        .into_iter()
        .filter(|(name, _)| name != "LOC")
        .map(|(name, n)| format!("{n} {name}"))
        .collect();
    Ok(if came.is_empty() {
        CheckOutcome::ok(format!("none but timers in {:.0} s", sample.seconds))
    } else {
        CheckOutcome::warn(format!("in {:.0} s: {}", sample.seconds, few(&came, 5)))
    })
}

fn irqbalance(m: &Machine) -> Look {
    if m.running(&["irqbalance"])?.is_empty() {
        return Ok(CheckOutcome::ok("it does not run"));
    }
    let text = empty_if_absent(m.root.text("/etc/default/irqbalance"))?;
    let banned = text.lines().find_map(|l| l.trim().strip_prefix("IRQBALANCE_BANNED_CPULIST="));
    let Some(list) = banned else {
        let boot = empty_if_absent(m.root.cpus("/sys/devices/system/cpu/isolated"))?;
        let nohz = empty_if_absent(m.root.cpus("/sys/devices/system/cpu/nohz_full"))?;
        let spared = m.rt.minus(&boot).minus(&nohz).is_empty();
        return Ok(if spared {
            CheckOutcome::ok("it runs, and spares isolcpus= and nohz_full= by itself")
        } else {
            CheckOutcome::bad("it runs, and no CPU is banned from it")
        });
    };
    let list: tailbound_core::CpuSet = list
        .trim_matches('"')
        .parse()
        .map_err(|e| CheckOutcome::unknown(format!("its list: {e}")))?;
    let missing = m.rt.minus(&list);
    Ok(if missing.is_empty() {
        CheckOutcome::ok(format!("it runs, with {list} banned"))
    } else {
        CheckOutcome::bad(format!("it runs, and CPUs {missing} are not banned from it"))
    })
}

fn thread_priority(m: &Machine) -> Look {
    let all: Vec<_> =
        m.threads()?.iter().filter(|t| t.kernel && t.name.starts_with("irq/")).collect();
    if all.is_empty() {
        return Ok(CheckOutcome::not_applicable("interrupt handlers are no threads here"));
    }
    let priorities: BTreeSet<u8> = all.iter().map(|t| t.policy.priority()).collect();
    let list: Vec<String> = priorities.iter().map(u8::to_string).collect();
    let found = format!("{} interrupt threads with priorities {}", all.len(), list.join(", "));
    Ok(if priorities.len() == 1 && all.len() > 1 {
        CheckOutcome::warn(format!("{found}: none goes before another"))
    } else {
        CheckOutcome::ok(found)
    })
}

fn threaded(m: &Machine) -> Look {
    if m.is_rt() {
        return Ok(CheckOutcome::ok("PREEMPT_RT: all handlers are threads"));
    }
    Ok(if m.parameter("threadirqs")?.is_some() {
        CheckOutcome::ok("threadirqs")
    } else {
        CheckOutcome::warn("handlers are no threads")
    })
}

fn shared(m: &Machine) -> Look {
    let lines = &m.interrupts()?.lines;
    let shared: Vec<String> = lines
        .iter()
        .filter(|l| l.actions.len() > 1)
        .map(|l| format!("{}: {}", l.number, l.actions.join(", ")))
        .collect();
    Ok(if shared.is_empty() {
        CheckOutcome::ok("no line is shared")
    } else {
        CheckOutcome::warn(few(&shared, 3))
    })
}

fn spurious(m: &Machine) -> Look {
    let mut unhandled = Vec::new();
    let mut read = false;
    for line in &m.interrupts()?.lines {
        let path = format!("/proc/irq/{}/spurious", line.number);
        let Ok(text) = m.root.text(&path) else { continue };
        let n = text.lines().find_map(|l| l.strip_prefix("unhandled ")?.trim().parse::<u64>().ok());
        let Some(n) = n else { continue };
        read = true;
        if n > 0 {
            unhandled.push(format!("{} ({}): {n}", line.number, line.actions.join(", ")));
        }
    }
    if let Ok(Some(line)) = m.said(&["nobody cared"]) {
        return Ok(CheckOutcome::bad(line.to_owned()));
    }
    Ok(match (read, unhandled.is_empty()) {
        (false, _) => CheckOutcome::unknown("/proc/irq shows no counts"),
        (true, true) => CheckOutcome::ok("none was unhandled"),
        (true, false) => CheckOutcome::warn(format!("unhandled: {}", few(&unhandled, 3))),
    })
}

fn handler_duration(m: &Machine) -> Look {
    match m.said(&["irqhandler", "long duration of IRQ"])? {
        Some(line) => Ok(CheckOutcome::warn(line.to_owned())),
        None if m.parameter("irqhandler.duration_warn_us")?.is_some() => {
            Ok(CheckOutcome::ok("the kernel watches them and named none"))
        }
        None => Ok(CheckOutcome::unknown(
            "the kernel does not watch them: tailbound run --observe tracepoints",
        )),
    }
}
