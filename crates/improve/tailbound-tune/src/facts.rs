// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a plan is made from: CPUs, threads, interrupts and the kernel of a machine.
//!
//! Reads only. Not here: what to change (`settings`).

use tailbound_core::CpuSet;
use tailbound_host::interrupts::{Interrupts, interrupts};
use tailbound_host::root::{Found, Root};
use tailbound_host::threads::{Thread, threads};
use tailbound_host::{Cpus, CpusError};

use crate::machine::Machine;
use crate::step::MachineId;

/// Why no plan can be made for these CPUs. The texts are for the person who chose them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FactsError {
    /// The list, or one of its CPUs.
    #[error("{0}")]
    Cpus(#[from] CpusError),
    /// All of them.
    #[error(
        "CPUs {0} are all that are online: at least one must be left for interrupts, kernel threads and everything else"
    )]
    NothingLeft(CpuSet),
    /// CPU 0.
    #[error(
        "CPU 0 cannot be isolated: the kernel keeps work there that cannot be moved (boot-time interrupts, timekeeping): choose other CPUs, or add --allow-cpu0 for what can be moved"
    )]
    Cpu0,
}

/// Whether CPU 0, which has work that cannot be moved, may be among those for real-time work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cpu0 {
    /// It may.
    MayBeTaken,
    /// It may not.
    StaysFree,
}

/// The machine as a plan sees it.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Where it is read.
    pub root: Root,
    /// Major and minor number of the kernel.
    pub release: (u32, u32),
    /// Online CPUs.
    pub online: CpuSet,
    /// CPUs for real-time work; empty where none were named.
    pub rt: CpuSet,
    /// The others.
    pub housekeeping: CpuSet,
    /// Every thread.
    pub threads: Found<Vec<Thread>>,
    /// Every interrupt.
    pub interrupts: Found<Interrupts>,
    /// The machine's name for plans.
    pub id: MachineId,
}

impl Facts {
    /// Reads the machine; `rt` are the CPUs for real-time work.
    ///
    /// # Errors
    /// [`FactsError`].
    pub fn read(root: &Root, rt: &CpuSet, cpu0: Cpu0) -> Result<Self, FactsError> {
        let online = online(root)?;
        let cpus = Cpus::read(root)?;
        if !rt.is_empty() {
            // Whether they exist and run is looked at; the cpuset of this program does not matter.
            drop(Cpus { cpuset: None, allowed: online.clone(), ..cpus }.resolve(&rt.to_string())?);
        }
        let housekeeping = online.minus(rt);
        if housekeeping.is_empty() {
            return Err(FactsError::NothingLeft(rt.clone()));
        }
        if rt.contains(0) && cpu0 == Cpu0::StaysFree {
            return Err(FactsError::Cpu0);
        }
        let release = root.read_trimmed("/proc/sys/kernel/osrelease").unwrap_or_default();
        Ok(Self {
            release: tailbound_sys::hostinfo::release(&release).unwrap_or_default(),
            rt: rt.clone(),
            housekeeping,
            threads: threads(root),
            interrupts: interrupts(root),
            id: machine_id(root),
            online,
            root: root.clone(),
        })
    }

    /// What reads and writes this machine.
    #[must_use]
    pub fn machine(&self) -> Machine {
        Machine::new(self.root.clone())
    }

    /// `cpus` without those for real-time work; all others where nothing would be left.
    #[must_use]
    pub fn without_rt(&self, cpus: &CpuSet) -> CpuSet {
        let rest = cpus.minus(&self.rt);
        if rest.is_empty() { self.housekeeping.clone() } else { rest }
    }
}

fn online(root: &Root) -> Result<CpuSet, FactsError> {
    Ok(Cpus::read(root)?.online)
}

/// The machine under `root`, as plans and journals name it.
#[must_use]
pub fn machine_id(root: &Root) -> MachineId {
    let text = |path: &str| root.read_trimmed(path).unwrap_or_default();
    MachineId {
        boot_id: text("/proc/sys/kernel/random/boot_id"),
        release: text("/proc/sys/kernel/osrelease"),
        online: root
            .cpus("/sys/devices/system/cpu/online")
            .map(|c| c.to_string())
            .unwrap_or_default(),
    }
}
