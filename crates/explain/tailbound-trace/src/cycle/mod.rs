// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cycles of threads of somebody else's program, from the kernel's events alone: where each begins
//! and ends, and what every ns of it went to.
//!
//! Units: ns on the trace's clock. Memory is bounded.
//!
//! ```text
//! events ─► Engine: who had which CPU ──────────────┐
//!      └──► Tracker of each thread: its waits, and  │ parts
//!           what it did between them ◄──────────────┘
//!               └─► Resume: waits that a signal interrupted become one again
//!                     └─► Assembly: which wait paces it (choose), cycles, their sums and the longest
//! ```
//!
//! Method and limits: docs/watch.md.
//! Not here: recording (`tailbound-record`), names of system calls (`tailbound_sys::calls`), what is said
//! (`tailbound-report`).

mod assemble;
mod blocked;
mod calls;
mod choose;
mod job;
mod lateness;
mod locks;
mod own_timer;
mod part;
mod resume;
mod seconds;
mod tracker;
mod wait;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use tailbound_core::blame::BlameRecord;
use tailbound_core::cycle::CycleRecord;
use tailbound_core::record::{BlockRecord, SecondRecord};
use tailbound_core::tasks::Job;

use crate::blame::{Engine, Ground, WakeUp, WatchFilter};
use crate::event::{Entry, Event};
use crate::symbols::Symbols;
use assemble::{Assembly, Options};
use calls::Call;
pub use calls::Calls;
use choose::CycleHints;
use job::Delayers;
use part::Whats;
use resume::Resume;
use tracker::{Ctx, Tracker};

/// How long before what is under way a cause may lie.
const BEFORE_NS: u64 = 20_000_000;
/// What is under way for longer loses what the CPUs did at its begin.
const UNDER_WAY_NS: u64 = 4_000_000_000;
/// Events from one look at what may be forgotten to the next.
const LOOK_EVERY: u32 = 4096;
/// Most threads whose calls are looked at.
const CALLERS_MAX: usize = 4096;
/// Moments of lost events that are kept.
const HOLES_MAX: usize = 4096;

/// What is known beforehand, and how much is kept.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// The period that the user knows.
    pub period_ns: Option<i64>,
    /// What response times are held against.
    pub deadline_ns: Option<i64>,
    /// The name of the system call that paces the threads, where the user knows it.
    pub activation: Option<String>,
    /// Where the seconds of the watching are counted from.
    pub begin_ns: u64,
    /// The longest cycles and latest wake-ups that are kept part by part, of each thread.
    pub worst: usize,
}

/// One watched thread, while it goes on.
#[derive(Clone, Debug)]
struct Thread {
    tracker: Tracker,
    resume: Resume,
    assembly: Assembly,
}

/// What a watched thread came to.
#[derive(Clone, Debug)]
pub struct ThreadCycles {
    /// Its cycles; thread, process and policy are the caller's to fill in.
    pub cycles: CycleRecord,
    /// Its latest wake-ups at the begin of a cycle, the latest first.
    pub late: Vec<LateWakeUp>,
    /// The wake-ups at the begin of cycles, by the second they were due in.
    pub seconds: Vec<SecondRecord>,
    /// The same in stretches.
    pub blocks: Vec<BlockRecord>,
    /// Its cycles as jobs, those that were not taken before.
    pub jobs: Vec<Option<Job>>,
    /// The CPUs on which watched threads had to wait for it.
    pub delayed_on: Vec<u32>,
}

/// A late wake-up at the begin of a cycle.
#[derive(Clone, Debug)]
pub struct LateWakeUp {
    /// Which of the whole cycles, from 0.
    pub activation: u64,
    /// Taken apart.
    pub record: BlameRecord,
}

/// What every thread's events are looked up in, and what all threads come to together.
#[derive(Debug)]
struct Common {
    engine: Engine,
    calls: Arc<Calls>,
    ground: Ground,
    options: Options,
    whats: Whats,
    /// The numbers of the followed ones.
    watched: BTreeSet<i32>,
    /// Those that others waited for.
    delayers: Delayers,
    /// Cycles as jobs, until they are taken; `None`: one that was not seen whole.
    jobs: Vec<(i32, Option<Job>)>,
    holes: Vec<u64>,
    /// What the CPUs did before this is forgotten.
    since: u64,
}

impl Common {
    fn tracking(&mut self) -> Ctx<'_> {
        Ctx {
            engine: &self.engine,
            calls: &self.calls,
            whats: &mut self.whats,
            ground: self.ground,
            holes: &self.holes,
        }
    }

    fn assembling(&mut self) -> assemble::Ground<'_> {
        assemble::Ground {
            engine: &self.engine,
            calls: &self.calls,
            whats: &mut self.whats,
            options: &self.options,
            since: self.since,
            event_ns: self.ground.event_ns,
            watched: &self.watched,
            jobs: &mut self.jobs,
            delayers: &mut self.delayers,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub struct Cycles {
    common: Common,
    threads: BTreeMap<i32, Thread>,
    /// The call that each thread is in: followed ones, and those that wake them.
    in_call: HashMap<i32, Call>,
    look: u32,
    events: u64,
    span_ns: Option<(u64, u64)>,
}

impl Cycles {
    /// Nothing was seen yet, and nobody is watched.
    #[must_use]
    pub fn new(symbols: Arc<Symbols>, calls: Arc<Calls>, ground: Ground, wish: Wish) -> Self {
        let known = CycleHints { period_ns: wish.period_ns, call: wish.activation };
        let options = Options {
            known,
            deadline_ns: wish.deadline_ns,
            worst: wish.worst,
            begin_ns: wish.begin_ns,
        };
        Self {
            common: Common {
                engine: Engine::new(WatchFilter::Threads(BTreeSet::new()), symbols),
                calls,
                ground,
                options,
                whats: Whats::default(),
                watched: BTreeSet::new(),
                delayers: Delayers::new(),
                jobs: Vec::new(),
                holes: Vec::new(),
                since: 0,
            },
            threads: BTreeMap::new(),
            in_call: HashMap::new(),
            look: 0,
            events: 0,
            span_ns: None,
        }
    }

    /// One thread more, from here on.
    pub fn watch(&mut self, pid: i32) {
        self.common.engine.watch(pid);
        self.common.watched.insert(pid);
        self.threads.entry(pid).or_insert_with(|| Thread {
            tracker: Tracker::new(pid),
            resume: Resume::default(),
            assembly: Assembly::new(pid),
        });
    }

    /// Gives a thread the name that another source knows.
    pub fn name_thread(&mut self, pid: i32, comm: &str) {
        self.common.engine.name_thread(pid, comm);
    }

    /// Events of some CPU were lost just before `t_ns`.
    pub fn lost(&mut self, t_ns: u64) {
        if self.common.holes.len() >= HOLES_MAX {
            self.common.holes.drain(..HOLES_MAX / 2);
        }
        self.common.holes.push(t_ns);
    }

    /// Events, and the times of the first and the last.
    #[must_use]
    pub fn extent(&self) -> (u64, Option<(u64, u64)>) {
        (self.events, self.span_ns)
    }

    /// Of a thread: whole cycles so far, the longest of them, and whether what paces it is told.
    #[must_use]
    pub fn so_far(&self, pid: i32) -> Option<(u64, Option<i64>, bool)> {
        let thread = self.threads.get(&pid)?;
        let (n, max) = thread.assembly.so_far();
        Some((n, max, thread.assembly.is_told()))
    }

    /// What is kept part by part so far, with the thread: the longest cycles and the latest wake-ups.
    pub fn records_mut(&mut self) -> impl Iterator<Item = (i32, &mut BlameRecord)> {
        let of = |(pid, t): (&i32, _)| {
            let (pid, thread): (i32, &mut Thread) = (*pid, t);
            thread.assembly.records_mut().map(move |r| (pid, r))
        };
        self.threads.iter_mut().flat_map(of)
    }

    /// Takes the next event, in the order of time.
    pub fn entry(&mut self, e: &Entry) {
        self.common.engine.entry(e);
        self.events = self.events.saturating_add(1);
        self.span_ns = Some((self.span_ns.map_or(e.t_ns, |(first, _)| first), e.t_ns));
        let wakeups = if self.common.engine.has_wakeups() {
            self.common.engine.take_wakeups()
        } else {
            Vec::new()
        };
        match e.event {
            Event::SysEnter { id, args } if self.in_call.len() < CALLERS_MAX => {
                self.in_call.insert(e.pid, Call { id, args, since: e.t_ns });
            }
            Event::SysExit { .. } => {
                self.in_call.remove(&e.pid);
            }
            Event::Waking { pid, .. } => {
                // By the time it has a CPU, the thread that woke it may have left its call.
                if let Some(thread) = self.threads.get_mut(&pid) {
                    let call = e.flags.in_thread().then(|| self.in_call.get(&e.pid).copied());
                    thread.tracker.woken_in(call.flatten());
                }
            }
            _ => {}
        }
        match e.event {
            Event::Switch { prev, next, .. } => {
                self.one(prev, e, &wakeups);
                self.one(next, e, &wakeups);
            }
            Event::Migrate { pid, .. } => {
                self.one(pid, e, &wakeups);
                if pid != e.pid {
                    self.one(e.pid, e, &wakeups);
                }
            }
            _ => self.one(e.pid, e, &wakeups),
        }
        self.look = self.look.saturating_add(1);
        if self.look >= LOOK_EVERY {
            self.look = 0;
            self.forget(e.t_ns);
        }
    }

    fn one(&mut self, pid: i32, e: &Entry, wakeups: &[WakeUp]) {
        let Some(thread) = self.threads.get_mut(&pid) else { return };
        let wakeup = wakeups.iter().rfind(|w| w.pid == pid);
        let Some(piece) = thread.tracker.entry(&mut self.common.tracking(), e, wakeup) else {
            return;
        };
        for piece in thread.resume.piece(&self.common.calls, piece) {
            thread.assembly.piece(&mut self.common.assembling(), piece);
        }
    }

    fn forget(&mut self, now: u64) {
        let under_way = |t: &Thread| {
            let all = [t.tracker.since(), t.resume.since(), t.assembly.since()];
            all.into_iter().flatten().min()
        };
        let oldest = self.threads.values().filter_map(under_way).min().unwrap_or(now);
        let keep = oldest.max(now.saturating_sub(UNDER_WAY_NS)).min(now).saturating_sub(BEFORE_NS);
        self.common.since = self.common.since.max(keep);
        self.common.engine.forget_before(self.common.since);
    }

    /// The jobs of threads since they were last taken, of each in the order of time; `None`: one that was not
    /// seen whole.
    pub fn take_jobs(&mut self) -> Vec<(i32, Option<Job>)> {
        std::mem::take(&mut self.common.jobs)
    }

    /// What was found of each thread.
    #[must_use]
    pub fn finish(mut self) -> BTreeMap<i32, ThreadCycles> {
        let mut out = BTreeMap::new();
        for (pid, mut thread) in std::mem::take(&mut self.threads) {
            for piece in thread.resume.end() {
                thread.assembly.piece(&mut self.common.assembling(), piece);
            }
            type Jobs = Vec<(i32, Option<Job>)>;
            let mut found = thread.assembly.end(&mut self.common.assembling());
            let (own, others): (Jobs, Jobs) =
                std::mem::take(&mut self.common.jobs).into_iter().partition(|(p, _)| *p == pid);
            self.common.jobs = others;
            found.jobs = own.into_iter().map(|(_, job)| job).collect();
            out.insert(pid, found);
        }
        for (pid, cpus) in self.common.delayers {
            if let Some(found) = out.get_mut(&pid) {
                found.delayed_on = cpus.into_iter().collect();
            }
        }
        out
    }
}
