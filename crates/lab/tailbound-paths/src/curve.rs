// SPDX-License-Identifier: MIT OR Apache-2.0
//! How likely a wake-up is later than each time.
//!
//! Units: ns. Pure.

use tailbound_core::paths::CurvePoint;

use crate::sections::{self, Sections};

/// Points of the curve.
const POINTS: i64 = 40;

/// P(later than x), of the samples and of all instants: what a wake-up takes that fell into no section is as the
/// samples have it, and what it waits for is as the sections have it.
pub(crate) fn of(sections: &Sections, residual: &[u64], latencies_ns: &[i64]) -> Vec<CurvePoint> {
    let (lengths, window) = (sections.lengths(), sections.window_ns());
    let mut rest: Vec<u64> = latencies_ns
        .iter()
        .zip(residual)
        .filter(|(_, residual)| **residual == 0)
        .map(|(latency, _)| (*latency).max(0).cast_unsigned())
        .collect();
    if rest.is_empty() {
        rest.extend(latencies_ns.iter().min().map(|l| (*l).max(0).cast_unsigned()));
    }
    rest.sort_unstable();
    // A hundred of them stand for all.
    let some: Vec<u64> = rest.iter().copied().step_by((rest.len() / 100).max(1)).collect();
    let longest = lengths.last().map_or(0, |l| l.0.cast_signed());
    let most = latencies_ns.iter().copied().max().unwrap_or(0);
    let end = most.max(longest + some.first().map_or(0, |r| r.cast_signed()));
    let begin = latencies_ns.iter().copied().min().unwrap_or(0);
    let step = ((end - begin) / POINTS).max(1);
    let mut points = Vec::new();
    for n in 0..=POINTS {
        let ns = begin + n * step;
        let later = latencies_ns.iter().filter(|l| **l > ns).count();
        let of = |r: &u64| sections::later_than(&lengths, window, *r, ns.max(0).cast_unsigned());
        let instants: f64 = some.iter().map(of).sum();
        points.push(CurvePoint {
            ns,
            samples: share(later, latencies_ns.len()),
            instants: if some.is_empty() { 0.0 } else { instants / real(some.len()) },
        });
    }
    points
}

#[expect(clippy::cast_precision_loss, reason = "counts of samples")]
fn real(n: usize) -> f64 {
    n as f64
}

fn share(part: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { real(part) / real(of) }
}
