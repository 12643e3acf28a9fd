// SPDX-License-Identifier: MIT OR Apache-2.0
//! The legend above a picture whose bars have a meaning by colour and height.
//!
//! Units: CSS pixels. Not here: the legend of a plot's lines ([`super::Plot`]).

use std::fmt::Write as _;

use tailbound_core::number::Real as _;

use super::canvas::LETTER;
use super::scale::number;
use crate::escape::xml;

const ROW: f64 = 18.0;
const BELOW: f64 = 8.0;
/// How high a legend of one row is.
pub(crate) const ONE_ROW: f64 = ROW + BELOW;

/// What one colour means.
#[derive(Debug)]
pub(crate) struct LegendEntry<'a> {
    /// Attributes of the bar that say how it is painted: `class="span c1"`.
    pub(crate) paint: String,
    /// How high the bar is.
    pub(crate) height: f64,
    pub(crate) words: &'a str,
}

/// The entries in as many rows as they need in `width`, and how high that came out.
pub(crate) fn legend<'a>(
    entries: impl IntoIterator<Item = LegendEntry<'a>>,
    width: f64,
) -> (String, f64) {
    let mut out = String::new();
    let (mut x, mut rows) = (4.0, 0.0);
    for LegendEntry { paint, height, words } in entries {
        let length = 30.0 + words.chars().count().real() * LETTER;
        if rows == 0.0 || x > 4.0 && x + length > width {
            (x, rows) = (4.0, rows + 1.0);
        }
        let y = (rows - 1.0) * ROW + 14.0;
        let _ = write!(
            out,
            "<rect {paint} x=\"{}\" y=\"{}\" width=\"13\" height=\"{}\"/><text x=\"{}\" y=\"{}\">{}</text>",
            number(x),
            number(y - height),
            number(height),
            number(x + 18.0),
            number(y),
            xml(words)
        );
        x += length;
    }
    (out, rows * ROW + BELOW)
}
