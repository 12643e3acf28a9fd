// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every thread of the machine: who it is, where it may run, with what policy.
//!
//! Two files per thread (about 10 ms for 300 threads).
//! A thread is known by its number and its start: numbers are used again.
//! Not here: how much CPU time real-time threads take (`tasks`).
//! Source: proc_pid_stat(5), proc_pid_status(5), sched(7).

use tailbound_core::words::Word;
use tailbound_core::{CpuSet, Policy};

use crate::root::{Found, Missing, Root};
use crate::stat::Stat;

/// One thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its process.
    pub pid: u32,
    /// The process that began its own, or that took it over when that one ended.
    pub parent: u32,
    /// Its number.
    pub tid: u32,
    /// When it began, in ticks since boot.
    pub start_ticks: u64,
    /// Its name, at most 15 bytes for a thread of a program.
    pub name: String,
    /// A thread of the kernel.
    pub kernel: bool,
    /// User space cannot change where it runs (PF_NO_SETAFFINITY).
    pub fixed: bool,
    /// Policy and priority. Of SCHED_DEADLINE in a tree of files the times are 0.
    pub policy: Policy,
    /// Nice value, which counts for SCHED_OTHER and SCHED_BATCH.
    pub nice: i32,
    /// The CPU it ran on last.
    pub last_cpu: u32,
    /// Where it may run.
    pub allowed: Found<CpuSet>,
    /// How often it gave the CPU away, and lost it.
    pub switches: Found<Switches>,
}

/// Context switches of a thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// It waited for something.
    pub voluntary: u64,
    /// Another thread took its CPU.
    pub involuntary: u64,
}

/// Every thread there is now, by process and number.
///
/// # Errors
/// [`Missing`] where /proc shows none.
pub fn threads(root: &Root) -> Found<Vec<Thread>> {
    let mut all = Vec::new();
    for pid in processes(root)? {
        // A process may end between any two reads: its threads are then no longer of interest.
        all.extend(folders(root, &pid).iter().filter_map(|dir| read(root, &pid, dir).ok()));
    }
    if all.is_empty() {
        return Err(Missing::Unknown("/proc shows no thread at all".to_owned()));
    }
    Ok(all)
}

/// Programs that set frequencies and idle states by themselves, by the beginning of their names.
pub const POWER_DAEMONS: &[&str] = &[
    "tuned",
    "power-profiles-",
    "tlp",
    "auto-cpufreq",
    "thermald",
    "gamemoded",
    "system76-power",
    "cpufreqd",
];

/// The thread of that number, whatever process it belongs to.
///
/// # Errors
/// *Not applicable* where there is none.
pub fn thread(root: &Root, tid: u32) -> Found<Thread> {
    // /proc/TID is there for every thread, although only processes are listed.
    let pid = Status::read(root, &format!("/proc/{tid}"))?.word("Tgid:")?.to_owned();
    read(root, &pid, &format!("/proc/{pid}/task/{tid}"))
}

/// Is the thread of that number and start still there, and more than an entry that nobody has
/// collected yet (a zombie)?
#[must_use]
pub fn is_alive(root: &Root, tid: u32, start_ticks: u64) -> bool {
    let Ok(line) = root.text(&format!("/proc/{tid}/stat")) else { return false };
    Stat::parse(&line).is_some_and(|s| {
        s.start_ticks() == Some(start_ticks) && !matches!(s.word(3), Some("Z" | "X"))
    })
}

fn read(root: &Root, pid: &str, dir: &str) -> Found<Thread> {
    let path = format!("{dir}/stat");
    let line = root.text(&path)?;
    let stat = Stat::parse(&line);
    let odd = || Missing::Unknown(format!("{path} is not as proc_pid_stat(5) says"));
    let status = Status::read(root, dir);
    (|| {
        let stat = stat?;
        Some(Thread {
            pid: pid.parse().ok()?,
            parent: stat.word(4)?.parse().ok()?,
            tid: stat.tid,
            start_ticks: stat.start_ticks()?,
            name: stat.name.to_owned(),
            kernel: stat.is_kernel()?,
            fixed: stat.is_fixed()?,
            policy: policy(root, &stat)?,
            nice: stat.word(19)?.parse().ok()?,
            last_cpu: stat.last_cpu()?,
            allowed: status.as_ref().map_err(Clone::clone).and_then(Status::allowed),
            switches: status.as_ref().map_err(Clone::clone).and_then(Status::switches),
        })
    })()
    .ok_or_else(odd)
}

fn policy(root: &Root, stat: &Stat<'_>) -> Option<Policy> {
    let (number, priority) = stat.policy()?;
    Some(match number {
        0 => Policy::Other,
        1 => Policy::Fifo(priority),
        2 => Policy::Rr(priority),
        3 => Policy::Batch,
        5 => Policy::Idle,
        6 => {
            // Only sched_getattr(2) tells the times; without it they are 0, which no such thread has.
            let times = root
                .is_real()
                .then(|| tailbound_sys::sched::get(i32::try_from(stat.tid).ok()?).ok())
                .flatten()
                .unwrap_or_default();
            Policy::Deadline { runtime_ns: times.runtime_ns, period_ns: times.period_ns }
        }
        7 => Policy::Unknown(Word::new("ext")),
        _ => Policy::Unknown(Word::new("unknown")),
    })
}

/// The numbers of all processes.
pub(crate) fn processes(root: &Root) -> Found<Vec<String>> {
    let mut names = root.list("/proc")?;
    names.retain(|n| n.bytes().all(|b| b.is_ascii_digit()));
    Ok(names)
}

/// The folders of a process's threads.
pub(crate) fn folders(root: &Root, pid: &str) -> Vec<String> {
    let tids = root.list(&format!("/proc/{pid}/task")).unwrap_or_default();
    tids.iter().map(|tid| format!("/proc/{pid}/task/{tid}")).collect()
}

/// The `status` file of a thread.
pub(crate) struct Status {
    path: String,
    text: String,
}

impl Status {
    /// Reads `status` in `dir`, a folder below /proc.
    pub(crate) fn read(root: &Root, dir: &str) -> Found<Self> {
        let path = format!("{dir}/status");
        Ok(Self { text: root.text(&path)?, path })
    }

    /// The first word behind `name`.
    fn word(&self, name: &str) -> Found<&str> {
        self.text
            .lines()
            .find_map(|l| l.strip_prefix(name))
            .and_then(|rest| rest.split_ascii_whitespace().next())
            .ok_or_else(|| Missing::Unknown(format!("{} has no {name}", self.path)))
    }

    fn parsed<T: std::str::FromStr>(&self, name: &str) -> Found<T> {
        let word = self.word(name)?;
        word.parse().map_err(|_| Missing::Unknown(format!("{}: {name} {word}?", self.path)))
    }

    /// Where the thread may run.
    pub(crate) fn allowed(&self) -> Found<CpuSet> {
        self.parsed("Cpus_allowed_list:")
    }

    pub(crate) fn switches(&self) -> Found<Switches> {
        Ok(Switches {
            voluntary: self.parsed("voluntary_ctxt_switches:")?,
            involuntary: self.parsed("nonvoluntary_ctxt_switches:")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn reads_a_thread_of_a_tree_of_files() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let task = dir.path().join("proc/40/task/41");
        fs::create_dir_all(&task)?;
        fs::create_dir_all(dir.path().join("proc/41"))?;
        let stat = "41 (irq/9 (x)) S 2 0 0 0 -1 69238848 0 0 0 0 0 3 0 0 -51 -5 1 0 12 0 0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 0 0 0 17 3 50 1 0 0 0 0 0 0 0 0 0 0 0\n";
        fs::write(task.join("stat"), stat)?;
        let status = "Name:\tx\nTgid:\t40\nCpus_allowed_list:\t2-3\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t1\n";
        fs::write(task.join("status"), status)?;
        fs::write(dir.path().join("proc/41/status"), status)?;
        let root = Root::at(dir.path());
        let all = threads(&root).unwrap_or_default();
        let want = Thread {
            pid: 40,
            parent: 2,
            tid: 41,
            start_ticks: 12,
            name: "irq/9 (x)".to_owned(),
            kernel: true,
            fixed: true,
            policy: Policy::Fifo(50),
            nice: -5,
            last_cpu: 3,
            allowed: Ok([2, 3].into_iter().collect()),
            switches: Ok(Switches { voluntary: 7, involuntary: 1 }),
        };
        assert_eq!(all.as_slice(), std::slice::from_ref(&want));
        assert_eq!(thread(&root, 41), Ok(want));
        assert!(matches!(thread(&root, 42), Err(Missing::NotApplicable(_))));
        Ok(())
    }

    #[test]
    fn this_machine_has_threads() {
        let all = threads(&Root::real()).unwrap_or_default();
        assert!(all.iter().any(|t| t.pid == std::process::id()));
        let this = tailbound_sys::sched::gettid().cast_unsigned();
        assert!(thread(&Root::real(), this).is_ok_and(|t| t.tid == this && !t.kernel));
    }
}
