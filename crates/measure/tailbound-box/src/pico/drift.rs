// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast the crystal of the box runs against the clock of the host, as limits that hold.
//!
//! Units: ns of the host, ticks of the box, parts in 10^9.
//! Argument: at some instant between a question and its answer the box had sent so many pulses. Of any two such
//! readings the box's time between lies within two limits and the host's too, so that their ratio does. The limits of
//! all pairs together hold if both clocks ran evenly meanwhile.

/// One reading of the box's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// When it was asked for.
    pub asked_ns: i64,
    /// When the answer was there.
    pub answered_ns: i64,
    /// The box's time was not less,
    pub least_ticks: u64,
    /// and not more.
    pub most_ticks: u64,
}

/// How much faster the box runs than the host, in parts in 10^9; negative: it runs slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrystalDrift {
    /// Not less.
    pub least_ppb: i64,
    /// Not more.
    pub most_ppb: i64,
}

impl CrystalDrift {
    /// From readings in their order; `None` of fewer than two, or where they contradict each other.
    #[must_use]
    pub fn of(readings: &[ClockReading], tick_hz: u32) -> Option<Self> {
        let (mut least, mut most) = (i64::MIN, i64::MAX);
        for (i, later) in readings.iter().enumerate() {
            for earlier in readings.get(..i).unwrap_or_default() {
                let shortest_ns = later.asked_ns.saturating_sub(earlier.answered_ns);
                let longest_ns = later.answered_ns.saturating_sub(earlier.asked_ns);
                let fewest = later.least_ticks.saturating_sub(earlier.most_ticks);
                let more = later.most_ticks.saturating_sub(earlier.least_ticks);
                least = least.max(ratio_ppb(fewest, longest_ns, tick_hz)?);
                if shortest_ns > 0 {
                    most = most.min(ratio_ppb(more, shortest_ns, tick_hz)?.saturating_add(1));
                }
            }
        }
        (least > i64::MIN && most < i64::MAX && least <= most)
            .then_some(Self { least_ppb: least, most_ppb: most })
    }

    /// The middle of the limits.
    #[must_use]
    pub fn middle_ppb(self) -> i64 {
        i64::midpoint(self.least_ppb, self.most_ppb)
    }

    /// How far either limit is from it.
    #[must_use]
    pub fn half_width_ppb(self) -> i64 {
        (self.most_ppb - self.least_ppb + 1) / 2
    }
}

/// How much more than `span_ns` the ticks are, rounded down.
fn ratio_ppb(ticks: u64, span_ns: i64, tick_hz: u32) -> Option<i64> {
    let box_ns = i128::from(ticks).checked_mul(1_000_000_000)?;
    let span = i128::from(span_ns).checked_mul(i128::from(tick_hz)).filter(|s| *s > 0)?;
    let ppb = (box_ns - span).checked_mul(1_000_000_000)?.div_euclid(span);
    i64::try_from(ppb).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drift_lies_within_its_limits_whatever_the_line_delays() {
        let hz = 62_500_000;
        for ppb in [-40_000, 0, 25_000] {
            let mut state = 7_u64;
            let mut random = move |below: i64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                i64::try_from(state >> 33).unwrap_or(0) % below
            };
            let readings: Vec<ClockReading> = (0..200_i64)
                .map(|i| {
                    let at_ns = i * 50_000_000 + random(900_000);
                    let ticks =
                        i128::from(at_ns) * hz * (1_000_000_000 + ppb) / 1_000_000_000_i128.pow(2);
                    // Pulses are 2,500 ticks apart, and up to two of them are not yet counted.
                    let counted = u64::try_from(ticks).expect("positive") / 2_500 * 2_500;
                    ClockReading {
                        asked_ns: at_ns - random(1_000_000),
                        answered_ns: at_ns + random(1_000_000),
                        least_ticks: counted,
                        most_ticks: counted + 3 * 2_500,
                    }
                })
                .collect();
            let drift = CrystalDrift::of(&readings, 62_500_000).expect("consistent");
            let ppb = i64::try_from(ppb).expect("small");
            assert!((drift.least_ppb..=drift.most_ppb).contains(&ppb), "{ppb}: {drift:?}");
            assert!(drift.half_width_ppb() < 30_000, "{drift:?}");
        }
    }

    #[test]
    fn readings_that_contradict_each_other_give_no_drift() {
        let reading = |ns: i64, ticks: u64| ClockReading {
            asked_ns: ns,
            answered_ns: ns + 1_000,
            least_ticks: ticks,
            most_ticks: ticks,
        };
        let all =
            [reading(0, 0), reading(1_000_000_000, 62_500_000), reading(2_000_000_000, 62_500_001)];
        assert_eq!(CrystalDrift::of(&all, 62_500_000), None);
        assert_eq!(CrystalDrift::of(&all[..1], 62_500_000), None);
    }
}
