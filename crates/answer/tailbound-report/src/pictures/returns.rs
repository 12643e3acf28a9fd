// SPDX-License-Identifier: MIT OR Apache-2.0
//! Levels over the time between exceedances: the greatest blocks as they were seen, the fitted
//! tail and its upper limit, with the observed maximum, the bound and the deadline marked. The
//! observed maximum is always within the axes: dots below a deadline that was missed would say
//! otherwise.
//!
//! Units: seconds across, ns upwards, both logarithmic.
//! Not here: the fit (`tailbound-stats`).

use serde_json::Value;
use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::units::{format_ns, format_span, grouped};
use tailbound_stats::bound::{ReturnLevel, Statement};

use super::{Figure, points_json};
use crate::svg::plot::{DotSize, Look};
use crate::svg::scale::{round_down_125, round_up_125};
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
    let latest = statement.observed_max_ns.map(|max| max.real());
    let high = latest.map_or(high, |max| max.max(high));
    // A deadline far away would flatten everything else.
    let near = deadline.map(|d| d.real()).filter(|d| *d < high * 30.0 && *d > low / 30.0);
    let x = Scale::log(t_low * 0.9, t_high * 1.6, Unit::Seconds);
    let y = Scale::log(
        round_down_125(near.map_or(low, |d| d.min(low)) * 0.95),
        round_up_125(near.map_or(high, |d| d.max(high)) * 1.05),
        Unit::Ns,
    );
    let draw = |layout: Layout| {
        let mut plot = Plot::new(layout, x, y, "mean time between exceedances", "latency");
        plot.name_dots(SEEN, Look::Nth(0));
        if !best.is_empty() {
            plot.name(BEST, Look::Total);
            plot.name(UPPER, Look::TotalDashed);
            let line = |points: &[(f64, f64)]| points.iter().copied().map(Some).collect::<Vec<_>>();
            plot.line(&line(&best), Look::Total);
            plot.line(&line(&upper), Look::TotalDashed);
            plot.dots(upper.last().map_or(&[], std::slice::from_ref), Look::Total, DotSize::Large);
        }
        plot.dots(&seen, Look::Nth(0), DotSize::Large);
        if let Some(max) = latest {
            plot.rule_y(max, &format!("latest seen {}", format_ns(max)));
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
        caption: caption(statement, &seen),
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

fn caption(statement: &Statement, seen: &[(f64, f64)]) -> String {
    let dots = "Each dot is the latest wake-up of one second (or block) of the run, over the time in \
                which the run had one as late.";
    let mut parts = vec![dots.to_owned()];
    parts.extend(beyond_deadline(statement));
    let top = seen.iter().map(|p| p.1).fold(0.0, f64::max);
    if let Some(max) = statement.observed_max_ns.map(|m| m.real()).filter(|m| *m > top) {
        parts.push(format!(
            "The latest of the run, {}, is no dot: it came in a part of the run that is left out here.",
            format_ns(max)
        ));
    }
    parts.push(match statement.bound() {
        Some(_) => {
            "Solid line: the fitted tail. Dashed line: its upper limit, which ends at the bound."
                .to_owned()
        }
        None => format!("No curve: {}", tailbound_stats::bound::in_short(statement.reasons())),
    });
    parts.join(" ")
}

/// In how many seconds of the whole run something was later than the deadline: those of dots, and all others.
fn beyond_deadline(statement: &Statement) -> Option<String> {
    let deadline = statement.settings.deadline_ns?;
    let line = statement.free.iter().find(|l| l.threshold_ns == deadline)?;
    Some(format!(
        "In {} of {} seconds of the run a wake-up was later than the deadline of {}.",
        grouped(line.count),
        grouped(line.seconds),
        format_ns(deadline.real())
    ))
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
