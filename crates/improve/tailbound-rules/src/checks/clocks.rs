// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clocks: what the time is read from, and what wakes CPUs up.
//!
//! Source: Documentation/timers/{highres,timekeeping}.rst,
//! Documentation/admin-guide/kernel-parameters.txt (tsc=, skew_tick=).

use super::PLAIN;
use crate::check::{Check, Group};
use crate::machine::Machine;
use crate::need::Need;
use crate::outcome::{CheckOutcome, Level, Look};

const CHECK: Check = Check { group: Group::Clocks, ..PLAIN };

pub(super) static CHECKS: &[Check] = &[
    Check {
        id: "clk.source",
        why: "a slow clock costs 0.5 to 2 us each time it is read, and a bus access that others wait for",
        now: "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource (if it is listed as available)",
        undo: "write the old name back",
        source: "timekeeping.rst",
        look: source,
        ..CHECK
    },
    Check {
        id: "clk.tsc-unstable",
        why: "with a clock that is not trusted the tick stays on, and time may jump",
        for_good: "firmware; do not hide it with tsc=reliable",
        source: "arch/x86/kernel/tsc.c",
        needs: &[Need::X86],
        look: unstable,
        ..CHECK
    },
    Check {
        id: "clk.watchdog",
        why: "the clock's watchdog visits one CPU after the other, every half second",
        for_good: "boot with tsc=nowatchdog where the TSC is known to be stable",
        undo: "remove it and reboot",
        source: "kernel-parameters.txt (tsc=)",
        needs: &[Need::X86, Need::RtCpus],
        look: watchdog,
        ..CHECK
    },
    Check {
        id: "clk.event-device",
        why: "where a broadcast device wakes CPUs up, another CPU has to do it",
        for_good: "firmware, or another idle driver",
        source: "highres.rst",
        look: event_device,
        ..CHECK
    },
    Check {
        id: "clk.skew-tick",
        why: "on many CPUs, ticks at the same instant wait for the same locks",
        for_good: "boot with skew_tick=1",
        undo: "remove it and reboot",
        source: "kernel-parameters.txt (skew_tick=)",
        look: |m| {
            if m.online.len() <= 8 {
                return Ok(CheckOutcome::not_applicable(format!(
                    "{} CPUs are few",
                    m.online.len()
                )));
            }
            let on = m.parameter("skew_tick")?.as_deref() == Some("1");
            Ok(CheckOutcome::ok_if(on, Level::Warn, format!("skew_tick={}", u8::from(on))))
        },
        ..CHECK
    },
    Check {
        id: "clk.sync",
        why: "a step of the clock moves every wake-up that waits for CLOCK_REALTIME",
        now: "wait for CLOCK_MONOTONIC, or for CLOCK_TAI under PTP",
        source: "adjtimex(2)",
        look: sync,
        ..CHECK
    },
];

fn source(m: &Machine) -> Look {
    let name = m.word("clock.source")?;
    let slow = ["hpet", "acpi_pm", "jiffies", "refined-jiffies"].contains(&name.as_str());
    Ok(CheckOutcome::ok_if(!slow, Level::Bad, name))
}

fn unstable(m: &Machine) -> Look {
    if let Some(line) = m.said(&["Marking TSC unstable", "Marking clocksource"])? {
        return Ok(CheckOutcome::bad(line.to_owned()));
    }
    let info = m.text("/proc/cpuinfo")?;
    let flags = info.lines().find(|l| l.starts_with("flags")).unwrap_or_default();
    let has = |flag: &str| flags.split_ascii_whitespace().any(|w| w == flag);
    Ok(match (has("constant_tsc"), has("nonstop_tsc")) {
        (true, true) => CheckOutcome::ok("constant_tsc and nonstop_tsc, and no complaint"),
        (c, n) => CheckOutcome::warn(format!("constant_tsc: {c}, nonstop_tsc: {n}")),
    })
}

fn watchdog(m: &Machine) -> Look {
    let tsc = m.word("clock.source")? == "tsc";
    if !tsc {
        return Ok(CheckOutcome::not_applicable("the time is not read from the TSC"));
    }
    let set = m.parameter("tsc")?.unwrap_or_default();
    Ok(if set.contains("nowatchdog") || set.contains("reliable") {
        CheckOutcome::ok(format!("tsc={set}"))
    } else if m.root.text("/proc/cpuinfo").is_ok_and(|t| t.contains("tsc_adjust")) {
        CheckOutcome::ok("the kernel does without it (TSC_ADJUST, few packages)")
    } else {
        CheckOutcome::warn("it runs")
    })
}

fn event_device(m: &Machine) -> Look {
    const BASE: &str = "/sys/devices/system/clockevents";
    let broadcast = m.text(&format!("{BASE}/broadcast/current_device"));
    let own = m.text(&format!("{BASE}/clockevent0/current_device"))?;
    Ok(match broadcast {
        Ok(device) if device.contains("hpet") && own.contains("hpet") => {
            CheckOutcome::warn(format!("{own}, by broadcast of {device}"))
        }
        _ => CheckOutcome::ok(own),
    })
}

fn sync(m: &Machine) -> Look {
    let value = m.fact("clock.synchronised")?;
    Ok(match value.as_bool() {
        Some(true) => CheckOutcome::ok("kept in step by a program"),
        _ => CheckOutcome::ok("nothing keeps it in step, so nothing steps it"),
    })
}
