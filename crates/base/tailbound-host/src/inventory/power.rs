// SPDX-License-Identifier: MIT OR Apache-2.0
//! `power.*`: frequency scaling and idle states.
//!
//! Units: kHz, µs as in the names. Current frequencies are left out: on some
//! drivers reading one interrupts the CPU.
//! Source: Documentation/admin-guide/pm/{cpufreq,cpuidle}.rst, power/pm_qos_interface.rst.

use serde_json::{Value, json};

use super::Sheet;
use crate::root::{Found, Missing, Root};

const BASE: &str = "/sys/devices/system/cpu";

pub(super) fn read(sheet: &mut Sheet<'_>) {
    for (name, file) in [
        ("power.frequency_driver", "scaling_driver"),
        ("power.governor", "scaling_governor"),
        ("power.energy_preference", "energy_performance_preference"),
    ] {
        sheet.by_cpu(name, |root, cpu| {
            root.read_trimmed(&format!("{BASE}/cpu{cpu}/cpufreq/{file}"))
        });
    }
    for (name, file) in [
        ("power.min_khz", "scaling_min_freq"),
        ("power.max_khz", "scaling_max_freq"),
        ("power.hardware_min_khz", "cpuinfo_min_freq"),
        ("power.hardware_max_khz", "cpuinfo_max_freq"),
    ] {
        sheet.by_cpu(name, |root, cpu| {
            root.parsed::<i64>(&format!("{BASE}/cpu{cpu}/cpufreq/{file}"))
        });
    }
    let boost = boost(sheet.root);
    sheet.put("power.boost", boost);
    sheet.text("power.idle_driver", &format!("{BASE}/cpuidle/current_driver"));
    let governor = sheet
        .root
        .read_trimmed(&format!("{BASE}/cpuidle/current_governor"))
        .or_else(|_| sheet.root.read_trimmed(&format!("{BASE}/cpuidle/current_governor_ro")));
    sheet.put("power.idle_governor", governor);
    sheet.by_cpu("power.idle_states", idle_states);
    sheet.put("power.cpu_dma_latency_us", cpu_dma_latency(sheet.root));
    // 0: no constraint; n/a: deepest states forbidden (documented the other way round in old kernels).
    sheet.by_cpu("power.resume_latency_us", |root, cpu| {
        root.read_trimmed(&format!("{BASE}/cpu{cpu}/power/pm_qos_resume_latency_us"))
    });
}

fn boost(root: &Root) -> Found<bool> {
    root.read_trimmed(&format!("{BASE}/cpufreq/boost"))
        .map(|t| t == "1")
        .or_else(|_| root.read_trimmed(&format!("{BASE}/intel_pstate/no_turbo")).map(|t| t == "0"))
        .map_err(|e| match e {
            Missing::NotApplicable(_) => {
                Missing::NotApplicable("no frequency driver here offers a boost switch".to_owned())
            }
            unknown @ Missing::Unknown(_) => unknown,
        })
}

/// One idle state of a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IdleState {
    pub(crate) name: String,
    pub(crate) latency_us: u64,
    pub(crate) disabled: bool,
}

/// The idle states of a CPU, shallow first.
pub(crate) fn states(root: &Root, cpu: u32) -> Found<Vec<IdleState>> {
    let dir = format!("{BASE}/cpu{cpu}/cpuidle");
    let mut out = Vec::new();
    for state in root.list(&dir)?.iter().filter(|n| n.starts_with("state")) {
        out.push(IdleState {
            name: root.read_trimmed(&format!("{dir}/{state}/name"))?,
            latency_us: root.parsed(&format!("{dir}/{state}/latency"))?,
            // Any number but 0 disables.
            disabled: root.read_trimmed(&format!("{dir}/{state}/disable"))? != "0",
        });
    }
    Ok(out)
}

fn idle_states(root: &Root, cpu: u32) -> Found<Value> {
    let states = states(root, cpu)?
        .into_iter()
        .map(|s| json!({"name": s.name, "latency_us": s.latency_us, "disabled": s.disabled}));
    Ok(states.collect())
}

/// The strictest latency anyone asks for now; 2000000000 is "nobody asks".
pub(crate) fn cpu_dma_latency(root: &Root) -> Found<i32> {
    const PATH: &str = "/dev/cpu_dma_latency";
    // The device gives four bytes; more would be text, which older kernels never send.
    let bytes = root.bytes(PATH, 64)?;
    <[u8; 4]>::try_from(bytes.as_slice())
        .map(i32::from_ne_bytes)
        .map_err(|_| Missing::Unknown(format!("{PATH} gave {} bytes instead of 4", bytes.len())))
}
