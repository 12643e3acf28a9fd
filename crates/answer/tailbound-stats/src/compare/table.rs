// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two or more runs side by side: the standard figures of each context and their ratio to the
//! first run's.
//!
//! Units: ns; skewness, kurtosis and ratios without.
//! This is a table, not a test: the statistics of a difference need units that can be resampled
//! ([`mod@super::difference`]), and drift alone was measured to move tail quantiles of one
//! configuration by a factor of four between the halves of a run.
//! Not here: rendering (`tailbound-report`); intervals, permutation test and margins.

use std::collections::BTreeSet;

use serde::Serialize;
use tailbound_core::number::Real as _;
use tailbound_core::run::contexts;
use tailbound_core::units::grouped;
use tailbound_core::{Context, Run};

use crate::quantile::{Quantile, label};
use crate::summary::Summary;

/// Several runs side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The runs, the first one being what the others are compared with.
    pub runs: Vec<ComparedRun>,
    /// The figures: by context, then by statistic.
    pub rows: Vec<Row>,
    /// What the reader must know, a sentence each.
    pub notes: Vec<String>,
}

/// One run of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedRun {
    /// Name given by the caller: a file name, as a rule.
    pub label: String,
    /// Identity in the run file.
    pub id: String,
    /// Measured length of the schedule.
    pub measured_ns: i64,
    /// Each context of the run.
    pub contexts: Vec<ComparedContext>,
}

/// One context of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedContext {
    /// `user`, `thread`, `irq`, …
    pub context: Context,
    /// Due activations: wake-ups and missed ones.
    pub due: u64,
    /// Missed ones among them.
    pub missed: u64,
    /// The figures per due activation.
    pub summary: Summary,
}

/// One statistic of one context in all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The context.
    pub context: Context,
    /// `min`, `mean`, `sd`, `skewness`, `kurtosis`, `mode`, `p50`, …, `max`.
    pub statistic: String,
    /// `ns`, or `none` for skewness and kurtosis, whose `value` is then without unit.
    pub unit: &'static str,
    /// One cell a run, in the order of the runs.
    pub cells: Vec<Cell>,
}

/// One figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// The figure; [`Quantile::Unknown`] also where the run has no such context.
    pub value: Quantile,
    /// To that of the first run; absent where one is missing or the first is not positive.
    pub ratio: Option<f64>,
}

/// Puts runs side by side; each comes with a name for people.
#[must_use]
pub fn compare(runs: &[(&str, &Run)]) -> Comparison {
    let compared: Vec<ComparedRun> = runs.iter().map(|(label, run)| one_run(label, run)).collect();
    let contexts = contexts(runs.iter().flat_map(|(_, run)| &run.threads));
    let rows = contexts.iter().flat_map(|c| rows_of(*c, &compared)).collect();
    let notes = notes(runs, &compared, &contexts);
    Comparison { runs: compared, rows, notes }
}

fn one_run(label: &str, run: &Run) -> ComparedRun {
    let contexts = run
        .contexts()
        .into_iter()
        .map(|context| {
            let (wakeup, due) = run.total(context);
            ComparedContext {
                context,
                due: due.n,
                missed: due.n.saturating_sub(wakeup.n),
                summary: Summary::of(&due),
            }
        })
        .collect();
    ComparedRun {
        label: label.to_owned(),
        id: run.header.id.clone(),
        measured_ns: run.measured_ns(),
        contexts,
    }
}

fn rows_of(context: Context, runs: &[ComparedRun]) -> Vec<Row> {
    let summaries: Vec<Option<&Summary>> = runs
        .iter()
        .map(|r| r.contexts.iter().find(|c| c.context == context).map(|c| &c.summary))
        .collect();
    let columns: Vec<Vec<(String, Quantile)>> =
        summaries.iter().map(|s| s.map(figures).unwrap_or_default()).collect();
    let names: Vec<&String> = columns
        .iter()
        .find(|c| !c.is_empty())
        .map(|c| c.iter().map(|(name, _)| name).collect())
        .unwrap_or_default();
    names
        .into_iter()
        .map(|name| {
            let values: Vec<Quantile> = columns
                .iter()
                .map(|c| c.iter().find(|(n, _)| n == name).map_or(Quantile::Unknown, |(_, v)| *v))
                .collect();
            // Skewness twice as great is nothing that anybody could mean.
            let bare = BARE.contains(&name.as_str());
            let first = values.first().and_then(Quantile::ns).filter(|v| *v > 0.0 && !bare);
            let cell = |value: Quantile| Cell {
                value,
                ratio: value.ns().zip(first).map(|(value, first)| value / first),
            };
            Row {
                context,
                statistic: name.clone(),
                unit: if bare { "none" } else { "ns" },
                cells: values.into_iter().map(cell).collect(),
            }
        })
        .collect()
}

/// Figures that are no times.
const BARE: [&str; 2] = ["skewness", "kurtosis"];

/// The figures of a summary, by name.
fn figures(s: &Summary) -> Vec<(String, Quantile)> {
    let exact = |ns: Option<f64>| {
        ns.map_or(Quantile::Unknown, |ns| Quantile::Value { ns, low_ns: ns, high_ns: ns })
    };
    let whole = |ns: Option<i64>| exact(ns.map(|v| v.real()));
    let mode = s.mode.map_or(Quantile::Unknown, |m| {
        let half = m.width_ns.real() / 2.0;
        match s.mode_below() {
            Some(ns) => Quantile::Below { ns, low_ns: 0.0 },
            None => Quantile::Value { ns: m.ns, low_ns: m.ns - half, high_ns: m.ns + half },
        }
    });
    let before = [
        ("min".to_owned(), whole(s.min_ns)),
        ("mean".to_owned(), exact(s.mean_ns)),
        ("sd".to_owned(), exact(s.sd_ns)),
        ("skewness".to_owned(), exact(s.skewness)),
        ("kurtosis".to_owned(), exact(s.kurtosis)),
        ("mode".to_owned(), mode),
    ];
    before
        .into_iter()
        .chain(s.quantiles.iter().map(|(p, q)| (label(*p), *q)))
        .chain([("max".to_owned(), whole(s.max_ns))])
        .collect()
}

fn notes(runs: &[(&str, &Run)], compared: &[ComparedRun], contexts: &[Context]) -> Vec<String> {
    let mut out = Vec::new();
    let mut differs = |what: &str, of: &dyn Fn(&Run) -> String| {
        let values: Vec<String> = runs.iter().map(|(_, run)| of(run)).collect();
        if values.iter().collect::<BTreeSet<_>>().len() > 1 {
            out.push(format!("The runs differ in {what}: {}.", values.join("; ")));
        }
    };
    let or_none = |s: String| if s.is_empty() { "none".to_owned() } else { s };
    differs("the probe", &|r| r.header.plan.probe_words());
    differs("the interval", &|r| r.header.plan.interval_words());
    differs("measured length", &Run::length_words);
    differs("CPUs", &|r| or_none(r.header.plan.cpus.to_string()));
    differs("policy", &|r| r.header.plan.policy.to_string());
    differs("clock", &|r| r.header.plan.clock.to_string());
    differs("the way of sleeping", &|r| r.header.plan.means_words());
    differs("load", &|r| {
        let loads: Vec<String> = r.header.plan.loads.iter().map(ToString::to_string).collect();
        or_none(loads.join(" + "))
    });
    for run in compared {
        let of = |context: &Context| run.contexts.iter().find(|c| c.context == *context);
        let missing = contexts.iter().filter(|c| of(c).is_none());
        let missing: Vec<String> = missing.map(|c| format!("`{c}`")).collect();
        match missing.as_slice() {
            [] => {}
            [one] => out.push(format!("`{}` has no context {one}.", run.label)),
            more => {
                out.push(format!("`{}` has none of the contexts {}.", run.label, more.join(", ")));
            }
        }
        for context in contexts {
            match of(context) {
                Some(c) if c.due == 0 => {
                    out.push(format!("`{}` recorded nothing in context `{context}`.", run.label));
                }
                Some(c) if c.missed > 0 => {
                    // Where a thread wakes up is what a reader supposes.
                    let of = match context {
                        Context::User => String::new(),
                        other => format!(" of context `{other}`"),
                    };
                    out.push(format!(
                        "`{}` missed {} of {} activations{of}; they count with the latency they \
                         would have had.",
                        run.label,
                        grouped(c.missed),
                        grouped(c.due)
                    ));
                }
                Some(_) | None => {}
            }
        }
    }
    out
}
