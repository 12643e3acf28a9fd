// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of probes that have no limits: a value, its unit, and what it is.
//!
//! Not here: figures with limits, which each probe makes where it knows them.

use tailbound_core::record::FigureRecord;

/// A figure of the probe.
pub(crate) fn figure(
    name: impl Into<String>,
    value: f64,
    unit: &str,
    note: impl Into<String>,
) -> FigureRecord {
    FigureRecord {
        name: name.into(),
        value,
        unit: unit.to_owned(),
        note: note.into(),
        ..FigureRecord::default()
    }
}

/// A figure of one CPU.
pub(crate) fn of_cpu(
    name: &str,
    cpu: u32,
    value: f64,
    unit: &str,
    note: impl Into<String>,
) -> FigureRecord {
    figure(format!("{name}-cpu{cpu}"), value, unit, note)
}
