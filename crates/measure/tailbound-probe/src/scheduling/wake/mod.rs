// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `prio-wake`: of many who wait for one thing, the most urgent goes on first.
//!
//! Context: SETUP in `check` and `begin`, HOT in the controller's trials. Units: ns.
//! The players begin to wait one after the other, in an order drawn anew for each trial, and
//! the controller makes sure that each sleeps before it calls the next: that they go on in the
//! order of their urgency is then determined by the kernel alone.
//! Source: futex(2); the priority-sorted queues of futexes and of locks with inheritance.

mod players;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use tailbound_core::finding::{Finding, Impact};
use tailbound_core::policy::Policy;
use tailbound_host::clock_id;
use tailbound_rt::cyclic::Port as _;
use tailbound_sys::clock::{self, CLOCK_MONOTONIC, Nanosleep};
use tailbound_sys::error::SysError;
use tailbound_sys::futex::{self, Locked, Scope};
use tailbound_sys::sched::gettid;

use super::asleep::Asleep;
use super::bell::{Bell, Closing};
use super::count;
use super::ledger::Ledger;
use super::trials::{self, Timed};
use crate::error::ProbeError;
use crate::kind::{Prepared, ProbeKind, ProbeOption, Setup};
use crate::thread_group::{Finished, ProbeOutput, RecordSlot, Running, ThreadContext, thread_spec};
use players::{Means, Queue};

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "prio-wake",
    about: "of many who wait for one thing, the most urgent goes on first",
    from: "the controller, just before it lets go of what all wait for (futex wake, requeue or unlock)",
    to: "the most urgent of those who waited, at its first instruction after the wait",
    replaces: &["LTP prio-wake"],
    options: &[
        ProbeOption::new(
            "by",
            "WORD",
            "condition",
            "what they wait for: `condition` (a broadcast onto a lock with inheritance), `lock` (with inheritance), `one` (a futex, woken one at a time), `broadcast` (a futex, all at once, on one CPU)",
        ),
        ProbeOption::new("threads", "N", "8", "how many wait, 2 to 64"),
        ProbeOption::plant(
            "`exchanged`: the two most urgent are created with each other's priority",
        ),
    ],
    interval: "20ms",
    policy: None,
    event: Some("call"),
    property: Some("those who waited went on in the order of their urgency"),
    hog: false,
    takes: &[],
    prepare,
};

const PATIENCE_NS: i64 = 3_000_000_000;
/// Between two looks whether a player sleeps.
const LOOK_NS: i64 = 20_000;

/// What the options say.
#[derive(Clone, Copy, Debug)]
struct Options {
    means: Means,
    tasks: usize,
    exchanged: bool,
    priority: u8,
}

impl Options {
    fn of(setup: &Setup<'_>) -> Result<Self, ProbeError> {
        let options = setup.options();
        let tasks = usize::try_from(options.count("threads", 2..=64)?).unwrap_or(2);
        let exchanged = options.plant("exchanged")?.is_present();
        let at_least = u8::try_from(tasks + 1).unwrap_or(99);
        Ok(Self {
            means: Means::of(options.word("by", Means::WORDS)?),
            tasks,
            exchanged,
            priority: super::controller_priority(setup.plan, at_least)?,
        })
    }

    fn below(&self, rank: usize) -> Policy {
        let rank = if self.exchanged && rank < 2 { 1 - rank } else { rank };
        let steps = u8::try_from(rank + 1).unwrap_or(u8::MAX);
        Policy::Fifo(self.priority.saturating_sub(steps).max(1))
    }
}

fn prepare(setup: &Setup<'_>) -> Result<Prepared, ProbeError> {
    let options = Options::of(setup)?;
    super::realtime_allowed(setup, options.priority)?;
    Ok(Prepared::with(options, begin))
}

/// The first, by rank, that went on after a less urgent one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Proof {
    rank: usize,
    ticket: u32,
    failed: i32,
}

#[derive(Debug, Default)]
struct Sum {
    calls: u64,
    stuck: u64,
    ledger: Ledger<Proof>,
}

fn begin(setup: &Setup<'_>, options: Options) -> Result<Running, ProbeError> {
    let clock = clock_id(setup.plan.clock);
    let mut threads = setup.threads()?;
    let mut cpus = setup.cpus();
    if options.means == Means::Broadcast {
        // On several CPUs two of them may go on at once.
        cpus.truncate(1);
    }
    let queue = Arc::new(Queue::new(options.tasks));
    for rank in 0..options.tasks {
        let own = Arc::clone(&queue);
        threads.helper(
            "one who waits",
            thread_spec(options.below(rank), cpus.clone()),
            move |s| {
                players::play(&own, rank, options.means, clock, s.stop());
                Ok(())
            },
        )?;
    }
    let sum = Arc::new(Mutex::new(Sum::default()));
    let controller = Controller { queue, options, clock, sum: Arc::clone(&sum) };
    let own = thread_spec(setup.plan.policy, cpus);
    threads.measured(RecordSlot::user(0, None), own, move |thread| controller.run(thread))?;
    threads
        .after(move |_| probe_output(&sum.lock().unwrap_or_else(PoisonError::into_inner), options));
    threads.release()
}

struct Controller {
    queue: Arc<Queue>,
    options: Options,
    clock: i32,
    sum: Arc<Mutex<Sum>>,
}

impl Controller {
    fn run(&self, thread: &ThreadContext) -> Result<Finished, SysError> {
        let mut bells: Vec<&Bell> = self.queue.players.iter().map(|p| &p.bell).collect();
        bells.push(&self.queue.controller);
        let _closing = Closing(bells);
        let asleep = self.observers()?;
        let (tid, mut order) = (gettid(), (0..self.options.tasks).collect::<Vec<_>>());
        let mut dice = 0x9e37_79b9_7f4a_7c15_u64;
        let mut found = Sum::default();
        let finished = thread.phases(|schedule, recorder| {
            found = Sum::default();
            let mut writers = [trials::writer(recorder, schedule)];
            trials::run(self.clock, schedule, &mut writers, thread.stop(), |n, writers| {
                shuffle(&mut order, &mut dice);
                let Some(timed) = self.trial(&asleep, &order, tid) else {
                    found.stuck += u64::from(!thread.stop().load(Ordering::Relaxed));
                    self.set_free(tid);
                    return false;
                };
                found.calls += 1;
                // A signal that ends the run may have ended a wait.
                let stopped = thread.stop().load(Ordering::Relaxed);
                if let Some(proof) = self.judge().filter(|_| !stopped) {
                    found.ledger.enter(n, proof);
                }
                writers.iter_mut().for_each(|w| timed.enter(n, w));
                true
            })
        });
        *self.sum.lock().unwrap_or_else(PoisonError::into_inner) = found;
        finished
    }

    /// The kernel's word on every player.
    fn observers(&self) -> Result<Vec<Asleep>, SysError> {
        let until = clock::now_ns(CLOCK_MONOTONIC).saturating_add(PATIENCE_NS);
        let mut all = Vec::new();
        for player in &self.queue.players {
            let tid = loop {
                let tid = player.tid.load(Ordering::Acquire);
                if tid != 0 || clock::now_ns(CLOCK_MONOTONIC) > until {
                    break tid;
                }
                pause();
            };
            all.push(Asleep::of(tid)?);
        }
        Ok(all)
    }

    /// Lets all begin to wait in `order`, then calls them.
    fn trial(&self, asleep: &[Asleep], order: &[usize], tid: i32) -> Option<Timed> {
        let q = &*self.queue;
        let until = clock::now_ns(CLOCK_MONOTONIC).saturating_add(PATIENCE_NS);
        q.tickets.store(0, Ordering::Relaxed);
        q.left.store(u32::try_from(self.options.tasks).unwrap_or(0), Ordering::Relaxed);
        let word = q.word.fetch_add(1, Ordering::AcqRel).wrapping_add(1);
        if self.options.means == Means::Lock
            && futex::lock_pi(&q.lock, tid, Scope::Private) != Locked::Got
        {
            return None;
        }
        for &i in order {
            let (player, asleep) = (q.players.get(i)?, asleep.get(i)?);
            let rung = q.controller.count();
            player.bell.ring();
            if !q.controller.wait_until(rung, until) {
                return None;
            }
            while !asleep.is() {
                if clock::now_ns(CLOCK_MONOTONIC) > until {
                    return None;
                }
                pause();
            }
        }
        let rung = q.controller.count();
        let from_ns = self.call(word, tid, until)?;
        while q.left.load(Ordering::Acquire) != 0 {
            if !q.controller.wait_until(rung, until) {
                return None;
            }
            if q.left.load(Ordering::Acquire) != 0 {
                pause();
            }
            if clock::now_ns(CLOCK_MONOTONIC) > until {
                return None;
            }
        }
        let to_ns = q.players.first()?.first_ns.load(Ordering::Acquire);
        Some(Timed { from_ns, to_ns })
    }

    /// Lets go of what all wait for; when that was.
    fn call(&self, word: u32, tid: i32, until: i64) -> Option<i64> {
        let q = &*self.queue;
        if self.options.means == Means::Condition
            && futex::lock_pi(&q.lock, tid, Scope::Private) != Locked::Got
        {
            return None;
        }
        let from_ns = clock::now_ns(self.clock);
        match self.options.means {
            Means::Condition => {
                futex::requeue_pi(&q.word, word, &q.lock, u32::MAX, Scope::Private).ok()?;
                futex::unlock_pi(&q.lock, tid, Scope::Private).ok()?;
            }
            Means::Lock => futex::unlock_pi(&q.lock, tid, Scope::Private).ok()?,
            Means::Broadcast => drop(futex::wake(&q.word, u32::MAX, Scope::Private)),
            Means::One => {
                for _ in 0..self.options.tasks {
                    let rung = q.controller.count();
                    futex::wake(&q.word, 1, Scope::Private);
                    if !q.controller.wait_until(rung, until) {
                        return None;
                    }
                }
            }
        }
        Some(from_ns)
    }

    /// After a trial that did not end: nobody is to wait for ever.
    fn set_free(&self, tid: i32) {
        let q = &*self.queue;
        let word = q.word.fetch_add(1, Ordering::AcqRel).wrapping_add(1);
        // Refused where it is not ours: then nobody waits because of us.
        let _free = futex::unlock_pi(&q.lock, tid, Scope::Private);
        let _moved = futex::requeue_pi(&q.word, word, &q.lock, u32::MAX, Scope::Private);
        futex::wake(&q.word, u32::MAX, Scope::Private);
    }

    fn judge(&self) -> Option<Proof> {
        let seen = self
            .queue
            .players
            .iter()
            .map(|p| (p.ticket.load(Ordering::Relaxed), p.failed.load(Ordering::Relaxed)));
        judge(seen)
    }
}

/// The first whose number is not its rank.
fn judge(seen: impl Iterator<Item = (u32, i32)>) -> Option<Proof> {
    seen.enumerate()
        .find(|(rank, (ticket, failed))| *ticket as usize != *rank || *failed != 0)
        .map(|(rank, (ticket, failed))| Proof { rank, ticket, failed })
}

/// Lets those go on that are on the controller's own CPU.
fn pause() {
    let until = clock::now_ns(CLOCK_MONOTONIC).saturating_add(LOOK_NS);
    Nanosleep(CLOCK_MONOTONIC).sleep_until(until);
}

/// A new order (Fisher and Yates), from a generator that begins each run alike.
fn shuffle(order: &mut [usize], dice: &mut u64) {
    for i in (1..order.len()).rev() {
        *dice ^= *dice << 13;
        *dice ^= *dice >> 7;
        *dice ^= *dice << 17;
        let other = usize::try_from(*dice % (i as u64 + 1)).unwrap_or(0);
        order.swap(i, other);
    }
}

fn probe_output(sum: &Sum, options: Options) -> ProbeOutput {
    let mut output = ProbeOutput::default();
    let title = |n| {
        format!(
            "a less urgent task went on before a more urgent one that waited for the same, in {n} calls"
        )
    };
    output.findings.extend(
        sum.ledger
            .finding("wrong-order", title, |p| match p.failed {
                0 => format!("the task of rank {} of {} was number {} to go on", p.rank + 1, options.tasks, p.ticket + 1),
                errno => format!("the wait of the task of rank {} ended without what it waited for (errno {errno})", p.rank + 1),
            })
            .map(|f| f.remedy("Futexes and locks with inheritance must serve the most urgent waiter first: this kernel's queues do not.")),
    );
    if sum.stuck > 0 {
        output.findings.push(
            Finding::new(
                "trial-stuck",
                Impact::Violation,
                "a task that had been called had not gone on seconds later",
            )
            .meaning("A wake-up was lost, or the task got no CPU.")
            .remedy("Look for real-time tasks above the controller that do not sleep."),
        );
    }
    output.figures.extend([
        count("calls", sum.calls, &format!("of {} who waited", options.tasks)),
        count("violations", sum.ledger.n(), "of them, those answered in a wrong order"),
    ]);
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_drawn_is_the_rank() {
        assert_eq!(judge([(0, 0), (1, 0), (2, 0)].into_iter()), None);
        let wrong = judge([(0, 0), (2, 0), (1, 0)].into_iter());
        assert_eq!(wrong, Some(Proof { rank: 1, ticket: 2, failed: 0 }));
        let lost = judge([(0, 0), (1, 11)].into_iter());
        assert_eq!(lost, Some(Proof { rank: 1, ticket: 1, failed: 11 }));
    }

    #[test]
    fn a_shuffled_order_has_everybody_once_and_changes() {
        let (mut order, mut dice) = ((0..8).collect::<Vec<_>>(), 1);
        let mut orders = std::collections::BTreeSet::new();
        for _ in 0..50 {
            shuffle(&mut order, &mut dice);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..8).collect::<Vec<_>>());
            orders.insert(order.clone());
        }
        assert!(orders.len() > 40, "{} orders", orders.len());
    }
}
