// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel lockdown: which files it refuses to read, known before they are tried, because each try is a line of the
//! kernel's log.
//!
//! Source: kernel_lockdown(7); debugfs_locked_down in fs/debugfs/file.c; the reasons in include/linux/security.h.

use crate::root::{Found, Missing, Root, chosen};

/// What the permissions of a file of debugfs may have where lockdown does not refuse it.
const READ_BITS: u32 = 0o444;
const PERMISSION_BITS: u32 = 0o7777;

/// The state of lockdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lockdown {
    /// None, or it is not known.
    Off,
    /// The kernel is not to be changed.
    Integrity,
    /// Its memory is not to be read either.
    Confidentiality,
}

impl Lockdown {
    pub(crate) fn of(root: &Root) -> Self {
        let text = root.read_trimmed("/sys/kernel/security/lockdown");
        match text.as_deref().ok().and_then(chosen) {
            Some("integrity") => Self::Integrity,
            Some("confidentiality") => Self::Confidentiality,
            _ => Self::Off,
        }
    }

    /// May a file of debugfs with the permissions `mode` be read? Those that can be written may not.
    ///
    /// # Errors
    /// [`Missing::Unknown`].
    pub(crate) fn debugfs(self, path: &str, mode: u32) -> Found<()> {
        match self {
            Self::Off => Ok(()),
            _ if mode & PERMISSION_BITS & !READ_BITS == 0 => Ok(()),
            _ => Err(self.refusal(path)),
        }
    }

    /// May a file of tracefs be read?
    ///
    /// # Errors
    /// [`Missing::Unknown`].
    pub(crate) fn tracefs(self, path: &str) -> Found<()> {
        match self {
            Self::Confidentiality => Err(self.refusal(path)),
            Self::Off | Self::Integrity => Ok(()),
        }
    }

    fn refusal(self, path: &str) -> Missing {
        let level = if self == Self::Confidentiality { "confidentiality" } else { "integrity" };
        Missing::Unknown(format!("{path}: kernel lockdown ({level}) refuses it"))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::{fs, io};

    use super::*;

    #[test]
    fn what_lockdown_refuses_is_not_tried() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let place = |path: &str| dir.path().join(path);
        for folder in ["sys/kernel/debug/sched", "sys/kernel/tracing", "sys/kernel/security"] {
            fs::create_dir_all(place(folder))?;
        }
        fs::write(place("sys/kernel/tracing/current_tracer"), "nop\n")?;
        for (file, mode) in [("preempt", 0o644), ("debug", 0o444)] {
            let path = place("sys/kernel/debug/sched").join(file);
            fs::write(&path, "none (full)\n")?;
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        }
        let root = Root::at(dir.path());
        let state = |text: &str| fs::write(place("sys/kernel/security/lockdown"), text);
        let said = |found: Found<String>| found.map_err(|e| e.reason().to_owned());
        let all = || {
            let debugfs = |path: &str| said(root.debugfs(path));
            let tracer = said(root.tracefs("current_tracer"));
            (debugfs("sched/preempt"), debugfs("sched/debug"), tracer)
        };
        let read = || Ok("none (full)".to_owned());
        let nop = || Ok("nop".to_owned());
        let refused = |path: &str, level: &str| {
            Err(format!("/sys/kernel/{path}: kernel lockdown ({level}) refuses it"))
        };
        assert_eq!(all(), (read(), read(), nop()));
        state("[none] integrity confidentiality\n")?;
        assert_eq!(all(), (read(), read(), nop()));
        state("none [integrity] confidentiality\n")?;
        assert_eq!(all(), (refused("debug/sched/preempt", "integrity"), read(), nop()));
        state("none integrity [confidentiality]\n")?;
        let preempt = refused("debug/sched/preempt", "confidentiality");
        let tracer = refused("tracing/current_tracer", "confidentiality");
        assert_eq!(all(), (preempt, read(), tracer));
        Ok(())
    }
}
