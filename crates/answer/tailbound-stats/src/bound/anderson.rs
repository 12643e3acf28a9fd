// SPDX-License-Identifier: MIT OR Apache-2.0
//! Does a fitted generalised Pareto distribution describe the excesses? Anderson and Darling's
//! statistic, which weighs the ends most, with both parameters estimated from the same data.
//!
//! Units: none.
//! The critical values depend on the shape. They were simulated: 1500 samples of 200 values a
//! shape, fitted as here.
//! Source: Choulakian and Stephens 2001, for the idea of a table by shape.

use super::gpd::{Excesses, Gpd};
use tailbound_core::number::{Real as _, Whole as _};

/// Probabilities of a statistic above the columns of [`TABLE`].
const LEVELS: [f64; 5] = [0.5, 0.25, 0.1, 0.05, 0.01];

/// Shape of the first row, and from one row to the next.
const FIRST_SHAPE: f64 = -0.5;
const SHAPE_STEP: f64 = 0.1;

/// Critical values, a row a shape from -0.5 to 1 in steps of 0.1.
const TABLE: [[f64; 5]; 16] = [
    [0.483_893_542, 0.724_636_729, 1.062_403_2, 1.289_115_671, 1.756_402_686],
    [0.433_870_515, 0.642_724_909, 0.904_688_141, 1.122_527_346, 1.733_800_63],
    [0.429_977_999, 0.624_836_339, 0.870_884_897, 1.070_191_881, 1.589_320_944],
    [0.413_115_362, 0.609_845_842, 0.861_966_049, 1.055_178_693, 1.627_999_483],
    [0.413_234_124, 0.599_085_151, 0.833_370_367, 1.046_566_258, 1.392_447_833],
    [0.403_678_945, 0.570_503_972, 0.814_853_329, 1.009_482_111, 1.474_382_684],
    [0.384_322_807, 0.543_350_036, 0.775_360_945, 0.963_463_282, 1.310_689_697],
    [0.374_571_472, 0.515_605_701, 0.717_475_873, 0.875_902_039, 1.233_885_61],
    [0.369_321_57, 0.525_268_857, 0.726_423_064, 0.890_191_829, 1.247_138_875],
    [0.363_448_606, 0.531_748_031, 0.732_895_852, 0.877_770_43, 1.217_257_055],
    [0.359_552_153, 0.490_511_346, 0.688_647_152, 0.838_155_12, 1.201_942_42],
    [0.360_310_352, 0.494_744_704, 0.677_587_303, 0.836_592_209, 1.230_955_255],
    [0.349_357_892, 0.494_240_502, 0.681_014_941, 0.821_065_021, 1.135_114_239],
    [0.349_858_349, 0.490_277_023, 0.675_193_951, 0.802_336_448, 1.189_049_789],
    [0.364_539_138, 0.520_399_863, 0.766_531_656, 0.917_511_211, 1.342_519_219],
    [0.416_954_073, 0.638_243_772, 1.003_569_709, 1.377_773_757, 2.367_993_787],
];

/// A²; greater is worse.
#[must_use]
pub fn statistic(excesses: &Excesses, fit: &Gpd) -> f64 {
    let mut below: Vec<f64> =
        excesses.values().iter().map(|y| (1.0 - fit.above(*y)).clamp(1e-12, 1.0 - 1e-12)).collect();
    below.sort_unstable_by(f64::total_cmp);
    let n = excesses.k();
    let sum: f64 = below
        .iter()
        .zip(below.iter().rev())
        .zip(0u32..)
        .map(|((low, high), i)| (2.0 * f64::from(i) + 1.0) * (low.ln() + (-high).ln_1p()))
        .sum();
    -n - sum / n
}

/// The probability of a statistic this great or greater if the fit is right: 0.75 stands for
/// all above 0.5, 0.001 for all below 0.01.
#[must_use]
pub fn p_value(excesses: &Excesses, fit: &Gpd) -> f64 {
    let a2 = statistic(excesses, fit);
    let critical = critical(fit.shape);
    if a2.is_nan() {
        return 0.0;
    }
    if a2 < critical[0] {
        return 0.75;
    }
    for i in 1..LEVELS.len() {
        if a2 <= critical[i] {
            let part = (a2 - critical[i - 1]) / (critical[i] - critical[i - 1]);
            return LEVELS[i - 1] + part * (LEVELS[i] - LEVELS[i - 1]);
        }
    }
    0.001
}

/// The critical values at a shape, linear between the rows.
fn critical(shape: f64) -> [f64; 5] {
    let at = ((shape - FIRST_SHAPE) / SHAPE_STEP).clamp(0.0, (TABLE.len() - 1).real());
    let row = at.floor().whole_usize().min(TABLE.len() - 2);
    let part = at - row.real();
    std::array::from_fn(|i| TABLE[row][i] + part * (TABLE[row + 1][i] - TABLE[row][i]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::gpd::{SHAPE_MAX, SHAPE_MIN};
    use crate::random::Random;

    #[test]
    fn a_mode_in_the_tail_is_no_pareto() {
        let mut random = Random::new(3);
        let mut y: Vec<f64> = (0..180).map(|_| -random.uniform().ln()).collect();
        let good = Excesses::new(y.clone()).expect("positive");
        let fit = good.fit(SHAPE_MIN, SHAPE_MAX);
        assert!(p_value(&good, &fit) > 0.05, "{}", p_value(&good, &fit));
        y.iter_mut().take(60).for_each(|v| *v = 8.0 + *v / 100.0);
        let bad = Excesses::new(y).expect("positive");
        let fit = bad.fit(SHAPE_MIN, SHAPE_MAX);
        assert!(p_value(&bad, &fit) < 0.01, "{}", p_value(&bad, &fit));
    }
}
