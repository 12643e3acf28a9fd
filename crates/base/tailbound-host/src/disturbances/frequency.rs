// SPDX-License-Identifier: MIT OR Apache-2.0
//! `frequency`: the settings of frequency scaling, or the frequency itself, changed during
//! the run on a measured CPU.
//!
//! Units: kHz. The frequency itself is read at the start and at the end only:
//! on some drivers the read interrupts the CPU, which would be measured.
//! Source: Documentation/admin-guide/pm/cpufreq.rst.

use std::collections::BTreeMap;

use tailbound_core::record::Fact;
use tailbound_core::{Finding, Impact};

use super::{Disturbance, Look};
use crate::root::Root;

const SETTINGS: &[&str] =
    &["scaling_governor", "scaling_min_freq", "scaling_max_freq", "energy_performance_preference"];

/// Remembers settings and frequencies.
pub(crate) struct Frequency {
    settings: BTreeMap<(u32, &'static str), String>,
    current: BTreeMap<u32, i64>,
    changed: BTreeMap<(u32, &'static str), (String, String)>,
}

fn path(cpu: u32, file: &str) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/{file}")
}

/// The frequency of a CPU, in kHz.
pub(crate) fn current(root: &Root, cpu: u32) -> Option<i64> {
    root.parsed(&path(cpu, "scaling_cur_freq")).ok().filter(|khz| *khz > 0)
}

impl Frequency {
    pub(crate) fn begin(first: &Look) -> Self {
        let mut settings = BTreeMap::new();
        for cpu in first.cpus.iter() {
            for file in SETTINGS {
                if let Ok(value) = first.root.read_trimmed(&path(cpu, file)) {
                    settings.insert((cpu, *file), value);
                }
            }
        }
        let current =
            first.cpus.iter().filter_map(|cpu| Some((cpu, current(&first.root, cpu)?))).collect();
        Self { settings, current, changed: BTreeMap::new() }
    }
}

impl Disturbance for Frequency {
    fn look(&mut self, look: &Look) -> Vec<Finding> {
        for ((cpu, file), before) in &self.settings {
            if let Ok(now) = look.root.read_trimmed(&path(*cpu, file))
                && now != *before
            {
                self.changed.insert((*cpu, file), (before.clone(), now));
            }
        }
        let mut words: Vec<String> = self
            .changed
            .iter()
            .map(|((cpu, file), (before, now))| format!("CPU {cpu}: {file} from {before} to {now}"))
            .collect();
        if look.last {
            for (cpu, before) in &self.current {
                let Some(now) = current(&look.root, *cpu) else { continue };
                // A twentieth: turbo steps and measured frequencies jitter by a few percent.
                if now.saturating_sub(*before).saturating_abs() > before / 20 {
                    words.push(format!(
                        "CPU {cpu}: {} MHz before, {} MHz after",
                        before / 1000,
                        now / 1000
                    ));
                }
            }
        }
        if words.is_empty() {
            return Vec::new();
        }
        vec![Finding::listed(
            "frequency",
            Impact::Notice,
            format!("the CPU frequency changed ({})", words.join("; ")),
        )]
    }

    fn watched(&self) -> Vec<(&'static str, Fact)> {
        let fact = if self.settings.is_empty() && self.current.is_empty() {
            Fact::NotApplicable(
                "this machine has no frequency scaling that the kernel knows of".to_owned(),
            )
        } else {
            Fact::of("watched: settings each second, the frequency before and after")
        };
        vec![("frequency", fact)]
    }
}
