// SPDX-License-Identifier: MIT OR Apache-2.0
//! System calls by their names, and what of their arguments tells one place of waiting from another.
//!
//! Numbers differ from architecture to architecture and come from the caller
//! (`tailbound_sys::calls`); this module knows names only.
//! Source: syscalls(2), futex(2), clock_nanosleep(2); include/uapi/linux/futex.h.

use std::collections::HashMap;

use tailbound_core::rules::OUTPUT_CALLS;

/// A system call under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) id: i64,
    pub(super) args: [u64; 4],
    /// When it was entered: tells two calls of one place apart.
    pub(super) since: u64,
}

/// Which kind of call, where that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Sleeps until a time, or for one; the argument with its flags.
    ClockNanosleep,
    Nanosleep,
    Futex,
    /// Waits for one of several descriptors; its first argument is a table in memory.
    Poll,
    Select,
    /// Waits on the descriptor that is its first argument; the third says how many bytes.
    OnDescriptor,
    /// Has a descriptor and a command.
    Command,
    /// Gives the CPU away and stays ready.
    Yield,
    /// The kernel's own: goes on with a sleep that a signal interrupted.
    Restart,
    Other,
}

/// `TIMER_ABSTIME`.
const ABSOLUTE: u64 = 1;
/// `FUTEX_PRIVATE_FLAG` and `FUTEX_CLOCK_REALTIME` say nothing about what is done.
const FUTEX_COMMAND: u64 = 0x7f;
const FUTEX_WAKES: [u64; 6] = [1, 3, 4, 5, 7, 10];
const FUTEX_LOCKS: [u64; 2] = [6, 13];

/// The names of one architecture's system calls.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    names: HashMap<i64, &'static str>,
}

impl Calls {
    /// By number and name.
    #[must_use]
    pub fn new(table: &[(i64, &'static str)]) -> Self {
        Self { names: table.iter().copied().collect() }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self, id: i64) -> Option<&'static str> {
        self.names.get(&id).copied()
    }

    pub(super) fn kind(&self, id: i64) -> Kind {
        match self.name(id).unwrap_or_default() {
            "clock_nanosleep" | "clock_nanosleep_time64" => Kind::ClockNanosleep,
            "nanosleep" => Kind::Nanosleep,
            "futex" | "futex_time64" => Kind::Futex,
            "poll" | "ppoll" | "ppoll_time64" => Kind::Poll,
            "select" | "pselect6" | "pselect6_time64" | "_newselect" => Kind::Select,
            "read" | "write" | "readv" | "writev" | "pread64" | "pwrite64" | "recvfrom"
            | "recvmsg" | "recvmmsg" | "recvmmsg_time64" | "sendto" | "sendmsg" | "epoll_wait"
            | "epoll_pwait" | "epoll_pwait2" | "accept" | "accept4" | "connect" | "fsync"
            | "fdatasync" | "flock" | "mq_timedreceive" | "mq_timedsend" | "msgrcv" | "msgsnd"
            | "semop" | "semtimedop" | "io_uring_enter" => Kind::OnDescriptor,
            "ioctl" | "fcntl" | "fcntl64" => Kind::Command,
            "sched_yield" => Kind::Yield,
            "restart_syscall" => Kind::Restart,
            _ => Kind::Other,
        }
    }

    /// What tells this place of waiting from others of the same call: coarse, then fine.
    pub(super) fn keys(&self, call: &Call) -> ([u64; 2], [u64; 3]) {
        let [a, b, c, _] = call.args;
        match self.kind(call.id) {
            // Clock and flags; where in memory the time stands tells calls of one program apart.
            Kind::ClockNanosleep => ([a, b], [a, b, c]),
            Kind::Nanosleep => ([0, 0], [a, 0, 0]),
            Kind::Futex => ([a, b & FUTEX_COMMAND], [a, b & FUTEX_COMMAND, 0]),
            Kind::Poll => ([a, b], [a, b, 0]),
            Kind::Select => ([a, 0], [a, b, 0]),
            Kind::OnDescriptor => ([a, 0], [a, c, 0]),
            Kind::Command => ([a, b], [a, b, 0]),
            Kind::Yield | Kind::Restart | Kind::Other => ([0, 0], [0, 0, 0]),
        }
    }

    /// For people: the call with what tells it from others.
    pub(super) fn words(&self, call: &Call) -> String {
        let name =
            self.name(call.id).map_or_else(|| format!("system call {}", call.id), str::to_owned);
        let [a, b, ..] = call.args;
        match self.kind(call.id) {
            Kind::ClockNanosleep if b & ABSOLUTE != 0 => format!("{name} to an absolute time"),
            Kind::ClockNanosleep => format!("{name} for a time"),
            Kind::Futex if FUTEX_LOCKS.contains(&(b & FUTEX_COMMAND)) => {
                format!("{name} lock {a:#x} (with priority inheritance)")
            }
            Kind::Futex => format!("{name} {a:#x}"),
            Kind::OnDescriptor | Kind::Command => {
                format!("{name} of descriptor {}", a & 0xffff_ffff)
            }
            _ => name,
        }
    }

    /// Is the call there to sleep?
    pub(super) fn sleeps(&self, call: &Call) -> bool {
        matches!(self.kind(call.id), Kind::ClockNanosleep | Kind::Nanosleep)
    }

    /// Did a signal end a call that returned this? What the kernel restarts, the program does not see.
    /// Source: include/linux/errno.h.
    pub(super) fn was_interrupted(ret: i64) -> bool {
        const EINTR: i64 = 4;
        const RESTARTS: [i64; 4] = [512, 513, 514, 516];
        ret == -EINTR || RESTARTS.contains(&ret.saturating_neg())
    }

    /// Is a signal what the call is there to wait for?
    pub(super) fn waits_for_signals(&self, call: &Call) -> bool {
        matches!(self.name(call.id), Some("pause" | "rt_sigsuspend" | "sigsuspend"))
    }

    /// Does it wait until something else has taken what it puts out?
    pub(super) fn puts_out(&self, call: &Call) -> bool {
        self.name(call.id).is_some_and(|name| OUTPUT_CALLS.contains(&name))
    }

    /// Do both calls wait at one place for the same thing?
    pub(super) fn are_same(&self, a: &Call, b: &Call) -> bool {
        a.id == b.id && self.keys(a).0 == self.keys(b).0
    }

    /// Does it sleep for a time from now on, and not to a time?
    pub(super) fn is_relative(&self, call: &Call) -> bool {
        match self.kind(call.id) {
            Kind::ClockNanosleep => call.args[1] & ABSOLUTE == 0,
            kind => kind == Kind::Nanosleep,
        }
    }

    /// The lock of a call that waits for one, or waits for a word in memory.
    pub(super) fn futex(&self, call: &Call) -> Option<u64> {
        (self.kind(call.id) == Kind::Futex).then_some(call.args[0])
    }

    /// Does this call wake those who wait for that word?
    pub(super) fn wakes(&self, call: &Call, futex: u64) -> bool {
        self.futex(call) == Some(futex) && FUTEX_WAKES.contains(&(call.args[1] & FUTEX_COMMAND))
    }

    /// Is a call that returned `ret` without having slept a wait whose event had come before? A failure
    /// is none, but that of a futex whose word had changed already.
    pub(super) fn was_ready(&self, call: &Call, ret: i64) -> bool {
        const EAGAIN: i64 = 11;
        match self.kind(call.id) {
            Kind::Futex => ret == 0 || ret == -EAGAIN,
            Kind::Poll | Kind::Select => ret > 0,
            Kind::OnDescriptor => ret > 0,
            _ => ret >= 0,
        }
    }
}
