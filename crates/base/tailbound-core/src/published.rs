// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of two systems from a paper or from elsewhere, in the place of run files.
//!
//! Units: seconds of work; text with a unit for latencies. A TOML file of two
//! tables, `real` and `fast`; docs/decide.md has one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The TOML error with its line and column.
pub type PublishedError = toml::de::Error;

/// Figures of two systems.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Published {
    /// Where they were published.
    #[serde(default)]
    pub source: Option<String>,
    /// The real-time system.
    pub real: PublishedSide,
    /// The real-fast one.
    pub fast: PublishedSide,
}

/// Figures of one system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PublishedSide {
    /// What people call it.
    pub name: String,
    /// Start latency by statistic: `mean`, `p99.9`, `p99.99`, `p99.999`, `worst`.
    #[serde(default)]
    pub latency: BTreeMap<String, String>,
    /// Number of wake-ups behind them, where it was told.
    #[serde(default)]
    pub wakeups: Option<u64>,
    /// Works.
    #[serde(default)]
    pub work: Vec<PublishedBenchmark>,
}

/// Times of one benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PublishedBenchmark {
    /// Its name, the same on both sides.
    pub name: String,
    /// Elapsed.
    pub real: Times,
    /// In user mode.
    #[serde(default)]
    pub user: Option<Times>,
    /// In the kernel.
    #[serde(default)]
    pub sys: Option<Times>,
}

/// Seconds: one by one, or what was told of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Times {
    /// One a repetition.
    Each(Vec<f64>),
    /// Their number, mean and standard deviation.
    Told {
        /// How many.
        n: u32,
        /// Their mean.
        mean: f64,
        /// Their standard deviation.
        sd: f64,
    },
}

impl Published {
    /// Reads such a file's text.
    ///
    /// # Errors
    /// The TOML error with its line and column.
    pub fn parse(text: &str) -> Result<Self, PublishedError> {
        toml::from_str(text)
    }
}
