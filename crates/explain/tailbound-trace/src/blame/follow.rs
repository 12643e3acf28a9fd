// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace from its first event to its last: how late each watched thread got its CPU, and the
//! latest wake-ups taken apart.
//!
//! Units: ns on the trace's clock. Memory does not grow with the trace: what lies
//! behind the wake-ups that are still under way is forgotten.
//! Not here: where the events come from (`tailbound-record`, `crate::dat`).

use std::collections::BTreeMap;
use std::sync::Arc;

use tailbound_core::Distribution;
use tailbound_core::blame::BlameRecord;
use tailbound_core::words::Word;

use super::engine::{DueTimes, Engine, WatchFilter};
use super::explain::Late;
use super::ground::Ground;
use super::thread::ORDINARY;
use super::wakeup::WakeUp;
use crate::event::Entry;
use crate::symbols::Symbols;

/// How long before a wake-up its cause may lie.
const BEFORE_NS: u64 = 120_000_000;
/// A wake-up that is under way for longer than this loses its begin.
const UNDER_WAY_NS: u64 = 5_000_000_000;
/// Events from one look at what may be forgotten to the next.
const LOOK_EVERY: u32 = 4096;
/// Moments of lost events that are kept.
const HOLES_MAX: usize = 4096;
/// Threads whose wake-ups are counted.
const THREADS_MAX: usize = 4096;

/// Which wake-ups count, and which of them are taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlameSelection {
    /// Those of real-time threads alone.
    pub realtime: bool,
    /// Taken apart are those later than this.
    pub above_ns: i64,
    /// And of them the latest this many.
    pub most: usize,
}

/// One watched thread.
#[derive(Clone, Debug, Default)]
pub struct Followed {
    /// Its name.
    pub comm: String,
    /// As the kernel counts: 0 to 99 real-time, 0 the highest; 100 and above ordinary; -1 deadline; `i32::MAX` where the
    /// source does not say.
    pub prio: i32,
    /// The CPU of its last wake-up.
    pub cpu: u32,
    /// Was it always this CPU?
    pub moved: bool,
    /// How late it got the CPU: after its timer was due, else after it was woken.
    pub wakeups: Distribution,
}

/// What a trace held of the watched threads.
#[derive(Clone, Debug, Default)]
pub struct BlameSummary {
    /// The latest wake-ups, the latest first.
    pub records: Vec<BlameRecord>,
    /// The threads by their number.
    pub threads: BTreeMap<i32, Followed>,
    /// Wake-ups above the limit, taken apart or not.
    pub late: u64,
    /// First and last event.
    pub span_ns: Option<(u64, u64)>,
    /// How many events.
    pub events: u64,
    /// Wake-ups that were not counted, for there are too many threads.
    pub left_out: u64,
    /// Wake-ups of ordinary threads, where only real-time ones count.
    pub ordinary: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Follow {
    engine: Engine,
    ground: Ground,
    wanted: BlameSelection,
    holes: Vec<u64>,
    look: u32,
    found: BlameSummary,
    names: BTreeMap<i32, Word>,
}

impl Follow {
    /// Nothing was seen yet.
    #[must_use]
    pub fn new(
        watched: WatchFilter,
        symbols: Arc<Symbols>,
        ground: Ground,
        wanted: BlameSelection,
    ) -> Self {
        Self {
            engine: Engine::new(watched, symbols),
            ground,
            wanted,
            holes: Vec::new(),
            look: 0,
            found: BlameSummary::default(),
            names: BTreeMap::new(),
        }
    }

    /// Where the due times of timers stand on the trace's clock, if it is not `mono`.
    pub fn due_times(&mut self, due_times: DueTimes) {
        self.engine.due_times(due_times);
    }

    /// The functions that are known from here on, of a trace that names them as they come.
    pub fn symbols(&mut self, symbols: Arc<Symbols>) {
        self.engine.symbols = symbols;
    }

    /// Gives a thread the name that another source knows.
    pub fn name_thread(&mut self, pid: i32, comm: &str) {
        self.engine.name_thread(pid, comm);
        if self.names.len() < THREADS_MAX {
            self.names.insert(pid, Word::new(comm));
        }
    }

    /// One thread more, from here on.
    pub fn watch(&mut self, pid: i32) {
        self.engine.watch(pid);
    }

    /// Events of some CPU were lost just before `t_ns`.
    pub fn lost(&mut self, t_ns: u64) {
        if self.holes.len() >= HOLES_MAX {
            self.holes.drain(..HOLES_MAX / 2);
        }
        self.holes.push(t_ns);
    }

    /// Takes the next event, in the order of time.
    pub fn entry(&mut self, e: &Entry) {
        self.engine.entry(e);
        self.found.events = self.found.events.saturating_add(1);
        let first = self.found.span_ns.map_or(e.t_ns, |(first, _)| first);
        self.found.span_ns = Some((first, e.t_ns));
        while let Some(wakeup) = self.engine.take_wakeup() {
            self.ended(&wakeup);
        }
        self.look = self.look.saturating_add(1);
        if self.look >= LOOK_EVERY {
            self.look = 0;
            let oldest = self.engine.oldest_open().unwrap_or(e.t_ns);
            let keep = oldest.max(e.t_ns.saturating_sub(UNDER_WAY_NS));
            self.engine.forget_before(keep.min(e.t_ns).saturating_sub(BEFORE_NS));
        }
    }

    /// A wake-up came to its end.
    fn ended(&mut self, w: &WakeUp) {
        let (Some(due_ns), Some(switch), Some(latency_ns)) =
            (w.from_ns(), w.switch, w.latency_ns())
        else {
            return;
        };
        if self.wanted.realtime && w.prio >= ORDINARY {
            self.found.ordinary = self.found.ordinary.saturating_add(1);
            return;
        }
        let full = self.found.threads.len() >= THREADS_MAX;
        if full && !self.found.threads.contains_key(&w.pid) {
            self.found.left_out = self.found.left_out.saturating_add(1);
            return;
        }
        let comm = self.engine.comm(w.pid);
        let thread = self.found.threads.entry(w.pid).or_default();
        thread.moved |= thread.wakeups.n > 0 && thread.cpu != switch.cpu;
        (thread.cpu, thread.prio) = (switch.cpu, w.prio);
        thread.wakeups.add(latency_ns);
        if let Some(comm) = comm.filter(|c| !c.is_empty() && *c != thread.comm) {
            comm.clone_into(&mut thread.comm);
        }
        if latency_ns <= self.wanted.above_ns {
            return;
        }
        self.found.late = self.found.late.saturating_add(1);
        // The list is sorted; what would not stay is not taken apart.
        let place = self.found.records.partition_point(|r| r.latency_ns >= latency_ns);
        if place >= self.wanted.most {
            return;
        }
        let late =
            Late { pid: w.pid, due_ns, end_ns: switch.t_ns, cpu: Some(switch.cpu), ours: false };
        let lost = self.holes.iter().any(|t| (due_ns..=switch.t_ns).contains(t));
        let record = self.engine.explain(&late, Some(w), &Ground { lost, ..self.ground });
        self.found.records.insert(place, record);
        self.found.records.truncate(self.wanted.most);
    }

    /// What was found so far.
    #[must_use]
    pub fn so_far(&self) -> &BlameSummary {
        &self.found
    }

    /// The wake-ups taken apart so far, for what another source tells of them.
    pub fn records_mut(&mut self) -> &mut [BlameRecord] {
        &mut self.found.records
    }

    /// Only later wake-ups than this are taken apart from now on.
    #[must_use]
    pub fn kept_above_ns(&self) -> i64 {
        let least = self.found.records.get(self.wanted.most.saturating_sub(1));
        least.map_or(self.wanted.above_ns, |r| r.latency_ns)
    }

    /// What was found in all.
    #[must_use]
    pub fn finish(mut self) -> BlameSummary {
        for (pid, thread) in &mut self.found.threads {
            if thread.comm.is_empty()
                && let Some(name) = self.names.get(pid)
            {
                thread.comm = name.to_string();
            }
        }
        self.found
    }
}

impl Followed {
    /// Did it have a real-time priority, or a deadline?
    #[must_use]
    pub fn is_realtime(&self) -> bool {
        self.prio < ORDINARY
    }
}
