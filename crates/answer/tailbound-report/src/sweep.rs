// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latency by interval: does the period hide idle states, or keep in step with something?
//!
//! Units: ns in, people's units out.
//! Each step is one run on even intervals and, where asked for, one on random ones around them.
//! Not here: making the runs.

use serde_json::{Value, json};
use tailbound_core::Run;
use tailbound_core::number::Real as _;
use tailbound_core::units::format_ns;
use tailbound_stats::quantile::quantile;
use tailbound_stats::sweep::Step;

use crate::html::page::Page;
use crate::pictures::{Figure, points_json};
use crate::svg::plot::{DotSize, Look};
use crate::svg::scale::{round_down_125, round_up_125};
use crate::svg::{Layout, Plot, Scale, Unit};
use crate::table::{Table, wrap};

/// Version of the JSON.
pub const SCHEMA: &str = "tailbound-sweep/1";

/// Quantiles of the table and the picture.
const QUANTILES: [(f64, &str); 2] = [(0.5, "p50"), (0.99, "p99")];

/// A figure of a run, per due activation; `None` where there are too few.
fn figure_of(run: &Run, p: f64) -> Option<f64> {
    quantile(&run.judged_total().1, p).ns()
}

fn max_of(run: &Run) -> Option<f64> {
    run.judged_total().1.max_ns.map(|ns| ns.real())
}

/// What the steps say, in a sentence or two.
#[must_use]
pub fn sentence(steps: &[Step]) -> String {
    let known: Vec<(&Step, f64)> =
        steps.iter().filter_map(|s| Some((s, figure_of(&s.even, 0.5)?))).collect();
    let (Some((short, least)), Some((long, most))) = (known.first(), known.last()) else {
        return "No step has enough activations for a median: give each more time.".to_owned();
    };
    let mut text = format!(
        "The median at {} is {} times the one at {} ({}, {}).",
        format_ns(long.interval_ns.real()),
        trimmed(most / least.max(1.0)),
        format_ns(short.interval_ns.real()),
        format_ns(*most),
        format_ns(*least)
    );
    let moved = known.iter().filter_map(|(s, even)| {
        let spread = figure_of(s.spread.as_ref()?, 0.5)?;
        Some((s, spread / even.max(1.0)))
    });
    let farthest = moved.max_by(|a, b| a.1.ln().abs().total_cmp(&b.1.ln().abs()));
    if let Some((step, ratio)) = farthest {
        text.push_str(&format!(
            " Random intervals move it most at {}: to {} times.",
            format_ns(step.interval_ns.real()),
            trimmed(ratio)
        ));
    }
    text
}

fn trimmed(v: f64) -> String {
    crate::svg::scale::trimmed(v, 2)
}

/// What to make of it.
pub const EXPLANATION: &str = "Longer intervals leave a CPU time to sleep more deeply, and to be slow to wake: where the median grows with \
    the interval, measure at the interval of your own program. Where random intervals differ from even ones, the even ones may be in step with \
    something (a tick, another timer, what an idle governor has learnt), and a program that is not will see the random figure. \
    Steps are single runs: a difference counts where it is larger than what a second sweep shows.";

/// One row per step.
#[must_use]
pub fn table(steps: &[Step]) -> Table {
    let with_spread = steps.iter().any(|s| s.spread.is_some());
    let mut head = vec!["interval", "n", "missed", "p50", "p99", "max"];
    if with_spread {
        head.extend(["random p50", "p99", "max"]);
    }
    let mut table = Table::new(&head);
    let shown = |v: Option<f64>| v.map_or("too few".to_owned(), format_ns);
    for s in steps {
        let (woken, due) = s.even.judged_total();
        let mut row = vec![
            format_ns(s.interval_ns.real()),
            due.n.to_string(),
            due.n.saturating_sub(woken.n).to_string(),
        ];
        row.extend(QUANTILES.map(|(p, _)| shown(figure_of(&s.even, p))));
        row.push(shown(max_of(&s.even)));
        if with_spread {
            let of = |p| shown(s.spread.as_ref().and_then(|r| figure_of(r, p)));
            row.extend(QUANTILES.map(|(p, _)| of(p)));
            row.push(shown(s.spread.as_ref().and_then(max_of)));
        }
        table.row(row);
    }
    table
}

/// For terminals and pipes.
#[must_use]
pub fn text(steps: &[Step]) -> String {
    let mut lines = wrap(&sentence(steps), 80, "  ");
    lines.push(String::new());
    lines.extend(table(steps).text(80));
    lines.push(String::new());
    lines.extend(wrap(EXPLANATION, 80, ""));
    lines.join("\n") + "\n"
}

/// For scripts: ns, `null` where there are too few activations.
#[must_use]
pub fn json(steps: &[Step]) -> Value {
    let one = |run: &Run| {
        let (woken, due) = run.judged_total();
        json!({
            "n": due.n,
            "missed": due.n.saturating_sub(woken.n),
            "p50_ns": figure_of(run, 0.5),
            "p99_ns": figure_of(run, 0.99),
            "max_ns": due.max_ns,
            "outcome": run.verdict.as_ref().map(|v| v.outcome),
        })
    };
    let steps_json: Vec<Value> = steps
        .iter()
        .map(|s| {
            json!({
                "interval_ns": s.interval_ns,
                "even": one(&s.even),
                "random": s.spread.as_ref().map(one),
            })
        })
        .collect();
    json!({ "schema": SCHEMA, "sentence": sentence(steps), "steps": steps_json })
}

type Curve = (String, Look, Vec<Option<(f64, f64)>>);

fn curves(steps: &[Step]) -> Vec<Curve> {
    let line = |of: &dyn Fn(&Step) -> Option<f64>| -> Vec<Option<(f64, f64)>> {
        steps.iter().map(|s| Some((s.interval_ns.real(), of(s).filter(|v| *v > 0.0)?))).collect()
    };
    let mut all: Vec<Curve> = Vec::new();
    for (colour, (p, name)) in QUANTILES.iter().enumerate() {
        let even = line(&|s| figure_of(&s.even, *p));
        all.push(((*name).to_owned(), Look::Pair { colour, dash: 0 }, even));
        let spread = line(&|s| figure_of(s.spread.as_ref()?, *p));
        all.push((format!("{name}, random"), Look::Pair { colour, dash: 1 }, spread));
    }
    let colour = QUANTILES.len();
    let even = line(&|s| max_of(&s.even));
    all.push(("max".to_owned(), Look::Pair { colour, dash: 0 }, even));
    let spread = line(&|s| max_of(s.spread.as_ref()?));
    all.push(("max, random".to_owned(), Look::Pair { colour, dash: 1 }, spread));
    all.retain(|(_, _, points)| points.iter().any(Option::is_some));
    all
}

/// Latency over interval, both axes logarithmic; `None` without a figure to draw.
#[must_use]
pub fn figure(steps: &[Step]) -> Option<Figure> {
    let curves = curves(steps);
    let values = || curves.iter().flat_map(|c| c.2.iter().flatten());
    let span = |of: fn(&(f64, f64)) -> f64| {
        Some((values().map(of).reduce(f64::min)?, values().map(of).reduce(f64::max)?))
    };
    let ((left, right), (low, high)) = (span(|p| p.0)?, span(|p| p.1)?);
    let x = Scale::log(left * 0.95, right * 1.05, Unit::Ns);
    let y = Scale::log(round_down_125(low * 0.95), round_up_125(high * 1.05), Unit::Ns);
    let draw = |layout: Layout| {
        let mut plot = Plot::new(layout, x, y, "interval", "latency");
        for (name, look, points) in &curves {
            plot.name(name, *look);
            plot.line(points, *look);
            plot.dots(&points.iter().flatten().copied().collect::<Vec<_>>(), *look, DotSize::Small);
        }
        plot.finish("Latency over the interval of the schedule, by quantile")
    };
    let series: Vec<Value> = curves
        .iter()
        .map(|(name, _, points)| {
            points_json(name, "line", &points.iter().flatten().copied().collect::<Vec<_>>())
        })
        .collect();
    Some(Figure {
        id: "sweep",
        title: "Latency by interval".to_owned(),
        caption: format!("{} Dashed: random intervals around the same mean.", sentence(steps)),
        wide: draw(Layout::WIDE),
        narrow: draw(Layout::NARROW),
        table: table(steps),
        series: json!(series),
    })
}

/// One page that needs nothing else.
#[must_use]
pub fn html(steps: &[Step]) -> String {
    let mut page = Page::default();
    page.push("<h1>Latency by interval</h1>");
    if let Some(f) = figure(steps) {
        page.figure(&f, "sweep");
    }
    page.text("soft", EXPLANATION);
    page.finish("latency by interval", &[json(steps)])
}
