// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frequencies, idle states and the other half of a core.
//!
//! Units: µs, kHz. Source: Documentation/admin-guide/pm/{cpufreq,cpuidle}.rst,
//! Documentation/power/pm_qos_interface.rst, Documentation/ABI/testing/sysfs-devices-power.

use tailbound_core::CpuSet;

use super::{Draft, Effect, Omission, OnRefusal, Setting, Value, Values};
use crate::codec::Codec;
use crate::target::Target;

pub(super) static SETTINGS: &[Setting] = &[
    Setting {
        name: "governor",
        about: "Who chooses the frequency of a CPU",
        cures: &["pwr.governor"],
        cost: "performance: power and heat",
        values: Values::Words(&[
            ("performance", "performance"),
            ("schedutil", "schedutil"),
            ("ondemand", "ondemand"),
            ("powersave", "powersave"),
        ]),
        needs_cpus: false,
        effect: Effect::Function(|draft, value| {
            policies(draft, "scaling_governor", Some(&value.0))
        }),
    },
    Setting {
        name: "lowest-frequency",
        about: "The lowest frequency is raised to the highest, so that there is one",
        cures: &["pwr.freq-range"],
        cost: "power and heat",
        values: Values::Words(&[("highest", "highest")]),
        needs_cpus: false,
        effect: Effect::Function(|draft, _| policies(draft, "scaling_min_freq", None)),
    },
    Setting {
        name: "energy-preference",
        about: "What the hardware prefers when it chooses a frequency by itself",
        cures: &["pwr.epp"],
        cost: "performance: power and heat",
        values: Values::Words(&[
            ("performance", "performance"),
            ("balance_performance", "balance_performance"),
            ("balance_power", "balance_power"),
        ]),
        needs_cpus: false,
        effect: Effect::Function(|draft, value| {
            policies(draft, "energy_performance_preference", Some(&value.0));
        }),
    },
    Setting {
        name: "idle-latency",
        about: "Longest time to leave an idle state, for each real-time CPU",
        cures: &["pwr.cstates"],
        cost: "0us: those CPUs never sleep deeply: power and heat",
        values: Values::Microseconds(0, 100_000),
        needs_cpus: true,
        effect: Effect::Function(idle_latency),
    },
    Setting {
        name: "dma-latency",
        about: "Longest time to leave an idle state, for all CPUs: a process of tailbound holds /dev/cpu_dma_latency open",
        cures: &["pwr.cstates"],
        cost: "0us: no CPU sleeps deeply: power and heat; one process",
        values: Values::Microseconds(0, 100_000),
        needs_cpus: false,
        effect: Effect::Function(dma_latency),
    },
    Setting {
        name: "siblings",
        about: "CPUs that share a core with a real-time CPU are switched off (SMT)",
        cures: &["iso.smt-sibling"],
        cost: "half of the logical CPUs of these cores",
        values: Values::Words(&[("off", "off")]),
        needs_cpus: true,
        effect: Effect::Function(siblings),
    },
    Setting {
        name: "pcie-power",
        about: "Power management of PCI Express links (ASPM)",
        cures: &["pwr.aspm"],
        cost: "performance: power",
        values: Values::Words(&[("performance", "performance"), ("default", "default")]),
        needs_cpus: false,
        effect: Effect::Files(&[("/sys/module/pcie_aspm/parameters/policy", Codec::Choice)]),
    },
    Setting {
        name: "device-power",
        about: "PCI devices are not put to sleep while they are idle",
        cures: &["pwr.runtime-pm"],
        cost: "power",
        values: Values::Words(&[("on", "on"), ("auto", "auto")]),
        needs_cpus: false,
        effect: Effect::Each(
            "/sys/bus/pci/devices",
            "/sys/bus/pci/devices/{}/power/control",
            Codec::Text,
        ),
    },
    Setting {
        name: "idle-governor",
        about: "Who chooses idle states; haltpoll is for guests",
        cures: &["virt.guest-poll"],
        cost: "haltpoll: power of the host",
        values: Values::Words(&[
            ("haltpoll", "haltpoll"),
            ("menu", "menu"),
            ("teo", "teo"),
            ("ladder", "ladder"),
        ]),
        needs_cpus: false,
        effect: Effect::Files(&[("/sys/devices/system/cpu/cpuidle/current_governor", Codec::Text)]),
    },
];

/// A file of every frequency policy that has a real-time CPU, or of all where none were named.
fn policies(draft: &mut Draft<'_>, file: &str, value: Option<&str>) {
    const BASE: &str = "/sys/devices/system/cpu/cpufreq";
    let facts = draft.facts;
    let names = facts.root.list(BASE).unwrap_or_default();
    let policies: Vec<&String> = names.iter().filter(|n| n.starts_with("policy")).collect();
    if policies.is_empty() {
        return draft.leave_out(
            format!("there is no {BASE}: nobody here changes frequencies"),
            Omission::Harmless,
        );
    }
    for policy in policies {
        let dir = format!("{BASE}/{policy}");
        let mine = facts.root.cpus(&format!("{dir}/affected_cpus")).unwrap_or_default();
        if !facts.rt.is_empty() && mine.and(&facts.rt).is_empty() {
            continue;
        }
        let highest = || facts.root.read_trimmed(&format!("{dir}/scaling_max_freq")).ok();
        let Some(new) = value.map(str::to_owned).or_else(highest) else { continue };
        draft.set(&format!("{dir}/{file}"), Codec::Text, &new);
    }
}

/// The file's `n/a` is a limit of 0 µs, and its `0` is no limit.
fn idle_latency(draft: &mut Draft<'_>, value: &Value) {
    let new = if value.0 == "0" { "n/a" } else { value.0.as_str() };
    for cpu in draft.facts.rt.clone().iter() {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us");
        draft.set(&path, Codec::Text, new);
    }
}

fn dma_latency(draft: &mut Draft<'_>, value: &Value) {
    if !draft.facts.root.exists("/dev/cpu_dma_latency") {
        return draft.leave_out("there is no /dev/cpu_dma_latency".to_owned(), Omission::Harmless);
    }
    let holder = Target::Holder { name: "cpu_dma_latency".to_owned() };
    match draft.read(&holder) {
        Some(None) => draft.push(holder, None, Some(value.0.clone()), OnRefusal::Undo),
        Some(Some(_)) => draft
            .leave_out("a process of tailbound holds it already".to_owned(), Omission::Harmless),
        None => {}
    }
}

fn siblings(draft: &mut Draft<'_>, _: &Value) {
    let facts = draft.facts;
    let mut others: Vec<u32> = Vec::new();
    for cpu in facts.rt.iter() {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let all = facts.root.cpus(&path).unwrap_or_default();
        others.extend(all.minus(&facts.rt).iter());
    }
    let others: CpuSet = others.into_iter().collect();
    if others.is_empty() {
        return draft.leave_out(
            "no real-time CPU shares its core with another".to_owned(),
            Omission::Harmless,
        );
    }
    if facts.housekeeping.minus(&others).is_empty() {
        return draft.leave_out(
            format!("CPUs {others} are the siblings, and nothing else would be left"),
            Omission::Wanting,
        );
    }
    for cpu in others.iter() {
        draft.set(&format!("/sys/devices/system/cpu/cpu{cpu}/online"), Codec::Number, "0");
    }
}
