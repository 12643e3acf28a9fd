// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much great values cluster: the extremal index, from the times between them.
//!
//! Units: times in whatever they are counted in (activations, seconds).
//! 1: each comes alone. 0.3: they come in groups of about three, and n values are worth 0.3 n
//! where the greatest of them is concerned.
//! Source: Ferro and Segers 2003, the intervals estimator.

use tailbound_core::number::Real as _;

/// Times between exceedances that an estimate takes at least.
pub const GAPS_MIN: usize = 20;

/// The extremal index of exceedances at the ascending `times`; `None` below [`GAPS_MIN`] gaps.
#[must_use]
pub fn extremal_index(times: &[u64]) -> Option<f64> {
    let gaps: Vec<f64> =
        times.iter().zip(times.iter().skip(1)).map(|(a, b)| b.saturating_sub(*a).real()).collect();
    if gaps.len() < GAPS_MIN {
        return None;
    }
    let n = gaps.len().real();
    let sum = |f: fn(f64) -> f64| gaps.iter().map(|g| f(*g)).sum::<f64>();
    let index = if gaps.iter().all(|g| *g <= 2.0) {
        2.0 * sum(|g| g).powi(2) / (n * sum(|g| g * g))
    } else {
        let products = sum(|g| (g - 1.0).max(0.0) * (g - 2.0).max(0.0));
        2.0 * sum(|g| (g - 1.0).max(0.0)).powi(2) / (n * products)
    };
    index.is_finite().then(|| index.min(1.0))
}

#[cfg(test)]
mod tests {
    use tailbound_core::number::Whole as _;

    use super::*;
    use crate::random::Random;

    #[test]
    fn clusters_are_told_from_chance() {
        let mut random = Random::new(5);
        let lone: Vec<u64> = (0..200_000).filter(|_| random.uniform() < 0.005).collect();
        let index = extremal_index(&lone).unwrap_or(0.0);
        assert!((0.85..=1.0).contains(&index), "{index}");
        // Groups of four at chance times.
        let mut groups = Vec::new();
        let mut t = 0u64;
        for _ in 0..400 {
            let gap = (-random.uniform().ln() * 800.0).ceil();
            let gap = gap.whole_u64();
            t += gap + 4;
            groups.extend(t..t + 4);
        }
        let index = extremal_index(&groups).unwrap_or(1.0);
        assert!((0.2..0.3).contains(&index), "{index}");
        assert_eq!(extremal_index(&lone[..10]), None);
    }
}
