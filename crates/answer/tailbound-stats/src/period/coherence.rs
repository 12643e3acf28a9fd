// SPDX-License-Identifier: MIT OR Apache-2.0
//! A period made exact by the phases of many exceedances together, where they keep one.
//!
//! Units: ns, in doubles that hold whole numbers.
//! Source: Mardia and Jupp 2000, 6.3 (Rayleigh's test).

use std::f64::consts::TAU;

use tailbound_core::number::{Real as _, Whole as _};

/// Most exceedances that are taken.
const MOST: usize = 1024;
/// Most periods that are tried.
const STEPS_MAX: f64 = 2000.0;
/// Steps within the reciprocal of the length, in which phases turn once.
const STEPS_A_TURN: f64 = 8.0;

/// The period within `reach` of `period` at which the phases of `times` agree best; `None` where they hardly do.
pub(super) fn exact(times: &[f64], period: f64, reach: f64) -> Option<f64> {
    let first = *times.first()?;
    let least = (period - reach).max(period / 2.0);
    let (from, to) = (1.0 / (period + reach), 1.0 / least);
    // So long that the steps suffice.
    let longest = STEPS_MAX / STEPS_A_TURN / (to - from);
    let taken: Vec<f64> =
        times.iter().map(|t| t - first).take_while(|t| *t <= longest).take(MOST).collect();
    let length = *taken.last()?;
    let steps = ((to - from) * length * STEPS_A_TURN).ceil().clamp(1.0, STEPS_MAX);
    let (mut best, mut most) = (period, 0.0);
    for step in 0..=steps.whole_usize() {
        let frequency = from + (to - from) * step.real() / steps;
        let (sin, cos) = taken.iter().fold((0.0, 0.0), |(sin, cos), t| {
            let (s, c) = (TAU * (t * frequency).fract()).sin_cos();
            (sin + s, cos + c)
        });
        let power = (sin * sin + cos * cos) / taken.len().real();
        if power > most {
            (best, most) = (1.0 / frequency, power);
        }
    }
    (most > steps.ln() + 7.0).then_some(best)
}
