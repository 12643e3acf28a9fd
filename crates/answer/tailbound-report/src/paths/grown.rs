// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact paths of two systems beside each other: which sections are longer, and which functions took more time in
//! the latest wake-up.
//!
//! Units: ns. A section that one of them has not among its longest is absent there, not 0.

use std::collections::BTreeMap;
use tailbound_core::order;

use serde::Serialize;
use tailbound_core::paths::{PathsRecord, SectionKind, TreeLine};
use tailbound_core::units::format_ns_i64;

use super::{place, title};
use crate::html::page::Page;
use crate::table::Table;
use crate::text::ink::Ink;

/// Rows of a table.
const ROWS: usize = 8;

/// What is longer, or shorter, than before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Grown {
    /// What it is: a place with its kind, or a function.
    pub what: String,
    /// In the first system.
    pub before_ns: Option<i64>,
    /// In the other.
    pub now_ns: Option<i64>,
}

/// Two records compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// The longest sections, those that changed most first.
    pub sections: Vec<Grown>,
    /// Time in each function itself in the latest wake-up, those that changed most first.
    pub functions: Vec<Grown>,
}

impl Compared {
    /// Sections that are longer than before, or are among the longest now and were not.
    #[must_use]
    pub fn longer(self) -> Vec<Grown> {
        let mut all = self.sections;
        all.retain(|g| g.now_ns > g.before_ns);
        all
    }
}

fn changed<K: Ord>(
    before: BTreeMap<K, i64>,
    mut now: BTreeMap<K, i64>,
    name: impl Fn(&K) -> String,
) -> Vec<Grown> {
    let mut all: Vec<Grown> = before
        .into_iter()
        .map(|(key, ns)| Grown { what: name(&key), before_ns: Some(ns), now_ns: now.remove(&key) })
        .collect();
    let new = |(key, ns): (K, i64)| Grown { what: name(&key), before_ns: None, now_ns: Some(ns) };
    all.extend(now.into_iter().map(new));
    let change = |g: &Grown| g.now_ns.unwrap_or(0).saturating_sub(g.before_ns.unwrap_or(0));
    all.retain(|g| change(g) != 0);
    order::by_key(&mut all, |g| (std::cmp::Reverse(change(g).abs()), g.what.clone()));
    all
}

/// By kind, place and, of several CPUs, which one. There it is what the CPU executed itself: the rest are other CPUs' turns.
type Places = BTreeMap<(SectionKind, String, Option<u32>), i64>;

fn sections(paths: &PathsRecord) -> Places {
    let mut all = BTreeMap::new();
    for s in &paths.sections {
        let longest = all.entry((s.kind, place(&s.from, &s.to), s.cpu)).or_insert(0);
        *longest = s.own_ns.unwrap_or(s.longest_ns).max(*longest);
    }
    all
}

fn functions(paths: &PathsRecord) -> BTreeMap<String, i64> {
    let mut all = BTreeMap::new();
    let lines: &[TreeLine] = paths.wakeups.first().map_or(&[], |w| &w.tree);
    lines.iter().for_each(|line| *all.entry(line.name.clone()).or_insert(0) += line.own_ns);
    all
}

/// What `now` has that `before` had not, or had shorter or longer.
#[must_use]
pub fn grown(before: &PathsRecord, now: &PathsRecord) -> Compared {
    let name = |(kind, place, cpu): &(SectionKind, String, Option<u32>)| {
        let cpu = cpu.map_or_else(String::new, |cpu| format!(", CPU {cpu}"));
        format!("{place} ({}{cpu})", title(*kind).to_lowercase())
    };
    Compared {
        sections: changed(sections(before), sections(now), name),
        functions: changed(functions(before), functions(now), Clone::clone),
    }
}

/// Two tables with their headings.
fn tables(name: &str, before: &PathsRecord, now: &PathsRecord) -> [(String, Table); 2] {
    let compared = grown(before, now);
    let of = |all: &[Grown], what| {
        let mut table = Table::new(&["before", "now", what]).with_words(&[2]);
        let ns = |ns: Option<i64>| ns.map_or_else(|| "–".to_owned(), format_ns_i64);
        for g in all.iter().take(ROWS) {
            table.row(vec![ns(g.before_ns), ns(g.now_ns), g.what.clone()]);
        }
        table
    };
    let several = [before, now].iter().any(|p| !p.cpus.is_empty());
    let itself = if several { " (what their CPU executed itself)" } else { "" };
    [
        (
            format!("{name}: longest sections that changed most{itself}"),
            of(&compared.sections, "section"),
        ),
        (
            format!("{name}: functions in the latest wake-up that changed most"),
            of(&compared.functions, "function"),
        ),
    ]
}

/// In a terminal.
pub(crate) fn text(
    page: &mut crate::text::page::Page,
    name: &str,
    before: &PathsRecord,
    now: &PathsRecord,
) {
    for (heading, table) in tables(name, before, now) {
        page.heading(&heading);
        let lines = crate::blame::hanging(&table, page.width());
        page.raw(lines, Ink::Plain);
    }
}

/// In a browser.
pub(crate) fn section(page: &mut Page, name: &str, before: &PathsRecord, now: &PathsRecord) {
    for (heading, table) in tables(name, before, now) {
        page.heading(&heading);
        let table = table.html();
        page.push(&table);
    }
}

#[cfg(test)]
mod tests {
    use tailbound_core::paths::{SectionRecord, WakeUpRecord};

    use super::*;

    fn record(longest_ns: i64, name: &str, own_ns: i64) -> PathsRecord {
        let section = |kind, longest_ns| SectionRecord {
            kind,
            cpu: None,
            from: "spin_lock".to_owned(),
            to: "spin_unlock".to_owned(),
            n: 1,
            mean_ns: 1,
            longest_ns,
            own_ns: None,
            at_ns: 0,
            tree: Vec::new(),
        };
        let line = TreeLine { depth: 0, name: name.to_owned(), calls: 1, total_ns: own_ns, own_ns };
        let wakeup = WakeUpRecord { tree: vec![line], ..WakeUpRecord::default() };
        PathsRecord {
            sections: vec![
                section(SectionKind::InterruptsOff, longest_ns),
                section(SectionKind::PreemptionOff, 7),
            ],
            wakeups: vec![wakeup],
            ..PathsRecord::default()
        }
    }

    #[test]
    fn what_changed_is_told_and_what_did_not_is_left_out() {
        let compared = grown(&record(100, "old", 5), &record(900, "new", 9));
        let section = Grown {
            what: "spin_lock to spin_unlock (interrupts disabled)".to_owned(),
            before_ns: Some(100),
            now_ns: Some(900),
        };
        assert_eq!(compared.sections, [section]);
        let of = |what: &str, before_ns, now_ns| Grown { what: what.to_owned(), before_ns, now_ns };
        assert_eq!(compared.functions, [of("new", None, Some(9)), of("old", Some(5), None)]);
    }

    #[test]
    fn of_several_cpus_it_is_what_each_executed_and_no_other_ones_turns() {
        let of = |own_ns| {
            let mut record = record(900, "same", 5);
            record.sections.truncate(1);
            record.sections.iter_mut().for_each(|s| (s.cpu, s.own_ns) = (Some(1), Some(own_ns)));
            record
        };
        assert_eq!(grown(&of(7), &of(7)).sections, []);
        let section = Grown {
            what: "spin_lock to spin_unlock (interrupts disabled, CPU 1)".to_owned(),
            before_ns: Some(7),
            now_ns: Some(8),
        };
        assert_eq!(grown(&of(7), &of(8)).sections, [section]);
    }
}
