// SPDX-License-Identifier: MIT OR Apache-2.0
//! The effective capabilities of a process.
//!
//! Source: capabilities(7), proc_pid_status(5) (`CapEff`).

use crate::cgroups::Process;
use crate::root::{Found, Missing, Root};

/// One right of a process, by its bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Lock memory beyond RLIMIT_MEMLOCK.
    IpcLock = 14,
    /// Real-time policies beyond RLIMIT_RTPRIO.
    SysNice = 23,
}

/// The set of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities(u64);

impl Capabilities {
    /// Those of `process`.
    ///
    /// # Errors
    /// Where its status cannot be read, or has none.
    pub fn of(root: &Root, process: Process) -> Found<Self> {
        let file = process.file("status");
        let text = root.text(&file)?;
        text.lines()
            .find_map(|l| u64::from_str_radix(l.strip_prefix("CapEff:")?.trim(), 16).ok())
            .map(Self)
            .ok_or_else(|| Missing::Unknown(format!("{file} has no CapEff")))
    }

    /// Is this one among them?
    #[must_use]
    pub fn has(self, capability: Capability) -> bool {
        self.has_bit(capability as u32)
    }

    /// The same by the number of the bit, up to 63.
    pub(crate) fn has_bit(self, bit: u32) -> bool {
        self.0.checked_shr(bit).is_some_and(|set| set & 1 == 1)
    }
}
