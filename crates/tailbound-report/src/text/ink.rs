// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of coloured pieces that know their width without the colour.
//!
//! Context: COLD. Only the eight basic colours, bold and dim: they follow the user's own
//! palette. Not here: whether there is a terminal at all (the caller's `color`).
//! Source: ECMA-48, Select Graphic Rendition.

use crate::escape::terminal;
use crate::table::{columns, cut};

/// How a piece is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// As it comes.
    Plain,
    /// Strong.
    Bold,
    /// In the background.
    Dim,
    /// Good.
    Good,
    /// Bad.
    Bad,
    /// Doubtful.
    Warn,
    /// Neither good nor bad, but to be seen.
    Accent,
}

impl Ink {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Good => "1;32",
            Self::Bad => "1;31",
            Self::Warn => "1;33",
            Self::Accent => "36",
        }
    }
}

/// Writes `text` in `ink`, if colour is wanted.
#[must_use]
pub fn paint(text: &str, ink: Ink, color: bool) -> String {
    if color && ink != Ink::Plain && !text.is_empty() {
        format!("\u{1b}[{}m{text}\u{1b}[0m", ink.code())
    } else {
        text.to_owned()
    }
}

/// A line of pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InkLine(Vec<(String, Ink)>);

impl InkLine {
    /// A line of one piece.
    #[must_use]
    pub fn of(text: &str, ink: Ink) -> Self {
        Self::default().and(text, ink)
    }

    /// Adds a piece; control characters in it are made harmless.
    #[must_use]
    pub fn and(mut self, text: &str, ink: Ink) -> Self {
        self.0.push((terminal(text), ink));
        self
    }

    /// Columns it takes.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.0.iter().map(|(t, _)| columns(t)).sum()
    }

    /// The line, cut to `width` columns.
    #[must_use]
    pub fn render(&self, width: usize, color: bool) -> String {
        let mut out = String::new();
        let mut left = width;
        for (text, ink) in &self.0 {
            let piece = cut(text, left);
            left = left.saturating_sub(columns(&piece));
            out.push_str(&paint(&piece, *ink, color));
            if piece != *text {
                break;
            }
        }
        out
    }
}
