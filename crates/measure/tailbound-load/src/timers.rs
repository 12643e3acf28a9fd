// SPDX-License-Identifier: MIT OR Apache-2.0
//! A storm of timers: on each CPU a thread with many periodic ones, whose expirations are
//! spread, so that each is an interrupt and most are a wake-up; or fall due together, so that
//! one interrupt expires them all, during which nothing else can happen on that CPU.
//!
//! Context: the threads are the load; SETUP elsewhere. Units: ns, expirations.
//! Not here: the timers themselves (`tailbound_sys::timer_set`).

use tailbound_sys::process;
use tailbound_sys::sched;
use tailbound_sys::timer_set::{Due, Pattern, TimerSet};

use crate::error::LoadError;
use crate::failure::{Explain, Failure};
use crate::kind::{CPUS, LoadKind, Note, Start, Started};
use crate::options::Reader;
use crate::spin::Threads;

pub(crate) static KIND: LoadKind = LoadKind {
    name: "timers",
    unit: "expirations",
    about: "many periodic timers on each CPU: timer interrupts and wake-ups",
    options: &[
        ("timers", "timers on each CPU (default 20)"),
        ("interval", "time from one expiration of a timer to its next (default 1ms)"),
        ("kind", "timerfd (default) or posix, which signals"),
        ("due", "spread over the interval (default) or together, at the same instant"),
        CPUS,
    ],
    coarse: false,
    command: None,
    prepare: |r| Ok(Start::new(Options::read(r)?, start)),
};

const TIMERS_DEFAULT: usize = 20;
const TIMERS_MAX: u32 = 10_000;
const INTERVAL_DEFAULT_NS: i64 = 1_000_000;
const INTERVAL_MIN_NS: i64 = 10_000;
/// Descriptors of the worker itself and of its C library.
const FDS_OF_OUR_OWN: usize = 64;

/// How the timers tell that they have expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Timerfd,
    Posix,
}

/// How many timers, and how fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Options {
    pattern: Pattern,
    kind: Kind,
}

impl Options {
    fn read(r: &Reader<'_>) -> Result<Self, LoadError> {
        let kinds = [("timerfd", Kind::Timerfd), ("posix", Kind::Posix)];
        let dues = [("spread", Due::Spread), ("together", Due::Together)];
        Ok(Self {
            pattern: Pattern {
                count: r.count("timers", 1, TIMERS_MAX)?.unwrap_or(TIMERS_DEFAULT),
                interval_ns: r.time_ns("interval", INTERVAL_MIN_NS)?.unwrap_or(INTERVAL_DEFAULT_NS),
                due: r.word("due", &dues)?.unwrap_or(Due::Spread),
            },
            kind: r.word("kind", &kinds)?.unwrap_or(Kind::Timerfd),
        })
    }
}

fn start(options: Options, _: Note<'_>) -> Started {
    let cpus = sched::affinity(0)?;
    if options.kind == Kind::Timerfd {
        let fds = cpus.len() * (options.pattern.count + 1) + FDS_OF_OUR_OWN;
        let needed = fds as u64;
        process::allow_open_files(needed).map_err(|source| Failure::Descriptors {
            needed,
            source,
            instead: "fewer timers=",
        })?;
    }
    let threads = Threads::new(cpus.len())?;
    for (slot, cpu) in cpus.into_iter().enumerate() {
        threads.spawn(slot, Some(cpu), move |count| storm(options, count))?;
    }
    Ok(Box::new(threads))
}

/// Timers of the calling thread, for ever.
fn storm(options: Options, count: &dyn Fn(u64)) -> Result<(), Failure> {
    let made = match options.kind {
        Kind::Timerfd => TimerSet::descriptors(options.pattern),
        Kind::Posix => TimerSet::signals(options.pattern),
    };
    let mut timers = made.remedy("ask for fewer timers=")?;
    loop {
        count(timers.wait()?);
    }
}

/// The timers of an interrupt storm: 4 kHz.
pub(crate) fn default_storm(count: &dyn Fn(u64)) -> Result<(), Failure> {
    let pattern = Pattern { count: 4, interval_ns: INTERVAL_DEFAULT_NS, due: Due::Spread };
    storm(Options { pattern, kind: Kind::Timerfd }, count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::read;

    #[test]
    fn options_are_read() {
        let asked = read("timers:timers=5,interval=2ms,kind=posix,due=together", Options::read);
        let pattern = Pattern { count: 5, interval_ns: 2_000_000, due: Due::Together };
        assert_eq!(asked, Options { pattern, kind: Kind::Posix });
        let usual = read("timers", Options::read).pattern;
        assert_eq!((usual.count, usual.interval_ns), (TIMERS_DEFAULT, INTERVAL_DEFAULT_NS));
        assert_eq!(usual.due, Due::Spread);
    }
}
