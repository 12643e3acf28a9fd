// SPDX-License-Identifier: MIT OR Apache-2.0
//! Violations as a table, and as lists.

use tailbound_core::blame::Remedy;
use tailbound_core::rules::{Rule, ViolationRecord};
use tailbound_core::units::grouped;

use crate::site::Subject;
use crate::table::Table;

/// One row a rule and place.
pub(super) fn table(records: &[ViolationRecord], most: usize) -> Table {
    let head = ["rule", "times", "worst", "in all", "thread", "where"];
    let mut table = Table::new(&head).with_words(&[0, 4, 5]);
    for v in records.iter().take(most) {
        table.row(vec![
            v.rule.to_string(),
            grouped(v.n),
            v.worst.cost.to_string(),
            v.total.to_string(),
            thread(v),
            v.site.clone(),
        ]);
        table.naming(0, Subject::Rule, v.rule.as_str());
    }
    table
}

/// `ctl 4711`.
pub(super) fn thread(v: &ViolationRecord) -> String {
    match v.name.as_str() {
        "" => v.tid.to_string(),
        name => format!("{name} {}", v.tid),
    }
}

/// The rules that were broken, each with what to do about the places and the check that looks for it.
pub(super) fn remedies(records: &[ViolationRecord]) -> Vec<(Rule, Remedy)> {
    let mut out: Vec<(Rule, Remedy)> = Vec::new();
    for v in records {
        if let Some(remedy) = v.rule.remedy_at(&v.site)
            && !out.contains(&(v.rule, remedy))
        {
            out.push((v.rule, remedy));
        }
    }
    out
}
