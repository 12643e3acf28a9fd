// SPDX-License-Identifier: MIT OR Apache-2.0
//! How large a terminal is that something is drawn for.
//!
//! Units: character cells. Not here: asking a terminal (`tailbound-sys`).

/// The size of a terminal; by default that of one which does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Cells of a line.
    pub columns: usize,
    /// Lines.
    pub rows: usize,
}

impl Default for TerminalSize {
    fn default() -> Self {
        Self { columns: 80, rows: 24 }
    }
}
