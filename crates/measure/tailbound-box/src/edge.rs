// SPDX-License-Identifier: MIT OR Apache-2.0
//! Edges of the two lines, and which of them are pulses and answers.
//!
//! Units: ticks.

use std::fmt;
use std::str::FromStr;

/// A logic level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// 0.
    Low,
    /// 1.
    High,
}

impl Level {
    /// The other one.
    #[must_use]
    pub fn inverted(self) -> Self {
        match self {
            Self::Low => Self::High,
            Self::High => Self::Low,
        }
    }
}

/// One of the two lines that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaptureLine {
    /// What the machine is to react to.
    Stimulus,
    /// What it answers.
    Answer,
}

/// A line changed to a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// When.
    pub tick: i64,
    /// Which line.
    pub line: CaptureLine,
    /// The level from then on.
    pub level: Level,
}

/// Which edges are pulses and answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EdgeRule {
    /// Rising edges of both lines; falling ones end a pulse and mean nothing.
    #[default]
    Rising,
    /// Every edge; the answer takes the level of the stimulus.
    Toggle,
    /// Every edge; the answer takes the opposite level.
    Inverted,
}

impl EdgeRule {
    /// Every rule with its word.
    pub const ALL: [(&'static str, Self); 3] =
        [("rising", Self::Rising), ("toggle", Self::Toggle), ("inverted", Self::Inverted)];

    /// Is an edge to `level` of a line a pulse or an answer at all?
    pub(crate) fn counts(self, level: Level) -> bool {
        self != Self::Rising || level == Level::High
    }

    /// The level of the pulse that an answer to `level` belongs to.
    pub(crate) fn pulse_level(self, level: Level) -> Level {
        match self {
            Self::Rising => Level::High,
            Self::Toggle => level,
            Self::Inverted => level.inverted(),
        }
    }
}

impl fmt::Display for EdgeRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = Self::ALL.iter().find(|(_, rule)| rule == self).map_or("", |(word, _)| word);
        f.write_str(word)
    }
}

/// A word that is no rule for edges.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{typed}` is not one of rising, toggle, inverted")]
pub struct UnknownEdgeRule {
    /// What was written.
    pub typed: String,
}

impl FromStr for EdgeRule {
    type Err = UnknownEdgeRule;
    fn from_str(text: &str) -> Result<Self, UnknownEdgeRule> {
        let found = Self::ALL.iter().find(|(word, _)| *word == text).map(|(_, rule)| *rule);
        found.ok_or_else(|| UnknownEdgeRule { typed: text.to_owned() })
    }
}
