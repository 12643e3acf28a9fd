// SPDX-License-Identifier: MIT OR Apache-2.0
//! Firmware, console, mitigations.
//!
//! Source: Documentation/trace/hwlat_detector.rst,
//! Documentation/core-api/real-time/, Documentation/admin-guide/hw-vuln/.

use super::{PLAIN, few};
use crate::check::{Check, Group};
use crate::machine::Machine;
use crate::need::Need;
use crate::outcome::{CheckOutcome, Level, Look};

const CHECK: Check = Check { group: Group::Hardware, ..PLAIN };

pub(super) static CHECKS: &[Check] = &[
    Check {
        id: "hw.smi",
        why: "firmware takes 10 us to milliseconds, and the kernel cannot see it",
        now: "tailbound measure hwlat shows the gaps",
        for_good: "firmware settings: USB legacy support, ECC and thermal interrupts",
        source: "hwlat_detector.rst",
        needs: &[Need::X86, Need::Metal],
        look: |_| Ok(CheckOutcome::unknown("a run counts them: tailbound measure hwlat")),
        ..CHECK
    },
    Check {
        id: "hw.hwlat",
        why: "gaps that no interrupt explains come from hardware or a hypervisor",
        now: "tailbound measure hwlat",
        source: "hwlat_detector.rst",
        look: |_| Ok(CheckOutcome::unknown("a run tells: tailbound measure hwlat")),
        ..CHECK
    },
    Check {
        id: "hw.console",
        why: "a message on a serial line keeps interrupts off for milliseconds",
        now: "dmesg --console-level 1",
        for_good: "boot with quiet loglevel=3, or without console=ttyS",
        undo: "dmesg --console-level with the old level",
        source: "Documentation/core-api/printk-basics.rst",
        look: console,
        ..CHECK
    },
    Check {
        id: "hw.mitigations",
        why: "each entry into the kernel costs 0.1 to 1 us more: know it, and decide who may run here",
        source: "Documentation/admin-guide/hw-vuln/",
        look: mitigations,
        ..CHECK
    },
    Check {
        id: "hw.split-lock",
        why: "a program that locks across two cache lines is made to sleep for 10 ms",
        now: "echo 0 > /proc/sys/kernel/split_lock_mitigate",
        for_good: "mend the program; or boot with split_lock_detect=off",
        undo: "echo 1 > /proc/sys/kernel/split_lock_mitigate",
        source: "Documentation/admin-guide/sysctl/kernel.rst",
        needs: &[Need::X86],
        look: split_lock,
        ..CHECK
    },
];

fn console(m: &Machine) -> Look {
    let consoles = m.text("/proc/consoles")?;
    // `N` among the flags: it prints from a thread of its own.
    let slow: Vec<String> = consoles
        .lines()
        .filter(|l| l.starts_with("ttyS") || l.starts_with("ttyAMA"))
        .filter(|l| !l.split(['(', ')']).nth(1).is_some_and(|flags| flags.contains('N')))
        .filter_map(|l| l.split_ascii_whitespace().next().map(str::to_owned))
        .collect();
    let level = m.text("/proc/sys/kernel/printk")?;
    let level: Option<i64> = level.split_ascii_whitespace().next().and_then(|n| n.parse().ok());
    if slow.is_empty() {
        return Ok(CheckOutcome::ok("no serial console that prints with interrupts off"));
    }
    let level = level.ok_or_else(|| {
        CheckOutcome::unknown("/proc/sys/kernel/printk holds no level".to_owned())
    })?;
    Ok(CheckOutcome::ok_if(
        level <= 4,
        Level::Warn,
        format!("{} with level {level}", slow.join(", ")),
    ))
}

fn mitigations(m: &Machine) -> Look {
    const BASE: &str = "/sys/devices/system/cpu/vulnerabilities";
    let mut on = Vec::new();
    for name in m.root.list(BASE)? {
        if m.text(&format!("{BASE}/{name}")).is_ok_and(|t| t.starts_with("Mitigation")) {
            on.push(name);
        }
    }
    Ok(CheckOutcome::ok(if on.is_empty() {
        "none is on".to_owned()
    } else {
        format!("on: {}", few(&on, 8))
    }))
}

fn split_lock(m: &Machine) -> Look {
    let trapped = m.said(&["took a split_lock trap", "split lock detection: #AC"])?;
    if let Some(line) = trapped.filter(|l| l.contains("took")) {
        return Ok(CheckOutcome::bad(line.to_owned()));
    }
    let on = m.number("/proc/sys/kernel/split_lock_mitigate")?;
    Ok(CheckOutcome::ok(format!("no program was caught (split_lock_mitigate {on})")))
}
