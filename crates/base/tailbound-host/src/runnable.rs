// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads that run or could run now, and how far each has come.
//!
//! One file of each thread, two of those that are runnable (about 5 ms for 300 threads).
//! Units: ns; ticks of USER_HZ. /sys/kernel/debug/sched/debug has the same, and keeps interrupts off while it is printed.
//! Source: proc_pid_stat(5), Documentation/scheduler/sched-stats.rst.

use crate::root::{Found, Missing, Root};
use crate::schedstat::Schedstat;
use crate::stat::Stat;
use crate::threads::{Status, folders, processes};

/// One thread that runs or waits for a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runnable {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// When it began, in ticks since boot.
    pub start_ticks: u64,
    /// Its name.
    pub name: String,
    /// The kernel's number of its policy.
    pub policy: u32,
    /// 1 to 99 of a real-time one.
    pub priority: u32,
    /// The CPU in whose queue it is.
    pub cpu: u32,
    /// What changes whenever it runs.
    pub progress: RunProgress,
}

/// How far a thread has come: the same twice means that it did not run in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunProgress {
    /// In programs and in the kernel; it moves also on a CPU without ticks.
    pub cpu_ticks: u64,
    /// As the scheduler counts it.
    pub run_ns: u64,
    /// How often it got or gave a CPU.
    pub turns: u64,
}

/// Every thread in state `R`.
///
/// # Errors
/// /proc cannot be listed, or the kernel counts nobody's turns.
pub fn runnable(root: &Root) -> Found<Vec<Runnable>> {
    if root.is_real() && !root.exists("/proc/1/stat") {
        let why = "/proc hides the processes of others (hidepid): root sees them";
        return Err(Missing::Unknown(why.to_owned()));
    }
    let mut all = Vec::new();
    for pid in processes(root)? {
        for dir in folders(root, &pid) {
            // A thread may end between any two reads.
            let Ok(line) = root.text(&format!("{dir}/stat")) else { continue };
            let Some(stat) = Stat::parse(&line).filter(|s| s.word(3) == Some("R")) else {
                continue;
            };
            match turns(root, &dir) {
                Ok((run_ns, turns)) => all.extend(one(&pid, &stat, run_ns, turns)),
                Err(Missing::NotApplicable(_)) => {}
                Err(why) => return Err(why),
            }
        }
    }
    Ok(all)
}

fn one(pid: &str, stat: &Stat<'_>, run_ns: u64, turns: u64) -> Option<Runnable> {
    let (policy, priority) = stat.policy()?;
    let cpu_ticks = stat.number(14)?.saturating_add(stat.number(15)?);
    Some(Runnable {
        pid: pid.parse().ok()?,
        tid: stat.tid,
        start_ticks: stat.start_ticks()?,
        name: stat.name.to_owned(),
        policy: u32::try_from(policy).ok()?,
        priority: u32::from(priority),
        cpu: stat.last_cpu()?,
        progress: RunProgress { cpu_ticks, run_ns, turns },
    })
}

/// The time it ran and how often, from `schedstat`; where the kernel does not count these, its switches.
fn turns(root: &Root, dir: &str) -> Found<(u64, u64)> {
    match root.read_trimmed(&format!("{dir}/schedstat")) {
        Ok(text) => Schedstat::of_text(dir, &text).map(|s| (s.run_ns, s.turns)),
        Err(_) => {
            let switches = Status::read(root, dir)?.switches()?;
            Ok((0, switches.voluntary.saturating_add(switches.involuntary)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(dir: &std::path::Path, path: &str, text: &str) {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn stat(state: char) -> String {
        format!(
            "41 (a b) {state} 2 0 0 0 -1 0 0 0 0 0 3 4 0 0 20 0 1 0 12 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 3 50 1 0\n"
        )
    }

    #[test]
    fn only_what_could_run_is_read_further() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        put(dir.path(), "proc/40/task/41/stat", &stat('S'));
        assert_eq!(runnable(&root), Ok(Vec::new()), "it has no schedstat, and none is wanted");
        put(dir.path(), "proc/40/task/41/stat", &stat('R'));
        put(dir.path(), "proc/40/task/41/schedstat", "900 70 5\n");
        let progress = RunProgress { cpu_ticks: 7, run_ns: 900, turns: 5 };
        let all = runnable(&root).unwrap();
        let [one] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!((one.pid, one.tid, one.start_ticks, one.cpu), (40, 41, 12, 3));
        assert_eq!((one.name.as_str(), one.policy, one.priority), ("a b", 1, 50));
        assert_eq!(one.progress, progress);
        // A kernel without schedstat has switches.
        std::fs::remove_file(dir.path().join("proc/40/task/41/schedstat")).unwrap();
        let status = "voluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t1\n";
        put(dir.path(), "proc/40/task/41/status", status);
        let all = runnable(&root).unwrap();
        assert_eq!(all.first().map(|t| t.progress.turns), Some(8));
        put(dir.path(), "proc/40/task/41/schedstat", "what\n");
        assert!(matches!(runnable(&root), Err(Missing::Unknown(_))));
    }
}
