// SPDX-License-Identifier: MIT OR Apache-2.0
//! Violations by rule, thread and place: how often, what they cost, the first and the worst.
//!
//! Units: ns.

use tailbound_core::order;
use tailbound_core::rules::{Cost, Occurrence, Rule, Stack, ViolationRecord};

use super::Violation;

/// Places that are told apart; what comes beyond is counted.
const PLACES_MAX: usize = 512;

/// What makes two violations the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    rule: Rule,
    name: String,
    site: String,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    found: Vec<(Key, ViolationRecord)>,
    left_out: u64,
}

fn add(total: Cost, one: Cost) -> Cost {
    match (total.ns, one.ns) {
        (_, None) => total,
        (None, Some(_)) => one,
        (Some(a), Some(b)) => {
            Cost { ns: Some(a.saturating_add(b)), at_most: total.at_most || one.at_most }
        }
    }
}

impl Tally {
    /// One more, of a thread of this name, with its stack; times count from `origin_ns`.
    /// `place` is the program's function where the stack shows it.
    pub fn add(
        &mut self,
        v: Violation,
        name: &str,
        place: Option<&str>,
        stack: Stack,
        origin_ns: u64,
    ) {
        let site = match place {
            Some(place) => format!("{} in {place}", v.site),
            None => self.likely(&v, name),
        };
        let key = Key { rule: v.rule, name: name.to_owned(), site };
        let t_ns = i64::try_from(v.t_ns.saturating_sub(origin_ns)).unwrap_or(i64::MAX);
        let now = Occurrence { t_ns, cost: v.cost, text: v.text, stack };
        if let Some((_, record)) = self.found.iter_mut().find(|(k, _)| *k == key) {
            record.n = record.n.saturating_add(1);
            record.total = add(record.total, now.cost);
            if now.cost.ns > record.worst.cost.ns {
                record.worst = now;
            }
            return;
        }
        if self.found.len() >= PLACES_MAX {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        let record = ViolationRecord {
            rule: key.rule,
            tid: v.tid,
            name: key.name.clone(),
            site: key.site.clone(),
            n: 1,
            total: now.cost,
            first: now.clone(),
            worst: now,
        };
        self.found.push((key, record));
    }

    /// Without a stack: of the one place that is known of this rule, thread and call, else of none.
    fn likely(&self, v: &Violation, name: &str) -> String {
        let begin = format!("{} in ", v.site);
        let same = |k: &&Key| k.rule == v.rule && k.name == name && k.site.starts_with(&begin);
        let mut places = self.found.iter().map(|(k, _)| k).filter(same);
        match (places.next(), places.next()) {
            (Some(one), None) => one.site.clone(),
            _ => v.site.clone(),
        }
    }

    /// How many there were, of whatever rule.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.found.iter().map(|(_, r)| r.n).fold(self.left_out, u64::saturating_add)
    }

    /// Violations at more places than are told apart.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// By rule; within a rule the most expensive first.
    #[must_use]
    pub fn records(self) -> Vec<ViolationRecord> {
        let mut records: Vec<ViolationRecord> = self.found.into_iter().map(|(_, r)| r).collect();
        order::by_key(&mut records, |r| (r.rule, std::cmp::Reverse((r.worst.cost.ns, r.n))));
        records
    }
}
