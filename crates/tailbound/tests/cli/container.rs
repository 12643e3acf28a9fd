// SPDX-License-Identifier: MIT OR Apache-2.0
//! A control group with little memory, as a container has it: loads are made to fit or refused, and
//! nothing is killed for want of memory.
//!
//! Source: cgroups(7), memory.max of version 2, memory.limit_in_bytes of version 1.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{folder, is_root, read, skip, status, stderr};

/// A control group of this test, removed with it.
struct Group {
    folder: PathBuf,
}

impl Drop for Group {
    fn drop(&mut self) {
        drop(fs::remove_dir(&self.folder));
    }
}

impl Group {
    /// With at most `bytes` of memory, in whichever version holds memory here.
    fn of(bytes: u64) -> Result<Self, String> {
        let places =
            [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        let mut why = "no control groups of memory".to_owned();
        for (root, limit) in places {
            let folder = Path::new(root).join(format!("tailbound-test-{}", std::process::id()));
            if fs::create_dir(&folder).is_err() {
                continue;
            }
            let group = Self { folder };
            let set = fs::write(group.folder.join(limit), bytes.to_string());
            // Without it, memory beyond the limit would go to the swap.
            drop(fs::write(group.folder.join("memory.swap.max"), "0"));
            match set {
                Ok(()) => return Ok(group),
                Err(e) => why = format!("{root}: {limit}: {e}"),
            }
        }
        Err(why)
    }

    /// Processes that the kernel ended in it for want of memory.
    fn killed(&self) -> u64 {
        let counted = ["memory.events", "memory.oom_control"].iter().find_map(|name| {
            let text = fs::read_to_string(self.folder.join(name)).ok()?;
            text.lines().find_map(|l| l.strip_prefix("oom_kill ")?.trim().parse().ok())
        });
        counted.expect("the group counts what it ended")
    }

    /// A command that runs in it.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ >\"$0/cgroup.procs\" && exec \"$@\""]).arg(&self.folder);
        command.args(words).env("NO_COLOR", "1");
        command
    }
}

#[test]
fn a_container_of_64_mib_is_enough() {
    if !is_root() {
        return skip("root", "control groups need root");
    }
    let group = match Group::of(64 << 20) {
        Ok(group) => group,
        Err(why) => return skip("memory-cgroup", &why),
    };
    let folder = folder();
    let exe = env!("CARGO_BIN_EXE_tailbound");
    let words =
        ["run", "-q", "-D", "2s", "--warm-up", "200ms", "--policy", "other", "-o", "r.jsonl"];
    let loads = ["-L", "hackbench", "-L", "memory", "-L", "mmap", "-L", "file"];
    let all = [&[exe][..], &words, &loads].concat();
    let out = group.command(&all).current_dir(folder.path()).output().unwrap();
    assert!([0, 5].contains(&status(&out)), "{:?}: {}", out.status, stderr(&out));
    let run = read(&folder.path().join("r.jsonl"));
    assert!(run.ended_as_planned(), "{:?}", run.end);
    let worked = |name: &str| run.loads.iter().any(|l| l.name == name && l.count > 0);
    assert!(worked("hackbench") && worked("memory") && worked("mmap"), "{:?}", run.findings);
    assert_eq!(group.killed(), 0, "{:?}", run.findings);
    // What cannot be made to fit is refused with the figures, before anything is measured.
    let big = [&[exe][..], &words, &["--force", "-L", "memory:block=1G"]].concat();
    let out = group.command(&big).current_dir(folder.path()).output().unwrap();
    assert_eq!((status(&out), group.killed()), (3, 0), "{}", stderr(&out));
    assert!(stderr(&out).contains("control group"), "{}", stderr(&out));
}
