// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run as pages show it, and how it is read from a row.
//!
//! Units: ns; times are RFC 3339 in UTC.

use tailbound_core::printable::excerpt;

use crate::summary::{LONG_CHARS, TEXT_CHARS};
use crate::value::Value;

/// A run as pages show it.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct RunRow {
    /// SHA-256 of its file.
    pub id: String,
    /// Which system.
    pub system: String,
    /// When it began; where its clock cannot be right, when it arrived.
    pub started: String,
    /// What its clock said, where that cannot be right.
    pub clock_said: Option<String>,
    /// Kernel's release.
    pub kernel: Option<String>,
    /// What else followed from the kernel: `kernel.id`.
    pub kernel_id: String,
    /// `workload.id`: runs of a series have the same.
    pub workload: String,
    /// Probe with its options.
    pub probe: String,
    /// Loads.
    pub loads: String,
    /// Verdict in a word.
    pub outcome: String,
    /// Names of the findings that count against it.
    pub reasons: String,
    /// How long it measured.
    pub measured_ns: i64,
    /// Due activations.
    pub activations: i64,
    /// Required; `None`: nothing.
    pub deadline_ns: Option<i64>,
    /// Median, 99 %, 99.9 %, 99.99 %, 99.999 % and the latest, where known.
    pub quantiles_ns: [Option<i64>; 6],
    /// 90 %.
    pub p90_ns: Option<i64>,
    /// The median of the latest of each second.
    pub block_max_ns: Option<i64>,
    /// Name and version of what measured.
    pub tool: String,
}

impl RunRow {
    /// The latest activation.
    #[must_use]
    pub fn max_ns(&self) -> Option<i64> {
        self.quantiles_ns.last().copied().flatten()
    }
}

pub(crate) const RUN: &str = "SELECT run.id, run.system, run.started, kernel.release, run.kernel, run.workload, workload.probe, workload.loads, run.outcome, \
    run.reasons, run.measured_ns, run.activations, run.deadline_ns, run.p50_ns, run.p99_ns, run.p999_ns, run.p9999_ns, run.p99999_ns, run.max_ns, \
    run.clock_said, run.p90_ns, run.block_max_ns, run.tool FROM run JOIN kernel ON kernel.id = run.kernel JOIN workload ON workload.id = run.workload";

/// A text; empty where there is none.
pub(crate) fn text(row: &[Value], at: usize) -> String {
    word(row, at).unwrap_or_default()
}

/// A text as it may be shown: stores of earlier versions have some of any length.
pub(crate) fn word(row: &[Value], at: usize) -> Option<String> {
    let found = row.get(at).and_then(Value::text)?;
    Some(if found.len() <= TEXT_CHARS { found.to_owned() } else { excerpt(found, LONG_CHARS) })
}

/// A whole number.
pub(crate) fn int(row: &[Value], at: usize) -> Option<i64> {
    row.get(at).and_then(Value::int)
}

/// From a row of [`RUN`].
pub(crate) fn run_row(row: &[Value]) -> RunRow {
    RunRow {
        id: text(row, 0),
        system: text(row, 1),
        started: text(row, 2),
        kernel: word(row, 3).map(|release| excerpt(&release, TEXT_CHARS)),
        kernel_id: text(row, 4),
        workload: text(row, 5),
        probe: text(row, 6),
        loads: text(row, 7),
        outcome: text(row, 8),
        reasons: text(row, 9),
        measured_ns: int(row, 10).unwrap_or(0),
        activations: int(row, 11).unwrap_or(0),
        deadline_ns: int(row, 12),
        quantiles_ns: [13, 14, 15, 16, 17, 18].map(|at| int(row, at)),
        clock_said: row.get(19).and_then(Value::text).map(str::to_owned),
        p90_ns: int(row, 20),
        block_max_ns: int(row, 21),
        tool: text(row, 22),
    }
}
