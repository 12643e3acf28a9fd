// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models of interference, and the least fixed point by iteration from below.
//!
//! Units: ns.

use serde::Serialize;
use tailbound_core::theory::TheoryRecord;

use super::curve::at;

/// Steps of the iteration, far more than any that ends takes.
const STEPS: u32 = 1_000_000;

/// How much interrupts take of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Nothing.
    None,
    /// The longest execution of all, once.
    WorstSingle,
    /// The longest of each vector, once.
    OneOfEach,
    /// The greatest sum of execution times that any window of that length had, by vector.
    Window,
    /// The greatest number of executions that any window of that length had, each as long as the longest.
    WindowCounts,
    /// Executions as near to each other as the nearest were, each as long as the longest.
    Sporadic,
}

impl Model {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::None,
        Self::WorstSingle,
        Self::OneOfEach,
        Self::Window,
        Self::WindowCounts,
        Self::Sporadic,
    ];

    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::WorstSingle => "the longest, once",
            Self::OneOfEach => "one of each vector",
            Self::Window => "windows as seen",
            Self::WindowCounts => "counts as seen",
            Self::Sporadic => "sporadic",
        }
    }

    /// Does it hold for every wake-up of the run that it is from?
    #[must_use]
    pub fn holds_for_run(self) -> bool {
        matches!(self, Self::Window | Self::WindowCounts | Self::Sporadic)
    }
}

/// Why there is no bound by a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Interrupts come faster than they end.
    #[error(
        "{vector}: two were {apart_ns} ns apart, and one executes up to {longest_ns} ns: the sum has no end"
    )]
    Denser {
        /// Which.
        vector: String,
        /// Shortest time from one to the next.
        apart_ns: i64,
        /// Longest execution.
        longest_ns: i64,
    },
    /// All together take the whole CPU.
    #[error(
        "all interrupts together, as near and as long as they can be, leave no time: the sum has no end"
    )]
    Full,
    /// Longer than anything that was seen.
    #[error(
        "the bound is beyond {known_ns} ns, and nothing is known of longer windows: watch for longer"
    )]
    Beyond {
        /// Up to here something is known.
        known_ns: i64,
    },
}

/// What interrupts take of a window of `within_ns`.
pub(super) fn interference(model: Model, record: &TheoryRecord, within_ns: i64) -> i64 {
    let longest = record.interrupts.iter().map(|i| i.longest_ns);
    let each = |of: &dyn Fn(&tailbound_core::theory::InterruptRecord) -> i64| {
        record.interrupts.iter().fold(0i64, |sum, i| sum.saturating_add(of(i)))
    };
    match model {
        Model::None => 0,
        Model::WorstSingle => longest.max().unwrap_or(0),
        Model::OneOfEach => each(&|i| i.longest_ns),
        Model::Window => each(&|i| at(&i.curve, within_ns).sum_ns),
        Model::WindowCounts => each(&|i| {
            i64::try_from(at(&i.curve, within_ns).n)
                .map_or(i64::MAX, |n| n.saturating_mul(i.longest_ns))
        }),
        Model::Sporadic => each(&|i| {
            // One that others interrupted may reach into the window by as much as they took: jitter.
            let within = within_ns.saturating_add(i.nested_ns).max(1);
            // The only one of the whole span: one in any window of it.
            let apart = i.apart_ns.unwrap_or(i64::MAX).max(1);
            let n = (within - 1).div_euclid(apart).saturating_add(1);
            n.saturating_mul(i.longest_ns)
        }),
    }
}

/// The least L = base + I(L).
pub(super) fn solve(model: Model, base_ns: i64, record: &TheoryRecord) -> Result<i64, Refusal> {
    let known_ns = match model {
        Model::Window | Model::WindowCounts => record.curves_to_ns,
        _ => record.span_ns,
    };
    if model == Model::Sporadic {
        diverges(record)?;
    }
    let mut latency = base_ns;
    for _ in 0..STEPS {
        if latency > known_ns {
            return Err(Refusal::Beyond { known_ns });
        }
        let next = base_ns.saturating_add(interference(model, record, latency));
        if next == latency {
            return Ok(latency);
        }
        latency = next;
    }
    Err(Refusal::Beyond { known_ns: latency })
}

fn diverges(record: &TheoryRecord) -> Result<(), Refusal> {
    let mut share = 0u128;
    const WHOLE: u128 = 1 << 60;
    for i in &record.interrupts {
        let Some(apart_ns) = i.apart_ns else { continue };
        if apart_ns <= 0 || apart_ns < i.longest_ns {
            let (vector, longest_ns) = (i.vector.clone(), i.longest_ns);
            return Err(Refusal::Denser { vector, apart_ns, longest_ns });
        }
        let longest = u128::from(i.longest_ns.unsigned_abs());
        share += longest * WHOLE / u128::from(apart_ns.unsigned_abs());
    }
    if share >= WHOLE { Err(Refusal::Full) } else { Ok(()) }
}
