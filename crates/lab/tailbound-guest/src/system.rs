// SPDX-License-Identifier: MIT OR Apache-2.0
//! The system a guest stands on: file systems, modules, loopback.
//!
//! Context: SETUP. What is missing is said and does not end the guest: a small kernel
//! may lack what this job does not need.

use std::fs;
use std::path::Path;

use tailbound_sys::{boot, ipc, netns};

use crate::error::GuestError;

/// Until a kernel that has just booted has ended what it still does behind: work of half a
/// second that no load by Tailbound caused. Virtual time in which nothing runs costs the host nothing.
const SETTLE_MS: i32 = 3000;
/// The word that makes it another time.
const SETTLE: &str = "tailbound.settle_ms";
/// Modules to load, one path per line, in order; written by the lab.
const MODULES: &str = "/modules.list";

/// File system, where, options.
const MOUNTS: &[(&str, &str, &str)] = &[
    ("proc", "/proc", ""),
    ("sysfs", "/sys", ""),
    ("devtmpfs", "/dev", ""),
    ("tmpfs", "/dev/shm", "mode=1777"),
    ("tmpfs", "/run", "mode=755"),
    ("tmpfs", "/tmp", "mode=1777"),
    ("devpts", "/dev/pts", ""),
    ("debugfs", "/sys/kernel/debug", ""),
    ("tracefs", "/sys/kernel/tracing", ""),
    ("cgroup2", "/sys/fs/cgroup", ""),
    ("mqueue", "/dev/mqueue", ""),
    ("configfs", "/sys/kernel/config", ""),
];

/// Mounted only where the kernel has them; their absence is nobody's loss.
const OPTIONAL: &[&str] = &["devpts", "debugfs", "tracefs", "cgroup2", "mqueue", "configfs"];

/// Prepared system.
#[derive(Debug)]
pub(crate) struct System {
    /// The kernel's command line.
    pub(crate) command_line: String,
}

/// Makes it; what went wrong is added to `words`.
pub(crate) fn prepare(words: &mut Vec<String>) -> Result<System, GuestError> {
    for (kind, target, options) in MOUNTS {
        // sysfs brings its own folders; those that cannot be made are the kernel's to have.
        let made = fs::create_dir_all(target);
        let mounted = boot::mount(kind, target, options);
        match (made, mounted) {
            (_, Ok(())) => {}
            // Some kernels mount devtmpfs themselves.
            (_, Err(e)) if e.is_busy() => {}
            (Err(_), _) | (_, Err(_)) if OPTIONAL.contains(kind) => {}
            (_, Err(e)) => words.push(e.to_string()),
        }
    }
    for module in fs::read_to_string(MODULES).unwrap_or_default().lines() {
        if let Err(e) = boot::load_module(Path::new(module)) {
            words.push(e.to_string());
        }
    }
    if let Err(e) = netns::loopback_up() {
        words.push(format!("no loopback network: {e}"));
    }
    let command_line = fs::read_to_string("/proc/cmdline").map_err(GuestError::file("/proc"))?;
    let system = System { command_line };
    let settle_ms = system.word(SETTLE).and_then(|ms| ms.parse().ok()).unwrap_or(SETTLE_MS);
    if let Err(e) = ipc::wait_readable(&[], settle_ms) {
        words.push(e.to_string());
    }
    Ok(system)
}

impl System {
    /// The value of `name=value` on the kernel's command line; the last one counts.
    pub(crate) fn word(&self, name: &str) -> Option<String> {
        let mut words = self.command_line.split_ascii_whitespace().rev();
        words.find_map(|w| w.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
    }
}

/// The value of `name=value` on the kernel's command line, as long as that can be read.
pub(crate) fn word(name: &str) -> Option<String> {
    let command_line = fs::read_to_string("/proc/cmdline").ok()?;
    System { command_line }.word(name)
}
