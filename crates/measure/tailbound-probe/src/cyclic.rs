// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `cyclic`: one thread a slot that sleeps to absolute times.
//!
//! Context: SETUP until the common epoch, then HOT in the threads. Units: ns.
//! Thread k of n is phased k/n of an interval, so that they do not all wake at once. The
//! warm-up runs the very same code into a recorder of its own: what it saw is discarded
//! *and* reported.
//! Not here: how threads are made, released and brought result ([`crate::thread_group`]).
//! Source: sched(7), clock_nanosleep(2).

use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::plan::{Means, Plan};
use tailbound_core::policy::Policy;
use tailbound_host::clock_id;
use tailbound_rt::cyclic::{self, Port};
use tailbound_rt::cyclic_spread;
use tailbound_rt::spread::Spread;
use tailbound_sys::clock::{Nanosleep, NanosleepRelative};
use tailbound_sys::cobalt::Cobalt;
use tailbound_sys::error::SysError;
use tailbound_sys::evl::Evl;
use tailbound_sys::limits;
use tailbound_sys::sleep::{
    self, Epoll, Itimer, Left, PlainNanosleep, Poll, Select, UntilDue, Usleep,
};
use tailbound_sys::timer::{PosixTimer, Timerfd};

use crate::error::ProbeError;
use crate::kind::{PlanOption, Prepared, ProbeKind, Setup};
use crate::thread_group::{Finished, RecordSlot, Running, ThreadContext, ThreadGroup, thread_spec};

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "cyclic",
    about: "Timer wake-ups: sleep until absolute times and record how late the thread woke",
    from: "the due time of its sleep",
    to: "the first clock read after the sleep returned",
    replaces: &["cyclictest"],
    options: &[],
    interval: "1ms",
    policy: None,
    event: None,
    property: None,
    hog: false,
    takes: PlanOption::ALL,
    prepare,
};

/// One slot a CPU of the plan, phased over one interval; or as many as the plan has tasks, not
/// pinned and all due together: what parallel sleepers do to each other is the question then.
#[must_use]
pub fn slots(plan: &Plan) -> Vec<RecordSlot> {
    if let Some(tasks) = plan.tasks {
        return (0..tasks).map(|thread| RecordSlot::user(thread, None)).collect();
    }
    let n = i64::try_from(plan.cpus.len().max(1)).unwrap_or(1);
    let pinned = !matches!(plan.policy, Policy::Deadline { .. });
    plan.cpus
        .iter()
        .zip(0u32..)
        .map(|(cpu, thread)| RecordSlot {
            phase_ns: plan.interval_ns / n * i64::from(thread),
            ..RecordSlot::user(thread, pinned.then_some(cpu))
        })
        .collect()
}

/// All its options are those of the plan.
fn prepare(_: &Setup<'_>) -> Result<Prepared, ProbeError> {
    Ok(Prepared::with((), begin))
}

/// One thread a slot.
fn begin(setup: &Setup<'_>, (): ()) -> Result<Running, ProbeError> {
    let plan = setup.plan;
    let mut threads = ThreadGroup::new(plan, setup.stop)?.beginning(setup.begin_at_ns);
    if plan.means == Means::Itimer {
        // Its signal is the process's: whoever does not block it takes it away.
        sleep::block_alarm()?;
    }
    let id = clock_id(plan.clock);
    for slot in slots(plan) {
        // Tasks that are not pinned still keep to the measured CPUs, which their creator has left.
        let cpus = match (slot.cpu, plan.tasks) {
            (None, Some(_)) => plan.cpus.iter().collect(),
            (cpu, _) => cpu.into_iter().collect(),
        };
        let work = Work {
            means: plan.means,
            clock: id,
            paranoid: plan.paranoid,
            timer_slack_ns: plan.timer_slack_ns,
            spread: spread(plan, slot),
        };
        threads.measured(slot, thread_spec(plan.policy, cpus), move |thread| work.run(thread))?;
    }
    threads.release()
}

/// How the due times of a thread are spread; each thread draws its own.
fn spread(plan: &Plan, slot: RecordSlot) -> Option<Spread> {
    plan.spread.map(|s| Spread {
        seed: s.seed.wrapping_add(u64::from(slot.thread) << 32),
        window_ns: (s.share * plan.interval_ns.real()).whole_i64(),
    })
}

/// What one thread is to do.
struct Work {
    means: Means,
    clock: i32,
    paranoid: bool,
    timer_slack_ns: Option<i64>,
    spread: Option<Spread>,
}

impl Work {
    fn run(&self, thread: &ThreadContext) -> Result<Finished, SysError> {
        let schedule = thread.warm_up();
        let (first, interval) = (schedule.first_ns, schedule.interval_ns);
        match self.means {
            Means::Nanosleep => self.with(thread, Nanosleep(self.clock)),
            Means::NanosleepRelative => self.with(thread, NanosleepRelative(self.clock)),
            Means::Timerfd => self.with(thread, Timerfd::new(self.clock, first, interval)?),
            Means::PosixTimer => self.with(thread, PosixTimer::new(self.clock, first, interval)?),
            Means::Itimer => self.with(thread, UntilDue(self.clock, Itimer::new()?)),
            Means::NanosleepPlain => self.with(thread, Left(self.clock, PlainNanosleep)),
            Means::Usleep => self.with(thread, UntilDue(self.clock, Usleep)),
            Means::Poll => self.with(thread, Left(self.clock, Poll)),
            Means::Select => self.with(thread, Left(self.clock, Select)),
            Means::Epoll => self.with(thread, Left(self.clock, Epoll::new()?)),
            Means::Cobalt => self.with(thread, Cobalt::new(self.clock)?),
            Means::Evl => self.with(thread, Evl::new(self.clock)?),
            Means::Polling | Means::NotTold | Means::Unknown(_) => {
                Err(SysError::code("sleep", format!("by `{}`", self.means), 0))
            }
        }
    }

    fn with<P: Port>(&self, thread: &ThreadContext, mut port: P) -> Result<Finished, SysError> {
        if let Some(slack) = self.timer_slack_ns {
            limits::set_timer_slack_ns(slack)?;
        }
        if self.paranoid {
            tailbound_sys::seccomp::confine()?;
        }
        let stop = thread.stop();
        match self.spread {
            None => {
                thread.phases(|schedule, recorder| cyclic::run(&mut port, schedule, recorder, stop))
            }
            Some(s) => thread.phases(|schedule, recorder| {
                cyclic_spread::run(&mut port, schedule, &s, recorder, stop)
            }),
        }
    }
}
