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
use tailbound_report::svg::scale::round_125;
use tailbound_store::DayMax;

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
    (round_125(low * 0.95, false), round_125(high * 1.05, true))
}

/// The worst of each day as a line without axes; its numbers are in words for those who do not see it.
pub(super) fn spark(days: &[DayMax]) -> String {
    let known: Vec<(usize, i64)> = days
        .iter()
        .enumerate()
        .filter_map(|(at, d)| Some((at, d.max_ns.filter(|m| *m > 0)?)))
        .collect();
    let Some((worst_at, worst)) = known.iter().copied().max_by_key(|(_, m)| *m) else {
        return String::new();
    };
    let least = known.iter().map(|(_, m)| *m).min().unwrap_or(worst);
    let (low, high) = ((least.real() * 0.9).ln(), (worst.real() * 1.1).ln());
    let x = |at: usize| 3.0 + at.real() * 114.0 / days.len().saturating_sub(1).max(1).real();
    let y = |m: i64| 21.0 - (m.real().ln() - low) / (high - low) * 18.0;
    let mut line = String::new();
    for (n, (at, m)) in known.iter().enumerate() {
        let _ = write!(line, "{}{:.1} {:.1}", if n == 0 { 'M' } else { 'L' }, x(*at), y(*m));
    }
    format!(
        "<svg class=\"spark\" viewBox=\"0 0 120 24\" role=\"img\" aria-label=\"{} to {}\"><path d=\"{line}\"/>\
         <circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2\"/></svg>",
        xml(&format_ns_i64(least)),
        xml(&format_ns_i64(worst)),
        x(worst_at),
        y(worst),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trend_of_nothing_and_of_one_day() {
        assert_eq!(spark(&[]), "");
        let one = DayMax { day: "2026-01-01".to_owned(), max_ns: Some(5), runs: 1, not_met: 0 };
        let svg = spark(&[one]);
        assert!(svg.contains("5 ns") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
