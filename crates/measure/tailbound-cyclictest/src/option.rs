// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options of cyclictest, as data.
//!
//! Not here: how words become them (`words`), what they mean (`options`).
//! Source: cyclictest(8), cyclictest --help (rt-tests 2.4).

/// Does an option take a value?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    Nothing,
    Value(&'static str),
    /// A short option takes the next word where that is a number or a list of CPUs.
    Maybe(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Affinity,
    Aligned,
    Breaktrace,
    Clock,
    DbgCyclictest,
    DeepestIdleState,
    DefaultSystem,
    Distance,
    Duration,
    Fifo,
    Help,
    Histfile,
    Histofall,
    Histogram,
    Interval,
    Json,
    Laptop,
    Latency,
    Loops,
    Mainaffinity,
    Mlockall,
    Nanosleep,
    Nsecs,
    Oscope,
    Policy,
    PosixTimers,
    Priority,
    Priospread,
    Quiet,
    RefreshOnMax,
    Relative,
    Resolution,
    Secaligned,
    Smi,
    Smp,
    Spike,
    SpikeNodes,
    System,
    Threads,
    Tracemark,
    Unbuffered,
    Verbose,
}

#[derive(Debug)]
pub(crate) struct CyclicOption {
    pub(crate) name: Name,
    pub(crate) short: Option<char>,
    pub(crate) long: &'static str,
    pub(crate) takes: Takes,
    /// For the help; of what is refused, why and what to use.
    pub(crate) about: &'static str,
    pub(crate) treatment: Treatment,
}

/// What is done with an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// As far as its value allows.
    Honoured,
    /// Because of what `about` says.
    Refused,
}

const fn of(
    name: Name,
    short: Option<char>,
    long: &'static str,
    takes: Takes,
    about: &'static str,
) -> CyclicOption {
    CyclicOption { name, short, long, takes, about, treatment: Treatment::Honoured }
}

const fn refused(
    name: Name,
    short: Option<char>,
    long: &'static str,
    takes: Takes,
    about: &'static str,
) -> CyclicOption {
    CyclicOption { name, short, long, takes, about, treatment: Treatment::Refused }
}

use Takes::{Maybe, Nothing, Value};

/// In the order of the help.
pub(crate) const OPTIONS: &[CyclicOption] = &[
    of(
        Name::Affinity,
        Some('a'),
        "affinity",
        Maybe("CPUSET"),
        "one thread on each of these CPUs, the first of them first",
    ),
    refused(
        Name::Aligned,
        Some('A'),
        "aligned",
        Maybe("US"),
        "threads cannot be aligned: thread k of n is due k/n of an interval after the first",
    ),
    of(Name::Breaktrace, Some('b'), "breaktrace", Value("US"), "end when a latency is greater"),
    of(
        Name::Clock,
        Some('c'),
        "clock",
        Value("CLOCK"),
        "0: CLOCK_MONOTONIC (default), 1: CLOCK_REALTIME",
    ),
    of(Name::DefaultSystem, None, "default-system", Nothing, "leave power management alone"),
    refused(
        Name::DeepestIdleState,
        None,
        "deepest-idle-state",
        Value("N"),
        "idle states cannot be chosen by number: use --latency=US, or `tailbound tune set idle-latency=TIME` before",
    ),
    of(
        Name::Distance,
        Some('d'),
        "distance",
        Value("US"),
        "only 0, which is the default here: all threads have one interval",
    ),
    of(
        Name::Duration,
        Some('D'),
        "duration",
        Value("TIME"),
        "end after so many seconds, or with m, h or d behind them minutes, hours or days",
    ),
    refused(
        Name::Fifo,
        Some('F'),
        "fifo",
        Value("PATH"),
        "no named pipe is made: read the status lines on standard output",
    ),
    of(
        Name::Histogram,
        Some('h'),
        "histogram",
        Value("US"),
        "print a histogram at the end, of latencies below this",
    ),
    of(
        Name::Histofall,
        Some('H'),
        "histofall",
        Value("US"),
        "the same with a column of all threads",
    ),
    of(Name::Histfile, None, "histfile", Value("PATH"), "write the histogram there instead"),
    of(
        Name::Interval,
        Some('i'),
        "interval",
        Value("US"),
        "interval of the threads, from 10 [default: 1000]",
    ),
    of(Name::Json, None, "json", Value("FILE"), "write the results there as JSON"),
    of(Name::Laptop, None, "laptop", Nothing, "leave /dev/cpu_dma_latency alone, to save power"),
    of(
        Name::Latency,
        None,
        "latency",
        Value("US"),
        "hold /dev/cpu_dma_latency at this [default: 0]",
    ),
    of(
        Name::Loops,
        Some('l'),
        "loops",
        Value("N"),
        "end when each thread was due so often [default: 0, endless]",
    ),
    of(Name::Mainaffinity, None, "mainaffinity", Value("CPUSET"), "CPUs of the main thread"),
    of(Name::Mlockall, Some('m'), "mlockall", Nothing, "lock memory, which is always done here"),
    of(
        Name::RefreshOnMax,
        Some('M'),
        "refresh_on_max",
        Nothing,
        "draw again only when a maximum is greater",
    ),
    of(
        Name::Nanosleep,
        Some('n'),
        "nanosleep",
        Nothing,
        "clock_nanosleep(2), which is the default",
    ),
    of(Name::Nsecs, Some('N'), "nsecs", Nothing, "ns instead of µs; -b, -h and -H are ns too"),
    of(
        Name::Oscope,
        Some('o'),
        "oscope",
        Value("N"),
        "with -v: print the greatest of each N latencies",
    ),
    of(
        Name::Priority,
        Some('p'),
        "priority",
        Value("N"),
        "SCHED_FIFO with this priority [default: SCHED_OTHER]",
    ),
    of(
        Name::Policy,
        None,
        "policy",
        Value("NAME"),
        "fifo, rr, other, normal, batch or idle; the last three are SCHED_OTHER, as in cyclictest",
    ),
    of(
        Name::Priospread,
        None,
        "priospread",
        Nothing,
        "only of one thread: all threads have one priority",
    ),
    of(Name::Quiet, Some('q'), "quiet", Nothing, "print a summary at the end only"),
    refused(
        Name::Relative,
        Some('r'),
        "relative",
        Nothing,
        "there is no schedule from wake-up to wake-up: `tailbound run --sleep nanosleep-relative` keeps to a fixed one",
    ),
    refused(
        Name::Resolution,
        Some('R'),
        "resolution",
        Nothing,
        "the clock is not examined here: use `tailbound measure clocks`",
    ),
    refused(
        Name::Secaligned,
        None,
        "secaligned",
        Maybe("US"),
        "threads cannot be aligned to a second: `tailbound run --begin-at` begins at an instant",
    ),
    refused(
        Name::System,
        Some('s'),
        "system",
        Nothing,
        "there is no schedule from wake-up to wake-up: `tailbound run --sleep nanosleep-plain` keeps to a fixed one",
    ),
    of(Name::Smp, Some('S'), "smp", Nothing, "one thread on each CPU, all of one priority"),
    refused(
        Name::Spike,
        None,
        "spike",
        Value("US"),
        "spikes are not listed: the run file has each late wake-up as an `exceedance` line",
    ),
    refused(
        Name::SpikeNodes,
        None,
        "spike-nodes",
        Value("N"),
        "spikes are not listed: the run file has each late wake-up as an `exceedance` line",
    ),
    refused(
        Name::Smi,
        None,
        "smi",
        Nothing,
        "SMIs are not counted here: use `tailbound measure hwlat`",
    ),
    of(
        Name::Threads,
        Some('t'),
        "threads",
        Maybe("N"),
        "number of threads [default: 1]; without N one on each CPU",
    ),
    refused(
        Name::Tracemark,
        None,
        "tracemark",
        Nothing,
        "samples are looked at up to a second after they were taken, and the trace has moved on by then: `tailbound run -b TIME` names what made the wake-up late",
    ),
    of(
        Name::Unbuffered,
        Some('u'),
        "unbuffered",
        Nothing,
        "write at once, which is always done here",
    ),
    of(Name::Verbose, Some('v'), "verbose", Nothing, "print every latency: thread, cycle, latency"),
    of(Name::DbgCyclictest, None, "dbg_cyclictest", Nothing, "accepted; there is nothing to print"),
    of(
        Name::PosixTimers,
        Some('x'),
        "posix_timers",
        Nothing,
        "POSIX timers instead of clock_nanosleep(2)",
    ),
    of(Name::Help, None, "help", Nothing, "print this"),
];

impl CyclicOption {
    /// `-a` or `--json`, for messages.
    pub(crate) fn shown(&self) -> String {
        self.short.map_or_else(|| format!("--{}", self.long), |short| format!("-{short}"))
    }
}

/// An option for a shell that completes it: of those that are honoured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShellOption {
    /// Its letter.
    pub short: Option<char>,
    /// Its name, without `--`.
    pub long: &'static str,
    /// What its value is called, and whether it may be left out.
    pub value: Option<(&'static str, ValueNeed)>,
    /// What it does.
    pub about: &'static str,
}

/// Must an option have a value?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueNeed {
    /// Yes.
    Required,
    /// It may be left out.
    Optional,
}

/// The options that are honoured.
pub fn shell_options() -> impl Iterator<Item = ShellOption> {
    OPTIONS.iter().filter(|o| o.treatment == Treatment::Honoured).map(|o| ShellOption {
        short: o.short,
        long: o.long,
        value: match o.takes {
            Takes::Nothing => None,
            Takes::Value(name) => Some((name, ValueNeed::Required)),
            Takes::Maybe(name) => Some((name, ValueNeed::Optional)),
        },
        about: o.about,
    })
}
