// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why cycles of a thread were late: each late cycle once, under what delayed it.
//!
//! Units: ns. What delayed a cycle is what took most more of it than of the thread's cycles that were in
//! time. A cycle that began late because the one before it had not finished is late for the reason of the first of that
//! row, unless something of its own took more.
//! Not here: what a cycle's time went to (`assemble`), what is said (`tailbound-report`).

use std::collections::{BTreeMap, HashMap};
use tailbound_core::order;

use tailbound_core::blame::Cause;
use tailbound_core::cycle::LateReason;

use super::locks::Said;
use super::part::{PartCharge, Whats};

/// Most reasons that are kept apart.
const REASONS_MAX: usize = 64;

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    cycles: u64,
    backlog: u64,
    ns: u64,
    ns_max: u64,
}

/// A finished cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct CycleOutcome<'a> {
    /// What its time went to, by what is the same in all cycles.
    pub(super) sums: &'a [(u32, u64)],
    /// It took longer than its deadline, or than its period.
    pub(super) late: bool,
    /// The next was released before its end.
    pub(super) overran: bool,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Lateness {
    /// What cycles in time went to, and how many these were.
    usual: HashMap<u32, u64>,
    in_time: u64,
    /// Of the cycles that follow each other without a pause: why the first was late.
    origin: Option<u32>,
    sums: BTreeMap<u32, Sum>,
}

impl Lateness {
    /// One cycle more.
    pub(super) fn add(&mut self, whats: &Whats, cycle: &CycleOutcome<'_>) {
        let is_backlog = |key: u32| whats.of(key).is_some_and(|w| w.cause == Cause::Backlog);
        let in_backlog = cycle.sums.iter().any(|(key, _)| is_backlog(*key));
        if !in_backlog {
            self.origin = None;
        }
        if cycle.late || cycle.overran {
            let more = |(key, ns): &(u32, u64)| {
                let usual = self.usual.get(key).copied().unwrap_or(0);
                (*key, ns.saturating_sub(usual.checked_div(self.in_time).unwrap_or(0)))
            };
            let most =
                cycle.sums.iter().map(more).max_by_key(|(key, ns)| (*ns, std::cmp::Reverse(*key)));
            if let Some((key, ns)) = most {
                let inherited = is_backlog(key);
                let reason = if inherited { self.origin.unwrap_or(key) } else { key };
                match (cycle.late, inherited) {
                    (true, true) => self.count_backlog(reason),
                    (true, false) => self.count(reason, ns),
                    (false, _) => {}
                }
                self.origin = Some(reason);
            }
        } else {
            self.in_time = self.in_time.saturating_add(1);
            for (key, ns) in cycle.sums {
                let usual = self.usual.entry(*key).or_default();
                *usual = usual.saturating_add(*ns);
            }
        }
    }

    /// A late cycle more of this reason; `None`: there are too many reasons.
    fn cycle_of(&mut self, reason: u32) -> Option<&mut Sum> {
        if self.sums.len() >= REASONS_MAX && !self.sums.contains_key(&reason) {
            return None;
        }
        let sum = self.sums.entry(reason).or_default();
        sum.cycles = sum.cycles.saturating_add(1);
        Some(sum)
    }

    fn count(&mut self, reason: u32, ns: u64) {
        let Some(sum) = self.cycle_of(reason) else { return };
        (sum.ns, sum.ns_max) = (sum.ns.saturating_add(ns), sum.ns_max.max(ns));
    }

    fn count_backlog(&mut self, reason: u32) {
        let Some(sum) = self.cycle_of(reason) else { return };
        sum.backlog = sum.backlog.saturating_add(1);
    }

    /// The reasons, those of most cycles first.
    pub(super) fn reasons(&self, whats: &Whats, said: &HashMap<u32, Said>) -> Vec<LateReason> {
        let reason = |(key, sum): (&u32, &Sum)| {
            let PartCharge { phase, cause, who, sureness } = whats.of(*key)?.clone();
            let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
            Some(LateReason {
                phase,
                cause: said.get(key).map_or(cause, |s| s.cause),
                who: said.get(key).map_or(who, |s| s.who.clone()),
                sureness,
                cycles: sum.cycles,
                backlog: sum.backlog,
                total_ns: signed(sum.ns),
                worst_ns: signed(sum.ns_max),
            })
        };
        let mut all: Vec<LateReason> = self.sums.iter().filter_map(reason).collect();
        order::by(&mut all, |a, b| {
            (b.cycles, b.total_ns, &a.who).cmp(&(a.cycles, a.total_ns, &b.who))
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_core::blame::{Phase, Sureness};

    #[test]
    fn a_row_of_late_cycles_has_the_reason_of_its_first() {
        let mut whats = Whats::default();
        let mut key = |phase, cause, who: &str| {
            whats.number(PartCharge { phase, cause, who: who.to_owned(), sureness: Sureness::Sure })
        };
        let own = key(Phase::Running, Cause::Own, "");
        let write = key(Phase::Blocked, Cause::Blocked, "in write of descriptor 4");
        let lock = key(Phase::Blocked, Cause::Blocked, "in futex 0x1");
        let backlog = key(Phase::WakeUp, Cause::Backlog, "");
        let mut lateness = Lateness::default();
        let mut add = |sums: &[(u32, u64)], late, overran| {
            lateness.add(&whats, &CycleOutcome { sums, late, overran });
        };
        // Four of five are its work; a wait of three is what is more than usual.
        (0..10).for_each(|_| add(&[(own, 4)], false, false));
        add(&[(own, 4), (write, 3)], true, true);
        add(&[(own, 4), (backlog, 2)], true, true);
        add(&[(own, 4), (backlog, 1)], false, false);
        add(&[(own, 4), (write, 1), (lock, 9)], true, false);
        let reasons = lateness.reasons(&whats, &HashMap::new());
        let told: Vec<_> =
            reasons.iter().map(|r| (r.who.as_str(), r.cycles, r.backlog, r.worst_ns)).collect();
        assert_eq!(told, [("in write of descriptor 4", 2, 1, 3), ("in futex 0x1", 1, 0, 9)]);
    }
}
