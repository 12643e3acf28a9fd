// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the program costs until it measures: system calls and page faults until its first sleep, memory at the end of its warm-up.
//!
//! Strace stops the program at its first `clock_nanosleep`, and then the kernel is asked. What is held against
//! `budgets.json` is counted, and does not depend on what else the machine does; of several rounds the median. cyclictest is tried
//! in the same rounds, where it is installed: how many times as much Tailbound takes is told, as is the time from exec to the first
//! sleep. What other threads call when the one that sleeps waits for them no more is not counted. The time
//! is this minute's, and of a busy machine: a tenth of it says nothing, and fails nothing.
//! Units: KiB; µs of strace's clock.
//! Source: strace(1), "inject"; proc_pid_status(5); proc_pid_stat(5), field 10.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use crate::exec;

/// So many times each program is tried.
const ROUNDS: usize = 5;
/// The longest until a program sleeps.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(10);
/// What another process holds the machine with is none of the program's cost.
const LOCK_FOLDER: &str = "TAILBOUND_LOCK_FOLDER";
/// Long enough for the inventory on a machine that does much else.
const OURS: &str =
    "measure cyclic --interval 1ms --warm-up 3s --duration 1s --cpus 0 --quiet --out -";
const THEIRS: &str = "-q -m -t1 -a0 -i1000 -D9 -h 1000";
const WARM_UP_OVER: &str = "\"event\":\"warm-up-over\"";
/// Pieces in which the program is copied. What was written at once is in memory in pieces of up to 2 MiB, and is counted as such.
const PIECE_BYTES: usize = 65_536;

/// What one program costs until it measures.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BeginCost {
    system_calls: u64,
    page_faults: u64,
    resident_kib: u64,
}

impl BeginCost {
    /// What is more than a tenth above `budget`, one sentence each.
    pub(super) fn beyond(&self, budget: &Self) -> Vec<String> {
        let figures = [
            ("system calls", self.system_calls, budget.system_calls),
            ("page faults", self.page_faults, budget.page_faults),
            ("KiB resident", self.resident_kib, budget.resident_kib),
        ];
        let beyond = figures.into_iter().filter(|(_, now, budget)| *now > budget + budget / 10);
        beyond
            .map(|(what, now, budget)| format!("{now} {what}: {budget} and a tenth at most"))
            .collect()
    }
}

/// One round, and the time from exec to the first sleep.
#[derive(Debug, Clone, Copy)]
struct Round {
    cost: BeginCost,
    took_us: u64,
}

/// Why it cannot be counted here.
pub(super) fn missing() -> Option<&'static str> {
    if !exec::exists("strace") {
        return Some("there is no strace (Debian package strace)");
    }
    // Source: include/linux/proc_ns.h, PROC_PID_INIT_INO.
    let own = fs::read_link("/proc/self/ns/pid");
    let is_first = own.is_ok_and(|own| own.as_os_str() == "pid:[4026531836]");
    (!is_first).then_some(
        "this is a PID namespace, as in a container, where the look for the machine's lock goes over all ancestors",
    )
}

/// Counts for `program`, in `folder`, and tells people beside cyclictest.
pub(super) fn measured(program: &Path, folder: &Path) -> anyhow::Result<BeginCost> {
    let copy = copied(program, folder)?;
    let mut ours = vec![copy.to_str().context("a path that is no text")?];
    ours.extend(OURS.split(' '));
    let mut theirs = vec!["cyclictest"];
    theirs.extend(THEIRS.split(' '));
    let beside = exec::exists("cyclictest");
    let (mut own, mut its) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let mut round = stopped(&ours, folder)?;
        round.cost.resident_kib = at_work(&ours, folder)?;
        own.push(round);
        if beside {
            // Its memory is that of its first sleep to the end.
            its.push(stopped(&theirs, folder)?);
        }
    }
    let own = told("tailbound", &own);
    if beside {
        let its = told("cyclictest", &its);
        let times = |own: u64, its: u64| {
            let tenths = own * 10 / its.max(1);
            format!("{}.{}", tenths / 10, tenths % 10)
        };
        println!(
            "    {} times the system calls, {} times the page faults, {} times the memory",
            times(own.system_calls, its.system_calls),
            times(own.page_faults, its.page_faults),
            times(own.resident_kib, its.resident_kib)
        );
    }
    Ok(own)
}

/// Says what came of the rounds; gives their medians.
fn told(name: &str, rounds: &[Round]) -> BeginCost {
    let median = |of: fn(&Round) -> u64| {
        let mut all: Vec<u64> = rounds.iter().map(of).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied().unwrap_or(0)
    };
    let cost = BeginCost {
        system_calls: median(|r| r.cost.system_calls),
        page_faults: median(|r| r.cost.page_faults),
        resident_kib: median(|r| r.cost.resident_kib),
    };
    let BeginCost { system_calls, page_faults, resident_kib } = cost;
    let took_us = median(|r| r.took_us);
    println!(
        "    {name} until its first sleep: {system_calls} system calls, {page_faults} page faults, {took_us} µs under strace; {resident_kib} KiB resident"
    );
    cost
}

/// A copy that is in memory as one that came over a network.
fn copied(program: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    let copy = folder.join("program");
    let mut from = File::open(program).with_context(|| program.display().to_string())?;
    let mut to = File::create(&copy).with_context(|| copy.display().to_string())?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let bytes = from.read(&mut piece)?;
        if bytes == 0 {
            break;
        }
        to.write_all(&piece[..bytes])?;
    }
    to.set_permissions(fs::Permissions::from_mode(0o755))?;
    Ok(copy)
}

/// Memory of one that has come to the end of its warm-up.
fn at_work(words: &[&str], folder: &Path) -> anyhow::Result<u64> {
    let mut program = exec::command(words[0]);
    program.args(&words[1..]).env(LOCK_FOLDER, folder).current_dir(folder);
    program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = program.spawn().with_context(|| words.join(" "))?;
    let lines = child.stdout.take().map(BufReader::new).context("its output is no pipe")?.lines();
    let over = lines.map_while(Result::ok).any(|line| line.contains(WARM_UP_OVER));
    let status = fs::read_to_string(format!("/proc/{}/status", child.id()));
    child.kill()?;
    child.wait()?;
    if !over {
        bail!("it did not come to the end of its warm-up: {}", words.join(" "));
    }
    resident_kib(&status?).context("no VmRSS")
}

/// Starts it, and looks when it sleeps for the first time.
fn stopped(words: &[&str], folder: &Path) -> anyhow::Result<Round> {
    let trace = folder.join("first-sleep.txt");
    let mut strace = exec::command("strace");
    strace.args(["-f", "-ttt", "-e", "inject=clock_nanosleep:signal=SIGSTOP:when=1", "-o"]);
    strace.arg(&trace).args(words).env(LOCK_FOLDER, folder).current_dir(folder);
    strace.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // That of the round before.
    File::create(&trace).with_context(|| trace.display().to_string())?;
    let mut child = strace.spawn().context("cannot start `strace`")?;
    let seen = looked_at(&mut child, &trace);
    if let Ok((pid, _)) = &seen {
        // Its tracer ends with it.
        exec::succeed(exec::command("kill").args(["-KILL", pid]))?;
    } else {
        child.kill()?;
    }
    child.wait()?;
    let (_, round) = seen.with_context(|| words.join(" "))?;
    Ok(round)
}

/// Which process it is, and what it is like where it stands.
fn looked_at(strace: &mut Child, trace: &Path) -> anyhow::Result<(String, Round)> {
    let end = Instant::now() + PATIENCE;
    loop {
        let text = fs::read_to_string(trace).unwrap_or_default();
        if let Some(Traced { pid, system_calls, took_us }) = Traced::of(&text) {
            let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
            let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
            let resident_kib = resident_kib(&status).context("no VmRSS")?;
            let page_faults = minor_faults(&stat).context("no page faults")?;
            let cost = BeginCost { system_calls, page_faults, resident_kib };
            return Ok((pid, Round { cost, took_us }));
        }
        if let Some(status) = strace.try_wait()? {
            let last = text.lines().last().unwrap_or_default();
            bail!("it ended before it slept ({status}): {last}");
        }
        if Instant::now() >= end {
            bail!("it did not sleep for {} s", PATIENCE.as_secs());
        }
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "waits for a program under strace; Ctrl-C ends both")]
fn pause() {
    thread::sleep(LOOK);
}

/// What strace wrote until the first sleep.
#[derive(Debug, PartialEq, Eq)]
struct Traced {
    pid: String,
    system_calls: u64,
    took_us: u64,
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
        // The end of a call that another thread interrupted, a signal and an exit are no calls.
        let is_call = |what: &str| what.starts_with(|c: char| c.is_ascii_lowercase());
        let mut until_slept = vec![(pid, "execve(")];
        let slept = lines.by_ref().find(|(of, _, what)| {
            until_slept.push((of, what));
            what.starts_with("clock_nanosleep(")
        })?;
        // From there on nobody else is waited for.
        let of_sleeper = |line: &(&str, &str)| line.0 == slept.0;
        let alone = until_slept
            .iter()
            .rposition(|line| of_sleeper(line) && line.1.contains("futex"))
            .unwrap_or(until_slept.len());
        let counted = until_slept.iter().enumerate();
        let counted = counted.filter(|(at, line)| *at <= alone || of_sleeper(line));
        let system_calls = counted.filter(|(_, (_, what))| is_call(what)).count() as u64;
        // The process that was started stands, with all its threads.
        lines.find(|(of, _, what)| *of == pid && what.starts_with("--- stopped by SIGSTOP"))?;
        let took_us = microseconds(slept.1)?.saturating_sub(microseconds(began)?);
        Some(Self { pid: pid.to_owned(), system_calls, took_us })
    }
}

/// `1700000000.123456`, without a float.
fn microseconds(at: &str) -> Option<u64> {
    let (s, us) = at.split_once('.')?;
    Some(s.parse::<u64>().ok()? * 1_000_000 + us.parse::<u64>().ok()?)
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
8 1700000000.000450 futex(0x1, FUTEX_WAKE, 1) = 1
7 1700000000.000500 <... futex resumed>)    = 0
7 1700000000.000600 getpid()                = 7
8 1700000000.001100 clock_nanosleep(CLOCK_MONOTONIC, 0, {tv_sec=1, tv_nsec=0}, NULL) = ? ERESTART
8 1700000000.001200 --- SIGSTOP {si_signo=SIGSTOP, si_code=SI_KERNEL} ---
8 1700000000.001300 --- stopped by SIGSTOP ---
";

    #[test]
    fn calls_are_counted_until_the_first_sleep_and_the_process_must_stand() {
        assert_eq!(Traced::of(TRACE), None);
        let stands = format!("{TRACE}7 1700000000.001400 --- stopped by SIGSTOP ---\n");
        let is = Traced { pid: "7".to_owned(), system_calls: 5, took_us: 1000 };
        assert_eq!(Traced::of(&stands), Some(is));
    }

    #[test]
    fn the_kernels_figures_are_read() {
        assert_eq!(resident_kib("VmPeak:\t 1 kB\nVmRSS:\t    8088 kB\n"), Some(8088));
        assert_eq!(minor_faults("7 (a) b) t 1 2 3 4 5 6 658 0 9"), Some(658));
    }

    #[test]
    fn a_tenth_more_is_too_much_and_what_it_is_is_named() {
        let budget = BeginCost { system_calls: 400, page_faults: 500, resident_kib: 4000 };
        let now = BeginCost { system_calls: 440, page_faults: 551, resident_kib: 3000 };
        assert_eq!(now.beyond(&budget), ["551 page faults: 500 and a tenth at most"]);
    }
}
