// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `periodic-load`: several tasks of different periods and priorities on each CPU; does
//! each end within its period, and how much does what it uses vary?
//!
//! Context: SETUP in `check` and `begin`, HOT in the bodies. Units: ns.
//! Priorities are rate-monotonic: the shorter the period, the more urgent. The task of the
//! shortest period is judged by the run's deadline; that a task is done after its period fails
//! the run for any of them.
//! Source: sched(7); Liu and Layland, Scheduling Algorithms for Multiprogramming (1973).

use std::sync::{Arc, Mutex, PoisonError};

use tailbound_core::finding::Impact;
use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::policy::Policy;
use tailbound_core::{Context, Finding};
use tailbound_host::clock_id;
use tailbound_rt::cyclic::{LoopEnd, Schedule};
use tailbound_rt::recorder::{Recorder, Writer};
use tailbound_sys::clock::{CLOCK_THREAD_CPUTIME_ID, now_ns};
use tailbound_sys::error::SysError;
use tailbound_sys::thread;

use super::work::{self, Work};
use super::{figure, span};
use crate::error::ProbeError;
use crate::kind::{PlantedFault, Prepared, ProbeKind, ProbeOption, Setup};
use crate::thread_group::{
    Finished, ProbeOutput, RecordSlot, Running, ThreadContext, ThreadGroup, thread_spec,
};

/// Most tasks of a set; also the slots of a CPU.
const TASKS_MAX: usize = 6;
const CONTEXTS: [Context; TASKS_MAX] =
    [Context::User, Context::Task2, Context::Task3, Context::Task4, Context::Task5, Context::Task6];
/// Share of a CPU that a set may ask for.
const BUSY_MAX: f64 = 0.85;
const MULTIPLE_MAX: u64 = 1000;
const PLANT_EVERY: u64 = 50;

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "periodic-load",
    about: "tasks of several periods and priorities at once: is each done within its period?",
    from: "the moment a task's job is due",
    to: "the clock reading right after the job",
    replaces: &["LTP periodic_cpu_load", "LTP sched_latency"],
    options: &[
        ProbeOption::new(
            "set",
            "LIST",
            "1:20+2:20+4:20",
            "the tasks, each as PERIOD:SHARE: the period in intervals and the work in percent of the period; the first task is judged",
        ),
        ProbeOption::plant("`overrun`: every fiftieth job of the last task takes twice its period"),
    ],
    interval: "5ms",
    policy: Some("fifo:80"),
    event: Some("job"),
    property: Some("each task of the set was done within its period"),
    hog: false,
    takes: &[],
    prepare,
};

/// One task of the set.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Task {
    /// Its period, in intervals.
    multiple: u64,
    /// Its work, as a share of its period.
    share: f64,
}

#[derive(Clone, Debug)]
struct Options {
    /// The shortest period first.
    tasks: Vec<Task>,
    /// Of the first task; each further one is one below.
    priority: u8,
    planted: PlantedFault,
}

fn task(text: &str) -> Option<Task> {
    let (multiple, percent) = text.split_once(':')?;
    let multiple = multiple.trim().parse().ok().filter(|m| (1..=MULTIPLE_MAX).contains(m))?;
    let percent: f64 = percent.trim().trim_end_matches('%').parse().ok()?;
    (percent > 0.0 && percent < 100.0).then_some(Task { multiple, share: percent / 100.0 })
}

impl Options {
    fn of(setup: &Setup<'_>) -> Result<Self, ProbeError> {
        let options = setup.options();
        let text = options.text("set").unwrap_or_default();
        let tasks: Option<Vec<Task>> = text.split('+').map(task).collect();
        let Some(tasks) = tasks.filter(|t| (1..=TASKS_MAX).contains(&t.len())) else {
            return Err(options.wrong(
                "set",
                format!(
                    "write one to {TASKS_MAX} tasks as MULTIPLE:PERCENT, joined by +: 1:20+2:20"
                ),
            ));
        };
        let in_order = tasks.windows(2).all(|w| matches!(w, [a, b] if a.multiple <= b.multiple));
        if tasks.first().is_none_or(|t| t.multiple != 1) || !in_order {
            return Err(options.wrong(
                "set",
                "the first period is 1 interval, and none is shorter than the one before it",
            ));
        }
        let share: f64 = tasks.iter().map(|t| t.share).sum();
        if share > BUSY_MAX {
            return Err(options.wrong(
                "set",
                format!(
                    "asks for {:.0} % of a CPU, at most {:.0} % can be kept",
                    share * 100.0,
                    BUSY_MAX * 100.0
                ),
            ));
        }
        let planted = options.plant("overrun")?;
        let below = u8::try_from(tasks.len()).unwrap_or(1);
        let priority = super::priority(
            setup,
            below..=99,
            "each task of the set has a priority of its own, down from this",
        )?;
        Ok(Self { tasks, priority, planted })
    }
}

fn prepare(setup: &Setup<'_>) -> Result<Prepared, ProbeError> {
    let options = Options::of(setup)?;
    crate::allowed(Policy::Fifo(options.priority))?;
    Ok(Prepared::with(options, begin))
}

/// What the threads of one task saw.
#[derive(Clone, Copy, Debug, Default)]
struct JobTally {
    jobs: u64,
    late: u64,
    latest_ns: i64,
    cpu_ns_min: Option<i64>,
    cpu_ns_max: i64,
}

impl JobTally {
    fn add(&mut self, other: &Self) {
        self.jobs += other.jobs;
        self.late += other.late;
        self.latest_ns = self.latest_ns.max(other.latest_ns);
        self.cpu_ns_max = self.cpu_ns_max.max(other.cpu_ns_max);
        self.cpu_ns_min = self.cpu_ns_min.into_iter().chain(other.cpu_ns_min).min();
    }
}

fn begin(setup: &Setup<'_>, options: Options) -> Result<Running, ProbeError> {
    let mut threads = setup.threads()?;
    let interval = setup.plan.interval_ns;
    let cpus = setup.cpus();
    let lengths: Vec<i64> = options.tasks.iter().map(|t| length_ns(*t, interval)).collect();
    let own = thread_spec(setup.plan.policy, cpus.first().copied().into_iter().collect());
    let works: Vec<Work> =
        thread::spawn(own, move || lengths.into_iter().map(Work::that_takes).collect())?.join()?;
    let sums: Arc<Mutex<Vec<JobTally>>> =
        Arc::new(Mutex::new(vec![JobTally::default(); options.tasks.len()]));
    let clock = clock_id(setup.plan.clock);
    for (cpu, place) in cpus.iter().zip(0u32..) {
        one_cpu(&mut threads, &options, &works, (*cpu, place, clock), &sums)?;
    }
    threads.after(move |_| {
        let sums = sums.lock().unwrap_or_else(PoisonError::into_inner);
        probe_output(&options, &sums, interval)
    });
    threads.release()
}

fn length_ns(task: Task, interval_ns: i64) -> i64 {
    (task.share * task.multiple.real() * interval_ns.real()).whole_i64()
}

fn one_cpu(
    threads: &mut ThreadGroup,
    options: &Options,
    works: &[Work],
    (cpu, place, clock): (u32, u32, i32),
    sums: &Arc<Mutex<Vec<JobTally>>>,
) -> Result<(), ProbeError> {
    let n = options.tasks.len();
    for (i, (task, work)) in options.tasks.iter().zip(works).enumerate() {
        let below = u8::try_from(i).unwrap_or(0);
        let thread = place * u32::try_from(TASKS_MAX).unwrap_or(1) + u32::from(below);
        let context = CONTEXTS.get(i).copied().unwrap_or(Context::Task6);
        let slot = RecordSlot { context, ..RecordSlot::user(thread, Some(cpu)) };
        let own =
            thread_spec(Policy::Fifo(options.priority.saturating_sub(below).max(1)), vec![cpu]);
        let player = Player {
            task: *task,
            work: *work,
            clock,
            plant: options.planted.is_present() && i + 1 == n,
        };
        let sums = Arc::clone(sums);
        threads.measured(slot, own, move |thread| {
            let (finished, seen) = player.play(thread)?;
            if let Some(sum) = sums.lock().unwrap_or_else(PoisonError::into_inner).get_mut(i) {
                sum.add(&seen);
            }
            Ok(finished)
        })?;
    }
    Ok(())
}

/// One thread of the set.
#[derive(Clone, Copy)]
struct Player {
    task: Task,
    work: Work,
    clock: i32,
    plant: bool,
}

impl Player {
    fn play(self, thread: &ThreadContext) -> Result<(Finished, JobTally), SysError> {
        let mut seen = JobTally::default();
        let finished = thread.phases(|schedule, recorder| {
            seen = JobTally::default();
            self.phase(thread, schedule, recorder, &mut seen)
        })?;
        Ok((finished, seen))
    }

    fn phase(
        self,
        thread: &ThreadContext,
        schedule: &Schedule,
        recorder: &Recorder,
        seen: &mut JobTally,
    ) -> LoopEnd {
        let multiple = self.task.multiple.max(1);
        let own = Schedule {
            interval_ns: schedule.interval_ns.saturating_mul(multiple.cast_signed()),
            activations: schedule.activations.div_ceil(multiple),
            ..*schedule
        };
        let mut writer = Writer::new(recorder, own.first_ns, own.interval_ns);
        work::run(self.clock, &own, &mut writer, thread.stop(), |due| {
            let before = now_ns(CLOCK_THREAD_CPUTIME_ID);
            self.work.job();
            if self.plant && due.n.wrapping_add(1).is_multiple_of(PLANT_EVERY) {
                let until = now_ns(self.clock).wrapping_add(own.interval_ns.wrapping_mul(2));
                while now_ns(self.clock) < until {
                    std::hint::spin_loop();
                }
            }
            let cpu = now_ns(CLOCK_THREAD_CPUTIME_ID).wrapping_sub(before);
            let took = now_ns(self.clock).wrapping_sub(due.due_ns);
            seen.jobs = seen.jobs.wrapping_add(1);
            seen.late = seen.late.wrapping_add(u64::from(took > own.interval_ns));
            seen.latest_ns = seen.latest_ns.max(took);
            seen.cpu_ns_max = seen.cpu_ns_max.max(cpu);
            seen.cpu_ns_min = Some(seen.cpu_ns_min.map_or(cpu, |least| least.min(cpu)));
        })
    }
}

/// Figures of each task; a task that was late is a violation.
fn probe_output(options: &Options, sums: &[JobTally], interval_ns: i64) -> ProbeOutput {
    let mut output = ProbeOutput::default();
    for (i, (task, seen)) in options.tasks.iter().zip(sums).enumerate() {
        let n = i + 1;
        let period = interval_ns.saturating_mul(task.multiple.cast_signed());
        let note = format!(
            "CPU time of the longest job of task {n}, every {}, of {} jobs",
            span(period),
            seen.jobs
        );
        let least = seen.cpu_ns_min.unwrap_or(0);
        output.figures.extend([
            figure(format!("task-{n}-cpu-max"), seen.cpu_ns_max.real(), "ns", note),
            figure(
                format!("task-{n}-cpu-variation"),
                (seen.cpu_ns_max - least).real(),
                "ns",
                "between its longest and its shortest job",
            ),
            figure(format!("task-{n}-late"), seen.late.real(), "1", "jobs done after their period"),
        ]);
        if seen.late > 0 {
            output.findings.push(
                Finding::listed(
                    &format!("period-missed-{n}"),
                    Impact::Violation,
                    format!(
                        "task {n} was done after its period of {} in {} of {} jobs, {} after it was due at the latest",
                        span(period),
                        seen.late,
                        seen.jobs,
                        span(seen.latest_ns)
                    ),
                ),
            );
        }
    }
    output
}
