// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of coloured pieces that know their width without the colour.
//!
//! Only the eight basic colours, bold and dim: they follow the user's own
//! palette. Not here: whether there is a terminal at all (the caller's `color`).
//! Source: ECMA-48, Select Graphic Rendition.

use tailbound_core::printable;

use crate::escape::terminal;
use crate::site::TerminalLinks;
use crate::table::{columns, cut};

/// Whether text has escape sequences for colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    /// It has.
    On,
    /// It has none.
    #[default]
    Off,
}

impl Color {
    /// `On` where this holds.
    #[must_use]
    pub fn on_if(wanted: bool) -> Self {
        if wanted { Self::On } else { Self::Off }
    }
}

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
    /// Where a cursor is: colours exchanged.
    Chosen,
}

impl Ink {
    /// Those that have a colour or a weight.
    const SEEN: [Self; 7] =
        [Self::Bold, Self::Dim, Self::Good, Self::Bad, Self::Warn, Self::Accent, Self::Chosen];

    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Good => "1;32",
            Self::Bad => "1;31",
            Self::Warn => "1;33",
            Self::Accent => "36",
            Self::Chosen => "7",
        }
    }
}

/// Writes `text` in `ink`.
#[must_use]
pub fn paint(text: &str, ink: Ink, color: Color) -> String {
    match (ink, text, color) {
        (Ink::Plain, ..) | (_, "", _) | (.., Color::Off) => text.to_owned(),
        _ => format!("\u{1b}[{}m{text}\u{1b}[0m", ink.code()),
    }
}

/// Text that was written by [`paint`], free of everything else that a terminal would obey; its ids are links where the
/// terminal knows links.
#[must_use]
pub fn own_colors(text: &str, links: TerminalLinks) -> String {
    let mut pieces = text.split('\u{1b}');
    let harmless = |piece| links.within(printable::text(piece));
    let mut out = harmless(pieces.next().unwrap_or(""));
    for piece in pieces {
        let code = piece.strip_prefix('[').and_then(|rest| rest.split_once('m'));
        let rest = match code {
            Some((code, rest)) if code == "0" || Ink::SEEN.iter().any(|i| i.code() == code) => {
                out.push_str("\u{1b}[");
                out.push_str(code);
                out.push('m');
                rest
            }
            _ => {
                out.push(printable::REPLACEMENT);
                piece
            }
        };
        out.push_str(&harmless(rest));
    }
    out
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
    pub fn render(&self, width: usize, color: Color) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_houses_colours_pass() {
        let own: String = Ink::SEEN.iter().map(|ink| paint("x", *ink, Color::On)).collect();
        assert_eq!(own_colors(&own, TerminalLinks::Known), own);
        for hostile in
            ["\u{1b}[2J", "\u{1b}]0;t\u{7}", "\u{1b}[8m", "\u{1b}", "\u{9b}2J", "a\u{202e}"]
        {
            let shown = own_colors(&format!("{own}{hostile}"), TerminalLinks::Known);
            let rest = shown.strip_prefix(&own).unwrap_or_else(|| panic!("{shown:?}"));
            assert!(!rest.contains(printable::is_harmful), "{rest:?}");
        }
    }
}
