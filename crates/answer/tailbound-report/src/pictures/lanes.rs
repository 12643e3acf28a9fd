// SPDX-License-Identifier: MIT OR Apache-2.0
//! Some tasks beside each other over a short time: who ran, who waited, who held the lock.
//!
//! Units: ns since the begin of the timeline across; one row per task.
//! States differ by height *and* by colour, so that neither colour-blind readers nor
//! black-and-white printers lose one; a state too short to be seen is one pixel wide.
//! Not here: the same in letters (`text::lanes`).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;
use tailbound_core::number::Real as _;
use tailbound_core::record::{Lane, TimelineRecord};
use tailbound_core::units::format_ns;

use super::Figure;
use crate::escape::xml;
use crate::svg::canvas::{AxisGrid, Canvas, LETTER};
use crate::svg::legend::{self, LegendEntry};
use crate::svg::number;
use crate::svg::{Layout, Scale, Unit};
use crate::table::Table;

/// Names of the pictures of a run: more are not drawn, and said to be left out.
const IDS: [&str; 6] = ["lanes-1", "lanes-2", "lanes-3", "lanes-4", "lanes-5", "lanes-6"];
const ROW: f64 = 34.0;
const RIGHT: f64 = 14.0;

/// How a state is drawn: class of its colour, height as a share of the row.
fn look(state: &str) -> (&'static str, f64) {
    match state {
        "running" => ("c0", 0.62),
        "holds" => ("c4", 0.62),
        "boosted" => ("c2", 0.62),
        "ready" => ("c6", 0.26),
        "blocked" => ("c1", 0.26),
        _ => ("c3", 0.44),
    }
}

/// What a state means, for the legend.
fn meaning(state: &str) -> &str {
    match state {
        "running" => "runs",
        "holds" => "runs and holds the lock",
        "boosted" => "runs at the inherited priority and holds the lock",
        "ready" => "ready, but has no CPU",
        "blocked" => "waits for the lock",
        other => other,
    }
}

/// The last moment of a timeline.
pub(crate) fn end_ns(timeline: &TimelineRecord) -> i64 {
    timeline.lanes.iter().flat_map(|l| &l.spans).map(|s| s.to_ns).max().unwrap_or(0)
}

/// The pictures of all timelines.
#[must_use]
pub fn lanes(timelines: &[TimelineRecord]) -> Vec<Figure> {
    timelines.iter().zip(IDS).map(|(t, id)| figure(t, id)).collect()
}

fn figure(timeline: &TimelineRecord, id: &'static str) -> Figure {
    let mut table = Table::new(&["task", "state", "from", "to", "for"]).with_words(&[1]);
    for lane in &timeline.lanes {
        for s in &lane.spans {
            table.row(vec![
                lane.name.clone(),
                s.state.clone(),
                format_ns(s.from_ns.real()),
                format_ns(s.to_ns.real()),
                format_ns(s.to_ns.saturating_sub(s.from_ns).real()),
            ]);
        }
    }
    Figure {
        id,
        title: timeline.title.clone(),
        caption: "The most urgent task is at the top. Nothing is known of the gaps: a task sees itself only while it runs.".to_owned(),
        wide: draw(timeline, Layout::WIDE),
        narrow: draw(timeline, Layout::NARROW),
        table,
        series: Value::Array(Vec::new()),
    }
}

fn name_and_note(lane: &Lane) -> String {
    match lane.note.as_str() {
        "" => lane.name.clone(),
        note => format!("{}, {note}", lane.name),
    }
}

fn draw(timeline: &TimelineRecord, layout: Layout) -> String {
    let wide = layout.variant == Layout::WIDE.variant;
    let label = |l: &Lane| if wide { name_and_note(l) } else { l.name.clone() };
    let names: Vec<String> = timeline.lanes.iter().map(label).collect();
    let longest = names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
    let left = (longest.real() * LETTER + 14.0).min(layout.width / 2.0);
    let width = layout.width - left - RIGHT;
    let (legend, top) = legend(timeline, layout.width);
    let bottom = top + ROW * timeline.lanes.len().real();
    let height = bottom + 38.0;
    let x = Scale::linear(0.0, end_ns(timeline).max(1).real(), Unit::Ns);
    let canvas = Canvas {
        variant: layout.variant,
        words: &timeline.title,
        width: layout.width,
        height,
        data: "",
    };
    let mut out = canvas.open();
    out.push_str(&legend);
    AxisGrid { x: &x, left, width, top, bottom, labels: if wide { 9 } else { 4 } }.draw(&mut out);
    for (i, (lane, name)) in timeline.lanes.iter().zip(&names).enumerate() {
        let base = top + ROW * (i.real() + 1.0) - 5.0;
        let _ = write!(
            out,
            "<text class=\"name\" x=\"4\" y=\"{}\">{}</text><path class=\"tick\" d=\"M{} {b}H{}\"/>",
            number(base - 8.0),
            xml(name),
            number(left),
            number(left + width),
            b = number(base),
        );
        for s in &lane.spans {
            let (class, share) = look(&s.state);
            let (from, to) = (x.at(s.from_ns.real()) * width, x.at(s.to_ns.real()) * width);
            let tall = ROW * share;
            let _ = write!(
                out,
                "<rect class=\"span {class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
                number(left + from),
                number(base - tall),
                number((to - from).max(1.0)),
                number(tall),
                xml(&format!(
                    "{}: {} for {}",
                    lane.name,
                    meaning(&s.state),
                    format_ns(s.to_ns.saturating_sub(s.from_ns).real())
                )),
            );
        }
    }
    let _ = write!(
        out,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">time since the begin of the trial</text></svg>",
        number(left + width / 2.0),
        number(bottom + 32.0),
    );
    out
}

/// The states that occur, and how high their legend came out.
fn legend(timeline: &TimelineRecord, width: f64) -> (String, f64) {
    let states: BTreeMap<&str, ()> =
        timeline.lanes.iter().flat_map(|l| &l.spans).map(|s| (s.state.as_str(), ())).collect();
    let entries = states.keys().map(|state| {
        let (class, share) = look(state);
        let paint = format!("class=\"span {class}\"");
        LegendEntry { paint, height: 16.0 * share, words: meaning(state) }
    });
    let (out, height) = legend::legend(entries, width);
    (out, height.max(legend::ONE_ROW))
}
