// SPDX-License-Identifier: MIT OR Apache-2.0
//! The regularised incomplete gamma function and its inverse: the chi-square and Poisson
//! distributions that limits of rates are made of.
//!
//! Units: none. Accurate to about 1e-12 relative; every loop is bounded.
//! Written here because the beta inverse of the usual crate does not return for the counts of
//! a long run, and the Poisson form needs nothing but this.
//! Not here: what the limits mean ([`crate::rates`]).
//! Source: Abramowitz and Stegun 6.5; Loader 2000 for the leading factor; DLMF 8.9 for the
//! continued fraction.

const LOOPS_MAX: u32 = 5_000_000;
const STEPS_MAX: u32 = 200;
const EPSILON: f64 = 1e-16;

/// What Stirling's formula lacks of ln Γ(a+1), for a of 10 or more.
fn stirling_error(a: f64) -> f64 {
    let square = a * a;
    let terms =
        [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360_360.0];
    terms.iter().rev().fold(0.0, |sum, t| sum / square + t) / a
}

/// ln Γ(a+1) for positive `a`.
pub(crate) fn ln_gamma_1p(a: f64) -> f64 {
    let (mut a, mut product) = (a, 1.0);
    while a < 15.0 {
        a += 1.0;
        product *= a;
    }
    (a + 0.5) * a.ln() - a + 0.5 * std::f64::consts::TAU.ln() + stirling_error(a) - product.ln()
}

/// x^a·e^-x / Γ(a+1), without overflow.
fn leading(a: f64, x: f64) -> f64 {
    if a < 10.0 {
        return (a * x.ln() - x - ln_gamma_1p(a)).exp();
    }
    let d = (x - a) / a;
    (-a * (d - d.ln_1p()) - stirling_error(a)).exp() / (std::f64::consts::TAU * a).sqrt()
}

/// P(a, x) and Q(a, x) = 1 - P(a, x), each without cancellation.
fn gamma_pq(a: f64, x: f64) -> (f64, f64) {
    if x <= 0.0 {
        return (0.0, 1.0);
    }
    if x < a + 1.0 {
        let (mut term, mut sum) = (1.0, 1.0);
        for i in 1..LOOPS_MAX {
            term *= x / (a + f64::from(i));
            sum += term;
            if term < sum * EPSILON {
                break;
            }
        }
        let p = (leading(a, x) * sum).min(1.0);
        return (p, 1.0 - p);
    }
    // Lentz's method; x > a keeps every denominator away from zero.
    let mut b = x + 1.0 - a;
    let mut c = 1e300;
    let mut d = 1.0 / b;
    let mut h = d;
    for i in 1..LOOPS_MAX {
        let i = f64::from(i);
        let an = -i * (i - a);
        b += 2.0;
        d = 1.0 / (an * d + b);
        c = b + an / c;
        let factor = c * d;
        h *= factor;
        if (factor - 1.0).abs() < 4.0 * EPSILON {
            break;
        }
    }
    let q = (leading(a, x) * a * h).min(1.0);
    (1.0 - q, q)
}

/// P(a, x): the probability that a gamma variable of shape `a` is at most `x`.
#[must_use]
pub fn gamma_p(a: f64, x: f64) -> f64 {
    gamma_pq(a, x).0
}

/// Q(a, x) = 1 - P(a, x), the probability of more than `x`, with its own digits.
#[must_use]
pub fn gamma_q(a: f64, x: f64) -> f64 {
    gamma_pq(a, x).1
}

/// The probability that a chi-square variable of `dof` degrees of freedom is above `x`.
#[must_use]
pub fn chi_square_above(dof: f64, x: f64) -> f64 {
    gamma_q(dof / 2.0, x / 2.0)
}

/// The x of which P(a, x) = `p`, for positive `a`; 0 at p <= 0 and infinity at p >= 1.
#[must_use]
pub fn gamma_quantile(a: f64, p: f64) -> f64 {
    if p <= 0.0 || a <= 0.0 {
        return 0.0;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, f64::INFINITY);
    let mut x = a;
    for _ in 0..STEPS_MAX {
        let (at, above) = gamma_pq(a, x);
        // Positive: x is too great. The smaller of the two tails has the digits.
        let off = if p > 0.5 { (1.0 - p) - above } else { at - p };
        if off > 0.0 {
            high = x;
        } else {
            low = x;
        }
        let slope = leading(a, x) * a / x;
        let newton = x - off / slope;
        let next = if newton > low && newton < high {
            newton
        } else if high.is_finite() {
            f64::midpoint(low, high)
        } else {
            x * 2.0 + 1.0
        };
        if (next - x).abs() <= 1e-14 * x {
            return next;
        }
        x = next;
    }
    x
}

/// The quantile `p` of a chi-square distribution of `dof` degrees of freedom.
#[must_use]
pub fn chi_square_quantile(dof: f64, p: f64) -> f64 {
    2.0 * gamma_quantile(dof / 2.0, p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(got: f64, want: f64, relative: f64) {
        assert!((got - want).abs() <= relative * want.abs(), "{got} is not {want}");
    }

    #[test]
    fn textbook_values() {
        // Tables of the chi-square distribution.
        for (dof, p, want) in [
            (1.0, 0.95, 3.841_458_820_694_124),
            (2.0, 0.95, 5.991_464_547_107_979),
            (4.0, 0.95, 9.487_729_036_781_154),
            (10.0, 0.05, 3.940_299_136_119_06),
            (20.0, 0.95, 31.410_432_844_230_92),
            (100.0, 0.95, 124.342_113_404_004_08),
        ] {
            near(chi_square_quantile(dof, p), want, 1e-11);
        }
        // P(1, x) = 1 - e^-x.
        near(gamma_p(1.0, 2.5), 1.0 - (-2.5f64).exp(), 1e-14);
        near(gamma_quantile(1.0, 0.95), 20f64.ln(), 1e-13);
        near(ln_gamma_1p(0.5), (std::f64::consts::PI.sqrt() / 2.0).ln(), 1e-13);
        near(ln_gamma_1p(20.0), 2_432_902_008_176_640_000f64.ln(), 1e-14);
    }

    #[test]
    fn the_poisson_sum_is_the_same_thing() {
        // P(k+1, x) = 1 - sum of e^-x x^i/i! for i = 0..=k.
        for (k, x) in [(0u32, 3.0f64), (3, 7.75), (12, 9.0), (60, 75.0)] {
            let (mut term, mut sum) = ((-x).exp(), 0.0);
            for i in 0..=k {
                sum += term;
                term *= x / f64::from(i + 1);
            }
            near(gamma_p(f64::from(k) + 1.0, x), 1.0 - sum, 1e-11);
        }
    }

    #[test]
    fn great_counts_return() {
        // The normal limit: (x - a)/sqrt(a) goes to 1.645 with a small skew.
        for a in [1e5, 1e7, 1e9] {
            let x = gamma_quantile(a, 0.95);
            near((x - a) / a.sqrt(), 1.644_853_6, 1e-2);
        }
    }

    proptest! {
        #[test]
        fn the_inverse_is_one(a in 0.5f64..5000.0, p in 1e-6f64..0.999_999) {
            let back = gamma_p(a, gamma_quantile(a, p));
            prop_assert!((back - p).abs() < 1e-10, "{a} {p} {back}");
        }
    }
}
