// SPDX-License-Identifier: MIT OR Apache-2.0
//! Is what was applied still in force, and who may have changed it?
//!
//! Reads only. Who wrote a setting the kernel does not keep: the programs that are
//! known to write such settings, and run, are named as likely.

use tailbound_core::order;
use tailbound_host::root::{Missing, Root};
use tailbound_host::threads::{self, POWER_DAEMONS};

use crate::journal::Transaction;
use crate::machine::System;
use crate::step::{State, Step};
use crate::target::Target;

/// A step, seen later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drift {
    /// As it was left.
    InForce,
    /// Changed since.
    Changed {
        /// As it is now.
        now: State,
        /// As it was left.
        ours: State,
        /// Running programs that write such settings.
        likely: Vec<String>,
    },
    /// The thread, interrupt or group is gone.
    Gone(String),
    /// It cannot be read.
    Unknown(String),
}

/// Looks at every step of a transaction that was made.
#[must_use]
pub fn verify(system: &dyn System, root: &Root, transaction: &Transaction) -> Vec<(Step, Drift)> {
    let Some(plan) = transaction.plan() else { return Vec::new() };
    let mut running = None;
    let mut look = |step: &Step, ours: &State| match system.read(&step.target) {
        Ok(now) if now == *ours => Drift::InForce,
        Ok(now) => {
            let running = running.get_or_insert_with(|| names(root));
            Drift::Changed { now, ours: ours.clone(), likely: likely(&step.target, running) }
        }
        Err(Missing::NotApplicable(why)) => Drift::Gone(why),
        Err(Missing::Unknown(why)) => Drift::Unknown(why),
    };
    transaction
        .made()
        .iter()
        .filter_map(|made| {
            let step = plan.steps.get(made.step)?;
            let ours = made.now.clone().unwrap_or_else(|| step.new.clone());
            Some((step.clone(), look(step, &ours)))
        })
        .collect()
}

/// Programs that are known to write settings of a kind, by the beginning of their names.
const WRITERS: &[(&str, &[&str])] = &[
    ("/proc/irq/", &["irqbalance", "tuned", "fwupd"]),
    ("cpufreq", POWER_DAEMONS),
    ("cpuidle", &["tuned", "power-profiles-", "tlp"]),
    ("pm_qos", &["tuned", "tlp"]),
    ("/power/control", &["tuned", "tlp", "powertop"]),
    ("pcie_aspm", &["tuned", "tlp", "power-profiles-"]),
    ("/sys/kernel/mm/ksm", &["ksmtuned", "tuned"]),
    ("/sys/fs/resctrl", &["pqos", "libvirtd", "virtqemud", "kubelet"]),
    ("/sys/fs/cgroup", &["systemd", "containerd", "dockerd", "kubelet"]),
    ("/proc/sys/", &["tuned", "systemd-sysctl"]),
    ("workqueue", &["tuned"]),
    ("/queues/", &["tuned", "NetworkManager"]),
    ("coalescing", &["tuned", "NetworkManager", "systemd-udevd"]),
    ("CPUs of a thread", &["irqbalance", "tuned", "cgrulesengd", "stalld", "numad"]),
    ("policy of a thread", &["rtkit-daemon", "tuned", "stalld", "rtirq"]),
];

fn names(root: &Root) -> Vec<String> {
    let all = threads::threads(root).unwrap_or_default();
    let mut names: Vec<String> =
        all.into_iter().filter(|t| t.pid == t.tid && !t.kernel).map(|t| t.name).collect();
    order::by(&mut names, Ord::cmp);
    names.dedup();
    names
}

fn likely(target: &Target, running: &[String]) -> Vec<String> {
    let text = match target {
        Target::Setting { path, .. } | Target::Group { path } | Target::File { path } => path,
        Target::Affinity(_) => "CPUs of a thread",
        Target::Policy(_) => "policy of a thread",
        Target::Interrupt(_) => "/proc/irq/",
        Target::Coalescing { .. } => "coalescing",
        Target::Resctrl => tailbound_host::resctrl::FOLDER,
        Target::Holder { .. } => return Vec::new(),
    };
    let known = |name: &&String| {
        WRITERS
            .iter()
            .filter(|(part, _)| text.contains(part))
            .any(|(_, writers)| writers.iter().any(|w| name.starts_with(w)))
    };
    running.iter().filter(known).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Codec;
    use crate::target::ThreadId;

    #[test]
    fn only_programs_that_write_such_settings_are_named() {
        let running: Vec<String> =
            ["bash", "irqbalance", "stalld", "tuned", "tlp"].map(str::to_owned).to_vec();
        let governor = Target::setting(
            "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
            Codec::Text,
        );
        assert_eq!(likely(&governor, &running), ["tuned", "tlp"]);
        let irq = Target::setting("/proc/irq/default_smp_affinity", Codec::Mask);
        assert_eq!(likely(&irq, &running), ["irqbalance", "tuned"]);
        let thread = ThreadId { tid: 701, start_ticks: 12, name: "servo".to_owned() };
        assert_eq!(likely(&Target::Policy(thread), &running), ["stalld", "tuned"]);
    }
}
