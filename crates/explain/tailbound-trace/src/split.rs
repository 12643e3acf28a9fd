// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way of a measured thread's wake-up, from tracepoints: when the interrupt found its
//! timer expired, and when the CPU went over to it.
//!
//! Units: ns on the clock of the schedule, which has to be the trace clock too.
//! A thread's timers are told from others that run out in its name (the scheduler's own)
//! by their time: its schedule is known, activation k is due at `first_ns + k * interval_ns`.
//! Not here: the user's end of the way, which the thread itself measures.

use std::collections::BTreeMap;

use tailbound_core::Distribution;

use crate::decode::{Record, Sample};

/// A measured thread and when its activations fall due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The kernel's number of the thread.
    pub pid: i32,
    /// First activation.
    pub first_ns: i64,
    /// From one to the next.
    pub interval_ns: i64,
    /// How many.
    pub activations: u64,
}

impl Schedule {
    /// Is `t_ns` the due time of an activation?
    fn has(&self, t_ns: i64) -> bool {
        let since = t_ns.checked_sub(self.first_ns).and_then(|ns| u64::try_from(ns).ok());
        let interval = self.interval_ns.max(1).unsigned_abs();
        let at = since.filter(|ns| ns.is_multiple_of(interval));
        at.and_then(|ns| ns.checked_div(interval)).is_some_and(|at| at < self.activations)
    }
}

/// What was seen of one thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WakeupSplit {
    /// Due time to the interrupt.
    pub irq: Distribution,
    /// Due time to the CPU going over to the thread.
    pub thread: Distribution,
    /// Timers of the schedule that were set.
    pub started: u64,
    /// Timers that ran out before the thread had gone to sleep: the CPU was its own already.
    pub awake: u64,
    /// Timers whose end was not seen: events were lost, or the run ended first.
    pub unseen: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Set { timer: u64, due_ns: i64 },
    Expired { due_ns: i64 },
}

#[derive(Clone, Debug)]
struct Follow {
    schedule: Schedule,
    state: State,
    way: WakeupSplit,
}

/// An interrupt that came later than a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateInterrupt {
    /// The CPU that it came to.
    pub cpu: u32,
    /// When the timer was due, on the trace's clock.
    pub due_ns: i64,
    /// How late it found it expired.
    pub latency_ns: i64,
}

/// Follows several threads; wants samples in the order of their times.
#[derive(Clone, Debug)]
pub struct Split {
    threads: BTreeMap<i32, Follow>,
    timers: BTreeMap<u64, i32>,
    irq_limit_ns: i64,
    late: Option<LateInterrupt>,
}

impl Split {
    /// Follows these threads.
    #[must_use]
    pub fn new(schedules: &[Schedule]) -> Self {
        let follow = |s: &Schedule| {
            (s.pid, Follow { schedule: *s, state: State::Idle, way: WakeupSplit::default() })
        };
        Self {
            threads: schedules.iter().map(follow).collect(),
            timers: BTreeMap::new(),
            irq_limit_ns: i64::MAX,
            late: None,
        }
    }

    /// Later interrupts are told by [`Self::take_late`].
    pub fn limit_irq(&mut self, limit_ns: i64) {
        self.irq_limit_ns = limit_ns;
    }

    /// The first one since the last call.
    pub fn take_late(&mut self) -> Option<LateInterrupt> {
        self.late.take()
    }

    /// Takes the next sample.
    pub fn sample(&mut self, sample: &Sample) {
        match sample.record {
            Record::TimerStart { timer, due_ns } => {
                let Some(follow) = self.threads.get_mut(&sample.pid) else { return };
                if follow.schedule.has(due_ns) {
                    if let State::Set { timer, .. } = follow.state {
                        self.timers.remove(&timer);
                    }
                    follow.close();
                    follow.way.started = follow.way.started.saturating_add(1);
                    follow.state = State::Set { timer, due_ns };
                    self.timers.insert(timer, sample.pid);
                }
            }
            Record::TimerExpire { timer, now_ns } => {
                let Some(pid) = self.timers.remove(&timer) else { return };
                let Some(follow) = self.threads.get_mut(&pid) else { return };
                if let State::Set { due_ns, .. } = follow.state {
                    let latency_ns = now_ns.saturating_sub(due_ns);
                    follow.way.irq.add(latency_ns);
                    if latency_ns > self.irq_limit_ns {
                        let cpu = sample.cpu;
                        self.late.get_or_insert(LateInterrupt { cpu, due_ns, latency_ns });
                    }
                    follow.state = State::Expired { due_ns };
                    // The interrupt came to the thread itself: it will not sleep any more. Such
                    // timers are late ones as a rule, and must not be missing from the column.
                    if sample.pid == pid {
                        follow.way.awake = follow.way.awake.saturating_add(1);
                        follow.reached(sample.t_ns);
                    }
                }
            }
            Record::SwitchTo { pid } => {
                let Some(follow) = self.threads.get_mut(&pid) else { return };
                follow.reached(sample.t_ns);
            }
            Record::Timerlat { .. } | Record::Osnoise { .. } | Record::Hwlat { .. } => {}
        }
    }

    /// What was seen, by the kernel's number of the thread.
    #[must_use]
    pub fn end(mut self) -> BTreeMap<i32, WakeupSplit> {
        self.threads.values_mut().for_each(Follow::close);
        self.threads.into_iter().map(|(pid, f)| (pid, f.way)).collect()
    }
}

impl Follow {
    /// The CPU is the thread's.
    fn reached(&mut self, t_ns: u64) {
        if let State::Expired { due_ns } = self.state {
            let now = i64::try_from(t_ns).unwrap_or(i64::MAX);
            self.way.thread.add(now.saturating_sub(due_ns));
            self.state = State::Idle;
        }
    }

    /// Whatever was open stays open: says so.
    fn close(&mut self) {
        if self.state != State::Idle {
            self.way.unseen = self.way.unseen.saturating_add(1);
        }
        self.state = State::Idle;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMER: u64 = 0xffff_8880_1234_5678;

    fn split(events: &[(u64, i32, Record)]) -> WakeupSplit {
        let schedule = Schedule { pid: 7, first_ns: 1000, interval_ns: 100, activations: 10 };
        let mut split = Split::new(&[schedule]);
        for &(t_ns, pid, record) in events {
            split.sample(&Sample { t_ns, cpu: 0, pid, record });
        }
        split.end().remove(&7).unwrap_or_default()
    }

    #[test]
    fn one_wake_up_from_timer_to_thread() {
        let way = split(&[
            (905, 7, Record::TimerStart { timer: TIMER, due_ns: 1000 }),
            (910, 7, Record::SwitchTo { pid: 0 }),
            (920, 0, Record::SwitchTo { pid: 7 }),
            (1003, 0, Record::TimerExpire { timer: 1, now_ns: 1002 }),
            (1003, 0, Record::TimerExpire { timer: TIMER, now_ns: 1002 }),
            (1009, 0, Record::SwitchTo { pid: 7 }),
            (1019, 0, Record::SwitchTo { pid: 7 }),
        ]);
        assert_eq!((way.irq.n, way.irq.max_ns), (1, Some(2)));
        assert_eq!((way.thread.n, way.thread.max_ns), (1, Some(9)));
        assert_eq!((way.started, way.awake, way.unseen), (1, 0, 0));
    }

    #[test]
    fn the_first_interrupt_beyond_the_limit_is_told_once() {
        let schedule = Schedule { pid: 7, first_ns: 1000, interval_ns: 100, activations: 10 };
        let mut split = Split::new(&[schedule]);
        split.limit_irq(20);
        let mut told = |due_ns, now_ns: i64| {
            for record in [
                Record::TimerStart { timer: TIMER, due_ns },
                Record::TimerExpire { timer: TIMER, now_ns },
            ] {
                let t_ns = now_ns.unsigned_abs();
                split.sample(&Sample { t_ns, cpu: 3, pid: 7, record });
            }
            split.take_late()
        };
        assert_eq!(told(1000, 1020), None, "not beyond it");
        let late = LateInterrupt { cpu: 3, due_ns: 1100, latency_ns: 21 };
        assert_eq!(told(1100, 1121), Some(late));
        assert_eq!(told(1200, 1201), None);
    }

    #[test]
    fn timers_that_are_not_the_schedules_do_not_count() {
        let start = |due_ns| Record::TimerStart { timer: TIMER, due_ns };
        let expire = Record::TimerExpire { timer: TIMER, now_ns: 3000 };
        for due in [900, 999, 1001, 2000, i64::MIN, i64::MAX] {
            assert_eq!(
                split(&[(1, 7, start(due)), (2, 0, expire)]),
                WakeupSplit::default(),
                "{due}"
            );
        }
        assert_eq!(split(&[(1, 8, start(1000)), (2, 0, expire)]), WakeupSplit::default());
    }

    #[test]
    fn what_is_not_seen_is_counted() {
        let start = |due_ns| Record::TimerStart { timer: TIMER, due_ns };
        let expire = |now_ns| Record::TimerExpire { timer: TIMER, now_ns };
        let way = split(&[
            (1, 7, start(1000)),
            (1050, 7, expire(1049)), // the thread was still awake
            (1060, 7, start(1100)),  // its end was lost
            (1210, 7, start(1300)),
            (1301, 0, expire(1301)),
            (1302, 0, Record::SwitchTo { pid: 7 }),
            (1310, 7, start(1400)),
            (1401, 0, expire(1401)), // the switch was lost
            (1410, 7, start(1500)),  // the run ended first
        ]);
        assert_eq!((way.started, way.awake, way.unseen), (5, 1, 3));
        assert_eq!((way.irq.n, way.thread.n), (3, 2));
        assert_eq!(way.thread.max_ns, Some(50), "late, and not left out");
    }
}
