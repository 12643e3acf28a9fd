// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits for one lock or one descriptor are one thing, whoever let it go each time; and so are turns of other ordinary threads.
//!
//! Units: ns. `in futex 0x4000, released by planner-7` and `in futex 0x4000, woken by camera-8` are waits in
//! `in futex 0x4000`; who let it go most of the time is told with them.
//! Not here: the words of a single wait (`tracker`).

use std::collections::{BTreeMap, HashMap};
use tailbound_core::order;

use tailbound_core::blame::{Cause, Phase, without_numbers};
use tailbound_core::units::format_ns_i64;

use super::part::PartCharge;

/// What stands between a wait and who ended it.
const RELEASED: &str = ", released by ";
const BY: [&str; 3] = [RELEASED, ", last got by ", ", woken by "];
/// Most whose names are told.
const NAMED: usize = 2;

/// Who ended a wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EndedBy {
    /// The words before the name.
    words: &'static str,
    name: String,
    /// Who kept that thread off its CPU, where that was an inversion of priorities.
    behind: Option<String>,
}

#[derive(Clone, Debug)]
struct Wait {
    key: u32,
    by: EndedBy,
    ns: u64,
}

/// What is said of all waits for one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) cause: Cause,
    pub(super) who: String,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Locks {
    waits: HashMap<u32, Wait>,
    /// What all waits of a key have together.
    bare: HashMap<u32, Said>,
}

impl Locks {
    /// `what` without who ended the wait, and who that was.
    pub(super) fn group(mut what: PartCharge) -> (PartCharge, Option<EndedBy>) {
        if what.cause == Cause::FairShare {
            let name = without_numbers(&std::mem::take(&mut what.who));
            return (what, Some(EndedBy { name, ..EndedBy::default() }));
        }
        if what.phase == Phase::Blocked
            && what.cause == Cause::PriorityInversion
            && let Some((owner, rest)) = what.who.split_once(" behind ")
            && let Some((behind, lock)) = rest.rsplit_once(" in futex")
        {
            let by = EndedBy {
                words: RELEASED,
                name: without_numbers(owner),
                behind: Some(without_numbers(behind)),
            };
            let who = format!("in futex{lock}");
            return (PartCharge { cause: Cause::Blocked, who, ..what }, Some(by));
        }
        if what.phase != Phase::Blocked || what.cause != Cause::Blocked {
            return (what, None);
        }
        let first = BY.iter().filter_map(|by| Some((what.who.find(by)?, *by))).min();
        let Some((at, words)) = first else { return (what, Some(EndedBy::default())) };
        let name = what.who.get(at.saturating_add(words.len())..).unwrap_or_default();
        let name = BY.iter().fold(name, |name, by| name.split(by).next().unwrap_or(name));
        let name = without_numbers(name);
        what.who.truncate(at);
        (what, Some(EndedBy { words, name, behind: None }))
    }

    /// `what` is counted under `key`, whose waits are all `of`.
    pub(super) fn holds(&mut self, what: u32, key: u32, of: &PartCharge, by: Option<EndedBy>) {
        let Some(by) = by else { return };
        self.waits.insert(what, Wait { key, by, ns: 0 });
        self.bare.entry(key).or_insert_with(|| Said { cause: of.cause, who: of.who.clone() });
    }

    /// Time of a wait more.
    pub(super) fn add(&mut self, what: u32, ns: u64) {
        if let Some(wait) = self.waits.get_mut(&what) {
            wait.ns = wait.ns.saturating_add(ns);
        }
    }

    /// What is said of every wait, with who ended it most of the time.
    pub(super) fn said(&self) -> HashMap<u32, Said> {
        let of = |key: u32| self.waits.values().filter(move |w| w.key == key);
        let said = |(key, bare): (&u32, &Said)| {
            let names = most(of(*key).map(|w| (w.by.name.as_str(), w.ns)));
            let words = of(*key).filter(|w| !w.by.name.is_empty());
            let words = words.max_by_key(|w| (w.ns, w.by.words)).map_or("", |w| w.by.words);
            let behind = most(of(*key).filter_map(|w| Some((w.by.behind.as_deref()?, w.ns))));
            let sum = |inverted: bool| {
                let all = of(*key).filter(|w| !inverted || w.by.behind.is_some());
                all.map(|w| w.ns).fold(0, u64::saturating_add)
            };
            let (all, inverted) = (sum(false), sum(true));
            if inverted > 0 && inverted.saturating_mul(2) >= all {
                let who = format!("{names} behind {behind} {}", bare.who);
                return (*key, Said { cause: Cause::PriorityInversion, who });
            }
            let part = match inverted {
                0 => String::new(),
                ns => {
                    let ns = format_ns_i64(i64::try_from(ns).unwrap_or(i64::MAX));
                    format!(" (priority inversion behind {behind} for {ns})")
                }
            };
            (*key, Said { who: format!("{}{words}{names}{part}", bare.who), ..bare.clone() })
        };
        self.bare.iter().map(said).collect()
    }
}

/// `planner`, `planner and camera`, `planner, camera and 2 more`: those with the most time first.
fn most<'a>(all: impl Iterator<Item = (&'a str, u64)>) -> String {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, ns) in all.filter(|(name, _)| !name.is_empty()) {
        let sum = sums.entry(name).or_default();
        *sum = sum.saturating_add(ns);
    }
    let mut names: Vec<(&str, u64)> = sums.into_iter().collect();
    order::by_key(&mut names, |(_, ns)| std::cmp::Reverse(*ns));
    let more = names.len().saturating_sub(NAMED);
    let first: Vec<&str> = names.into_iter().take(NAMED).map(|(name, _)| name).collect();
    match more {
        0 => first.join(" and "),
        1 => format!("{} and one more", first.join(", ")),
        n => format!("{} and {n} more", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_core::blame::Sureness;

    fn said(waits: &[(Cause, &str, u64)]) -> Said {
        let mut locks = Locks::default();
        for (number, (cause, who, ns)) in (1..).zip(waits) {
            let (cause, who) = (*cause, (*who).to_owned());
            let what = PartCharge { phase: Phase::Blocked, cause, who, sureness: Sureness::Sure };
            let (what, by) = Locks::group(what);
            assert_eq!((what.cause, what.who.as_str()), (Cause::Blocked, "in futex 0x40"));
            locks.holds(number, 77, &what, by);
            locks.add(number, *ns);
        }
        locks.said().remove(&77).expect("it was waited for")
    }

    #[test]
    fn waits_for_one_lock_are_one_with_who_had_it_longest() {
        let got = said(&[
            (Cause::Blocked, "in futex 0x40, released by planner-7", 50),
            (Cause::Blocked, "in futex 0x40, woken by camera-8", 20),
            (Cause::Blocked, "in futex 0x40", 900),
            (Cause::Blocked, "in futex 0x40, released by planner-9", 30),
            (Cause::Blocked, "in futex 0x40, woken by logger-10", 1),
        ]);
        let who = "in futex 0x40, released by planner, camera and one more".to_owned();
        assert_eq!(got, Said { cause: Cause::Blocked, who });
    }

    #[test]
    fn an_inversion_is_a_wait_for_the_same_lock() {
        let plain = (Cause::Blocked, "in futex 0x40, released by planner-7", 50);
        let inverted =
            |ns| (Cause::PriorityInversion, "planner-7 behind camera-8 in futex 0x40", ns);
        let who = "planner behind camera in futex 0x40".to_owned();
        assert_eq!(said(&[plain, inverted(60)]), Said { cause: Cause::PriorityInversion, who });
        let who = "in futex 0x40, released by planner (priority inversion behind camera for 9 ns)";
        assert_eq!(said(&[plain, inverted(9)]).who, who);
    }
}
