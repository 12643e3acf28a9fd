// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be varied: loads, their options and how far these go, interval and seed.
//!
//! Units: ns, bytes. Which words a load has is `tailbound-load`'s to say: a test of the command
//! line holds this table to it. Not here: how it is varied (`vary`).

/// What one option can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// One of these words.
    Words(&'static [&'static str]),
    /// A number, from and to.
    Count(u64, u64),
    /// A size in KiB, from and to.
    Kib(u64, u64),
    /// A time in µs, from and to.
    Us(u64, u64),
    /// A sequence of system calls, at most so many.
    Calls(usize),
}

/// An option of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it can be; without it the load decides.
    pub values: Values,
}

/// A load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// Options that it always has.
    pub fixed: &'static [(&'static str, &'static str)],
    /// Those that are varied.
    pub parameters: &'static [Parameter],
}

/// Everything that can be varied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// Loads.
    pub kinds: Vec<Kind>,
    /// Most of them at the same time.
    pub loads_max: usize,
    /// Interval, from and to.
    pub interval_ns: (u64, u64),
    /// That of the single loads which a hunt begins with.
    pub base_interval_ns: u64,
    /// Seeds go from 1 to this.
    pub seed_max: u32,
}

const fn parameter(name: &'static str, values: Values) -> Parameter {
    Parameter { name, values }
}

const fn kind(name: &'static str, parameters: &'static [Parameter]) -> Kind {
    Kind { name, fixed: &[], parameters }
}

const YES: Values = Values::Words(&["yes"]);
const NO: Values = Values::Words(&["no"]);
const IPC: &[&str] = &["socketpair", "pipe", "inet"];
const MODE: Values = Values::Words(&["process", "thread"]);

/// Sizes end where a guest of 768 MiB has no room for four such loads.
const KINDS: &[Kind] = &[
    kind(
        "hackbench",
        &[
            parameter("groups", Values::Count(1, 8)),
            parameter("ipc", Values::Words(IPC)),
            parameter("mode", MODE),
            parameter("size", Values::Count(1, 4096)),
            parameter("fds", Values::Count(1, 40)),
        ],
    ),
    kind("memory", &[parameter("block", Values::Kib(64, 65_536))]),
    kind(
        "ping-flood",
        &[
            parameter("flows", Values::Count(1, 16)),
            parameter("veth", YES),
            parameter("size", Values::Count(0, 60_000)),
        ],
    ),
    kind("clock", &[]),
    kind("cpu", &[]),
    kind("fork", &[parameter("tasks", Values::Count(1, 16)), parameter("exec", YES)]),
    kind(
        "mmap",
        &[
            parameter("size", Values::Kib(64, 131_072)),
            // One alone is no shoot-down, and what there is without this.
            parameter("tasks", Values::Count(2, 8)),
            parameter("shootdown", YES),
        ],
    ),
    kind(
        "file",
        &[
            parameter("size", Values::Kib(4, 32_768)),
            parameter("tasks", Values::Count(1, 8)),
            parameter("sync", NO),
        ],
    ),
    Kind {
        name: "download",
        // A guest has no compiler.
        fixed: &[("build", "no")],
        parameters: &[
            parameter("flows", Values::Count(1, 8)),
            parameter("size", Values::Kib(64, 8192)),
        ],
    },
    kind("tlb", &[parameter("size", Values::Kib(64, 65_536)), parameter("shootdown", NO)]),
    kind(
        "timers",
        &[
            parameter("timers", Values::Count(1, 2000)),
            parameter("interval", Values::Us(100, 10_000)),
            parameter("kind", Values::Words(&["timerfd", "posix"])),
            parameter("due", Values::Words(&["together"])),
        ],
    ),
    kind(
        "interrupts",
        &[parameter("kind", Values::Words(&["all", "ipi", "moves", "packets", "timers"]))],
    ),
    kind(
        "syscalls",
        &[parameter(
            "call",
            Values::Words(&["getppid", "read", "write", "lseek", "dup", "futex", "yield"]),
        )],
    ),
    kind("calls", &[parameter("do", Values::Calls(32)), parameter("tasks", Values::Count(2, 8))]),
    kind(
        "ping-pong",
        &[
            parameter("ipc", Values::Words(&["pipe", "socketpair", "inet", "futex"])),
            parameter("mode", MODE),
            parameter("pairs", Values::Count(1, 32)),
            parameter("place", Values::Words(&["same"])),
        ],
    ),
];

/// A machine has one, a guest has not.
const DISK: Kind = kind(
    "disk",
    &[parameter("size", Values::Kib(64, 65_536)), parameter("tasks", Values::Count(1, 8))],
);

/// Loads that no hunt in the lab uses, and why.
pub const LEFT_OUT: &[(&str, &str)] = &[
    ("disk", "a guest has no disk"),
    ("compile", "a guest has no compiler"),
    ("stress-ng", "it is not in a guest"),
    ("culprit", "it is a trouble made on purpose"),
    ("cmd", "somebody has to write the command"),
];

/// What can be varied in a guest of the lab.
#[must_use]
pub fn lab() -> Space {
    Space {
        kinds: KINDS.to_vec(),
        loads_max: 4,
        interval_ns: (100_000, 500_000),
        base_interval_ns: 250_000,
        seed_max: 1_000_000,
    }
}

/// What can be varied on a machine. The seed means nothing there, and disks are where they are.
#[must_use]
pub fn machine() -> Space {
    Space {
        kinds: KINDS.iter().copied().chain([DISK]).collect(),
        interval_ns: (200_000, 2_000_000),
        base_interval_ns: 1_000_000,
        seed_max: 1,
        ..lab()
    }
}
