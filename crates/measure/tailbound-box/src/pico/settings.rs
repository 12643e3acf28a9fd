// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plan as the box is told it, and what a box cannot tell of itself.
//!
//! Units: ns, ticks of the box.

use tailbound_wire::{Hello, Set, Spacing, Stimulus};

use super::greeting::BoxRefusal;
use crate::TimeBase;
use crate::stimulus::{SourceLimit, StimulusPlan, StimulusShape, StimulusSpacing};

/// As the firmware has it: `is_possible` in `service.rs`.
const PERIOD_MIN_TICKS: u64 = 250;
const PERIOD_MAX_TICKS: u64 = 1 << 26;
const WIDTH_MIN_TICKS: u32 = 4;
/// A pulse that comes back lasts so long, or an eighth of the period.
const WIDTH_NS: i64 = 10_000;

/// What the box did when it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BoxBefore {
    /// Nothing.
    Idle,
    /// It measured for an earlier program.
    Measuring,
}

/// What this box cannot tell.
pub(super) fn limits(hello: &Hello, tick: TimeBase, before: BoxBefore) -> Vec<SourceLimit> {
    let ticks = i64::from(hello.loop_back_ticks) + 1;
    let less_ns = tick.latency_ns(ticks).unsigned_abs();
    let basis = "its input synchroniser and its sampling of the line".to_owned();
    let mut all = vec![
        SourceLimit::OwnError { less_ns, more_ns: 0, basis },
        SourceLimit::Stated(
            "How fast or slow the crystal of the box runs is not known; `tailbound box check` measures it."
                .to_owned(),
        ),
        SourceLimit::Stated(
            "Delays of wires and level shifters are in each latency and cannot be told apart.".to_owned(),
        ),
    ];
    if before == BoxBefore::Measuring {
        all.push(SourceLimit::Stated(
            "The box was measuring for an earlier program, and was stopped.".to_owned(),
        ));
    }
    all
}

/// The plan as the box is told it.
pub(super) fn set(plan: &StimulusPlan, hello: &Hello) -> Result<Set, BoxRefusal> {
    if plan.channels == 0 || plan.channels > hello.channels {
        return Err(BoxRefusal::Channels { has: hello.channels, asked: plan.channels });
    }
    let hz = i128::from(hello.tick_hz);
    let ticks = |ns: i64| (i128::from(ns) * hz + 500_000_000) / 1_000_000_000;
    let ns = |ticks: u64| i64::try_from(i128::from(ticks) * 1_000_000_000 / hz).unwrap_or(i64::MAX);
    let period = u64::try_from(ticks(plan.period_ns)).unwrap_or(0);
    let period_ticks = u32::try_from(period)
        .ok()
        .filter(|_| (PERIOD_MIN_TICKS..=PERIOD_MAX_TICKS).contains(&period))
        .ok_or(BoxRefusal::Period {
            asked_ns: plan.period_ns,
            least_ns: ns(PERIOD_MIN_TICKS),
            most_ns: ns(PERIOD_MAX_TICKS),
        })?;
    let width = u32::try_from(ticks(WIDTH_NS)).unwrap_or(u32::MAX).min(period_ticks / 8);
    let (stimulus, width_ticks) = match plan.shape {
        StimulusShape::Toggle => (Stimulus::Toggle, 0),
        StimulusShape::Pulse => (Stimulus::Pulse, width.max(WIDTH_MIN_TICKS)),
    };
    let spacing = match plan.spacing {
        StimulusSpacing::Even => Spacing::Even,
        StimulusSpacing::Random(seed) => Spacing::Random(seed),
    };
    Ok(Set { channels: plan.channels, stimulus, period_ticks, spacing, width_ticks })
}
