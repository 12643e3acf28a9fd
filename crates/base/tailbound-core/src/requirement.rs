// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the machine has to do: a deadline, how early is too early, and how strictly.
//!
//! Units: ns; rates per hour.
//! Source of the classes: Altera's "methodology to compare scheduling latency" (soft, 95 %,
//! 100 %, safe).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::units;
use crate::words::open_words;

open_words! {
    /// How strictly a deadline is meant.
    #[derive(Default)]
    Class {
        /// Every due activation in time ("100 %").
        #[default]
        Hard = "hard",
        /// As `Hard`, and the run must be long enough to demonstrate the exceedance rate.
        Safe = "safe",
        /// At least 95 % of the due activations in time.
        NinetyFive = "95",
        /// The figures are reported; nothing can fail.
        BestEffort = "best-effort",
    }
}

/// A text that is no [`Class`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a class: write hard, safe, 95 or best-effort")]
pub struct NoClass(pub String);

impl FromStr for Class {
    type Err = NoClass;
    fn from_str(text: &str) -> Result<Self, NoClass> {
        match text {
            "hard" | "100" | "100%" => Ok(Self::Hard),
            "safe" => Ok(Self::Safe),
            "95" | "95%" => Ok(Self::NinetyFive),
            "best-effort" | "soft" => Ok(Self::BestEffort),
            _ => Err(NoClass(text.to_owned())),
        }
    }
}

/// A rate of exceedances that is still acceptable, as `1/24h`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rate {
    /// Exceedances.
    pub count: u32,
    /// In this time.
    pub per_ns: i64,
}

/// Why a text is no [`Rate`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a rate ({why}): write for example `1/24h`")]
pub struct NoRate {
    /// What was written.
    pub text: String,
    /// What is wrong with it.
    pub why: RateFault,
}

/// What is wrong with a rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateFault {
    /// Nothing parts count and time.
    #[error("no `/`")]
    NoSlash,
    /// The count is 0 or no number.
    #[error("the count must be 1 or more")]
    Count,
    /// The time cannot be read.
    #[error(transparent)]
    Time(#[from] units::ParseTimeError),
    /// The time is 0 or less.
    #[error("the time must be positive")]
    NoTime,
}

impl FromStr for Rate {
    type Err = NoRate;
    fn from_str(text: &str) -> Result<Self, NoRate> {
        let wrong = |why| NoRate { text: text.to_owned(), why };
        let (count, per) = text.split_once('/').ok_or_else(|| wrong(RateFault::NoSlash))?;
        let count =
            count.trim().parse().ok().filter(|c| *c > 0).ok_or_else(|| wrong(RateFault::Count))?;
        // `1/h` reads naturally too.
        let per = if per.trim().starts_with(|c: char| c.is_ascii_digit()) {
            per.to_owned()
        } else {
            format!("1{}", per.trim())
        };
        let per_ns = units::parse_ns(&per).map_err(|e| wrong(e.into()))?;
        if per_ns <= 0 {
            return Err(wrong(RateFault::NoTime));
        }
        Ok(Self { count, per_ns })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, units::exact(self.per_ns))
    }
}

impl TryFrom<String> for Rate {
    type Error = NoRate;
    fn try_from(text: String) -> Result<Self, NoRate> {
        text.parse()
    }
}

impl From<Rate> for String {
    fn from(rate: Rate) -> Self {
        rate.to_string()
    }
}

/// What is required. Without a deadline there is nothing to fail.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Requirement {
    /// Latest acceptable wake-up after its due time.
    pub deadline_ns: Option<i64>,
    /// Earliest acceptable wake-up, as a positive time before its due time ("early is as bad as late").
    pub early_ns: Option<i64>,
    /// How strictly.
    pub class: Class,
    /// Acceptable rate of exceedances (class `safe`).
    pub rate: Option<Rate>,
    /// Confidence of every statement about rates.
    pub confidence: f64,
}

impl Default for Requirement {
    fn default() -> Self {
        Self { deadline_ns: None, early_ns: None, class: Class::Hard, rate: None, confidence: 0.95 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_round_trip_and_refuse() {
        for text in ["1/24h", "3/10m"] {
            assert_eq!(text.parse::<Rate>().map(|r| r.to_string()).as_deref(), Ok(text));
        }
        assert_eq!("1/h".parse::<Rate>().map(|r| r.per_ns), Ok(3_600_000_000_000));
        for text in ["24h", "0/1h", "1/0s", "1/24", "x/1h"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }
}
