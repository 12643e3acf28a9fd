// SPDX-License-Identifier: MIT OR Apache-2.0
//! `smt-sibling`: another CPU shares a core with a measured one and is not measured itself.
//!
//! Source: Documentation/admin-guide/cputopology.rst.

use std::collections::BTreeMap;

use tailbound_core::record::Fact;
use tailbound_core::{Finding, Impact};

use super::{Disturbance, Look, percent, share};
use crate::inventory::siblings;
use crate::procstat::Ticks;
use crate::root::{Found, Missing};

/// Siblings of measured CPUs, and the ticks at the start.
pub(crate) struct Smt {
    /// Sibling to the measured CPU whose core it shares.
    siblings: BTreeMap<u32, u32>,
    missing: Option<Missing>,
    first: Found<Ticks>,
}

impl Smt {
    pub(crate) fn begin(first: &Look) -> Self {
        let mut smt = Self { siblings: BTreeMap::new(), missing: None, first: first.ticks.clone() };
        let online = match &first.online {
            Ok(online) => online,
            Err(why) => return Self { missing: Some(why.clone()), ..smt },
        };
        for cpu in first.cpus.iter() {
            match siblings(&first.root, cpu) {
                Ok(set) => smt.siblings.extend(
                    set.and(online).minus(&first.cpus).iter().map(|sibling| (sibling, cpu)),
                ),
                Err(why) => smt.missing = Some(why),
            }
        }
        smt
    }
}

impl Disturbance for Smt {
    fn look(&mut self, look: &Look) -> Vec<Finding> {
        if self.siblings.is_empty() {
            return Vec::new();
        }
        let words: Vec<String> = self
            .siblings
            .iter()
            .map(|(sibling, cpu)| {
                let passed = self
                    .first
                    .as_ref()
                    .ok()
                    .zip(look.ticks.as_ref().ok())
                    .and_then(|(a, b)| Some(b.get(sibling)?.since(a.get(sibling)?)));
                // Less than a second of ticks says nothing about a share.
                let busy = passed.filter(|p| p.total >= 100).map_or_else(
                    || "busy for an unknown share of the run".to_owned(),
                    |p| format!("{} busy", percent(1.0 - share(p.idle, p.total))),
                );
                format!("CPU {sibling} beside CPU {cpu}: {busy}")
            })
            .collect();
        vec![Finding::listed(
            "smt-sibling",
            Impact::Notice,
            format!("measured CPUs share a core with others ({})", words.join("; ")),
        )]
    }

    fn watched(&self) -> Vec<(&'static str, Fact)> {
        let fact = match &self.missing {
            Some(why) => why.clone().into(),
            None if self.siblings.is_empty() => {
                Fact::of("no online sibling that is not measured itself")
            }
            None => Fact::of("watched"),
        };
        vec![("smt-sibling", fact)]
    }
}
