// SPDX-License-Identifier: MIT OR Apache-2.0
//! tracefs and debugfs where nobody mounted them: mounted for this process alone, once, when first asked for.
//!
//! Context: SETUP, COLD. No other process sees it, no mount point is needed, and it ends with the process.
//! A child that is a program of its own mounts its own.
//! Not here: what they hold (`root`, `tracefs`).

use std::ffi::CStr;
use std::fs;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tailbound_sys::{SysError, detached};

/// Where tracefs is known to be.
pub(crate) const TRACEFS: &str = "/sys/kernel/tracing";

/// What lies where this process sees it mounted.
#[derive(Debug)]
enum Mounted {
    /// The machine's own mount; or it may not be looked at.
    ByOthers,
    /// Ours.
    Here(OwnedFd),
    /// Nobody's.
    Nowhere(SysError),
}

struct KernelFiles {
    at: &'static str,
    kind: &'static CStr,
    at_c: &'static CStr,
    mounted: OnceLock<Mounted>,
}

static ALL: [KernelFiles; 2] = [
    KernelFiles {
        at: TRACEFS,
        kind: c"tracefs",
        at_c: c"/sys/kernel/tracing",
        mounted: OnceLock::new(),
    },
    KernelFiles {
        at: "/sys/kernel/debug",
        kind: c"debugfs",
        at_c: c"/sys/kernel/debug",
        mounted: OnceLock::new(),
    },
];

impl KernelFiles {
    fn mounted(&self) -> &Mounted {
        self.mounted.get_or_init(|| {
            let empty = match fs::read_dir(self.at) {
                Ok(mut names) => names.next().is_none(),
                Err(e) => e.kind() == ErrorKind::NotFound,
            };
            if !empty {
                return Mounted::ByOthers;
            }
            detached::file_system(self.kind, self.at_c).map_or_else(Mounted::Nowhere, Mounted::Here)
        })
    }
}

/// Where this process finds `path` if it lies in one of them and is mounted for it alone.
pub(crate) fn path(path: &str) -> Option<PathBuf> {
    let below = |files: &'static KernelFiles| Some((files, path.strip_prefix(files.at)?));
    let (files, rest) = ALL.iter().find_map(below)?;
    // Where debugfs has tracefs in it, the kernel mounts it there as soon as somebody looks, and logs that nobody should.
    if files.at != TRACEFS && Path::new(rest).starts_with("/tracing") {
        return None;
    }
    match files.mounted() {
        Mounted::Here(folder) if rest.is_empty() || rest.starts_with('/') => {
            Some(PathBuf::from(format!("/proc/self/fd/{}{rest}", folder.as_raw_fd())))
        }
        _ => None,
    }
}

/// Why tracefs, which nobody mounted, could not be mounted for this process either.
pub(crate) fn tracefs_refused() -> Option<&'static SysError> {
    match ALL.iter().find(|files| files.at == TRACEFS)?.mounted() {
        Mounted::Nowhere(why) => Some(why),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracefs_is_not_looked_for_within_debugfs() {
        assert_eq!(path("/sys/kernel/debug/tracing"), None);
        assert_eq!(path("/sys/kernel/debug/tracing/instances"), None);
    }
}
