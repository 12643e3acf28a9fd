// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every picture begins with: the `svg` element with its background; and the grid of a horizontal axis.
//!
//! Units: CSS pixels. Not here: axes of a plot ([`super::Plot`]), legends.

use std::fmt::Write as _;

use super::scale::{Scale, number};
use crate::escape::xml;

/// Average advance of a letter at 11 px.
pub(crate) const LETTER: f64 = 6.4;

/// The `svg` element of a picture.
#[derive(Debug)]
pub(crate) struct Canvas<'a> {
    /// Class for style sheets: `wide` or `narrow`.
    pub(crate) variant: &'a str,
    /// What it shows, to those who do not see it.
    pub(crate) words: &'a str,
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// Further attributes, each after a space: numbers and words of ours.
    pub(crate) data: &'a str,
}

impl Canvas<'_> {
    /// The opened element with its background; content and `</svg>` follow.
    pub(crate) fn open(&self) -> String {
        format!(
            "<svg class=\"tb {}\" role=\"img\" aria-label=\"{}\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\"{}>\
             <rect class=\"back\" width=\"100%\" height=\"100%\"/>",
            self.variant,
            xml(self.words),
            self.data,
            w = number(self.width),
            h = number(self.height),
        )
    }
}

/// A horizontal axis without a plot around it: lines from `top` to `bottom`, and labels below.
#[derive(Debug)]
pub(crate) struct AxisGrid<'a> {
    pub(crate) x: &'a Scale,
    pub(crate) left: f64,
    pub(crate) width: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    /// About so many labels.
    pub(crate) labels: usize,
}

impl AxisGrid<'_> {
    /// Draws it.
    pub(crate) fn draw(&self, out: &mut String) {
        for tick in self.x.ticks(self.labels).iter().filter(|t| t.labelled) {
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{at} {}V{}\"/><text x=\"{at}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                number(self.top),
                number(self.bottom),
                number(self.bottom + 15.0),
                xml(&self.x.unit().label(tick.value)),
                at = number(self.left + self.x.at(tick.value) * self.width),
            );
        }
    }
}
