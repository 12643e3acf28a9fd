// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steal-time`: the hypervisor ran something else while a measured CPU had work.
//!
//! Units: ticks of 10 ms as /proc/stat has them, so short thefts add up
//! before they show. Source: proc_stat(5), Documentation/virt/kvm/x86/msr.rst (steal time).

use tailbound_core::record::{Fact, Facts};
use tailbound_core::{Finding, Impact};

use super::{Disturbance, Look, percent, share, ticks_to_ms};
use crate::procstat::Ticks;
use crate::root::Found;

/// Remembers the ticks at the start.
pub(crate) struct Steal {
    first: Found<Ticks>,
    fact: Fact,
}

impl Steal {
    pub(crate) fn begin(first: &Look, facts: &Facts) -> Self {
        let supported = facts.get("virt.steal").cloned();
        Self {
            first: first.ticks.clone(),
            fact: supported.unwrap_or_else(|| Fact::Unknown("virt.steal was not read".to_owned())),
        }
    }
}

impl Disturbance for Steal {
    fn look(&mut self, look: &Look) -> Vec<Finding> {
        let (first, now) = match (&self.first, &look.ticks) {
            (Ok(first), Ok(now)) => (first, now),
            (_, Err(why)) => {
                self.fact = why.clone().into();
                return Vec::new();
            }
            (Err(_), _) => return Vec::new(),
        };
        let mut words = Vec::new();
        let mut stolen = 0u64;
        for cpu in look.cpus.iter() {
            let (Some(a), Some(b)) = (first.get(&cpu), now.get(&cpu)) else { continue };
            let passed = b.since(a);
            // Where the kernel does not count it, `virt.steal` says so.
            let ticks = passed.steal.unwrap_or(0);
            if ticks > 0 {
                stolen = stolen.saturating_add(ticks);
                words.push(format!(
                    "CPU {cpu}: {} ms, {}",
                    ticks_to_ms(ticks),
                    percent(share(ticks, passed.total))
                ));
            }
        }
        if stolen == 0 {
            return Vec::new();
        }
        self.fact = Fact::of(true);
        vec![Finding::listed(
            "steal-time",
            Impact::Notice,
            format!(
                "the hypervisor took {} ms from the measured CPUs during the run ({})",
                ticks_to_ms(stolen),
                words.join("; ")
            ),
        )]
    }

    fn watched(&self) -> Vec<(&'static str, Fact)> {
        let fact = match (&self.first, &self.fact) {
            (Err(why), _) => why.clone().into(),
            (Ok(_), Fact::Value(_)) => Fact::of("watched"),
            (Ok(_), other) => other.clone(),
        };
        vec![("steal-time", fact)]
    }
}
