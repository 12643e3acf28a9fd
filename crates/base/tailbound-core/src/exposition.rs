// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of the Prometheus text format and of OpenMetrics, which share them.
//!
//! Units: as the names of the metrics say. Not here: which metrics there are.
//! Source: Prometheus, "Exposition formats", text format 0.0.4; the OpenMetrics specification 1.0.

use std::fmt::Write as _;

/// What precedes the samples of one metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family<'a> {
    /// Its name.
    pub name: &'a str,
    /// `gauge`, `counter`, `histogram`; of OpenMetrics also `info` and `stateset`.
    pub kind: &'a str,
    /// What it is, on one line.
    pub help: &'a str,
}

impl Family<'_> {
    /// As the text format 0.0.4 has it.
    pub fn text(&self, out: &mut String) {
        let Self { name, kind, help } = self;
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// As OpenMetrics has it; `unit` is the last word of the name, or empty.
    pub fn open_metrics(&self, out: &mut String, unit: &str) {
        let Self { name, kind, help } = self;
        let _ = writeln!(out, "# TYPE {name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(out, "# UNIT {name} {unit}");
        }
        let _ = writeln!(out, "# HELP {name} {help}");
    }
}

/// A text as the value of a label, without its quotes: backslash, quote and line feed are escaped.
#[must_use]
pub fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_stays_on_its_line_and_within_its_quotes() {
        assert_eq!(label("a\\b\"c\nd"), r#"a\\b\"c\nd"#);
    }
}
