// SPDX-License-Identifier: MIT OR Apache-2.0
//! The catalogue of loads: names, what they count, and their options, for people.
//!
//! Context: COLD. Help texts and error messages are made of it.
//! Not here: what an option's value may be (`options`, and the file of each load).

/// One kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadKind {
    /// Its name in a specification.
    pub name: &'static str,
    /// What it counts.
    pub unit: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// Its options and what they mean; every load has those of [`PHASE`] besides.
    pub options: &'static [(&'static str, &'static str)],
}

const CPUS: (&str, &str) = ("cpus", "CPUs it may use, for example 0-1,3 (default: all)");

/// Every load there is.
pub const CATALOGUE: &[LoadKind] = &[
    LoadKind {
        name: "hackbench",
        unit: "messages",
        about: "groups of tasks that send each other messages: scheduler and wake-ups",
        options: &[
            ("groups", "groups of 2 x fds tasks (default: 2 per CPU)"),
            ("ipc", "socketpair (default), pipe or inet"),
            ("mode", "process (default) or thread"),
            ("size", "bytes a message (default 100)"),
            ("fds", "senders, and receivers, in a group (default 20)"),
            (
                "loops",
                "messages from each sender to each receiver, then end (default: until stopped)",
            ),
            CPUS,
        ],
    },
    LoadKind {
        name: "memory",
        unit: "accesses",
        about: "random reads and writes beyond the last cache, one thread per CPU",
        options: &[
            ("block", "bytes each thread uses, for example 64M (default: beyond the last cache)"),
            CPUS,
        ],
    },
    LoadKind {
        name: "ping-flood",
        unit: "echoes",
        about: "ICMP echo as fast as replies come: network stack and softirqs",
        options: &[
            ("flows", "flows at the same time, in each direction (default 1)"),
            (
                "veth",
                "yes: through a veth pair between namespaces of its own (default no: loopback)",
            ),
            ("size", "payload bytes (default 56)"),
            CPUS,
        ],
    },
    LoadKind {
        name: "clock",
        unit: "sleeps",
        about: "reads clocks and sleeps briefly, one thread per CPU: timers and idle",
        options: &[CPUS],
    },
    LoadKind {
        name: "cpu",
        unit: "loops",
        about: "arithmetic without a pause, one thread per CPU",
        options: &[
            (
                "loops",
                "thousands of steps in each of one process per CPU, then end (default: until stopped)",
            ),
            CPUS,
        ],
    },
    LoadKind {
        name: "fork",
        unit: "forks",
        about: "processes that are made, end at once and are waited for: scheduler, memory maps, RCU",
        options: &[
            ("tasks", "processes that fork (default: 2 per CPU)"),
            ("exec", "yes: each child executes this program, which exits at once (default no)"),
            CPUS,
        ],
    },
    LoadKind {
        name: "mmap",
        unit: "pages",
        about: "maps memory, touches every page, unmaps it: page faults and memory management",
        options: &[
            (
                "size",
                "bytes at a time in each task (default 64M, at most an eighth of what is available)",
            ),
            ("tasks", "processes, or threads with shootdown=yes (default: 1 per CPU)"),
            (
                "shootdown",
                "yes: threads of one process, at least 2, that also take write permission away and give it back: TLB shoot-downs (default no)",
            ),
            CPUS,
        ],
    },
    LoadKind {
        name: "file",
        unit: "KiB",
        about: "makes a file, writes, syncs, reads back, shortens and drops it: page cache and file system",
        options: &[
            (
                "path",
                "folder (default: the first of /dev/shm, $TMPDIR, /tmp, /var/tmp, /run and / that can be written)",
            ),
            (
                "size",
                "bytes of a file (default 16M, at most what the folder and the memory have room for)",
            ),
            ("tasks", "processes, each with a file at a time (default: 1 per CPU)"),
            ("sync", "no: without fsync (default yes)"),
            ("loops", "files of each process, then end (default: until stopped)"),
            CPUS,
        ],
    },
    LoadKind {
        name: "disk",
        unit: "KiB",
        about: "writes, syncs and reads back past the page cache, in order and at random: disk and its interrupts",
        options: &[
            (
                "path",
                "folder on a disk (default: the first of $TMPDIR, /var/tmp, /tmp, /home and / that is one)",
            ),
            ("size", "bytes of a file (default 64M, at most a quarter of what is free)"),
            ("tasks", "processes, each with a file (default 2)"),
            CPUS,
        ],
    },
    LoadKind {
        name: "compile",
        unit: "files",
        about: "compiles C that it makes up, or a tree of sources, with the machine's cc: what building software costs",
        options: &[
            ("jobs", "compilers at a time (default: 1 per CPU)"),
            ("loops", "files, or builds of the tree, then end (default: until stopped)"),
            (
                "tree",
                "folder with a Makefile, of a kernel or anything else, built in a layer over it (default: sources made up)",
            ),
            ("make", "words for make, for example `defconfig vmlinux` (default: none)"),
            (
                "size",
                "most that a build of the tree may write, in memory (default: an eighth of what is available)",
            ),
            CPUS,
        ],
    },
    LoadKind {
        name: "download",
        unit: "KiB",
        about: "downloads from a server of its own on loopback, each unpacked and built when it is there",
        options: &[
            ("flows", "downloads at the same time (default 4)"),
            ("size", "bytes of an archive, unpacked (default 8M, less where memory is short)"),
            (
                "rate",
                "bytes a second of each download, for example 1M (default: as fast as they go)",
            ),
            ("build", "no: unpacked alone (default yes: with the machine's cc)"),
            CPUS,
        ],
    },
    LoadKind {
        name: "stress-ng",
        unit: "bogo-ops",
        about: "a stressor of the program stress-ng, where that is installed",
        options: &[
            ("stressor", "its name, of those that `stress-ng --stressors` lists"),
            ("workers", "workers of it (default: 1 per CPU)"),
            (
                "slice",
                "length of a slice in whole seconds, after which stress-ng reports its count and is started again (default 2s)",
            ),
            CPUS,
        ],
    },
    LoadKind {
        name: "tlb",
        unit: "pages",
        about: "walks over more pages than TLBs hold, beside threads that change mappings: page walks, shoot-downs",
        options: &[
            (
                "size",
                "bytes each thread walks over (default 64M, at most an eighth of what is available)",
            ),
            (
                "shootdown",
                "no: walks alone (default yes: after each walk pages lose a permission, and are unmapped)",
            ),
            CPUS,
        ],
    },
    LoadKind {
        name: "timers",
        unit: "expirations",
        about: "many periodic timers on each CPU: timer interrupts and wake-ups",
        options: &[
            ("timers", "timers on each CPU (default 20)"),
            ("interval", "time from one expiration of a timer to its next (default 1ms)"),
            ("kind", "timerfd (default) or posix, which signals"),
            CPUS,
        ],
    },
    LoadKind {
        name: "interrupts",
        unit: "triggers",
        about: "makes the CPUs interrupt each other and themselves, as fast as they can",
        options: &[
            (
                "kind",
                "all (default), ipi (barriers all CPUs must answer), moves (threads that change CPU), packets (loopback: network softirqs) or timers (4 kHz on each CPU)",
            ),
            CPUS,
        ],
    },
    LoadKind {
        name: "syscalls",
        unit: "calls",
        about: "the cheapest system calls, one process per CPU: the way into the kernel and back",
        options: &[
            (
                "call",
                "mix (default: all but yield), getppid, read, write, lseek, dup, futex or yield",
            ),
            ("loops", "calls of each process, then end (default: until stopped)"),
            CPUS,
        ],
    },
    LoadKind {
        name: "ping-pong",
        unit: "round-trips",
        about: "pairs of tasks that hand one byte to and fro: context switches and wake-ups",
        options: &[
            ("ipc", "pipe (default), socketpair, inet or futex"),
            ("mode", "process (default) or thread"),
            ("pairs", "pairs (default: 1 per CPU)"),
            ("place", "free (default), same (a pair shares a CPU) or apart (two CPUs)"),
            ("loops", "round trips of each pair, then end (default: until stopped)"),
            CPUS,
        ],
    },
    LoadKind {
        name: "cmd",
        unit: "runs",
        about: "a shell command",
        options: &[
            ("repeat", "yes: start it again when it ends (default no: its end is reported)"),
            CPUS,
            ("line", "the command line; comes last, takes the rest"),
        ],
    },
];

/// The command that a load starts because somebody wrote it, and not because this program
/// chose it; `None` where there is none.
#[must_use]
pub fn command_of(spec: &tailbound_core::Spec) -> Option<String> {
    match spec.name.as_str() {
        "cmd" => Some(spec.option("line").unwrap_or_default().to_owned()),
        // A Makefile is a program.
        "compile" if spec.option("tree").is_some() || spec.option("make").is_some() => {
            let tree = spec.option("tree").unwrap_or("sources made up");
            let words = spec.option("make").unwrap_or_default();
            Some(format!("make {words} (in {tree})"))
        }
        _ => None,
    }
}

/// The options of every load: when it works.
pub const PHASE: &[(&str, &str)] = &[
    ("from", "time of the measurement at which it begins (default 0s: it runs in the warm-up too)"),
    ("for", "how long it runs (default: to the end, or until `every` starts it again)"),
    ("every", "time from one start to the next: it runs repeatedly"),
];
