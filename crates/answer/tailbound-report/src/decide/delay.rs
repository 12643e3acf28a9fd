// SPDX-License-Identifier: MIT OR Apache-2.0
//! Total delay over the length of a work item, both axes logarithmic: one picture per benchmark, as
//! figures 1 to 3 of McKenney 2008.
//!
//! Units: ns.

use tailbound_core::units::format_ns;
use tailbound_stats::decide::breakeven::{LONGEST_NS, SHORTEST_NS};
use tailbound_stats::decide::choice::{BenchmarkChoice, Delay};
use tailbound_stats::decide::{Choice, Crossing};

use super::tables;
use crate::pictures::{Figure, points_json};
use crate::svg::plot::{DotSize, Look};
use crate::svg::scale::{round_down_125, round_up_125};
use crate::svg::{Layout, Plot, Scale, Unit};
use crate::table::Table;

/// The statistics that are drawn: the mean, the deepest quantile that both have, the worst.
fn drawn(w: &BenchmarkChoice) -> Vec<&Delay> {
    let one = |name: &str| w.delays.iter().find(|d| d.statistic == name);
    let tail = w.delays.iter().rev().find(|d| d.statistic.starts_with('p'));
    [one("mean"), tail, one("worst")].into_iter().flatten().collect()
}

/// The picture of the benchmark at `index`; `None` where there is no total delay.
#[must_use]
pub fn figure(choice: &Choice, index: usize) -> Option<Figure> {
    const IDS: [&str; 8] =
        ["delay-1", "delay-2", "delay-3", "delay-4", "delay-5", "delay-6", "delay-7", "delay-8"];
    let id = IDS.get(index).copied()?;
    let w = choice.benchmarks.get(index)?;
    let delays = drawn(w);
    let low = delays
        .iter()
        .flat_map(|d| [d.real.delay_ns(SHORTEST_NS), d.fast.delay_ns(SHORTEST_NS)])
        .reduce(f64::min)?;
    let high = delays
        .iter()
        .flat_map(|d| [d.real.delay_ns(LONGEST_NS), d.fast.delay_ns(LONGEST_NS)])
        .reduce(f64::max)?;
    let x = Scale::log(SHORTEST_NS, LONGEST_NS, Unit::Ns);
    let y = Scale::log(round_down_125(low * 0.9), round_up_125(high), Unit::Ns);
    let sides = [(&choice.fast.name, 0), (&choice.real.name, 1)];
    let draw = |layout: Layout| {
        let mut plot = Plot::new(layout, x, y, "length of a work item", "total delay");
        let mut marks = Vec::new();
        for (dash, d) in delays.iter().enumerate() {
            for (line, (name, colour)) in [&d.fast, &d.real].into_iter().zip(sides) {
                let look = Look::Pair { colour, dash };
                plot.name(&format!("{name}, {}", d.statistic), look);
                plot.line(&line.curve().into_iter().map(Some).collect::<Vec<_>>(), look);
            }
            if let Crossing::At { ns, .. } | Crossing::Reversed { ns } = d.crossing {
                marks.push((ns, d.fast.delay_ns(ns)));
            }
        }
        plot.dots(&marks, Look::Total, DotSize::Large);
        if let Some((d, ns)) = ruled(&delays) {
            plot.rule_x(ns, &format!("break-even {} ({})", format_ns(ns), d.statistic));
        }
        plot.finish("Total delay over the length of a work item, by system and statistic")
    };
    let factor = w.elapsed.as_ref().map_or(1.0, |a| a.ratio);
    let mut caption = format!(
        "Start latency and the work itself, which takes {factor:.3} times as long on {} as on {}. ",
        choice.real.name, choice.fast.name
    );
    let sentences: Vec<String> = delays.iter().map(|d| tables::crossing(d)).collect();
    caption.push_str(&sentences.join(" "));
    let series = delays.iter().flat_map(|d| {
        [&d.fast, &d.real].into_iter().zip(sides).map(|(line, (name, _))| {
            points_json(&format!("{name}, {}", d.statistic), "line", &line.curve())
        })
    });
    Some(Figure {
        id,
        title: format!("Total delay with the cost of {}", w.work),
        caption,
        wide: draw(Layout::WIDE),
        narrow: draw(Layout::NARROW),
        table: table(&delays, choice),
        series: series.collect(),
    })
}

/// The crossing that gets a line of its own: of the worst, else of the deepest statistic.
fn ruled<'a>(delays: &[&'a Delay]) -> Option<(&'a Delay, f64)> {
    delays.iter().rev().find_map(|d| match d.crossing {
        Crossing::At { ns, .. } | Crossing::Reversed { ns } => Some((*d, ns)),
        _ => None,
    })
}

fn table(delays: &[&Delay], choice: &Choice) -> Table {
    let mut head = vec!["work item".to_owned()];
    for d in delays {
        head.push(format!("{}, {}", choice.fast.name, d.statistic));
        head.push(format!("{}, {}", choice.real.name, d.statistic));
    }
    let mut table = Table { head, ..Table::default() };
    for exponent in 3..=9 {
        let w = 10f64.powi(exponent);
        let mut row = vec![format_ns(w)];
        for d in delays {
            row.push(format_ns(d.fast.delay_ns(w)));
            row.push(format_ns(d.real.delay_ns(w)));
        }
        table.row(row);
    }
    table
}
