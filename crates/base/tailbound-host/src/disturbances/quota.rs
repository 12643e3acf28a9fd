// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cgroup-quota`: a CPU quota held back this process, or one of the groups around it.
//!
//! Units: ns. Source: Documentation/scheduler/sched-bwc.rst,
//! Documentation/admin-guide/cgroup-v2.rst (cpu.stat).

use std::collections::BTreeMap;

use tailbound_core::record::Fact;
use tailbound_core::units::format_ns_i64;
use tailbound_core::{Finding, Impact};

use super::{Disturbance, Look};
use crate::cgroups::{self, Groups};
use crate::root::{Found, Root};

/// How often and how long a group was held back since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThrottleCount {
    times: u64,
    /// Where the group tells it.
    pub(crate) ns: Option<u64>,
}

/// Remembers the counters of each group around us.
pub(crate) struct Quota {
    groups: Found<Groups>,
    first: BTreeMap<String, ThrottleCount>,
    /// A group whose counters could not be read later.
    lost: Option<String>,
}

/// The counters of the group in `dir`, where it has them.
pub(crate) fn held(root: &Root, dir: &str) -> Option<ThrottleCount> {
    let text = root.text(&format!("{dir}/cpu.stat")).ok()?;
    let value = |key: &str| {
        text.lines()
            .find_map(|l| l.strip_prefix(key)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
    };
    let us = value("throttled_usec").map(|us| us.saturating_mul(1000));
    Some(ThrottleCount {
        times: value("nr_throttled")?,
        ns: us.or_else(|| value("throttled_time")),
    })
}

/// The groups around us whose quotas count.
pub(crate) fn groups(root: &Root) -> Found<Groups> {
    cgroups::own(root, "cpu")
}

impl Quota {
    pub(crate) fn begin(first: &Look) -> Self {
        let groups = groups(&first.root);
        let first: BTreeMap<String, ThrottleCount> = groups
            .iter()
            .flat_map(|g| &g.dirs)
            .filter_map(|d| Some((d.clone(), held(&first.root, d)?)))
            .collect();
        Self { groups, first, lost: None }
    }
}

impl Disturbance for Quota {
    fn look(&mut self, look: &Look) -> Vec<Finding> {
        // The quota that bites most often is the one to name.
        let mut worst = None;
        for (dir, before) in &self.first {
            let Some(now) = held(&look.root, dir) else {
                self.lost = Some(dir.clone());
                continue;
            };
            let times = now.times.saturating_sub(before.times);
            let ns = now.ns.zip(before.ns).map(|(now, before)| now.saturating_sub(before));
            worst = worst.max((times > 0).then_some((times, ns, dir)));
        }
        let Some((times, ns, dir)) = worst else { return Vec::new() };
        let lift = self.groups.as_ref().map(|groups| groups.lift(dir)).unwrap_or_default();
        vec![
            Finding::listed(
                "cgroup-quota",
                Impact::Doubt,
                format!(
                    "a CPU quota throttled this control group {times} times, {} in total ({dir})",
                    ns.map_or_else(
                        || "an unknown time".to_owned(),
                        |ns| format_ns_i64(i64::try_from(ns).unwrap_or(i64::MAX))
                    )
                ),
            )
            .remedy(format!("Lift the quota for the run: {lift}; or unset CPUQuota= of the unit, or the container's CPU limit.")),
        ]
    }

    fn watched(&self) -> Vec<(&'static str, Fact)> {
        let fact = match (&self.groups, self.first.len()) {
            (Err(why), _) => why.clone().into(),
            (Ok(_), 1..) if self.lost.is_some() => Fact::Unknown(format!(
                "{}/cpu.stat could not be read during the run",
                self.lost.as_deref().unwrap_or_default()
            )),
            (Ok(g), 0) => Fact::NotApplicable(format!(
                "no group from {} up has throttling counters",
                if g.path.is_empty() { "/" } else { &g.path }
            )),
            (Ok(_), n) => Fact::of(format!("watched: {n} groups")),
        };
        vec![("cgroup-quota", fact)]
    }
}
