// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a process could leave behind on a machine: kernel objects, mounts, control
//! groups, settings. Compared before and after it was killed.
//!
//! Not here: processes, and the files in a test's own folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What process `pid`, or a child of it, could leave behind.
pub(crate) fn remains(pid: u32) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for table in ["sem", "shm", "msg"] {
        let text = fs::read_to_string(format!("/proc/sysvipc/{table}")).unwrap_or_default();
        // The key and the identity; the rest changes by itself.
        let of = |l: &str| l.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        all.extend(text.lines().skip(1).map(|l| format!("System V {table} {}", of(l))));
    }
    for place in ["/dev/shm", "/dev/mqueue", "/run/netns"] {
        let names = fs::read_dir(place).into_iter().flatten().flatten();
        all.extend(names.map(|n| n.path().display().to_string()));
    }
    // Those of tests beside this one come and go.
    let instances = fs::read_dir("/sys/kernel/tracing/instances").into_iter().flatten();
    let names = instances.flatten().map(|n| n.path().display().to_string());
    all.extend(names.filter(|n| n.contains(&format!("-{pid}-"))));
    // Of this thread, which may have mounts of its own.
    let mounts = fs::read_to_string("/proc/thread-self/mountinfo").unwrap_or_default();
    // Mount point and file system; numbers are given again.
    all.extend(mounts.lines().map(|l| {
        let words: Vec<&str> = l.split_whitespace().skip(4).collect();
        format!("mount {}", words.join(" "))
    }));
    groups(Path::new("/sys/fs/cgroup"), 4, &mut all);
    for setting in ["sched_rt_runtime_us", "sched_rt_period_us", "timer_migration", "watchdog"] {
        let path = format!("/proc/sys/kernel/{setting}");
        let value = fs::read_to_string(&path).unwrap_or_default();
        all.insert(format!("{path} {}", value.trim()));
    }
    for setting in ["tracing_on", "current_tracer"] {
        let path = format!("/sys/kernel/tracing/{setting}");
        let value = fs::read_to_string(&path).unwrap_or_default();
        all.insert(format!("{path} {}", value.trim()));
    }
    all
}

/// Control groups below `folder`, down to `levels` levels.
fn groups(folder: &Path, levels: u32, all: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if levels > 0 && entry.file_type().is_ok_and(|t| t.is_dir()) {
            all.insert(format!("control group {}", entry.path().display()));
            groups(&entry.path(), levels - 1, all);
        }
    }
}
