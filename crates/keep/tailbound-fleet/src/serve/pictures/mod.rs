// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pictures of many runs: the trend in a table's cell, all days as one surface seen from above, the latest over months.
//!
//! Units: ns; s since 1970 across.

mod maxima;
mod surface;

use std::fmt::Write as _;

use tailbound_core::number::Real as _;
use tailbound_core::units::format_ns_i64;
use tailbound_core::utc;
use tailbound_report::escape::xml;
use tailbound_report::svg::Layout;
use tailbound_report::svg::scale::{round_down_125, round_up_125};
use tailbound_store::{ConditionChange, DayMax};

pub(super) use maxima::{maxima, step_s};
pub(super) use surface::surface;

const S_PER_DAY: i64 = 86_400;
/// For screens: as wide as a page.
const WIDE: Layout = Layout { width: 1160.0, area_height: 300.0, variant: "wide" };

/// When a day began.
fn day_s(day: &str) -> Option<i64> {
    utc::from_date_time(day, "00:00:00")
}

/// The ends of a logarithmic axis around values and a deadline, which is left out where it is far from all of them.
fn ends(low: f64, high: f64, deadline: Option<f64>) -> (f64, f64) {
    let near = deadline.filter(|d| *d < high * 1e3 && *d > low * 1e-3);
    let low = near.map_or(low, |d| d.min(low));
    let high = near.map_or(high, |d| d.max(high));
    (round_down_125(low * 0.95), round_up_125(high * 1.05))
}

/// A trend in a table's cell.
pub(super) struct Trend<'a> {
    /// Days with runs, in order.
    pub(super) days: &'a [DayMax],
    /// Days on which kernel, configuration or method changed.
    pub(super) changes: &'a [ConditionChange],
    /// Days since which a series is worse.
    pub(super) worse: &'a [String],
    /// The last day.
    pub(super) last: &'a str,
    /// Days in all.
    pub(super) length: i64,
}

const SPARK: [f64; 2] = [180.0, 36.0];

/// The worst of each day as a line without axes, by date: a day without runs is a gap. Marks say when something changed. Its
/// numbers are in words for those who do not see it.
pub(super) fn spark(trend: &Trend<'_>) -> String {
    let [width, height] = SPARK;
    let Some(last_s) = day_s(trend.last) else { return String::new() };
    let first_s = last_s - (trend.length - 1) * S_PER_DAY;
    let within = |day: &str| day_s(day).filter(|s| (first_s..=last_s).contains(s));
    let known: Vec<(i64, i64)> = trend
        .days
        .iter()
        .filter_map(|d| Some((within(&d.day)?, d.max_ns.filter(|m| *m > 0)?)))
        .collect();
    let Some((worst_at, worst)) = known.iter().copied().max_by_key(|(_, m)| *m) else {
        return "<span class=\"soft\">no run</span>".to_owned();
    };
    let least = known.iter().map(|(_, m)| *m).min().unwrap_or(worst);
    let (low, high) = ((least.real() * 0.9).ln(), (worst.real() * 1.1).ln());
    let x = |at: i64| {
        4.0 + (at - first_s).real() * (width - 8.0) / (last_s - first_s).max(S_PER_DAY).real()
    };
    let y = |m: i64| height - 5.0 - (m.real().ln() - low) / (high - low) * (height - 12.0);
    let (mut line, mut alone) = (String::new(), String::new());
    for (n, (at, m)) in known.iter().enumerate() {
        let near =
            |other: Option<&(i64, i64)>| other.is_some_and(|(o, _)| (o - at).abs() <= S_PER_DAY);
        let before = n.checked_sub(1).and_then(|n| known.get(n));
        let _ = write!(line, "{}{:.1} {:.1}", if near(before) { 'L' } else { 'M' }, x(*at), y(*m));
        if !near(before) && !near(known.get(n + 1)) {
            let _ = write!(
                alone,
                "<circle class=\"day\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"1.5\"/>",
                x(*at),
                y(*m)
            );
        }
    }
    let mut words = format!("{} to {}", format_ns_i64(least), format_ns_i64(worst));
    let mut marks = String::new();
    for change in trend.changes {
        let Some(at) = within(&change.day) else { continue };
        for what in &change.what {
            let what = what.as_str();
            let _ = write!(marks, "<path class=\"{what}\" d=\"M{0:.1} 1V{height}\"/>", x(at));
            let _ = write!(words, "; {what} changed on {}", change.day);
        }
    }
    for day in trend.worse {
        let Some(at) = within(day) else { continue };
        let at = x(at);
        let _ = write!(
            marks,
            "<path class=\"worse\" d=\"M{:.1} 0H{:.1}L{at:.1} 7Z\"/>",
            at - 4.0,
            at + 4.0
        );
        let _ = write!(words, "; became worse on {day}");
    }
    let words = xml(&words);
    format!(
        "<svg class=\"spark\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{words}\"><title>{words}</title>{marks}\
         <path class=\"line\" d=\"{line}\"/>{alone}<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.5\"/></svg>",
        x(worst_at),
        y(worst),
    )
}

#[cfg(test)]
mod tests {
    use tailbound_store::Condition;

    use super::*;

    fn of(days: &[DayMax]) -> String {
        let change =
            ConditionChange { day: "2026-01-05".to_owned(), what: vec![Condition::Kernel] };
        let worse = ["2026-01-06".to_owned()];
        spark(&Trend { days, changes: &[change], worse: &worse, last: "2026-01-30", length: 30 })
    }

    #[test]
    fn a_trend_is_spaced_by_date_and_a_day_without_runs_is_a_gap() {
        let day = |day: &str, max_ns: i64| DayMax {
            day: day.to_owned(),
            max_ns: Some(max_ns),
            runs: 1,
            not_met: 0,
        };
        assert!(of(&[]).contains("no run"));
        let one = of(&[day("2026-01-01", 5)]);
        assert!(one.contains("5 ns") && !one.contains("NaN") && !one.contains("inf"), "{one}");
        let some = of(&[day("2026-01-01", 5), day("2026-01-02", 9), day("2026-01-30", 7)]);
        // The first day is on the left, the last one on the right, and no line joins the two.
        let line = some.split("class=\"line\" d=\"").nth(1).unwrap_or_default();
        let line = line.split('"').next().unwrap_or_default();
        assert_eq!(line.matches('M').count(), 2, "{line}");
        assert!(line.starts_with("M4.0 ") && line.contains("M176.0 "), "{line}");
        assert!(
            some.contains("kernel changed on 2026-01-05; became worse on 2026-01-06"),
            "{some}"
        );
        // What is before the first day is not drawn.
        assert!(of(&[day("2025-12-31", 5)]).contains("no run"));
    }
}
