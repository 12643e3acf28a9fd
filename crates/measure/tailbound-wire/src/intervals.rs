// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far apart pulses are: all alike, or random around a mean, so that they do not beat with the machine's tick.

/// Even or random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    /// Every interval is the period.
    Even,
    /// Uniform from a half to one and a half periods, from this seed.
    Random(u32),
}

/// The sequence of intervals: the same seed gives the same ones on box and host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intervals {
    period_ticks: u32,
    spacing: Spacing,
}

impl Intervals {
    /// From the begin.
    #[must_use]
    pub const fn new(period_ticks: u32, spacing: Spacing) -> Self {
        // Xorshift stands still at 0.
        let spacing = match spacing {
            Spacing::Random(0) => Spacing::Random(0x9E37_79B9),
            other => other,
        };
        Self { period_ticks, spacing }
    }

    /// The mean.
    #[must_use]
    pub const fn period_ticks(&self) -> u32 {
        self.period_ticks
    }

    /// The next interval.
    pub const fn next(&mut self) -> u32 {
        let Spacing::Random(state) = &mut self.spacing else { return self.period_ticks };
        // Marsaglia (2003), 32 bits, triple 13, 17, 5.
        *state ^= *state << 13;
        *state ^= *state >> 17;
        *state ^= *state << 5;
        // Without a division, which this processor has not.
        let within = ((*state as u64 * self.period_ticks as u64) >> 32) as u32;
        (self.period_ticks - self.period_ticks / 2).saturating_add(within)
    }
}

#[cfg(test)]
mod tests {
    use super::{Intervals, Spacing};

    #[test]
    fn random_intervals_repeat_by_their_seed_and_keep_their_mean() {
        for seed in [0, 1, 77] {
            let mut first = Intervals::new(6_250, Spacing::Random(seed));
            let mut second = first;
            let mut sum = 0_u64;
            for _ in 0..100_000 {
                let interval = first.next();
                assert_eq!(interval, second.next());
                assert!((3_125..=9_375).contains(&interval), "{interval}");
                sum += u64::from(interval);
            }
            let mean = sum / 100_000;
            assert!((6_220..6_280).contains(&mean), "{mean}");
        }
    }
}
