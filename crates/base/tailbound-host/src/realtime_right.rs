// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why the kernel refused this process a real-time policy, and what whoever asks can do about it.
//!
//! Source: sched(7), capabilities(7), user_namespaces(7), Documentation/scheduler/sched-rt-group.rst.

use crate::capabilities::{Capabilities, Capability, Standing};
use crate::cgroups::Process;
use crate::group_limits::group_limits;
use crate::root::Root;

/// What stood in the way of a real-time policy that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RealtimeRight {
    /// The control group has no budget for real-time threads: nobody in it may have one, root neither.
    NoBudget {
        /// The file that says it.
        file: String,
    },
    /// Root has CAP_SYS_NICE and was refused, within a group of version 2.
    InnerGroup {
        /// The group.
        path: String,
    },
    /// In a user namespace, where root too is an ordinary user to the scheduler.
    NamespaceRoot,
    /// Root without CAP_SYS_NICE, as in most containers.
    RootWithoutCapability,
    /// An ordinary user whose RLIMIT_RTPRIO is too low.
    OrdinaryUser,
    /// Nothing here tells.
    Unknown,
}

impl RealtimeRight {
    /// Why this process was refused.
    #[must_use]
    pub fn refused(root: &Root) -> Self {
        let (Some(standing), Ok(capabilities)) =
            (Standing::own(root), Capabilities::of(root, Process::Own))
        else {
            return Self::Unknown;
        };
        let limits = group_limits(root, Process::Own);
        if let Ok(budget) = limits.as_ref().map_err(Clone::clone).and_then(|l| l.budget.clone())
            && budget.runtime_us == 0
        {
            return Self::NoBudget { file: budget.file };
        }
        match (standing, capabilities.has(Capability::SysNice)) {
            (Standing::Namespace, _) => Self::NamespaceRoot,
            (_, true) => match limits {
                Ok(l) if l.version == 2 && l.path != "/" => Self::InnerGroup { path: l.path },
                _ => Self::Unknown,
            },
            (Standing::Root, false) => Self::RootWithoutCapability,
            (Standing::Ordinary, false) => Self::OrdinaryUser,
        }
    }

    /// The cause, as the end of a sentence.
    #[must_use]
    pub fn cause(&self) -> String {
        match self {
            Self::NoBudget { file } => {
                format!("the control group has no budget for real-time threads ({file} is 0)")
            }
            Self::InnerGroup { path } => format!(
                "root with CAP_SYS_NICE was refused: with CONFIG_RT_GROUP_SCHED no control group of version 2 below the root has a budget for real-time threads, and this is {path}; or a seccomp filter refuses it"
            ),
            Self::NamespaceRoot => {
                "in a user namespace root too is an ordinary user to the scheduler".to_owned()
            }
            Self::RootWithoutCapability => {
                "root lacks CAP_SYS_NICE, as in a container".to_owned()
            }
            Self::OrdinaryUser => "this user may not (RLIMIT_RTPRIO)".to_owned(),
            Self::Unknown => "neither capabilities, limits nor control groups tell why; a seccomp filter can refuse it".to_owned(),
        }
    }

    /// What to do, as a sentence.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::NoBudget { file } => format!(
                "Give the group a budget (its parents need as much): echo 950000 > {file}; or boot with rt_group_sched=0."
            ),
            Self::InnerGroup { .. } => "Move the shell to the root group: echo $$ > /sys/fs/cgroup/cgroup.procs; or boot with rt_group_sched=0; in a container, allow sched_setscheduler in its seccomp profile.".to_owned(),
            Self::NamespaceRoot => "Give the user who started it rtprio and memlock in /etc/security/limits.conf, or start it as root outside of the namespace.".to_owned(),
            Self::RootWithoutCapability => "Give the container the capability and the limits: --cap-add SYS_NICE --cap-add IPC_LOCK --ulimit rtprio=99 --ulimit memlock=-1.".to_owned(),
            Self::OrdinaryUser => "Run as root, give the program CAP_SYS_NICE, or raise RLIMIT_RTPRIO (/etc/security/limits.conf: rtprio).".to_owned(),
            Self::Unknown => "Try chrt -f 10 true: it asks the kernel for the same.".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const NOBODY: &str = "0000000000000000";
    const ALL: &str = "000001ffffffffff";

    fn refused(uid: u32, capabilities: &str, cgroup: &str, uid_map: &str) -> RealtimeRight {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        file(
            "proc/self/status",
            &format!("Name:\tx\nUid:\t{uid}\t{uid}\nCapEff:\t{capabilities}\n"),
        );
        file("proc/self/cgroup", cgroup);
        file("proc/self/uid_map", uid_map);
        file(
            "proc/self/mountinfo",
            "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        );
        file("sys/fs/cgroup/cpu/none/cpu.rt_runtime_us", "0\n");
        file("sys/fs/cgroup/cpu/some/cpu.rt_runtime_us", "950000\n");
        RealtimeRight::refused(&Root::at(dir.path()))
    }

    #[test]
    fn each_reason_has_its_own_remedy() {
        let whole = "         0          0 4294967295\n";
        let none = refused(0, ALL, "2:cpu:/none\n", whole);
        assert!(none.cause().contains("/sys/fs/cgroup/cpu/none/cpu.rt_runtime_us is 0"));
        assert!(none.remedy().contains("echo 950000 > /sys/fs/cgroup/cpu/none/cpu.rt_runtime_us"));
        assert!(!none.remedy().contains("Run as root"));
        // A user in such a group is told of the group as well: being root would not help.
        assert_eq!(refused(1000, NOBODY, "2:cpu:/none\n", whole), none);
        let bare = refused(0, NOBODY, "2:cpu:/some\n", whole);
        assert_eq!(bare, RealtimeRight::RootWithoutCapability);
        assert!(bare.remedy().contains("--cap-add SYS_NICE"));
        assert!(bare.remedy().contains("--ulimit rtprio=99"));
        assert_eq!(refused(1000, NOBODY, "0::/user.slice\n", whole), RealtimeRight::OrdinaryUser);
        let inner = refused(0, ALL, "0::/user.slice/a\n", whole);
        assert_eq!(inner, RealtimeRight::InnerGroup { path: "/user.slice/a".into() });
        assert_eq!(refused(0, ALL, "0::/\n", "0 1000 1\n"), RealtimeRight::NamespaceRoot);
        assert_eq!(refused(0, ALL, "0::/\n", whole), RealtimeRight::Unknown);
        // A rootless container: a capability more would not help.
        assert_eq!(refused(0, NOBODY, "0::/\n", "0 1000 1\n"), RealtimeRight::NamespaceRoot);
    }
}
