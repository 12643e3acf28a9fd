// SPDX-License-Identifier: MIT OR Apache-2.0
//! `thermal`: a measured CPU was slowed down, or a zone reached a trip point, from heat.
//!
//! Units: thousandths of °C. A notice: a hot machine is still this machine.
//! Counters are read each second. Temperatures are read at the end only: a read may
//! interrupt a measured CPU (x86 packages) or enter the firmware (ACPI).
//! Source: Documentation/driver-api/thermal/sysfs-api.rst, x86 thermal_throttle.

use std::collections::{BTreeMap, BTreeSet};

use tailbound_core::record::Fact;
use tailbound_core::{Finding, Impact};

use super::{Disturbance, Look};
use crate::root::Root;

const ZONES: &str = "/sys/class/thermal";
const BASE: &str = "/sys/devices/system/cpu";

/// A temperature at which the kernel acts.
struct Trip {
    zone: String,
    label: String,
    kind: String,
    at: i64,
}

/// Remembers the counters and the trip points.
pub(crate) struct Thermal {
    counts: BTreeMap<u32, u64>,
    trips: Vec<Trip>,
    zones: BTreeSet<String>,
    reached: BTreeSet<String>,
    /// What could not be read at a look.
    lost: BTreeSet<String>,
}

/// Throttling events of a CPU's core and package together.
fn count(root: &Root, cpu: u32) -> Option<u64> {
    let read = |what: &str| {
        root.parsed::<u64>(&format!("{BASE}/cpu{cpu}/thermal_throttle/{what}_throttle_count")).ok()
    };
    match (read("core"), read("package")) {
        (None, None) => None,
        (core, package) => Some(core.unwrap_or(0).saturating_add(package.unwrap_or(0))),
    }
}

impl Thermal {
    pub(crate) fn begin(first: &Look) -> Self {
        let root = &first.root;
        let counts = first.cpus.iter().filter_map(|cpu| Some((cpu, count(root, cpu)?))).collect();
        let mut trips = Vec::new();
        let names = root.list(ZONES).unwrap_or_default();
        for zone in names.into_iter().filter(|n| n.starts_with("thermal_zone")) {
            let dir = format!("{ZONES}/{zone}");
            let label = root.read_trimmed(&format!("{dir}/type")).unwrap_or_else(|_| zone.clone());
            for file in root.list(&dir).unwrap_or_default() {
                let Some(number) =
                    file.strip_prefix("trip_point_").and_then(|f| f.strip_suffix("_temp"))
                else {
                    continue;
                };
                let kind = root.read_trimmed(&format!("{dir}/trip_point_{number}_type"));
                let at = root.parsed::<i64>(&format!("{dir}/{file}"));
                // Active trips only start fans; 0 and below are places nobody filled in.
                if let (Ok(kind), Ok(at)) = (kind, at)
                    && matches!(kind.as_str(), "passive" | "hot" | "critical")
                    && at > 0
                {
                    trips.push(Trip { zone: zone.clone(), label: label.clone(), kind, at });
                }
            }
        }
        let zones = trips.iter().map(|t| t.zone.clone()).collect();
        Self { counts, trips, zones, reached: BTreeSet::new(), lost: BTreeSet::new() }
    }
}

impl Disturbance for Thermal {
    fn look(&mut self, look: &Look) -> Vec<Finding> {
        for zone in self.zones.iter().filter(|_| look.last) {
            let Ok(now) = look.root.parsed::<i64>(&format!("{ZONES}/{zone}/temp")) else {
                self.lost.insert(zone.clone());
                continue;
            };
            let over = self.trips.iter().filter(|t| t.zone == *zone && now >= t.at);
            self.reached.extend(over.map(|t| {
                format!("{} reached its {} trip point of {} °C", t.label, t.kind, t.at / 1000)
            }));
        }
        let mut throttled = Vec::new();
        for (cpu, before) in &self.counts {
            match count(&look.root, *cpu).map(|now| now.saturating_sub(*before)) {
                Some(0) => {}
                Some(events) => throttled.push(format!("CPU {cpu} was throttled {events} times")),
                None => {
                    self.lost.insert(format!("cpu{cpu}"));
                }
            }
        }
        if throttled.is_empty() && self.reached.is_empty() {
            return Vec::new();
        }
        let words: Vec<String> =
            throttled.into_iter().chain(self.reached.iter().cloned()).collect();
        vec![Finding::listed(
            "thermal",
            Impact::Notice,
            format!("heat during the run: {}", words.join("; ")),
        )]
    }

    fn watched(&self) -> Vec<(&'static str, Fact)> {
        let fact = if self.counts.is_empty() && self.trips.is_empty() {
            Fact::NotApplicable(
                "neither throttling counters nor thermal zones with trip points here".to_owned(),
            )
        } else if !self.lost.is_empty() {
            let lost: Vec<&str> = self.lost.iter().map(String::as_str).collect();
            Fact::Unknown(format!("{} could not be read during the run", lost.join(", ")))
        } else {
            Fact::of(format!(
                "watched: throttling counters of {} CPUs; {} trip points, at the end only",
                self.counts.len(),
                self.trips.len()
            ))
        };
        vec![("thermal", fact)]
    }
}
