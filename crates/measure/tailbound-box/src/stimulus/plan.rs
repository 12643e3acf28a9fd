// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a source is asked to do.
//!
//! Units: ns.

/// How a pulse looks, and so what answers it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StimulusShape {
    /// The line changes its level; the machine copies it. A late answer is told from the next one.
    #[default]
    Toggle,
    /// The line goes up and comes back; the machine answers with an edge up.
    Pulse,
}

/// How far apart pulses are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StimulusSpacing {
    /// Every interval is the period.
    #[default]
    Even,
    /// Random around the period, from this seed, so that pulses do not beat with the machine's tick.
    Random(u32),
}

/// A measurement that a source is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StimulusPlan {
    /// From pulse to pulse, on average.
    pub period_ns: i64,
    /// How long pulses are sent.
    pub duration_ns: i64,
    /// How many channels, from the first.
    pub channels: u8,
    /// Of pulses.
    pub shape: StimulusShape,
    /// Of pulses.
    pub spacing: StimulusSpacing,
    /// Only answers up to this matter; a source whose range can be set covers it.
    pub deadline_ns: Option<i64>,
}
