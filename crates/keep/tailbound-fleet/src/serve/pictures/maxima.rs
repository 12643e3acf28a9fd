// SPDX-License-Identifier: MIT OR Apache-2.0
//! The latest of each five minutes over months, and where a series became worse.
//!
//! Units: ns; s since 1970 across. A point is the *greatest* of its time: five minutes, or more where the picture
//! has no room for them all.

use serde_json::json;
use tailbound_core::number::Real as _;
use tailbound_core::units::{format_ns, format_ns_i64, format_span};
use tailbound_report::pictures::Figure;
use tailbound_report::svg::plot::Look;
use tailbound_report::svg::{Layout, Plot, Scale, Unit};
use tailbound_report::table::Table;
use tailbound_store::{Maximum, SLOT_S};

use super::{S_PER_DAY, WIDE, day_s, ends};

/// Points of a picture at most: zooming in shows them apart.
const POINTS_MAX: i64 = 3000;
/// Rows of its table at most: the latest ones.
const ROWS_MAX: usize = 500;

/// How long a point stands for, where the days from `first` to `last` are shown.
pub(in super::super) fn step_s(first: &str, last: &str) -> i64 {
    let span_s = day_s(last).zip(day_s(first)).map_or(0, |(last, first)| last - first);
    let slots = (span_s.max(0) + S_PER_DAY).div_euclid(SLOT_S);
    (slots + POINTS_MAX - 1).div_euclid(POINTS_MAX) * SLOT_S
}

/// The picture; `None`: there is nothing to draw. `worse`: since when a series is worse, s since 1970.
pub(in super::super) fn maxima(
    all: &[Maximum],
    step_s: i64,
    deadline_ns: Option<i64>,
    worse: &[i64],
) -> Option<Figure> {
    let known: Vec<&Maximum> = all.iter().filter(|m| m.max_ns > 0).collect();
    let (first, last) = (known.first()?, known.last()?);
    let low = known.iter().map(|m| m.max_ns).min()?.real();
    let high = known.iter().map(|m| m.max_ns).max()?.real();
    let deadline = deadline_ns.filter(|d| *d > 0).map(|d| d.real());
    let (low, high) = ends(low, high, deadline);
    let end_s = last.began_s + step_s;
    let middle = |m: &Maximum| m.began_s.real() + step_s.real() / 2.0;
    let mut line: Vec<Option<(f64, f64)>> = Vec::new();
    let mut before: Option<i64> = None;
    for m in &known {
        // Where nothing was measured nothing is drawn.
        if before.is_some_and(|b| m.began_s > b + step_s) {
            line.push(None);
        }
        line.push(Some((middle(m), m.max_ns.real())));
        before = Some(m.began_s);
    }
    let dots: Vec<(f64, f64)> = line.iter().copied().flatten().collect();
    let draw = |layout: Layout| {
        let x = Scale::linear(first.began_s.real(), end_s.real(), Unit::Utc);
        let y = Scale::log(low, high, Unit::Ns);
        let layout = layout.with_area_height(200.0);
        let mut plot = Plot::new(layout, x, y, "day", "latest");
        plot.line(&line, Look::Nth(0));
        plot.dots(&dots, Look::Nth(0), true);
        if let Some(d) = deadline {
            plot.rule_y(d, &format!("deadline {}", format_ns(d)));
        }
        for at in worse {
            plot.rule_x(at.real(), "became worse");
        }
        plot.finish("The latest of each five minutes over all days")
    };
    let mut table = Table::new(&["from", "latest"]);
    for m in known.iter().rev().take(ROWS_MAX) {
        table.row(vec![Unit::Utc.label(m.began_s.real()), format_ns_i64(m.max_ns)]);
    }
    let whole = known.iter().filter(|m| m.whole_runs).count();
    let left_out = all.len() - known.len();
    let points: Vec<_> = known.iter().map(|m| json!([m.began_s + step_s / 2, m.max_ns])).collect();
    Some(Figure {
        id: "latest",
        title: "Latest over time".to_owned(),
        caption: format!(
            "A point: the latest wake-up within {}, of all runs then, whatever their loads.{}{}{} Where nothing was measured nothing is drawn.",
            format_span(step_s * 1_000_000_000),
            if step_s > SLOT_S { " With fewer days it is five minutes." } else { "" },
            match whole {
                0 => String::new(),
                n => format!(
                    " {n} point{} of whole runs, at their beginning: their files do not say when it was.",
                    if n == 1 { " is that" } else { "s are those" }
                ),
            },
            match left_out {
                0 => String::new(),
                1 => " One is on time or early, and not on a logarithmic scale.".to_owned(),
                n => format!(" {n} are on time or early, and not on a logarithmic scale."),
            },
        ),
        wide: draw(WIDE),
        narrow: draw(Layout::NARROW),
        table,
        series: json!([{"name": "latest", "kind": "line", "reach": step_s, "points": points}]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(began_s: i64, max_ns: i64, whole_runs: bool) -> Maximum {
        Maximum { began_s, max_ns, whole_runs }
    }

    #[test]
    fn a_gap_is_a_gap_and_a_whole_run_is_said_to_be_one() {
        let all = [
            at(0, 1_000, false),
            at(300, 2_000, false),
            at(90_000, 50_000, true),
            at(90_300, 0, false),
        ];
        let figure = maxima(&all, 300, Some(40_000), &[90_000])
            .unwrap_or_else(|| panic!("nothing is drawn"));
        let line = figure.wide.split("<path class=\"s c0\"").nth(1).unwrap_or_default();
        assert_eq!(line.split('>').next().unwrap_or_default().matches('M').count(), 2, "{line}");
        assert!(figure.wide.contains("became worse") && figure.wide.contains("deadline 40.0 µs"));
        assert!(figure.caption.contains("1 point is that of whole runs"), "{}", figure.caption);
        assert!(figure.caption.contains("One is on time"), "{}", figure.caption);
        assert!(!figure.wide.contains("NaN"));
        assert!(maxima(&[], 300, None, &[]).is_none());
    }

    #[test]
    fn a_step_is_whole_slots_and_a_day_has_them_all() {
        let steps = ["2026-11-25", "2026-11-16", "2025-11-26", "2016-11-25", "2026-12-25"];
        let steps = steps.map(|first| step_s(first, "2026-11-25"));
        assert_eq!(steps, [SLOT_S, SLOT_S, 36 * SLOT_S, 351 * SLOT_S, SLOT_S]);
    }
}
