// SPDX-License-Identifier: MIT OR Apache-2.0
//! The picture of one sample: a lane per CPU over the time since the due time, and below them the
//! parts of the latency.
//!
//! Units: ns across. What is narrower than a pixel is drawn one pixel wide, and of
//! several such in one pixel only the first: a picture stays small whatever its file holds.
//! Not here: the same in letters (`lanes`).

mod bar;
mod legend;

use std::fmt::Write as _;
use tailbound_core::order;

use serde_json::Value;
use tailbound_core::blame::{BlameLane, BlameRecord};
use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::units::format_ns_i64;

use super::marks::PictureSpan;
use super::nest::{Nested, nested};
use super::{PICTURES_MAX, look, marks, title};
use crate::escape::xml;
use crate::pictures::Figure;
use crate::svg::canvas::{AxisGrid, Canvas, LETTER};
use crate::svg::number;
use crate::svg::{Layout, Scale, Unit};
use crate::table::Table;

const ROW: f64 = 30.0;
const RIGHT: f64 = 14.0;
/// Most rows of the table of what the CPUs did.
const ROWS_MAX: usize = 200;

/// Names of the pictures of a page.
const IDS: [&str; PICTURES_MAX] = [
    "blame-1", "blame-2", "blame-3", "blame-4", "blame-5", "blame-6", "blame-7", "blame-8",
    "blame-9", "blame-10", "blame-11", "blame-12",
];

/// The picture of `record`, the `nth` of its page, counted from 0.
#[must_use]
pub fn picture(record: &BlameRecord, nth: usize) -> Figure {
    picture_as(record, IDS.get(nth % PICTURES_MAX).copied().unwrap_or("blame"))
}

/// The same under a name of its own on its page.
pub(crate) fn picture_as(record: &BlameRecord, id: &'static str) -> Figure {
    let lanes = marks::lanes(record);
    let mut caption = if lanes.shown.is_empty() {
        "What the CPUs did then is not recorded.".to_owned()
    } else {
        "What interrupts is drawn over what it interrupted. Nothing is known of the gaps."
            .to_owned()
    };
    if let Some(words) = lanes.more_words() {
        caption = format!("{caption} {words}");
    }
    Figure {
        id,
        title: title(record),
        caption,
        wide: draw(record, Layout::WIDE),
        narrow: draw(record, Layout::NARROW),
        table: table(record),
        series: Value::Array(Vec::new()),
    }
}

/// What the CPUs did, the longest spans where there are too many.
fn table(record: &BlameRecord) -> Table {
    let spans = record.lanes.iter().flat_map(|l| l.spans.iter().map(move |s| (l.cpu, s)));
    let mut all: Vec<_> = spans.collect();
    order::by_key(&mut all, |(_, s)| std::cmp::Reverse(s.to_ns.saturating_sub(s.from_ns)));
    all.truncate(ROWS_MAX);
    order::by_key(&mut all, |(cpu, s)| (*cpu, s.from_ns));
    let mut table = Table::new(&["CPU", "what", "from", "to", "for"]).with_words(&[1]);
    for (cpu, s) in all {
        table.row(vec![
            format!("CPU {cpu}"),
            look::named(&s.activity, &s.who),
            format_ns_i64(s.from_ns),
            format_ns_i64(s.to_ns),
            format_ns_i64(s.to_ns.saturating_sub(s.from_ns)),
        ]);
    }
    table
}

/// Where times are across a picture.
struct Across {
    x: Scale,
    left: f64,
    width: f64,
}

impl Across {
    fn px(&self, ns: i64) -> f64 {
        self.left + self.x.at(ns.real()) * self.width
    }
}

/// Where something lies from top to bottom.
#[derive(Clone, Copy)]
struct Band {
    top: f64,
    height: f64,
}

/// One rectangle with its words; `None` where it is a pixel that `last` has already.
fn rect(
    across: &Across,
    span: PictureSpan,
    band: Band,
    colour: &str,
    words: &str,
    last: &mut i64,
) -> Option<String> {
    let (from, to) = (across.px(span.from_ns), across.px(span.to_ns));
    let width = (to - from).max(1.0);
    if width <= 1.0 {
        let pixel = from.floor().whole_i64();
        if pixel == *last {
            return None;
        }
        *last = pixel;
    }
    Some(format!(
        "<rect class=\"span\" style=\"fill:var(--{colour})\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
        number(from),
        number(band.top),
        number(width),
        number(band.height),
        xml(words)
    ))
}

fn draw(record: &BlameRecord, layout: Layout) -> String {
    let wide = layout.variant == Layout::WIDE.variant;
    let lanes = marks::lanes(record).shown;
    let longest = lanes.iter().map(|l| l.cpu.to_string().len() + 4).max().unwrap_or(0).max(5);
    let left = longest.real() * LETTER + 12.0;
    let shown = marks::window(record);
    let across = Across {
        x: Scale::linear(shown.from_ns.real(), shown.to_ns.real(), Unit::Ns),
        left,
        width: layout.width - left - RIGHT,
    };
    let (legend, legend_height) = legend::legend(&lanes, layout.width);
    // The words of the marks stand between legend and lanes.
    let top = legend_height + 16.0;
    let bottom = top + ROW * lanes.len().real();
    let end = bottom + bar::HEIGHT;
    let height = end + 38.0;
    let canvas = Canvas {
        variant: layout.variant,
        words: &title(record),
        width: layout.width,
        height,
        data: "",
    };
    let mut out = canvas.open();
    out.push_str(&legend);
    let (x, labels) = (&across.x, if wide { 9 } else { 4 });
    AxisGrid { x, left, width: across.width, top, bottom: end, labels }.draw(&mut out);
    for (i, lane) in lanes.iter().enumerate() {
        draw_lane(&mut out, lane, &across, top + ROW * (i.real() + 1.0) - 4.0, shown);
    }
    bar::draw(&mut out, record, &across, bottom);
    draw_marks(&mut out, record, &across, top, bottom + bar::BAR_END);
    let _ = write!(
        out,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">time since the due time</text></svg>",
        number(left + across.width / 2.0),
        number(end + 32.0),
    );
    out
}

fn draw_lane(out: &mut String, lane: &BlameLane, across: &Across, base: f64, shown: PictureSpan) {
    let _ = write!(
        out,
        "<text class=\"name\" x=\"4\" y=\"{}\">CPU {}</text><path class=\"tick\" d=\"M{} {b}H{}\"/>",
        number(base - 7.0),
        lane.cpu,
        number(across.left),
        number(across.left + across.width),
        b = number(base),
    );
    let spans = nested(lane.spans.iter().map(|s| (s.from_ns, s.to_ns)));
    let mut last = i64::MIN;
    // The inner ones are over the outer ones, also where those begin later.
    let mut in_order: Vec<&Nested> =
        spans.iter().filter(|n| n.to_ns > shown.from_ns && n.from_ns < shown.to_ns).collect();
    order::by_key(&mut in_order, |n| n.depth);
    for n in in_order {
        let Some(span) = lane.spans.get(n.at) else { continue };
        let (colour, share) = look::drawn(span.activity);
        let tall = ROW * share;
        let words = format!(
            "CPU {}: {} from {} for {}",
            lane.cpu,
            look::named(&span.activity, &span.who),
            format_ns_i64(span.from_ns),
            format_ns_i64(span.to_ns.saturating_sub(span.from_ns)),
        );
        let place =
            PictureSpan { from_ns: n.from_ns.max(shown.from_ns), to_ns: n.to_ns.min(shown.to_ns) };
        let band = Band { top: base - tall, height: tall };
        if let Some(shape) = rect(across, place, band, colour, &words, &mut last) {
            out.push_str(&shape);
        }
    }
}

/// Lines at due time, readiness and end, with their words; a word that would touch another is left out.
fn draw_marks(out: &mut String, record: &BlameRecord, across: &Across, top: f64, bottom: f64) {
    let ready = marks::ready_ns(record).filter(|r| *r > 0 && *r < record.latency_ns);
    let marks = [(0, "due"), (record.latency_ns, "end"), (ready.unwrap_or(0), "ready")];
    let mut taken: Vec<(f64, f64)> = Vec::new();
    for (ns, word) in marks.into_iter().take(if ready.is_some() { 3 } else { 2 }) {
        let at = across.px(ns);
        let half = word.len().real() * LETTER / 2.0 + 3.0;
        let _ = write!(
            out,
            "<path class=\"deadline\" d=\"M{} {}V{}\"/>",
            number(at),
            number(top - 3.0),
            number(bottom)
        );
        if taken.iter().all(|(from, to)| at + half < *from || at - half > *to) {
            taken.push((at - half, at + half));
            let middle = at.min(across.left + across.width + RIGHT - half);
            let _ = write!(
                out,
                "<text class=\"deadline-label\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{word}</text>",
                number(middle),
                number(top - 6.0)
            );
        }
    }
}
