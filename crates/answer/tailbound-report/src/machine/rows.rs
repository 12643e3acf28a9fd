// SPDX-License-Identifier: MIT OR Apache-2.0
//! One row a thread, one an interrupt, one a kind of interrupt without a number.
//!
//! Units: counts since boot (or since the thread began), rates a second.

use std::collections::BTreeMap;

use tailbound_core::{CpuSet, Policy};

/// Why something was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFact {
    /// The words of whoever tried.
    pub reason: String,
}

/// Something read, or the reason why not.
pub type MachineFact<T> = Result<T, UnknownFact>;

/// A thread that is this one and no later one of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadId {
    /// Its number.
    pub tid: u32,
    /// When it began, in ticks since boot.
    pub start_ticks: u64,
}

/// Context switches of a thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// It waited for something.
    pub voluntary: u64,
    /// Another thread took its CPU.
    pub involuntary: u64,
}

/// Context switches a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SwitchRate {
    /// It waited for something.
    pub voluntary: f64,
    /// Another thread took its CPU.
    pub involuntary: f64,
}

/// One thread.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadRow {
    /// Which one.
    pub id: ThreadId,
    /// Its process.
    pub pid: u32,
    /// Its own name.
    pub name: String,
    /// The name of the first thread of its process, where that is another one.
    pub process: Option<String>,
    /// A thread of the kernel.
    pub kernel: bool,
    /// User space cannot change where it runs.
    pub fixed: bool,
    /// Policy and priority.
    pub policy: Policy,
    /// Nice value.
    pub nice: i32,
    /// The CPU it ran on last.
    pub last_cpu: u32,
    /// Where it may run.
    pub affinity: MachineFact<CpuSet>,
    /// How often it gave its CPU away, and lost it.
    pub switches: MachineFact<Switches>,
    /// The same a second, from two looks.
    pub rate: Option<SwitchRate>,
}

/// A thread that handles an interrupt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handler {
    /// Which one.
    pub id: ThreadId,
    /// Its name.
    pub name: String,
    /// Its policy and priority.
    pub policy: Policy,
    /// Where it may run.
    pub affinity: MachineFact<CpuSet>,
}

/// One numbered interrupt.
#[derive(Clone, Debug, PartialEq)]
pub struct InterruptRow {
    /// Its number.
    pub number: u32,
    /// How often it came, by CPU.
    pub counts: BTreeMap<u32, u64>,
    /// How often a second, by CPU, from two looks.
    pub rates: Option<BTreeMap<u32, f64>>,
    /// Interrupt controller and line.
    pub chip: String,
    /// The devices that use it.
    pub users: Vec<String>,
    /// Where it may be handled.
    pub affinity: MachineFact<CpuSet>,
    /// Where the hardware sends it.
    pub effective: MachineFact<CpuSet>,
    /// The kernel alone decides where it goes.
    pub managed: MachineFact<bool>,
    /// Its threads, where it is handled by threads.
    pub handlers: Vec<Handler>,
}

impl InterruptRow {
    /// The most urgent of its threads.
    #[must_use]
    pub fn handler(&self) -> Option<&Handler> {
        self.handlers.iter().max_by_key(|h| urgency(h.policy, 0))
    }
}

/// A kind of interrupt without a number: timers, calls between CPUs, NMI.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassRow {
    /// `LOC`, `RES`, `CAL` …
    pub name: String,
    /// The kernel's words for it.
    pub about: String,
    /// How often it came, by CPU.
    pub counts: BTreeMap<u32, u64>,
    /// How often a second, by CPU, from two looks.
    pub rates: Option<BTreeMap<u32, f64>>,
}

/// The number of the interrupt that a kernel thread of this name handles: `irq/36-virtio1`, `irq/36-s-virtio1`.
#[must_use]
pub fn interrupt_of(name: &str) -> Option<u32> {
    let (number, _) = name.strip_prefix("irq/")?.split_once('-')?;
    number.parse().ok()
}

/// Which of two runnable threads the kernel prefers: the greater one.
pub(crate) fn urgency(policy: Policy, nice: i32) -> i32 {
    const DEADLINE: i32 = 1000;
    const REALTIME: i32 = 100;
    match policy {
        Policy::Deadline { .. } => DEADLINE,
        Policy::Fifo(p) | Policy::Rr(p) => REALTIME + i32::from(p),
        Policy::Other | Policy::Batch => -nice,
        Policy::Idle => -REALTIME,
        Policy::Unknown(_) => -DEADLINE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_interrupts_are_known_by_their_names() {
        assert_eq!(interrupt_of("irq/36-virtio1-req.0"), Some(36));
        assert_eq!(interrupt_of("irq/9-s-acpi"), Some(9));
        for other in ["irq/", "irq/x-y", "irq/36", "irqbalance", "kworker/0:1", "my irq/3-x"] {
            assert_eq!(interrupt_of(other), None, "{other}");
        }
    }

    #[test]
    fn the_kernels_preference_orders_policies() {
        let order = [
            urgency(Policy::Deadline { runtime_ns: 1, period_ns: 2 }, 0),
            urgency(Policy::Fifo(99), 0),
            urgency(Policy::Rr(1), 19),
            urgency(Policy::Other, -20),
            urgency(Policy::Batch, 19),
            urgency(Policy::Idle, 0),
        ];
        assert!(order.windows(2).all(|pair| pair.first() > pair.last()), "{order:?}");
    }
}
