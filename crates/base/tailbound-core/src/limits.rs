// SPDX-License-Identifier: MIT OR Apache-2.0
//! How large a file of anybody's, and what is in it, may be. What is beyond is refused once, when
//! it is read, so that nothing behind the readers needs to think of overflows.
//!
//! Units: as the names say. Documentation: docs/run-file.md, section Limits (a test
//! holds the two together). Importers have limits of their own formats beside these.
//! Not here: which number of which record each limit is for ([`crate::line_limits`]), the readers (`runfile::read`, `tailbound-import`), opening files (`tailbound-sys`).

use crate::units::grouped;

/// Longest line of a run file: a histogram of every bucket is below 1 MiB.
pub const LINE_BYTES_MAX: usize = 8 << 20;
/// Longest text of words: campaign, target, matrix, answers, JSON of ours that is no run file.
pub const TEXT_BYTES_MAX: u64 = 8 << 20;
/// Most that comes back from a guest: its run file and what was printed.
pub const RESULT_BYTES_MAX: u64 = 128 << 20;
/// Most of a console that is read: its end.
pub const CONSOLE_BYTES_MAX: u64 = 4 << 20;
/// Largest program, kernel image, module or package that is read as a whole.
pub const OBJECT_BYTES_MAX: u64 = 1 << 30;
/// Largest count of anything: 8 years at a million per second.
pub const COUNT_MAX: u64 = 1 << 48;
/// Most activations of all threads together.
pub const TOTAL_MAX: u64 = 1 << 52;
/// Largest count within one second, and last second of a schedule.
pub const SECOND_MAX: u64 = 1 << 32;
/// Largest magnitude of a time or latency: 36 years.
pub const NS_MAX: i64 = 1 << 60;
/// Most records of threads and contexts.
pub const THREADS_MAX: usize = 1 << 14;
/// Most different contexts.
pub const CONTEXTS_MAX: usize = 64;
/// Most findings of different ids.
pub const FINDINGS_MAX: usize = 1 << 12;
/// Most loads, benchmarks or quantiles of a plan.
pub const PLAN_MAX: usize = 1 << 10;
/// Most rounds of a series.
pub const ROUNDS_MAX: u32 = 1 << 20;
/// Most parts, sentences and CPUs of a late wake-up that was taken apart, and functions of a stack.
pub const BLAME_PARTS_MAX: usize = 1 << 10;
/// Most spans of one of its CPUs.
pub const BLAME_SPANS_MAX: usize = 1 << 12;
/// Most entries of a list of a watched thread.
pub const TASK_LIST_MAX: usize = 1 << 10;
/// Most causes and longest cycles of one `cycle` line.
pub const CYCLE_CAUSES_MAX: usize = 1 << 10;
/// Most cycles in figures of one `cycle` line.
pub const CYCLE_JOBS_MAX: usize = 1 << 16;
/// Most frames of a stack of a `violation` line.
pub const STACK_FRAMES_MAX: usize = 1 << 10;
/// Most sections, wake-ups or points of a `paths` line, and lines of one of its trees.
pub const PATHS_LIST_MAX: usize = 1 << 12;
/// Most pulses of an `answered-pulses` or `pulse-join` line.
pub const PULSES_MAX: usize = 1 << 12;
/// Most samples of one `raw` line.
pub const RAW_SAMPLES_MAX: u64 = 1 << 20;

/// What a run file may not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// More than the limit.
    #[error("{what} beyond {}, the most a run file may hold (docs/run-file.md, Limits)", grouped(*.most))]
    Beyond {
        /// What is.
        what: String,
        /// The limit.
        most: u64,
    },
    /// Stated quantiles that do not rise, or of no probability.
    #[error("the quantiles do not rise with their probabilities, from above 0 to below 1")]
    Quantiles,
    /// A negative interval.
    #[error("the plan's interval_ns is negative")]
    NegativeInterval,
    /// Sums that no values within the limits have.
    #[error("the sums are beyond what their n values can add up to")]
    Sums,
}

/// `what` is beyond `most`.
pub(crate) fn beyond(what: &str, most: impl TryInto<u64>) -> LimitError {
    LimitError::Beyond { what: what.to_owned(), most: most.try_into().unwrap_or(u64::MAX) }
}

pub(crate) fn count(name: &str, values: impl IntoIterator<Item = u64>) -> Result<(), LimitError> {
    match values.into_iter().find(|v| *v > COUNT_MAX) {
        Some(_) => Err(beyond(&format!("{name} is"), COUNT_MAX)),
        None => Ok(()),
    }
}

pub(crate) fn ns(name: &str, values: impl IntoIterator<Item = i64>) -> Result<(), LimitError> {
    match values.into_iter().find(|v| v.unsigned_abs() > NS_MAX.unsigned_abs()) {
        Some(_) => Err(beyond(&format!("{name} is"), NS_MAX)),
        None => Ok(()),
    }
}
