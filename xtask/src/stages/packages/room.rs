// SPDX-License-Identifier: MIT OR Apache-2.0
//! A copy of a bare Debian root in which packages are installed, without a network.
//!
//! Each command has a mount, PID and network namespace of its own: when its first process ends, the kernel ends the
//! others and takes the mounts away.
//! Source: unshare(1), mount_namespaces(7), systemd-nspawn(1).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::{bare, exec, root};

/// Mounts what a machine has, and runs the rest of its words in the root.
const ENTER: &str = r#"
mount --make-rprivate /
mount --rbind "$1" "$1"
mount -t proc proc "$1/proc"
mount --rbind -o ro /sys "$1/sys"
mount --rbind /dev "$1/dev"
mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"
mount -t tmpfs -o mode=755 tmpfs "$1/run"
mkdir -m 1777 "$1/run/lock"
root=$1; shift
exec chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"
"#;

/// Boots the root in `$1`, with what the monitor and measurements need, and without a network. What a container manager keeps of it
/// is in /run, and goes with the namespace.
const BOOT: &str = r#"
mount --make-rprivate /
mount -t tmpfs tmpfs /run
exec systemd-nspawn --quiet --directory="$1" --boot --machine=tailbound-tried --keep-unit --register=no --private-network \
    --link-journal=no --console=read-only --capability=CAP_BPF,CAP_PERFMON,CAP_IPC_LOCK,CAP_SYS_NICE \
    "--system-call-filter=bpf perf_event_open"
"#;

const LIMIT: Duration = Duration::from_secs(300);

/// What dpkg, rpm and useradd note, beside what a package installs.
const NOTES: [&str; 11] = [
    "var/lib/dpkg",
    "var/log",
    "var/cache",
    "var/lib/rpm",
    "usr/lib/sysimage",
    "etc/passwd-",
    "etc/group-",
    "etc/shadow-",
    "etc/gshadow-",
    "etc/subuid-",
    "etc/subgid-",
];

/// One root.
pub(super) struct BareRoot {
    pub(super) root: PathBuf,
    log: PathBuf,
}

impl BareRoot {
    /// A fresh one of that suite.
    pub(super) fn of(project: &Path, suite: &str, purpose: &str) -> anyhow::Result<Self> {
        Self::copy_of(project, &bare::base(project, suite)?, suite, purpose)
    }

    /// A fresh one that boots systemd.
    pub(super) fn with_systemd(project: &Path, suite: &str, purpose: &str) -> anyhow::Result<Self> {
        Self::copy_of(project, &bare::with_systemd(project, suite)?, suite, purpose)
    }

    fn copy_of(project: &Path, base: &Path, suite: &str, purpose: &str) -> anyhow::Result<Self> {
        let folder = root::target(project).join("xtask/packages");
        fs::create_dir_all(&folder)?;
        let root = folder.canonicalize()?.join(format!("{suite}-{purpose}.root"));
        remove(&root)?;
        exec::succeed(exec::command("cp").args(["-a", "--reflink=auto"]).arg(base).arg(&root))?;
        let log = root.with_extension("log");
        Ok(Self { root, log })
    }

    /// Copies files into its folder `srv`.
    pub(super) fn give(&self, files: &[PathBuf]) -> anyhow::Result<()> {
        exec::succeed(exec::command("cp").args(files).arg(self.root.join("srv")))
    }

    /// Runs a script there; what it said.
    pub(super) fn run(&self, script: &str) -> anyhow::Result<String> {
        let (status, said) = self.tried(script)?;
        if status != Some(0) {
            bail!("`{script}` ended with {status:?}:\n{said}");
        }
        Ok(said)
    }

    /// The same, with its exit status; `None` where it was killed.
    pub(super) fn tried(&self, script: &str) -> anyhow::Result<(Option<i32>, String)> {
        let mut c = exec::command("unshare");
        c.args([
            "--mount",
            "--pid",
            "--net",
            "--fork",
            "--kill-child",
            "sh",
            "-eu",
            "-c",
            ENTER,
            "sh",
        ]);
        c.arg(&self.root).args(["sh", "-eu", "-c", script]);
        let ended = exec::limited(&mut c, &self.log, LIMIT)?;
        let said = fs::read_to_string(&self.log).unwrap_or_default();
        let status =
            ended.with_context(|| format!("`{script}` still ran after {} s", LIMIT.as_secs()))?;
        Ok((status.code(), said))
    }

    /// Boots it and waits until it has turned itself off: `None` where it had not within the limit.
    pub(super) fn boot(&self) -> anyhow::Result<Option<ExitStatus>> {
        let mut c = exec::command("unshare");
        c.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        c.args(["sh", "-eu", "-c", BOOT, "sh"]).arg(&self.root);
        exec::limited(&mut c, &self.log, LIMIT)
    }

    /// What it said when it was booted, or by a script.
    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// Every path but what package managers note.
    pub(super) fn paths(&self) -> anyhow::Result<BTreeSet<PathBuf>> {
        let mut found = BTreeSet::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                let path = entry.path();
                let name = path.strip_prefix(&self.root)?.to_owned();
                if NOTES.iter().any(|n| name == Path::new(n)) {
                    continue;
                }
                if entry.file_type()?.is_dir() {
                    folders.push(path);
                }
                found.insert(name);
            }
        }
        Ok(found)
    }
}

impl Drop for BareRoot {
    fn drop(&mut self) {
        drop(remove(&self.root));
    }
}

fn remove(dir: &Path) -> anyhow::Result<()> {
    exec::succeed(exec::command("rm").args(["-rf", "--one-file-system"]).arg(dir))
}
