// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a comparison depends on besides its data; part of every answer.

use serde::Serialize;

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
