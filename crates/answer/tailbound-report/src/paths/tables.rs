// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact paths as tables.
//!
//! Units: ns.

use tailbound_core::paths::{PathsRecord, SectionKind, TreeLine};
use tailbound_core::units::{format_ns_i64, grouped};

use crate::table::Table;

/// Rows of a table of sections, lines of a tree, points of the curve.
const ROWS: usize = 5;
const LINES: usize = 24;
const POINTS: usize = 12;

fn share(p: f64) -> String {
    if p == 0.0 { "0".to_owned() } else { format!("{p:.1e}") }
}

/// Of one CPU, where there are several: then the most that it executed of one itself stands first.
pub(super) fn sections(paths: &PathsRecord, kind: SectionKind, cpu: Option<u32>) -> Table {
    let own = cpu.map_or(0, |_| 1);
    let head = ["itself", "longest", "mean", "count", "from", "to"];
    let head = if own == 1 { &head[..] } else { &head[1..] };
    let mut table = Table::new(head).with_words(&[3 + own, 4 + own]);
    for s in paths.sections.iter().filter(|s| s.kind == kind && s.cpu == cpu).take(ROWS) {
        let mut row: Vec<String> = s.own_ns.map(format_ns_i64).into_iter().collect();
        row.extend([
            format_ns_i64(s.longest_ns),
            format_ns_i64(s.mean_ns),
            grouped(s.n),
            s.from.clone(),
            s.to.clone(),
        ]);
        table.row(row);
    }
    table
}

/// A row for each leg, a column for each wake-up; in brackets what the leg's CPU executed of it, where that is less.
pub(super) fn wakeups(paths: &PathsRecord) -> Table {
    let mut head = vec!["activation", "latency"];
    head.extend(paths.wakeups.iter().take(1).flat_map(|w| w.legs.iter().map(|l| l.name.as_str())));
    let mut table = Table::new(&head);
    for w in &paths.wakeups {
        let mut row = vec![grouped(w.activation), format_ns_i64(w.latency_ns)];
        row.extend(w.legs.iter().map(|leg| match leg.own_ns.filter(|own| *own != leg.ns) {
            Some(own) => format!("{} ({})", format_ns_i64(leg.ns), format_ns_i64(own)),
            None => format_ns_i64(leg.ns),
        }));
        table.row(row);
    }
    table.transposed()
}

/// The parts of all answers; the first lies before the sample.
pub(super) fn split(paths: &PathsRecord) -> Table {
    let mut table = Table::new(&["part", "least", "mean", "longest"]);
    for part in &paths.split {
        let lengths = [part.least_ns, part.mean_ns, part.longest_ns].map(format_ns_i64);
        table.row(std::iter::once(part.name.clone()).chain(lengths).collect());
    }
    table
}

pub(super) fn tree(lines: &[TreeLine], indent: &str) -> Table {
    let mut table = Table::new(&["total", "itself", "calls", "function"]).with_words(&[3]);
    for line in lines.iter().take(LINES) {
        let indent = indent.repeat(usize::from(line.depth));
        table.row(vec![
            format_ns_i64(line.total_ns),
            format_ns_i64(line.own_ns),
            grouped(line.calls),
            format!("{indent}{}", line.name),
        ]);
    }
    table
}

pub(super) fn curve(paths: &PathsRecord) -> Table {
    let mut table = Table::new(&["later than", "samples", "any instant (estimate)"]);
    let every = paths.curve.len().div_ceil(POINTS).max(1);
    for point in paths.curve.iter().step_by(every) {
        table.row(vec![format_ns_i64(point.ns), share(point.samples), share(point.instants)]);
    }
    table
}
