// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a comparison depends on besides its data; part of every answer.

use serde::Serialize;
use tailbound_core::number::Real as _;
use tailbound_core::units::{ParseTimeError, parse_ns};

use super::margin::Margin;

/// Name and version of the method: the same data, settings and version give the same answer.
pub const METHOD: &str = "tailbound-rounds/1";

/// Quantiles that are judged.
pub const PROBABILITIES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];

/// Settings of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Settings {
    /// [`METHOD`].
    pub method: &'static str,
    /// Of intervals.
    pub confidence: f64,
    /// What matters.
    pub margin: Margin,
    /// Bootstrap replicates.
    pub replicates: usize,
    /// Exchanges of labels.
    pub permutations: usize,
    /// Of both.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            method: METHOD,
            confidence: 0.95,
            margin: Margin::default(),
            replicates: 1000,
            permutations: 1000,
            seed: 1,
        }
    }
}

/// Why words mean no margin.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MarginError {
    /// No share.
    #[error("--margin: `{text}` is not a percentage from 0%, for example 5%")]
    Relative {
        /// As it was written.
        text: String,
    },
    /// A time below zero.
    #[error("--margin-time: write 0 or more, for example 1us")]
    Negative,
    /// No time.
    #[error("--margin-time: {0}")]
    Time(ParseTimeError),
}

impl Settings {
    /// The usual ones but for the margins and the seed that somebody wrote.
    ///
    /// # Errors
    /// [`MarginError`].
    pub fn given(
        relative: Option<&str>,
        time: Option<&str>,
        seed: Option<u64>,
    ) -> Result<Self, MarginError> {
        let usual = Self::default();
        let relative = relative.map_or(Ok(usual.margin.relative), percent)?;
        let time_ns = match time {
            None => usual.margin.time_ns,
            // A bare 0 has no unit to be wrong about.
            Some(text) if text.trim() == "0" => 0.0,
            Some(text) => match parse_ns(text).map_err(MarginError::Time)? {
                ns if ns >= 0 => ns.real(),
                _ => return Err(MarginError::Negative),
            },
        };
        let seed = seed.unwrap_or(usual.seed);
        Ok(Self { margin: Margin { relative, time_ns }, seed, ..usual })
    }
}

fn percent(text: &str) -> Result<f64, MarginError> {
    let number = text.trim().strip_suffix('%').and_then(|n| n.trim().parse::<f64>().ok());
    let number = number.filter(|n| (0.0..1000.0).contains(n)).map(|n| n / 100.0);
    number.ok_or_else(|| MarginError::Relative { text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_are_a_percentage_and_a_time_and_what_is_neither_is_named() {
        let of = |relative, time| Settings::given(relative, time, None).map(|s| s.margin);
        assert_eq!(of(None, None), Ok(Margin::default()));
        assert_eq!(of(Some("10 %"), Some("0")), Ok(Margin { relative: 0.1, time_ns: 0.0 }));
        assert_eq!(of(None, Some("2us")).map(|m| m.time_ns), Ok(2000.0));
        for (relative, time, words) in [
            (Some("0.1"), None, "--margin: `0.1` is not a percentage"),
            (Some("-1%"), None, "--margin: `-1%` is not a percentage"),
            (None, Some("1"), "--margin-time: "),
        ] {
            let e = of(relative, time).unwrap_err().to_string();
            assert!(e.starts_with(words), "{e}");
        }
    }
}
