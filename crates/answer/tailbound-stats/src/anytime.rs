// SPDX-License-Identifier: MIT OR Apache-2.0
//! A limit of a rate that may be looked at as often as one likes: whenever it is read, it
//! holds with the confidence stated for all looks together.
//!
//! Units: events, and time in any one unit; rates per that unit.
//! The fixed limits of [`crate::rates`] hold at one time chosen beforehand. Who looks a
//! hundred times and stops when it suits is wrong in one run of six at "95 %". This limit
//! mixes over all rates with a gamma weight, which makes the ratio of likelihoods a
//! martingale: it exceeds 1/α at any time with a probability of at most α (Ville). The price
//! of a clean run is 5.30/T instead of 3.00/T at the planned end.
//! Not here: when to stop (`tailbound-run`).
//! Source: Ville 1939; Robbins 1970 ("Statistical methods related to the law of the iterated
//! logarithm"); Howard, Ramdas, McAuliffe and Sekhon 2021 (gamma-Poisson mixture).

use crate::chi::ln_gamma_1p;
use tailbound_core::number::Real as _;

/// Shape of the weight over the rates.
pub const SHAPE: f64 = 0.5;

/// Its scale as a share of the planned time: small, so that the planned time is served best.
pub const SCALE_SHARE: f64 = 0.01;

const STEPS_MAX: u32 = 200;

/// ln of the mixture's ratio to a rate `rate`, after `events` in `time`.
fn ln_ratio(events: u64, time: f64, scale: f64, rate: f64) -> f64 {
    let n = events.real();
    // ln Γ(½+n) - ln Γ(½), of which ln Γ(a+1) serves both.
    let gammas = ln_gamma_1p(SHAPE + n) - (SHAPE + n).ln() - (ln_gamma_1p(SHAPE) - SHAPE.ln());
    let logarithm = if events == 0 { 0.0 } else { n * rate.ln() };
    gammas + SHAPE * scale.ln() - (SHAPE + n) * (scale + time).ln() - logarithm + rate * time
}

/// Upper limit of a rate, valid at every look together, after `events` in `time`, where
/// `planned` is the time at which it is to serve best. Infinite before any time has passed.
#[must_use]
pub fn rate_upper(events: u64, time: f64, planned: f64, confidence: f64) -> f64 {
    if !(time > 0.0 && planned > 0.0 && confidence < 1.0) {
        return f64::INFINITY;
    }
    let scale = SCALE_SHARE * planned;
    let target = -(-confidence).ln_1p();
    if events == 0 {
        return (target + SHAPE * ((scale + time) / scale).ln()) / time;
    }
    // Above n/t the ratio grows without bound: double until it is beyond the target.
    let mut low = events.real() / time;
    let mut high = low.max(1.0 / time);
    for _ in 0..STEPS_MAX {
        if ln_ratio(events, time, scale, high) >= target {
            break;
        }
        low = high;
        high *= 2.0;
    }
    for _ in 0..STEPS_MAX {
        let middle = f64::midpoint(low, high);
        if ln_ratio(events, time, scale, middle) >= target {
            high = middle;
        } else {
            low = middle;
        }
        if high - low <= 1e-12 * high {
            break;
        }
    }
    high
}

/// Time after which a run with `events` shows a rate of at most `rate`, looked at all the time;
/// `planned` as in [`rate_upper`].
#[must_use]
pub fn time_needed(events: u64, rate: f64, planned: f64, confidence: f64) -> f64 {
    if rate.is_nan() || rate <= 0.0 || planned.is_nan() || planned <= 0.0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, planned);
    for _ in 0..STEPS_MAX {
        if rate_upper(events, high, planned, confidence) <= rate {
            break;
        }
        low = high;
        high *= 2.0;
    }
    for _ in 0..STEPS_MAX {
        let middle = f64::midpoint(low, high);
        if rate_upper(events, middle, planned, confidence) <= rate {
            high = middle;
        } else {
            low = middle;
        }
        if high - low <= 1e-12 * high {
            break;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_run_pays_what_was_computed() {
        let got = rate_upper(0, 1.0, 1.0, 0.95);
        assert!((got - 5.303_25).abs() < 1e-4, "{got}");
        let t = time_needed(0, 1.0, 20f64.ln(), 0.95);
        assert!((rate_upper(0, t, 20f64.ln(), 0.95) - 1.0).abs() < 1e-9 && t > 5.5 && t < 5.7);
    }

    #[test]
    fn the_limit_is_above_the_count_and_the_ratio_is_met() {
        for events in [1u64, 2, 10, 1000, 1_000_000] {
            let upper = rate_upper(events, 10.0, 10.0, 0.95);
            assert!(upper > events.real() / 10.0, "{events}: {upper}");
            let ratio = ln_ratio(events, 10.0, 0.1, upper);
            assert!((ratio - 20f64.ln()).abs() < 1e-6, "{events}: {ratio}");
            assert!(upper > crate::rates::rate_upper(events, 10.0, 0.95), "peeking costs");
        }
    }

    #[test]
    fn nonsense_gives_no_statement() {
        assert!(rate_upper(0, 0.0, 1.0, 0.95).is_infinite());
        assert!(rate_upper(0, 1.0, f64::NAN, 0.95).is_infinite());
        assert!(time_needed(0, 0.0, 1.0, 0.95).is_infinite());
    }
}
