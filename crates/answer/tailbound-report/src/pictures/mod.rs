// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pictures of a run, and of several runs over one another.
//!
//! Each is drawn twice, for wide and for narrow screens, and brings its
//! numbers as a table and as values for the script. Not here: axes and style (`svg`).

pub mod compared;
mod histogram;
mod lanes;
mod returns;
mod survival;
mod timeline;
mod window_table;

use serde_json::{Value, json};
use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::{Distribution, Run};
use tailbound_stats::Analysis;

use crate::bins::{Bins, PER_DECADE};
use crate::label;
use crate::svg::Layout;
use crate::svg::plot::{self, Look};
use crate::table::Table;

pub use histogram::{EXPLANATION as HISTOGRAM_EXPLANATION, early, late, late_multiple};
pub(crate) use lanes::end_ns as lanes_end_ns;
pub use lanes::lanes;
pub use returns::returns;
pub use survival::{EXPLANATION as SURVIVAL_EXPLANATION, survival, survival_multiple};
pub use timeline::{loads, maxima, windows};
pub use window_table::{maxima_unknown, window_table};

/// A picture with everything that belongs to it.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Stable name: `histogram`, `survival`, `maxima`, …
    pub id: &'static str,
    /// Heading.
    pub title: String,
    /// What is seen and what to mind, in a sentence or two.
    pub caption: String,
    /// SVG for wide screens and paper, to be styled by the page.
    pub wide: String,
    /// SVG for phones.
    pub narrow: String,
    /// The numbers.
    pub table: Table,
    /// The numbers for the script: `[{name, steps, points: [[x, y], …]}, …]`.
    pub series: Value,
}

impl Figure {
    /// The picture as an SVG document that needs nothing else: for a README, a viewer, a mail.
    #[must_use]
    pub fn standalone(&self) -> String {
        plot::standalone(&self.wide)
    }
}

/// One of several pictures that are to be compared by eye: its size, and what the axes of
/// all of them must reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Multiple {
    /// Size for wide screens.
    pub layout: Layout,
    low_ns: f64,
    high_ns: f64,
    peak: f64,
    least_share: f64,
}

impl Multiple {
    /// Axes that hold every one of `series`; `None` if there is nothing to draw.
    #[must_use]
    pub fn of(series: &[Series], layout: Layout) -> Option<Self> {
        let bins: Vec<Bins> = series.iter().map(|s| Bins::late(&s.due, PER_DECADE)).collect();
        let spans = || bins.iter().filter_map(Bins::span);
        let greatest = series.iter().map(|s| s.due.n).max().unwrap_or(1).max(1);
        Some(Self {
            layout,
            low_ns: spans().map(|s| s.0).min()?.real(),
            high_ns: spans().map(|s| s.1).max()?.real(),
            peak: bins.iter().map(Bins::peak).max().unwrap_or(1).real(),
            least_share: 1.0 / greatest.real(),
        })
    }
}

/// One distribution of a picture of distributions.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// How it looks.
    pub look: Look,
    /// Per due activation: wake-ups and missed ones.
    pub due: Distribution,
    /// Per wake-up.
    pub wakeup: Distribution,
}

/// Every thread of a run.
#[must_use]
pub fn threads(run: &Run) -> Vec<Series> {
    let series = |(i, t): (usize, &tailbound_core::record::ThreadRecord)| Series {
        name: label::thread(run, t),
        look: Look::Nth(i),
        due: t.due(),
        wakeup: t.wakeup.clone(),
    };
    run.threads.iter().enumerate().map(series).collect()
}

/// All threads of each context of several runs; what is compared.
#[must_use]
pub fn totals(runs: &[Run], names: &[String]) -> Vec<Series> {
    let mut out = Vec::new();
    for (r, run) in runs.iter().enumerate() {
        let name = names.get(r).cloned().unwrap_or_else(|| format!("run {}", r + 1));
        let contexts = run.contexts();
        for &context in &contexts {
            let (wakeup, due) = run.total(context);
            let name = if contexts.len() > 1 { format!("{name}, {context}") } else { name.clone() };
            out.push(Series { name, look: Look::Nth(out.len()), due, wakeup });
        }
    }
    out
}

/// The deadline that all runs share; none if they differ, for then no line is right for all.
#[must_use]
pub fn common_deadline(runs: &[Run]) -> Option<i64> {
    let deadline = |r: &Run| r.header.plan.requirement.deadline_ns;
    let first = runs.first().and_then(deadline)?;
    runs.iter().all(|r| deadline(r) == Some(first)).then_some(first)
}

/// All pictures of a run, those without data left out.
#[must_use]
pub fn of_run(analysis: &Analysis<'_>) -> Vec<Figure> {
    let run = analysis.run();
    let deadline = run.header.plan.requirement.deadline_ns;
    let series = threads(run);
    let mut with_totals = series.clone();
    for context in run.contexts() {
        let (wakeup, due) = run.total(context);
        if run.threads.iter().filter(|t| t.context == context).count() > 1 {
            let name = label::total(run, context);
            with_totals.push(Series { name, look: Look::Total, due, wakeup });
        }
    }
    [
        late(&series, deadline),
        survival(&with_totals, deadline),
        early(&series, run.header.plan.requirement.early_ns),
        maxima(analysis),
        loads(run),
        windows(run),
    ]
    .into_iter()
    .flatten()
    .collect()
}

pub(crate) fn points_json(name: &str, kind: &str, points: &[(f64, f64)]) -> Value {
    // Shares and rates to five digits: the script shows three.
    let short = |v: f64| -> Value {
        let rounded: f64 = format!("{v:.5e}").parse().unwrap_or(v);
        if rounded.fract() == 0.0 && rounded.abs() < 9e15 {
            let whole = rounded.whole_i64();
            json!(whole)
        } else {
            json!(rounded)
        }
    };
    let points: Vec<Value> = points.iter().map(|(x, y)| json!([short(*x), short(*y)])).collect();
    json!({"name": name, "kind": kind, "points": points})
}
