// SPDX-License-Identifier: MIT OR Apache-2.0
//! In what else the compared systems differ: plan, machine, tool.
//!
//! Facts that differ between any two moments of one machine (temperatures, free
//! memory, counters) are left out by name; how many were is said.

use std::collections::BTreeSet;

use serde::{Deserialize as _, Serialize};
use tailbound_core::lab::TuneJob;
use tailbound_core::record::{Fact, Header};

use crate::table::Table;

/// Beginnings of the names of facts that differ between any two moments.
pub const NOISE: [&str; 7] = [
    "clock.frequency_ppm",
    "clock.offset_ns",
    "kernel.loadavg",
    "kernel.pressure_",
    "kernel.uptime_s",
    "mem.available_kb",
    "mem.swap_free_kb",
];

/// Something that is not the same in all systems.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Differing {
    /// `plan: interval_ns`, or the fact's name.
    pub what: String,
    /// One text a system, in their order.
    pub values: Vec<String>,
}

/// All that differs, and the names of the facts that were left out though they differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Differences {
    /// What differs.
    pub differing: Vec<Differing>,
    /// Facts that differ as they always do.
    pub left_out: Vec<String>,
}

/// Does this fact differ between any two moments?
#[must_use]
pub fn is_noise(name: &str) -> bool {
    NOISE.iter().any(|n| name.starts_with(n))
}

/// In what the systems differ that these headers begin.
#[must_use]
pub fn differences(headers: &[&Header]) -> Differences {
    let mut out = Differences::default();
    let plans: Vec<serde_json::Value> =
        headers.iter().map(|h| serde_json::to_value(&h.plan).unwrap_or_default()).collect();
    let keys: BTreeSet<&String> =
        plans.iter().filter_map(|p| p.as_object()).flat_map(|o| o.keys()).collect();
    for key in keys {
        let text = |p: &serde_json::Value| match p.get(key) {
            None => "not given".to_owned(),
            Some(serde_json::Value::String(s)) => s.clone(),
            Some(v) if key == "tune" => {
                TuneJob::deserialize(v).map_or_else(|_| v.to_string(), |job| job.called())
            }
            Some(v) if key == "interval_ns" && v.as_i64() == Some(0) => {
                "unknown: not in the file".to_owned()
            }
            Some(v) => v.to_string(),
        };
        push(&mut out.differing, &format!("plan: {key}"), plans.iter().map(text).collect());
    }
    let facts: BTreeSet<&String> = headers.iter().flat_map(|h| h.machine.keys()).collect();
    for fact in facts {
        let text = |h: &&Header| {
            let known = h.machine.get(fact).map(Fact::text);
            known.unwrap_or_else(|| "unknown: not recorded".to_owned())
        };
        let mut found = Vec::new();
        push(&mut found, fact, headers.iter().map(text).collect());
        if is_noise(fact) {
            out.left_out.extend(found.into_iter().map(|d| d.what));
        } else {
            out.differing.extend(found);
        }
    }
    push(&mut out.differing, "tool", headers.iter().map(|h| h.tool.clone()).collect());
    out
}

fn push(to: &mut Vec<Differing>, what: &str, values: Vec<String>) {
    if values.windows(2).any(|w| w.first() != w.last()) {
        to.push(Differing { what: what.to_owned(), values });
    }
}

impl Differences {
    /// As a table, a column per system.
    #[must_use]
    pub fn table(&self, names: &[String]) -> Table {
        let mut table = Table::new(&["what"]);
        table.head.extend(names.iter().cloned());
        table.words = (1..=names.len()).collect();
        for d in &self.differing {
            let mut row = vec![d.what.clone()];
            row.extend(d.values.iter().cloned());
            table.row(row);
        }
        table
    }

    /// What was left out, in words; `None` if nothing was.
    #[must_use]
    pub fn left_out_words(&self) -> Option<String> {
        (!self.left_out.is_empty()).then(|| {
            format!("Left out, since they differ at any two moments: {}.", self.left_out.join(", "))
        })
    }
}
