// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work done per second over the time of a benchmark: its steadiness, in the place of its sum.
//!
//! Units: s, units a second.
//! First and last interval of a repetition are left out: in them tasks are still being
//! started, or are gone already.

use serde::Serialize;
use tailbound_core::number::Real as _;
use tailbound_core::record::BenchmarkRecord;

use super::sample::Sample;

/// Intervals of a repetition that make a rate over time.
const INTERVALS_MIN: usize = 2;

/// The rate of one benchmark over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// Which benchmark.
    pub spec: String,
    /// What is counted.
    pub unit: String,
    /// Middle of each interval, in working time over all repetitions, and the rate in it.
    pub points: Vec<(f64, f64)>,
    /// Over all intervals.
    pub sample: Option<Sample>,
}

/// The rates of the benchmarks that counted something over time.
#[must_use]
pub fn rates(records: &[&BenchmarkRecord]) -> Vec<Rate> {
    let mut out: Vec<Rate> = Vec::new();
    let mut offsets: Vec<f64> = Vec::new();
    for r in records.iter().filter(|r| r.failed.is_none() && r.work != "cmd") {
        let at = out.iter().position(|o| o.spec == r.spec).unwrap_or_else(|| {
            out.push(Rate {
                spec: r.spec.clone(),
                unit: r.unit.clone(),
                points: Vec::new(),
                sample: None,
            });
            offsets.push(0.0);
            out.len() - 1
        });
        let (Some(rate), Some(offset)) = (out.get_mut(at), offsets.get_mut(at)) else { continue };
        let mut begin_ns = 0;
        let mut all = Vec::new();
        for i in &r.intervals {
            let span_s = (i.t_ns - begin_ns).real() / 1e9;
            let middle_s = (begin_ns.real() + i.t_ns.real()) / 2e9;
            begin_ns = i.t_ns;
            if span_s > 0.0 {
                all.push((*offset + middle_s, i.count.real() / span_s));
            }
        }
        let whole = all.get(1..all.len().saturating_sub(1)).unwrap_or_default();
        if whole.len() >= INTERVALS_MIN {
            rate.points.extend_from_slice(whole);
        }
        *offset += r.real_ns.real() / 1e9;
    }
    out.retain(|r| !r.points.is_empty());
    for rate in &mut out {
        rate.sample = Sample::of(&rate.points.iter().map(|p| p.1).collect::<Vec<_>>());
    }
    out
}
