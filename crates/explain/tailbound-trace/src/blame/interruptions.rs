// SPDX-License-Identifier: MIT OR Apache-2.0
//! What takes time from chosen CPUs: every interrupt, soft interrupt, work item and thread on them,
//! how often and how long, and who sends them interrupts from other CPUs.
//!
//! Units: ns on the trace's clock. An occurrence lasts from its begin to its end without
//! what interrupted it meanwhile. Memory is bounded: names beyond a limit are one.
//! Not here: what that means for a late thread (`explain`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tailbound_core::blame::{Activity, Interrupted, OnCpu, Sender, without_numbers};

use super::cpu::CpuActivity;
use super::engine::{Engine, WatchFilter};
use super::explain::activity;
use crate::event::{Entry, Event};
use crate::symbols::Symbols;

/// Events from one tally to the next.
const LOOK_EVERY: u32 = 1024;
/// Most names of one CPU, and most senders.
const NAMES_MAX: usize = 2048;
/// Senders are looked up that far back.
const BEFORE_NS: u64 = 20_000_000;
const OTHERS: &str = "others";

/// What lies over each other on a CPU, the innermost last.
#[derive(Debug, Default)]
struct Stack {
    /// Up to when the CPU's time was tallied.
    until: Option<u64>,
    open: Vec<(u8, Activity, String, u64)>,
}

/// See the module.
#[derive(Debug)]
pub struct Interruptions {
    engine: Engine,
    chosen: BTreeSet<u32>,
    stacks: BTreeMap<u32, Stack>,
    look: u32,
    found: Interrupted,
}

/// What is higher interrupts what is lower, which then goes on.
fn level(activity: Activity) -> u8 {
    match activity {
        Activity::Idle => 0,
        Activity::Softirq => 2,
        Activity::Interrupt | Activity::Timer | Activity::Ipi => 3,
        Activity::Nmi => 4,
        _ => 1,
    }
}

impl Interruptions {
    /// Nothing was seen yet.
    #[must_use]
    pub fn new(chosen: BTreeSet<u32>, symbols: Arc<Symbols>) -> Self {
        let engine = Engine::new(WatchFilter::Threads(BTreeSet::new()), symbols);
        let cpus = chosen.iter().map(|c| (*c, OnCpu::default())).collect();
        let found = Interrupted { cpus, ..Interrupted::default() };
        Self { engine, chosen, stacks: BTreeMap::new(), look: 0, found }
    }

    /// Takes the next event, in the order of time.
    pub fn entry(&mut self, e: &Entry) {
        self.engine.entry(e);
        self.found.events = self.found.events.saturating_add(1);
        match e.event {
            Event::IpiSend { cpu, callsite, callback } => {
                let to = u64::from(self.chosen.contains(&cpu) && cpu != e.cpu);
                self.sent(e, to, callsite, callback);
            }
            Event::IpiSendMany { cpus, callsite, callback } => {
                let hit = |c: &&u32| {
                    1u64.checked_shl(**c).is_some_and(|bit| cpus & bit != 0) && **c != e.cpu
                };
                let to = self.chosen.iter().filter(hit).count() as u64;
                self.sent(e, to, callsite, callback);
            }
            _ => {}
        }
        self.look = self.look.saturating_add(1);
        if self.look >= LOOK_EVERY {
            self.look = 0;
            self.tally();
            self.engine.forget_before(e.t_ns.saturating_sub(BEFORE_NS));
        }
    }

    fn sent(&mut self, e: &Entry, count: u64, callsite: u64, callback: u64) {
        if count == 0 {
            return;
        }
        let who = match self.engine.comm(e.pid) {
            _ if e.pid == 0 => "idle".to_owned(),
            Some(comm) if !comm.is_empty() => comm.to_owned(),
            _ => format!("thread {}", e.pid),
        };
        let function = |a: u64| self.engine.symbols.name(a).unwrap_or_default().to_owned();
        let mut sender = Sender { who, callsite: function(callsite), callback: function(callback) };
        if self.found.senders.len() >= NAMES_MAX && !self.found.senders.contains_key(&sender) {
            sender =
                Sender { who: OTHERS.to_owned(), callsite: String::new(), callback: String::new() };
        }
        let sent = self.found.senders.entry(sender).or_default();
        *sent = sent.saturating_add(count);
    }

    /// Counts what came to its end on the chosen CPUs.
    fn tally(&mut self) {
        for cpu in &self.chosen {
            let Some(known) = self.engine.cpus.get(cpu) else { continue };
            let Some(last) = known.times.back().copied() else { continue };
            let stack = self.stacks.entry(*cpu).or_default();
            let Some(from) = stack.until.or_else(|| known.times.front().copied()) else { continue };
            stack.until = Some(last);
            let Some(on) = self.found.cpus.get_mut(cpu) else { continue };
            on.span_ns = on.span_ns.saturating_add(last.saturating_sub(from));
            if last <= from {
                continue;
            }
            for s in known.between(from, last, CpuActivity::Thread) {
                let ns = s.to.saturating_sub(s.from);
                match activity(&s, -1) {
                    None => on.unknown_ns = on.unknown_ns.saturating_add(ns),
                    Some(Activity::Idle) => {
                        on.idle_ns = on.idle_ns.saturating_add(ns);
                        stack.down_to(0, on);
                    }
                    Some(a) => {
                        stack.add(a, without_numbers(&self.engine.who(*cpu, &s)), ns, on);
                    }
                }
            }
        }
    }

    /// What was found up to now.
    pub fn so_far(&mut self) -> &Interrupted {
        self.tally();
        &self.found
    }

    /// What was found in all.
    #[must_use]
    pub fn finish(mut self) -> Interrupted {
        self.tally();
        for (cpu, stack) in &mut self.stacks {
            if let Some(on) = self.found.cpus.get_mut(cpu) {
                stack.down_to(0, on);
            }
        }
        self.found
    }
}

impl Stack {
    /// Time of something, which goes on or begins.
    fn add(&mut self, activity: Activity, who: String, ns: u64, on: &mut OnCpu) {
        let level = level(activity);
        self.down_to(level.saturating_add(1), on);
        match self.open.last_mut() {
            Some((l, a, w, sum)) if (*l, *a, w.as_str()) == (level, activity, who.as_str()) => {
                *sum = sum.saturating_add(ns);
            }
            _ => {
                // Another one of the same level has come to its end.
                self.down_to(level, on);
                self.open.push((level, activity, who, ns));
            }
        }
    }

    /// Ends all that lies at `level` and above.
    fn down_to(&mut self, level: u8, on: &mut OnCpu) {
        while self.open.last().is_some_and(|(l, ..)| *l >= level) {
            let Some((_, activity, mut who, ns)) = self.open.pop() else { return };
            if on.taken.len() >= NAMES_MAX && !on.taken.contains_key(&(activity, who.clone())) {
                OTHERS.clone_into(&mut who);
            }
            let taken = on.taken.entry((activity, who)).or_default();
            taken.count = taken.count.saturating_add(1);
            taken.ns = taken.ns.saturating_add(ns);
            taken.ns_max = taken.ns_max.max(ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use tailbound_core::blame::TimeTotals;
    use tailbound_core::words::Word;

    use super::*;
    use crate::event::{Flags, Vector};

    const HARD: Flags = Flags(0x09);

    fn entry(t_ns: u64, cpu: u32, pid: i32, flags: Flags, event: Event) -> Entry {
        Entry { t_ns, cpu, pid, flags, event }
    }

    fn switch(t_ns: u64, prev: i32, next: i32, comm: &str) -> Entry {
        let word = Word::new(comm);
        let event = Event::Switch {
            prev,
            prev_prio: 120,
            prev_state: 1,
            prev_comm: Word::new("work"),
            next,
            next_prio: 120,
            next_comm: word,
        };
        entry(t_ns, 1, prev, Flags(0), event)
    }

    #[test]
    fn an_occurrence_ends_where_it_ends_and_not_where_it_is_interrupted() {
        let symbols = Symbols::parse("ffffffff81000000 T flush\nffffffff81001000 T send\n");
        let mut all = Interruptions::new(BTreeSet::from([1]), Arc::new(symbols));
        let flush = 0xffff_ffff_8100_0000;
        let name = Word::new("eth0");
        let send = Event::IpiSend { cpu: 1, callsite: 0xffff_ffff_8100_1004, callback: flush };
        let away = Event::IpiSend { cpu: 0, callsite: flush, callback: flush };
        for e in [
            switch(1_000, 0, 7, "work"),
            entry(2_000, 1, 7, HARD, Event::IrqEntry { irq: 36, name }),
            entry(2_500, 1, 7, HARD, Event::IrqExit { irq: 36 }),
            entry(2_900, 0, 9, Flags(0), send),
            entry(2_950, 1, 7, Flags(0), away),
            entry(3_000, 1, 7, HARD, Event::VectorEntry(Vector::Ipi("function call"))),
            entry(3_010, 1, 7, HARD, Event::CallEntry { function: flush }),
            entry(3_200, 1, 7, HARD, Event::VectorExit(Vector::Ipi("function call"))),
            switch(4_000, 7, 0, "idle"),
            entry(5_000, 1, 0, HARD, Event::IrqEntry { irq: 36, name }),
            entry(5_100, 1, 0, HARD, Event::IrqExit { irq: 36 }),
            switch(6_000, 0, 7, "work"),
        ] {
            all.entry(&e);
        }
        let found = all.finish();
        let on = &found.cpus[&1];
        let one = |a: Activity, who: &str| on.taken.get(&(a, who.to_owned())).copied();
        let irq = TimeTotals { count: 2, ns: 600, ns_max: 500 };
        assert_eq!(one(Activity::Interrupt, "36 eth0"), Some(irq), "{on:?}");
        let work = one(Activity::Thread, "work").expect("the thread");
        assert_eq!((work.count, work.ns), (1, 2_300), "interrupted twice, switched out once");
        let ipi: Vec<_> = on.taken.iter().filter(|((a, _), _)| *a == Activity::Ipi).collect();
        assert!(ipi.iter().any(|((_, who), _)| who.contains("flush")), "{ipi:?}");
        assert_eq!(on.idle_ns, 1_900);
        assert_eq!(on.span_ns, 5_000);
        let senders: Vec<_> = found.senders.iter().collect();
        assert_eq!(senders.len(), 1, "the other was for a CPU that nobody asked for");
        assert_eq!((senders[0].0.callsite.as_str(), *senders[0].1), ("send", 1));
    }
}
