// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work per second over time, of one run or on both systems, with mean and deviation: determinism against
//! throughput, as Red Hat showed messages per second.
//!
//! Units: units a second over seconds of working time.

use tailbound_stats::decide::rates::Rate;
use tailbound_stats::decide::sample::Sample;
use tailbound_stats::decide::{Choice, Side};

use crate::pictures::{Figure, points_json};
use crate::svg::plot::{DotSize, Look};
use crate::svg::scale::trimmed;
use crate::svg::{Layout, Plot, Scale, Unit};
use crate::table::Table;

/// The picture of the benchmark that shows it best: messages, else the first that counts.
#[must_use]
pub fn figure(choice: &Choice) -> Option<Figure> {
    let both = |r: &&Rate| choice.fast.rates.iter().any(|o| o.spec == r.spec);
    let shared: Vec<&Rate> = choice.real.rates.iter().filter(both).collect();
    let chosen = shared.iter().find(|r| r.unit == "messages").or(shared.first())?;
    let of = |side: &'_ Side| side.rates.iter().find(|r| r.spec == chosen.spec).cloned();
    let sides = [
        (choice.fast.name.clone(), of(&choice.fast)?),
        (choice.real.name.clone(), of(&choice.real)?),
    ];
    draw(&sides)
}

/// The picture of a benchmark of one run, in `rate`.
#[must_use]
pub fn of_one(rate: &Rate) -> Option<Figure> {
    draw(&[(rate.spec.clone(), rate.clone())])
}

/// `157 k messages a second: σ 27 k (17.2 %) over 55 intervals`.
#[must_use]
pub fn sentence(rate: &Rate) -> Option<String> {
    let s = rate.sample?;
    Some(format!(
        "{} {} a second: σ {} ({}) over {} intervals of about 100 ms",
        figure_of(s.mean),
        rate.unit,
        figure_of(s.sd),
        share(&s),
        s.n
    ))
}

/// The deviation in terms of the mean.
fn share(s: &Sample) -> String {
    format!("{:.1} %", if s.mean > 0.0 { s.sd / s.mean * 100.0 } else { 0.0 })
}

/// One line per side, all of one benchmark.
fn draw(sides: &[(String, Rate)]) -> Option<Figure> {
    let chosen = &sides.first()?.1;
    let points = || sides.iter().flat_map(|(_, r)| r.points.iter().copied());
    let end = points().map(|p| p.0).reduce(f64::max)?;
    let high = points().map(|p| p.1).reduce(f64::max)?;
    let x = Scale::linear(0.0, end * 1.02, Unit::Seconds);
    let y = Scale::linear(0.0, high * 1.1, Unit::Count);
    let unit = &chosen.unit;
    let draw = |layout: Layout| {
        let name = format!("{unit} a second");
        let mut plot = Plot::new(layout.with_area_height(200.0), x, y, "working time", &name);
        for (i, (side, rate)) in sides.iter().enumerate() {
            let look = Look::Nth(i);
            plot.name(side, look);
            plot.line(&rate.points.iter().copied().map(Some).collect::<Vec<_>>(), look);
            plot.dots(&rate.points, look, DotSize::Small);
        }
        plot.finish("Benchmark rate over time, by system")
    };
    let mut table = Table::new(&["", "throughput per second", "σ", "σ / mean", "intervals"]);
    let mut words = Vec::new();
    for (side, rate) in sides {
        let Some(s) = rate.sample else { continue };
        table.row(vec![
            side.clone(),
            figure_of(s.mean),
            figure_of(s.sd),
            share(&s),
            s.n.to_string(),
        ]);
        words.push(format!("{side}: {} ± {} {unit} a second", figure_of(s.mean), figure_of(s.sd)));
    }
    Some(Figure {
        id: "rates",
        title: format!("{} over time", chosen.spec),
        caption: format!(
            "{}; mean ± σ over intervals of about 100 ms, without the first and last of each repetition. Steady is what counts where somebody waits, high where nobody does.",
            words.join("; ")
        ),
        wide: draw(Layout::WIDE),
        narrow: draw(Layout::NARROW),
        table,
        series: sides.iter().map(|(side, r)| points_json(side, "line", &r.points)).collect(),
    })
}

fn figure_of(v: f64) -> String {
    match v {
        v if v >= 1e6 => format!("{} M", trimmed(v / 1e6, 3)),
        v if v >= 1e4 => format!("{} k", trimmed(v / 1e3, 2)),
        v => trimmed(v, 1),
    }
}
