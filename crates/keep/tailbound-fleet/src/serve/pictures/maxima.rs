// SPDX-License-Identifier: MIT OR Apache-2.0
//! The latest of each five minutes over months, and where a series became worse.
//!
//! Units: ns; s since 1970 across. A point is the *greatest* of its time: five minutes, or more where the picture
//! has no room for them all.

use serde_json::json;
use tailbound_core::number::Real as _;
use tailbound_core::order;
use tailbound_core::units::{format_ns, format_ns_i64, format_span};
use tailbound_report::pictures::Figure;
use tailbound_report::svg::plot::{DotSize, Look};
use tailbound_report::svg::{Layout, Plot, Scale, Unit};
use tailbound_report::table::Table;
use tailbound_store::{LoadMaxima, Maximum, SLOT_S};

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

/// A workload's name for people.
fn named(load: &LoadMaxima) -> String {
    if load.loads.is_empty() { "without load".to_owned() } else { load.loads.clone() }
}

/// Time and latency; `None`: a gap.
type Points = Vec<Option<(f64, f64)>>;

/// Points of a workload, with a gap where nothing was measured.
fn line_of(load: &LoadMaxima, step_s: i64) -> Points {
    let mut line = Vec::new();
    let mut before: Option<i64> = None;
    for m in load.maxima.iter().filter(|m| m.max_ns > 0) {
        // Where nothing was measured nothing is drawn.
        if before.is_some_and(|b| m.began_s > b + step_s) {
            line.push(None);
        }
        line.push(Some((m.began_s.real() + step_s.real() / 2.0, m.max_ns.real())));
        before = Some(m.began_s);
    }
    line
}

/// The picture, a colour a workload: points of different loads are joined by no line. `None`: there is nothing to draw. `worse`:
/// since when a series is worse, s since 1970.
pub(in super::super) fn maxima(
    by_load: &[LoadMaxima],
    step_s: i64,
    deadline_ns: Option<i64>,
    worse: &[i64],
) -> Option<Figure> {
    let mut all: Vec<(&LoadMaxima, &Maximum)> =
        by_load.iter().flat_map(|l| l.maxima.iter().map(move |m| (l, m))).collect();
    order::by_key(&mut all, |(_, m)| m.began_s);
    let known: Vec<(&LoadMaxima, &Maximum)> =
        all.iter().copied().filter(|(_, m)| m.max_ns > 0).collect();
    let ((_, first), (_, last)) = (known.first()?, known.last()?);
    let low = known.iter().map(|(_, m)| m.max_ns).min()?.real();
    let high = known.iter().map(|(_, m)| m.max_ns).max()?.real();
    let deadline = deadline_ns.filter(|d| *d > 0).map(|d| d.real());
    let (low, high) = ends(low, high, deadline);
    let end_s = last.began_s + step_s;
    let lines: Vec<(String, Points)> =
        by_load.iter().map(|l| (named(l), line_of(l, step_s))).collect();
    let draw = |layout: Layout| {
        let x = Scale::linear(first.began_s.real(), end_s.real(), Unit::Utc);
        let y = Scale::log(low, high, Unit::Ns);
        let layout = layout.with_area_height(200.0);
        let mut plot = Plot::new(layout, x, y, "day", "latest");
        for (n, (name, line)) in lines.iter().enumerate() {
            let dots: Vec<(f64, f64)> = line.iter().copied().flatten().collect();
            if lines.len() > 1 {
                plot.name(name, Look::Nth(n));
            }
            plot.line(line, Look::Nth(n));
            plot.dots(&dots, Look::Nth(n), DotSize::Small);
        }
        if let Some(d) = deadline {
            plot.rule_y(d, &format!("deadline {}", format_ns(d)));
        }
        for at in worse {
            plot.rule_x(at.real(), "became worse");
        }
        plot.finish("The latest of each five minutes over all days")
    };
    let mut table = Table::new(&["from", "latest", "loads"]).with_words(&[2]);
    for (load, m) in known.iter().rev().take(ROWS_MAX) {
        table.row(vec![Unit::Utc.label(m.began_s.real()), format_ns_i64(m.max_ns), named(load)]);
    }
    let rows = match known.len().saturating_sub(ROWS_MAX) {
        0 => String::new(),
        n => format!(" The numbers are the newest {ROWS_MAX}; {n} earlier ones are in the API."),
    };
    let whole = known.iter().filter(|(_, m)| m.whole_runs).count();
    let left_out = all.len() - known.len();
    let series: Vec<_> = by_load
        .iter()
        .map(|l| {
            let points = l.maxima.iter().filter(|m| m.max_ns > 0);
            let points: Vec<_> =
                points.map(|m| json!([m.began_s + step_s / 2, m.max_ns])).collect();
            json!({"name": named(l), "kind": "line", "reach": step_s, "points": points})
        })
        .collect();
    Some(Figure {
        id: "latest",
        title: "Latest over time".to_owned(),
        caption: format!(
            "A point: the latest wake-up within {}, a colour for each load.{}{}{} Where nothing was measured nothing is drawn.{rows}",
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
        series: json!(series),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(began_s: i64, max_ns: i64, whole_runs: bool) -> Maximum {
        Maximum { began_s, max_ns, whole_runs }
    }

    fn of(loads: &str, maxima: &[Maximum]) -> LoadMaxima {
        let (workload, probe) = (loads.to_owned(), "cyclic".to_owned());
        LoadMaxima { workload, probe, loads: loads.to_owned(), maxima: maxima.to_vec() }
    }

    #[test]
    fn different_loads_are_joined_by_no_line() {
        let loads = [
            of("cpu", &[at(0, 1_000, true), at(600, 1_000, true)]),
            of("disk", &[at(300, 90_000, true)]),
        ];
        let figure = maxima(&loads, 300, None, &[]).unwrap_or_else(|| panic!("nothing is drawn"));
        // A line would have a second point.
        for line in figure.wide.split("<path class=\"s c").skip(1) {
            let drawn = line.split('>').next().unwrap_or_default();
            assert!(!drawn.contains('L'), "{drawn}");
        }
        assert_eq!(figure.series.as_array().map(Vec::len), Some(2));
        assert!(figure.wide.contains("disk") && figure.table.html().contains("disk"));
    }

    #[test]
    fn a_gap_is_a_gap_and_a_whole_run_is_said_to_be_one() {
        let all = [
            at(0, 1_000, false),
            at(300, 2_000, false),
            at(90_000, 50_000, true),
            at(90_300, 0, false),
        ];
        let figure = maxima(&[of("", &all)], 300, Some(40_000), &[90_000])
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
