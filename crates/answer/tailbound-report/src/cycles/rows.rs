// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures about cycles as tables.
//!
//! Units: ns.

use tailbound_core::Distribution;
use tailbound_core::cycle::CycleRecord;
use tailbound_core::number::Real as _;
use tailbound_core::units::{format_ns, format_ns_i64, grouped};
use tailbound_stats::quantile::quantile;

use crate::blame::{percent, what};
use crate::figures::quantile as quantile_words;
use crate::table::Table;

/// Least, mean, p99 and greatest of what a cycle is measured by.
pub(super) fn figures(c: &CycleRecord) -> Table {
    let mut table = Table::new(&["", "min", "mean", "p99", "max"]).with_words(&[0]);
    for (name, d) in [
        ("wake-up latency", &c.wakeup),
        ("execution", &c.execution),
        ("blocked within", &c.blocked),
        ("response (length)", &c.response),
    ] {
        table.row(row(name, d));
    }
    table
}

fn row(name: &str, d: &Distribution) -> Vec<String> {
    let time = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), format_ns_i64);
    vec![
        name.to_owned(),
        time(d.min_ns),
        d.mean().map_or_else(|| "-".to_owned(), format_ns),
        quantile_words(Some(quantile(d, 0.99))),
        time(d.max_ns),
    ]
}

/// What cycles were made of, the `most` causes with the most time; the rest is one row.
pub(super) fn causes(c: &CycleRecord, most: usize) -> Table {
    let mut table = Table::new(&["share", "total", "most of one", "cycles", "phase", "what"])
        .with_words(&[4, 5]);
    let all = c.total_ns();
    for cause in c.causes.iter().take(most) {
        table.row(vec![
            percent(cause.total_ns.real(), all.real()),
            format_ns_i64(cause.total_ns),
            format_ns_i64(cause.worst_ns),
            grouped(cause.cycles),
            cause.phase.to_string(),
            what(&cause.cause.sentence(&cause.who), cause.sureness),
        ]);
    }
    let rest = c.causes.get(most.min(c.causes.len())..).unwrap_or_default();
    let ns = rest.iter().map(|x| x.total_ns).fold(c.causes_left_out_ns, i64::saturating_add);
    if ns > 0 {
        table.row(vec![
            percent(ns.real(), all.real()),
            format_ns_i64(ns),
            "-".to_owned(),
            "-".to_owned(),
            "all".to_owned(),
            format!("{} more", grouped(rest.len() as u64)),
        ]);
    }
    table
}

/// Why cycles were late, the `most` reasons with the most cycles.
pub(super) fn late(c: &CycleRecord, most: usize) -> Table {
    let head = ["late", "behind another", "most of one", "what"];
    let mut table = Table::new(&head).with_words(&[3]);
    for r in c.late_reasons.iter().take(most) {
        let worst = if r.worst_ns > 0 { format_ns_i64(r.worst_ns) } else { "-".to_owned() };
        table.row(vec![
            grouped(r.cycles),
            grouped(r.backlog),
            worst,
            what(&r.cause.sentence(&r.who), r.sureness),
        ]);
    }
    table
}

/// All threads in one table.
pub(super) fn threads(all: &[CycleRecord]) -> Table {
    let head =
        ["policy", "CPU", "period", "cycles", "missed", "wake-up max", "response max", "thread"];
    let mut table = Table::new(&head).with_words(&[7]);
    for c in all {
        let time = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), format_ns_i64);
        table.row(vec![
            c.policy.to_string(),
            c.cpu.map_or_else(|| "-".to_owned(), |cpu| cpu.to_string()),
            time(c.pace.period_ns),
            grouped(c.cycles),
            c.deadline_ns.map_or_else(|| "-".to_owned(), |_| grouped(c.misses)),
            time(c.wakeup.max_ns),
            time(c.response.max_ns),
            format!("{} {}", c.name, c.tid),
        ]);
    }
    table
}
