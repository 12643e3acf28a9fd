// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads of one thread per CPU that share nothing: arithmetic without a pause, and clock
//! reads with short sleeps between them.
//!
//! Context: the threads are the load; SETUP elsewhere.
//! Source: clock_gettime(2), clock_nanosleep(2), sched_setaffinity(2).

use std::hint::black_box;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tailbound_sys::ipc::SharedCounters;
use tailbound_sys::process::Pid;
use tailbound_sys::sched;

use crate::error::LoadError;
use crate::failure::{Explain, Failure};
use crate::kind::{CPUS, Load, LoadKind, Note, Start, Started, Turn};
use crate::options::Reader;
use crate::storm;

pub(crate) static CLOCK: LoadKind = LoadKind {
    name: "clock",
    unit: "sleeps",
    about: "reads clocks and sleeps briefly, one thread per CPU: timers and idle",
    options: &[CPUS],
    coarse: false,
    command: None,
    prepare: |_| Ok(Start::new((), |(), _| on_every_cpu(clock))),
};

pub(crate) static CPU: LoadKind = LoadKind {
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
    coarse: false,
    command: None,
    prepare: |r| Ok(Start::new(Options::read(r)?, start)),
};

/// Threads at work; also the base of other loads that want threads.
pub(crate) struct Threads {
    counters: Arc<SharedCounters>,
    failure: Arc<OnceLock<Failure>>,
    /// Threads that were started and have not come to an end of their own.
    left: Arc<AtomicUsize>,
    started: Instant,
}

impl Threads {
    pub(crate) fn new(threads: usize) -> Result<Self, Failure> {
        let counters = SharedCounters::new(threads)?;
        Ok(Self {
            counters: Arc::new(counters),
            failure: Arc::new(OnceLock::new()),
            left: Arc::new(AtomicUsize::new(0)),
            started: Instant::now(),
        })
    }

    /// Starts thread number `slot`, on one CPU if that is given. `work` returns an error when
    /// it cannot go on, and nothing at an end of its own.
    pub(crate) fn spawn(
        &self,
        slot: usize,
        cpu: Option<u32>,
        work: impl FnOnce(&dyn Fn(u64)) -> Result<(), Failure> + Send + 'static,
    ) -> Result<(), Failure> {
        let (counters, failure) = (Arc::clone(&self.counters), Arc::clone(&self.failure));
        let left = Arc::clone(&self.left);
        left.fetch_add(1, Ordering::Relaxed);
        let body = move || {
            let pinned = cpu.map_or(Ok(()), |cpu| sched::set_affinity(0, &[cpu]));
            let done =
                pinned.map_err(Failure::from).and_then(|()| work(&|n| counters.add(slot, n)));
            if let Err(why) = done {
                failure.get_or_init(|| why);
            }
            left.fetch_sub(1, Ordering::Release);
        };
        thread::Builder::new()
            .name(format!("load/{slot}"))
            .spawn(body)
            .map(drop)
            .on(format_args!("thread {}", slot + 1))
    }
}

impl Load for Threads {
    fn count(&self) -> u64 {
        self.counters.total()
    }

    fn turn(&mut self, _ended: &[(Pid, ExitStatus)]) -> Result<Turn, Failure> {
        // Before the failure is looked at: a thread that failed has told before it ended.
        let over = self.left.load(Ordering::Acquire) == 0;
        match self.failure.get() {
            Some(why) => Err(why.clone()),
            None if over => {
                let ns = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
                Ok(Turn::Done { elapsed_ns: ns })
            }
            None => Ok(Turn::Going),
        }
    }
}

/// Starts `work` on every CPU this process may use.
fn on_every_cpu(work: fn(&dyn Fn(u64)) -> Result<(), Failure>) -> Started {
    let cpus = sched::affinity(0)?;
    let threads = Threads::new(cpus.len())?;
    for (slot, cpu) in cpus.into_iter().enumerate() {
        threads.spawn(slot, Some(cpu), work)?;
    }
    Ok(Box::new(threads))
}

/// How much arithmetic: thousands of steps; `None`: without an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Options {
    loops: Option<u64>,
}

impl Options {
    fn read(r: &Reader<'_>) -> Result<Self, LoadError> {
        Ok(Self { loops: r.loops()? })
    }
}

/// In processes where there is an end, as its option says; otherwise in threads.
fn start(Options { loops }: Options, _: Note<'_>) -> Started {
    if loops.is_none() {
        return on_every_cpu(arithmetic);
    }
    let tasks = sched::affinity(0)?.len().max(1);
    storm::start(tasks, |_, count| steps(loops, count))
}

/// Integer and floating-point arithmetic that depends on itself, without an end.
fn arithmetic(count: &dyn Fn(u64)) -> Result<(), Failure> {
    steps(None, count)
}

/// The same, `loops` times 1000 steps where there is an end; counts every 1000.
fn steps(loops: Option<u64>, count: &dyn Fn(u64)) -> Result<(), Failure> {
    let (mut x, mut y) = (0x9e37_79b9_7f4a_7c15_u64, 1.0_f64);
    let mut left = loops;
    while left != Some(0) {
        left = left.map(|n| n - 1);
        for _ in 0..1000 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            // Not mul_add: without the instruction that is a call of the C library.
            y = y * 0.999_999 + 1e-9;
        }
        black_box((x, y));
        count(1);
    }
    Ok(())
}

/// Bursts of clock reads and sleeps of 20 to 260 µs; counts the sleeps.
fn clock(count: &dyn Fn(u64)) -> Result<(), Failure> {
    let mut x = 0x2545_f491_u32;
    loop {
        for _ in 0..100 {
            black_box((Instant::now(), SystemTime::now()));
        }
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let sleep = Duration::from_micros(20 + u64::from(x >> 24) % 241);
        #[expect(
            clippy::disallowed_methods,
            reason = "the sleep is the load; nobody waits for it"
        )]
        thread::sleep(sleep);
        count(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::read;

    #[test]
    fn options_are_read() {
        assert_eq!(read("cpu:loops=5", Options::read), Options { loops: Some(5) });
        assert_eq!(read("cpu", Options::read), Options { loops: None });
    }
}
