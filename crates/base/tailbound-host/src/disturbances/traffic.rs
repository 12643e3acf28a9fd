// SPDX-License-Identifier: MIT OR Apache-2.0
//! How busy the measured CPUs were: interrupts that came to each, and switches between threads. No finding:
//! what is much depends on the work, and what it cost is in the latencies.
//!
//! Units: events since boot, their difference at the end. Switches are read before anything of the run is begun (of a
//! bare probe in its warm-up, from a CPU that is not measured) and after its last activation only: to tell of them a kernel that does not preempt its own code prints every thread in
//! one go (see `throttling`). Those of the loads' start are among them.
//! Source: proc_interrupts(5), Documentation/scheduler/sched-debug.rst (`nr_switches`).

use std::collections::BTreeMap;

use tailbound_core::record::Fact;
use tailbound_core::{CpuSet, Finding};

use super::{Disturbance, Look, run_queues};
use crate::interrupts;
use crate::root::{Found, Root};

/// Events by CPU.
type Counts = BTreeMap<u32, u64>;

/// The counts at the start, and what they say at the end.
pub(crate) struct Traffic {
    interrupts: Found<Counts>,
    switches: Found<Counts>,
    facts: Vec<(&'static str, Fact)>,
}

impl Traffic {
    pub(crate) fn begin(first: &Look, switches: Switches) -> Self {
        Self { interrupts: interrupted(&first.root), switches: switches.0, facts: Vec::new() }
    }
}

/// Switches between threads of each CPU since boot.
#[derive(Clone, Debug)]
pub struct Switches(Found<Counts>);

impl Switches {
    /// As they are now: never to be read while a run is measured.
    #[must_use]
    pub fn now(root: &Root) -> Self {
        Self(switched(root))
    }
}

impl Disturbance for Traffic {
    fn look(&mut self, look: &Look) -> Vec<Finding> {
        if look.last {
            self.facts = vec![
                ("interrupts", since(&self.interrupts, interrupted(&look.root), &look.cpus)),
                ("switches", since(&self.switches, switched(&look.root), &look.cpus)),
            ];
        }
        Vec::new()
    }

    fn watched(&self) -> Vec<(&'static str, Fact)> {
        self.facts.clone()
    }
}

/// `CPU 1: 2034; CPU 2: 12`.
fn since(first: &Found<Counts>, now: Found<Counts>, cpus: &CpuSet) -> Fact {
    let (first, now) = match (first, now) {
        (Ok(first), Ok(now)) => (first, now),
        (Err(why), _) => return why.clone().into(),
        (_, Err(why)) => return why.into(),
    };
    let of =
        |cpu: u32| Some(format!("CPU {cpu}: {}", now.get(&cpu)?.checked_sub(*first.get(&cpu)?)?));
    let all: Vec<String> = cpus.iter().filter_map(of).collect();
    if all.is_empty() {
        return Fact::Unknown("the kernel counts none of the measured CPUs".to_owned());
    }
    Fact::of(all.join("; "))
}

fn interrupted(root: &Root) -> Found<Counts> {
    let table = interrupts::table(root)?;
    let mut all = Counts::new();
    let lines =
        table.lines.iter().map(|l| &l.counts).chain(table.classes.iter().map(|c| &c.counts));
    for (cpu, n) in lines.flatten() {
        let sum = all.entry(*cpu).or_insert(0);
        *sum = sum.saturating_add(*n);
    }
    Ok(all)
}

fn switched(root: &Root) -> Found<Counts> {
    let text = run_queues(root)?;
    let mut cpu = None;
    let mut all = Counts::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("cpu#") {
            cpu = rest.split(',').next().and_then(|n| n.trim().parse().ok());
        } else if let (Some(cpu), Some(rest)) =
            (cpu, line.trim_start().strip_prefix(".nr_switches"))
        {
            let n = rest.trim_start_matches([' ', ':']).trim().parse();
            all.extend(n.ok().map(|n: u64| (cpu, n)));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Missing;

    #[test]
    fn what_came_between_two_looks_on_the_measured_cpus() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let tell = |device: u64, local: u64, switches: u64| {
            let table = format!(
                "            CPU0       CPU1\n  1:       {device}        {device}   IO-APIC    1-edge  i8042\nLOC:    {local}     {local}   Local timer interrupts\n"
            );
            write("proc/interrupts", &table);
            let debug = format!(
                "cpu#0, 2100 MHz\n  .nr_switches     : 1\ncpu#1\n  .nr_switches     : {switches}\n"
            );
            write("proc/sched_debug", &debug);
        };
        tell(5, 100, 70);
        let (interrupts, switches) = (interrupted(&root), switched(&root));
        tell(7, 150, 91);
        let cpus: CpuSet = "1".parse().unwrap();
        assert_eq!(since(&interrupts, interrupted(&root), &cpus), Fact::of("CPU 1: 52"));
        assert_eq!(since(&switches, switched(&root), &cpus), Fact::of("CPU 1: 21"));
        let other: CpuSet = "9".parse().unwrap();
        assert!(matches!(since(&switches, switched(&root), &other), Fact::Unknown(_)));
        let gone = Err(Missing::NotApplicable("no table".to_owned()));
        assert_eq!(
            since(&gone, interrupted(&root), &cpus),
            Fact::NotApplicable("no table".to_owned())
        );
    }
}
