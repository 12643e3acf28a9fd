// SPDX-License-Identifier: MIT OR Apache-2.0
//! From events to waits: when a thread was woken, and when it had a CPU.
//!
//! Units: ns of CLOCK_MONOTONIC. The same rules as those of the programs in the kernel (`programs`): a thread that is
//! woken while it runs waits for nothing, and neither does one that goes on after it was preempted.

use std::collections::{BTreeMap, VecDeque};

use tailbound_core::words::Word;
use tailbound_trace::event::{Entry, Event};

use crate::counter::THREADS_MAX;
use crate::window::{Before, Classes, Late, Policy, ThreadWindow, Worst, class_of};

/// A thread that waits this long for a CPU is one that is real-time no longer.
const ABANDONED_NS: u64 = 3_600_000_000_000;
/// Late ones that are kept from one look to the next.
const LATE_MAX: usize = 1000;
/// The kernel's priorities below this are real-time ones. Source: include/linux/sched/prio.h.
const REALTIME_END: i32 = 100;

/// What an event means for waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitEvent {
    Woken {
        tid: i32,
    },
    Switch {
        cpu: u32,
        prev: i32,
        prev_prio: i32,
        prev_comm: Word,
        next: i32,
        next_prio: i32,
        next_comm: Word,
    },
    /// From here on events of one CPU are missing.
    LostFrom,
    /// Until here; so many, where the kernel says it.
    LostUntil {
        events: u64,
    },
}

impl WaitEvent {
    pub(super) fn of(entry: &Entry) -> Option<Self> {
        match entry.event {
            Event::Waking { pid, .. } => Some(Self::Woken { tid: pid }),
            Event::Switch { prev, prev_prio, prev_comm, next, next_prio, next_comm, .. } => {
                let cpu = entry.cpu;
                Some(Self::Switch { cpu, prev, prev_prio, prev_comm, next, next_prio, next_comm })
            }
            _ => None,
        }
    }
}

/// What is known of a thread beside its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadTraits {
    pub(super) policy: Policy,
    pub(super) kernel: Option<bool>,
}

/// By the priority that counted when it was switched to: what the event tells.
pub(super) fn by_priority(prio: i32) -> Policy {
    match u32::try_from(prio) {
        // The kernel's -1.
        Err(_) => Policy::deadline(),
        // Priority 99 of the user is 0 of the kernel.
        Ok(prio @ 0..=99) => Policy::realtime(99_u32.saturating_sub(prio)),
        Ok(_) => Policy::of(0, 0),
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Waits {
    ready: BTreeMap<i32, u64>,
    threads: BTreeMap<i32, ThreadWindow>,
    late: VecDeque<Late>,
    /// CPUs of which events are missing at the moment.
    blind: u32,
    pub(super) late_untold: u64,
    pub(super) lost: u64,
    threshold_ns: u64,
}

impl Waits {
    /// Longer ones than `threshold_ns` are told one by one.
    pub(super) fn new(threshold_ns: u64) -> Self {
        Self { threshold_ns, ..Self::default() }
    }

    /// Takes one event, each after the one before it in time. `look_up` says of a thread what its events do not; `None`: it is no
    /// real-time thread, and was lent a priority.
    pub(super) fn event(
        &mut self,
        t_ns: u64,
        seen: &WaitEvent,
        look_up: &mut dyn FnMut(i32, Policy) -> Option<ThreadTraits>,
    ) {
        match *seen {
            // What was lost may have been the end of any wait.
            WaitEvent::LostFrom => {
                self.blind = self.blind.saturating_add(1);
                self.ready.clear();
            }
            WaitEvent::LostUntil { events } => {
                self.blind = self.blind.saturating_sub(1);
                self.lost = self.lost.saturating_add(events.max(1));
                self.ready.clear();
            }
            _ if self.blind > 0 => {}
            WaitEvent::Woken { tid } => {
                if self.ready.len() < THREADS_MAX as usize || self.ready.contains_key(&tid) {
                    self.ready.entry(tid).or_insert(t_ns);
                } else {
                    self.lost = self.lost.saturating_add(1);
                }
            }
            WaitEvent::Switch { cpu, prev, prev_prio, prev_comm, next, next_prio, next_comm } => {
                let since = self.ready.remove(&next).filter(|_| next_prio < REALTIME_END);
                if let Some(since_ns) = since {
                    let before = Before {
                        comm: prev_comm.as_str().to_owned(),
                        tid: prev.unsigned_abs(),
                        policy: by_priority(prev_prio),
                    };
                    let wait_ns = t_ns.saturating_sub(since_ns);
                    let worst = Worst { wait_ns, at_ns: t_ns, cpu, before };
                    self.count(next, next_prio, next_comm, worst, look_up);
                }
                self.ready.remove(&prev);
            }
        }
    }

    fn count(
        &mut self,
        tid: i32,
        prio: i32,
        comm: Word,
        worst: Worst,
        look_up: &mut dyn FnMut(i32, Policy) -> Option<ThreadTraits>,
    ) {
        if !self.threads.contains_key(&tid) {
            if self.threads.len() >= THREADS_MAX as usize {
                self.lost = self.lost.saturating_add(1);
                return;
            }
            let Some(known) = look_up(tid, by_priority(prio)) else { return };
            self.threads.insert(
                tid,
                ThreadWindow {
                    comm: comm.as_str().to_owned(),
                    tid: tid.unsigned_abs(),
                    kernel: known.kernel,
                    policy: known.policy,
                    cpu: worst.cpu,
                    n: 0,
                    sum_ns: 0,
                    worst: worst.clone(),
                    is_probe: false,
                    recorded: None,
                    histogram: Classes::default(),
                },
            );
        }
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let wait_ns = worst.wait_ns;
        thread.n = thread.n.saturating_add(1);
        thread.sum_ns = thread.sum_ns.saturating_add(wait_ns);
        thread.cpu = worst.cpu;
        thread.histogram.add(class_of(wait_ns));
        if wait_ns > self.threshold_ns {
            if self.late.len() < LATE_MAX {
                self.late.push_back(Late {
                    at_ns: worst.at_ns,
                    wait_ns,
                    cpu: worst.cpu,
                    comm: comm.as_str().to_owned(),
                    tid: tid.unsigned_abs(),
                    policy: thread.policy,
                    before: worst.before.clone(),
                });
            } else {
                self.late_untold = self.late_untold.saturating_add(1);
            }
        }
        if wait_ns >= thread.worst.wait_ns {
            comm.as_str().clone_into(&mut thread.comm);
            thread.worst = worst;
        }
    }

    /// What there is so far.
    pub(super) fn so_far(&self) -> Vec<ThreadWindow> {
        self.threads.values().cloned().collect()
    }

    /// What there was; the next window begins.
    pub(super) fn turn(&mut self, now_ns: u64) -> Vec<ThreadWindow> {
        self.ready.retain(|_, since| now_ns.saturating_sub(*since) <= ABANDONED_NS);
        std::mem::take(&mut self.threads).into_values().collect()
    }

    pub(super) fn take_late(&mut self) -> VecDeque<Late> {
        std::mem::take(&mut self.late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RT: i32 = 9;

    fn woken(tid: i32) -> WaitEvent {
        WaitEvent::Woken { tid }
    }

    fn switch(prev: i32, next: i32) -> WaitEvent {
        let prio = |tid: i32| if tid < 10 { RT } else { 120 };
        let comm = |tid: i32| Word::new(&format!("t{tid}"));
        WaitEvent::Switch {
            cpu: 1,
            prev,
            prev_prio: prio(prev),
            prev_comm: comm(prev),
            next,
            next_prio: prio(next),
            next_comm: comm(next),
        }
    }

    fn counted(waits: &mut Waits, events: &[(u64, WaitEvent)]) -> Vec<(u32, u64, u64)> {
        let mut look_up =
            |_: i32, policy: Policy| Some(ThreadTraits { policy, kernel: Some(false) });
        for (t, seen) in events {
            waits.event(*t, seen, &mut look_up);
        }
        waits.so_far().iter().map(|t| (t.tid, t.n, t.sum_ns)).collect()
    }

    #[test]
    fn waits_are_from_the_wake_up_to_the_cpu() {
        let mut waits = Waits::new(250);
        let events = [
            // Woken twice before it runs: the first one counts.
            (100, woken(1)),
            (150, woken(1)),
            (400, switch(20, 1)),
            // Preempted, and back: no wake-up.
            (500, switch(1, 2)),
            (600, switch(2, 1)),
            // Woken while it runs, and gone to sleep after all.
            (700, woken(1)),
            (800, switch(1, 20)),
            (900, woken(1)),
            (910, switch(20, 1)),
            // An ordinary thread that was lent a priority when it was woken.
            (920, woken(30)),
            (930, switch(1, 30)),
        ];
        assert_eq!(counted(&mut waits, &events), [(1, 2, 310)]);
        let thread = waits.turn(1000).remove(0);
        assert_eq!((thread.worst.wait_ns, thread.worst.before.comm.as_str()), (300, "t20"));
        assert_eq!(
            (thread.policy.to_string(), thread.worst.before.policy.to_string()),
            ("real-time:90".into(), "other".into())
        );
        assert_eq!(thread.histogram, Classes { upper_ns: vec![11, 319], count: vec![1, 1] });
        let late: Vec<u64> = waits.take_late().iter().map(|l| l.wait_ns).collect();
        assert_eq!((late, waits.so_far().len()), (vec![300], 0));
    }

    #[test]
    fn after_a_loss_nobody_is_ready_and_it_is_counted() {
        let mut waits = Waits::new(u64::MAX);
        let events = [
            (100, woken(1)),
            (200, WaitEvent::LostFrom),
            // On another CPU: how long it waited is not known.
            (250, switch(20, 1)),
            (300, woken(2)),
            (310, switch(1, 2)),
            (400, WaitEvent::LostUntil { events: 7 }),
            (900, switch(2, 1)),
            (950, woken(2)),
            (960, switch(1, 2)),
        ];
        assert_eq!(counted(&mut waits, &events), [(2, 1, 10)]);
        assert_eq!(waits.lost, 7);
    }

    #[test]
    fn more_threads_than_there_is_room_for_are_counted_as_lost() {
        let mut waits = Waits::new(u64::MAX);
        let mut look_up = |_: i32, policy: Policy| Some(ThreadTraits { policy, kernel: None });
        let most = i32::try_from(THREADS_MAX).unwrap();
        for tid in 1..=most + 3 {
            waits.event(1, &woken(tid), &mut look_up);
            let WaitEvent::Switch { cpu, prev, prev_prio, prev_comm, next_comm, .. } =
                switch(20, 1)
            else {
                unreachable!()
            };
            waits.event(
                2,
                &WaitEvent::Switch {
                    cpu,
                    prev,
                    prev_prio,
                    prev_comm,
                    next: tid,
                    next_prio: RT,
                    next_comm,
                },
                &mut look_up,
            );
        }
        assert_eq!((waits.so_far().len(), waits.lost), (THREADS_MAX as usize, 3));
    }
}
