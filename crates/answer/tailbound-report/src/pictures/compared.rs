// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pictures of a comparison: histograms and survival curves of the systems over one
//! another with their bands, and the shift curve with the margin.
//!
//! Units: ns across and shares upwards; for the shift curve one activation in
//! N across and a ratio upwards. One colour per system.
//! Bands are bootstrap intervals of the units; where there are too few units there is the line
//! alone. Not here: the numbers (`tailbound_stats::compare::{bands, shift}`).

use tailbound_core::number::Real as _;
use tailbound_core::units::format_ns_i64;
use tailbound_stats::compare::bands::{Band, bands};
use tailbound_stats::compare::{Block, Difference, shift::ShiftPoint};
use tailbound_stats::quantile::label;

use super::{Figure, points_json};
use crate::bins::{PER_DECADE, edges};
use crate::compare::Answer;
use crate::svg::plot::{DotSize, Look};
use crate::svg::scale::{round_down_125, round_up_125};
use crate::svg::{Layout, Plot, Scale, Unit};
use crate::table::Table;

/// Bins of a decade: bands need more counts in each than lines.
const BAND_BINS: u32 = PER_DECADE / 2;

/// Every picture that the data has.
#[must_use]
pub fn all(answer: &Answer) -> Vec<Figure> {
    let Some(systems) = banded(answer) else {
        let wholes = &answer.systems.wholes;
        let series = super::totals(wholes, &answer.systems.names());
        let deadline = answer.systems.deadline_ns;
        let early = super::early(&series, None);
        return [super::late(&series, deadline), super::survival(&series, deadline), early]
            .into_iter()
            .flatten()
            .collect();
    };
    [histogram(answer, &systems), survival(answer, &systems)]
        .into_iter()
        .flatten()
        .chain(shifts(answer))
        .collect()
}

/// One picture by its name: `histogram`, `survival` or `shift`.
#[must_use]
pub fn by_name(answer: &Answer, name: &str) -> Option<Figure> {
    all(answer).into_iter().find(|f| f.id == name)
}

struct Banded {
    name: String,
    look: Look,
    bands: Vec<Band>,
    max_ns: Option<i64>,
}

/// The latest of all units; `None` while that of one is not known.
fn latest_of_all(units: &[Block]) -> Option<i64> {
    let each = units.iter().filter(|u| u.n > 0).map(|u| u.max_ns);
    each.collect::<Option<Vec<i64>>>()?.into_iter().max()
}

/// Bands of every system; `None` if one has no units.
fn banded(answer: &Answer) -> Option<Vec<Banded>> {
    let edges = edges(BAND_BINS, 1);
    let one = |(i, system): (usize, &tailbound_stats::compare::System)| {
        let units = system.units.as_ref().ok().filter(|u| u.len() > 1)?;
        Some(Banded {
            name: system.name.clone(),
            look: Look::Nth(i),
            bands: bands(units, &edges, &answer.settings),
            max_ns: latest_of_all(units),
        })
    };
    answer.systems.systems.iter().enumerate().map(one).collect()
}

fn x_scale(systems: &[Banded], deadline_ns: Option<i64>) -> Option<Scale> {
    let all = || systems.iter().flat_map(|s| &s.bands);
    let low = all().map(|b| b.low_ns).min()?.max(1).real();
    let high = all().map(|b| b.high_ns).max()?.real();
    let near = deadline_ns.map(|d| d.real()).filter(|d| *d < high * 1e3 && *d > low * 1e-3);
    Some(Scale::log(
        round_down_125(near.map_or(low, |d| d.min(low))),
        round_up_125(near.map_or(high, |d| d.max(high))),
        Unit::Ns,
    ))
}

fn histogram(answer: &Answer, systems: &[Banded]) -> Option<Figure> {
    let deadline_ns = answer.systems.deadline_ns;
    let x = x_scale(systems, deadline_ns)?;
    let all = || systems.iter().flat_map(|s| &s.bands);
    let least = all().map(|b| b.share[0]).filter(|s| *s > 0.0).reduce(f64::min)?;
    let most = all().map(|b| b.share[2].max(b.share[0])).reduce(f64::max)?;
    let floor = round_down_125(least / 2.0);
    let y = Scale::log(floor, round_up_125(most).min(1.0), Unit::Share);
    let draw = |layout: Layout| {
        let mut plot = Plot::new(layout, x, y, "latency", "share of activations in a bin");
        for s in systems {
            plot.name(&s.name, s.look);
            let mut area = Vec::new();
            for b in &s.bands {
                let (low, high) = (b.share[1].max(floor), b.share[2].max(floor));
                area.push((b.low_ns.max(1).real(), low, high));
                area.push((b.high_ns.real(), low, high));
            }
            plot.band(&area, s.look);
        }
        for s in systems {
            let steps: Vec<(f64, f64, f64)> = s
                .bands
                .iter()
                .map(|b| (b.low_ns.max(1).real(), b.high_ns.real(), b.share[0].max(floor)))
                .collect();
            plot.steps(&steps, s.look);
        }
        deadline(&mut plot, deadline_ns);
        plot.finish("Share of activations by latency, of each system")
    };
    let points = |s: &Banded| {
        let points: Vec<(f64, f64)> =
            s.bands.iter().map(|b| (b.low_ns.real(), b.share[0])).collect();
        points_json(&s.name, "survival", &points)
    };
    Some(Figure {
        id: "histogram",
        title: "Latency histogram".to_owned(),
        caption: "Share of activations by latency; both axes are logarithmic. The band of a line is where \
                  other rounds of the same system would put it, 95 % for each bin."
            .to_owned(),
        wide: draw(Layout::WIDE),
        narrow: draw(Layout::NARROW),
        table: table(systems, |b| b.share),
        series: systems.iter().map(points).collect(),
    })
}

fn survival(answer: &Answer, systems: &[Banded]) -> Option<Figure> {
    let deadline_ns = answer.systems.deadline_ns;
    let x = x_scale(systems, deadline_ns)?;
    let all = || systems.iter().flat_map(|s| &s.bands);
    let least = all().map(|b| b.later[0]).filter(|s| *s > 0.0).reduce(f64::min)?;
    let floor = round_down_125(least * 0.5);
    let y = Scale::log(floor, 1.0, Unit::Share);
    let draw = |layout: Layout| {
        let mut plot =
            Plot::new(layout, x, y, "latency", "share of activations this late or later");
        for s in systems {
            plot.name(&s.name, s.look);
            let at = |b: &Band| b.low_ns.max(1).real();
            let area: Vec<(f64, f64, f64)> = s
                .bands
                .iter()
                .map(|b| (at(b), b.later[1].max(floor), b.later[2].clamp(floor, 1.0)))
                .collect();
            plot.band(&area, s.look);
        }
        for s in systems {
            let mut line: Vec<Option<(f64, f64)>> = s
                .bands
                .iter()
                .map(|b| (b.later[0] > 0.0).then(|| (b.low_ns.max(1).real(), b.later[0])))
                .collect();
            let last = s.bands.last().zip(s.max_ns);
            let dot: Vec<(f64, f64)> =
                last.map(|(b, max)| (max.real(), b.later[0])).into_iter().collect();
            line.extend(dot.first().copied().map(Some));
            plot.line(&line, s.look);
            plot.dots(&dot, s.look, DotSize::Large);
        }
        deadline(&mut plot, deadline_ns);
        plot.finish("Share of activations later than a value, of each system")
    };
    let points = |s: &Banded| {
        let points: Vec<(f64, f64)> =
            s.bands.iter().map(|b| (b.low_ns.real(), b.later[0])).collect();
        points_json(&s.name, "survival", &points)
    };
    Some(Figure {
        id: "survival",
        title: "Exceedance (complementary CDF)".to_owned(),
        caption: "Where a line meets the deadline, its height is the share that came too late; a dot is the latest \
                  of all. Bands as above."
            .to_owned(),
        wide: draw(Layout::WIDE),
        narrow: draw(Layout::NARROW),
        table: table(systems, |b| b.later),
        series: systems.iter().map(points).collect(),
    })
}

fn deadline(plot: &mut Plot, deadline_ns: Option<i64>) {
    if let Some(d) = deadline_ns {
        plot.rule_x(d.real(), &format!("deadline {}", crate::digest::exactly(d)));
    }
}

fn table(systems: &[Banded], of: impl Fn(&Band) -> [f64; 3]) -> Table {
    let mut table = Table::new(&["from"]);
    table.head.extend(systems.iter().map(|s| s.name.clone()));
    let mut at: Vec<u64> = systems.iter().flat_map(|s| s.bands.iter().map(|b| b.low_ns)).collect();
    at.sort_unstable();
    at.dedup();
    for low in at {
        let mut row = vec![format_ns_i64(low.cast_signed())];
        for s in systems {
            let found = s.bands.iter().find(|b| b.low_ns == low).map(&of);
            row.push(found.map_or_else(
                || "none".to_owned(),
                |[best, from, to]| {
                    let share =
                        |v: f64| if v > 0.0 { Unit::Share.label(v) } else { "0".to_owned() };
                    format!("{} ({} to {})", share(best), share(from), share(to))
                },
            ));
        }
        table.row(row);
    }
    table
}

/// The shift curve of every difference, over one another.
fn shifts(answer: &Answer) -> Option<Figure> {
    let names = answer.systems.names();
    let known: Vec<(usize, &Difference)> = answer
        .differences
        .iter()
        .enumerate()
        .filter_map(|(i, d)| Some((i + 1, d.as_ref().ok().filter(|d| d.shift.len() > 1)?)))
        .collect();
    let all = || known.iter().flat_map(|(_, d)| &d.shift);
    let margin = answer.settings.margin.relative;
    let low = all()
        .map(|p| p.ratio.simultaneous[0])
        .reduce(f64::min)?
        .min(1.0 / (1.0 + margin))
        .max(0.01);
    let high =
        all().map(|p| p.ratio.simultaneous[1]).reduce(f64::max)?.max(1.0 + margin).min(100.0);
    let one_in = |p: &ShiftPoint| 1.0 / (1.0 - p.probability);
    let last = all().map(one_in).reduce(f64::max)?;
    let x = Scale::log(1.0, round_up_125(last), Unit::Count);
    let y = if high / low > 8.0 {
        Scale::log(round_down_125(low), round_up_125(high), Unit::Ratio)
    } else {
        let room = (high - low) * 0.06;
        Scale::linear((low - room).max(0.0), high + room, Unit::Ratio)
    };
    let (first, _) = names.split_first()?;
    let name = |i: usize| names.get(i).cloned().unwrap_or_default();
    let draw = |layout: Layout| {
        let words = format!("quantile over that of {first}");
        let mut plot = Plot::new(layout, x, y, "one activation in N is later", &words);
        // The margin in the colour of all.
        let inside = [1.0, x.hi()].map(|at| (at, 1.0 / (1.0 + margin), 1.0 + margin));
        plot.band(&inside, Look::Total);
        for (i, d) in &known {
            let look = Look::Nth(*i);
            plot.name(&name(*i), look);
            let band = |of: fn(&ShiftPoint) -> [f64; 2]| -> Vec<(f64, f64, f64)> {
                d.shift.iter().map(|p| (one_in(p), of(p)[0], of(p)[1])).collect()
            };
            plot.band(&band(|p| p.ratio.simultaneous), look);
            plot.band(&band(|p| p.ratio.pointwise), look);
        }
        plot.line(&[Some((1.0, 1.0)), Some((x.hi(), 1.0))], Look::TotalDashed);
        for (i, d) in &known {
            let line: Vec<Option<(f64, f64)>> =
                d.shift.iter().map(|p| Some((one_in(p), p.ratio.estimate))).collect();
            plot.line(&line, Look::Nth(*i));
        }
        plot.finish("Ratio of quantiles to those of the first system")
    };
    let mut table =
        Table::new(&["quantile", "system", "ratio", "pointwise", "simultaneous"]).with_words(&[1]);
    for (i, d) in &known {
        for p in &d.shift {
            let two = |[a, b]: [f64; 2]| format!("{a:.3} to {b:.3}");
            table.row(vec![
                label((p.probability * 1e6).round() / 1e6),
                name(*i),
                format!("{:.3}", p.ratio.estimate),
                two(p.ratio.pointwise),
                two(p.ratio.simultaneous),
            ]);
        }
    }
    let series = known.iter().map(|(i, d)| {
        let points: Vec<(f64, f64)> =
            d.shift.iter().map(|p| (one_in(p), p.ratio.estimate)).collect();
        points_json(&name(*i), "survival", &points)
    });
    Some(Figure {
        id: "shift",
        title: format!("How many times as late as {first}"),
        caption: "Above 1 a system is later. The dark band holds each point at 95 %, the light one the whole curve \
                  at once; the grey one is the relative margin: within it a difference does not matter."
            .to_owned(),
        wide: draw(Layout::WIDE),
        narrow: draw(Layout::NARROW),
        table,
        series: series.collect(),
    })
}
