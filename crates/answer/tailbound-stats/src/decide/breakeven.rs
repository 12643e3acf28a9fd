// SPDX-License-Identifier: MIT OR Apache-2.0
//! Total delay of a unit of work on each system, and the length at which they are equal.
//!
//! Units: ns. A unit that takes `w` on the real-fast system is done on the
//! real-time one after its start latency and `w` times the throughput factor: two straight
//! lines, which cross once at most. The interval comes from the corners of the box that the
//! intervals of both latencies and of the factor span; three intervals of 95 % hold together in
//! at least 85 %, whatever depends on what.

use serde::Serialize;

/// Shortest unit of work looked at: 1 µs.
pub const SHORTEST_NS: f64 = 1e3;
/// Longest: 1 s.
pub const LONGEST_NS: f64 = 1e9;
/// Points of a curve in each of its six decades.
const POINTS_A_DECADE: u32 = 10;

/// A value with the ends of its interval, where there are some.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Span {
    /// Best value.
    pub value: f64,
    /// Least it can be; `None`: not bounded by what was seen.
    pub low: Option<f64>,
    /// Greatest it can be.
    pub high: Option<f64>,
}

impl Span {
    /// A value known exactly, or taken as it is.
    #[must_use]
    pub fn exact(value: f64) -> Self {
        Self { value, low: Some(value), high: Some(value) }
    }
}

/// One system: delay = latency + length × factor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Line {
    /// From the event to the start of the work.
    pub latency_ns: Span,
    /// Time of the work over that on the real-fast system.
    pub factor: Span,
}

impl Line {
    /// Total delay of a unit of `length_ns`.
    #[must_use]
    pub fn delay_ns(&self, length_ns: f64) -> f64 {
        self.latency_ns.value + length_ns * self.factor.value
    }

    /// The curve from the shortest to the longest unit: length and delay.
    #[must_use]
    pub fn curve(&self) -> Vec<(f64, f64)> {
        let decades = 6;
        (0..=decades * POINTS_A_DECADE)
            .map(|i| {
                let w = SHORTEST_NS * 10f64.powf(f64::from(i) / f64::from(POINTS_A_DECADE));
                (w, self.delay_ns(w))
            })
            .collect()
    }
}

/// Which system is done first, over the lengths looked at.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Crossing {
    /// Real time below this length, real fast above.
    At {
        /// The length.
        ns: f64,
        /// Lower end of its interval; `None`: it may lie below every length looked at.
        low_ns: Option<f64>,
        /// Upper end; `None`: the lines may not cross.
        high_ns: Option<f64>,
    },
    /// Real fast below this length, real time above: it starts later but works faster.
    Reversed {
        /// The length.
        ns: f64,
    },
    /// Real time is done first at every length looked at.
    RealTimeAlways,
    /// Real fast is.
    RealFastAlways,
    /// Neither is.
    Equal,
}

/// Where `real` and `fast` cross between [`SHORTEST_NS`] and [`LONGEST_NS`]; `fast.factor` is 1.
#[must_use]
pub fn crossing(real: &Line, fast: &Line) -> Crossing {
    let lead = |w: f64| fast.delay_ns(w) - real.delay_ns(w);
    let (short, long) = (lead(SHORTEST_NS), lead(LONGEST_NS));
    let gain_ns = fast.latency_ns.value - real.latency_ns.value;
    let cost = real.factor.value - fast.factor.value;
    if short > 0.0 && long < 0.0 {
        let (low_ns, high_ns) = interval(real, fast);
        Crossing::At { ns: gain_ns / cost, low_ns, high_ns }
    } else if short < 0.0 && long > 0.0 {
        Crossing::Reversed { ns: gain_ns / cost }
    } else if short == 0.0 && long == 0.0 {
        Crossing::Equal
    } else if short >= 0.0 && long >= 0.0 {
        Crossing::RealTimeAlways
    } else {
        Crossing::RealFastAlways
    }
}

/// Least and greatest crossing of the box of all that the parts can be.
fn interval(real: &Line, fast: &Line) -> (Option<f64>, Option<f64>) {
    let difference = |a: Option<f64>, b: Option<f64>| Some(a? - b?);
    let gain_low = difference(fast.latency_ns.low, real.latency_ns.high);
    let gain_high = difference(fast.latency_ns.high, real.latency_ns.low);
    let cost_low = difference(real.factor.low, fast.factor.high);
    let cost_high = difference(real.factor.high, fast.factor.low);
    let low = gain_low.zip(cost_high).filter(|(g, c)| *g > 0.0 && *c > 0.0).map(|(g, c)| g / c);
    let high = gain_high.zip(cost_low).filter(|(_, c)| *c > 0.0).map(|(g, c)| g / c);
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(latency_ns: f64, factor: f64) -> Line {
        Line { latency_ns: Span::exact(latency_ns), factor: Span::exact(factor) }
    }

    #[test]
    fn the_three_figures_of_2008() {
        // 13 µs against 3 ms, at no cost, at that of a kernel build, at twice the time.
        let fast = line(3e6, 1.0);
        assert_eq!(crossing(&line(13e3, 1.0), &fast), Crossing::RealTimeAlways);
        let at = |factor| match crossing(&line(13e3, factor), &fast) {
            Crossing::At { ns, .. } => ns,
            other => panic!("{other:?}"),
        };
        let build = at(1.1678);
        assert!((1e7..2e7).contains(&build), "about 10 ms: {build}");
        let twice = at(2.0);
        assert!((1e6..5e6).contains(&twice), "a few ms: {twice}");
        assert!((twice - 2.987e6).abs() < 1.0);
        assert!((line(13e3, 2.0).delay_ns(twice) - fast.delay_ns(twice)).abs() < 1e-3);
    }

    #[test]
    fn lines_that_do_not_cross_say_so() {
        assert_eq!(crossing(&line(5e3, 1.1), &line(4e3, 1.0)), Crossing::RealFastAlways);
        assert_eq!(crossing(&line(4e3, 0.9), &line(5e3, 1.0)), Crossing::RealTimeAlways);
        assert!(matches!(
            crossing(&line(6e3, 0.9), &line(5e3, 1.0)),
            Crossing::Reversed { ns } if (ns - 1e4).abs() < 1e-6
        ));
        assert_eq!(crossing(&line(5e3, 1.0), &line(5e3, 1.0)), Crossing::Equal);
    }

    #[test]
    fn what_is_not_bounded_stays_open() {
        let mut real = line(10e3, 1.2);
        real.factor = Span { value: 1.2, low: Some(0.9), high: Some(1.5) };
        let fast = Line {
            latency_ns: Span { value: 1e6, low: Some(0.9e6), high: None },
            factor: Span::exact(1.0),
        };
        let Crossing::At { ns, low_ns, high_ns } = crossing(&real, &fast) else { panic!() };
        assert!((ns - 0.99e6 / 0.2).abs() < 1.0);
        assert!(low_ns.is_some_and(|l| (l - 0.89e6 / 0.5).abs() < 1.0) && high_ns.is_none());
    }
}
