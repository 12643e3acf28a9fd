// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits for one lock or one descriptor are one thing, whoever let it go each time.
//!
//! Context: COLD. Units: ns. `in futex 0x4000, released by planner-7` and `in futex 0x4000, woken by camera-8` are waits in
//! `in futex 0x4000`; who let it go most of the time is told with them.
//! Not here: the words of a single wait (`tracker`).

use std::collections::HashMap;

use tailbound_core::blame::{Cause, Phase, without_numbers};

use super::part::What;

/// What stands between a wait and who ended it.
const BY: [&str; 3] = [", released by ", ", last got by ", ", woken by "];
/// Most whose names are told.
const NAMED: usize = 2;

#[derive(Clone, Debug)]
struct Wait {
    key: u32,
    /// The words before the name, and the name.
    by: Option<(&'static str, String)>,
    ns: u64,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Locks {
    waits: HashMap<u32, Wait>,
    /// The words of each key without a holder.
    bare: HashMap<u32, String>,
}

impl Locks {
    /// `what` without who ended the wait, and who that was.
    pub(super) fn group(&self, mut what: What) -> (What, Option<(&'static str, String)>) {
        if what.phase != Phase::Blocked || what.cause != Cause::Blocked {
            return (what, None);
        }
        let first = BY.iter().filter_map(|by| Some((what.who.find(by)?, *by))).min();
        let Some((at, by)) = first else { return (what, Some(("", String::new()))) };
        let behind = what.who.get(at.saturating_add(by.len())..).unwrap_or_default();
        let name = BY.iter().fold(behind, |name, by| name.split(by).next().unwrap_or(name));
        let name = without_numbers(name);
        what.who.truncate(at);
        (what, Some((by, name)))
    }

    /// `what` is counted under `key`.
    pub(super) fn holds(&mut self, what: u32, key: u32, by: Option<(&'static str, String)>) {
        if by.is_some() {
            self.waits.insert(what, Wait { key, by: by.filter(|(_, n)| !n.is_empty()), ns: 0 });
        }
    }

    /// Time of a wait more.
    pub(super) fn add(&mut self, what: u32, ns: u64) {
        if let Some(wait) = self.waits.get_mut(&what) {
            wait.ns = wait.ns.saturating_add(ns);
        }
    }

    /// The words of a key are `bare` and who ended its waits.
    pub(super) fn called(&mut self, key: u32, bare: &str) {
        self.bare.entry(key).or_insert_with(|| bare.to_owned());
    }

    /// The words of every wait, with who ended it most of the time.
    pub(super) fn names(&self) -> HashMap<u32, String> {
        let mut by: HashMap<u32, HashMap<(&'static str, &str), u64>> = HashMap::new();
        for wait in self.waits.values() {
            let Some((words, name)) = &wait.by else { continue };
            let sum = by.entry(wait.key).or_default().entry((*words, name.as_str())).or_default();
            *sum = sum.saturating_add(wait.ns);
        }
        let told = |(key, by): (u32, HashMap<(&'static str, &str), u64>)| {
            let bare = self.bare.get(&key)?;
            let mut all: Vec<_> = by.into_iter().collect();
            all.sort_by(|a, b| (b.1, a.0).cmp(&(a.1, b.0)));
            let ((words, _), _) = *all.first()?;
            let mut names: Vec<&str> = Vec::new();
            for ((_, name), _) in &all {
                if !names.contains(name) {
                    names.push(name);
                }
            }
            let more = match names.len().saturating_sub(NAMED) {
                0 => String::new(),
                1 => " and one more".to_owned(),
                n => format!(" and {n} more"),
            };
            names.truncate(NAMED);
            let between = if more.is_empty() { " and " } else { ", " };
            Some((key, format!("{bare}{words}{}{more}", names.join(between))))
        };
        by.into_iter().filter_map(told).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_core::blame::Sureness;

    #[test]
    fn waits_for_one_lock_are_one_with_who_had_it_longest() {
        let mut locks = Locks::default();
        for (number, who, ns) in [
            (1, "in futex 0x40, released by planner-7", 50),
            (2, "in futex 0x40, woken by camera-8", 20),
            (3, "in futex 0x40", 900),
            (4, "in futex 0x40, released by planner-9", 30),
            (5, "in futex 0x40, woken by logger-10", 1),
        ] {
            let what = What {
                phase: Phase::Blocked,
                cause: Cause::Blocked,
                who: who.to_owned(),
                sureness: Sureness::Sure,
            };
            let (what, by) = locks.group(what);
            assert_eq!(what.who, "in futex 0x40");
            locks.holds(number, 77, by);
            locks.called(77, &what.who);
            locks.add(number, ns);
        }
        let names = locks.names();
        let said = names.get(&77).map(String::as_str);
        assert_eq!(said, Some("in futex 0x40, released by planner, camera and one more"));
    }
}
