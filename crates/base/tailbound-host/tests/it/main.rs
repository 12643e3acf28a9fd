// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fake hosts (trees of files below tests/fixtures/hosts), copied for each test so that
//! things can happen to them, and a few tests of the machine itself.
//!
//! The hosts: `rt-pc` (bare metal, PREEMPT_RT, isolated CPUs 2-3), `arm-board`
//! (device tree, Linux 6.1, a quota), `container` (SMT server, no debugfs), `vm` (KVM guest,
//! cgroup v1, throttling already spoken of).

mod cpus;
mod disturbances;
mod inventory;
mod live;

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::Path;

use tailbound_core::plan::Clock;
use tailbound_core::{CpuSet, Policy};
use tailbound_host::{Root, WatchPlan};

/// A copy of a fake host.
struct Host {
    dir: tempfile::TempDir,
}

impl Host {
    fn of(name: &str) -> Self {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hosts").join(name);
        let dir = tempfile::tempdir().expect("a temporary directory");
        copy(&from, dir.path()).expect("a copy of the fake host");
        if name == "vm" {
            // Git keeps no empty directories; this one says that debugfs is not mounted.
            fs::create_dir_all(dir.path().join("sys/kernel/debug")).expect("a directory");
        }
        Self { dir }
    }
    fn root(&self) -> Root {
        Root::at(self.dir.path())
    }
    fn write(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
    }
    fn append(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        let mut file = fs::OpenOptions::new().append(true).open(path).expect("a file");
        file.write_all(text.as_bytes()).expect("written");
    }
    fn replace(&self, path: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.dir.path().join(path)).expect("a file");
        assert!(text.contains(from), "{path} has no `{from}`");
        self.write(path, &text.replace(from, to));
    }
    fn remove(&self, path: &str) {
        let path = self.dir.path().join(path);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
            .expect("removed");
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            fs::create_dir(&target)?;
            copy(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(entry.path())?, target)?;
        } else {
            fs::copy(entry.path(), target).map(drop)?;
        }
    }
    Ok(())
}

fn set(text: &str) -> CpuSet {
    text.parse().expect("a CPU list")
}

fn plan(cpus: &str, threads: &[u32]) -> WatchPlan {
    WatchPlan {
        cpus: set(cpus),
        policy: Policy::Fifo(80),
        clock: Clock::Monotonic,
        threads: threads.to_vec(),
    }
}
