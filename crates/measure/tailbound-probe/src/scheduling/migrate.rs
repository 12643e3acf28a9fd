// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `rt-migrate`: do the N most urgent of more than N tasks get the N CPUs?
//!
//! Context: SETUP in `check` and `begin`, HOT in the tasks and the controller's trials. Units: ns.
//! At every due activation all tasks are released at once, and each is busy for a while. None
//! is pinned. The N most urgent must begin at once, each on a CPU of its own; one of the others
//! must not begin before as many of the more urgent ones have ended as its rank demands.
//! Source: sched(7); the kernel's push and pull of real-time tasks.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tailbound_core::finding::{Finding, Impact};
use tailbound_core::policy::Policy;
use tailbound_host::clock_id;
use tailbound_rt::cyclic::LoopEnd;
use tailbound_rt::recorder::Writer;
use tailbound_sys::clock::{self, CLOCK_MONOTONIC};
use tailbound_sys::error::SysError;

use super::bell::{Bell, Closing};
use super::ledger::Ledger;
use super::pace::Pace;
use super::trials::{self, Timed};
use super::{Phase, count, of_phase, span};
use crate::error::ProbeError;
use crate::kind::{Prepared, ProbeKind, ProbeOption, Setup};
use crate::thread_group::{
    Finished, ProbeOutput, RecordSlot, Recorders, Running, ThreadContext, thread_spec,
};

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "rt-migrate",
    about: "released at once, the N most urgent tasks begin at once on the N CPUs, the others later",
    from: "the controller, just before it releases all tasks (one futex wake)",
    to: "each of the N most urgent tasks, at its first instruction: a slot each, the most urgent first",
    replaces: &["rt-migrate-test", "LTP rt-migrate"],
    options: &[
        ProbeOption::new("busy", "TIME", "2ms", "so long each task is busy, at most 200ms"),
        ProbeOption::new("extra", "N", "1", "tasks more than CPUs"),
        ProbeOption::plant("`reversed`: the most urgent task is created as the least urgent"),
    ],
    interval: "20ms",
    policy: None,
    event: Some("release"),
    property: Some("no task began before the more urgent ones had their CPUs"),
    hog: false,
    takes: &[],
    prepare,
};

const BUSY_MAX_NS: i64 = 200_000_000;
const PATIENCE_NS: i64 = 3_000_000_000;

/// What the options say.
#[derive(Clone, Copy, Debug)]
struct Options {
    cpus: usize,
    tasks: usize,
    busy_ns: i64,
    reversed: bool,
    priority: u8,
}

impl Options {
    fn of(setup: &Setup<'_>) -> Result<Self, ProbeError> {
        let options = setup.options();
        let cpus = setup.cpus().len();
        let extra = usize::try_from(options.count("extra", 1..=32)?).unwrap_or(1);
        let busy_ns = options.time_ns("busy")?;
        if busy_ns > BUSY_MAX_NS {
            return Err(options.wrong("busy", format!("at most {}", span(BUSY_MAX_NS))));
        }
        let reversed = options.plant("reversed")?.is_present();
        let tasks = cpus + extra;
        let at_least = u8::try_from(tasks + 1).ok().filter(|p| *p <= 99);
        let at_least = at_least.ok_or(ProbeError::TooManyTasks { tasks })?;
        let priority = super::controller_priority(setup.plan, at_least)?;
        Ok(Self { cpus, tasks, busy_ns, reversed, priority })
    }

    /// The priority of the task of this rank; 0 is the most urgent.
    fn below(&self, rank: usize) -> Policy {
        let rank = match rank {
            0 if self.reversed => self.tasks - 1,
            r if self.reversed => r - 1,
            r => r,
        };
        let steps = u8::try_from(rank + 1).unwrap_or(u8::MAX);
        Policy::Fifo(self.priority.saturating_sub(steps).max(1))
    }
}

fn prepare(setup: &Setup<'_>) -> Result<Prepared, ProbeError> {
    let options = Options::of(setup)?;
    let rounds = i64::try_from(options.tasks.div_ceil(options.cpus.max(1)) + 1).unwrap_or(2);
    let busy_ns = options.busy_ns.saturating_mul(rounds);
    let interval_ns = setup.plan.interval_ns;
    if busy_ns > interval_ns {
        return Err(ProbeError::TooBusy { busy_ns, interval_ns });
    }
    super::realtime_allowed(setup, options.priority)?;
    Ok(Prepared::with(options, begin))
}

/// When a task began, ran and ended.
#[derive(Clone, Copy, Debug, Default)]
struct TaskStamps {
    first_ns: i64,
    end_ns: i64,
}

/// What all tasks share.
#[derive(Debug)]
struct Crowd {
    release: Bell,
    controller: Bell,
    left: AtomicU32,
    seen: Vec<Mutex<TaskStamps>>,
}

fn task(crowd: &Crowd, rank: usize, busy_ns: i64, clock_id: i32, stop: &AtomicBool) {
    let mut rings = 0;
    while let Some(ring) = crowd.release.wait(rings, stop) {
        rings = ring;
        let first_ns = clock::now_ns(clock_id);
        let mut pace = Pace::default();
        let end_ns = loop {
            let at = clock::now_ns(clock_id);
            let over = at - first_ns > busy_ns + PATIENCE_NS / 3;
            if pace.step(at) >= busy_ns || over || stop.load(Ordering::Relaxed) {
                break at;
            }
        };
        if let Some(place) = crowd.seen.get(rank) {
            *place.lock().unwrap_or_else(PoisonError::into_inner) = TaskStamps { first_ns, end_ns };
        }
        if crowd.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            crowd.controller.ring();
        }
    }
}

/// A task that began too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Proof {
    rank: usize,
    into_ns: i64,
    /// More urgent tasks that had ended by then.
    ended: usize,
    /// The most urgent one that had not even begun by then.
    idle: Option<usize>,
}

/// The first task, by rank, that began before its turn.
fn judge(seen: &[TaskStamps], cpus: usize, released_ns: i64) -> Option<Proof> {
    seen.iter().enumerate().skip(cpus).find_map(|(rank, own)| {
        let above = seen.get(..rank)?;
        let ended = above.iter().filter(|s| s.end_ns <= own.first_ns).count();
        let idle = above.iter().position(|s| s.first_ns > own.first_ns);
        (ended < rank - cpus + 1).then_some(Proof {
            rank,
            into_ns: own.first_ns - released_ns,
            ended,
            idle,
        })
    })
}

#[derive(Debug, Default)]
struct Sum {
    releases: u64,
    stuck: u64,
    ledger: Ledger<Proof>,
}

fn begin(setup: &Setup<'_>, options: Options) -> Result<Running, ProbeError> {
    let cpus = setup.cpus();
    let clock = clock_id(setup.plan.clock);
    let mut threads = setup.threads()?;
    let crowd = Arc::new(Crowd {
        release: Bell::default(),
        controller: Bell::default(),
        left: AtomicU32::new(0),
        seen: (0..options.tasks).map(|_| Mutex::default()).collect(),
    });
    for rank in 0..options.tasks {
        let own = Arc::clone(&crowd);
        threads.helper("task", thread_spec(options.below(rank), cpus.clone()), move |s| {
            task(&own, rank, options.busy_ns, clock, s.stop());
            Ok(())
        })?;
    }
    let mut own_thread = threads.thread(RecordSlot::user(0, None))?;
    let slots = (1u32..).take(options.cpus.saturating_sub(1));
    let beside = slots
        .map(|n| own_thread.beside(RecordSlot::user(n, None)))
        .collect::<Result<Vec<_>, _>>()?;
    let sum = Arc::new(Mutex::new(Sum::default()));
    let controller = Controller { crowd, options, clock, beside, sum: Arc::clone(&sum) };
    let own = thread_spec(setup.plan.policy, cpus);
    own_thread.start(own, move |thread| controller.run(thread))?;
    threads
        .after(move |_| probe_output(&sum.lock().unwrap_or_else(PoisonError::into_inner), options));
    threads.release()
}

struct Controller {
    crowd: Arc<Crowd>,
    options: Options,
    clock: i32,
    beside: Vec<Arc<Recorders>>,
    sum: Arc<Mutex<Sum>>,
}

impl Controller {
    fn run(&self, thread: &ThreadContext) -> Result<Finished, SysError> {
        let _closing = Closing(vec![&self.crowd.release, &self.crowd.controller]);
        let mut found = Sum::default();
        let mut seen = vec![TaskStamps::default(); self.options.tasks];
        // Memory is taken before the loops, not in them.
        let own = thread.recorders();
        let writers_of = |phase: Phase| -> Vec<Writer<'_>> {
            let schedule = match phase {
                Phase::WarmUp => thread.warm_up(),
                Phase::Measurement => thread.measurement(),
            };
            let all = own.into_iter().chain(&self.beside);
            all.map(|r| trials::writer(of_phase(r, phase), &schedule)).collect()
        };
        let mut of_phases = [Phase::WarmUp, Phase::Measurement].map(writers_of).into_iter();
        let finished = thread.phases(|schedule, _| {
            found = Sum::default();
            let Some(mut writers) = of_phases.next() else { return LoopEnd::Stopped(0) };
            trials::run(self.clock, schedule, &mut writers, thread.stop(), |n, writers| {
                let Some(released_ns) = self.trial(&mut seen) else {
                    found.stuck += u64::from(!thread.stop().load(Ordering::Relaxed));
                    return false;
                };
                found.releases += 1;
                if let Some(proof) = judge(&seen, self.options.cpus, released_ns) {
                    found.ledger.enter(n, proof);
                }
                for (seen, writer) in seen.iter().zip(writers) {
                    Timed { from_ns: released_ns, to_ns: seen.first_ns }.enter(n, writer);
                }
                true
            })
        });
        *self.sum.lock().unwrap_or_else(PoisonError::into_inner) = found;
        finished
    }

    /// Releases all and waits for all; when it was.
    fn trial(&self, seen: &mut [TaskStamps]) -> Option<i64> {
        let crowd = &*self.crowd;
        let until = clock::now_ns(CLOCK_MONOTONIC).saturating_add(PATIENCE_NS);
        crowd.left.store(u32::try_from(self.options.tasks).unwrap_or(0), Ordering::Release);
        let rung = crowd.controller.count();
        let released_ns = clock::now_ns(self.clock);
        crowd.release.ring();
        let over = crowd.controller.wait_until(rung, until);
        for (place, from) in seen.iter_mut().zip(&crowd.seen) {
            *place = *from.lock().unwrap_or_else(PoisonError::into_inner);
        }
        over.then_some(released_ns)
    }
}

fn probe_output(sum: &Sum, options: Options) -> ProbeOutput {
    let mut output = ProbeOutput::default();
    let title =
        |n| format!("a task began before the more urgent ones had their CPUs, in {n} releases");
    output.findings.extend(
        sum.ledger
            .finding("wrong-task-began", title, |p| {
                let idle = p.idle.map_or(String::new(), |rank| {
                    format!(", while the task of rank {} had not begun", rank + 1)
                });
                format!(
                    "the task of rank {} of {} began {} after the release, when {} more urgent ones had ended{idle}",
                    p.rank + 1,
                    options.tasks,
                    span(p.into_ns),
                    p.ended
                )
            })
            .map(|f| f.remedy("A ready task must not wait while a less urgent one has a CPU it may use: look at the scheduler features RT_PUSH_IPI and RT_RUNTIME_SHARE, and at cpusets that split these CPUs.")),
    );
    if sum.stuck > 0 {
        output.findings.push(
            Finding::new(
                "trial-stuck",
                Impact::Violation,
                "a task had not ended seconds after its release",
            )
            .remedy("Look for real-time tasks above the controller that do not sleep."),
        );
    }
    let tasks = format!("of {} tasks onto {} CPUs", options.tasks, options.cpus);
    output.figures.extend([
        count("releases", sum.releases, &tasks),
        count("violations", sum.ledger.n(), "of them, those in which a task began before its turn"),
    ]);
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(times: &[(i64, i64)]) -> Vec<TaskStamps> {
        times.iter().map(|&(first_ns, end_ns)| TaskStamps { first_ns, end_ns }).collect()
    }

    #[test]
    fn a_task_has_its_turn_when_as_many_have_ended_as_its_rank_demands() {
        assert_eq!(judge(&seen(&[(5, 105), (6, 106), (107, 200)]), 2, 0), None);
        assert_eq!(judge(&seen(&[(5, 105), (6, 106), (105, 200), (106, 210)]), 2, 0), None);
        let early = judge(&seen(&[(9, 105), (6, 106), (7, 200)]), 2, 1).expect("rank 2 was early");
        assert_eq!(early, Proof { rank: 2, into_ns: 6, ended: 0, idle: Some(0) });
        let early = judge(&seen(&[(5, 105), (6, 106), (110, 200), (107, 210)]), 2, 0);
        assert!(early.is_none(), "two had ended when the fourth began: {early:?}");
        let early = judge(&seen(&[(5, 105), (6, 206), (110, 200), (107, 210)]), 2, 0);
        assert_eq!(early.map(|p| (p.rank, p.ended, p.idle)), Some((3, 1, Some(2))));
    }
}
