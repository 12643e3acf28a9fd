// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pictures of many runs: the trend in a table's cell, and all days as one surface seen from above.
//!
//! Context: COLD. Units: ns. A class of latencies with a single value in it is drawn like any other: worst cases are single.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tailbound_core::number::Real as _;
use tailbound_core::units::format_ns_i64;
use tailbound_report::escape::xml;
use tailbound_store::{DayMax, Histogram};

/// Columns of the surface at most: days are put together beyond that.
const COLUMNS_MAX: usize = 366;
/// Classes a decade.
const PER_DECADE: f64 = 12.0;
/// Shades, by decades of counts.
const SHADES: usize = 8;

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

/// One column of the surface.
#[derive(Default)]
struct Column {
    day: String,
    classes: BTreeMap<i32, u64>,
    max_ns: Option<i64>,
}

fn class(ns: f64) -> i32 {
    let mut at = 0;
    // Classes from 1 ns up; 12 decades are more than any histogram has.
    while at < 200 && f64::from(at + 1) / PER_DECADE <= ns.max(1.0).log10() {
        at += 1;
    }
    at
}

/// All days as one surface from above: time to the right, latency upwards, darker where there are more activations; dots are the
/// worst of each column. `None`: there is nothing to draw.
pub(super) fn surface(all: &[Histogram], deadline_ns: Option<i64>) -> Option<String> {
    let columns = columns(all);
    let keys = || columns.iter().flat_map(|c| c.classes.keys().copied());
    let deadline = deadline_ns.filter(|d| *d > 0).map(|d| d.real());
    let (mut low, mut high) = (keys().min()?, keys().max()? + 1);
    if let Some(d) = deadline {
        (low, high) = (low.min(class(d)), high.max(class(d) + 1));
    }
    let (left, top, width, height) = (64.0, 8.0, 1120.0, 300.0);
    let across = width / columns.len().max(1).real();
    let up = height / f64::from(high - low);
    let x = |at: usize| left + at.real() * across;
    let y = |class: f64| top + height - (class - f64::from(low)) * up;
    let most = columns.iter().flat_map(|c| c.classes.values().copied()).max()?.max(2);
    let mut shades: Vec<String> = vec![String::new(); SHADES];
    for (at, column) in columns.iter().enumerate() {
        for (class, n) in &column.classes {
            let share = n.real().ln() / most.real().ln();
            let shade = (0..SHADES - 1).rev().find(|s| share >= (s + 1).real() / SHADES.real());
            if let Some(path) = shades.get_mut(shade.map_or(0, |s| s + 1)) {
                let (x, y) = (x(at), y(f64::from(*class) + 1.0));
                let _ = write!(path, "M{x:.1} {y:.1}h{across:.2}v{up:.2}h-{across:.2}z");
            }
        }
    }
    let total = top + height + 30.0;
    let mut svg = format!(
        "<svg class=\"surface\" viewBox=\"0 0 1200 {total}\" role=\"img\" aria-label=\"Latencies of all days, seen from above\">"
    );
    for decade in 0..13u8 {
        let at = f64::from(decade) * PER_DECADE;
        if at < f64::from(low) || at > f64::from(high) {
            continue;
        }
        let label = format_ns_i64(10i64.pow(decade.into()));
        let _ = write!(
            svg,
            "<path class=\"grid\" d=\"M{left} {0:.1}h{width}\"/><text x=\"{1}\" y=\"{2:.1}\" text-anchor=\"end\">{3}</text>",
            y(at),
            left - 6.0,
            y(at) + 4.0,
            xml(&label),
        );
    }
    for (n, path) in shades.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
        let opacity = 0.25 + 0.75 * n.real() / (SHADES - 1).real();
        let _ =
            write!(svg, "<path d=\"{path}\" fill=\"var(--c0)\" fill-opacity=\"{opacity:.2}\"/>");
    }
    let radius = (across / 2.0).clamp(1.2, 3.5);
    for (at, column) in columns.iter().enumerate() {
        if let Some(max) = column.max_ns.filter(|m| *m > 0) {
            let _ = write!(
                svg,
                "<circle class=\"worst\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius:.1}\"><title>{}: {}</title></circle>",
                x(at) + across / 2.0,
                y(max.real().log10() * PER_DECADE),
                xml(&column.day),
                xml(&format_ns_i64(max)),
            );
        }
    }
    if let Some(d) = deadline {
        let _ = write!(
            svg,
            "<path class=\"rule\" d=\"M{left} {:.1}h{width}\"/>",
            y(d.log10() * PER_DECADE)
        );
    }
    let every = columns.len().div_ceil(8).max(1);
    for (at, column) in columns.iter().enumerate().step_by(every) {
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x(at),
            top + height + 18.0,
            xml(&column.day)
        );
    }
    svg.push_str("</svg>");
    Some(svg)
}

/// Days that have runs, put together where they are too many.
fn columns(all: &[Histogram]) -> Vec<Column> {
    let mut days: Vec<Column> = Vec::new();
    for h in all {
        let day = h.started.get(..10).unwrap_or(&h.started);
        if days.last().is_none_or(|last| last.day != day) {
            days.push(Column { day: day.to_owned(), ..Column::default() });
        }
        let Some(column) = days.last_mut() else { continue };
        column.max_ns = column.max_ns.max(h.max_ns);
        for b in &h.buckets {
            // By its middle, so that a bucket on the border of two classes falls into the one that has more of it.
            let middle = b.low_ns.real() + b.width_ns.real() / 2.0;
            *column.classes.entry(class(middle)).or_default() += b.count;
        }
    }
    let together = days.len().div_ceil(COLUMNS_MAX).max(1);
    if together == 1 {
        return days;
    }
    let mut fewer: Vec<Column> = Vec::new();
    for (at, day) in days.into_iter().enumerate() {
        if at % together == 0 {
            fewer.push(day);
        } else if let Some(last) = fewer.last_mut() {
            last.max_ns = last.max_ns.max(day.max_ns);
            for (class, n) in day.classes {
                *last.classes.entry(class).or_default() += n;
            }
        }
    }
    fewer
}

#[cfg(test)]
mod tests {
    use tailbound_core::histogram::Bucket;

    use super::*;

    fn histogram(day: usize, buckets: &[(u64, u64)]) -> Histogram {
        Histogram {
            run: String::new(),
            started: format!("2026-{:02}-{:02}T00:00:00Z", day / 28 + 1, day % 28 + 1),
            thread: 0,
            cpu: Some(0),
            context: "user".to_owned(),
            max_ns: buckets.last().and_then(|b| i64::try_from(b.0).ok()),
            buckets: buckets
                .iter()
                .map(|(low_ns, count)| Bucket { low_ns: *low_ns, width_ns: 1, count: *count })
                .collect(),
        }
    }

    #[test]
    fn a_single_late_activation_is_drawn() {
        let days: Vec<Histogram> = (0..100)
            .map(|day| {
                let mut buckets = vec![(2_000, 1_000_000)];
                if day == 50 {
                    buckets.push((900_000, 1));
                }
                histogram(day, &buckets)
            })
            .collect();
        let svg = surface(&days, Some(100_000)).unwrap_or_default();
        assert!(svg.contains(">2026-02-23: 900 µs<"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 100);
        // One cell of the lightest shade.
        let lightest = svg
            .split("<path d=\"")
            .find(|p| p.contains("fill-opacity=\"0.25\""))
            .unwrap_or_default();
        assert_eq!(lightest.matches('M').count(), 1, "{lightest}");
        assert!(all_numbers(&svg));
    }

    fn all_numbers(svg: &str) -> bool {
        !svg.contains("NaN") && !svg.contains("inf")
    }

    #[test]
    fn nothing_and_many_days_are_drawn() {
        assert_eq!(surface(&[], None), None);
        let days: Vec<Histogram> = (0..330).map(|d| histogram(d, &[(1, 1)])).collect();
        assert!(surface(&days, None).is_some_and(|svg| all_numbers(&svg)));
        assert_eq!(spark(&[]), "");
        let one = DayMax { day: "2026-01-01".to_owned(), max_ns: Some(5), runs: 1, not_met: 0 };
        assert!(all_numbers(&spark(&[one])));
    }
}
