// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checks of a machine as text and as JSON.
//!
//! The worst first; no score: a score hides what one bad setting does.

use serde_json::{Value, json};
use tailbound_core::order;

use crate::check::{Check, Group};
use crate::machine::{Machine, Workload};
use crate::outcome::{CheckOutcome, Level};
use crate::preconditions::{Precondition, preconditions};

/// One check with what it came to.
#[derive(Clone, Debug)]
pub struct CheckRecord {
    /// The check.
    pub check: &'static Check,
    /// What it came to.
    pub seen: CheckOutcome,
}

/// The checks that a text tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownChecks {
    /// All.
    All,
    /// What is bad, a warning or pending.
    Problems,
}

impl ShownChecks {
    /// As `--all` says.
    #[must_use]
    pub fn all_if(all: bool) -> Self {
        if all { Self::All } else { Self::Problems }
    }
}

/// All of a machine.
#[derive(Debug)]
pub struct Answers {
    /// By group, the worst group first, and the worst first in it.
    pub all: Vec<CheckRecord>,
    /// Facts for a bound from a model.
    pub preconditions: Vec<Precondition>,
    machine: Value,
    filled: Vec<(String, String, String)>,
}

impl Answers {
    /// Makes every check.
    #[must_use]
    pub fn of(m: &Machine) -> Self {
        let mut all: Vec<CheckRecord> = crate::catalogue()
            .into_iter()
            .map(|check| CheckRecord { seen: check.seen(m), check })
            .collect();
        let worst = |group: Group, all: &[CheckRecord]| {
            let of = all.iter().filter(|a| a.check.group == group);
            let bad = of.clone().filter(|a| a.seen.level == Level::Bad).count();
            let warn = of.filter(|a| a.seen.level == Level::Warn).count();
            (std::cmp::Reverse(bad), std::cmp::Reverse(warn), group)
        };
        let ranks: Vec<_> =
            all.iter().map(|a| (worst(a.check.group, &all), a.seen.level)).collect();
        let mut order: Vec<usize> = (0..all.len()).collect();
        order::by_key(&mut order, |i| ranks.get(*i).copied());
        all = order.iter().filter_map(|i| all.get(*i).cloned()).collect();
        let filled = all
            .iter()
            .map(|a| (m.filled(a.check.now), m.filled(a.check.for_good), m.filled(a.check.undo)))
            .collect();
        let machine = json!({
            "kernel": m.root.read_trimmed("/proc/sys/kernel/osrelease").ok(),
            "preempt_rt": m.is_rt(),
            "hypervisor": m.hypervisor(),
            "online": m.online,
            "rt_cpus": m.rt,
            "workload": match m.wanted.workload {
                Workload::Cyclic => "cyclic",
                Workload::Polling => "polling",
            },
            "captured": !m.root.is_real(),
        });
        Self { preconditions: preconditions(m), all, machine, filled }
    }

    /// How many of that level.
    #[must_use]
    pub fn count(&self, level: Level) -> usize {
        self.all.iter().filter(|a| a.seen.level == level).count()
    }

    /// For programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let counts: serde_json::Map<String, Value> = Level::ALL
            .iter()
            .map(|l| (l.word().replace(' ', "_"), self.count(*l).into()))
            .collect();
        let rows: Vec<Value> = self
            .all
            .iter()
            .zip(&self.filled)
            .map(|(a, (now, good, undo))| {
                json!({
                    "id": a.check.id, "group": a.check.group.title(), "result": a.seen.level,
                    "found": a.seen.found, "why": a.check.why, "fix_now": now,
                    "fix_for_good": good, "undo": undo, "source": a.check.source,
                })
            })
            .collect();
        json!({
            "format": "tailbound-check/1", "machine": self.machine, "counts": counts,
            "checks": rows, "preconditions": self.preconditions,
        })
    }

    /// For people.
    #[must_use]
    pub fn text(&self, shown: ShownChecks, paint: impl Fn(Level, &str) -> String) -> String {
        let mut out = String::new();
        let mut group = None;
        let all = shown == ShownChecks::All;
        let wide = if all { 14 } else { 4 };
        for (a, (now, good, _)) in self.all.iter().zip(&self.filled) {
            let level = a.seen.level;
            if !all && matches!(level, Level::Ok | Level::NotApplicable | Level::Unknown) {
                continue;
            }
            if group != Some(a.check.group) {
                group = Some(a.check.group);
                out.push_str(&format!("\n{}\n", a.check.group.title()));
            }
            let word = paint(level, &format!("{:<wide$}", level.word()));
            out.push_str(&format!("  {word} {:<22} {}\n", a.check.id, a.seen.found));
            if matches!(level, Level::Bad | Level::Warn | Level::NeedsReboot) {
                out.push_str(&format!("      why: {}\n", a.check.why));
                for (label, text) in [("now:", now), ("for good:", good)] {
                    if !text.is_empty() {
                        out.push_str(&format!("      {label} {text}\n"));
                    }
                }
            }
        }
        let counts: Vec<String> = Level::ALL
            .iter()
            .filter(|l| self.count(**l) > 0)
            .map(|l| format!("{} {}", self.count(*l), l.word()))
            .collect();
        out.push_str(&format!("\n{} checks: {}", self.all.len(), counts.join(", ")));
        if !all {
            out.push_str(" (--all shows every one)");
        }
        out.push('\n');
        out
    }
}
