// SPDX-License-Identifier: MIT OR Apache-2.0
//! The legend of a picture: the activities in it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use tailbound_core::blame::{Activity, BlameLane};
use tailbound_core::number::Real as _;

use super::{LETTER, look};
use crate::escape::xml;
use crate::svg::number;

const LEGEND_ROW: f64 = 18.0;
/// Most entries: a file may bring any number of words that this version does not know.
const ENTRIES_MAX: usize = 14;

/// The activities that occur, and how high their legend came out.
pub(super) fn legend(lanes: &[&BlameLane], width: f64) -> (String, f64) {
    let all: BTreeSet<Activity> = lanes.iter().flat_map(|l| &l.spans).map(|s| s.activity).collect();
    let mut out = String::new();
    let (mut x, mut row) = (4.0, 0.0);
    for activity in all.iter().take(ENTRIES_MAX) {
        let (colour, share) = look::drawn(*activity);
        let words = look::meaning(activity);
        let length = 20.0 + words.chars().count().real() * LETTER + 10.0;
        if x > 4.0 && x + length > width {
            (x, row) = (4.0, row + 1.0);
        }
        let (y, tall) = (row * LEGEND_ROW + 14.0, 15.0 * share);
        let _ = write!(
            out,
            "<rect class=\"span\" style=\"fill:var(--{colour})\" x=\"{}\" y=\"{}\" width=\"13\" height=\"{}\"/><text x=\"{}\" y=\"{}\">{}</text>",
            number(x),
            number(y - tall),
            number(tall),
            number(x + 18.0),
            number(y),
            xml(words)
        );
        x += length;
    }
    let rows = if all.is_empty() { 0.0 } else { row + 1.0 };
    (out, rows * LEGEND_ROW + 8.0)
}
