// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cycles of threads of somebody else's program, from the kernel's events alone: where each begins
//! and ends, and what every ns of it went to.
//!
//! Context: COLD. Units: ns on the trace's clock. Memory is bounded.
//!
//! ```text
//! events ─► Engine: who had which CPU ──────────────┐
//!      └──► Tracker of each thread: its waits, and  │ parts
//!           what it did between them ◄──────────────┘
//!               └─► Assembly: which wait paces it (choose), cycles, their sums and the longest
//! ```
//!
//! Method and limits: docs/watch.md.
//! Not here: recording (`tailbound-probe`), names of system calls (`tailbound_sys::calls`), what is said
//! (`tailbound-report`).

mod assemble;
mod calls;
mod choose;
mod part;
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

use crate::blame::{Engine, Ground, WakeUp, Watched};
use crate::event::{Entry, Event};
use crate::symbols::Symbols;
use assemble::{Assembly, Options};
use calls::Call;
pub use calls::Calls;
use choose::Known;
use part::Whats;
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
    assembly: Assembly,
}

/// What a watched thread came to.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its cycles; thread, process and policy are the caller's to fill in.
    pub cycles: CycleRecord,
    /// Its latest wake-ups at the begin of a cycle, the latest first.
    pub late: Vec<LateWakeUp>,
    /// The wake-ups at the begin of cycles, by the second they were due in.
    pub seconds: Vec<SecondRecord>,
    /// The same in stretches.
    pub blocks: Vec<BlockRecord>,
}

/// A late wake-up at the begin of a cycle.
#[derive(Clone, Debug)]
pub struct LateWakeUp {
    /// Which of the whole cycles, from 0.
    pub activation: u64,
    /// Taken apart.
    pub record: BlameRecord,
}

/// See the module.
#[derive(Debug)]
pub struct Cycles {
    engine: Engine,
    calls: Arc<Calls>,
    ground: Ground,
    options: Options,
    whats: Whats,
    threads: BTreeMap<i32, Thread>,
    /// The call that each thread is in: followed ones, and those that wake them.
    in_call: HashMap<i32, Call>,
    holes: Vec<u64>,
    look: u32,
    /// What the CPUs did before this is forgotten.
    since: u64,
    events: u64,
    span_ns: Option<(u64, u64)>,
}

impl Cycles {
    /// Nothing was seen yet, and nobody is watched.
    #[must_use]
    pub fn new(symbols: Arc<Symbols>, calls: Arc<Calls>, ground: Ground, wish: Wish) -> Self {
        let known = Known { period_ns: wish.period_ns, call: wish.activation };
        Self {
            engine: Engine::new(Watched::Threads(BTreeSet::new()), symbols),
            calls,
            ground,
            options: Options {
                known,
                deadline_ns: wish.deadline_ns,
                worst: wish.worst,
                begin_ns: wish.begin_ns,
            },
            whats: Whats::default(),
            threads: BTreeMap::new(),
            in_call: HashMap::new(),
            holes: Vec::new(),
            look: 0,
            since: 0,
            events: 0,
            span_ns: None,
        }
    }

    /// One thread more, from here on.
    pub fn watch(&mut self, pid: i32) {
        self.engine.watch(pid);
        self.threads.entry(pid).or_insert_with(|| Thread {
            tracker: Tracker::new(pid),
            assembly: Assembly::new(pid),
        });
    }

    /// Gives a thread the name that another source knows.
    pub fn name_thread(&mut self, pid: i32, comm: &str) {
        self.engine.name_thread(pid, comm);
    }

    /// Events of some CPU were lost just before `t_ns`.
    pub fn lost(&mut self, t_ns: u64) {
        if self.holes.len() >= HOLES_MAX {
            self.holes.drain(..HOLES_MAX / 2);
        }
        self.holes.push(t_ns);
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

    /// Takes the next event, in the order of time.
    pub fn entry(&mut self, e: &Entry) {
        self.engine.entry(e);
        self.events += 1;
        self.span_ns = Some((self.span_ns.map_or(e.t_ns, |(first, _)| first), e.t_ns));
        let wakeups =
            if self.engine.has_wakeups() { self.engine.take_wakeups() } else { Vec::new() };
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
        self.look += 1;
        if self.look >= LOOK_EVERY {
            self.look = 0;
            self.forget(e.t_ns);
        }
    }

    fn one(&mut self, pid: i32, e: &Entry, wakeups: &[WakeUp]) {
        let Some(thread) = self.threads.get_mut(&pid) else { return };
        let mut ctx = Ctx {
            engine: &self.engine,
            calls: &self.calls,
            whats: &mut self.whats,
            ground: self.ground,
            holes: &self.holes,
        };
        let wakeup = wakeups.iter().rfind(|w| w.pid == pid);
        if let Some(piece) = thread.tracker.entry(&mut ctx, e, wakeup) {
            thread.assembly.piece(
                &mut assemble::Ground {
                    engine: &self.engine,
                    calls: &self.calls,
                    whats: &mut self.whats,
                    options: &self.options,
                    since: self.since,
                    event_ns: self.ground.event_ns,
                },
                piece,
            );
        }
    }

    fn forget(&mut self, now: u64) {
        let under_way = |t: &Thread| t.tracker.since().into_iter().chain(t.assembly.since()).min();
        let oldest = self.threads.values().filter_map(under_way).min().unwrap_or(now);
        let keep = oldest.max(now.saturating_sub(UNDER_WAY_NS)).min(now).saturating_sub(BEFORE_NS);
        self.since = self.since.max(keep);
        self.engine.forget_before(self.since);
    }

    /// What was found of each thread.
    #[must_use]
    pub fn finish(mut self) -> BTreeMap<i32, Found> {
        let mut out = BTreeMap::new();
        for (pid, thread) in std::mem::take(&mut self.threads) {
            let mut ground = assemble::Ground {
                engine: &self.engine,
                calls: &self.calls,
                whats: &mut self.whats,
                options: &self.options,
                since: self.since,
                event_ns: self.ground.event_ns,
            };
            out.insert(pid, thread.assembly.end(&mut ground));
        }
        out
    }
}
