// SPDX-License-Identifier: MIT OR Apache-2.0
//! What cannot be told without the events that a trace lacks.

use crate::event::WANTED;

/// How to record all that is understood.
pub const RECORD: &str = "trace-cmd record -C mono -e sched:sched_switch -e sched:sched_waking -e sched:sched_wakeup -e sched:sched_migrate_task -e sched:sched_pi_setprio -e timer -e irq -e irq_vectors -e ipi -e csd -e nmi -e workqueue -e lock -e exceptions -e power -e printk";

/// A group of events, and what is lost without them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lack {
    /// The events, as `-e` of trace-cmd has them.
    pub events: &'static str,
    /// Without them.
    pub lost: &'static str,
}

/// The processors of the machine that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processors {
    /// Those that have the events `irq_vectors`.
    X86,
    /// All others.
    Other,
}

/// Any of the names is enough.
struct Group {
    names: &'static [&'static str],
    /// `None`: of all.
    only_of: Option<Processors>,
    lack: Lack,
}

const fn group(
    names: &'static [&'static str],
    only_of: Option<Processors>,
    events: &'static str,
    lost: &'static str,
) -> Group {
    Group { names, only_of, lack: Lack { events, lost } }
}

/// In the order of their weight.
const GROUPS: &[Group] = &[
    group(
        &["hrtimer_expire_entry"],
        None,
        "timer:hrtimer_start, timer:hrtimer_expire_entry",
        "lateness counts from the wake-up, and a timer that came late is not seen",
    ),
    group(
        &["hrtimer_start"],
        None,
        "timer:hrtimer_start",
        "when a timer was due is not known: lateness counts from the wake-up",
    ),
    group(
        &["irq_handler_entry"],
        None,
        "irq:irq_handler_entry, irq:irq_handler_exit",
        "interrupts of devices are not told from what they interrupt",
    ),
    group(
        &["softirq_entry"],
        None,
        "irq:softirq_entry, irq:softirq_exit",
        "soft interrupts are not told from what they interrupt",
    ),
    group(
        &[
            "local_timer_entry",
            "reschedule_entry",
            "call_function_single_entry",
            "call_function_entry",
        ],
        Some(Processors::X86),
        "irq_vectors",
        "the timer's interrupt and those from other CPUs are not told from what they interrupt",
    ),
    group(
        &["workqueue_execute_start"],
        None,
        "workqueue:workqueue_execute_start, workqueue:workqueue_execute_end",
        "the functions of kworkers have no name",
    ),
    group(
        &["contention_begin"],
        None,
        "lock:contention_begin, lock:contention_end",
        "spinning for a lock of the kernel is not seen (before Linux 5.19 no kernel tells it)",
    ),
];

/// What is lost for want of events. `has` are the names of those that the trace has.
#[must_use]
pub fn lacking(has: &[&str], processors: Processors) -> Vec<Lack> {
    debug_assert!(GROUPS.iter().flat_map(|g| g.names).all(|n| WANTED.iter().any(|w| w.name == *n)));
    let there = |g: &Group| g.names.iter().any(|n| has.contains(n));
    let mut out: Vec<Lack> = Vec::new();
    let told = |g: &Group| g.only_of.is_none_or(|only| only == processors);
    for group in GROUPS.iter().filter(|g| !there(g) && told(g)) {
        // The first says it for both.
        if !out.iter().any(|l| l.events.contains(group.lack.events)) {
            out.push(group.lack);
        }
    }
    out
}
