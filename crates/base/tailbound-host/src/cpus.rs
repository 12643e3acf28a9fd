// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which CPUs there are, which this process may use, which are isolated; and what a person
//! means by `--cpus all|isolated|LIST`.
//!
//! Context: SETUP. Source: Documentation/ABI/testing/sysfs-devices-system-cpu, cpuset(7),
//! Documentation/admin-guide/cgroup-v2.rst (cpuset.cpus.isolated).

use tailbound_core::CpuSet;
use tailbound_core::cpus::ParseCpusError;

use crate::cgroups;
use crate::root::{Found, Missing, Root};
use crate::tasks;

const BASE: &str = "/sys/devices/system/cpu";

/// The CPUs of the machine as seen by this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus {
    /// Plugged in.
    pub present: CpuSet,
    /// Running.
    pub online: CpuSet,
    /// This process's affinity now.
    pub allowed: CpuSet,
    /// What its affinity may be widened to; `None` where no cpuset tells.
    pub cpuset: Option<CpuSet>,
    /// Isolated at boot (`isolcpus=`) or by a cpuset partition.
    pub isolated: CpuSet,
}

/// Why CPUs cannot be measured. The texts are for the person who typed `--cpus`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpusError {
    /// Not a list.
    #[error("--cpus: {0}; or write `all` or `isolated`")]
    Text(#[from] ParseCpusError),
    /// An empty list.
    #[error("--cpus: the list is empty: name a CPU, or write `all` or `isolated`")]
    Empty,
    /// No such CPU.
    #[error("{} {} not exist; this machine has {present}", cpu_word(.cpus), does(.cpus))]
    Absent {
        /// Asked for.
        cpus: CpuSet,
        /// There are.
        present: CpuSet,
    },
    /// Switched off.
    #[error(
        "{} {} offline; online are {online}: switch it on by writing 1 to {BASE}/cpu{first}/online, or choose others",
        cpu_word(.cpus), is(.cpus)
    )]
    Offline {
        /// Asked for.
        cpus: CpuSet,
        /// Running.
        online: CpuSet,
        /// The first of `cpus`.
        first: u32,
    },
    /// Not for this process.
    #[error(
        "{} {} not in this process's cpuset ({cpuset}): choose from these, or start it in a cgroup that has the CPU",
        cpu_word(.cpus), is(.cpus)
    )]
    Cpuset {
        /// Asked for.
        cpus: CpuSet,
        /// May be used.
        cpuset: CpuSet,
    },
    /// `isolated` where nothing is.
    #[error(
        "no CPU is isolated on this machine (neither by isolcpus= nor by a cpuset partition): name CPUs with --cpus LIST"
    )]
    NoneIsolated,
    /// The machine does not say.
    #[error("which CPUs are online is not known: {0}")]
    Unreadable(String),
}

fn cpu_word(cpus: &CpuSet) -> String {
    if cpus.len() == 1 { format!("CPU {cpus}") } else { format!("CPUs {cpus}") }
}
fn is(cpus: &CpuSet) -> &'static str {
    if cpus.len() == 1 { "is" } else { "are" }
}
fn does(cpus: &CpuSet) -> &'static str {
    if cpus.len() == 1 { "does" } else { "do" }
}

impl Cpus {
    /// Reads the CPUs of the machine under `root`.
    ///
    /// # Errors
    /// [`CpusError::Unreadable`] when not even the online CPUs can be told.
    pub fn read(root: &Root) -> Result<Self, CpusError> {
        // In a bare chroot there is no /sys: then the kernel's own answer has to do.
        let online = online(root)
            .or_else(|why| if root.is_real() { own_affinity().ok_or(why) } else { Err(why) })
            .map_err(|e| CpusError::Unreadable(e.reason().to_owned()))?;
        let present = root.cpus(&format!("{BASE}/present")).unwrap_or_else(|_| online.clone());
        let allowed = allowed(root).unwrap_or_else(|_| online.clone());
        let isolated = union(
            &root.cpus(&format!("{BASE}/isolated")).unwrap_or_default(),
            &partitioned(root).unwrap_or_default(),
        );
        // Threads join the partition of `tailbound tune` by themselves.
        let joined = cgroups::partition(root).map(|p| p.cpus).unwrap_or_default();
        let cpuset = cpuset(root).ok().map(|own| union(&own, &joined));
        Ok(Self { present, online, allowed, cpuset, isolated })
    }

    /// The CPUs that `text` (`all`, `isolated` or a list) means, none of them impossible.
    ///
    /// `all` keeps to the process's affinity, so that taskset(1) works as people expect;
    /// a list may go beyond it, as far as the cpuset allows.
    ///
    /// # Errors
    /// [`CpusError`], worded for the person who typed it.
    pub fn resolve(&self, text: &str) -> Result<CpuSet, CpusError> {
        match text.trim() {
            "all" => self.checked(self.online.and(&self.allowed)),
            "isolated" if self.isolated.is_empty() => Err(CpusError::NoneIsolated),
            "isolated" => self.checked(self.isolated.clone()),
            list => self.checked(list.parse()?),
        }
    }

    /// The CPUs of a list that are looked at: all of them run, wherever this process may run itself.
    ///
    /// # Errors
    /// As [`Self::resolve`].
    pub fn looked_at(&self, list: &str) -> Result<CpuSet, CpusError> {
        let cpus: CpuSet = list.parse()?;
        match self.checked(cpus.clone()) {
            Err(CpusError::Cpuset { .. }) => Ok(cpus),
            judged => judged,
        }
    }

    /// Where everything else may run: online CPUs that this process may use and that are
    /// neither measured nor isolated; where there is none, online ones that are not
    /// measured. Empty when every CPU is measured.
    #[must_use]
    pub fn housekeeping(&self, measured: &CpuSet) -> CpuSet {
        let rest = self.usable().minus(measured);
        let quiet = rest.minus(&self.isolated);
        if quiet.is_empty() { rest } else { quiet }
    }

    /// Online and in the cpuset.
    fn usable(&self) -> CpuSet {
        match &self.cpuset {
            Some(cpuset) => self.online.and(cpuset),
            // Isolated CPUs are not in the affinity of any process, yet may be asked for.
            None => self.online.and(&union(&self.allowed, &self.isolated)),
        }
    }

    fn checked(&self, cpus: CpuSet) -> Result<CpuSet, CpusError> {
        let absent = cpus.minus(&union(&self.present, &self.online));
        let offline = cpus.minus(&self.online);
        let first_offline = offline.iter().next();
        let outside = cpus.minus(&self.usable());
        if cpus.is_empty() {
            Err(CpusError::Empty)
        } else if !absent.is_empty() {
            Err(CpusError::Absent { cpus: absent, present: self.present.clone() })
        } else if let Some(first) = first_offline {
            Err(CpusError::Offline { first, cpus: offline, online: self.online.clone() })
        } else if outside.is_empty() {
            Ok(cpus)
        } else {
            Err(CpusError::Cpuset { cpus: outside, cpuset: self.usable() })
        }
    }
}

/// The CPUs of the machine under `root` that `text` means, as [`Cpus::resolve`] has them. All of [`Cpus`] is read only where
/// less does not settle it.
///
/// # Errors
/// Those of [`Cpus::read`] and [`Cpus::resolve`].
pub fn resolved(root: &Root, text: &str) -> Result<CpuSet, CpusError> {
    match plainly(root, text.trim()) {
        Some(cpus) => Ok(cpus),
        None => Cpus::read(root)?.resolve(text),
    }
}

/// Online CPUs of this process's own cpuset; none: it takes a closer look.
fn plainly(root: &Root, text: &str) -> Option<CpuSet> {
    let online = online(root).ok()?;
    let wanted = match text {
        "isolated" => return None,
        "all" => online.and(&allowed(root).ok()?),
        list => list.parse().ok()?,
    };
    let usable = online.and(&cpuset(root).ok()?);
    (!wanted.is_empty() && wanted.minus(&usable).is_empty()).then_some(wanted)
}

pub(crate) fn union(a: &CpuSet, b: &CpuSet) -> CpuSet {
    a.iter().chain(b.iter()).collect()
}

/// The CPUs that run now.
pub(crate) fn online(root: &Root) -> Found<CpuSet> {
    let cpus = root.cpus(&format!("{BASE}/online"))?;
    if cpus.is_empty() {
        return Err(Missing::Unknown(format!("{BASE}/online names no CPU")));
    }
    Ok(cpus)
}

/// The affinity of this process.
fn own_affinity() -> Option<CpuSet> {
    Some(tailbound_sys::sched::affinity(0).ok()?.into_iter().collect())
}

pub(crate) fn allowed(root: &Root) -> Found<CpuSet> {
    tasks::allowed(root, "/proc/self")
}

/// The CPUs of this process's cpuset, of either version.
pub(crate) fn cpuset(root: &Root) -> Found<CpuSet> {
    let groups = cgroups::own(root, "cpuset")?;
    for dir in &groups.dirs {
        // Version 2 shows the file only where the controller is enabled: the nearest one rules.
        for file in ["cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"] {
            if let Ok(cpus) = root.cpus(&format!("{dir}/{file}"))
                && !cpus.is_empty()
            {
                return Ok(cpus);
            }
        }
    }
    Err(Missing::NotApplicable("no cpuset is in force".to_owned()))
}

/// The CPUs in isolated cpuset partitions.
///
/// # Errors
/// [`Missing`]: no cgroup v2, or a kernel without it.
pub fn partitioned(root: &Root) -> Found<CpuSet> {
    let mount = cgroups::unified(root)?;
    root.cpus(&format!("{mount}/cpuset.cpus.isolated"))
}
