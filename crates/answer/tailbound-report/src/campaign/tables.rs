// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of a campaign as tables of texts.
//!
//! Units: those of the publication beside its figures, people's units elsewhere.

use tailbound_core::campaign::{Cost, Part, Unit};
use tailbound_core::units::{format_ns, grouped};
use tailbound_stats::Summary;
use tailbound_stats::campaign::{CampaignEvidence, Row, Value, number, part_of, repetitions};
use tailbound_stats::decide::Sample;

use crate::table::Table;
use crate::{figures, unitless};

/// Ours in the unit of the publication.
fn in_unit(v: f64, unit: Unit) -> String {
    format!("{}{unit}", number(v / unit.factor()))
}

/// What is known of ours, in the unit of the publication.
fn width(value: &Value, unit: Unit) -> String {
    match (value.half_width(), value.low, value.high) {
        (Some(h), ..) if h > 0.0 => format!("±{}", in_unit(h, unit)),
        (None, Some(low), Some(high)) => {
            let scale = unit.factor();
            format!("{} to {}{unit}", number(low / scale), number(high / scale))
        }
        _ => "–".to_owned(),
    }
}

/// Published figures beside ours.
pub(super) fn beside(rows: &[Row]) -> Table {
    let head = [
        "figure",
        "published for",
        "published",
        "measured on",
        "measured",
        "95 %",
        "ratio",
        "in words",
    ];
    let mut table = Table::new(&head).with_words(&[1, 3, 7]);
    for row in rows {
        let value = row.value.as_ref();
        let dash = || "–".to_owned();
        let some = |text: &str| if text.is_empty() { dash() } else { text.to_owned() };
        let ours = value.and_then(|v| v.value);
        table.row(vec![
            row.figure.clone(),
            some(&row.system),
            some(&row.told),
            some(&row.measured_on),
            ours.map_or_else(dash, |v| in_unit(v, row.unit)),
            value.map_or_else(dash, |v| width(v, row.unit)),
            row.ratio.map_or_else(dash, number),
            row.words.clone(),
        ]);
    }
    table
}

/// The same for one of the publication's systems and one of ours, narrow enough for a terminal.
pub(super) fn pair(rows: &[&Row]) -> Table {
    let head = ["", "published", "here", "95 %", "ratio", "in words"];
    let mut table = Table::new(&head).with_words(&[5]);
    for row in rows {
        let value = row.value.as_ref();
        let dash = || "–".to_owned();
        let ours = value.and_then(|v| v.value);
        table.row(vec![
            row.figure.clone(),
            if row.told.is_empty() { dash() } else { row.told.clone() },
            ours.map_or_else(dash, |v| in_unit(v, row.unit)),
            value.map_or_else(dash, |v| width(v, row.unit)),
            row.ratio.map_or_else(dash, number),
            row.words.clone(),
        ]);
    }
    table
}

/// Every run and what became of it; of one system where `only` names it.
pub(super) fn runs(given: &CampaignEvidence, only: Option<&str>) -> Table {
    let head = ["run", "system", "state", "activations", "of the published", "verdict"];
    let mut table = Table::new(&head).with_words(&[1, 2, 5]);
    let systems = || given.systems.iter().filter(|s| only.is_none_or(|o| o == s.name));
    for part in &given.parts {
        for system in systems() {
            let Some(place) = system.place(&part.id) else { continue };
            let latency = place.run().filter(|_| !part.only_work);
            let n = latency.filter(|r| !r.threads.is_empty()).map(|r| r.judged_total().1.n);
            let share = latency.map(|r| tailbound_stats::campaign::share(part, r));
            let dash = || "–".to_owned();
            table.row(vec![
                if only.is_some() { part.id.clone() } else { part.title.clone() },
                system.name.clone(),
                place.words(),
                n.map_or_else(dash, grouped),
                share.map_or_else(dash, |s| if s < 1.0 { part_of(s) } else { "all".to_owned() }),
                latency.map_or_else(dash, |r| crate::label::outcome(r).word().to_owned()),
            ]);
        }
    }
    if only.is_some() {
        // The heading names it.
        table.head.remove(1);
        table.rows.iter_mut().filter(|r| r.len() > 1).for_each(|r| drop(r.remove(1)));
        table.words = vec![1, 4];
    }
    table
}

/// The statistics of one part on every system; `None` where none has it.
pub(super) fn statistics(given: &CampaignEvidence, part: &Part) -> Option<Table> {
    let head = [
        "", "n", "missed", "min", "mean", "mode", "median", "sd", "skewness", "kurtosis", "p99",
        "p99.999", "max",
    ];
    let mut table = Table::new(&head);
    for system in &given.systems {
        let Some(run) =
            system.place(&part.id).and_then(tailbound_stats::campaign::CampaignRun::run)
        else {
            continue;
        };
        let Some(context) = run.judged_context().filter(|_| !part.only_work) else { continue };
        let (woken, due) = run.total(context);
        let s = Summary::of(&due);
        table.row(vec![
            system.name.clone(),
            grouped(s.n),
            grouped(due.n.saturating_sub(woken.n)),
            figures::whole(s.min_ns),
            figures::real(s.mean_ns),
            figures::mode(&s),
            figures::quantile(Some(s.median)),
            figures::real(s.sd_ns),
            unitless::unitless(s.skewness),
            unitless::unitless(s.kurtosis),
            figures::quantile(s.quantile(0.99)),
            figures::quantile(s.quantile(0.99999)),
            figures::whole(s.max_ns),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// What the benchmarks of one part cost on every system; `None` where none has any.
pub(super) fn benchmarks(given: &CampaignEvidence, part: &Part) -> Option<Table> {
    let head = ["", "benchmark", "repetitions", "real", "user", "sys", "rate"];
    let mut table = Table::new(&head).with_words(&[1]);
    for system in &given.systems {
        let Some(run) =
            system.place(&part.id).and_then(tailbound_stats::campaign::CampaignRun::run)
        else {
            continue;
        };
        let Some(first) = run.benchmarks.first() else { continue };
        let cell = |cost: Cost, show: &dyn Fn(f64) -> String| {
            Sample::of(&repetitions(run, cost)).map_or_else(
                || "unknown".to_owned(),
                |s| format!("{} σ {}", show(s.mean), show(s.sd)),
            )
        };
        let time = |ns: f64| format_ns(ns);
        let rate = |v: f64| format!("{} {}/s", number(v), first.unit);
        table.row(vec![
            system.name.clone(),
            first.spec.clone(),
            repetitions(run, Cost::Real).len().to_string(),
            cell(Cost::Real, &time),
            cell(Cost::User, &time),
            cell(Cost::Sys, &time),
            cell(Cost::Rate, &rate),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}
