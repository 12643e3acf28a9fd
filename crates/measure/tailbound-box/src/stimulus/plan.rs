// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a source is asked to do.
//!
//! Units: ns.

use std::str::FromStr;

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

/// A word that is no shape or spacing of pulses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{typed}` is not one of {words}")]
pub struct UnknownPulseWord {
    /// What was written.
    pub typed: String,
    /// What there is.
    pub words: &'static str,
}

impl FromStr for StimulusShape {
    type Err = UnknownPulseWord;
    fn from_str(text: &str) -> Result<Self, UnknownPulseWord> {
        match text {
            "toggle" => Ok(Self::Toggle),
            "pulse" => Ok(Self::Pulse),
            _ => Err(UnknownPulseWord { typed: text.to_owned(), words: "toggle, pulse" }),
        }
    }
}

impl FromStr for StimulusSpacing {
    type Err = UnknownPulseWord;
    fn from_str(text: &str) -> Result<Self, UnknownPulseWord> {
        let seed = text.strip_prefix("random:").map(str::parse);
        match (text, seed) {
            ("even", _) => Ok(Self::Even),
            ("random", _) => Ok(Self::Random(1)),
            (_, Some(Ok(seed))) => Ok(Self::Random(seed)),
            _ => Err(UnknownPulseWord {
                typed: text.to_owned(),
                words: "even, random, random:SEED with a seed up to 4294967295",
            }),
        }
    }
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
