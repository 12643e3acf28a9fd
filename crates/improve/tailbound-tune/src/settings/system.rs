// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watchdogs, machine checks, console, clock source, disks.
//!
//! Source: Documentation/admin-guide/{lockup-watchdogs,sysctl/kernel}.rst,
//! Documentation/ABI/stable/sysfs-block.

use super::{Draft, Effect, OnRefusal, Setting, Value, Values};
use crate::codec::Codec;
use crate::target::Target;

pub(super) static SETTINGS: &[Setting] = &[
    Setting {
        name: "nmi-watchdog",
        about: "No interrupt that cannot be masked, every few seconds, to find lockups",
        cures: &["wd.nmi"],
        cost: "a CPU that hangs with interrupts off is not reported",
        values: Values::Words(&[("off", "0"), ("on", "1")]),
        needs_cpus: false,
        effect: Effect::Files(&[("/proc/sys/kernel/nmi_watchdog", Codec::Number)]),
    },
    Setting {
        name: "soft-watchdog",
        about: "No timer and thread on each CPU to find soft lockups",
        cures: &["wd.soft"],
        cost: "a CPU that never schedules is not reported",
        values: Values::Words(&[("off", "0"), ("on", "1")]),
        needs_cpus: false,
        effect: Effect::Files(&[("/proc/sys/kernel/soft_watchdog", Codec::Number)]),
    },
    Setting {
        name: "corrected-errors",
        about: "Banks of machine checks are not polled for corrected errors",
        cures: &["mce.poll"],
        cost: "failing memory is noticed later",
        values: Values::Words(&[("ignore", "1"), ("poll", "0")]),
        needs_cpus: false,
        effect: Effect::Each(
            "/sys/devices/system/machinecheck",
            "/sys/devices/system/machinecheck/{}/ignore_ce",
            Codec::Number,
        ),
    },
    Setting {
        name: "console-level",
        about: "Messages of the kernel up to this level go to the console, with interrupts off while they do",
        cures: &["hw.console"],
        cost: "low: warnings are in the log only",
        values: Values::Number(1, 8),
        needs_cpus: false,
        effect: Effect::Function(console),
    },
    Setting {
        name: "clock-source",
        about: "What the kernel reads the time from",
        cures: &["clk.source"],
        cost: "tsc: only where it is stable",
        values: Values::Words(&[
            ("tsc", "tsc"),
            ("kvm-clock", "kvm-clock"),
            ("arch_sys_counter", "arch_sys_counter"),
        ]),
        needs_cpus: false,
        effect: Effect::Files(&[(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            Codec::Text,
        )]),
    },
    Setting {
        name: "split-lock-penalty",
        about: "A program that locks across two cache lines is not made to sleep for 10 ms",
        cures: &["hw.split-lock"],
        cost: "such a program slows down all CPUs at will",
        values: Values::Words(&[("off", "0"), ("on", "1")]),
        needs_cpus: false,
        effect: Effect::Files(&[("/proc/sys/kernel/split_lock_mitigate", Codec::Number)]),
    },
    Setting {
        name: "disk-completion",
        about: "Where the end of a disk request is handled: on the CPU that asked, or near it",
        cures: &["blk.rq-affinity"],
        cost: "same-cpu: one more interrupt there",
        values: Values::Words(&[("same-cpu", "2"), ("near", "1"), ("anywhere", "0")]),
        needs_cpus: false,
        effect: Effect::Each("/sys/block", "/sys/block/{}/queue/rq_affinity", Codec::Number),
    },
];

/// `current default minimum boot-default`: the first of four numbers, the others stay.
fn console(draft: &mut Draft<'_>, value: &Value) {
    let target = Target::setting("/proc/sys/kernel/printk", Codec::Text);
    let Some(Some(old)) = draft.read(&target) else { return };
    let mut numbers: Vec<&str> = old.split_ascii_whitespace().collect();
    if let Some(first) = numbers.first_mut() {
        *first = &value.0;
    }
    let new = numbers.join("\t");
    draft.change(target, Some(new), OnRefusal::Undo);
}
