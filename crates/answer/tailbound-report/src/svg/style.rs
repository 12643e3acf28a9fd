// SPDX-License-Identifier: MIT OR Apache-2.0
//! Colours, dashes and fonts: one style sheet for pictures alone and in pages, in light, dark and print.
//!
//! Series differ by colour *and* by dash, so that neither colour-blind
//! readers nor black-and-white printers lose one.
//! Source: Okabe and Ito, "Color Universal Design" (2008): the palette, darkened or
//! lightened where contrast with the background asked for it.

/// Number of colours; dashes change each time the colours have been used up.
pub const COLOURS: usize = 7;
const DASHES: [&str; 5] = ["", "8 2", "2 2.5", "9 3 2 3", "4 2"];

/// Colours of pictures and pages as custom properties.
pub const VARIABLES: &str = include_str!("variables.css");

/// Rules for the classes that pictures use.
pub const PICTURE: &str = include_str!("picture.css");

/// Classes of series `i`.
#[must_use]
pub fn class(i: usize) -> String {
    format!("c{}", i % COLOURS)
}

/// Dash pattern `n` as an attribute, empty for a solid line.
#[must_use]
pub fn nth_dash(n: usize) -> String {
    let pattern = DASHES.get(n % DASHES.len()).copied().unwrap_or("");
    if pattern.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{pattern}\"") }
}

/// Dash pattern of series `i` as an attribute, empty for a solid line.
///
/// The second series is dashed already: two CPUs are the commonest case, and in print
/// they must differ.
#[must_use]
pub fn dash(i: usize) -> String {
    let turn = i / COLOURS;
    nth_dash(turn + i % 2)
}
