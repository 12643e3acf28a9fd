// SPDX-License-Identifier: MIT OR Apache-2.0
//! Survival curves: the share of activations later than a value, both axes logarithmic,
//! with the deadline as a vertical line and the exact greatest value as end point.
//!
//! Units: ns across, share of one upwards.
//! Where activations were missed, all together are drawn twice: per due activation, and
//! dashed per wake-up, which is what a stopwatch at the thread would have believed.

use tailbound_core::Distribution;
use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::units::format_ns_i64;
use tailbound_stats::quantile;

use super::{Figure, Multiple, Series, points_json};
use crate::svg::plot::{DotSize, Look};
use crate::svg::scale::{round_down_125, round_up_125};
use crate::svg::{Layout, Plot, Scale, Unit};
use crate::table::Table;

/// Steps a curve is thinned to: finer than half a pixel nobody sees.
const POINTS_MAX: usize = 500;
/// Steps of all curves together, for machines of many CPUs.
const POINTS_OF_ALL: usize = 6000;

struct Curve {
    name: String,
    look: Look,
    /// (value, share later than it), positive values and shares only.
    points: Vec<(f64, f64)>,
    max_ns: Option<i64>,
}

/// What a reader must know to read them.
pub const EXPLANATION: &str = "The share of activations that were later than a value; every line ends in a dot \
    at its latest activation, exactly. Where a line meets the deadline, its height is the share that came too late.";

/// The survival curves; `None` if no series has one.
#[must_use]
pub fn survival(series: &[Series], deadline_ns: Option<i64>) -> Option<Figure> {
    survival_in(series, deadline_ns, None)
}

/// The same as one of several pictures with axes in common.
#[must_use]
pub fn survival_multiple(
    series: &[Series],
    deadline_ns: Option<i64>,
    multiple: &Multiple,
) -> Option<Figure> {
    survival_in(series, deadline_ns, Some(multiple))
}

fn survival_in(
    series: &[Series],
    deadline_ns: Option<i64>,
    multiple: Option<&Multiple>,
) -> Option<Figure> {
    let mut curves = Vec::new();
    let mut without = Vec::new();
    // One line seen in two ways tells more than every line in two ways.
    let both = |s: &Series| s.look == Look::Total || (series.len() == 1 && multiple.is_none());
    let twice = |s: &Series| both(s) && s.due.n != s.wakeup.n;
    for s in series {
        let name =
            if twice(s) { format!("{}, per due activation", s.name) } else { s.name.clone() };
        match curve(name, s.look, &s.due) {
            Some(c) => curves.push(c),
            None => without.push(s.name.as_str()),
        }
        if twice(s) {
            let name = format!("{}, per wake-up", s.name);
            curves.extend(curve(name, Look::TotalDashed, &s.wakeup));
        }
    }
    let low = curves.iter().filter_map(|c| c.points.first()).map(|p| p.0).reduce(f64::min)?;
    let high = curves.iter().filter_map(|c| c.points.last()).map(|p| p.0).reduce(f64::max)?;
    let least = curves.iter().filter_map(|c| c.points.last()).map(|p| p.1).reduce(f64::min)?;
    let (low, high, least) = multiple.map_or((low, high, least), |m| {
        (low.min(m.low_ns), high.max(m.high_ns), least.min(m.least_share))
    });
    let near = deadline_ns.map(|d| d.real()).filter(|d| *d < high * 1e3 && *d > low * 1e-3);
    let x = Scale::log(
        round_down_125(near.map_or(low, |d| d.min(low))),
        round_up_125(near.map_or(high, |d| d.max(high)) * 1.02),
        Unit::Ns,
    );
    let y = Scale::log(round_down_125(least * 0.8), 1.0, Unit::Share);
    let at_most = (POINTS_OF_ALL / curves.len().max(1)).clamp(100, POINTS_MAX);
    let words = "Share of activations later than a value, by line";
    let draw = |layout: Layout| {
        let mut plot = Plot::new(layout, x, y, "latency", "share of activations later than this");
        for c in &curves {
            plot.name(&c.name, c.look);
            plot.steps(&as_steps(c, at_most, x.lo()), c.look);
        }
        for c in &curves {
            plot.dots(c.points.last().map_or(&[], std::slice::from_ref), c.look, DotSize::Large);
        }
        if let Some(d) = deadline_ns {
            plot.rule_x(d.real(), &format!("deadline {}", crate::digest::exactly(d)));
        }
        plot.finish(words)
    };
    let mut caption = if multiple.is_some() { "" } else { EXPLANATION }.to_owned();
    if !without.is_empty() {
        caption.push_str(&format!(
            " No curve for {}: its source does not contain all values.",
            without.join(", ")
        ));
    }
    Some(Figure {
        id: "survival",
        title: "Exceedance (complementary CDF)".to_owned(),
        caption: caption.trim_start().to_owned(),
        wide: draw(multiple.map_or(Layout::WIDE, |m| m.layout)),
        narrow: draw(Layout::NARROW),
        table: table(&curves, deadline_ns),
        series: curves
            .iter()
            .map(|c| points_json(&c.name, "survival", &thinned(&c.points, at_most)))
            .collect(),
    })
}

/// The curve for drawing: value and the share at or beyond the step that ends there.
fn curve(name: String, look: Look, d: &Distribution) -> Option<Curve> {
    let steps = quantile::survival(d);
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut before = 1.0;
    for (value, later) in steps {
        if value > 0.0 {
            points.push((value, before));
        }
        before = later;
    }
    if points.is_empty() {
        return None;
    }
    Some(Curve { name, look, points, max_ns: d.max_ns })
}

/// At most about `at_most` points, the last twenty as they are. Points closer than a
/// step become one, with the greatest share of them: nothing is flattered.
fn thinned(points: &[(f64, f64)], at_most: usize) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Vec::new();
    };
    if points.len() <= at_most {
        return points.to_vec();
    }
    let step = (last.0 / first.0).ln().max(1e-9) / (at_most - 20).real();
    let (body, tail) = points.split_at(points.len() - 20);
    let mut out: Vec<(f64, f64)> = Vec::new();
    let mut group_from = f64::NEG_INFINITY;
    for p in body {
        match out.last_mut() {
            Some(group) if p.0.ln() < group_from + step => group.0 = p.0,
            _ => {
                out.push(*p);
                group_from = p.0.ln();
            }
        }
    }
    out.extend_from_slice(tail);
    out
}

/// Each point holds from the one before it up to its own value.
fn as_steps(c: &Curve, at_most: usize, from: f64) -> Vec<(f64, f64, f64)> {
    let mut left = from;
    thinned(&c.points, at_most)
        .into_iter()
        .map(|(value, share)| {
            let step = (left, value, share);
            left = value;
            step
        })
        .collect()
}

/// The value that one activation in ten, in a hundred, … came later than.
fn table(curves: &[Curve], deadline_ns: Option<i64>) -> Table {
    let mut head = vec!["later than"];
    head.extend(curves.iter().map(|c| c.name.as_str()));
    let mut table = Table::new(&head);
    let low = curves.iter().filter_map(|c| c.points.first()).map(|p| p.0).fold(f64::MAX, f64::min);
    let high = curves.iter().filter_map(|c| c.points.last()).map(|p| p.0).fold(0.0, f64::max);
    let mut at: Vec<i64> = Vec::new();
    let mut v = round_up_125(low);
    while v <= high && at.len() < 60 {
        at.push(v.whole_i64());
        v = round_up_125(v * 1.3);
    }
    at.extend(deadline_ns);
    at.sort_unstable();
    at.dedup();
    for v in at {
        let mark = if deadline_ns == Some(v) { " (deadline)" } else { "" };
        let mut row = vec![format!("{}{mark}", format_ns_i64(v))];
        for c in curves {
            let share = c.points.iter().find(|p| p.0 > v.real()).map_or(0.0, |p| p.1);
            row.push(if share > 0.0 { Unit::Share.label(share) } else { "none".to_owned() });
        }
        table.row(row);
    }
    let mut exact = vec!["latest".to_owned()];
    exact.extend(
        curves.iter().map(|c| {
            c.max_ns.map_or_else(|| "unknown: not in the source".to_owned(), format_ns_i64)
        }),
    );
    table.row(exact);
    table
}
