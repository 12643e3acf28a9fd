// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which CPUs are kept for others, and staying off them.
//!
//! Context: SETUP. Kept are those of `isolcpus=`, `nohz_full=` and isolated partitions of cpuset.
//! Source: Documentation/admin-guide/kernel-parameters.txt; Documentation/admin-guide/cgroup-v2.rst.

use tailbound_core::CpuSet;
use tailbound_host::{Root, cpus};
use tailbound_sys::sched;

/// Is `cpu` kept for others? Why.
pub(crate) fn is_apart(root: &Root, cpu: u32) -> Option<&'static str> {
    let sets = [("isolated", "isolcpus="), ("nohz_full", "nohz_full=")];
    let named = |(file, why): (&str, &'static str)| {
        let set = root.cpus(&format!("/sys/devices/system/cpu/{file}")).ok()?;
        set.contains(cpu).then_some(why)
    };
    let partition = || {
        let set = cpus::partitioned(root).ok()?;
        set.contains(cpu).then_some("an isolated partition of cpuset")
    };
    sets.into_iter().find_map(named).or_else(partition)
}

/// Where this process may run, without what is kept for others.
pub(crate) fn cpus_of_all(root: &Root) -> Vec<u32> {
    let allowed = sched::affinity(0).unwrap_or_default();
    allowed.into_iter().filter(|cpu| is_apart(root, *cpu).is_none()).collect()
}

/// Off the CPUs that are kept for others, if there are others.
pub(crate) fn stay(root: &Root) {
    let rest = cpus_of_all(root);
    if !rest.is_empty() && rest.len() < sched::affinity(0).map_or(0, |all| all.len()) {
        // Where it may not: it runs where the kernel puts it.
        sched::set_affinity(0, &rest).unwrap_or_default();
    }
}

/// Why there is no CPU for a probe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeCpuError {
    /// The one that was named is kept for others.
    #[error("CPU {cpu} is isolated ({why}), and is not woken for a probe")]
    Isolated {
        /// Which.
        cpu: u32,
        /// By what.
        why: &'static str,
    },
    /// The one that was named is not there.
    #[error("CPU {cpu} is not online ({online} are)")]
    Offline {
        /// Which.
        cpu: u32,
        /// Those that are.
        online: CpuSet,
    },
    /// None is left.
    #[error("every CPU that this process may use is isolated")]
    None,
}

/// The CPU of a probe: `wanted`, or the first that is kept for nobody.
///
/// # Errors
/// It is isolated, or there is none.
pub(crate) fn of_probe(root: &Root, wanted: Option<u32>) -> Result<u32, ProbeCpuError> {
    let online: CpuSet = root.cpus("/sys/devices/system/cpu/online").unwrap_or_default();
    match wanted {
        Some(cpu) => match is_apart(root, cpu) {
            Some(why) => Err(ProbeCpuError::Isolated { cpu, why }),
            None if !online.contains(cpu) => Err(ProbeCpuError::Offline { cpu, online }),
            None => Ok(cpu),
        },
        None => {
            let first = cpus_of_all(root).into_iter().find(|cpu| online.contains(*cpu));
            first.ok_or(ProbeCpuError::None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_refused_on_an_isolated_cpu_and_elsewhere_by_default() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("sys/devices/system/cpu");
        std::fs::create_dir_all(&base).unwrap();
        for (file, text) in [("online", "0-4095\n"), ("isolated", "2\n"), ("nohz_full", "3\n")] {
            std::fs::write(base.join(file), text).unwrap();
        }
        let root = Root::at(folder.path());
        for (cpu, why) in [(2, "isolcpus="), (3, "nohz_full="), (5000, "not online")] {
            let e = of_probe(&root, Some(cpu)).unwrap_err().to_string();
            assert!(e.contains(why) && e.contains(&cpu.to_string()), "{e}");
        }
        assert_eq!(of_probe(&root, Some(1)), Ok(1));
        std::fs::write(base.join("isolated"), "0-4095\n").unwrap();
        assert_eq!(of_probe(&root, None), Err(ProbeCpuError::None));
    }
}
