// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of late wake-ups, and from which lateness on it is asked for.

use tailbound_core::blame::{BlameRecord, KernelKind};
use tailbound_trace::blame::BlameSummary;

use crate::cli_blame::BlameArgs;
use crate::flags;
use crate::say::Failure;

/// What is known of late wake-ups, wherever it came from.
#[derive(Default)]
pub(crate) struct LateWakeups {
    /// What it is about.
    pub(crate) name: String,
    pub(crate) records: Vec<BlameRecord>,
    /// The kernel that they are of.
    pub(crate) kernel: KernelKind,
    /// Threads that were followed; none for a run file, which has its own figures.
    pub(crate) found: Option<BlameSummary>,
    /// What a reader must know.
    pub(crate) notes: Vec<String>,
    /// The file of another tool that it is from, in words.
    pub(crate) origin: Option<String>,
    /// The same for scripts.
    pub(crate) trace: Option<serde_json::Value>,
}

/// Those above this are asked for.
pub(crate) fn above_ns(args: &BlameArgs) -> Result<i64, Failure> {
    let ns = args.above.as_deref().map(|text| flags::time("--above", text)).transpose()?;
    Ok(ns.unwrap_or(0).max(0))
}
