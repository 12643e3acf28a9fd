// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts whose ends are in no record: what is known of a CPU by its last record, and what can be said of such times.
//!
//! Units: ns on the trace's clock. Such an interrupt counts up to its last record, the time behind it as that of the thread.

use std::collections::BTreeMap;

use tailbound_core::blame::{Cause, Sureness};

use super::{BlameSummary, Follow};
use crate::event::{Entry, Event, Flags};

/// What a reader must know where one was seen.
pub(crate) const UNENDED: &str = "ends of interrupts are not in the trace: such an interrupt counts up to its last record, and the time behind it as that of the thread; nothing of it is sure";

/// Most CPUs whose interrupts are counted.
const CPUS_MAX: usize = 4096;
/// The bit of a record's state that says that the scheduler was asked for another thread.
const NEED_RESCHED: u8 = 0x04;
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

    /// Is it in an interrupt whose end will be recorded?
    fn is_within(&self) -> bool {
        self.interrupts > 0
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
    unended: bool,
}

impl InterruptEnds {
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
        if cpu.interrupted && !cpu.is_within() && !e.flags.hardirq() {
            self.unended = true;
            let flags = Flags(cpu.flags.0 & NEED_RESCHED);
            let (t_ns, pid) = (cpu.t_ns, cpu.pid);
            follow.entry(&Entry { t_ns, cpu: e.cpu, pid, flags, event: Event::Other });
        }
        if cpu.count(e.event) {
            self.events = InterruptEvents::Present;
        }
        (cpu.interrupted, cpu.flags) = (e.flags.hardirq(), e.flags);
        (cpu.t_ns, cpu.pid) = (e.t_ns, e.pid);
        follow.entry(e);
    }

    /// Was there an interrupt whose end is in no record?
    pub(crate) fn is_unended(&self) -> bool {
        self.unended
    }

    /// Takes back what is not sure because of them.
    pub(crate) fn soften(&self, found: &mut BlameSummary) {
        if !self.unended {
            return;
        }
        let parts = found.records.iter_mut().flat_map(|r| &mut r.parts);
        let foreign = parts.filter(|p| p.cause.is_foreign() && p.sureness == Sureness::Sure);
        foreign.filter(|p| p.cause != Cause::Unexplained).for_each(|p| {
            p.sureness = Sureness::Likely;
        });
    }
}
