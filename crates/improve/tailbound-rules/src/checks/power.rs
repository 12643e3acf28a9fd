// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frequencies and idle states.
//!
//! Units: us, kHz. Source: Documentation/admin-guide/pm/{cpufreq,cpuidle}.rst,
//! Documentation/power/{pm_qos_interface,pci}.rst.

use serde_json::Value;
use tailbound_host::root::empty_if_absent;
use tailbound_host::threads::POWER_DAEMONS;

use super::{PLAIN, few};
use crate::check::{Check, Group};
use crate::machine::Machine;
use crate::need::Need;
use crate::outcome::{CheckOutcome, Level, Look};

const CHECK: Check = Check { group: Group::Power, ..PLAIN };
/// Exit latency above which an idle state is deep, in us.
const DEEP_US: u64 = 20;

pub(super) static CHECKS: &[Check] = &[
    Check {
        id: "pwr.governor",
        why: "a CPU that was slow takes 10 to 500 us to become fast",
        now: "tailbound tune set governor=performance",
        for_good: "boot with cpufreq.default_governor=performance, and look again after suspend",
        undo: "tailbound tune undo",
        source: "cpufreq.rst",
        look: governor,
        ..CHECK
    },
    Check {
        id: "pwr.freq-range",
        why: "a change of frequency stops the core for a moment",
        now: "tailbound tune set lowest-frequency=highest",
        undo: "tailbound tune undo",
        source: "cpufreq.rst",
        look: range,
        ..CHECK
    },
    Check {
        id: "pwr.epp",
        why: "hardware that chooses its frequency by itself saves power while it is idle",
        now: "tailbound tune set energy-preference=performance",
        undo: "tailbound tune undo",
        source: "Documentation/admin-guide/pm/intel_pstate.rst",
        look: |m| {
            let value = m.fact("power.energy_preference")?;
            let words = words(value);
            let good = words.iter().all(|w| w == "performance" || w == "0");
            Ok(CheckOutcome::ok_if(good, Level::Warn, words.join(", ")))
        },
        ..CHECK
    },
    Check {
        id: "pwr.cstates",
        why: "leaving a deep idle state takes 50 to 300 us, before the handler of the interrupt begins",
        now: "tailbound tune set idle-latency=0us --rt-cpus {rt}",
        for_good: "boot with processor.max_cstate=1 intel_idle.max_cstate=1",
        undo: "tailbound tune undo",
        source: "cpuidle.rst",
        look: cstates,
        ..CHECK
    },
    Check {
        id: "pwr.uncore",
        why: "the part between cores and memory slows down too",
        now: "echo the maximum > min_freq_khz of each /sys/devices/system/cpu/intel_uncore_frequency/*",
        undo: "write the old value back",
        source: "Documentation/admin-guide/pm/intel_uncore_frequency_scaling.rst",
        look: uncore,
        ..CHECK
    },
    Check {
        id: "pwr.thermal-throttle",
        why: "a CPU that is too hot halves its clock",
        now: "cool it",
        source: "arch/x86/kernel/cpu/mce/therm_throt.c",
        needs: &[Need::X86, Need::Metal, Need::Sample],
        look: |m| {
            let Some(sample) = &m.sample else { return Ok(CheckOutcome::unknown("no sample")) };
            let n = sample.throttled()?;
            Ok(CheckOutcome::ok_if(
                n == 0,
                Level::Bad,
                format!("throttled {n} times in {:.0} s", sample.seconds),
            ))
        },
        ..CHECK
    },
    Check {
        id: "pwr.aspm",
        why: "a PCI Express link that sleeps takes 10 to 70 us to answer",
        now: "echo performance > /sys/module/pcie_aspm/parameters/policy",
        for_good: "boot with pcie_aspm.policy=performance",
        undo: "write the word in brackets back",
        source: "kernel-parameters.txt (pcie_aspm=)",
        look: |m| {
            let text = m.text("/sys/module/pcie_aspm/parameters/policy")?;
            let word = tailbound_host::root::chosen(&text).unwrap_or(&text).to_owned();
            Ok(CheckOutcome::ok_if(word == "performance", Level::Warn, format!("policy {word}")))
        },
        ..CHECK
    },
    Check {
        id: "pwr.runtime-pm",
        why: "a device that is put to sleep blocks whoever needs it next; a graphics driver took 1 ms",
        now: "tailbound tune set device-power=on",
        for_good: "a udev rule: ATTR{power/control}=\"on\"",
        undo: "tailbound tune undo",
        source: "Documentation/power/runtime_pm.rst",
        look: runtime_pm,
        ..CHECK
    },
    Check {
        id: "pwr.profile-daemons",
        why: "a program that manages power writes its own values again, after suspend or at the next plug",
        now: "stop it, or let it own the setting",
        source: "tuned(8), power-profiles-daemon",
        look: daemons,
        ..CHECK
    },
];

/// The texts of a fact that is one value, or one a set of CPUs.
fn words(value: &Value) -> Vec<String> {
    let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    match value {
        Value::Object(map) => map.values().map(text).collect(),
        other => vec![text(other)],
    }
}

fn governor(m: &Machine) -> Look {
    let words = words(m.fact("power.governor")?);
    let driver = m.word("power.frequency_driver").unwrap_or_default();
    // Where the hardware chooses, `powersave` is its name for "by need".
    let by_hardware = driver.contains("pstate");
    let good = words.iter().all(|w| w == "performance");
    let found = format!("governor {} (driver {driver})", words.join(", "));
    Ok(CheckOutcome::ok_if(good, if by_hardware { Level::Warn } else { Level::Bad }, found))
}

fn range(m: &Machine) -> Look {
    let (low, high) = (m.fact("power.min_khz")?, m.fact("power.max_khz")?);
    let found = format!("{} to {} kHz", words(low).join(", "), words(high).join(", "));
    Ok(CheckOutcome::ok_if(low == high, Level::Warn, found))
}

fn cstates(m: &Machine) -> Look {
    const BASE: &str = "/sys/devices/system/cpu";
    let cpus = if m.rt.is_empty() { &m.online } else { &m.rt };
    let held = m.fact("power.cpu_dma_latency_us").ok().and_then(Value::as_u64);
    if let Some(us) = held.filter(|us| *us <= DEEP_US) {
        return Ok(CheckOutcome::ok(format!("/dev/cpu_dma_latency is held at {us} us")));
    }
    let mut deep = Vec::new();
    let mut any = false;
    for cpu in cpus.iter() {
        let limit =
            m.text(&format!("{BASE}/cpu{cpu}/power/pm_qos_resume_latency_us")).unwrap_or_default();
        let limit_us = match limit.as_str() {
            "n/a" => Some(0),
            "0" | "" => None,
            us => us.parse::<u64>().ok(),
        };
        for state in empty_if_absent(m.root.list(&format!("{BASE}/cpu{cpu}/cpuidle")))? {
            any = true;
            let dir = format!("{BASE}/cpu{cpu}/cpuidle/{state}");
            let us = m.number(&format!("{dir}/latency"))?.unsigned_abs();
            // Where nothing says that it is off, it is on.
            let off = m.number(&format!("{dir}/disable")).unwrap_or(0) != 0;
            if us > DEEP_US && !off && limit_us.is_none_or(|limit| us <= limit) {
                deep.push(format!(
                    "CPU {cpu} {} ({us} us)",
                    m.text(&format!("{dir}/name")).unwrap_or_default()
                ));
            }
        }
    }
    Ok(match (any, deep.is_empty()) {
        (false, _) => CheckOutcome::not_applicable("this machine shows no idle states"),
        (true, true) => CheckOutcome::ok(format!("no idle state above {DEEP_US} us")),
        (true, false) => CheckOutcome::bad(few(&deep, 3)),
    })
}

fn uncore(m: &Machine) -> Look {
    const BASE: &str = "/sys/devices/system/cpu/intel_uncore_frequency";
    let mut slow = Vec::new();
    for name in m.root.list(BASE)? {
        let low = m.number(&format!("{BASE}/{name}/min_freq_khz"))?;
        let high = m.number(&format!("{BASE}/{name}/max_freq_khz"))?;
        if low < high {
            slow.push(format!("{name}: {low} to {high} kHz"));
        }
    }
    Ok(if slow.is_empty() { CheckOutcome::ok("fixed") } else { CheckOutcome::warn(few(&slow, 2)) })
}

fn runtime_pm(m: &Machine) -> Look {
    const BASE: &str = "/sys/bus/pci/devices";
    let mut auto = Vec::new();
    for name in m.root.list(BASE)? {
        if m.text(&format!("{BASE}/{name}/power/control")).is_ok_and(|t| t == "auto") {
            auto.push(name);
        }
    }
    Ok(if auto.is_empty() {
        CheckOutcome::ok("no PCI device is put to sleep")
    } else {
        CheckOutcome::warn(format!("put to sleep while idle: {}", few(&auto, 3)))
    })
}

fn daemons(m: &Machine) -> Look {
    let names = m.running(POWER_DAEMONS)?;
    Ok(if names.is_empty() {
        CheckOutcome::ok("none runs")
    } else {
        CheckOutcome::warn(format!("running: {}", names.join(", ")))
    })
}
