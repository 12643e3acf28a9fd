// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of distributions as texts: one row per thread, one per total, for both ways of counting.
//!
//! Units: ns in; people's units out. A quantile that the count does not
//! support says how many more activations it takes.
//! Not here: computing them (`tailbound-stats`).

use tailbound_core::order;
use tailbound_core::units::{format_ns, format_ns_i64, grouped};
use tailbound_stats::analysis::Figures;
use tailbound_stats::{Analysis, Quantile, Summary};

use crate::label;
use crate::precision;
use crate::table::Table;
use crate::unitless;

/// One row: who, counted how, and the figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Thread or total.
    pub name: String,
    /// `per wake-up` or `per due activation`; empty where nothing was missed and both are the same.
    pub counted: &'static str,
    /// The figures.
    pub summary: Summary,
    /// Missed activations.
    pub missed: u64,
    /// Wake-ups that happened and are not among `n`: the kernel's trace did not have them.
    pub unseen: u64,
    /// P² estimates (approximate), by name.
    pub p2: Vec<(String, f64)>,
}

/// Rows of the compact table up to which each has its half-widths beneath it; of more, the last.
const WIDTHS_ROWS_MAX: usize = 4;

/// Wake-ups that a context of the kernel's trace lacks, among what a thread's record dropped.
const UNSEEN: &str = tailbound_core::record::WAKEUPS_NOT_SEEN;

/// Counted by wake-ups.
pub const WAKEUP: &str = "per wake-up";
/// Counted by due activations.
pub const DUE: &str = "per due activation";

/// Rows of all threads and totals; two where both ways of counting differ.
#[must_use]
pub fn rows(analysis: &Analysis<'_>) -> Vec<Row> {
    let run = analysis.run();
    let mut out = Vec::new();
    for (t, figures) in run.threads.iter().zip(analysis.threads()) {
        let p2 = t.p2.iter().map(|(k, v)| (k.clone(), *v)).collect();
        push(&mut out, &label::thread(run, t), figures, p2);
        mark(&mut out, t.dropped.get(UNSEEN).copied().unwrap_or(0));
    }
    for total in analysis.totals().iter().filter(|t| t.threads > 1) {
        push(&mut out, &label::total(run, total.context), &total.figures, Vec::new());
        let of = run.threads.iter().filter(|t| t.context == total.context);
        mark(&mut out, of.filter_map(|t| t.dropped.get(UNSEEN)).sum());
    }
    out
}

fn push(out: &mut Vec<Row>, name: &str, figures: &Figures, p2: Vec<(String, f64)>) {
    let Figures { wakeup, due } = figures;
    let missed = figures.missed();
    let name = name.to_owned();
    let row =
        |counted, summary, p2| Row { name: name.clone(), counted, summary, missed, unseen: 0, p2 };
    if missed == 0 {
        let both = Summary { precision: due.precision.clone(), ..wakeup.clone() };
        out.push(row("", both, p2));
    } else {
        out.push(row(WAKEUP, wakeup.clone(), p2));
        out.push(row(DUE, due.clone(), Vec::new()));
    }
}

/// Says of the newest row what it lacks.
fn mark(out: &mut [Row], unseen: u64) {
    if let Some(row) = out.last_mut() {
        row.unseen = unseen;
    }
}

/// `2,982`, or `2,982 of 2,998` where not all of them were seen.
fn number(r: &Row) -> String {
    match r.unseen {
        0 => grouped(r.summary.n),
        unseen => {
            format!("{} of {}", grouped(r.summary.n), grouped(r.summary.n.saturating_add(unseen)))
        }
    }
}

/// A quantile for people.
#[must_use]
pub fn quantile(q: Option<Quantile>) -> String {
    match q {
        Some(Quantile::Value { ns, .. }) => format_ns(ns),
        Some(Quantile::Needs { more }) => format!("needs {} more", grouped(more)),
        Some(Quantile::Below { ns, .. }) => format!("< {}", format_ns_i64(ns)),
        Some(Quantile::AtLeast { ns }) => format!("{} or more", format_ns_i64(ns)),
        Some(Quantile::Unknown) | None => "unknown".to_owned(),
    }
}

/// The mode for people.
pub(crate) fn mode(s: &Summary) -> String {
    match s.mode_below() {
        Some(ns) => format!("< {}", format_ns_i64(ns)),
        None => real(s.mode.map(|m| m.ns)),
    }
}

/// A time, or that it is not known.
pub(crate) fn whole(v: Option<i64>) -> String {
    v.map_or_else(|| "unknown".to_owned(), format_ns_i64)
}

/// A computed time, or that it is not known.
pub(crate) fn real(v: Option<f64>) -> String {
    v.map_or_else(|| "unknown".to_owned(), format_ns)
}

/// A quantile in few letters; what `n/a` lacks is said by [`compact_needs`].
fn short_quantile(q: Option<Quantile>) -> String {
    match q {
        Some(Quantile::Needs { .. }) => "n/a".to_owned(),
        q => quantile(q),
    }
}

/// What the quantiles that the compact table does not give need.
#[must_use]
pub fn compact_needs(analysis: &Analysis<'_>) -> Option<String> {
    let rows = rows(analysis);
    let most = |p: f64| {
        rows.iter()
            .filter_map(|r| match r.summary.quantile(p) {
                Some(Quantile::Needs { more }) => Some(more),
                _ => None,
            })
            .max()
    };
    let needs: Vec<String> = [0.5, 0.99, 0.999]
        .into_iter()
        .filter_map(|p| {
            let name = tailbound_stats::quantile::label(p);
            Some(format!("{name} needs up to {} more activations", grouped(most(p)?)))
        })
        .collect();
    (!needs.is_empty()).then(|| format!("n/a: {}", needs.join(", ")))
}

/// The compact table of a terminal.
#[must_use]
pub fn compact(analysis: &Analysis<'_>) -> Table {
    let mut t = Table::new(&["", "n", "min", "mean", "p50", "p99", "p99.9", "max", "missed"]);
    let all = rows(analysis);
    let few = all.len() <= WIDTHS_ROWS_MAX;
    for (i, r) in all.iter().enumerate() {
        // Short rather than "CPU 0, per due activation": eighty columns are few.
        let name = match r.counted {
            DUE => format!("{} + missed", r.name),
            WAKEUP => format!("{} measured", r.name),
            _ => r.name.clone(),
        };
        let s = &r.summary;
        t.row(vec![
            name,
            number(r),
            whole(s.min_ns),
            real(s.mean_ns),
            short_quantile(s.quantile(0.5)),
            short_quantile(s.quantile(0.99)),
            short_quantile(s.quantile(0.999)),
            whole(s.max_ns),
            grouped(r.missed),
        ]);
        let known = s.precision.as_ref().is_some_and(|p| p.why_not.is_none());
        if known && (few || i + 1 == all.len()) {
            let mean_ns = s.precision.as_ref().and_then(|p| p.mean_ns);
            let mut row = vec![format!("  {}", precision::NAME), String::new(), String::new()];
            row.push(precision::time(mean_ns));
            row.extend([0.5, 0.99, 0.999].map(|p| precision::quantile(s, p)));
            t.row(row);
        }
    }
    t
}

/// The half-widths of a row, in the full table.
fn widths(r: &Row, columns: usize) -> Option<Vec<String>> {
    let known = r.summary.precision.as_ref().filter(|p| p.why_not.is_none())?;
    let mut row = vec![r.name.clone(), precision::NAME.to_owned()];
    row.extend([String::new(), String::new(), String::new()]);
    row.extend([precision::time(known.mean_ns), precision::time(known.sd_ns)]);
    row.extend([precision::bare(known.skewness), precision::bare(known.kurtosis), String::new()]);
    row.extend(tailbound_stats::STANDARD.iter().map(|p| precision::quantile(&r.summary, *p)));
    row.resize(columns, String::new());
    Some(row)
}

/// Every figure; columns of P² only if there are any.
#[must_use]
pub fn full(analysis: &Analysis<'_>) -> Table {
    let rows = rows(analysis);
    let mut names: Vec<String> =
        rows.iter().flat_map(|r| r.p2.iter().map(|p| p.0.clone())).collect();
    order::by(&mut names, Ord::cmp);
    names.dedup();
    let mut head: Vec<String> =
        ["", "counted", "n", "missed", "min", "mean", "sd", "skewness", "kurtosis", "mode"]
            .map(str::to_owned)
            .to_vec();
    head.extend(tailbound_stats::STANDARD.iter().map(|p| tailbound_stats::quantile::label(*p)));
    head.push("max".to_owned());
    head.extend(names.iter().map(|n| format!("{n} by P² (approximate)")));
    let mut table = Table { head, ..Table::default() }.with_words(&[1]);
    for r in &rows {
        let s = &r.summary;
        let counted = if r.counted.is_empty() { "both ways" } else { r.counted };
        let mut row = vec![
            r.name.clone(),
            counted.to_owned(),
            number(r),
            grouped(r.missed),
            whole(s.min_ns),
            real(s.mean_ns),
            real(s.sd_ns),
            unitless::unitless(s.skewness),
            unitless::unitless(s.kurtosis),
            mode(s),
        ];
        row.extend(tailbound_stats::STANDARD.iter().map(|p| quantile(s.quantile(*p))));
        row.push(whole(s.max_ns));
        for n in &names {
            let v = r.p2.iter().find(|p| p.0 == *n).map(|p| p.1);
            row.push(v.map_or_else(|| "not estimated".to_owned(), format_ns));
        }
        table.row(row);
        let columns = table.head.len();
        widths(r, columns).into_iter().for_each(|w| table.row(w));
    }
    table
}
