// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why this process cannot have tracefs, and what whoever asks can do about it.
//!
//! Source: fsopen(2), capabilities(7), user_namespaces(7); filesystems(5).

use tailbound_sys::SysError;

use crate::capabilities::{Capabilities, Capability, Standing};
use crate::cgroups::Process;
use crate::kernel_files;
use crate::root::Root;

/// What stood in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TracingRight {
    /// A tree of files has none.
    NotCaptured,
    /// It is there and empty: a kernel that is locked down for confidentiality.
    Empty,
    /// The kernel was built without.
    NotBuilt,
    /// In a user namespace, where root too may not mount it.
    NamespaceRoot,
    /// Root without CAP_SYS_ADMIN, as in most containers.
    RootWithoutCapability,
    /// Another user.
    OrdinaryUser,
    /// The kernel's own words.
    Refused(Box<SysError>),
}

impl TracingRight {
    /// Why there is none under `root`.
    pub(crate) fn lacking(root: &Root) -> Self {
        match kernel_files::tracefs_refused() {
            _ if !root.is_real() => Self::NotCaptured,
            Some(why) => Self::refused(root, why),
            None => Self::Empty,
        }
    }

    fn refused(root: &Root, refused: &SysError) -> Self {
        const ENODEV: i32 = 19;
        if refused.errno == ENODEV {
            return Self::NotBuilt;
        }
        let capabilities = Capabilities::of(root, Process::Own);
        let may = capabilities.is_ok_and(|c| c.has(Capability::SysAdmin));
        match Standing::own(root) {
            Some(Standing::Namespace) => Self::NamespaceRoot,
            Some(Standing::Root) if !may => Self::RootWithoutCapability,
            Some(Standing::Ordinary) if !may => Self::OrdinaryUser,
            _ => Self::Refused(Box::new(refused.clone())),
        }
    }

    /// The cause and what to do, as the end of a sentence.
    #[must_use]
    pub fn remedy(&self) -> String {
        let text = match self {
            Self::NotCaptured => "these files have none",
            Self::Empty => {
                "it is empty, as in a kernel that is locked down for confidentiality (secure boot, lockdown=)"
            }
            Self::NotBuilt => "this kernel has none: it needs CONFIG_FTRACE",
            Self::NamespaceRoot => {
                "in a user namespace (a rootless container) nobody may mount it: start this as root outside of it"
            }
            Self::RootWithoutCapability => {
                "it is not mounted, and root lacks CAP_SYS_ADMIN, as in a container: give that --cap-add SYS_ADMIN --pid host, or -v /sys/kernel/tracing:/sys/kernel/tracing --pid host"
            }
            Self::OrdinaryUser => "it is not mounted: run as root, or with CAP_SYS_ADMIN",
            Self::Refused(why) => {
                return format!(
                    "it cannot be mounted: {why}; do it with `mount -t tracefs tracefs /sys/kernel/tracing`"
                );
            }
        };
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn refused(errno: i32, uid: u32, capabilities: &str, uid_map: &str) -> TracingRight {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("proc/self");
        fs::create_dir_all(&own).unwrap();
        let status = format!("Uid:\t{uid}\t{uid}\nCapEff:\t{capabilities}\n");
        fs::write(own.join("status"), status).unwrap();
        fs::write(own.join("uid_map"), uid_map).unwrap();
        let why = SysError::code("fsopen", "tracefs", errno);
        TracingRight::refused(&Root::at(dir.path()), &why)
    }

    #[test]
    fn each_reason_has_its_own_remedy() {
        const EPERM: i32 = 1;
        const ALL: &str = "000001ffffffffff";
        // What docker gives by itself.
        const FEW: &str = "00000000a80425fb";
        let whole = "         0          0 4294967295\n";
        let bare = refused(EPERM, 0, FEW, whole);
        assert_eq!(bare, TracingRight::RootWithoutCapability);
        assert!(
            bare.remedy().contains("--cap-add SYS_ADMIN") && bare.remedy().contains("--pid host")
        );
        let rootless = refused(EPERM, 0, ALL, "0 1000 1\n");
        assert!(!rootless.remedy().contains("cap-add"), "it would not help");
        assert_eq!(refused(EPERM, 1000, "0", whole), TracingRight::OrdinaryUser);
        assert_eq!(refused(19, 0, ALL, whole), TracingRight::NotBuilt);
        let other = refused(EPERM, 0, ALL, whole).remedy();
        assert!(other.contains("fsopen") && other.contains("mount -t tracefs"), "{other}");
    }
}
