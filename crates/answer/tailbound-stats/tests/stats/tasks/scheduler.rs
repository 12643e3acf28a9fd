// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scheduler of one CPU, exact to the ns: preemptive fixed priorities, first come first served among
//! equals, sleeps, locks with priority inheritance, stretches that cannot be preempted, late wake-ups.
//!
//! Units: ns. Everything follows from the seed. After the last release it runs until
//! every job is done.
//! Not here: task sets (`sets`), what is asserted (`bounds`).

use std::collections::VecDeque;

use tailbound_core::tasks::Job;

/// What a job does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Computes.
    Run(i64),
    /// Computes and cannot be preempted.
    Hold(i64),
    /// Sleeps.
    Sleep(i64),
    /// Takes a lock, and sleeps until it has it.
    Lock(usize),
    /// Gives it back.
    Unlock(usize),
}

/// A task as it is played.
#[derive(Clone, Debug, Default)]
pub(crate) struct Played {
    /// Larger is more urgent.
    pub(crate) priority: u8,
    /// Releases and what each job does, in the order of time.
    pub(crate) jobs: VecDeque<(i64, Vec<Op>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Ready,
    Asleep(i64),
    Waits(usize),
}

struct Thread {
    priority: u8,
    state: State,
    /// Those released and not begun.
    waiting: VecDeque<(i64, Vec<Op>)>,
    ops: VecDeque<Op>,
    job: Job,
    begun: bool,
    stretch_ns: i64,
    /// Its place among equals: the smaller is earlier.
    queued: i64,
}

/// Plays `tasks`; `exit_ns` is how late an idle CPU begins. The jobs of each task, as a trace shows them.
pub(crate) fn play(tasks: &[Played], exit_ns: i64) -> Vec<Vec<Job>> {
    let mut cpu = Cpu {
        now: 0,
        threads: tasks.iter().map(|t| Thread::new(t.priority)).collect(),
        owners: [None; 8],
        running: None,
        wakes_at: None,
        exit_ns,
        queued: 0,
        done: vec![Vec::new(); tasks.len()],
    };
    let mut releases: Vec<(i64, usize, Vec<Op>)> = tasks
        .iter()
        .enumerate()
        .flat_map(|(i, t)| t.jobs.iter().map(move |(at, ops)| (*at, i, ops.clone())))
        .collect();
    releases.sort_by_key(|(at, i, _)| (*at, *i));
    let mut releases = VecDeque::from(releases);
    loop {
        cpu.finish();
        while releases.front().is_some_and(|(at, ..)| *at <= cpu.now) {
            if let Some((at, i, ops)) = releases.pop_front() {
                cpu.threads[i].waiting.push_back((at, ops));
                cpu.begin(i);
            }
        }
        cpu.wake();
        cpu.choose();
        let Some(next) = cpu.next(releases.front().map(|r| r.0)) else { return cpu.done };
        cpu.pass(next);
    }
}

impl Thread {
    fn new(priority: u8) -> Self {
        Self {
            priority,
            state: State::Idle,
            waiting: VecDeque::new(),
            ops: VecDeque::new(),
            job: Job::default(),
            begun: false,
            stretch_ns: 0,
            queued: 0,
        }
    }
}

struct Cpu {
    now: i64,
    threads: Vec<Thread>,
    owners: [Option<usize>; 8],
    running: Option<usize>,
    /// An idle CPU does not run anything before this.
    wakes_at: Option<i64>,
    exit_ns: i64,
    queued: i64,
    done: Vec<Vec<Job>>,
}

impl Cpu {
    /// The next job of a thread that has none.
    fn begin(&mut self, i: usize) {
        let t = &mut self.threads[i];
        if t.state == State::Idle
            && let Some((release_ns, ops)) = t.waiting.pop_front()
        {
            t.job = Job { release_ns, ..Job::default() };
            t.ops = ops.into();
            (t.begun, t.stretch_ns) = (false, 0);
            self.ready(i);
        }
    }

    /// A job that is done at this instant is done before others are released at it.
    fn finish(&mut self) {
        let Some(i) = self.running else { return };
        let ops = &mut self.threads[i].ops;
        while matches!(ops.front(), Some(Op::Run(0) | Op::Hold(0))) {
            ops.pop_front();
        }
        if ops.is_empty() && self.threads[i].state == State::Ready {
            self.end(i);
        }
    }

    fn ready(&mut self, i: usize) {
        self.queued += 1;
        let t = &mut self.threads[i];
        (t.state, t.queued, t.stretch_ns) = (State::Ready, self.queued, 0);
    }

    fn wake(&mut self) {
        for i in 0..self.threads.len() {
            if matches!(self.threads[i].state, State::Asleep(until) if until <= self.now) {
                self.ready(i);
            }
        }
    }

    /// With what it inherits from those that wait for its locks.
    fn urgency(&self, i: usize) -> u8 {
        let waits = |o: usize| {
            (0..self.threads.len()).filter(move |w| self.threads[*w].state == State::Waits(o))
        };
        (0..self.owners.len())
            .filter(|lock| self.owners[*lock] == Some(i))
            .flat_map(waits)
            .map(|w| self.urgency(w))
            .fold(self.threads[i].priority, u8::max)
    }

    /// Who runs now; what takes no time is done.
    fn choose(&mut self) {
        loop {
            let holds = |i: usize| {
                self.threads[i].state == State::Ready
                    && matches!(self.threads[i].ops.front(), Some(Op::Hold(_)))
            };
            let kept = self.running.filter(|i| holds(*i) && self.threads[*i].begun);
            let ready = (0..self.threads.len()).filter(|i| self.threads[*i].state == State::Ready);
            let first = ready.max_by_key(|i| {
                // Who runs stands before its equals.
                let place =
                    if self.running == Some(*i) { i64::MIN } else { self.threads[*i].queued };
                (self.urgency(*i), std::cmp::Reverse(place))
            });
            let Some(i) = kept.or(first) else {
                (self.running, self.wakes_at) = (None, None);
                return;
            };
            if self.running.is_none() {
                let from = *self.wakes_at.get_or_insert(self.now + self.exit_ns);
                if from > self.now {
                    return;
                }
            }
            if self.running != Some(i) {
                if let Some(old) =
                    self.running.filter(|old| self.threads[*old].state == State::Ready)
                {
                    // Preempted: it stays the first of its priority.
                    self.threads[old].queued = -self.now;
                    self.threads[old].stretch_ns = 0;
                }
                self.running = Some(i);
            }
            let t = &mut self.threads[i];
            if !t.begun {
                (t.begun, t.job.start_ns) = (true, self.now);
            }
            t.stretch_ns = 0;
            match t.ops.front().copied() {
                Some(Op::Run(0) | Op::Hold(0)) => drop(t.ops.pop_front()),
                Some(Op::Run(_) | Op::Hold(_)) => return,
                Some(Op::Sleep(ns)) => {
                    t.ops.pop_front();
                    t.job.suspensions += 1;
                    t.state = State::Asleep(self.now + ns);
                }
                Some(Op::Lock(lock)) => {
                    if self.owners[lock].is_none() {
                        t.ops.pop_front();
                        self.owners[lock] = Some(i);
                    } else {
                        t.job.suspensions += 1;
                        t.state = State::Waits(lock);
                    }
                }
                Some(Op::Unlock(lock)) => {
                    t.ops.pop_front();
                    self.hand_over(lock);
                }
                None => self.end(i),
            }
        }
    }

    fn hand_over(&mut self, lock: usize) {
        let waiters =
            (0..self.threads.len()).filter(|w| self.threads[*w].state == State::Waits(lock));
        let next = waiters.max_by_key(|w| self.threads[*w].priority);
        self.owners[lock] = next;
        if let Some(w) = next {
            self.threads[w].ops.pop_front();
            self.ready(w);
        }
    }

    fn end(&mut self, i: usize) {
        let t = &mut self.threads[i];
        t.job.end_ns = self.now;
        t.state = State::Idle;
        self.done[i].push(t.job);
        self.begin(i);
    }

    /// When something happens next.
    fn next(&self, release: Option<i64>) -> Option<i64> {
        let asleep = self.threads.iter().filter_map(|t| match t.state {
            State::Asleep(until) => Some(until),
            _ => None,
        });
        let step = self.running.and_then(|i| match self.threads[i].ops.front() {
            Some(Op::Run(ns) | Op::Hold(ns)) => Some(self.now + ns),
            _ => None,
        });
        let awake = self.wakes_at.filter(|at| *at > self.now && self.running.is_none());
        asleep.chain(step).chain(awake).chain(release).min()
    }

    /// Time goes on to `next`, and each job's share of it is entered.
    fn pass(&mut self, next: i64) {
        let dt = next - self.now;
        let running = self.running;
        let urgent = running.map(|i| self.threads[i].priority);
        let owners: Vec<Option<u8>> =
            self.owners.iter().map(|o| o.map(|i| self.threads[i].priority)).collect();
        for (i, t) in self.threads.iter_mut().enumerate() {
            match t.state {
                State::Idle => {}
                State::Ready if running == Some(i) => {
                    t.job.execution_ns += dt;
                    if let Some(Op::Run(left) | Op::Hold(left)) = t.ops.front_mut() {
                        *left -= dt;
                    }
                }
                // Behind one of at least its priority: that one's, not this one's.
                State::Ready if urgent.is_some_and(|p| p >= t.priority) => t.stretch_ns = 0,
                State::Ready => {
                    t.job.latency_ns += dt;
                    t.stretch_ns += dt;
                    t.job.section_ns = t.job.section_ns.max(t.stretch_ns);
                }
                State::Waits(lock) if owners[lock].is_some_and(|p| p < t.priority) => {
                    t.job.blocked_ns += dt;
                }
                State::Asleep(_) | State::Waits(_) => t.job.suspension_ns += dt,
            }
        }
        self.now = next;
    }
}
