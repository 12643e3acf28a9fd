// SPDX-License-Identifier: MIT OR Apache-2.0
//! The variables of the theoretical bound from a machine's own events: `preemptirq`, scheduler, interrupts, idle.
//!
//! Units: ns of the trace's clock. One [`CpuEvents`] for each CPU, in the order of time.
//!
//! The events become the records that the plugin would have made, and `stretches` does the rest. What they do not tell:
//! - **That an interrupt was taken**: interrupts' being disabled is told first, and of whom only by the next event. So the
//!   former is held until then. It is over where interrupts are enabled again outside of it and of soft interrupts.
//! - **Where the scheduler begins**: known from the switch, afterwards: where preemption was disabled for it. One that
//!   finds nobody else to run is a section with preemption disabled like others, and counts as POID.
//! - **When a thread was to be rescheduled**: each record's flags tell, from the next event on. Lazy requests do not count:
//!   they are never for a thread of a fixed priority.
//! - **Non-maskable interrupts** are told when their handler has ended, with its length.
//! - **The halt**: `cpu_idle` comes before; where interrupts are enabled after it is nearer. What hardware takes to leave
//!   an idle state is not seen.
//!
//! Where events were lost nothing is known until the next switch. Not here: how they are recorded (`tailbound-record`).

use tailbound_core::order;
use tailbound_core::theory::{
    Evidence, Execution, Holds, Observed, Precondition, Variable, VariableRecord, Vector,
};
use tailbound_trace::event::{Entry, Event, Vector as Kind};
use tailbound_trace::symbols::Symbols;

use crate::interrupts::Interrupts;
use crate::log::Record;
use crate::names::named;
use crate::record::{kind, state};
use crate::stretches::{SchedulerMark, Stretches};
use crate::window::GuestWindow;

/// In the place of the scheduler's address.
const SCHEDULE: u64 = 1;
/// A thread that is nobody: nobody is measured.
const NOBODY: u64 = u64::MAX;
/// Most executions of interrupts that are kept of a CPU.
const EXECUTIONS_MAX: u64 = 4_000_000;
/// Priorities, as the kernel's events tell them.
const PRIO_FAIR: i32 = 100;
/// A thread that leaves its CPU ready: the state's lowest bits are those of sleep.
const SLEEP_BITS: i64 = 0xff;

/// See the module.
#[derive(Debug)]
pub struct CpuEvents {
    cpu: u32,
    stretches: Stretches<fn(u64) -> bool>,
    /// Nothing is known before the first switch.
    known: bool,
    state: u8,
    /// Interrupts were disabled, by whom is not known yet; and preemption after that.
    held: Option<Entry>,
    held_preemption: Option<Entry>,
    /// Interrupts under way: did it interrupt a soft interrupt?
    frames: Vec<bool>,
    halting: Option<u64>,
    current_prio: i32,
    woken: Option<Woken>,
    awaited: Option<u64>,
    names: Vec<String>,
    observed: Observed,
    begin_ns: u64,
    last_ns: u64,
    events: u64,
    holes: u64,
    executions: u64,
    unmatched: u64,
    deadline: u64,
    stopper: u64,
    gave_way: u64,
}

/// A thread of a fixed priority was woken that goes before who runs.
#[derive(Clone, Copy, Debug)]
struct Woken {
    pid: i32,
    prio: i32,
    t_ns: u64,
}

/// How the kernel's offsets become names, and what recording costs.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// The kernel's functions.
    pub symbols: &'a Symbols,
    /// Where its code begins: what the events' offsets count from.
    pub begin: Option<u64>,
    /// What recording one event costs.
    pub event_ns: Option<i64>,
}

fn is_interrupt(_: u64) -> bool {
    true
}

fn thread(pid: i32) -> u64 {
    u64::from(pid.unsigned_abs())
}

/// Both offsets in one value.
fn place(caller: i64, parent: i64) -> u64 {
    (caller.cast_unsigned() & 0xffff_ffff) << 32 | parent.cast_unsigned() & 0xffff_ffff
}

impl CpuEvents {
    /// Of this CPU, from `begin_ns` on.
    #[must_use]
    pub fn new(cpu: u32, begin_ns: u64) -> Self {
        let interrupts = Interrupts::new(SCHEDULE, is_interrupt as fn(u64) -> bool);
        // Times are compared with a sign.
        let window = GuestWindow { from_ns: begin_ns, to_ns: u64::MAX >> 1 };
        Self {
            cpu,
            stretches: Stretches::new(
                interrupts,
                SCHEDULE,
                SchedulerMark::AtSwitch,
                0,
                NOBODY,
                window,
            ),
            known: false,
            state: 0,
            held: None,
            held_preemption: None,
            frames: Vec::new(),
            halting: None,
            current_prio: i32::MAX,
            woken: None,
            awaited: None,
            names: Vec::new(),
            observed: Observed::default(),
            begin_ns,
            last_ns: begin_ns,
            events: 0,
            holes: 0,
            executions: 0,
            unmatched: 0,
            deadline: 0,
            stopper: 0,
            gave_way: 0,
        }
    }

    /// Which CPU.
    #[must_use]
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// How many events there were.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// How long it was watched: to its last event.
    #[must_use]
    pub fn span_ns(&self) -> i64 {
        self.last_ns.saturating_sub(self.begin_ns).cast_signed()
    }

    /// Nothing more is taken in: there were too many interrupts.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.executions >= EXECUTIONS_MAX
    }

    /// Events are missing before the next one.
    pub fn lose(&mut self) {
        self.holes += 1;
        self.known = false;
    }

    /// The next event.
    pub fn add(&mut self, e: &Entry) {
        if self.is_full() {
            return;
        }
        self.events += 1;
        self.last_ns = self.last_ns.max(e.t_ns);
        self.stretches.count();
        if !self.known {
            if let Event::Switch { next, next_prio, .. } = e.event {
                self.begins(e.t_ns, next, next_prio);
            }
            return;
        }
        match e.event {
            Event::Interrupts { off: true, .. } => {
                self.release();
                self.held = Some(*e);
                return;
            }
            Event::Preemption { off: true, .. }
                if self.held.is_some() && self.held_preemption.is_none() && e.flags.hardirq() =>
            {
                self.held_preemption = Some(*e);
                return;
            }
            Event::Nmi { ns, .. } => {
                self.release();
                self.non_maskable(e.t_ns, ns);
                return;
            }
            _ => {}
        }
        if self.held.is_some() && e.flags.hardirq() && !e.flags.nmi() {
            self.enters(&named_interrupt(&e.event));
        } else {
            self.release();
            let begins = matches!(e.event, Event::VectorEntry(_) | Event::IrqEntry { .. });
            if begins && self.frames.is_empty() {
                self.unmatched += 1;
            }
        }
        self.takes(e);
    }

    /// From a switch on everything is known: interrupts and preemption are disabled, and no interrupt is under way.
    fn begins(&mut self, t_ns: u64, next: i32, next_prio: i32) {
        self.known = true;
        self.state = state::INTERRUPTS_OFF | state::PREEMPTION_OFF;
        (self.held, self.held_preemption, self.halting) = (None, None, None);
        (self.woken, self.awaited) = (None, None);
        self.frames.clear();
        self.current_prio = next_prio;
        self.stretches.lose(self.state);
        self.emit(t_ns, kind::SWITCH, thread(next));
    }

    fn emit(&mut self, t_ns: u64, kind: u8, value: u64) {
        self.stretches.add(&Record { t_ns, cpu: 0, state: self.state, kind, value });
    }

    fn halts(&mut self) {
        if let Some(t_ns) = self.halting.take() {
            self.emit(t_ns, kind::HALT, 0);
        }
    }

    /// What was held is the thread's own.
    fn release(&mut self) {
        if self.held.is_some() {
            self.halts();
        }
        if let Some(e) = self.held.take() {
            self.disables(&e, state::INTERRUPTS_OFF);
        }
        if let Some(e) = self.held_preemption.take() {
            self.disables(&e, state::PREEMPTION_OFF);
        }
    }

    fn disables(&mut self, e: &Entry, what: u8) {
        self.state |= what;
        self.resched(e);
        self.emit(e.t_ns, kind::STATE, place_of(&e.event));
    }

    fn resched(&mut self, e: &Entry) {
        self.state &= !state::RESCHED;
        if e.flags.need_resched_now() {
            self.state |= state::RESCHED;
        }
    }

    /// What was held is an interrupt.
    fn enters(&mut self, name: &str) {
        let Some(held) = self.held.take() else { return };
        self.halts();
        let entry = self.entry(name);
        self.executions += 1;
        self.emit(held.t_ns, kind::ENTER, entry);
        self.frames.push(held.flags.softirq());
        self.disables(&held, state::INTERRUPTS_OFF);
        if let Some(e) = self.held_preemption.take() {
            self.disables(&e, state::PREEMPTION_OFF);
        }
    }

    fn entry(&mut self, name: &str) -> u64 {
        let at = self.names.iter().position(|n| n == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        // Above the scheduler's place.
        at as u64 + SCHEDULE + 1
    }

    fn non_maskable(&mut self, t_ns: u64, ns: i64) {
        self.halts();
        let entry = self.entry("nmi");
        self.executions += 1;
        let begin = t_ns.saturating_sub(ns.max(0).cast_unsigned());
        self.emit(begin, kind::ENTER, entry);
        self.emit(t_ns, kind::LEAVE, 0);
    }

    fn takes(&mut self, e: &Entry) {
        let was = self.state;
        match e.event {
            Event::Interrupts { off: false, .. } => self.enabled(e),
            Event::Interrupts { .. } => {}
            Event::Preemption { off, .. } => {
                self.halts();
                if off {
                    self.disables(e, state::PREEMPTION_OFF);
                } else {
                    self.state &= !state::PREEMPTION_OFF;
                    self.resched(e);
                    self.emit(e.t_ns, kind::STATE, place_of(&e.event));
                }
                self.returned(e.t_ns);
            }
            Event::Switch { .. } => self.switches(e),
            Event::Idle { state: Some(_) } => self.halting = Some(e.t_ns),
            Event::Idle { state: None } => {
                self.halts();
                self.emit(e.t_ns, kind::STATE, 0);
            }
            Event::Waking { pid, prio, cpu, .. } => {
                let goes_before = prio < self.current_prio.min(PRIO_FAIR)
                    && self.woken.is_none_or(|w| prio < w.prio);
                if cpu == self.cpu && prio >= 0 && goes_before {
                    self.woken = Some(Woken { pid, prio, t_ns: e.t_ns });
                }
            }
            _ => {
                self.resched(e);
                if self.state != was {
                    self.emit(e.t_ns, kind::STATE, 0);
                }
            }
        }
    }

    fn enabled(&mut self, e: &Entry) {
        self.state &= !state::INTERRUPTS_OFF;
        self.resched(e);
        self.emit(e.t_ns, kind::STATE, place_of(&e.event));
        if self.halting.take().is_some() {
            self.emit(e.t_ns, kind::HALT, 0);
        }
        let inner = e.flags.hardirq() || e.flags.nmi();
        if !inner && self.frames.last().is_some_and(|softirq| *softirq == e.flags.softirq()) {
            self.frames.pop();
            self.emit(e.t_ns, kind::LEAVE, 0);
        }
        self.returned(e.t_ns);
    }

    fn switches(&mut self, e: &Entry) {
        let Event::Switch { prev_prio, prev_state, next, next_prio, next_comm, .. } = e.event
        else {
            return;
        };
        self.halts();
        self.emit(e.t_ns, kind::POINT, SCHEDULE);
        self.state &= !state::RESCHED;
        self.emit(e.t_ns, kind::SWITCH, thread(next));
        self.frames.clear();
        self.deadline += u64::from(next_prio < 0);
        self.stopper += u64::from(next_prio == 0 && next_comm.as_str().starts_with("migration/"));
        let ready = prev_state & SLEEP_BITS == 0;
        let fixed = (0..PRIO_FAIR).contains(&prev_prio);
        self.gave_way += u64::from(ready && fixed && next_prio >= PRIO_FAIR);
        self.current_prio = next_prio;
        self.awaited = self.woken.take().filter(|w| w.pid == next).map(|w| w.t_ns);
    }

    /// The scheduler may have returned to a thread that was waited for.
    fn returned(&mut self, t_ns: u64) {
        if self.awaited.is_none() || self.stretches.schedules_now() {
            return;
        }
        if let Some(from) = self.awaited.take() {
            let ns = t_ns.saturating_sub(from).cast_signed();
            self.observed.n += 1;
            self.observed.scheduling_ns = self.observed.scheduling_ns.max(ns);
        }
    }

    /// What was seen.
    #[must_use]
    pub fn finish(mut self, names: &Names<'_>) -> Evidence {
        let variable = |(variable, l): (Variable, &crate::stretches::Longest)| VariableRecord {
            variable,
            ns: l.ns.cast_signed(),
            n: l.n,
            tracing_ns: names
                .event_ns
                .map(|ns| ns.saturating_mul(l.records.cast_signed()).min(l.ns.cast_signed())),
            at_ns: l.begin_ns.saturating_sub(self.begin_ns).cast_signed(),
            from: self.place(l.from, names),
            to: self.place(l.to, names),
        };
        let all = Variable::ALL.into_iter().zip(&self.stretches.longest);
        let variables = all.filter(|(_, l)| l.n > 0).map(variable).collect();
        let preconditions = self.preconditions();
        let mut vectors: Vec<Vector> = Vec::new();
        for (entry, mut executions) in self.stretches.vectors.drain() {
            executions.sort_unstable();
            let at = usize::try_from(entry - SCHEDULE - 1).unwrap_or(usize::MAX);
            let name = self.names.get(at).cloned().unwrap_or_default();
            let begin = self.begin_ns.cast_signed();
            let executions = executions.into_iter().map(|e| since(e, begin)).collect();
            vectors.push(Vector { name, executions });
        }
        order::by(&mut vectors, |a, b| a.name.cmp(&b.name));
        self.observed.sample_ns = self.observed.scheduling_ns;
        Evidence {
            variables,
            vectors,
            span_ns: self.span_ns(),
            step_ns: 0,
            preconditions,
            observed: self.observed,
        }
    }

    /// A stretch that an interrupt ended or began has that one's name.
    fn place(&self, value: u64, names: &Names<'_>) -> String {
        let at = value.checked_sub(SCHEDULE + 1).and_then(|at| usize::try_from(at).ok());
        match at.and_then(|at| self.names.get(at)) {
            Some(name) => name.clone(),
            None => names.of(value),
        }
    }

    fn preconditions(&self) -> Vec<Precondition> {
        let counted = |name: &str, n: u64, none: &str, some: &str| Precondition {
            name: name.to_owned(),
            holds: if n == 0 { Holds::Yes } else { Holds::No },
            why: if n == 0 { none.to_owned() } else { format!("{some} ({n} times)") },
        };
        let mut all = vec![
            counted(
                "deadline tasks",
                self.deadline,
                "no deadline task ran while it was recorded",
                "a deadline task ran, which goes before every thread of a fixed priority",
            ),
            counted(
                "stop machine",
                self.stopper,
                "the stopper thread did not run while it was recorded",
                "the stopper thread ran, which goes before every other thread",
            ),
            counted(
                "ready threads of a fixed priority",
                self.gave_way,
                "none gave way to one without: neither fair server nor throttling of real-time threads took a CPU from it",
                "one gave way to a thread without: the fair server or the throttling of real-time threads took its CPU from it",
            ),
        ];
        let unknown = |name: &str, why: String| Precondition {
            name: name.to_owned(),
            holds: Holds::Unknown,
            why,
        };
        if self.holes > 0 {
            all.push(unknown(
                "events",
                format!("some were lost in {} places: what such a place cut is not known, and may have been longer", self.holes),
            ));
        }
        if self.unmatched > 0 {
            all.push(unknown(
                "interrupts",
                format!("of {} it is not known when they were taken: they count as the thread's own sections", self.unmatched),
            ));
        }
        if self.is_full() {
            all.push(unknown(
                "interrupts",
                format!("more than {EXECUTIONS_MAX} came: what was recorded after that is not in the answer"),
            ));
        }
        all
    }
}

fn since(e: Execution, begin: i64) -> Execution {
    Execution { at_ns: e.at_ns - begin, end_ns: e.end_ns - begin, ns: e.ns }
}

fn place_of(event: &Event) -> u64 {
    match event {
        Event::Interrupts { caller, parent, .. } | Event::Preemption { caller, parent, .. } => {
            place(*caller, *parent)
        }
        _ => 0,
    }
}

fn named_interrupt(event: &Event) -> String {
    match event {
        Event::VectorEntry(Kind::Timer) => "local timer".to_owned(),
        Event::VectorEntry(Kind::Ipi(name)) => format!("from another CPU: {name}"),
        Event::VectorEntry(Kind::Other(name)) => (*name).to_owned(),
        Event::IrqEntry { irq, name } => format!("{irq} {}", name.as_str()),
        _ => "without an event of its own".to_owned(),
    }
}

impl Names<'_> {
    /// The function, and where that only takes a lock, its caller.
    fn of(&self, value: u64) -> String {
        let Some(begin) = self.begin.filter(|_| value != 0) else { return String::new() };
        let name = |offset: u64| {
            // Offsets have a sign.
            let offset = i64::from(u32::try_from(offset).unwrap_or(0).cast_signed());
            named(self.symbols, begin.wrapping_add_signed(offset))
        };
        let (caller, parent) = (name(value >> 32), name(value & 0xffff_ffff));
        let lock = caller.starts_with("_raw_") || caller.starts_with("trace_hardirqs");
        (if lock { parent } else { caller }).to_owned()
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
