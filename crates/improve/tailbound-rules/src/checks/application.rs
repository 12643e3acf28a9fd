// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program that is to be in time, and the rights of whoever starts it.
//!
//! Source: sched(7), mlock(2), getrlimit(2), proc(5),
//! Documentation/trace/rv/monitor_rtapp.rst.

use tailbound_host::{Capabilities, Capability};

use super::{PLAIN, few};
use crate::check::{Check, Group};
use crate::machine::Machine;
use crate::need::Need;
use crate::outcome::{CheckOutcome, Level, Look};

/// A program that computes for so long without a sleep is a mistake; a shorter limit hits others.
const RTTIME_FEW_US: u64 = 500_000;

const CHECK: Check = Check { group: Group::Application, needs: &[Need::Target], ..PLAIN };

pub(super) static CHECKS: &[Check] = &[
    Check {
        id: "app.policy",
        why: "the latency of an ordinary thread is not bounded",
        now: "tailbound tune set THREAD --policy fifo:80",
        for_good: "CPUSchedulingPolicy=fifo in the unit",
        undo: "tailbound tune undo",
        source: "sched(7)",
        look: policy,
        ..CHECK
    },
    Check {
        id: "app.mlock",
        why: "a page fault in the loop costs a microsecond to milliseconds",
        for_good: "mlockall(MCL_CURRENT|MCL_FUTURE) in the program, LimitMEMLOCK=infinity in its unit",
        source: "mlock(2)",
        look: mlock,
        ..CHECK
    },
    Check {
        id: "app.limits",
        why: "without these limits a program may not be real-time, or is killed for it",
        now: "prlimit --rtprio=99 --memlock=unlimited --rttime=unlimited --pid PID",
        for_good: "LimitRTPRIO= and LimitMEMLOCK= in the unit",
        source: "getrlimit(2)",
        look: limits,
        ..CHECK
    },
    Check {
        id: "app.user-limits",
        why: "an ordinary user needs RLIMIT_RTPRIO and RLIMIT_MEMLOCK, or rtkit, to start real-time programs",
        for_good: "@realtime - rtprio 95 and @realtime - memlock unlimited in /etc/security/limits.d",
        source: "limits.conf(5)",
        needs: &[],
        look: user_limits,
        ..CHECK
    },
    Check {
        id: "app.sleep-method",
        why: "relative sleeps drift, and timerfd is served by a thread of priority 1 on PREEMPT_RT",
        for_good: "clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME)",
        source: "monitor_rtapp.rst",
        look: |_| Ok(CheckOutcome::unknown("only a trace of its system calls tells")),
        ..CHECK
    },
    Check {
        id: "app.non-pi-lock",
        why: "a lock without priority inheritance makes a thread wait for everything in between: 33 ms were measured against 3.3",
        for_good: "PTHREAD_PRIO_INHERIT",
        source: "pthread_mutexattr_setprotocol(3)",
        look: |_| Ok(CheckOutcome::unknown("only a trace of its system calls tells")),
        ..CHECK
    },
    Check {
        id: "app.timerslack",
        why: "50 us are added to every sleep of an ordinary thread",
        now: "echo 1 > /proc/PID/timerslack_ns",
        for_good: "TimerSlackNSec=1 in the unit",
        undo: "echo 50000 > /proc/PID/timerslack_ns",
        source: "proc_pid_timerslack_ns(5)",
        look: slack,
        ..CHECK
    },
    Check {
        id: "app.cpu-placement",
        why: "a thread that changes CPUs fills its caches anew each time",
        now: "tailbound tune move THREAD --cpus LIST",
        for_good: "CPUAffinity= in the unit",
        undo: "tailbound tune undo",
        source: "sched_setaffinity(2)",
        look: placement,
        ..CHECK
    },
];

fn policy(m: &Machine) -> Look {
    let threads = m.target()?;
    let realtime: Vec<String> = threads
        .iter()
        .filter(|t| t.policy.is_realtime())
        .map(|t| format!("{} {}", t.name, t.policy))
        .collect();
    Ok(if realtime.is_empty() {
        CheckOutcome::bad(format!("none of its {} threads is a real-time one", threads.len()))
    } else {
        CheckOutcome::ok(few(&realtime, 4))
    })
}

fn status(m: &Machine, name: &str) -> Result<u64, CheckOutcome> {
    let pid = m.wanted.pid.unwrap_or(0);
    let text = m.text(&format!("/proc/{pid}/status"))?;
    text.lines()
        .find_map(|l| l.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
        .ok_or_else(|| CheckOutcome::unknown(format!("its status has no {name}")))
}

fn mlock(m: &Machine) -> Look {
    let (locked, resident) = (status(m, "VmLck:")?, status(m, "VmRSS:")?);
    let found = format!("{locked} kB locked, {resident} kB resident");
    Ok(CheckOutcome::ok_if(
        locked >= resident,
        if locked == 0 { Level::Bad } else { Level::Warn },
        found,
    ))
}

fn limits(m: &Machine) -> Look {
    let pid = m.wanted.pid.unwrap_or(0);
    let text = m.text(&format!("/proc/{pid}/limits"))?;
    let soft = |name: &str| {
        let value = text.lines().find_map(|l| l.strip_prefix(name)?.split_whitespace().next());
        value.ok_or_else(|| CheckOutcome::unknown(format!("its limits have no `{name}`")))
    };
    let rtprio = soft("Max realtime priority")?;
    let memlock = soft("Max locked memory")?;
    let rttime = soft("Max realtime timeout")?;
    let found = format!("rtprio {rtprio}, memlock {memlock}, rttime {rttime}");
    // Root in a container has the user number and not the rights.
    let capabilities = Capabilities::of(&m.root, m.process())?;
    let priority = rtprio != "0" || capabilities.has(Capability::SysNice);
    let locked = memlock == "unlimited" || capabilities.has(Capability::IpcLock);
    let lacks: Vec<&str> = [(priority, "CAP_SYS_NICE"), (locked, "CAP_IPC_LOCK")]
        .into_iter()
        .filter_map(|(there, name)| (!there).then_some(name))
        .collect();
    if !lacks.is_empty() {
        return Ok(CheckOutcome::warn(format!("{found}, without {}", lacks.join(" and "))));
    }
    Ok(CheckOutcome::ok_if(rttime == "unlimited", Level::Warn, found))
}

fn user_limits(m: &Machine) -> Look {
    let rtprio = m.word("limits.rtprio")?;
    let memlock = m.word("limits.memlock_bytes")?;
    let capabilities = m.word("limits.capabilities").unwrap_or_default();
    let found = format!("rtprio {rtprio}, memlock {memlock}");
    if let Ok(us) = m.word("limits.rttime_us")
        && us.parse::<u64>().is_ok_and(|us| us < RTTIME_FEW_US)
    {
        return Ok(CheckOutcome::warn(format!(
            "{found}, rttime {us} us: the kernel ends a real-time thread that computes so long without a sleep"
        )));
    }
    if capabilities.contains("sys_nice") || capabilities.contains("SYS_NICE") {
        return Ok(CheckOutcome::ok(format!(
            "{found}, and the right to do without (CAP_SYS_NICE)"
        )));
    }
    let rtkit = !m.running(&["rtkit-daemon"])?.is_empty();
    Ok(match (rtprio.as_str(), rtkit) {
        ("0", true) => {
            CheckOutcome::warn(format!("{found}; rtkit gives priorities, with a limit of time"))
        }
        ("0", false) => CheckOutcome::bad(format!("{found}, and no rtkit")),
        _ => CheckOutcome::ok(found),
    })
}

fn slack(m: &Machine) -> Look {
    if m.target()?.iter().all(|t| t.policy.is_realtime()) {
        return Ok(CheckOutcome::not_applicable("real-time threads have none"));
    }
    let ns = m.number(&format!("/proc/{}/timerslack_ns", m.wanted.pid.unwrap_or(0)))?;
    Ok(CheckOutcome::ok_if(ns <= 1000, Level::Warn, format!("{ns} ns")))
}

fn placement(m: &Machine) -> Look {
    let mut free = Vec::new();
    for thread in m.target()?.iter().filter(|t| t.policy.is_realtime()) {
        if thread.allowed.as_ref().is_ok_and(|a| a.len() > 1) {
            free.push(format!("{} ({})", thread.name, thread.tid));
        }
    }
    Ok(if free.is_empty() {
        CheckOutcome::ok("its real-time threads have one CPU each")
    } else {
        CheckOutcome::warn(format!("free to change CPUs: {}", few(&free, 3)))
    })
}
