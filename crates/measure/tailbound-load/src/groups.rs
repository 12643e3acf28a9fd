// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much memory the control groups leave, of either version and at every level.
//!
//! Context: SETUP. Units: bytes.
//! What a group uses includes files that the kernel forgets when memory is short: those are left
//! out as far as they were not touched lately.
//! Not here: the machine's own memory (`machine`); quotas of CPU time (a finding of
//! `tailbound-host`). Source: cgroups(7), proc_pid_mountinfo(5), the kernel's
//! admin-guide/cgroup-v1/memory.rst and admin-guide/cgroup-v2.rst.

use std::fs;
use std::path::{Path, PathBuf};

/// The files of one version.
struct Files {
    limit: &'static str,
    used: &'static str,
    /// In `memory.stat`: files of the group and those below it that were not touched lately.
    forgettable: &'static str,
}

const V1: Files = Files {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    forgettable: "total_inactive_file",
};
const V2: Files =
    Files { limit: "memory.max", used: "memory.current", forgettable: "inactive_file" };

/// The least that any group above this process leaves, and which group that is. `root` is `/`,
/// or a copy of what lies under it.
pub(crate) fn memory_left(root: &Path) -> Option<(u64, String)> {
    let of = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
    let (own, mounts) = (of("proc/self/cgroup"), of("proc/self/mountinfo"));
    let v1 = path_of(&own, |names| names.split(',').any(|n| n == "memory"));
    let v2 = path_of(&own, str::is_empty);
    let mut least: Option<(u64, String)> = None;
    for (path, version, files) in [(v1, 1, &V1), (v2, 2, &V2)] {
        let Some((path, (mounted, point))) = path.and_then(|p| Some((p, mount(&mounts, version)?)))
        else {
            continue;
        };
        // A container may see only a part of the hierarchy: the mount's root is then not `/`.
        let below = path.strip_prefix(mounted.trim_end_matches('/')).unwrap_or("");
        let top = root.join(point.strip_prefix("/").unwrap_or(&point));
        let innermost = below.split('/').filter(|s| !s.is_empty() && *s != "..");
        let innermost = innermost.fold(top.clone(), |dir, s| dir.join(s));
        for dir in innermost.ancestors().take_while(|dir| dir.starts_with(&top)) {
            let Some(left) = left_in(dir, files) else { continue };
            if least.as_ref().is_none_or(|(l, _)| left < *l) {
                let name = dir.strip_prefix(&top).unwrap_or(dir).display();
                least = Some((left, format!("control group /{name}")));
            }
        }
    }
    least
}

/// What one group leaves; `None` where it sets no limit.
fn left_in(dir: &Path, files: &Files) -> Option<u64> {
    let text = |file: &str| fs::read_to_string(dir.join(file)).ok();
    // `max` is no number; version 1 has a number beyond any machine's memory.
    let limit: u64 = text(files.limit)?.trim().parse().ok().filter(|l| *l < 1 << 62)?;
    // The kernel makes these files together with the limit.
    let used: u64 = text(files.used).and_then(|t| t.trim().parse().ok()).unwrap_or(0);
    let stat = text("memory.stat").unwrap_or_default();
    let value = |line: &str| line.strip_prefix(files.forgettable)?.trim().parse::<u64>().ok();
    let forgettable = stat.lines().find_map(value).unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(forgettable)))
}

/// This process's path in the hierarchy whose controllers are the right ones.
fn path_of(own: &str, right: impl Fn(&str) -> bool) -> Option<&str> {
    own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (names, path) = (parts.next()?, parts.next()?);
        right(names).then_some(path)
    })
}

/// Root and mount point of the memory hierarchy of a version.
fn mount(mounts: &str, version: u8) -> Option<(String, PathBuf)> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let (kind, options) = (after.next()?, after.nth(1).unwrap_or(""));
        let right = match version {
            1 => kind == "cgroup" && options.split(',').any(|o| o == "memory"),
            _ => kind == "cgroup2",
        };
        let mut words = before.split(' ').skip(3);
        let (root, point) = (words.next()?, words.next()?);
        // Blanks are written \040.
        let plain = |text: &str| text.replace("\\040", " ");
        right.then(|| (plain(root), PathBuf::from(plain(point))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy of what the kernel shows, gone with it.
    struct Copy(PathBuf);

    impl Copy {
        fn new(name: &str, files: &[(&str, &str)]) -> std::io::Result<Self> {
            let dir = format!("tailbound-groups-{name}-{}", std::process::id());
            let it = Self(std::env::temp_dir().join(dir));
            for (file, text) in files {
                let file = it.0.join(file);
                fs::create_dir_all(file.parent().unwrap_or(&it.0))?;
                fs::write(file, text)?;
            }
            Ok(it)
        }
    }

    impl Drop for Copy {
        fn drop(&mut self) {
            let _gone = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_narrowest_of_both_versions_and_all_levels_counts() -> std::io::Result<()> {
        let mut files = vec![
            ("proc/self/cgroup", "4:memory:/a/b\n3:cpu:/x\n0::/u\n"),
            (
                "proc/self/mountinfo",
                "35 31 0:32 / /g/memory rw - cgroup cgroup rw,memory\n41 31 0:38 / /g/all rw - cgroup2 cgroup2 rw\n",
            ),
            ("g/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("g/memory/a/memory.limit_in_bytes", "67108864\n"),
            ("g/memory/a/memory.usage_in_bytes", "60000000\n"),
            ("g/memory/a/memory.stat", "inactive_file 7\ntotal_inactive_file 20000000\n"),
            ("g/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n"),
            ("g/all/u/memory.max", "max\n"),
        ];
        let v1 = Copy::new("v1", &files)?;
        let at_a = Some((27_108_864, "control group /a".to_owned()));
        assert_eq!(memory_left(&v1.0), at_a);
        files.extend([("g/all/u/memory.max", "30000000\n"), ("g/all/u/memory.current", "9\n")]);
        let both = Copy::new("both", &files)?;
        assert_eq!(memory_left(&both.0), at_a, "version 1 leaves less");
        files.extend([("g/all/u/memory.current", "25000000\n")]);
        let both = Copy::new("v2", &files)?;
        assert_eq!(memory_left(&both.0), Some((5_000_000, "control group /u".to_owned())));
        Ok(())
    }

    #[test]
    fn a_container_sees_its_part_and_no_limit_is_none() -> std::io::Result<()> {
        let container = Copy::new(
            "container",
            &[
                ("proc/self/cgroup", "0::/docker/abc/inner\n"),
                (
                    "proc/self/mountinfo",
                    "41 31 0:38 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
                ),
                ("sys/fs/cgroup/memory.max", "1000\n"),
                ("sys/fs/cgroup/memory.current", "1500\n"),
                ("sys/fs/cgroup/inner/memory.max", "max\n"),
            ],
        )?;
        assert_eq!(memory_left(&container.0), Some((0, "control group /".to_owned())));
        let bare = Copy::new("bare", &[("proc/self/cgroup", "0::/\n")])?;
        assert_eq!(memory_left(&bare.0), None);
        Ok(())
    }
}
