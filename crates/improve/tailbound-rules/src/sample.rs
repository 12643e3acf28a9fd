// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two looks at a machine, some seconds apart: what came in between.
//!
//! Units: s; counts. Reading /proc/interrupts disturbs nobody.

use std::collections::BTreeMap;
use tailbound_core::order;

use tailbound_core::CpuSet;
use tailbound_host::interrupts::{Interrupts, interrupts};
use tailbound_host::procstat;
use tailbound_host::root::{Found, Root};

/// One look.
#[derive(Clone, Debug)]
pub struct Glance {
    interrupts: Found<Interrupts>,
    steal: Found<BTreeMap<u32, u64>>,
    throttled: Found<BTreeMap<u32, u64>>,
}

impl Glance {
    /// Looks.
    #[must_use]
    pub fn take(root: &Root, online: &CpuSet) -> Self {
        let ticks = procstat::read(root);
        let throttled = |cpu: u32| {
            let base = format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle");
            let core = root.parsed::<u64>(&format!("{base}/core_throttle_count"))?;
            // Some processors count for the core alone.
            let package =
                root.parsed::<u64>(&format!("{base}/package_throttle_count")).unwrap_or(0);
            Ok((cpu, core.saturating_add(package)))
        };
        Self {
            interrupts: interrupts(root),
            steal: ticks.map(|t| t.into_iter().filter_map(|(c, t)| Some((c, t.steal?))).collect()),
            throttled: online.iter().map(throttled).collect(),
        }
    }
}

/// What came between two looks.
#[derive(Clone, Debug)]
pub struct Sample {
    /// How far they lie apart.
    pub seconds: f64,
    before: Glance,
    after: Glance,
}

impl Sample {
    /// Of two looks.
    #[must_use]
    pub fn new(seconds: f64, before: Glance, after: Glance) -> Self {
        Self { seconds, before, after }
    }

    /// Interrupts that came on `cpus`: what they are, and how many.
    pub(crate) fn interrupts(&self, cpus: &CpuSet) -> Found<Vec<(String, u64)>> {
        let rows = |all: &Interrupts| -> BTreeMap<String, u64> {
            let sum = |counts: &BTreeMap<u32, u64>| {
                counts
                    .iter()
                    .filter(|(c, _)| cpus.contains(**c))
                    .map(|(_, n)| *n)
                    .fold(0, u64::saturating_add)
            };
            let lines = all.lines.iter().map(|l| {
                (format!("interrupt {} ({})", l.number, l.actions.join(", ")), sum(&l.counts))
            });
            let classes = all.classes.iter().map(|c| (c.name.clone(), sum(&c.counts)));
            lines.chain(classes).collect()
        };
        let before = rows(self.before.interrupts.as_ref().map_err(Clone::clone)?);
        let after = rows(self.after.interrupts.as_ref().map_err(Clone::clone)?);
        let mut more: Vec<(String, u64)> = after
            .into_iter()
            .map(|(name, n)| {
                let old = before.get(&name).copied().unwrap_or(0);
                (name, n.saturating_sub(old))
            })
            .filter(|(_, n)| *n > 0)
            .collect();
        order::by_key(&mut more, |(name, n)| (std::cmp::Reverse(*n), name.clone()));
        Ok(more)
    }

    /// Interrupts of one class on `cpus`.
    pub(crate) fn of_class(&self, class: &str, cpus: &CpuSet) -> Found<u64> {
        let all = self.interrupts(cpus)?;
        Ok(all.iter().find(|(name, _)| name == class).map_or(0, |(_, n)| *n))
    }

    /// Ticks that the hypervisor took.
    pub(crate) fn stolen(&self) -> Found<u64> {
        difference(&self.before.steal, &self.after.steal)
    }

    /// How often CPUs were throttled because they were hot.
    pub(crate) fn throttled(&self) -> Found<u64> {
        difference(&self.before.throttled, &self.after.throttled)
    }
}

fn difference(before: &Found<BTreeMap<u32, u64>>, after: &Found<BTreeMap<u32, u64>>) -> Found<u64> {
    let sum = |of: &Found<BTreeMap<u32, u64>>| -> Found<u64> {
        Ok(of.as_ref().map_err(Clone::clone)?.values().copied().fold(0, u64::saturating_add))
    };
    Ok(sum(after)?.saturating_sub(sum(before)?))
}

#[cfg(test)]
mod tests {
    use tailbound_host::Tree;

    use super::*;
    use crate::{Answers, CheckScope, Machine};

    #[test]
    fn counts_that_no_kernel_has_add_up_to_the_largest() {
        let of = |counts: [u64; 2]| Ok(BTreeMap::from([(0, counts[0]), (1, counts[1])]));
        assert_eq!(difference(&of([1, 2]), &of([u64::MAX, 5])), Ok(u64::MAX - 3));
        // Of a captured machine.
        let mut tree = Tree::default();
        let stat = "cpu0 1 1 1 1 1 1 1 18446744073709551615\ncpu1 1 1 1 1 1 1 1 5\n";
        let put = |tree: &mut Tree, name: &str, text: &str| {
            assert!(tree.add_file(name, 0o444, text.as_bytes().to_vec()).is_ok());
        };
        put(&mut tree, "proc/stat", stat);
        put(&mut tree, "proc/cpuinfo", "processor : 0\nflags : fpu hypervisor\n");
        let machine =
            Machine::read(&tailbound_host::Root::of_tree(tree), CheckScope::default(), None);
        let said = Answers::of(&machine).json().to_string();
        assert!(said.contains("18446744073709551615 ticks"), "{said}");
    }
}
