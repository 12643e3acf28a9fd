// SPDX-License-Identifier: MIT OR Apache-2.0
//! Disturbances of a run, one file each. A disturbance remembers the start, looks at the machine
//! again and again, and says what it found so far.
//!
//! Only what makes the figures meaningless is *unfit*; what makes "met" a
//! claim too much is *doubt*; the rest is *notice*.
//! Every disturbance also says what it watched with, so that silence is never taken for proof.

pub(crate) mod clocks;
pub(crate) mod faults;
pub(crate) mod frequency;
pub(crate) mod given;
pub(crate) mod higher_priority;
pub(crate) mod hotplug;
pub(crate) mod log;
pub(crate) mod quota;
pub(crate) mod readings;
pub(crate) mod recurring;
pub(crate) mod smt;
pub(crate) mod standing;
pub(crate) mod steal;
pub(crate) mod stopped;
pub(crate) mod thermal;
pub(crate) mod throttling;
pub(crate) mod traffic;

use std::collections::BTreeMap;

use tailbound_core::disturbance::CpuTaken;
use tailbound_core::number::Real as _;
use tailbound_core::record::{Fact, Facts};
use tailbound_core::{CpuSet, Finding};

use crate::kmsg::Record;
use crate::procstat::Ticks;
use crate::root::{Found, Missing, Root};
use crate::tasks::Task;
use crate::watch_plan::WatchPlan;

/// One look at the machine: what more than one disturbance needs, read once.
pub(crate) struct Look {
    pub(crate) root: Root,
    pub(crate) plan: WatchPlan,
    /// The CPUs that matter.
    pub(crate) cpus: CpuSet,
    pub(crate) online: Found<CpuSet>,
    pub(crate) ticks: Found<Ticks>,
    pub(crate) uptime_s: Found<f64>,
    /// Real-time threads; `None` when this look has no scan.
    pub(crate) tasks: Option<Found<BTreeMap<u32, Task>>>,
    /// New records of the kernel's log; at the first look, all of it.
    pub(crate) log: Vec<Record>,
    pub(crate) log_missing: Option<Missing>,
    /// The last look of the run.
    pub(crate) last: bool,
}

/// Something that can make the figures of a run unreliable.
pub(crate) trait Disturbance: Send {
    /// Everything found so far, with the figures of now.
    fn look(&mut self, look: &Look) -> Vec<Finding>;
    /// What it watched with, by id: a value, or why it could not.
    fn watched(&self) -> Vec<(&'static str, Fact)>;
}

/// All of them, after the first look.
pub(crate) fn all(
    first: &Look,
    facts: &Facts,
    switches: traffic::Switches,
) -> Vec<Box<dyn Disturbance>> {
    vec![
        Box::new(clocks::Clocks::begin(first)),
        Box::new(stopped::Stopped::begin()),
        Box::new(hotplug::Hotplug::begin(first)),
        Box::new(throttling::Throttling::begin(first, facts)),
        Box::new(steal::Steal::begin(first, facts)),
        Box::new(smt::Smt::begin(first)),
        Box::new(quota::Quota::begin(first)),
        Box::new(thermal::Thermal::begin(first)),
        Box::new(frequency::Frequency::begin(first)),
        Box::new(higher_priority::HigherPriority::begin(first)),
        Box::new(standing::Standing::begin(first, facts)),
        Box::new(traffic::Traffic::begin(first, switches)),
        Box::new(log::Log::default()),
    ]
}

/// What the scheduler tells of each run queue; where it stood before Linux 5.13, else. Never while a run is measured.
pub(crate) fn run_queues(root: &Root) -> Found<String> {
    root.debugfs("sched/debug").or_else(|why| root.text("/proc/sched_debug").map_err(|_| why))
}

/// `1.2 %` of a whole; more digits where it is little.
pub(crate) fn percent(share: f64) -> String {
    let p = share * 100.0;
    if p >= 10.0 { format!("{p:.0} %") } else { format!("{p:.2} %") }
}

/// `a share of b` without a division by nothing.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part.real() / whole.real() }
}

/// Ticks of /proc/stat as ms.
pub(crate) fn ticks_to_ms(ticks: u64) -> u64 {
    let per_second = tailbound_sys::hostinfo::ticks_per_second();
    ticks.saturating_mul(1000).checked_div(per_second).unwrap_or(0)
}

/// What was taken of each of `cpus` from one reading of /proc/stat to the next; nothing of those that one lacks.
pub(crate) fn taken(cpus: &CpuSet, before: &Ticks, now: &Ticks) -> Vec<CpuTaken> {
    let ns = |ticks: u64| {
        i64::try_from(ticks_to_ms(ticks)).unwrap_or(i64::MAX).saturating_mul(1_000_000)
    };
    let one = |cpu: u32| {
        let passed = now.get(&cpu)?.since(before.get(&cpu)?);
        let (steal, interrupt) = (passed.steal.unwrap_or(0), passed.interrupt);
        Some(CpuTaken {
            cpu,
            steal_ns: ns(steal),
            interrupt_ns: ns(interrupt),
            softirq_ns: ns(passed.softirq),
            ..CpuTaken::default()
        })
    };
    cpus.iter().filter_map(one).filter(|t| !t.is_nothing()).collect()
}
