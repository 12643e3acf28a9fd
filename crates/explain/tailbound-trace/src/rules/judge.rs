// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clauses of the kernel's monitor `sleep` as functions of a sleep and its system call.
//!
//! Names as in the specification, so that both can be laid side by side.
//! Source: tools/verification/models/rtapp/sleep.ltl, handle_sys_enter in
//! kernel/trace/rv/monitors/sleep/sleep.c (Linux 6.17 to 7.2).

use tailbound_core::rules::Rule;

use super::Violation;
use super::call::{Call, InCall};
use super::calls::CallTable;
use super::task::{INTERRUPTIBLE, Sleep};

/// Source: include/uapi/linux/{time,futex}.h.
const CLOCK_REALTIME: u64 = 0;
const CLOCK_MONOTONIC: u64 = 1;
const CLOCK_TAI: u64 = 11;
const TIMER_ABSTIME: u64 = 1;
const FUTEX_CMD_MASK: u64 = !(128 | 256);
const FUTEX_WAIT: u64 = 0;
const FUTEX_WAKE: u64 = 1;
const FUTEX_LOCK_PI: u64 = 6;
const FUTEX_WAIT_BITSET: u64 = 9;
const FUTEX_WAKE_BITSET: u64 = 10;
const FUTEX_WAIT_REQUEUE_PI: u64 = 11;
const FUTEX_LOCK_PI2: u64 = 13;

/// What a call of futex(2) is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Futex {
    /// It waits at an address until it no longer has this value.
    Wait {
        address: u64,
        value: u32,
    },
    /// It waits, and will have a lock with priority inheritance then.
    WaitRequeuePi {
        address: u64,
    },
    LockPi {
        address: u64,
    },
    Wake {
        address: u64,
    },
    Other,
}

/// What a call does to futexes; `None` for other calls.
pub(super) fn futex(call: &Call) -> Option<Futex> {
    let [address, op, value, _] = call.args;
    if call.name != "futex" {
        return None;
    }
    // The low half is the value; the rest of the register is whatever was there.
    let value = u32::try_from(value & 0xffff_ffff).unwrap_or(0);
    Some(match op & 0xffff_ffff & FUTEX_CMD_MASK {
        FUTEX_WAIT | FUTEX_WAIT_BITSET => Futex::Wait { address, value },
        FUTEX_WAIT_REQUEUE_PI => Futex::WaitRequeuePi { address },
        FUTEX_LOCK_PI | FUTEX_LOCK_PI2 => Futex::LockPi { address },
        FUTEX_WAKE | FUTEX_WAKE_BITSET => Futex::Wake { address },
        _ => Futex::Other,
    })
}

/// Has the machine this system call?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EpollWait {
    Present,
    /// epoll_pwait takes its place.
    Absent,
}

impl EpollWait {
    /// By the machine's system calls.
    pub(super) fn of(calls: &CallTable) -> Self {
        match calls.numbers("epoll_wait").is_empty() {
            true => Self::Absent,
            false => Self::Present,
        }
    }
}

/// The monitor `sleep`: RULE = always ((RT and SLEEP) imply (RT_FRIENDLY_SLEEP or ALLOWLIST)).
pub(super) fn monitored(sleep: &Sleep, epoll_wait: EpollWait) -> Option<Rule> {
    if sleep.state & INTERRUPTIBLE == 0 || sleep.rt_mutex || allowed(&sleep.call) {
        return None;
    }
    let valid = match sleep.call {
        InCall::Unknown => return None,
        InCall::No => false,
        InCall::Yes(call) => valid_reason(&call, epoll_wait),
    };
    if !valid {
        return Some(Rule::SleepMethod);
    }
    match sleep.waker {
        Some(_) if !sleep.friendly && !sleep.unjudged => Some(Rule::LowPriorityWaker),
        _ => None,
    }
}

/// RT_VALID_SLEEP_REASON.
fn valid_reason(call: &Call, epoll_wait: EpollWait) -> bool {
    match call.name {
        "futex" => {
            matches!(futex(call), Some(Futex::Wait { .. } | Futex::WaitRequeuePi { .. }))
        }
        "clock_nanosleep" => friendly_nanosleep(call),
        "epoll_wait" => true,
        "epoll_pwait" => epoll_wait == EpollWait::Absent,
        _ => false,
    }
}

/// RT_FRIENDLY_NANOSLEEP.
fn friendly_nanosleep(call: &Call) -> bool {
    let [clock, flags, ..] = call.args;
    flags & 0xffff_ffff == TIMER_ABSTIME
        && matches!(clock & 0xffff_ffff, CLOCK_MONOTONIC | CLOCK_TAI)
}

/// ALLOWLIST, as far as it concerns system calls.
pub(super) fn allowed(call: &InCall) -> bool {
    matches!(call, InCall::Yes(call) if matches!(futex(call), Some(Futex::LockPi { .. })))
}

/// What a thread slept in, and what is wrong with it.
pub(super) fn describe(call: &InCall) -> (String, String) {
    let InCall::Yes(call) = call else {
        return (
            "in no system call".to_owned(),
            "in no system call of its own: a signal's stop, a tracer or the freezer of its control group".to_owned(),
        );
    };
    let [first, flags, ..] = call.args;
    let site = name(call);
    let text = match call.name {
        "nanosleep" => "in nanosleep, which is relative: its schedule drifts".to_owned(),
        "clock_nanosleep" if flags & 0xffff_ffff != TIMER_ABSTIME => {
            return (
                "clock_nanosleep, relative".to_owned(),
                "in clock_nanosleep without TIMER_ABSTIME: its schedule drifts".to_owned(),
            );
        }
        "clock_nanosleep" => {
            let (short, clock) = match first & 0xffff_ffff {
                CLOCK_REALTIME => ("REALTIME", "CLOCK_REALTIME, which can be set".to_owned()),
                CLOCK_MONOTONIC => ("MONOTONIC", "CLOCK_MONOTONIC".to_owned()),
                CLOCK_TAI => ("TAI", "CLOCK_TAI".to_owned()),
                n => (
                    "other clock",
                    format!("clock {n}, which is neither CLOCK_MONOTONIC nor CLOCK_TAI"),
                ),
            };
            return (
                format!("clock_nanosleep, {short}"),
                format!("in clock_nanosleep until a time of {clock}"),
            );
        }
        "read" | "readv" | "write" | "writev" | "pread64" | "pwrite64" | "ioctl" | "recvfrom"
        | "recvmsg" | "sendto" | "sendmsg" | "accept" | "accept4" | "connect" => {
            let n = first & 0xffff_ffff;
            return (format!("{site}, descriptor {n}"), format!("in {site} of descriptor {n}"));
        }
        _ => format!("in {site}"),
    };
    (site, text)
}

/// A sleep between the entry of `call` and its begin: seccomp's notifier and tracers hold a thread there.
pub(super) fn at_entry(held: Violation, call: &Call) -> Violation {
    let name = name(call);
    let (before, _) = held.text.split_once(" in no system call").unwrap_or((&held.text, ""));
    let text =
        format!("{before} at the entry of {name}: a seccomp notifier or a tracer (ptrace) held it");
    Violation { site: format!("at the entry of {name}"), text, ..held }
}

/// The call's name, or its number.
pub(super) fn name(call: &Call) -> String {
    if call.name.is_empty() { format!("system call {}", call.id) } else { call.name.to_owned() }
}

/// Calls that take memory from the kernel, give it back or change how it is mapped.
pub(super) fn allocates(name: &str) -> bool {
    matches!(name, "brk" | "mmap" | "munmap" | "mremap" | "madvise" | "mprotect")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &'static str, args: [u64; 4]) -> Call {
        Call { id: 0, name, args, t_ns: 0 }
    }

    /// Each clause of the specification, once true and once not.
    #[test]
    fn reasons_are_those_of_the_specification() {
        let private = 128;
        let table = [
            ("futex", [1, private, 0, 0], true),
            ("futex", [1, FUTEX_WAIT_BITSET | private | 256, 0, 0], true),
            ("futex", [1, FUTEX_WAIT_REQUEUE_PI, 0, 0], true),
            ("futex", [1, FUTEX_WAKE, 0, 0], false),
            ("futex", [1, FUTEX_LOCK_PI, 0, 0], false),
            ("clock_nanosleep", [CLOCK_MONOTONIC, TIMER_ABSTIME, 0, 0], true),
            ("clock_nanosleep", [CLOCK_TAI, TIMER_ABSTIME, 0, 0], true),
            ("clock_nanosleep", [CLOCK_REALTIME, TIMER_ABSTIME, 0, 0], false),
            ("clock_nanosleep", [7, TIMER_ABSTIME, 0, 0], false),
            ("clock_nanosleep", [CLOCK_MONOTONIC, 0, 0, 0], false),
            ("nanosleep", [0, 0, 0, 0], false),
            ("epoll_wait", [0, 0, 0, 0], true),
            ("epoll_pwait", [0, 0, 0, 0], false),
            ("read", [0, 0, 0, 0], false),
            ("poll", [0, 0, 0, 0], false),
            ("futex_waitv", [0, 0, 0, 0], false),
            ("restart_syscall", [0, 0, 0, 0], false),
            ("", [0, 0, 0, 0], false),
        ];
        for (name, args, valid) in table {
            assert_eq!(
                valid_reason(&call(name, args), EpollWait::Present),
                valid,
                "{name} {args:?}"
            );
        }
        assert!(
            valid_reason(&call("epoll_pwait", [0; 4]), EpollWait::Absent),
            "where there is nothing else"
        );
        for op in [FUTEX_LOCK_PI, FUTEX_LOCK_PI2 | private] {
            assert!(allowed(&InCall::Yes(call("futex", [1, op, 0, 0]))));
        }
        assert!(!allowed(&InCall::Yes(call("futex", [1, FUTEX_WAIT, 0, 0]))));
        assert!(!allowed(&InCall::No));
    }
}
