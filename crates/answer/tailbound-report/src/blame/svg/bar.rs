// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of a latency as a bar below the lanes: colours are phases, whose names stand below it, and
//! below those the causes, as far as there is room.
//!
//! Units: ns across.

use std::fmt::Write as _;

use tailbound_core::blame::BlameRecord;
use tailbound_core::number::Whole as _;
use tailbound_core::units::format_ns_i64;

use super::super::rows;
use super::{Across, Band, LETTER, PictureSpan, look, marks, rect};
use crate::escape::xml;
use crate::svg::number;
use crate::table::cut;

/// Height of all of it.
pub(super) const HEIGHT: f64 = 58.0;
/// Where the bar itself ends.
pub(super) const BAR_END: f64 = 24.0;
const BAR_BEGIN: f64 = 8.0;

/// Draws the parts of `record`, from `top` on.
pub(super) fn draw(out: &mut String, record: &BlameRecord, across: &Across, top: f64) {
    let _ = write!(
        out,
        "<text class=\"name\" x=\"4\" y=\"{}\">parts</text>",
        number(top + BAR_END - 4.0)
    );
    let mut last = i64::MIN;
    for p in &record.parts {
        let words = rows::what(&p.cause.sentence(&p.who), p.sureness);
        let span = PictureSpan { from_ns: p.from_ns, to_ns: p.from_ns.saturating_add(p.ns) };
        let tip = format!("{}, {}: {words}", p.phase, format_ns_i64(p.ns));
        let band = Band { top: top + BAR_BEGIN, height: BAR_END - BAR_BEGIN };
        let colour = look::colour(p.phase);
        let Some(shape) = rect(across, span, band, colour, &tip, &mut last) else { continue };
        out.push_str(&shape);
        label(out, across, span, top + BAR_END + 27.0, &words);
        // A line of the background keeps parts of one phase apart.
        let _ = write!(
            out,
            "<path d=\"M{} {}v{}\" style=\"stroke:var(--bg)\"/>",
            number(across.px(span.to_ns)),
            number(band.top),
            number(band.height)
        );
    }
    for (phase, from_ns, to_ns) in marks::phases(record) {
        label(out, across, PictureSpan { from_ns, to_ns }, top + BAR_END + 13.0, phase.as_str());
    }
}

/// Words at the begin of a span, cut to its width; nothing where not even a short word fits.
fn label(out: &mut String, across: &Across, span: PictureSpan, y: f64, words: &str) {
    let x = across.px(span.from_ns);
    let room = ((across.px(span.to_ns) - x) / LETTER).floor().whole_usize();
    if room >= 5 || room >= words.chars().count() {
        let _ = write!(
            out,
            "<text x=\"{}\" y=\"{}\">{}</text>",
            number(x + 1.0),
            number(y),
            xml(&cut(words, room))
        );
    }
}
