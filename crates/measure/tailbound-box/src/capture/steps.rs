// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the times of a capture tell of its sample rate, where it does not state it.
//!
//! Units: ticks. All times are multiples of the sample period, unless they were rounded: then their
//! greatest common divisor is a tick. Either way the period is at most the least step; a divisor of few times is an accident.

use std::num::NonZeroU64;

/// So many steps before their divisor is no accident.
const ENOUGH: u64 = 32;

/// The times of a capture.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TimeSteps {
    last: Option<i64>,
    divisor: u64,
    least: Option<NonZeroU64>,
    n: u64,
}

impl TimeSteps {
    pub(crate) fn add(&mut self, tick: i64) {
        let Some(last) = self.last.replace(tick) else { return };
        let Some(step) = NonZeroU64::new(tick.abs_diff(last)) else { return };
        self.n += 1;
        self.least = Some(self.least.map_or(step, |least| least.min(step)));
        if self.divisor != 1 {
            self.divisor = divisor(self.divisor, step.get());
        }
    }

    /// The sample period, at most.
    pub(crate) fn period_at_most(&self) -> Option<u64> {
        let least = self.least?.get();
        Some(if self.n >= ENOUGH && self.divisor > 1 { self.divisor } else { least })
    }
}

fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_period_is_never_taken_for_shorter_than_it_may_be() {
        let of = |ticks: &[i64]| {
            let mut steps = TimeSteps::default();
            ticks.iter().for_each(|t| steps.add(*t));
            steps.period_at_most()
        };
        assert_eq!(of(&[0, 0]), None);
        assert_eq!(of(&[0, 400, 1000]), Some(400), "a divisor of two steps proves nothing");
        let even: Vec<i64> = (0..100).map(|k| k * 40 + k * k * 20).collect();
        assert_eq!(of(&even), Some(20));
        let rounded: Vec<i64> = (0..100).map(|k| (k * k + 5 * k) * 125 / 3).collect();
        assert_eq!(of(&rounded), Some(250), "the least step");
    }
}
