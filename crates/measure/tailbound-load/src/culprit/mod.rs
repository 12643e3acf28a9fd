// SPDX-License-Identifier: MIT OR Apache-2.0
//! One named trouble, made on purpose: to see whether what looks for the cause of a late wake-up
//! (`run --blame`) names this one.
//!
//! Context: the threads are the load; SETUP elsewhere. Units: ns; bursts, each of which is one of
//!
//! - higher-priority, long-call, kworker, interrupts-off, lock-spin, softirq: a time of `busy`;
//! - fair-server: a turn that the scheduler gave the ordinary thread before the real-time one;
//! - console: a line;
//! - inversion, inversion-pi, page-faults: a wait of a real-time thread of the load itself;
//! - nmi: a request that makes all other CPUs print where they are; task-list: one that prints all tasks;
//! - hotplug: a CPU taken off and on again.
//!
//! By default one CPU is troubled, the last: the others stay usable.
//! Interrupts between CPUs, of packets and of timers have loads of their own (`interrupts`, `timers`).
//! Not here: what the threads do (`real_time`, `kernel`, `held`, `victim`, `request`, `hotplug`).

mod held;
mod hotplug;
mod kernel;
mod real_time;
mod request;
mod victim;

use std::thread;
use std::time::Duration;

use tailbound_core::units;
use tailbound_sys::clock::{CLOCK_MONOTONIC, now_ns};
use tailbound_sys::sched;

use self::victim::LockKind;
use crate::error::LoadError;
use crate::failure::Failure;
use crate::kind::{LoadKind, Note, Start, Started};
use crate::options::Reader;

pub(crate) static KIND: LoadKind = LoadKind {
    name: "culprit",
    unit: "bursts",
    about: "makes one named trouble on purpose, to see whether it is found",
    options: &[
        (
            "kind",
            "higher-priority (a busy real-time thread above), fair-server (an ordinary thread that the scheduler lets run before real-time ones), long-call (a system call without an end in sight), kworker (a work item of the kernel), softirq (a soft interrupt of the network), interrupts-off (a system call that disables interrupts), lock-spin (a spin for a lock that the CPU before holds), console (kernel messages), inversion and inversion-pi (a real-time thread of its own waits for a lock, without and with inheritance), page-faults (one that waits for pages), nmi (stacks of all CPUs), task-list (all tasks on the console) or hotplug (a CPU taken off and on), these two in a guest of the lab alone",
        ),
        (
            "busy",
            "length of a burst (default 1ms; fair-server: 1800ms; not of console, nmi, task-list and hotplug)",
        ),
        (
            "interval",
            "about the time from one burst to the next (default 20ms; fair-server: 2s; console: 200ms; nmi, task-list: 300ms; hotplug: 500ms)",
        ),
        ("priority", "of higher-priority: its SCHED_FIFO priority (default 99)"),
        (
            "cpus",
            "CPUs it troubles, for example 1,3 (default: the last it may use; lock-spin: the last two; nmi: all)",
        ),
    ],
    // The fair server comes about once a second, and a machine may keep it from coming.
    coarse: true,
    command: None,
    prepare: |r| Ok(Start::new(Options::read(r)?, start)),
};

const MS: i64 = 1_000_000;
const INTERVAL_MIN_NS: i64 = MS;
const BUSY_MIN_NS: i64 = 10_000;
/// A part of each interval is left to everybody else, whatever is asked for.
const REST_PART: i64 = 10;
const PRIORITY_MAX: u32 = 99;
/// The golden ratio, of which multiples fall evenly into whatever they are divided by.
const GOLDEN: (i64, i64) = (618, 1000);

/// Which trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    HigherPriority,
    FairServer,
    LongCall,
    Kworker,
    Softirq,
    InterruptsOff,
    LockSpin,
    Console,
    Inversion,
    InversionPi,
    PageFaults,
    Nmi,
    TaskList,
    Hotplug,
}

/// How long a burst may be, and what it is where nobody says.
struct Usual {
    busy_ns: i64,
    busy_min_ns: i64,
    busy_max_ns: i64,
    interval_ns: i64,
}

impl Kind {
    const WORDS: [(&str, Self); 14] = [
        ("higher-priority", Self::HigherPriority),
        ("fair-server", Self::FairServer),
        ("long-call", Self::LongCall),
        ("kworker", Self::Kworker),
        ("softirq", Self::Softirq),
        ("interrupts-off", Self::InterruptsOff),
        ("lock-spin", Self::LockSpin),
        ("console", Self::Console),
        ("inversion", Self::Inversion),
        ("inversion-pi", Self::InversionPi),
        ("page-faults", Self::PageFaults),
        ("nmi", Self::Nmi),
        ("task-list", Self::TaskList),
        ("hotplug", Self::Hotplug),
    ];

    fn usual(self) -> Usual {
        let (busy_ns, busy_min_ns, busy_max_ns, interval_ns) = match self {
            Self::HigherPriority => (MS, BUSY_MIN_NS, 1000 * MS, 20 * MS),
            // Long enough that the scheduler loses its patience in each, which is 950 ms by default.
            Self::FairServer => (1800 * MS, 1000 * MS, 5000 * MS, 2000 * MS),
            Self::LongCall => (MS, BUSY_MIN_NS, 100 * MS, 20 * MS),
            // What one piece of the terminal's buffer holds: between two the kernel offers the CPU.
            Self::Kworker => (MS, BUSY_MIN_NS, 10 * MS, 20 * MS),
            // As long as is harmless: the kernel's own watchdogs wait for seconds.
            Self::Softirq | Self::InterruptsOff | Self::LockSpin => {
                (MS, BUSY_MIN_NS, 5 * MS, 20 * MS)
            }
            Self::Inversion | Self::InversionPi | Self::PageFaults => {
                (MS, BUSY_MIN_NS, 100 * MS, 20 * MS)
            }
            Self::Console => (0, 0, 0, 200 * MS),
            Self::Nmi | Self::TaskList => (0, 0, 0, 300 * MS),
            Self::Hotplug => (0, 0, 0, 500 * MS),
        };
        Usual { busy_ns, busy_min_ns, busy_max_ns, interval_ns }
    }
}

/// Which trouble, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Options {
    kind: Kind,
    busy_ns: i64,
    interval_ns: i64,
    priority: u32,
    /// Were CPUs named?
    pinned: bool,
}

impl Options {
    fn read(r: &Reader<'_>) -> Result<Self, LoadError> {
        let Some(kind) = r.word("kind", &Kind::WORDS)? else {
            let help = "higher-priority, fair-server, long-call, kworker, softirq, interrupts-off, lock-spin, console, inversion, inversion-pi, page-faults, nmi, task-list or hotplug";
            return Err(r.missing("kind", help));
        };
        if kind != Kind::HigherPriority && r.spec.option("priority").is_some() {
            return Err(r.bad("priority", "only kind=higher-priority has one"));
        }
        if kind == Kind::Console && r.spec.option("busy").is_some() {
            return Err(r.bad("busy", "how long a line takes is up to the console"));
        }
        if matches!(kind, Kind::Hotplug | Kind::Nmi | Kind::TaskList)
            && r.spec.option("busy").is_some()
        {
            return Err(r.bad("busy", "how long it takes is up to the kernel"));
        }
        let usual = kind.usual();
        let busy_ns = r.time_ns("busy", usual.busy_min_ns)?.unwrap_or(usual.busy_ns);
        if busy_ns > usual.busy_max_ns {
            let most = units::exact(usual.busy_max_ns);
            return Err(r.bad("busy", format!("write a time of at most {most}")));
        }
        let interval_ns = r.time_ns("interval", INTERVAL_MIN_NS)?.unwrap_or(usual.interval_ns);
        if busy_ns > interval_ns - interval_ns / REST_PART {
            let option = if r.spec.option("busy").is_some() { "busy" } else { "interval" };
            let why = "a tenth of interval= must be left to others: write a smaller busy= or a longer interval=";
            return Err(r.bad(option, why));
        }
        let priority = r.number("priority", 1, PRIORITY_MAX.into())?;
        Ok(Self {
            kind,
            busy_ns,
            interval_ns,
            priority: priority.and_then(|n| u32::try_from(n).ok()).unwrap_or(PRIORITY_MAX),
            pinned: r.spec.option("cpus").is_some(),
        })
    }
}

fn start(options: Options, note: Note<'_>) -> Started {
    let mut cpus = sched::affinity(0)?;
    if !options.pinned {
        let troubled = match options.kind {
            Kind::LockSpin => 2,
            Kind::Nmi => cpus.len(),
            _ => 1,
        };
        cpus.drain(..cpus.len().saturating_sub(troubled));
    }
    match options.kind {
        Kind::HigherPriority => real_time::higher_priority(options, &cpus),
        Kind::FairServer => real_time::fair_server(options, &cpus),
        Kind::LongCall => kernel::long_call(options, &cpus, note),
        Kind::Kworker => kernel::kworker(options, &cpus),
        Kind::Softirq => held::softirq(options, &cpus),
        Kind::InterruptsOff => held::interrupts_off(options, &cpus),
        Kind::LockSpin => held::lock_spin(options, &cpus),
        Kind::Console => kernel::console(options, &cpus, note),
        Kind::Inversion => victim::inversion(options, &cpus, LockKind::Plain),
        Kind::InversionPi => victim::inversion(options, &cpus, LockKind::Inheriting),
        Kind::PageFaults => victim::page_faults(options, &cpus),
        Kind::Nmi => request::nmi(options, &cpus, note),
        Kind::TaskList => request::task_list(options, &cpus),
        Kind::Hotplug => hotplug::start(options, &cpus),
    }
}

fn monotonic_ns() -> i64 {
    now_ns(CLOCK_MONOTONIC)
}

/// Bursts that fall due about one interval after the other: each is moved by a part of the tenth
/// that is left to others. In step with a measured thread they would always meet it at the same
/// moment, and might never.
struct Pace {
    due_ns: i64,
    interval_ns: i64,
    bursts: i64,
}

impl Pace {
    fn new(options: Options) -> Self {
        Self { due_ns: monotonic_ns(), interval_ns: options.interval_ns, bursts: 0 }
    }

    /// Sleeps until the next is due, and for the rest that others must have: what was missed is
    /// not made up for.
    fn wait(&mut self) {
        let now_ns = monotonic_ns();
        let rest_ns = self.interval_ns / REST_PART;
        self.due_ns = self.due_ns.saturating_add(self.interval_ns).max(now_ns);
        self.bursts = self.bursts.wrapping_add(1);
        let moved_ns = rest_ns / GOLDEN.1 * (self.bursts.wrapping_mul(GOLDEN.0) % GOLDEN.1);
        let left_ns = self.due_ns.saturating_sub(now_ns).saturating_add(moved_ns).max(rest_ns);
        let left = u64::try_from(left_ns).unwrap_or(0);
        #[expect(
            clippy::disallowed_methods,
            reason = "the sleep is a part of the load; nobody waits for it"
        )]
        thread::sleep(Duration::from_nanos(left));
    }
}

/// What `one` takes, of several attempts the least: the others were held up.
fn least_ns(mut one: impl FnMut() -> Result<(), Failure>) -> Result<i64, Failure> {
    let mut least = i64::MAX;
    for _ in 0..5 {
        let began_ns = monotonic_ns();
        one()?;
        least = least.min(monotonic_ns().saturating_sub(began_ns));
    }
    Ok(least.max(1))
}

/// How often something must be done that takes `each_ns` for each `of` times, to be busy for `busy_ns`.
fn times(busy_ns: i64, of: usize, each_ns: i64) -> usize {
    let of = i64::try_from(of).unwrap_or(i64::MAX);
    let times = busy_ns.saturating_mul(of) / each_ns.max(1);
    usize::try_from(times).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{parse, read};

    #[test]
    fn options_are_read() {
        let asked = "culprit:kind=higher-priority,busy=2ms,interval=50ms,priority=90,cpus=0";
        let wanted = Options {
            kind: Kind::HigherPriority,
            busy_ns: 2 * MS,
            interval_ns: 50 * MS,
            priority: 90,
            pinned: true,
        };
        assert_eq!(read(asked, Options::read), wanted);
        for (word, kind) in Kind::WORDS {
            let it = read(&format!("culprit:kind={word}"), Options::read);
            assert_eq!((it.kind, it.priority, it.pinned), (kind, 99, false));
            assert!(KIND.options.iter().any(|o| o.0 == "kind" && o.1.contains(word)), "{word}");
        }
    }

    #[test]
    fn what_would_take_a_cpu_or_means_nothing_is_refused() {
        let refused = |options: &str| -> String {
            let Ok(spec) = format!("culprit:{options}").parse() else { panic!("{options}") };
            parse(&spec).map(|_| ()).unwrap_err().to_string()
        };
        assert!(refused("interval=1s").contains("kind="));
        assert!(refused("kind=earthquake").contains("fair-server or long-call"));
        assert!(refused("kind=higher-priority,busy=19ms").contains("a tenth"));
        assert!(refused("kind=higher-priority,interval=1ms").contains("a tenth"));
        assert!(refused("kind=higher-priority,priority=100").contains("from 1 to 99"));
        assert!(refused("kind=fair-server,busy=500ms").contains("at least 1s"));
        assert!(refused("kind=fair-server,busy=1m,interval=2m").contains("at most 5s"));
        assert!(refused("kind=kworker,busy=1s,interval=2s").contains("at most 10ms"));
        assert!(refused("kind=long-call,priority=1").contains("higher-priority"));
        assert!(refused("kind=console,busy=1ms").contains("up to the console"));
        assert!(refused("kind=hotplug,busy=1ms").contains("up to the kernel"));
        assert!(refused("kind=softirq,busy=6ms").contains("at most 5ms"));
    }

    #[test]
    fn bursts_leave_others_their_part() {
        let options = read("culprit:kind=long-call,interval=10ms", Options::read);
        let mut pace = Pace::new(options);
        let began_ns = monotonic_ns();
        // As if the one before had taken much longer than it may.
        pace.due_ns -= 100 * MS;
        pace.wait();
        assert!(monotonic_ns() - began_ns >= MS);
        assert_eq!(times(MS, 1000, 20_000), 50_000);
        assert_eq!(times(MS, 1, i64::MAX), 1);
        let moved = |burst: i64| burst * GOLDEN.0 % GOLDEN.1;
        let first: Vec<i64> = (1..=5).map(moved).collect();
        assert_eq!(first, [618, 236, 854, 472, 90], "spread from the beginning");
    }
}
