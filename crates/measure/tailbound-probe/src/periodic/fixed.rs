// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `fixed-work`: how long the same work takes each time, while a more urgent thread
//! ticks on the same CPU.
//!
//! Context: SETUP in `check` and `begin`, HOT in the bodies. Units: ns.
//! Judged is from due to done; beside it stand the start and the work itself. The same amount of
//! work is done by one thread alone and by one on each CPU at once afterwards: what CPUs share
//! (caches, clock, power) shows in the ratio.
//! Source: sched(7), SCHED_FIFO.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tailbound_core::finding::Impact;
use tailbound_core::number::Real as _;
use tailbound_core::policy::Policy;
use tailbound_core::{Context, Finding};
use tailbound_host::clock_id;
use tailbound_rt::cyclic::{Port as _, Wake};
use tailbound_rt::recorder::{Recorder, Writer};
use tailbound_sys::clock::{CLOCK_MONOTONIC, Nanosleep, now_ns};
use tailbound_sys::error::SysError;
use tailbound_sys::thread;

use super::work::{self, Work};
use super::{figure, span};
use crate::error::ProbeError;
use crate::kind::{PlantedFault, Prepared, ProbeKind, ProbeOption, Setup};
use crate::thread_group::{
    ProbeOutput, RecordSlot, Running, ThreadContext, ThreadGroup, ThreadResult, thread_spec,
};

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "fixed-work",
    about: "the same amount of work over and over, while a more urgent thread ticks: how much longer it takes",
    from: "the moment the work is due",
    to: "the clock reading right after the work",
    replaces: &["LTP sched_jitter", "LTP matrix_mult"],
    options: &[
        ProbeOption::new(
            "amount",
            "TIME",
            "200us",
            "work that takes so long on an undisturbed CPU",
        ),
        ProbeOption::new(
            "tick",
            "TIME",
            "1ms",
            "how often the more urgent thread runs; `0` for never",
        ),
        ProbeOption::new("tick-amount", "TIME", "20us", "what it does each time"),
        ProbeOption::plant("`more`: every hundredth job is ten times as long"),
    ],
    interval: "1ms",
    policy: Some("fifo:50"),
    event: Some("job"),
    property: None,
    hog: false,
    takes: &[],
    prepare,
};

/// Share of a CPU that the thread and the one that ticks may ask for.
const BUSY_MAX: f64 = 0.8;
const PLANT_EVERY: u64 = 100;
const PLANT_TIMES: u64 = 10;
/// Slots of a CPU.
const SLOTS: u32 = 3;
/// Jobs in each part of the comparison of one CPU with all.
const SCALING_JOBS: u64 = 50;

#[derive(Clone, Copy, Debug)]
struct Options {
    amount_ns: i64,
    /// 0: no thread ticks.
    tick_ns: i64,
    tick_amount_ns: i64,
    priority: u8,
    planted: PlantedFault,
}

impl Options {
    fn of(setup: &Setup<'_>) -> Result<Self, ProbeError> {
        let options = setup.options();
        let never = options.text("tick") == Some("0");
        let planted = options.plant("more")?;
        Ok(Self {
            amount_ns: options.time_ns("amount")?,
            tick_ns: if never { 0 } else { options.time_ns("tick")? },
            tick_amount_ns: options.time_ns("tick-amount")?,
            priority: super::priority(setup, 1..=98, "the thread that ticks is one above it")?,
            planted,
        })
    }
}

fn prepare(setup: &Setup<'_>) -> Result<Prepared, ProbeError> {
    let options = Options::of(setup)?;
    let ticking = if options.tick_ns > 0 {
        options.tick_amount_ns.real() / options.tick_ns.real()
    } else {
        0.0
    };
    let share = options.amount_ns.real() / setup.plan.interval_ns.real() + ticking;
    if share > BUSY_MAX {
        return Err(ProbeError::TooMuchWork {
            amount_ns: options.amount_ns,
            interval_ns: setup.plan.interval_ns,
            tick_amount_ns: options.tick_amount_ns,
            share,
            most: BUSY_MAX,
        });
    }
    crate::allowed(Policy::Fifo(options.priority + 1))?;
    Ok(Prepared::with(options, begin))
}

fn begin(setup: &Setup<'_>, options: Options) -> Result<Running, ProbeError> {
    let mut threads = setup.threads()?;
    let cpus = setup.cpus();
    let clock = clock_id(setup.plan.clock);
    // Found where the work will be done, by a thread like the one that will do it.
    let cpu = cpus.first().copied();
    let own = thread_spec(setup.plan.policy, cpu.into_iter().collect());
    let amounts = (options.amount_ns, options.tick_amount_ns);
    let (job, tick) =
        thread::spawn(own, move || (Work::that_takes(amounts.0), Work::that_takes(amounts.1)))?
            .join()?;
    for (cpu, place) in cpus.iter().zip(0u32..) {
        one_cpu(&mut threads, setup, options, (*cpu, place, clock), (job, tick))?;
    }
    let policy = setup.plan.policy;
    threads.after(move |results| {
        let mut output = probe_output(results, job);
        scaling(&mut output, policy, &cpus, job);
        output
    });
    threads.release()
}

fn one_cpu(
    threads: &mut ThreadGroup,
    setup: &Setup<'_>,
    options: Options,
    (cpu, place, clock): (u32, u32, i32),
    (job, tick): (Work, Work),
) -> Result<(), ProbeError> {
    let slot =
        |n: u32, context| RecordSlot { context, ..RecordSlot::user(place * SLOTS + n, Some(cpu)) };
    let over = Arc::new(AtomicBool::new(false));
    if options.tick_ns > 0 {
        let over = Arc::clone(&over);
        let above = thread_spec(Policy::Fifo(options.priority + 1), vec![cpu]);
        threads.helper("the thread that ticks", above, move |thread| {
            ticks(thread, clock, options.tick_ns, tick, &over);
            Ok(())
        })?;
    }
    let mut worker = threads.thread(slot(0, Context::User))?;
    let beside = [worker.beside(slot(1, Context::Start))?, worker.beside(slot(2, Context::Work))?];
    worker.start(thread_spec(setup.plan.policy, vec![cpu]), move |thread| {
        let mut measuring = false;
        let finished = thread.phases(|schedule, recorder| {
            let mut writers = beside.each_ref().map(|r| {
                let shared: &Recorder = if measuring { &r.measured } else { &r.warm_up };
                Writer::new(shared, schedule.first_ns, schedule.interval_ns)
            });
            measuring = true;
            let [start, length] = &mut writers;
            let mut writer = Writer::new(recorder, schedule.first_ns, schedule.interval_ns);
            let ended = work::run(clock, schedule, &mut writer, thread.stop(), |due| {
                let from = now_ns(clock);
                let planted = options.planted.is_present()
                    && due.n.wrapping_add(1).is_multiple_of(PLANT_EVERY);
                for _ in 0..if planted { PLANT_TIMES } else { 1 } {
                    job.job();
                }
                let took = now_ns(clock).wrapping_sub(from);
                start.wake(due.n, due.due_ns, due.woken_ns, 0);
                length.wake(due.n, due.due_ns, due.due_ns.wrapping_add(took), 0);
            });
            writers.iter_mut().for_each(Writer::finish);
            ended
        });
        over.store(true, Ordering::Relaxed);
        finished
    })
}

/// Runs every tick until the others are done.
fn ticks(thread: &ThreadContext, clock: i32, tick_ns: i64, tick: Work, over: &AtomicBool) {
    let mut sleep = Nanosleep(clock);
    // Not at the begin of the work, where its thread would only be late.
    let mut due = thread.warm_up().first_ns.wrapping_add(tick_ns / 3);
    while !over.load(Ordering::Relaxed) && !thread.stop().load(Ordering::Relaxed) {
        if sleep.sleep_until(due) == Wake::Due {
            tick.job();
        }
        let behind = sleep.now_ns().wrapping_sub(due).max(0);
        let steps = behind.wrapping_div(tick_ns.max(1)).wrapping_add(1);
        due = due.wrapping_add(tick_ns.wrapping_mul(steps));
    }
}

fn probe_output(results: &[ThreadResult], job: Work) -> ProbeOutput {
    let work = || results.iter().filter(|r| r.slot.context == Context::Work);
    let least = work().filter_map(|r| r.recorders.measured.wakeups().min_ns).min();
    let most = work().filter_map(|r| r.recorders.measured.wakeups().max_ns).max();
    let mut output = ProbeOutput::default();
    let turns = job.turns.real();
    output.figures.push(figure("work-turns", turns, "1", "turns of the loop in each job"));
    if let (Some(least), Some(most)) = (least, most) {
        output.figures.extend([
            figure("work-least", least.real(), "ns", "the fastest job, from its begin to its end"),
            figure("work-most", most.real(), "ns", "the slowest one"),
            figure("work-jitter", (most - least).real(), "ns", "between them"),
        ]);
    }
    output
}

/// The same number of jobs by one thread alone and by one on each CPU at once.
fn scaling(output: &mut ProbeOutput, policy: Policy, cpus: &[u32], job: Work) {
    let timed = |cpus: &[u32]| -> Result<i64, SysError> {
        let one = move || {
            let from = now_ns(CLOCK_MONOTONIC);
            for _ in 0..SCALING_JOBS {
                job.job();
            }
            now_ns(CLOCK_MONOTONIC).wrapping_sub(from)
        };
        let threads: Vec<_> = cpus
            .iter()
            .map(|cpu| thread::spawn(thread_spec(policy, vec![*cpu]), one))
            .collect::<Result<_, _>>()?;
        // Each times its own work: when it began beside the others does not matter much.
        threads.into_iter().map(thread::Thread::join).try_fold(0, |most, t| Ok(most.max(t?)))
    };
    if cpus.len() < 2 {
        return;
    }
    let (Some(first), n) = (cpus.get(..1), cpus.len().real()) else {
        return;
    };
    match (timed(first), timed(cpus)) {
        (Ok(alone), Ok(together)) if together > 0 => output.figures.push(figure(
            "scaling",
            alone.real() / together.real(),
            "1",
            format!(
                "{SCALING_JOBS} jobs on one CPU took {}, as many on each of {n} at once {}: 1 means that they share nothing",
                span(alone),
                span(together)
            ),
        )),
        (Err(e), _) | (_, Err(e)) => output.findings.push(Finding::new(
            "scaling-unknown",
            Impact::Notice,
            format!("the scaling of the work over CPUs is unknown: {e}"),
        )),
        _ => {}
    }
}
