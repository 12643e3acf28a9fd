// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the program costs until it measures: system calls, page faults and memory at its first sleep, held against `budgets.json`.
//!
//! Context: COLD. strace stops the program at its first `clock_nanosleep`, and then the kernel is asked. What fails is counted, and does not
//! depend on what else the machine does; a tenth above the budget is too much. Of several rounds the median. cyclictest is stopped in the
//! same rounds, where it is installed: how many times as much Tailbound takes is told, as is the time, which is this minute's and never fails.
//! Units: KiB; ns of strace's clock.
//! Source: strace(1), "inject"; proc_pid_status(5); proc_pid_stat(5), field 10.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use crate::exec;

/// So many times each program is stopped.
const ROUNDS: usize = 5;
/// The longest until a program sleeps.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(10);
/// What another process holds the machine with is none of the program's cost.
const LOCK_FOLDER: &str = "TAILBOUND_LOCK_FOLDER";

/// One program at its first sleep.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FirstSleep {
    pub(super) system_calls: u64,
    pub(super) page_faults: u64,
    pub(super) resident_kib: u64,
}

impl FirstSleep {
    /// What is more than a tenth above `budget`, one line each.
    pub(super) fn beyond(&self, budget: &Self) -> Vec<String> {
        let figures = [
            ("system calls", self.system_calls, budget.system_calls),
            ("page faults", self.page_faults, budget.page_faults),
            ("KiB resident", self.resident_kib, budget.resident_kib),
        ];
        let beyond = figures.into_iter().filter(|(_, now, budget)| *now > budget + budget / 10);
        beyond
            .map(|(what, now, budget)| format!("{now} {what}, {budget} and a tenth at most"))
            .collect()
    }
}

/// Figures of all rounds, and the time from exec to the first sleep.
#[derive(Debug, Default, Clone)]
struct Rounds(Vec<(FirstSleep, u64)>);

impl Rounds {
    fn median(&self, of: impl Fn(&(FirstSleep, u64)) -> u64) -> u64 {
        let mut all: Vec<u64> = self.0.iter().map(of).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied().unwrap_or(0)
    }

    fn figures(&self) -> FirstSleep {
        FirstSleep {
            system_calls: self.median(|r| r.0.system_calls),
            page_faults: self.median(|r| r.0.page_faults),
            resident_kib: self.median(|r| r.0.resident_kib),
        }
    }
}

/// Why it cannot be counted here.
pub(super) fn missing() -> Option<&'static str> {
    (!exec::exists("strace")).then_some("there is no strace (Debian package strace)")
}

/// Counts for `program`, in `folder`, and tells people beside cyclictest.
pub(super) fn measured(program: &Path, folder: &Path) -> anyhow::Result<FirstSleep> {
    let name = program.to_str().context("a path that is no text")?;
    let ours = [
        name,
        "measure",
        "cyclic",
        "--interval",
        "1ms",
        "--duration",
        "2s",
        "--cpus",
        "0",
        "--policy",
        "other",
        "--quiet",
        "--force",
        "--out",
        "/dev/null",
    ];
    let theirs = ["cyclictest", "-q", "-m", "-t1", "-a0", "-i1000", "-D2", "-h", "1000"];
    let beside = exec::exists("cyclictest");
    let (mut own, mut its) = (Rounds::default(), Rounds::default());
    for _ in 0..ROUNDS {
        own.0.push(stopped(&ours, folder)?);
        if beside {
            its.0.push(stopped(&theirs, folder)?);
        }
    }
    told("tailbound", &own);
    if beside {
        told("cyclictest", &its);
        let (own, its) = (own.figures(), its.figures());
        let times =
            |own: u64, its: u64| format!("{}.{}", own / its.max(1), own * 10 / its.max(1) % 10);
        println!(
            "    that is {} times the system calls, {} times the page faults, {} times the memory",
            times(own.system_calls, its.system_calls),
            times(own.page_faults, its.page_faults),
            times(own.resident_kib, its.resident_kib)
        );
    }
    Ok(own.figures())
}

fn told(name: &str, rounds: &Rounds) {
    let FirstSleep { system_calls, page_faults, resident_kib } = rounds.figures();
    let us = rounds.median(|r| r.1) / 1000;
    println!(
        "    {name} until its first sleep: {system_calls} system calls, {page_faults} page faults, {resident_kib} KiB; under strace {us} µs"
    );
}

/// Starts it, and looks when it sleeps for the first time.
fn stopped(words: &[&str], folder: &Path) -> anyhow::Result<(FirstSleep, u64)> {
    let trace = folder.join("first-sleep.txt");
    let mut strace = exec::command("strace");
    strace
        .args(["-f", "-ttt", "-e", "inject=clock_nanosleep:signal=SIGSTOP:when=1", "-o"])
        .arg(&trace);
    strace.args(words).env(LOCK_FOLDER, folder).current_dir(folder);
    strace.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = strace.spawn().context("cannot start `strace`")?;
    let seen = looked_at(&mut child, &trace);
    if let Ok((pid, _)) = &seen {
        // Its tracer ends with it.
        exec::succeed(exec::command("kill").args(["-KILL", pid]))?;
    } else {
        child.kill()?;
    }
    child.wait()?;
    let (_, seen) = seen.with_context(|| words.join(" "))?;
    Ok(seen)
}

/// Which process it is, and what it is like where it stands.
fn looked_at(strace: &mut Child, trace: &Path) -> anyhow::Result<(String, (FirstSleep, u64))> {
    let end = Instant::now() + PATIENCE;
    loop {
        let text = fs::read_to_string(trace).unwrap_or_default();
        if let Some(traced) = Traced::of(&text) {
            let status = fs::read_to_string(format!("/proc/{}/status", traced.pid))?;
            let stat = fs::read_to_string(format!("/proc/{}/stat", traced.pid))?;
            let resident_kib = resident_kib(&status).context("no VmRSS")?;
            let page_faults = minor_faults(&stat).context("no page faults")?;
            let seen = FirstSleep { system_calls: traced.calls, page_faults, resident_kib };
            return Ok((traced.pid, (seen, traced.took_ns)));
        }
        if let Some(status) = strace.try_wait()? {
            bail!(
                "it ended before it slept ({status}): {}",
                text.lines().last().unwrap_or_default()
            );
        }
        if Instant::now() >= end {
            bail!("it did not sleep for {} s", PATIENCE.as_secs());
        }
        pause();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "waits for a program that strace stops; Ctrl-C ends both"
)]
fn pause() {
    thread::sleep(LOOK);
}

/// What strace wrote until the first sleep.
#[derive(Debug, PartialEq, Eq)]
struct Traced {
    pid: String,
    calls: u64,
    took_ns: u64,
}

impl Traced {
    /// None: it does not stand yet.
    fn of(text: &str) -> Option<Self> {
        let mut lines = text.lines().map(|line| {
            let (pid, rest) = line.split_once(' ').unwrap_or_default();
            let (at, what) = rest.trim_start().split_once(' ').unwrap_or_default();
            (pid, at, what)
        });
        let (pid, began, _) = lines.next()?;
        let mut calls = 1;
        let slept = lines.by_ref().find(|(_, _, what)| {
            // The end of a call that another thread interrupted, a signal and an end are no calls.
            calls += u64::from(what.starts_with(|c: char| c.is_ascii_lowercase()));
            what.starts_with("clock_nanosleep(")
        })?;
        // The process that was started stands, with all its threads.
        lines.find(|(of, _, what)| *of == pid && what.starts_with("--- stopped by SIGSTOP"))?;
        let took_ns = nanoseconds(slept.1)?.saturating_sub(nanoseconds(began)?);
        Some(Self { pid: pid.to_owned(), calls, took_ns })
    }
}

/// `1700000000.123456`, without a float.
fn nanoseconds(at: &str) -> Option<u64> {
    let (s, us) = at.split_once('.')?;
    let us: u64 = us.parse().ok()?;
    Some((s.parse::<u64>().ok()? * 1_000_000 + us) * 1000)
}

fn resident_kib(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn minor_faults(stat: &str) -> Option<u64> {
    // A program's name may have spaces and brackets in it: the fields begin behind the last.
    stat.rsplit_once(") ")?.1.split(' ').nth(7)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "\
7 1700000000.000100 execve(\"tailbound\", [\"tailbound\"], 0x7f /* 9 vars */) = 0
7 1700000000.000300 futex(0x1, FUTEX_WAIT, 0, NULL <unfinished ...>
8 1700000000.000400 gettid()                = 8
7 1700000000.000500 <... futex resumed>)    = 0
8 1700000000.001100 clock_nanosleep(CLOCK_MONOTONIC, 0, {tv_sec=1, tv_nsec=0}, NULL) = ? ERESTART
8 1700000000.001200 --- SIGSTOP {si_signo=SIGSTOP, si_code=SI_KERNEL} ---
8 1700000000.001300 --- stopped by SIGSTOP ---
";

    #[test]
    fn calls_are_counted_until_the_first_sleep_and_the_process_must_stand() {
        assert_eq!(Traced::of(TRACE), None);
        let stands = format!("{TRACE}7 1700000000.001400 --- stopped by SIGSTOP ---\n");
        let is = Traced { pid: "7".to_owned(), calls: 4, took_ns: 1_000_000 };
        assert_eq!(Traced::of(&stands), Some(is));
    }

    #[test]
    fn the_kernels_figures_are_read() {
        assert_eq!(resident_kib("VmPeak:\t 1 kB\nVmRSS:\t    8088 kB\n"), Some(8088));
        assert_eq!(minor_faults("7 (a) b) t 1 2 3 4 5 6 658 0 9"), Some(658));
    }

    #[test]
    fn a_tenth_more_is_too_much_and_what_it_is_is_named() {
        let budget = FirstSleep { system_calls: 400, page_faults: 500, resident_kib: 4000 };
        let now = FirstSleep { system_calls: 440, page_faults: 551, resident_kib: 3000 };
        assert_eq!(now.beyond(&budget), ["551 page faults, 500 and a tenth at most"]);
    }
}
