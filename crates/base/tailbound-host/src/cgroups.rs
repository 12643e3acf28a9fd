// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which control groups a process lives in, from the innermost to the root of what we
//! can see, of either version.
//!
//! Not here: what the groups' files say (`group_limits`,
//! `disturbances::quota`, `cpus`). Source: cgroups(7), proc_pid_mountinfo(5).

use std::sync::OnceLock;

use tailbound_core::CpuSet;

use crate::root::{Found, Missing, Root};

/// Whose groups are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// Those of the caller.
    Own,
    /// Those of the process with this number.
    Pid(u32),
}

impl std::fmt::Display for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Own => f.write_str("this process"),
            Self::Pid(pid) => write!(f, "process {pid}"),
        }
    }
}

impl Process {
    /// Its file in /proc.
    pub(crate) fn file(self, name: &str) -> String {
        match self {
            Self::Own => format!("/proc/self/{name}"),
            Self::Pid(pid) => format!("/proc/{pid}/{name}"),
        }
    }
}

/// The groups of one controller that a process is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Groups {
    /// 1 or 2.
    pub(crate) version: u8,
    /// Directories, innermost first.
    pub(crate) dirs: Vec<String>,
    /// The path in /proc/self/cgroup.
    pub(crate) path: String,
}

impl Groups {
    /// The command that lifts the CPU quota of the group in `dir`.
    pub(crate) fn lift(&self, dir: &str) -> String {
        match self.version {
            1 => format!("echo -1 > {dir}/cpu.cfs_quota_us"),
            _ => format!("echo max > {dir}/cpu.max"),
        }
    }
}

/// One mounted cgroup hierarchy.
struct Mount {
    version: u8,
    root: String,
    point: String,
    options: String,
}

/// The caller's groups of `controller` (`cpu`, `cpuset`).
pub(crate) fn own(root: &Root, controller: &str) -> Found<Groups> {
    of(root, Process::Own, controller)
}

/// The groups of `controller` that `process` is in, as seen from here.
pub(crate) fn of(root: &Root, process: Process, controller: &str) -> Found<Groups> {
    let text = root.text(&process.file("cgroup"))?;
    let mut found: Option<(u8, String)> = None;
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(names), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        if names.split(',').any(|n| n == controller) {
            found = Some((1, path.to_owned()));
        } else if names.is_empty() && found.is_none() {
            found = Some((2, path.to_owned()));
        }
    }
    let (version, path) = found.ok_or_else(|| {
        Missing::NotApplicable(format!("this kernel has no `{controller}` cgroup controller"))
    })?;
    if path.split('/').any(|part| part == "..") {
        return Err(Missing::Unknown(format!(
            "{process} is in cgroup {path}, outside of our cgroup namespace"
        )));
    }
    let mount = mounts(root)?
        .into_iter()
        .find(|m| {
            m.version == version && (version == 2 || m.options.split(',').any(|o| o == controller))
        })
        .ok_or_else(|| {
            Missing::Unknown(format!(
                "the cgroup v{version} hierarchy of `{controller}` is not mounted"
            ))
        })?;
    // A container may see only a part of the hierarchy: the mount's root is then not `/`.
    let below = if mount.root == "/" {
        path.as_str()
    } else {
        path.strip_prefix(&mount.root).unwrap_or("")
    };
    let mut dirs = Vec::new();
    let mut relative = below.trim_end_matches('/');
    loop {
        dirs.push(format!("{}{relative}", mount.point));
        match relative.rfind('/') {
            Some(at) => relative = relative.get(..at).unwrap_or(""),
            None => break,
        }
    }
    Ok(Groups { version, dirs, path })
}

/// The root directory of the version 2 hierarchy, if one is mounted.
pub(crate) fn unified(root: &Root) -> Found<String> {
    mounts(root)?
        .into_iter()
        .find(|m| m.version == 2)
        .map(|m| m.point)
        .ok_or_else(|| Missing::NotApplicable("no cgroup v2 hierarchy is mounted".to_owned()))
}

/// Name of the control group whose CPUs are kept for measured threads and real-time programs.
pub const PARTITION: &str = "tailbound";

/// CPUs that a control group keeps from everybody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its folder.
    pub path: String,
    /// Its CPUs.
    pub cpus: CpuSet,
}

/// The partition that `tailbound tune` made, if it is in force.
#[must_use]
pub fn partition(root: &Root) -> Option<Partition> {
    partition_in(root, &unified(root).ok()?)
}

fn partition_in(root: &Root, mount: &str) -> Option<Partition> {
    let path = format!("{mount}/{PARTITION}");
    let kind = root.read_trimmed(&format!("{path}/cpuset.cpus.partition")).ok()?;
    let cpus = root.cpus(&format!("{path}/cpuset.cpus.effective")).ok()?;
    matches!(kind.as_str(), "isolated" | "root").then_some(Partition { path, cpus })
}

/// The folder of the partition that a thread must join to run on `cpus`.
#[must_use]
pub fn to_join(cpus: &[u32]) -> Option<std::path::PathBuf> {
    if cpus.is_empty() {
        return None;
    }
    let root = Root::real();
    let partition = match UNIFIED.get() {
        Some(mount) => partition_in(&root, mount),
        None => partition(&root),
    }?;
    cpus.iter().any(|c| partition.cpus.contains(*c)).then(|| partition.path.into())
}

/// The root directory of the version 2 hierarchy, where it has the cpuset controller.
///
/// # Errors
/// *Not applicable*, with what is there instead.
pub fn cpuset_v2(root: &Root) -> Found<String> {
    let mount = unified(root)?;
    let controllers = root.read_trimmed(&format!("{mount}/cgroup.controllers"))?;
    if controllers.split_ascii_whitespace().any(|c| c == "cpuset") {
        Ok(mount)
    } else {
        Err(Missing::NotApplicable(format!(
            "{mount} does not have the cpuset controller (cgroup version 1 has it, or the kernel lacks it)"
        )))
    }
}

/// Where this machine's version 2 hierarchy is mounted, once somebody has read it: every thread that is pinned asks for it.
static UNIFIED: OnceLock<String> = OnceLock::new();

fn mounts(root: &Root) -> Found<Vec<Mount>> {
    let mounts: Vec<Mount> = root.text("/proc/self/mountinfo")?.lines().filter_map(mount).collect();
    if let Some(unified) = mounts.iter().find(|m| m.version == 2).filter(|_| root.is_real()) {
        UNIFIED.get_or_init(|| unified.point.clone());
    }
    Ok(mounts)
}

/// `36 35 98:0 /root /point opts shared:1 - type source super-options`
fn mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut after = after.split(' ');
    let version = match after.next()? {
        "cgroup" => 1,
        "cgroup2" => 2,
        _ => return None,
    };
    let options = after.nth(1).unwrap_or("").to_owned();
    let mut before = before.split(' ').skip(3);
    let (root, point) = (unescaped(before.next()?), unescaped(before.next()?));
    Some(Mount { version, root, point: point.trim_end_matches('/').to_owned(), options })
}

/// Blanks and the like are written `\040` in mountinfo.
fn unescaped(text: &str) -> String {
    text.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn host(cgroup: &str, mountinfo: &str) -> std::io::Result<(tempfile::TempDir, Root)> {
        let dir = tempfile::tempdir()?;
        fs::create_dir_all(dir.path().join("proc/self"))?;
        fs::write(dir.path().join("proc/self/cgroup"), cgroup)?;
        fs::write(dir.path().join("proc/self/mountinfo"), mountinfo)?;
        let root = Root::at(dir.path());
        Ok((dir, root))
    }

    #[test]
    fn walks_up_in_both_versions() -> std::io::Result<()> {
        let (_dir, root) = host(
            "3:cpuset:/\n2:cpu,cpuacct:/a/b\n0::/user.slice\n",
            "33 31 0:30 / /sys/fs/cgroup/cpu rw shared:1 - cgroup cgroup rw,cpu,cpuacct\n\
             41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        )?;
        let groups = own(&root, "cpu").map(|g| (g.version, g.dirs));
        let base = "/sys/fs/cgroup/cpu";
        assert_eq!(groups, Ok((1, vec![format!("{base}/a/b"), format!("{base}/a"), base.into()])));
        assert!(matches!(own(&root, "cpuset"), Err(Missing::Unknown(_))));
        let v2 = own(&root, "memory").map(|g| g.dirs.first().cloned());
        assert_eq!(v2, Ok(Some("/sys/fs/cgroup/unified/user.slice".to_owned())));
        Ok(())
    }

    #[test]
    fn a_container_sees_its_part_only() -> std::io::Result<()> {
        let (_dir, root) = host(
            "0::/docker/abc\n",
            "41 31 0:38 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
        )?;
        assert_eq!(own(&root, "cpu").map(|g| g.dirs), Ok(vec!["/sys/fs/cgroup".to_owned()]));
        let (_dir, root) = host("0::/../x\n", "")?;
        assert!(matches!(own(&root, "cpu"), Err(Missing::Unknown(_))));
        Ok(())
    }
}
