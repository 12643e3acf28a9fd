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

impl TerminalSize {
    /// A number of columns that a table can be set in, as a user gives it.
    #[must_use]
    pub fn columns_of(text: &str) -> Option<usize> {
        text.trim().parse().ok().filter(|columns| (20..=1000).contains(columns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_a_number_that_tables_can_be_set_in() {
        assert_eq!(TerminalSize::columns_of("132"), Some(132));
        for none in ["", "0", "19", "1001", "-5", "wide"] {
            assert_eq!(TerminalSize::columns_of(none), None, "{none}");
        }
    }
}
