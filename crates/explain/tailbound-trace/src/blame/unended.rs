// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts whose ends are in no record: what is known of a CPU by its last record, and what can be said of such times.
//!
//! Units: ns on the trace's clock. Such an interrupt counts up to its last record, the time behind it as that of the thread.

use std::collections::BTreeMap;

use tailbound_core::blame::{Cause, Sureness};

use super::{BlameSummary, Follow};
use crate::dat::Processors;
use crate::event::{Entry, Event, EventSpec, Flags, WANTED};

/// What a reader must know where one was seen.
const UNENDED: &str = "ends of interrupts are not in the trace: such an interrupt counts up to its last record, and the time behind it as that of the thread; nothing of it is sure";

/// The same where the ends are described and none was recorded.
const NONE_SEEN: &str = "the trace describes the ends of interrupts and has none: an interrupt counts up to the next record of its thread; nothing of it is sure";

/// Most CPUs that a kernel can be built for.
const CPUS_MAX: usize = 8192;
/// The bits of a record's state that say that the scheduler was asked for another thread, at once or at the next tick.
const NEED_RESCHED: u8 = 0x04 | 0x02;
/// Those that say that it was made in an interrupt, with interrupts disabled, and in a soft interrupt.
const IN_INTERRUPT: u8 = 0x08 | 0x01;
const IN_SOFTIRQ: u8 = 0x10;

/// Does a trace have the begins and ends of interrupts?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum InterruptEvents {
    #[default]
    Absent,
    Present,
}

/// Does a trace have the events of the ends of interrupts?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EndEvents {
    /// It lacks some, or does not say which events it has.
    #[default]
    Lacking,
    /// All are described: they were recorded, if who recorded did not describe more events than were enabled.
    Described,
    /// Some were recorded.
    Recorded,
}

/// What is known of a CPU by its last record.
#[derive(Clone, Copy, Debug, Default)]
struct CpuContext {
    /// Interrupts, functions of timers and soft interrupts that have begun by events of their own and not ended.
    interrupts: u32,
    timers: u32,
    softirqs: u32,
    /// The last record was made in an interrupt.
    interrupted: bool,
    flags: Flags,
    t_ns: u64,
    pid: i32,
}

impl CpuContext {
    /// Counts begins and ends; `true` for one.
    fn count(&mut self, event: Event) -> bool {
        match event {
            Event::IrqEntry { .. } | Event::VectorEntry(_) => {
                self.interrupts = self.interrupts.saturating_add(1);
            }
            Event::IrqExit { .. } | Event::VectorExit(_) => {
                self.interrupts = self.interrupts.saturating_sub(1);
            }
            Event::TimerExpire { .. } => self.timers = 1,
            Event::TimerExit { .. } => self.timers = 0,
            Event::SoftirqEntry { .. } => self.softirqs = 1,
            Event::SoftirqExit { .. } => self.softirqs = 0,
            // Nothing switches within an interrupt: an end was lost.
            Event::Switch { .. } => {
                (self.interrupts, self.timers, self.softirqs) = (0, 0, 0);
                return false;
            }
            _ => return false,
        }
        true
    }

    /// Is the record, which was counted, made in an interrupt that goes on behind it?
    fn goes_on(&self, e: &Entry) -> bool {
        let ends = matches!(e.event, Event::IrqExit { .. } | Event::VectorExit(_));
        e.flags.hardirq() && !(ends && self.interrupts == 0)
    }

    /// The state at a record that does not tell it.
    fn flags(&self, event: Event, interrupts: InterruptEvents) -> Flags {
        let begins = matches!(event, Event::IrqEntry { .. } | Event::VectorEntry(_));
        let timer = matches!(event, Event::TimerExpire { .. });
        // Without any event of interrupts it is not known whether a thread or an interrupt woke it.
        let either = matches!(event, Event::Waking { .. }) && interrupts == InterruptEvents::Absent;
        if begins || timer || either || self.interrupts > 0 || self.timers > 0 {
            return match event {
                Event::Switch { .. } => Flags::default(),
                _ => Flags(IN_INTERRUPT),
            };
        }
        let softirq = self.softirqs > 0 || matches!(event, Event::SoftirqEntry { .. });
        match event {
            Event::Switch { .. } => Flags::default(),
            _ if softirq => Flags(IN_SOFTIRQ),
            _ => Flags::default(),
        }
    }
}

/// What is known of each CPU.
#[derive(Debug, Default)]
pub(crate) struct InterruptEnds {
    cpus: BTreeMap<u32, CpuContext>,
    events: InterruptEvents,
    ends: EndEvents,
    unended: bool,
    /// Ends that were put in.
    inferred: u64,
}

impl InterruptEnds {
    /// Of a trace that has the events of these names, and tells the state of the CPU with each record.
    pub(crate) fn of_described(names: &[&str], processors: Processors, cpus: Option<u32>) -> Self {
        let has = |name: &str| names.contains(&name);
        let each_cpu = match processors {
            Processors::X86 => {
                has(timer_end(processors)) && (cpus == Some(1) || has("reschedule_exit"))
            }
            Processors::Other => true,
        };
        let begins = WANTED.iter().filter(|w| is_of_interrupts(w) && has(w.name));
        let mut begins = begins.filter_map(|w| w.name.strip_suffix("_entry"));
        let paired = begins.all(|begin| has(&format!("{begin}_exit")));
        let all = each_cpu && paired && has("irq_handler_exit");
        let ends = if all { EndEvents::Described } else { EndEvents::Lacking };
        Self { ends, ..Self::default() }
    }

    /// Events of these names were in the trace.
    pub(crate) fn recorded(&mut self, names: &[&str], processors: Processors) {
        if self.ends == EndEvents::Described && names.contains(&timer_end(processors)) {
            self.ends = EndEvents::Recorded;
        }
    }

    /// The state of `cpu` at a record that does not tell it.
    pub(crate) fn flags(&self, cpu: u32, event: Event) -> Flags {
        let context = self.cpus.get(&cpu).copied().unwrap_or_default();
        context.flags(event, self.events)
    }

    /// Hands `e` to `follow`, behind the end of an interrupt that is in no record.
    pub(crate) fn entry(&mut self, e: &Entry, follow: &mut Follow) {
        if self.cpus.len() >= CPUS_MAX && !self.cpus.contains_key(&e.cpu) {
            return;
        }
        let cpu = self.cpus.entry(e.cpu).or_default();
        if cpu.interrupted && !e.flags.hardirq() {
            self.unended = true;
            if self.ends == EndEvents::Lacking {
                let flags = Flags(cpu.flags.0 & (NEED_RESCHED | IN_SOFTIRQ));
                let (t_ns, pid) = (cpu.t_ns, cpu.pid);
                follow.entry(&Entry { t_ns, cpu: e.cpu, pid, flags, event: Event::Other });
                self.inferred = self.inferred.saturating_add(1);
            }
        }
        if cpu.count(e.event) {
            self.events = InterruptEvents::Present;
        }
        (cpu.interrupted, cpu.flags) = (cpu.goes_on(e), e.flags);
        (cpu.t_ns, cpu.pid) = (e.t_ns, e.pid);
        follow.entry(e);
    }

    /// What a reader must know where the end of an interrupt is in no record.
    pub(crate) fn note(&self) -> Option<&'static str> {
        match self.ends {
            EndEvents::Lacking => self.unended.then_some(UNENDED),
            EndEvents::Described => self.unended.then_some(NONE_SEEN),
            EndEvents::Recorded => None,
        }
    }

    /// Takes back what is not sure because of them, and the records that the trace does not have.
    pub(crate) fn soften(&self, found: &mut BlameSummary) {
        found.events = found.events.saturating_sub(self.inferred);
        if self.note().is_none() {
            return;
        }
        let parts = found.records.iter_mut().flat_map(|r| &mut r.parts);
        let foreign = parts.filter(|p| p.cause.is_foreign() && p.sureness == Sureness::Sure);
        foreign.filter(|p| p.cause != Cause::Unexplained).for_each(|p| {
            p.sureness = Sureness::Likely;
        });
    }
}

/// Is it an event of an interrupt, not of what runs in one or behind it?
fn is_of_interrupts(event: &EventSpec) -> bool {
    matches!(event.system, "irq_vectors" | "ipi") || event.name == "irq_handler_entry"
}

/// The end of the timer's interrupt, without which no trace of some length is.
fn timer_end(processors: Processors) -> &'static str {
    match processors {
        Processors::X86 => "local_timer_exit",
        Processors::Other => "irq_handler_exit",
    }
}
