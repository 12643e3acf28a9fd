// SPDX-License-Identifier: MIT OR Apache-2.0
//! The normal distribution and its quantiles, and the tail of Kolmogorov's statistic: what
//! tests on ranks and on times are judged by.
//!
//! Units: none. The normal distribution is right to about 1e-14 relative,
//! Kolmogorov's tail to 1e-3 from 30 values on, and it is only compared with 0.01.
//! Not here: the tests ([`crate::bound::gate`]).
//! Source: Wichura 1988, AS 241 (PPND16); Stephens 1970 for the correction of the statistic.

use crate::chi::gamma_q;
use tailbound_core::number::Real as _;

/// The probability that a standard normal variable is above `x`.
#[must_use]
pub fn above(x: f64) -> f64 {
    let tail = gamma_q(0.5, x * x / 2.0) / 2.0;
    if x >= 0.0 { tail } else { 1.0 - tail }
}

/// A polynomial, the coefficient of the highest power first.
fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().fold(0.0, |sum, c| sum * x + c)
}

/// The quantile `p` of the standard normal distribution; infinite at 0 and 1.
#[must_use]
pub fn quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * polynomial(&CENTRE, r) / polynomial(&CENTRE_BELOW, r);
    }
    let r = (-p.min(1.0 - p).ln()).sqrt();
    if !r.is_finite() {
        return q.signum() * f64::INFINITY;
    }
    let x = if r <= 5.0 {
        polynomial(&MIDDLE, r - 1.6) / polynomial(&MIDDLE_BELOW, r - 1.6)
    } else {
        polynomial(&FAR, r - 5.0) / polynomial(&FAR_BELOW, r - 5.0)
    };
    x * q.signum()
}

const CENTRE: [f64; 8] = [
    2.509_080_928_730_122_7e3,
    3.343_057_558_358_813e4,
    6.726_577_092_700_87e4,
    4.592_195_393_154_987e4,
    1.373_169_376_550_946e4,
    1.971_590_950_306_551_3e3,
    1.331_416_678_917_843_8e2,
    3.387_132_872_796_366_5,
];
const CENTRE_BELOW: [f64; 8] = [
    5.226_495_278_852_545e3,
    2.872_908_573_572_194_3e4,
    3.930_789_580_009_271e4,
    2.121_379_430_158_659_7e4,
    5.394_196_021_424_751e3,
    6.871_870_074_920_579e2,
    4.231_333_070_160_091e1,
    1.0,
];
const MIDDLE: [f64; 8] = [
    7.745_450_142_783_414e-4,
    2.272_384_498_926_918_4e-2,
    2.417_807_251_774_506e-1,
    1.270_458_252_452_368_4,
    3.647_848_324_763_204_5,
    5.769_497_221_460_691,
    4.630_337_846_156_546,
    1.423_437_110_749_683_5,
];
const MIDDLE_BELOW: [f64; 8] = [
    1.050_750_071_644_416_9e-9,
    5.475_938_084_995_345e-4,
    1.519_866_656_361_645_7e-2,
    1.481_039_764_274_800_8e-1,
    6.897_673_349_851e-1,
    1.676_384_830_183_803_8,
    2.053_191_626_637_759,
    1.0,
];
const FAR: [f64; 8] = [
    2.010_334_399_292_288_1e-7,
    2.711_555_568_743_487_6e-5,
    1.242_660_947_388_078_4e-3,
    2.653_218_952_657_612_4e-2,
    2.965_605_718_285_048_7e-1,
    1.784_826_539_917_291_3,
    5.463_784_911_164_114,
    6.657_904_643_501_103,
];
const FAR_BELOW: [f64; 8] = [
    2.044_263_103_389_939_8e-15,
    1.421_511_758_316_446e-7,
    1.846_318_317_510_054_8e-5,
    7.868_691_311_456_133e-4,
    1.487_536_129_085_061_5e-2,
    1.369_298_809_227_358e-1,
    5.998_322_065_558_88e-1,
    1.0,
];

/// The probability of a greatest distance above `distance` between the distribution of `n`
/// independent values and their own steps.
#[must_use]
pub fn kolmogorov_above(distance: f64, n: usize) -> f64 {
    let root = (n.real()).sqrt();
    let t = (root + 0.12 + 0.11 / root.max(1.0)) * distance;
    if t < 0.2 {
        return 1.0;
    }
    let mut sum = 0.0;
    for i in 1..=100u32 {
        let i = f64::from(i);
        let term = (-2.0 * i * i * t * t).exp();
        sum += if i % 2.0 == 1.0 { term } else { -term };
        if term < 1e-17 {
            break;
        }
    }
    (2.0 * sum).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn textbook_values() {
        for (p, x) in [
            (0.5, 0.0),
            (0.975, 1.959_963_984_540_054),
            (0.01, -2.326_347_874_040_841),
            (1e-9, -5.997_807_015_007_687),
            (1e-20, -9.262_340_089_798_408),
        ] {
            assert!((quantile(p) - x).abs() < 1e-12 * x.abs().max(1.0), "{p}: {}", quantile(p));
            if p > 1e-10 {
                assert!((above(-x) - p).abs() < 1e-12 * p, "{x}: {}", above(-x));
            }
        }
        assert_eq!(quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(quantile(1.0), f64::INFINITY);
        // The 5 % and 1 % points of the limit.
        assert!((kolmogorov_above(1.358_1 / 1e3, 1_000_000) - 0.05).abs() < 1e-4);
        assert!((kolmogorov_above(1.627_6 / 1e3, 1_000_000) - 0.01).abs() < 1e-4);
    }
}
