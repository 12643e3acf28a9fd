// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text under construction, in lines that fit a width.
//!
//! Not here: what a report says (`report`).

use tailbound_core::Outcome;

use super::ink::{Color, Ink, paint};
use crate::escape::terminal;
use crate::table::wrap;

/// How text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Of the text.
    pub color: Color,
    /// Columns of a line, at least 20.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self { color: Color::Off, width: 80 }
    }
}

/// Ink of an outcome.
#[must_use]
pub(crate) fn outcome_ink(o: Outcome) -> Ink {
    match o {
        Outcome::Met => Ink::Good,
        Outcome::NotMet => Ink::Bad,
        Outcome::Unfit | Outcome::Undecided | Outcome::Unknown(_) => Ink::Warn,
        Outcome::Measured => Ink::Bold,
    }
}

/// Lines under construction.
pub(crate) struct Page {
    style: Style,
    lines: Vec<String>,
}

impl Page {
    pub(crate) fn new(style: Style) -> Self {
        Self { style: Style { width: style.width.max(20), ..style }, lines: Vec::new() }
    }
    pub(crate) fn gap(&mut self) {
        if self.lines.last().is_some_and(|l| !l.is_empty()) {
            self.lines.push(String::new());
        }
    }
    /// A text, wrapped; lines after the first are indented.
    pub(crate) fn text(&mut self, text: &str, indent: &str, ink: Ink) {
        for line in wrap(&terminal(text), self.style.width, indent) {
            self.lines.push(paint(&line, ink, self.style.color));
        }
    }
    /// A heading above what follows.
    pub(crate) fn heading(&mut self, text: &str) {
        self.gap();
        self.text(text, "", Ink::Bold);
    }
    pub(crate) fn raw(&mut self, lines: Vec<String>, ink: Ink) {
        for line in lines {
            self.lines.push(paint(&terminal(&line), ink, self.style.color));
        }
    }
    pub(crate) fn width(&self) -> usize {
        self.style.width
    }
    pub(crate) fn finish(self) -> String {
        let mut out = self.lines.join("\n");
        out.push('\n');
        out
    }
}
