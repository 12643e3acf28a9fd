// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the monitor itself costs.
//!
//! Units: ns, bytes. The peak is the one of /proc: that of getrusage(2) begins with the memory of whoever
//! started this process.
//! Source: proc_pid_status(5).

use serde::Serialize;
use tailbound_host::Root;
use tailbound_sys::limits;

/// See the module; without the time in the kernel's programs, which is that of the threads they run in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// CPU time so far.
    pub cpu_ns: u64,
    /// The most memory that was resident; none where that is unknown.
    pub peak_bytes: Option<u64>,
    /// What is resident now.
    pub resident_bytes: Option<u64>,
    /// Of that, its own; the other is the program's file, which other processes may share.
    pub own_bytes: Option<u64>,
}

impl Cost {
    pub(crate) fn so_far(root: &Root) -> Self {
        let status = root.text("/proc/self/status").unwrap_or_default();
        Self {
            cpu_ns: limits::process_cpu_ns(),
            peak_bytes: bytes(&status, "VmHWM:"),
            resident_bytes: bytes(&status, "VmRSS:"),
            own_bytes: bytes(&status, "RssAnon:"),
        }
    }
}

fn bytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|l| l.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read_or_unknown() {
        let status = "VmPeak:\t9 kB\nVmHWM:\t    2048 kB\nVmRSS:\t1 kB\n";
        assert_eq!(bytes(status, "VmHWM:"), Some(2 << 20));
        assert_eq!(bytes(status, "VmRSS:"), Some(1 << 10));
        assert_eq!(bytes("VmHWM:\t 2048 MB\n", "VmHWM:").or(bytes("", "VmHWM:")), None);
    }
}
