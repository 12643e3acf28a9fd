// SPDX-License-Identifier: MIT OR Apache-2.0
//! Levels over the time between exceedances: the greatest blocks as they were seen, the fitted
//! tail and its upper limit, with the observed maximum, the bound and the deadline marked.
//!
//! Context: COLD. Units: seconds across, ns upwards, both logarithmic.
//! Not here: the fit (`tailbound-stats`).

use serde_json::Value;
use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::units::{format_ns, format_span};
use tailbound_stats::bound::{ReturnLevel, Statement};

use super::{Figure, points_json};
use crate::svg::plot::Look;
use crate::svg::scale::round_125;
use crate::svg::{Layout, Plot, Scale, Unit};
use crate::table::Table;

const SEEN: &str = "as seen";
const BEST: &str = "fitted tail";
const UPPER: &str = "its limit at 95 %";

/// The picture; `None` if there are no blocks to show.
#[must_use]
pub fn returns(statement: &Statement) -> Option<Figure> {
    let seen: Vec<(f64, f64)> =
        statement.observed.iter().map(|(t, v)| (*t, v.real())).filter(|p| p.1 > 0.0).collect();
    if seen.len() < 2 {
        return None;
    }
    let curve: &[ReturnLevel] = statement.bound().map_or(&[], |b| &b.curve);
    let best: Vec<(f64, f64)> = curve.iter().map(|p| (p.period_s, p.level_ns)).collect();
    let upper: Vec<(f64, f64)> = curve.iter().map(|p| (p.period_s, p.upper_ns)).collect();
    let deadline = statement.settings.deadline_ns;
    let all = || seen.iter().chain(&best).chain(&upper);
    let span = |f: fn(&(f64, f64)) -> f64| {
        let low = all().map(f).fold(f64::INFINITY, f64::min);
        (low, all().map(f).fold(0.0, f64::max))
    };
    let ((t_low, t_high), (low, high)) = (span(|p| p.0), span(|p| p.1));
    // A deadline far away would flatten everything else.
    let near = deadline.map(|d| d.real()).filter(|d| *d < high * 30.0 && *d > low / 30.0);
    let x = Scale::log(t_low * 0.9, t_high * 1.6, Unit::Seconds);
    let y = Scale::log(
        round_125(near.map_or(low, |d| d.min(low)) * 0.95, false),
        round_125(near.map_or(high, |d| d.max(high)) * 1.05, true),
        Unit::Ns,
    );
    let draw = |layout: Layout| {
        let mut plot = Plot::new(layout, x, y, "mean time between exceedances", "latency");
        plot.name(SEEN, Look::Nth(0));
        if !best.is_empty() {
            plot.name(BEST, Look::Total);
            plot.name(UPPER, Look::TotalDashed);
            let line = |points: &[(f64, f64)]| points.iter().copied().map(Some).collect::<Vec<_>>();
            plot.line(&line(&best), Look::Total);
            plot.line(&line(&upper), Look::TotalDashed);
            plot.dots(upper.last().map_or(&[], std::slice::from_ref), Look::Total, false);
        }
        plot.dots(&seen, Look::Nth(0), false);
        if let Some(max) = statement.observed_max_ns {
            plot.rule_y(max.real(), &format!("latest seen {}", format_ns(max.real())));
        }
        if let Some(b) = statement.bound() {
            plot.rule_y(b.bound_ns, &format!("bound {}", format_ns(b.bound_ns)));
        }
        if let Some(d) = near {
            plot.rule_y(d, &format!("deadline {}", format_ns(d)));
        }
        plot.finish("Latency over the mean time between exceedances")
    };
    Some(Figure {
        id: "returns",
        title: "Return levels".to_owned(),
        caption: caption(statement),
        wide: draw(Layout::WIDE),
        narrow: draw(Layout::NARROW),
        table: table(&seen, curve),
        series: Value::Array(
            [(SEEN, &seen), (BEST, &best), (UPPER, &upper)]
                .into_iter()
                .filter(|(_, points)| !points.is_empty())
                .map(|(name, points)| points_json(name, "line", points))
                .collect(),
        ),
    })
}

fn caption(statement: &Statement) -> String {
    let dots = "Each dot is a second (or block) of the run: how late its latest wake-up was, over \
                the time in which the run saw one as late.";
    match statement.bound() {
        Some(_) => format!(
            "{dots} The line is the fitted tail, the dashed one its upper limit; the bound is where \
             that ends."
        ),
        None => {
            format!("{dots} No curve: {}", tailbound_stats::bound::in_short(statement.reasons()))
        }
    }
}

fn time(seconds: f64) -> String {
    let whole = (seconds.round() * 1e9).whole_i64();
    format_span(whole)
}

fn table(seen: &[(f64, f64)], curve: &[ReturnLevel]) -> Table {
    let mut table = Table::new(&["about once per", "as seen", "fitted", "limit at 95 %"]);
    for (t, v) in seen.iter().take(10).rev() {
        table.row(vec![time(*t), format_ns(*v), String::new(), String::new()]);
    }
    for p in curve {
        table.row(vec![
            time(p.period_s),
            String::new(),
            format_ns(p.level_ns),
            format_ns(p.upper_ns),
        ]);
    }
    table
}
