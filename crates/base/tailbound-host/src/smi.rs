// SPDX-License-Identifier: MIT OR Apache-2.0
//! The firmware's interrupts (SMI), as far as the CPU counts them.
//!
//! Context: SETUP, COLD. Units: counts. Intel CPUs since Nehalem count; others do not, and nothing is known then.
//! Source: Intel SDM volume 4, MSR_SMI_COUNT (0x34); msr(4). The kernel reads a register of another CPU
//! by interrupting it: measured CPUs are left alone. An SMI stops every CPU, so any of them counts it.

use std::os::unix::fs::FileExt as _;

use crate::Root;
use tailbound_core::CpuSet;

const SMI_COUNT: u64 = 0x34;

/// Why a CPU's count of system management interrupts is unknown.
#[derive(Debug, thiserror::Error)]
pub enum NoSmiCount {
    /// No device for the registers.
    #[error("/dev/cpu/{cpu}/msr: {why}")]
    Device {
        /// Of this CPU.
        cpu: u32,
        /// Why.
        why: std::io::Error,
    },
    /// This CPU has no such register.
    #[error("MSR 0x34: {0}")]
    Register(std::io::Error),
}

/// How many there were since the machine was switched on.
///
/// # Errors
/// [`NoSmiCount`].
pub fn count(root: &Root, cpu: u32) -> Result<u64, NoSmiCount> {
    let path = root.path(&format!("/dev/cpu/{cpu}/msr"));
    let file = std::fs::File::open(&path).map_err(|why| NoSmiCount::Device { cpu, why })?;
    let mut value = [0u8; 8];
    file.read_exact_at(&mut value, SMI_COUNT).map_err(NoSmiCount::Register)?;
    Ok(u64::from_le_bytes(value))
}

/// Looks again and again at the count of a CPU that is not measured.
#[derive(Debug)]
pub struct Smis {
    root: Root,
    cpu: u32,
    /// The last look, and the one before.
    last: [u64; 2],
}

impl Smis {
    /// `None` where no CPU beside `measured` counts them.
    pub fn begin(root: &Root, online: &[u32], measured: &CpuSet) -> Option<Self> {
        let cpu = online.iter().copied().find(|c| !measured.contains(*c))?;
        let now = count(root, cpu).ok()?;
        Some(Self { root: root.clone(), cpu, last: [now; 2] })
    }

    /// Were there any since the look before the last? `None` where it cannot be told any more.
    pub fn any(&mut self) -> Option<bool> {
        let now = count(&self.root, self.cpu).ok()?;
        let [before, last] = self.last;
        self.last = [last, now];
        Some(now != before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(dir: &std::path::Path, n: u64) {
        let mut bytes = vec![0u8; 0x34];
        bytes.extend(n.to_le_bytes());
        std::fs::create_dir_all(dir.join("dev/cpu/1")).expect("a folder");
        std::fs::write(dir.join("dev/cpu/1/msr"), bytes).expect("a file");
    }

    #[test]
    fn an_interrupt_of_the_last_two_looks_is_told_and_measured_cpus_are_left_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = Root::at(dir.path());
        let measured: CpuSet = [0].into_iter().collect();
        assert!(Smis::begin(&root, &[0, 1], &measured).is_none(), "nothing counts");
        counted(dir.path(), 7);
        let both: CpuSet = [0, 1].into_iter().collect();
        assert!(Smis::begin(&root, &[0, 1], &both).is_none(), "every CPU is measured");
        let mut smis = Smis::begin(&root, &[0, 1], &measured).expect("counted");
        assert_eq!(smis.any(), Some(false));
        counted(dir.path(), 8);
        assert_eq!((smis.any(), smis.any(), smis.any()), (Some(true), Some(true), Some(false)));
        std::fs::remove_dir_all(dir.path().join("dev")).expect("gone");
        assert_eq!(smis.any(), None);
    }
}
