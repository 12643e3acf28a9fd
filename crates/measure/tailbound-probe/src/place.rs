// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which CPU a second task of a probe sits on, seen from the measured one: the sender of a hand-over,
//! who waits for a lock.
//!
//! Context: SETUP. Source: Documentation/ABI/stable/sysfs-devices-system-cpu and -node.

use tailbound_core::CpuSet;
use tailbound_core::plan::Plan;
use tailbound_host::Root;

use crate::error::ProbeError;

/// Where the second task is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// On another CPU where there is one.
    Auto,
    /// On the same CPU.
    Same,
    /// On another thread of the same core.
    Sibling,
    /// On another core.
    Other,
    /// On another NUMA node.
    Node,
}

/// The CPUs of this machine, as the choice needs them.
pub(crate) struct Places<'a> {
    root: &'a Root,
    measured: Vec<u32>,
    online: CpuSet,
}

impl<'a> Places<'a> {
    pub(crate) fn look(root: &'a Root, plan: &Plan) -> Self {
        let online =
            root.cpus("/sys/devices/system/cpu/online").unwrap_or_else(|_| plan.cpus.clone());
        Self { root, measured: plan.cpus.iter().collect(), online }
    }

    /// The CPU of the second task, where the first is on `cpu`.
    ///
    /// # Errors
    /// This machine has no such place.
    pub(crate) fn second(&self, cpu: u32, place: Where) -> Result<u32, ProbeError> {
        let none = |what| ProbeError::NoPlace { cpu, what };
        match place {
            Where::Same => Ok(cpu),
            Where::Sibling => self
                .siblings(cpu)
                .iter()
                .find(|c| *c != cpu && self.online.contains(*c))
                .ok_or_else(|| none("SMT sibling that is online")),
            Where::Other => self.other(cpu).ok_or_else(|| none("other CPU beside it")),
            Where::Auto => Ok(self.other(cpu).unwrap_or(cpu)),
            Where::Node => self.on_another_node(cpu).ok_or_else(|| none("second NUMA node")),
        }
    }

    /// Of another core where there is one: first the measured CPUs in turn, then any.
    fn other(&self, cpu: u32) -> Option<u32> {
        let siblings = self.siblings(cpu);
        let at = self.measured.iter().position(|c| *c == cpu).unwrap_or(0);
        let (before, after) = self.measured.split_at_checked(at).unwrap_or((&[], &[]));
        let mut all: Vec<u32> = after.iter().chain(before).copied().collect();
        all.extend(self.online.iter().filter(|c| !self.measured.contains(c)));
        all.retain(|c| *c != cpu);
        all.iter().find(|c| !siblings.contains(**c)).or(all.first()).copied()
    }

    fn siblings(&self, cpu: u32) -> CpuSet {
        self.root
            .cpus(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"))
            .unwrap_or_default()
    }

    fn on_another_node(&self, cpu: u32) -> Option<u32> {
        let nodes = self.root.cpus("/sys/devices/system/node/online").ok()?;
        let lists: Vec<CpuSet> = nodes
            .iter()
            .filter_map(|n| {
                self.root.cpus(&format!("/sys/devices/system/node/node{n}/cpulist")).ok()
            })
            .collect();
        let away = lists.iter().filter(|list| !list.contains(cpu));
        away.flat_map(CpuSet::iter).find(|c| self.online.contains(*c))
    }
}
