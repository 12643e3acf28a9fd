// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact paths as pictures: the legs of the latest wake-ups beside each other, and how likely a wake-up is later.
//!
//! Units: ns across.

use std::fmt::Write as _;

use serde_json::Value;
use tailbound_core::number::Real as _;
use tailbound_core::paths::{PathsRecord, WakeUpRecord};
use tailbound_core::units::{format_ns_i64, grouped};

use super::{ESTIMATE, begin, tables};
use crate::escape::xml;
use crate::pictures::{Figure, points_json};
use crate::svg::canvas::{AxisGrid, Canvas, LETTER};
use crate::svg::legend::{self, LegendEntry};
use crate::svg::number;
use crate::svg::plot::Look;
use crate::svg::scale::{round_down_125, round_up_125};
use crate::svg::{Layout, Plot, Scale, Unit, style};

const ROW: f64 = 30.0;
const BAR: f64 = 18.0;
const RIGHT: f64 = 14.0;

/// The latest wake-ups, a bar each, from the due time to the thread's own instructions.
pub(super) fn legs(paths: &PathsRecord) -> Option<Figure> {
    let latest = paths.wakeups.first()?;
    Some(Figure {
        id: "paths-legs",
        title: "Latest wake-ups, leg by leg".to_owned(),
        caption: format!(
            "Each begins with {}. The legs adjoin: their sum is the latency, to the ns.",
            begin(paths)
        ),
        wide: draw(paths, latest, Layout::WIDE),
        narrow: draw(paths, latest, Layout::NARROW),
        table: tables::wakeups(paths),
        series: Value::Array(Vec::new()),
    })
}

fn draw(paths: &PathsRecord, latest: &WakeUpRecord, layout: Layout) -> String {
    let names: Vec<String> = paths.wakeups.iter().map(|w| grouped(w.activation)).collect();
    let longest = names.iter().map(String::len).max().unwrap_or(0);
    let left = longest.real() * LETTER + 14.0;
    let width = layout.width - left - RIGHT;
    let (legend, top) = legend(latest, layout.width);
    let bottom = top + ROW * names.len().real();
    let height = bottom + 38.0;
    let x = Scale::linear(0.0, latest.latency_ns.max(1).real(), Unit::Ns);
    let canvas = Canvas {
        variant: layout.variant,
        words: "Latest wake-ups, leg by leg",
        width: layout.width,
        height,
        data: "",
    };
    let mut out = canvas.open();
    out.push_str(&legend);
    let labels = if layout == Layout::WIDE { 9 } else { 4 };
    AxisGrid { x: &x, left, width, top, bottom, labels }.draw(&mut out);
    for (row, (w, name)) in paths.wakeups.iter().zip(&names).enumerate() {
        let base = top + ROW * row.real() + (ROW - BAR) / 2.0;
        let _ = write!(
            out,
            "<text class=\"name\" x=\"4\" y=\"{}\">{}</text>",
            number(base + BAR - 5.0),
            xml(name)
        );
        let mut from_ns = 0;
        for (nth, leg) in w.legs.iter().enumerate() {
            let (from, to) =
                (x.at(from_ns.real()) * width, x.at((from_ns + leg.ns).real()) * width);
            from_ns += leg.ns;
            let _ = write!(
                out,
                "<rect class=\"span {}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{BAR}\"><title>{}</title></rect>",
                style::class(nth),
                number(left + from),
                number(base),
                number((to - from).max(0.0)),
                xml(&format!("{}: {}", leg.name, format_ns_i64(leg.ns))),
            );
        }
    }
    let _ = write!(
        out,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">time from {} on; a bar for each activation</text></svg>",
        number(left + width / 2.0),
        number(bottom + 32.0),
        begin(paths),
    );
    out
}

/// Colours of the legs, and how high their legend came out.
fn legend(latest: &WakeUpRecord, width: f64) -> (String, f64) {
    let entries = latest.legs.iter().enumerate().map(|(nth, leg)| {
        let paint = format!("class=\"span {}\"", style::class(nth));
        LegendEntry { paint, height: 10.0, words: &leg.name }
    });
    let (out, height) = legend::legend(entries, width);
    (out, height.max(legend::ONE_ROW))
}

/// P(later than x) of the samples and of all instants.
pub(super) fn curve(paths: &PathsRecord) -> Option<Figure> {
    let of = |share: fn(&tailbound_core::paths::CurvePoint) -> f64| -> Vec<(f64, f64)> {
        let all = paths.curve.iter().map(|p| (p.ns.real(), share(p)));
        all.filter(|(ns, share)| *ns > 0.0 && *share > 0.0).collect()
    };
    let (samples, instants) = (of(|p| p.samples), of(|p| p.instants));
    let all = || samples.iter().chain(&instants);
    let low = all().map(|p| p.0).reduce(f64::min)?;
    let high = all().map(|p| p.0).reduce(f64::max)?;
    let least = all().map(|p| p.1).reduce(f64::min)?;
    if high <= low {
        return None;
    }
    let lines =
        [("samples", Look::Nth(0), &samples), ("any instant (estimate)", Look::Nth(1), &instants)];
    let draw = |layout: Layout| {
        let x = Scale::log(round_down_125(low), round_up_125(high * 1.02), Unit::Ns);
        let y = Scale::log(round_down_125(least * 0.8), 1.0, Unit::Share);
        let mut plot = Plot::new(layout, x, y, "latency", "share that is later than this");
        for (name, look, points) in lines {
            plot.name(name, look);
            let points: Vec<Option<(f64, f64)>> = points.iter().copied().map(Some).collect();
            plot.line(&points, look);
        }
        plot.finish("Share of samples, and of all instants, that are later than a value")
    };
    Some(Figure {
        id: "paths-curve",
        title: "How likely a wake-up is later".to_owned(),
        caption: ESTIMATE.to_owned(),
        wide: draw(Layout::WIDE),
        narrow: draw(Layout::NARROW),
        table: tables::curve(paths),
        series: lines.iter().map(|(name, _, points)| points_json(name, "line", points)).collect(),
    })
}
