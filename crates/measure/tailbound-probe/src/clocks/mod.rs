// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `clocks`: what reading a clock costs, and whether clocks ever go back.
//!
//! Context: SETUP in `check` and `begin`. Units: ns.
//! At each due moment every measured CPU reads the chosen clock twice: from one reading to the
//! next is the judged figure. Then it reads one of all clocks in turn, in bursts: what a read
//! costs, and whether any reading is earlier than one that another CPU had finished before.
//! Source: clock_gettime(2), vdso(7), Documentation/timers/timekeeping.rst.

mod burst;
mod drift;
mod findings;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use tailbound_host::clock_id;
use tailbound_rt::cyclic::{LoopEnd, Port as _, Schedule, Wake};
use tailbound_rt::recorder::{Recorder, Writer};
use tailbound_sys::clock::Nanosleep;
use tailbound_sys::error::SysError;
use tailbound_sys::readings::{READINGS, Reading};

use crate::error::ProbeError;
use crate::kind::{PlantedFault, Prepared, ProbeKind, ProbeOption, Setup};
use crate::thread_group::{Finished, RecordSlot, Running, ThreadContext, thread_spec};
use burst::{Newest, Tally};
use drift::Drift;

/// Clocks fine enough that two readings tell what lies between them.
const CHOICE: [&str; 8] = [
    "monotonic",
    "monotonic-raw",
    "realtime",
    "boottime",
    "tai",
    "gettimeofday",
    "thread-cpu",
    "process-cpu",
];

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "clocks",
    about: "clocks: what a read of each costs, and whether any goes back, on one CPU or across them",
    from: "one reading of the chosen clock",
    to: "the next reading of it by the same thread, taken at once",
    replaces: &[
        "LTP gtod_latency",
        "LTP gtod_infinite",
        "LTP rdtsc-latency",
        "LTP thread_clock tc-2",
    ],
    options: &[
        ProbeOption::new(
            "of",
            "CLOCK",
            "monotonic",
            "the judged clock: `monotonic`, `monotonic-raw`, `realtime`, `boottime`, `tai`, `gettimeofday`, `thread-cpu`, `process-cpu`",
        ),
        ProbeOption::new("burst", "N", "64", "reads of one of all clocks in turn, after each pair"),
        ProbeOption::plant(
            "`backward`: every thousandth reading of CLOCK_MONOTONIC is 10 µs too low",
        ),
    ],
    interval: "1ms",
    policy: None,
    event: Some("pair"),
    property: Some("no clock went back, and thread clocks added up to the process clock"),
    hog: false,
    takes: &[],
    prepare,
};

/// What the options say.
#[derive(Clone, Copy, Debug)]
struct Options {
    of: Reading,
    burst: usize,
    planted: PlantedFault,
}

impl Options {
    fn of(setup: &Setup<'_>) -> Result<Self, ProbeError> {
        let options = setup.options();
        let name = CHOICE.get(options.word("of", &CHOICE)?).copied().unwrap_or_default();
        let of = READINGS.iter().find(|(n, _)| *n == name).map(|(_, r)| *r);
        let planted = options.plant("backward")?;
        Ok(Self {
            of: of.ok_or_else(|| options.wrong("of", "no such clock"))?,
            burst: usize::try_from(options.count("burst", 16..=4096)?).unwrap_or(64),
            planted,
        })
    }
}

fn prepare(setup: &Setup<'_>) -> Result<Prepared, ProbeError> {
    let options = Options::of(setup)?;
    options.of.resolution_ns().map_err(ProbeError::UnknownClock)?;
    Ok(Prepared::with(options, begin))
}

fn begin(setup: &Setup<'_>, options: Options) -> Result<Running, ProbeError> {
    let mut threads = setup.threads()?;
    let newest = Arc::new(Newest::default());
    let sum = Arc::new(Mutex::new(Vec::new()));
    let clock = clock_id(setup.plan.clock);
    for (cpu, thread) in setup.cpus().into_iter().zip(0u32..) {
        let (newest, sum) = (Arc::clone(&newest), Arc::clone(&sum));
        let own = thread_spec(setup.plan.policy, vec![cpu]);
        // All at once: clocks of two CPUs are compared while both are read.
        threads.measured(RecordSlot::user(thread, Some(cpu)), own, move |thread| {
            run(thread, options, clock, &newest, &sum)
        })?;
    }
    let source = setup
        .root
        .read_trimmed("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        .unwrap_or_else(|_| "unknown".to_owned());
    let drift = Drift::begin();
    threads.after(move |_| {
        let tallies = std::mem::take(&mut *sum.lock().unwrap_or_else(PoisonError::into_inner));
        findings::output(&tallies, &source, drift)
    });
    threads.release()
}

fn run(
    thread: &ThreadContext,
    options: Options,
    clock: i32,
    newest: &Newest,
    sum: &Mutex<Vec<Tally>>,
) -> Result<Finished, SysError> {
    let mut tally = Tally::new();
    let finished = thread.phases(|schedule, recorder| {
        tally.clear();
        phase(thread, options, clock, (schedule, recorder), newest, &mut tally)
    });
    sum.lock().unwrap_or_else(PoisonError::into_inner).push(tally);
    finished
}

/// Every due pair is read, however late its moment comes: none is missed.
fn phase(
    thread: &ThreadContext,
    options: Options,
    clock: i32,
    (schedule, recorder): (&Schedule, &Recorder),
    newest: &Newest,
    tally: &mut Tally,
) -> LoopEnd {
    let mut sleep = Nanosleep(clock);
    let mut writer = Writer::new(recorder, schedule.first_ns, schedule.interval_ns);
    let mut ended = LoopEnd::Complete;
    let mut n = 0u64;
    while n < schedule.activations {
        if thread.stop().load(Ordering::Relaxed) {
            ended = LoopEnd::Stopped(n);
            break;
        }
        let step = schedule.interval_ns.wrapping_mul(n.cast_signed());
        let due = schedule.first_ns.wrapping_add(step);
        match sleep.sleep_until(due) {
            Wake::Due => {}
            Wake::Interrupted => continue,
            Wake::Failed(errno) => {
                ended = LoopEnd::Failed(errno, n);
                break;
            }
        }
        let first = options.of.read();
        let second = options.of.read();
        writer.wake(n, due, due.wrapping_add(second.wrapping_sub(first)), 0);
        tally.burst(n, options.burst, options.planted, newest);
        n = n.wrapping_add(1);
    }
    writer.finish();
    ended
}
