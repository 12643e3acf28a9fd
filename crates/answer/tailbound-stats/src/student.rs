// SPDX-License-Identifier: MIT OR Apache-2.0
//! Student's t distribution and the incomplete beta function it is made of.
//!
//! Units: none. Accurate to about 1e-10 relative for 1 to 1e6 degrees of freedom.
//! Not here: what is widened by it ([`mod@crate::compare`]).
//! Source: Abramowitz and Stegun 26.7.1; DLMF 8.17.22 for the continued fraction.

use crate::chi::ln_gamma_1p;

const LOOPS_MAX: u32 = 100_000;
const EPSILON: f64 = 1e-15;

/// I_x(a, b), regularised; `a`, `b` positive, `x` from 0 to 1.
#[must_use]
pub fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast only below the mean.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let ln_gamma = |v: f64| ln_gamma_1p(v) - v.ln();
    let ln_front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p();
    let keep = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / keep(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for m in 1..LOOPS_MAX {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut factor = 1.0;
        for term in [even, odd] {
            d = 1.0 / keep(term.mul_add(d, 1.0));
            c = keep(1.0 + term / c);
            factor = c * d;
            h *= factor;
        }
        if (factor - 1.0).abs() < EPSILON {
            break;
        }
    }
    (ln_front.exp() * h / a).clamp(0.0, 1.0)
}

/// The probability of a value of `t` or less, with `degrees` degrees of freedom.
#[must_use]
pub fn probability(t: f64, degrees: f64) -> f64 {
    let tail = 0.5 * incomplete_beta(degrees / 2.0, 0.5, degrees / (degrees + t * t));
    if t > 0.0 { 1.0 - tail } else { tail }
}

/// The value of probability `p` (0 to 1, exclusive) with `degrees` degrees of freedom.
#[must_use]
pub fn quantile(p: f64, degrees: f64) -> f64 {
    if !(p > 0.0 && p < 1.0 && degrees > 0.0) {
        return f64::NAN;
    }
    if p < 0.5 {
        return -quantile(1.0 - p, degrees);
    }
    let mut high = 1.0;
    while probability(high, degrees) < p && high < 1e15 {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if probability(middle, degrees) < p { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_printed_tables() {
        for (p, degrees, value) in [
            (0.975, 1.0, 12.706_204_736_174_7),
            (0.975, 5.0, 2.570_581_835_636_2),
            (0.975, 29.0, 2.045_229_642_132_7),
            (0.95, 10.0, 1.812_461_122_811_7),
            (0.995, 120.0, 2.617_421_145_106_9),
            (0.975, 1e6, 1.959_966_35),
        ] {
            let got = quantile(p, degrees);
            assert!((got / value - 1.0).abs() < 1e-8, "{p} {degrees}: {got}");
            assert!((quantile(1.0 - p, degrees) + got).abs() < 1e-8 * got);
        }
        assert!((quantile(0.5, 7.0)).abs() < 1e-12);
        assert!(quantile(1.0, 7.0).is_nan() && quantile(0.9, 0.0).is_nan());
    }

    #[test]
    fn the_incomplete_beta_meets_closed_forms() {
        // I_x(1, b) = 1 - (1-x)^b and I_x(a, 1) = x^a.
        for x in [0.01, 0.3, 0.7, 0.99] {
            assert!((incomplete_beta(1.0, 3.0, x) - (1.0 - (1.0 - x).powi(3))).abs() < 1e-12);
            assert!((incomplete_beta(4.0, 1.0, x) - x.powi(4)).abs() < 1e-12);
        }
    }
}
