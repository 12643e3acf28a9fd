// SPDX-License-Identifier: MIT OR Apache-2.0
//! Series with a second mechanism that is met a few times: an exponential body, and far above it
//! another tail.
//!
//! Units: none (values of a second).
//! The times are exact, their places are drawn: a mechanism that was not met at all cannot be seen,
//! and no statement covers it. The truth is that of as many times an hour.

use serde::Serialize;

use super::{BLOCKS, Tail};
use crate::random::Random;

/// Where the second mechanism begins: among the greatest of the body, which reaches 12 to 18 in an hour.
const FROM: f64 = 12.0;

/// Its scale; that of the body is 1.
const SCALE: f64 = 6.0;

/// The tail of the second mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Far {
    /// Pareto of shape 0.3.
    Pareto,
    /// Exponential.
    Exponential,
}

impl Far {
    /// Its name in the table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pareto => "Pareto 0.3",
            Self::Exponential => "exponential",
        }
    }

    /// The value that one event of it exceeds with probability `p`.
    fn exceeded(self, p: f64) -> f64 {
        FROM + SCALE
            * match self {
                Self::Pareto => (p.powf(-0.3) - 1.0) / 0.3,
                Self::Exponential => -p.ln(),
            }
    }

    /// The level that a second exceeds with probability `q`, if the mechanism comes `times` an hour.
    pub(super) fn truth(self, times: u32, q: f64) -> f64 {
        let body = Tail::Exponential.truth(q);
        let p = q * f64::from(BLOCKS) / f64::from(times).max(1e-9);
        if p < 1.0 { self.exceeded(p).max(body) } else { body }
    }

    /// An hour with exactly `times` events.
    pub(super) fn draw(self, times: u32, random: &mut Random) -> Vec<f64> {
        let mut values = Tail::Exponential.draw(random);
        let mut left = times;
        while left > 0 {
            let at = random.below(values.len());
            let event = self.exceeded(random.uniform());
            // Two events in one second are one: take another second.
            if let Some(v) = values.get_mut(at).filter(|v| **v < FROM) {
                *v = event;
                left -= 1;
            }
        }
        values
    }
}
