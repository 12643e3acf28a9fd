// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `prio-preempt`: a woken task of higher priority runs before its waker goes on.
//!
//! Context: SETUP in `check` and `begin`, HOT in the tasks and the controller's trials. Units: ns.
//! On each CPU a chain of tasks of rising priority: each wakes the next and then looks whether
//! that one has done its work, as it must have, being more urgent and on the same CPU. So the
//! most urgent, woken last, is done first.
//! Source: sched(7), futex(2).

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tailbound_core::finding::{Finding, Impact};
use tailbound_core::plan::Plan;
use tailbound_core::policy::Policy;
use tailbound_host::clock_id;
use tailbound_sys::clock::{self, CLOCK_MONOTONIC};
use tailbound_sys::error::SysError;

use super::bell::{Bell, Closing};
use super::count;
use super::ledger::Ledger;
use super::trials::{self, Timed};
use crate::error::ProbeError;
use crate::kind::{Prepared, ProbeKind, ProbeOption, Setup};
use crate::thread_group::{
    Finished, ProbeOutput, RecordSlot, Running, ThreadContext, ThreadGroup, thread_spec,
};

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "prio-preempt",
    about: "a chain of tasks of rising priority, each preempted by the one it wakes",
    from: "the least urgent task of the chain, just before it wakes the next (futex wake)",
    to: "the most urgent, at its first instruction: one preemption later for each link of the chain",
    replaces: &["LTP prio-preempt"],
    options: &[
        ProbeOption::new("threads", "N", "16", "tasks in the chain, 2 to 64"),
        ProbeOption::plant(
            "`falling`: each task of the chain is less urgent than the one that wakes it",
        ),
    ],
    interval: "5ms",
    policy: None,
    event: Some("chain"),
    property: Some("every woken task ran before the less urgent one that woke it went on"),
    hog: false,
    takes: &[],
    prepare,
};

const PATIENCE_NS: i64 = 3_000_000_000;

/// What the options say.
#[derive(Clone, Copy, Debug)]
struct Options {
    tasks: usize,
    falling: bool,
    priority: u8,
}

impl Options {
    fn of(setup: &Setup<'_>) -> Result<Self, ProbeError> {
        let options = setup.options();
        let tasks = usize::try_from(options.count("threads", 2..=64)?).unwrap_or(2);
        let falling = options.plant("falling")?.is_present();
        let at_least = u8::try_from(tasks + 1).unwrap_or(99);
        Ok(Self { tasks, falling, priority: super::controller_priority(setup.plan, at_least)? })
    }

    fn of_link(&self, link: usize) -> Policy {
        let below = if self.falling { link } else { self.tasks - 1 - link };
        let steps = u8::try_from(below + 1).unwrap_or(u8::MAX);
        Policy::Fifo(self.priority.saturating_sub(steps).max(1))
    }
}

fn prepare(setup: &Setup<'_>) -> Result<Prepared, ProbeError> {
    let options = Options::of(setup)?;
    super::realtime_allowed(setup, options.priority)?;
    Ok(Prepared::with(options, begin))
}

/// One task of the chain.
#[derive(Debug, Default)]
struct Link {
    bell: Bell,
    first_ns: AtomicI64,
    wakes_ns: AtomicI64,
    done: AtomicBool,
    /// The one it woke had not done its work when it went on.
    overtook: AtomicBool,
}

/// The chain of one CPU.
#[derive(Debug)]
struct Chain {
    links: Vec<Link>,
    controller: Bell,
    left: AtomicU32,
}

fn task(chain: &Chain, own: usize, clock_id: i32, stop: &AtomicBool) {
    let Some(link) = chain.links.get(own) else { return };
    let mut rings = 0;
    while let Some(ring) = link.bell.wait(rings, stop) {
        rings = ring;
        link.first_ns.store(clock::now_ns(clock_id), Ordering::Relaxed);
        if let Some(next) = chain.links.get(own + 1) {
            link.wakes_ns.store(clock::now_ns(clock_id), Ordering::Relaxed);
            next.bell.ring();
            link.overtook.store(!next.done.load(Ordering::Acquire), Ordering::Relaxed);
        }
        link.done.store(true, Ordering::Release);
        if chain.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            chain.controller.ring();
        }
    }
}

/// A task that went on before the one it woke.
#[derive(Clone, Copy, Debug)]
struct Proof {
    cpu: u32,
    link: usize,
}

#[derive(Debug, Default)]
struct Sum {
    chains: u64,
    stuck: u64,
    ledger: Ledger<Proof>,
}

fn begin(setup: &Setup<'_>, options: Options) -> Result<Running, ProbeError> {
    let mut threads = setup.threads()?;
    let sum = Arc::new(Mutex::new(Sum::default()));
    let cpus = setup.cpus();
    for (cpu, place) in cpus.iter().zip(0u32..) {
        one_cpu(&mut threads, setup.plan, options, *cpu, (place, cpus.len()), &sum)?;
    }
    threads
        .after(move |_| probe_output(&sum.lock().unwrap_or_else(PoisonError::into_inner), options));
    threads.release()
}

fn one_cpu(
    threads: &mut ThreadGroup,
    plan: &Plan,
    options: Options,
    cpu: u32,
    (place, of): (u32, usize),
    sum: &Arc<Mutex<Sum>>,
) -> Result<(), ProbeError> {
    let clock = clock_id(plan.clock);
    let chain = Arc::new(Chain {
        links: (0..options.tasks).map(|_| Link::default()).collect(),
        controller: Bell::default(),
        left: AtomicU32::new(0),
    });
    for link in 0..options.tasks {
        let own = Arc::clone(&chain);
        threads.helper(
            "task of the chain",
            thread_spec(options.of_link(link), vec![cpu]),
            move |s| {
                task(&own, link, clock, s.stop());
                Ok(())
            },
        )?;
    }
    let of = i64::try_from(of.max(1)).unwrap_or(1);
    let phase_ns = plan.interval_ns / of * i64::from(place);
    let slot = RecordSlot { phase_ns, ..RecordSlot::user(place, Some(cpu)) };
    let sum = Arc::clone(sum);
    threads.measured(slot, thread_spec(plan.policy, vec![cpu]), move |thread| {
        direct(&chain, cpu, clock, thread, &sum)
    })
}

fn direct(
    chain: &Chain,
    cpu: u32,
    clock: i32,
    thread: &ThreadContext,
    sum: &Mutex<Sum>,
) -> Result<Finished, SysError> {
    let mut bells: Vec<&Bell> = chain.links.iter().map(|l| &l.bell).collect();
    bells.push(&chain.controller);
    let _closing = Closing(bells);
    let mut found = Sum::default();
    let finished = thread.phases(|schedule, recorder| {
        found = Sum::default();
        let mut writers = [trials::writer(recorder, schedule)];
        trials::run(clock, schedule, &mut writers, thread.stop(), |n, writers| {
            let Some(climb) = trial(chain) else {
                found.stuck += u64::from(!thread.stop().load(Ordering::Relaxed));
                return false;
            };
            found.chains += 1;
            let overtook = |l: &Link| l.overtook.load(Ordering::Relaxed);
            if let Some(link) = chain.links.iter().position(overtook) {
                found.ledger.enter(n, Proof { cpu, link });
            }
            writers.iter_mut().for_each(|w| climb.enter(n, w));
            true
        })
    });
    let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
    sum.chains += found.chains;
    sum.stuck += found.stuck;
    sum.ledger.add(&found.ledger);
    finished
}

/// Wakes the chain's least urgent task and waits for all; the time of the climb.
fn trial(chain: &Chain) -> Option<Timed> {
    let until = clock::now_ns(CLOCK_MONOTONIC).saturating_add(PATIENCE_NS);
    for link in &chain.links {
        link.done.store(false, Ordering::Relaxed);
        link.overtook.store(false, Ordering::Relaxed);
    }
    chain.left.store(u32::try_from(chain.links.len()).unwrap_or(0), Ordering::Release);
    let (first, last) = (chain.links.first()?, chain.links.last()?);
    let rung = chain.controller.count();
    first.bell.ring();
    let over = chain.controller.wait_until(rung, until);
    over.then(|| Timed {
        from_ns: first.wakes_ns.load(Ordering::Relaxed),
        to_ns: last.first_ns.load(Ordering::Relaxed),
    })
}

fn probe_output(sum: &Sum, options: Options) -> ProbeOutput {
    let mut output = ProbeOutput::default();
    let title =
        |n| format!("a task went on before the more urgent one it had woken, in {n} chains");
    output.findings.extend(
        sum.ledger
            .finding("not-preempted", title, |p| {
                format!(
                    "CPU {}: task {} of {} returned from waking the next before that one had run",
                    p.cpu,
                    p.link + 1,
                    options.tasks
                )
            })
            .map(|f| f.remedy("A woken task of higher priority on the same CPU must run before its waker returns to user mode: this kernel's wake-up does not preempt.")),
    );
    if sum.stuck > 0 {
        output.findings.push(
            Finding::new("trial-stuck", Impact::Violation, "a chain did not end within seconds")
                .remedy("Look for real-time tasks above the controller that do not sleep."),
        );
    }
    output.figures.extend([
        count(
            "chains",
            sum.chains,
            &format!("of {} tasks, so {} preemptions each", options.tasks, options.tasks - 1),
        ),
        count("violations", sum.ledger.n(), "of them, those in which a task went on too early"),
    ]);
    output
}
