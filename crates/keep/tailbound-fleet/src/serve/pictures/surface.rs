// SPDX-License-Identifier: MIT OR Apache-2.0
//! All days as one surface from above: days to the right, latency upwards, darker where there are more activations.
//!
//! Units: ns; s since 1970 across. A class of latencies with a single value in it is drawn like any other: worst
//! cases are single. Days without runs are empty.

use std::collections::BTreeMap;

use serde_json::json;
use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::units::{format_ns, format_ns_i64, grouped};
use tailbound_report::pictures::Figure;
use tailbound_report::svg::plot::{DotSize, Look};
use tailbound_report::svg::{Layout, Plot, Scale, Unit};
use tailbound_report::table::Table;
use tailbound_store::Histogram;

use super::{S_PER_DAY, WIDE, day_s};

/// Classes a decade.
const PER_DECADE: f64 = 12.0;
/// 12 decades from 1 ns up are more than any histogram has.
const CLASS_MAX: i32 = 200;
/// Shades, by the logarithm of counts.
const SHADES: usize = 8;
/// Columns at most, for screens and for phones: days are put together beyond that.
const COLUMNS_MAX: [i64; 2] = [366, 90];

/// One column of the surface.
#[derive(Default)]
struct Column {
    classes: BTreeMap<i32, u64>,
    max_ns: Option<i64>,
    n: u64,
}

/// The class that a latency is in: of all that begin at or below it the last one.
fn class(ns: f64) -> i32 {
    let decades = ns.max(1.0).log10();
    let begins = |at: i32| f64::from(at) / PER_DECADE;
    let near = (decades * PER_DECADE).floor().whole_i64();
    let mut at = i32::try_from(near).unwrap_or(CLASS_MAX).clamp(0, CLASS_MAX);
    // On the border of two the product may be rounded to the wrong side.
    if at > 0 && begins(at) > decades {
        at -= 1;
    } else if at < CLASS_MAX && begins(at + 1) <= decades {
        at += 1;
    }
    at
}

fn begin(class: i32) -> f64 {
    10f64.powf(f64::from(class) / PER_DECADE)
}

/// The days that have runs, by when they began.
fn days(all: &[Histogram]) -> BTreeMap<i64, Column> {
    let mut days: BTreeMap<i64, Column> = BTreeMap::new();
    for h in all {
        let Some(day) = h.started.get(..10).and_then(day_s) else { continue };
        let column = days.entry(day).or_default();
        column.max_ns = column.max_ns.max(h.max_ns);
        // Buckets are in the order of values: those of a class come together.
        let mut one: (i32, u64) = (0, 0);
        let mut put = |(class, n): (i32, u64)| {
            if n > 0 {
                *column.classes.entry(class).or_default() += n;
            }
        };
        for b in &h.buckets {
            // By its middle, so that a bucket on the border of two classes falls into the one that has more of it.
            let at = class(b.low_ns.real() + b.width_ns.real() / 2.0);
            if at != one.0 {
                put(one);
                one = (at, 0);
            }
            one.1 += b.count;
            column.n += b.count;
        }
        put(one);
    }
    days
}

/// Days put together to columns of `together` days from `first_s` on.
fn columns(days: &BTreeMap<i64, Column>, first_s: i64, together: i64) -> BTreeMap<i64, Column> {
    let mut fewer: BTreeMap<i64, Column> = BTreeMap::new();
    for (day, column) in days {
        let width_s = together * S_PER_DAY;
        let to = fewer.entry(first_s + (day - first_s) / width_s * width_s).or_default();
        to.max_ns = to.max_ns.max(column.max_ns);
        for (class, n) in &column.classes {
            *to.classes.entry(*class).or_default() += n;
        }
    }
    fewer
}

/// The picture; `None`: there is nothing to draw.
pub(in super::super) fn surface(all: &[Histogram], deadline_ns: Option<i64>) -> Option<Figure> {
    let days = days(all);
    let first_s = *days.keys().next()?;
    let end_s = days.keys().next_back()? + S_PER_DAY;
    let keys = || days.values().flat_map(|c| c.classes.keys().copied());
    let deadline = deadline_ns.filter(|d| *d > 0).map(|d| d.real());
    let (low, high) = (begin(keys().min()?), begin(keys().max()? + 1));
    let near = deadline.filter(|d| *d < high * 1e3 && *d > low * 1e-3);
    let y = Scale::log(
        near.map_or(low, |d| d.min(low)),
        near.map_or(high, |d| (d * 1.1).max(high)),
        Unit::Ns,
    );
    let together = |most: i64| ((end_s - first_s) / S_PER_DAY).div_euclid(most + 1) + 1;
    let draw = |layout: Layout, most: i64| {
        let together = together(most);
        let columns = columns(&days, first_s, together);
        let span = (first_s.real(), end_s.real());
        let mut plot =
            Plot::new(layout, Scale::linear(span.0, span.1, Unit::Utc), y, "day", "latency");
        let end = |at: i64| (at + together * S_PER_DAY).min(end_s).real();
        for (shade, tiles) in shades(&columns).iter().enumerate() {
            let tiles: Vec<(f64, f64, f64, f64)> = tiles
                .iter()
                .map(|(at, class)| (at.real(), end(*at), begin(*class), begin(class + 1)))
                .collect();
            plot.tiles(&tiles, 0.25 + 0.75 * shade.real() / (SHADES - 1).real());
        }
        let worst = |(at, c): (&i64, &Column)| {
            let max = c.max_ns.filter(|m| *m > 0)?;
            Some(((at.real() + end(*at)) / 2.0, max.real()))
        };
        let worst: Vec<(f64, f64)> = columns.iter().filter_map(worst).collect();
        plot.dots(&worst, Look::Worst, DotSize::Small);
        if let Some(d) = near {
            plot.rule_y(d, &format!("deadline {}", format_ns(d)));
        }
        plot.finish("Latencies of all days, seen from above")
    };
    let mut table = Table::new(&["day", "activations", "latest"]);
    let mut points = Vec::new();
    for (at, column) in days.iter().rev() {
        let latest = column.max_ns.map_or_else(|| "no record".to_owned(), format_ns_i64);
        table.row(vec![Unit::Utc.label(at.real()), grouped(column.n), latest]);
    }
    for (at, column) in &days {
        points.extend(column.max_ns.map(|max| json!([at + S_PER_DAY / 2, max])));
    }
    let [wide, narrow] = COLUMNS_MAX;
    Some(Figure {
        id: "surface",
        title: "All days".to_owned(),
        caption: format!(
            "Latency of due activations (upwards, logarithmic) by day; the darker, the more activations. Dots: the latest of a day.{}{} \
             Days without runs are empty.",
            match together(wide) {
                1 => String::new(),
                n => format!(" Each column stands for {n} days."),
            },
            if near.is_some() { " Dashed: the deadline of the newest run." } else { "" },
        ),
        wide: draw(WIDE, wide),
        narrow: draw(Layout::NARROW, narrow),
        table,
        series: json!([{"name": "latest of the day", "kind": "line", "reach": S_PER_DAY / 2, "points": points}]),
    })
}

/// What is drawn in each shade: column and class.
fn shades(columns: &BTreeMap<i64, Column>) -> Vec<Vec<(i64, i32)>> {
    let most = columns.values().flat_map(|c| c.classes.values().copied()).max().unwrap_or(2).max(2);
    let mut shades = vec![Vec::new(); SHADES];
    for (at, column) in columns {
        for (class, n) in column.classes.iter().filter(|(_, n)| **n > 0) {
            let share = n.real().ln() / most.real().ln();
            let shade = (0..SHADES - 1).rev().find(|s| share >= (s + 1).real() / SHADES.real());
            if let Some(tiles) = shades.get_mut(shade.map_or(0, |s| s + 1)) {
                tiles.push((*at, *class));
            }
        }
    }
    shades
}

#[cfg(test)]
mod tests {
    use tailbound_core::histogram::Bucket;

    use super::*;

    fn histogram(day: usize, buckets: &[(u64, u64)]) -> Histogram {
        Histogram {
            run: String::new(),
            started: format!(
                "{:04}-{:02}-{:02}T00:00:00Z",
                2026 + day / 336,
                day / 28 % 12 + 1,
                day % 28 + 1
            ),
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
    fn a_latency_is_in_the_last_class_that_begins_at_or_below_it() {
        for at in 0..=CLASS_MAX {
            let border = begin(at);
            for ns in [border, border * (1.0 - 1e-15), border * (1.0 + 1e-15), border * 1.1] {
                let found = class(ns);
                let decades = ns.max(1.0).log10();
                assert!(f64::from(found) / PER_DECADE <= decades, "{at}: {ns}: {found}");
                let next = f64::from(found + 1) / PER_DECADE;
                assert!(next > decades || found == CLASS_MAX, "{at}: {ns}: {found}");
            }
        }
        assert_eq!([0.0, 1.0, 9.9, 10.0, 1e300].map(class), [0, 0, 11, 12, CLASS_MAX]);
    }

    fn all_numbers(svg: &str) -> bool {
        !svg.contains("NaN") && !svg.contains("inf")
    }

    #[test]
    fn a_single_late_activation_is_drawn() {
        let days: Vec<Histogram> = (0..28)
            .map(|day| {
                let mut buckets = vec![(2_000, 1_000_000)];
                if day == 20 {
                    buckets.push((900_000, 1));
                }
                histogram(day, &buckets)
            })
            .collect();
        let figure = surface(&days, Some(100_000)).unwrap_or_else(|| panic!("nothing is drawn"));
        for svg in [&figure.wide, &figure.narrow] {
            // One tile of the lightest shade, and a dot for each day.
            let lightest = svg.split("<path d=\"").find(|p| p.contains("fill-opacity:0.25"));
            assert_eq!(lightest.unwrap_or_default().matches('M').count(), 1, "{lightest:?}");
            let dots = svg.split("<path class=\"dots").nth(1).unwrap_or_default();
            assert_eq!(dots.split('>').next().unwrap_or_default().matches('M').count(), 28);
            assert!(svg.contains("deadline 100 µs") && all_numbers(svg));
        }
        assert!(figure.table.html().contains("900 µs"));
    }

    #[test]
    fn nothing_and_many_days_are_drawn() {
        assert!(surface(&[], None).is_none());
        let days: Vec<Histogram> = (0..900).map(|d| histogram(d, &[(1, 1)])).collect();
        let figure = surface(&days, None).unwrap_or_else(|| panic!("nothing is drawn"));
        assert!(
            all_numbers(&figure.wide) && figure.caption.contains("stands for 3 days"),
            "{}",
            figure.caption
        );
    }
}
