// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which exceedances are followed by one that is whole periods later.
//!
//! Units: ns, in doubles that hold whole numbers.

use tailbound_core::number::Real as _;

/// How far from a whole number of periods a distance may be.
#[derive(Clone, Copy)]
pub(super) struct Tolerance {
    /// On either side.
    half: f64,
    /// Share of a period that is covered: of all times, or of those that are multiples of the interval.
    pub(super) share: f64,
}

/// What keeps a period within one tolerance.
pub(super) struct Links {
    pub(super) tolerance: Tolerance,
    /// Exceedances that one link at least leads to.
    pub(super) count: usize,
    /// Sum of the distances, and of the periods that they span.
    distance: f64,
    spans: f64,
    led_to: usize,
}

impl Tolerance {
    /// Most of them for one period.
    pub(super) const MOST: usize = 6;

    /// Those that are tried for `period`, where times are multiples of `interval` (0: free).
    fn all(period: f64, interval: f64) -> impl Iterator<Item = Self> {
        // Less than half an interval is one multiple of it, less than one are two.
        let tied = [0.49, 0.99].map(|part| part * interval);
        let free = [1000.0, 250.0, 64.0, 16.0].map(|part| period / part);
        // The first time that a link can lead to must not keep the period, or short distances alone would.
        let first = if interval > 0.0 { (period / 2.0 / interval).ceil() * interval } else { 0.0 };
        tied.into_iter().chain(free).enumerate().filter_map(move |(i, half)| {
            if half <= 0.0 || (i >= tied.len() && half < interval) || period - first <= half {
                return None;
            }
            let width = 2.0 * half;
            let covered = match interval > 0.0 {
                true => ((width / interval).floor() + 1.0) * interval,
                false => width,
            };
            let share = covered / period;
            let narrow = share <= 0.25 || (i == 0 && share <= 0.5);
            narrow.then_some(Self { half, share })
        })
    }
}

impl Links {
    /// Those of `times`, which are sorted, at each tolerance; and how many distances were looked at.
    pub(super) fn of(times: &[f64], period: f64, interval: f64) -> (Vec<Self>, usize) {
        let begin =
            |tolerance| Self { tolerance, count: 0, distance: 0.0, spans: 0.0, led_to: usize::MAX };
        let mut all: Vec<Self> = Tolerance::all(period, interval).map(begin).collect();
        let widest = all.iter().fold(0.0, |most: f64, l| most.max(l.tolerance.half));
        let tried = walk(times, period, |distance, spans, _, to| {
            let off = (distance - spans * period).abs();
            if off > widest {
                return;
            }
            // Several that lead to one (a cluster) are one.
            for l in all.iter_mut().filter(|l| off <= l.tolerance.half && l.led_to != to) {
                l.led_to = to;
                l.count += 1;
                l.distance += distance;
                l.spans += spans;
            }
        });
        (all, tried)
    }

    /// The mean period of the links; `otherwise` where there is none.
    pub(super) fn mean_period(&self, otherwise: f64) -> f64 {
        if self.spans > 0.0 { self.distance / self.spans } else { otherwise }
    }
}

/// The exceedances that keep `period`, in order, and how far each distance is off, sorted.
pub(super) fn kept(times: &[f64], period: f64, tolerance: Tolerance) -> (Vec<usize>, Vec<f64>) {
    let (mut kept, mut all_off) = (Vec::new(), Vec::new());
    walk(times, period, |distance, spans, from, to| {
        let off = (distance - spans * period).abs();
        if off <= tolerance.half && kept.last() != Some(&to) {
            if kept.last() != Some(&from) {
                kept.push(from);
            }
            kept.push(to);
            all_off.push(off);
        }
    });
    kept.sort_unstable();
    kept.dedup();
    all_off.sort_unstable_by(f64::total_cmp);
    (kept, all_off)
}

/// Of the links that keep `period`, the share that spans no multiple of `part` periods.
pub(super) fn between(times: &[f64], period: f64, tolerance: Tolerance, part: f64) -> f64 {
    let (mut all, mut between) = (0usize, 0usize);
    walk(times, period, |distance, spans, _, _| {
        if (distance - spans * period).abs() <= tolerance.half {
            all += 1;
            between += usize::from(spans % part > 0.0);
        }
    });
    between.real() / all.max(1).real()
}

/// Calls `link` with the distance from each exceedance to the first one at least half a period later, the periods
/// that it spans, and both places. How many there are.
fn walk(times: &[f64], period: f64, mut link: impl FnMut(f64, f64, usize, usize)) -> usize {
    let half_period = period / 2.0;
    let mut to = 0usize;
    for (from, at) in times.iter().enumerate() {
        while times.get(to).is_some_and(|t| t - at < half_period) {
            to += 1;
        }
        let Some(next) = times.get(to) else { return from };
        let distance = next - at;
        link(distance, (distance / period).round(), from, to);
    }
    times.len()
}
