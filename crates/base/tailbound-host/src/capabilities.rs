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
    /// Mount, and more.
    SysAdmin = 21,
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

/// What this process is to the kernel, whatever a container tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Any user of a user namespace, whose rights count within it alone.
    Namespace,
    /// Root of the machine, by number.
    Root,
    /// Another user.
    Ordinary,
}

impl Standing {
    /// Of this process; `None` where /proc does not tell.
    pub(crate) fn own(root: &Root) -> Option<Self> {
        let status = root.text("/proc/self/status").ok()?;
        let user =
            status.lines().find_map(|l| l.strip_prefix("Uid:")?.split_whitespace().next())?;
        // A kernel without user namespaces has no such file.
        let whole = root.text("/proc/self/uid_map").unwrap_or_default();
        if !whole.is_empty() && whole.split_ascii_whitespace().ne(["0", "0", "4294967295"]) {
            return Some(Self::Namespace);
        }
        Some(if user == "0" { Self::Root } else { Self::Ordinary })
    }
}
