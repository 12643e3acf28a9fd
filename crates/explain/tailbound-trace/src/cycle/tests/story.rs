// SPDX-License-Identifier: MIT OR Apache-2.0
//! Made-up traces whose cycles are known: a CPU with fixed-priority threads, played event by event.
//!
//! Units: ns. Threads are periodic (absolute sleeps), driven from outside with jitter, sporadic, or loops
//! of relative sleeps; within their cycles they compute, suspend themselves, make system calls, yield and
//! fault; interrupts strike at random.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use tailbound_core::words::Word;

use crate::event::{Entry, Event, FaultMode, Flags, Vector};

pub(super) const NANOSLEEP: i64 = 230;
pub(super) const FUTEX: i64 = 202;
pub(super) const READ: i64 = 0;
pub(super) const WRITE: i64 = 1;
pub(super) const IOCTL: i64 = 16;
pub(super) const YIELD: i64 = 24;
pub(super) const CALLS: &[(i64, &str)] = &[
    (NANOSLEEP, "clock_nanosleep"),
    (FUTEX, "futex"),
    (READ, "read"),
    (WRITE, "write"),
    (IOCTL, "ioctl"),
    (YIELD, "sched_yield"),
];

/// Repeatable random numbers (splitmix64).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub(super) fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from).max(1)
    }
    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }
}

/// How a thread is paced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pacing {
    /// clock_nanosleep to absolute times.
    Timer { period: u64 },
    /// An interrupt every period and up to `jitter` later; the thread reads a descriptor.
    Outside { period: u64, jitter: u64 },
    /// An interrupt after `least` and up to `more` later; the thread waits on a futex.
    Sporadic { least: u64, more: u64 },
    /// clock_nanosleep for a time.
    Relative { sleep: u64 },
}

/// What a thread does in a cycle.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Run(u64, u64),
    /// Sleeps within the cycle, in a call of this number with these arguments.
    Suspend {
        id: i64,
        args: [u64; 4],
        least: u64,
        most: u64,
        one_in: u64,
    },
    /// A call that does not sleep.
    Call(i64, [u64; 4]),
    Yield,
    Fault,
}

#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) pid: i32,
    pub(super) prio: i32,
    pub(super) pacing: Pacing,
    pub(super) steps: Vec<Step>,
}

/// A cycle as it was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Truth {
    pub(super) release: u64,
    pub(super) end: u64,
    /// The events do not tell when it was released: it was served without a sleep.
    pub(super) silent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Doing {
    /// Runs, for so long still.
    Run(u64),
    /// Is to leave this call when it next has the CPU.
    Leave(i64),
}

struct Task {
    spec: Spec,
    step: usize,
    doing: Doing,
    due: u64,
    waiting: bool,
    pending: VecDeque<u64>,
    job: Option<(u64, bool)>,
    truth: Vec<Truth>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wake {
    /// A sleep within the cycle, or the pacing timer, ends.
    Timer(usize),
    /// Something comes from outside.
    Arrival(usize),
    /// An interrupt that wakes nobody.
    Noise,
}

/// What threads of the running one's priority do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Equals {
    Wait,
    Run,
}

/// A CPU on its way.
pub(super) struct Story {
    now: u64,
    pub(super) entries: Vec<Entry>,
    tasks: Vec<Task>,
    ready: Vec<(i32, u64, usize)>,
    order: u64,
    running: Option<usize>,
    wakes: BinaryHeap<Reverse<(u64, Wake)>>,
    random: Random,
    noise: u64,
}

impl Story {
    pub(super) fn new(seed: u64, specs: &[Spec], noise: u64) -> Self {
        let mut random = Random(seed);
        let mut wakes = BinaryHeap::new();
        let mut tasks = Vec::new();
        for (i, spec) in specs.iter().enumerate() {
            let first = 1_000_000 + random.within(0, 5_000_000);
            wakes.push(Reverse(match spec.pacing {
                Pacing::Timer { .. } | Pacing::Relative { .. } => (first, Wake::Timer(i)),
                _ => (first, Wake::Arrival(i)),
            }));
            tasks.push(Task {
                spec: spec.clone(),
                step: usize::MAX,
                doing: Doing::Leave(-1),
                due: first,
                waiting: true,
                pending: VecDeque::new(),
                job: None,
                truth: Vec::new(),
            });
        }
        if noise > 0 {
            wakes.push(Reverse((noise, Wake::Noise)));
        }
        Self {
            now: 1000,
            entries: Vec::new(),
            tasks,
            ready: Vec::new(),
            order: 0,
            running: None,
            wakes,
            random,
            noise,
        }
    }

    fn say(&mut self, pid: i32, flags: u8, event: Event) {
        self.entries.push(Entry { t_ns: self.now, cpu: 0, pid, flags: Flags(flags), event });
        self.now += 100;
    }

    fn pid(&self) -> i32 {
        self.running.map_or(0, |i| self.tasks[i].spec.pid)
    }

    /// Plays up to `end`; the cycles of each thread that were ended by then.
    pub(super) fn play(mut self, end: u64) -> (Vec<Entry>, HashMap<i32, Vec<Truth>>) {
        while self.now < end {
            let next = self.wakes.peek().map_or(u64::MAX, |Reverse((t, _))| *t).max(self.now);
            let Some(i) = self.running else {
                if next == u64::MAX {
                    break;
                }
                self.now = next;
                self.interrupt();
                continue;
            };
            match self.tasks[i].doing {
                Doing::Leave(id) => {
                    if id >= 0 {
                        let pid = self.pid();
                        let ret = if id == READ { 8 } else { 0 };
                        self.say(pid, 0, Event::SysExit { id, ret });
                    }
                    self.tasks[i].doing = Doing::Run(0);
                }
                Doing::Run(left) if self.now + left <= next => {
                    self.now += left;
                    self.tasks[i].doing = Doing::Run(0);
                    self.go_on(i);
                }
                Doing::Run(left) => {
                    self.tasks[i].doing = Doing::Run(left - (next - self.now));
                    self.now = next;
                    self.interrupt();
                }
            }
        }
        let truth = self.tasks.into_iter().map(|t| (t.spec.pid, t.truth)).collect();
        (self.entries, truth)
    }

    /// All that is due now, in one interrupt.
    fn interrupt(&mut self) {
        let pid = self.pid();
        self.say(pid, 0x09, Event::VectorEntry(Vector::Timer));
        while let Some(Reverse((t, wake))) = self.wakes.peek().copied() {
            if t > self.now {
                break;
            }
            self.wakes.pop();
            match wake {
                Wake::Noise => {
                    self.now += self.random.within(200, 9000);
                    let next = self.now + self.random.within(self.noise / 2, self.noise * 2);
                    self.wakes.push(Reverse((next, Wake::Noise)));
                }
                Wake::Timer(i) => {
                    let event = Event::TimerExpire {
                        timer: i as u64 + 1,
                        function: 1,
                        now_ns: self.now.cast_signed(),
                    };
                    self.say(pid, 0x09, event);
                    self.wake(i, pid);
                    self.say(pid, 0x09, Event::TimerExit { timer: i as u64 + 1 });
                }
                Wake::Arrival(i) => {
                    let next = match self.tasks[i].spec.pacing {
                        Pacing::Outside { period, jitter } => {
                            self.tasks[i].due += period;
                            self.tasks[i].due + self.random.within(0, jitter.max(1))
                        }
                        Pacing::Sporadic { least, more } => {
                            self.now + least + self.random.within(0, more)
                        }
                        _ => u64::MAX,
                    };
                    self.wakes.push(Reverse((next, Wake::Arrival(i))));
                    if self.tasks[i].waiting {
                        self.tasks[i].job = Some((self.now, false));
                        self.wake(i, pid);
                    } else {
                        let now = self.now;
                        self.tasks[i].pending.push_back(now);
                    }
                }
            }
        }
        self.say(pid, 0x09, Event::VectorExit(Vector::Timer));
        self.now += 300;
        self.reschedule(Equals::Wait);
    }

    fn wake(&mut self, i: usize, pid: i32) {
        let task = &mut self.tasks[i];
        if task.waiting && task.step >= task.spec.steps.len() {
            let due = task.due;
            task.job.get_or_insert((due, false));
            task.step = 0;
        }
        task.waiting = false;
        let (target, prio) = (task.spec.pid, task.spec.prio);
        self.order += 1;
        self.ready.push((prio, self.order, i));
        let comm = Word::new(&format!("t{target}"));
        self.say(pid, 0x09, Event::Waking { pid: target, prio, cpu: 0, comm });
    }

    /// Lets the first of the ready threads run, if it comes before the running one.
    fn reschedule(&mut self, equals: Equals) {
        self.ready.sort_unstable();
        let Some((prio, _, first)) = self.ready.first().copied() else { return };
        if let Some(i) = self.running {
            let own = self.tasks[i].spec.prio;
            if prio > own || prio == own && equals == Equals::Wait {
                return;
            }
            self.order += 1;
            self.ready.push((own, self.order, i));
        }
        self.ready.remove(0);
        self.switch(Some(first), 0);
    }

    fn switch(&mut self, next: Option<usize>, prev_state: i64) {
        let of = |s: &Self, i: Option<usize>| {
            i.map_or((0, 120), |i| (s.tasks[i].spec.pid, s.tasks[i].spec.prio))
        };
        let ((prev, prev_prio), (to, next_prio)) = (of(self, self.running), of(self, next));
        if prev == to {
            return;
        }
        let name = |pid: i32| Word::new(&format!("t{pid}"));
        let event = Event::Switch {
            prev,
            prev_prio,
            prev_state,
            prev_comm: name(prev),
            next: to,
            next_prio,
            next_comm: name(to),
        };
        self.say(prev, 0, event);
        self.running = next;
    }

    fn sleep(&mut self, i: usize, id: i64) {
        self.tasks[i].doing = Doing::Leave(id);
        self.now += 400;
        self.ready.sort_unstable();
        let next = (!self.ready.is_empty()).then(|| self.ready.remove(0).2);
        self.switch(next, 1);
    }

    /// The running thread comes to its next step.
    fn go_on(&mut self, i: usize) {
        let pid = self.pid();
        let at = self.tasks[i].step;
        let Some(step) = self.tasks[i].spec.steps.get(at).copied() else {
            self.ends(i);
            return;
        };
        self.tasks[i].step += 1;
        match step {
            Step::Run(least, most) => {
                self.tasks[i].doing = Doing::Run(self.random.within(least, most));
            }
            Step::Call(id, args) => {
                self.say(pid, 0, Event::SysEnter { id, args });
                self.say(pid, 0, Event::SysExit { id, ret: 0 });
            }
            Step::Fault => self.say(pid, 0, Event::PageFault { mode: FaultMode::User, address: 0 }),
            Step::Yield => {
                self.say(pid, 0, Event::SysEnter { id: YIELD, args: [0; 4] });
                self.tasks[i].doing = Doing::Leave(YIELD);
                self.reschedule(Equals::Run);
            }
            Step::Suspend { id, args, least, most, one_in } => {
                if one_in > 1 && !self.random.one_in(one_in) {
                    return;
                }
                self.say(pid, 0, Event::SysEnter { id, args });
                let until = self.now + self.random.within(least, most.max(least + 1));
                if id == NANOSLEEP {
                    let (timer, due_ns) = (i as u64 + 1, until.cast_signed());
                    self.say(
                        pid,
                        0,
                        Event::TimerStart { timer, function: 1, due_ns, latest_ns: due_ns },
                    );
                    self.wakes.push(Reverse((until, Wake::Timer(i))));
                } else {
                    // Something else's interrupt ends it.
                    self.wakes.push(Reverse((until, Wake::Timer(i))));
                }
                self.sleep(i, id);
            }
        }
    }

    /// The cycle is over.
    fn ends(&mut self, i: usize) {
        let pid = self.pid();
        let (id, args) = match self.tasks[i].spec.pacing {
            Pacing::Timer { .. } => (NANOSLEEP, [1, 1, 0x7000, 0]),
            Pacing::Relative { .. } => (NANOSLEEP, [1, 0, 0x7000, 0]),
            Pacing::Outside { .. } => (READ, [5, 0x6000, 8, 0]),
            Pacing::Sporadic { .. } => (FUTEX, [0x5000, 0x80, 0, 0]),
        };
        let entered = self.now;
        self.say(pid, 0, Event::SysEnter { id, args });
        let old = self.tasks[i].job.take();
        self.tasks[i].step = usize::MAX;
        let due = match self.tasks[i].spec.pacing {
            Pacing::Timer { period } => Some(self.tasks[i].due + period),
            Pacing::Relative { sleep } => Some(self.now + sleep),
            _ => None,
        };
        let arrived = self.tasks[i].pending.pop_front();
        let at_once = arrived.is_some() || due.is_some_and(|d| d <= self.now);
        if let Some(due) = due {
            self.tasks[i].due = due;
        }
        let mut end = entered;
        if at_once {
            let release = due.or(arrived).unwrap_or(self.now);
            self.tasks[i].job = Some((release, due.is_none()));
            self.tasks[i].step = 0;
            if let Some(due) = due {
                // The kernel sets the timer all the same, and finds it expired.
                let (timer, due_ns) = (i as u64 + 1, due.cast_signed());
                self.say(
                    pid,
                    0,
                    Event::TimerStart { timer, function: 1, due_ns, latest_ns: due_ns },
                );
            }
            let ret = if id == READ { 8 } else { 0 };
            self.say(pid, 0, Event::SysExit { id, ret });
        } else {
            if let Some(due) = due {
                let (timer, due_ns) = (i as u64 + 1, due.cast_signed());
                self.say(
                    pid,
                    0,
                    Event::TimerStart { timer, function: 1, due_ns, latest_ns: due_ns },
                );
                self.wakes.push(Reverse((due, Wake::Timer(i))));
            }
            self.tasks[i].waiting = true;
            // `sleep` makes the switch after this.
            end = self.now + 400;
            self.sleep(i, id);
        }
        if let Some((release, silent)) = old {
            self.tasks[i].truth.push(Truth { release, end, silent });
        }
    }
}
