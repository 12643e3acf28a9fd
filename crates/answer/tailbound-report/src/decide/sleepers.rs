// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latency over the number of tasks that sleep in parallel, as figure 4 of McKenney 2008.
//!
//! Units: ns.

use tailbound_core::number::Real as _;
use tailbound_core::units::{format_ns, format_ns_i64, grouped};
use tailbound_stats::decide::sleepers::Sleepers;
use tailbound_stats::decide::{Choice, Side};

use crate::pictures::{Figure, points_json};
use crate::svg::plot::{DotSize, Look};
use crate::svg::scale::{round_down_125, round_up_125};
use crate::svg::{Layout, Plot, Scale, Unit};
use crate::table::Table;

/// A statistic of a number of sleepers.
type Of = fn(&Sleepers) -> Option<f64>;

/// The picture of both systems; `None` where no run had a number of tasks.
#[must_use]
pub fn figure(choice: &Choice) -> Option<Figure> {
    of_sides(&[&choice.fast, &choice.real])
}

/// The picture of the systems `sides`.
#[must_use]
pub fn of_sides(sides: &[&Side]) -> Option<Figure> {
    let sides: Vec<&Side> = sides.iter().copied().filter(|s| !s.sleepers.is_empty()).collect();
    let tail_name = sides.iter().flat_map(|s| &s.sleepers).find_map(|s| s.tail.as_ref());
    let tail_name = tail_name.map_or("no quantile", |(name, _)| name.as_str());
    let statistics: [(&str, Of); 3] = [
        ("mean", |s| s.mean_ns),
        (tail_name, |s| s.tail.as_ref().map(|t| t.1)),
        ("worst", |s| s.max_ns.map(|ns| ns.real())),
    ];
    let points = |side: &Side, of: Of| -> Vec<(f64, f64)> {
        side.sleepers.iter().filter_map(|s| Some((f64::from(s.tasks), of(s)?))).collect()
    };
    let all: Vec<f64> = sides
        .iter()
        .flat_map(|side| statistics.iter().flat_map(|(_, of)| points(side, *of)))
        .map(|p| p.1)
        .filter(|v| *v > 0.0)
        .collect();
    let (low, high) =
        (all.iter().copied().reduce(f64::min)?, all.iter().copied().reduce(f64::max)?);
    let most = sides.iter().flat_map(|s| &s.sleepers).map(|s| s.tasks).max()?;
    let x = Scale::linear(0.0, f64::from(most) + 0.5, Unit::Count);
    let y = Scale::log(round_down_125(low * 0.9), round_up_125(high * 1.1), Unit::Ns);
    let draw = |layout: Layout| {
        let mut plot = Plot::new(layout, x, y, "tasks that sleep in parallel", "latency");
        for (colour, side) in sides.iter().enumerate() {
            for (dash, (name, of)) in statistics.iter().enumerate() {
                let look = Look::Pair { colour, dash };
                let points = points(side, *of);
                if points.is_empty() {
                    continue;
                }
                plot.name(&format!("{}, {name}", side.name), look);
                plot.line(&points.iter().copied().map(Some).collect::<Vec<_>>(), look);
                plot.dots(&points, look, DotSize::Small);
            }
        }
        plot.finish("Latency over the number of parallel sleepers, by system and statistic")
    };
    let mut head = vec!["tasks".to_owned()];
    for side in &sides {
        head.extend(statistics.iter().map(|(name, _)| format!("{}, {name}", side.name)));
        head.push(format!("{}, n", side.name));
    }
    let mut table = Table { head, ..Table::default() };
    for tasks in 1..=most {
        let found: Vec<Option<&Sleepers>> =
            sides.iter().map(|s| s.sleepers.iter().find(|x| x.tasks == tasks)).collect();
        if found.iter().all(Option::is_none) {
            continue;
        }
        let mut row = vec![tasks.to_string()];
        for s in found {
            let cell = |v: Option<String>| v.unwrap_or_else(|| "–".to_owned());
            row.push(cell(s.and_then(|s| s.mean_ns).map(format_ns)));
            row.push(cell(s.and_then(|s| s.tail.as_ref()).map(|t| format_ns(t.1))));
            row.push(cell(s.and_then(|s| s.max_ns).map(format_ns_i64)));
            row.push(cell(s.map(|s| grouped(s.n))));
        }
        table.row(row);
    }
    let series = sides.iter().flat_map(|side| {
        statistics.iter().map(|(name, of)| {
            points_json(&format!("{}, {name}", side.name), "line", &points(side, *of))
        })
    });
    Some(Figure {
        id: "sleepers",
        title: "Parallel sleepers".to_owned(),
        caption: "All tasks fall due together and are not pinned: with more tasks than CPUs the later ones wait for the earlier, which is the worst that sleepers can do to each other.".to_owned(),
        wide: draw(Layout::WIDE),
        narrow: draw(Layout::NARROW),
        table,
        series: series.collect(),
    })
}
