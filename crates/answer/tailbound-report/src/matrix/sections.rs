// SPDX-License-Identifier: MIT OR Apache-2.0
//! The longest sections of each cell's kernel, where its run was watched.
//!
//! Units: ns in; people's units out.

use serde_json::{Value, json};
use tailbound_core::paths::{PathsRecord, SectionKind, SectionRecord};

use super::grid::{Grid, load_name};
use crate::paths::{length, place};
use crate::table::Table;

/// Kinds in the order of columns. The two first make up the third of [`SectionKind::ALL`].
const KINDS: [(SectionKind, &str); 3] = [
    (SectionKind::InterruptsOff, "interrupts disabled"),
    (SectionKind::PreemptionOff, "preemption disabled"),
    (SectionKind::ReschedPending, "to be rescheduled"),
];
/// What it is called wherever it stands.
pub(super) const TITLE: &str = "Longest sections of the kernel";

/// Those that were looked at are in the order of their lengths.
fn longest(paths: &PathsRecord, kind: SectionKind) -> Option<&SectionRecord> {
    paths.sections.iter().find(|s| s.kind == kind)
}

/// A row for each cell; nothing where no run was watched.
pub(super) fn table(grid: &Grid) -> Option<Table> {
    // Of several CPUs, those of the measured thread's: which that is.
    let cpu_of = |paths: &PathsRecord| paths.cpus.first().map(|c| format!("CPU {}", c.cpu));
    let several = grid.runs().filter_map(|run| run.paths.as_deref()).any(|p| cpu_of(p).is_some());
    let mut head = vec!["kernel", "load"];
    head.extend(several.then_some("on"));
    head.extend(KINDS.map(|(_, title)| title));
    let mut table = Table::new(&head).with_words(&[1, 2, 3, 4, 5]);
    let mut any = false;
    for (variant, load, found) in grid.places() {
        let Some(run) = found.measured().and_then(|m| grid.run(m)) else { continue };
        let mut row = vec![variant.name(), load_name(load).to_owned()];
        if several {
            row.push(run.paths.as_deref().and_then(cpu_of).unwrap_or_default());
        }
        for (kind, _) in KINDS {
            row.push(match run.paths.as_deref().map(|paths| longest(paths, kind)) {
                None => "not watched".to_owned(),
                Some(None) => "none".to_owned(),
                Some(Some(s)) => {
                    any = true;
                    format!("{} ({})", length(s.longest_ns, s.own_ns), place(&s.from, &s.to))
                }
            });
        }
        table.row(row);
    }
    any.then_some(table)
}

/// The longest of each kind, for scripts; of several CPUs, on that of the measured thread.
pub(super) fn json(paths: &PathsRecord) -> Value {
    let of = |kind: SectionKind| {
        let s = longest(paths, kind)?;
        let mut one = json!({
            "kind": s.kind, "from": s.from, "to": s.to, "n": s.n, "longest_ns": s.longest_ns,
        });
        if let (Some(cpu), Some(own_ns)) = (s.cpu, s.own_ns) {
            one["cpu"] = json!(cpu);
            one["own_ns"] = json!(own_ns);
        }
        Some(one)
    };
    SectionKind::ALL.into_iter().filter_map(of).collect()
}
