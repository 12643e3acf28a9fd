// SPDX-License-Identifier: MIT OR Apache-2.0
//! One statistic of one run: its value, what is known of it, and why there is none.
//!
//! Units: ns for times, shares from 0 to 1, percent, per second.
//! Half-widths are those of [`mod@crate::precision`] (stretches of the schedule are the
//! unit) and, for benchmarks, Student's and chi-square over the repetitions. A run too short for stretches has
//! limits as if its activations were independent, which is said. The latest and earliest are exact for
//! what was measured and have no limit: nothing here extrapolates.

use serde::Serialize;
use tailbound_core::campaign::{Cost, Of, Statistic, StatisticKind};
use tailbound_core::number::Real as _;
use tailbound_core::record::BenchmarkRecord;
use tailbound_core::units::{format_ns_i64, grouped};
use tailbound_core::{Context, Run};

use crate::decide::{Sample, advantage};
use crate::{Precision, Quantile, Summary, chi, quantile, student};

const CONFIDENCE: f64 = 0.95;
/// How far from the middle of its interval a value may be that is shown with ±, in half-widths.
const EVEN: f64 = 0.25;

/// A figure of ours.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Value {
    /// What it is.
    pub value: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Due activations or repetitions behind it.
    pub n: u64,
    /// Is it an extreme of what was measured, of which more events only give more?
    pub extreme: bool,
    /// Why there is no value, or no interval.
    pub why: Option<String>,
}

impl Value {
    fn absent(why: impl Into<String>) -> Self {
        Self { why: Some(why.into()), ..Self::default() }
    }
    fn half(value: Option<f64>, half: Option<f64>, n: u64) -> Self {
        let half = half.filter(|h| h.is_finite());
        Self {
            value,
            low: value.zip(half).map(|(v, h)| v - h),
            high: value.zip(half).map(|(v, h)| v + h),
            n,
            ..Self::default()
        }
    }
    /// Half of its interval; `None` where the value is not near its middle.
    #[must_use]
    pub fn half_width(&self) -> Option<f64> {
        let (value, low, high) = (self.value?, self.low?, self.high?);
        let half = (high - low) / 2.0;
        let off = (f64::midpoint(low, high) - value).abs();
        (off <= half * EVEN).then_some(half)
    }
}

/// The statistic of `run`; `base` is what an advantage is over.
#[must_use]
pub fn value(run: &Run, statistic: &Statistic, base: Option<&Run>) -> Value {
    if let StatisticKind::Benchmark(cost, of) = statistic.what {
        return benchmark(run, cost, of, base);
    }
    let context = statistic.context.or_else(|| run.judged_context());
    let Some(context) = context.filter(|c| run.contexts().contains(c)) else {
        let wanted = statistic.context.unwrap_or_default();
        return Value::absent(format!("the run has no thread of context `{wanted}`"));
    };
    let (_, due) = run.total(context);
    if due.n == 0 {
        return Value::absent("nothing woke");
    }
    let summary = Summary::of(&due);
    let n = due.n;
    let extreme =
        |v: Option<i64>| Value { value: v.map(|v| v.real()), n, extreme: true, ..Value::default() };
    let moment = |value: Option<f64>, half: fn(&Precision) -> Option<f64>, alone: Option<f64>| {
        let known = crate::precision::of_run(run, context, None);
        match (half(&known), &known.why_not) {
            (None, Some(why)) => {
                Value { why: Some(independent(alone, why)), ..Value::half(value, alone, n) }
            }
            (known, _) => Value::half(value, known, n),
        }
    };
    let root_n = (n.real()).sqrt();
    let z = crate::normal::quantile(f64::midpoint(CONFIDENCE, 1.0));
    let mean_alone = summary.sd_ns.map(|sd| z * sd / root_n);
    // Of the deviation, by the fourth moment.
    let sd_alone = summary
        .sd_ns
        .zip(summary.kurtosis)
        .map(|(sd, k)| z * sd * (k + 2.0).max(0.0).sqrt() / (2.0 * root_n));
    match statistic.what {
        StatisticKind::N => Value { value: Some(n.real()), n, ..Value::default() },
        StatisticKind::Min => extreme(summary.min_ns),
        StatisticKind::Max => extreme(summary.max_ns),
        StatisticKind::Mean => moment(summary.mean_ns, |p| p.mean_ns, mean_alone),
        StatisticKind::Sd => moment(summary.sd_ns, |p| p.sd_ns, sd_alone),
        StatisticKind::Skewness => moment(summary.skewness, |p| p.skewness, None),
        StatisticKind::Kurtosis => moment(summary.kurtosis, |p| p.kurtosis, None),
        StatisticKind::Mode => match summary.mode_below() {
            Some(ns) => {
                let below = format!("it is < {}: the lowest step of the source", format_ns_i64(ns));
                Value { n, ..Value::absent(below) }
            }
            None => Value { value: summary.mode.map(|m| m.ns), n, ..Value::default() },
        },
        StatisticKind::Median => at(run, context, 0.5),
        StatisticKind::Quantile(p) => at(run, context, p),
        StatisticKind::Within(limit) => {
            let (beyond, unknown) = due.beyond(limit);
            let share = |late: u64| 1.0 - late.real() / n.real();
            Value {
                value: Some(share(beyond)),
                low: Some(share(beyond.saturating_add(unknown))),
                high: Some(share(beyond)),
                n,
                ..Value::default()
            }
        }
        StatisticKind::Benchmark(..) => Value::absent("not a latency"),
    }
}

/// Why an interval is not from stretches.
fn independent(half: Option<f64>, why: &str) -> String {
    match half {
        Some(_) => format!(
            "interval as if activations were independent of each other ({why}): too narrow where they are not"
        ),
        None => format!("no interval: {why}"),
    }
}

/// The quantile of `p`.
fn at(run: &Run, context: Context, p: f64) -> Value {
    let (_, due) = run.total(context);
    match quantile(&due, p) {
        Quantile::Value { ns, .. } => {
            let known = Precision::of(&run.blocks, None, &[p]);
            let (low, high, why) = match (known.quantile(p), &known.why_not) {
                (None, Some(why)) => {
                    // Normal limits of the binomial rank.
                    let half = 1.96 * (p * (1.0 - p) / due.n.real()).sqrt();
                    let rank =
                        |p: f64| (p > 0.0 && p < 1.0).then(|| quantile(&due, p).ns()).flatten();
                    (rank(p - half), rank(p + half), Some(independent(Some(half), why)))
                }
                (width, why) => {
                    (width.and_then(|w| w.low_ns), width.and_then(|w| w.high_ns), why.clone())
                }
            };
            Value { value: Some(ns), low, high, n: due.n, why, ..Value::default() }
        }
        Quantile::Needs { more } => Value {
            n: due.n,
            ..Value::absent(format!("withheld: it needs {} more activations", grouped(more)))
        },
        Quantile::Below { ns, .. } => {
            Value { n: due.n, ..Value::absent(format!("less than {}", format_ns_i64(ns))) }
        }
        Quantile::AtLeast { ns } => {
            Value { n: due.n, ..Value::absent(format!("{} or more", format_ns_i64(ns))) }
        }
        Quantile::Unknown => Value::absent("not in the source"),
    }
}

/// Repetitions of a benchmark, in ns or per second.
#[must_use]
pub fn repetitions(run: &Run, cost: Cost) -> Vec<f64> {
    let ended = run.benchmarks.iter().filter(|w| w.failed.is_none());
    let one = |w: &BenchmarkRecord| match cost {
        Cost::Real => w.real_ns.real(),
        Cost::User => w.user_ns.real(),
        Cost::Sys => w.sys_ns.real(),
        Cost::Rate => w.count.real() * 1e9 / (w.real_ns.max(1)).real(),
    };
    ended.map(one).collect()
}

fn benchmark(run: &Run, cost: Cost, of: Of, base: Option<&Run>) -> Value {
    let Some(own) = Sample::of(&repetitions(run, cost)) else {
        return Value::absent("no repetition of a benchmark completed");
    };
    let n = u64::from(own.n);
    let freedom = f64::from(own.n) - 1.0;
    match of {
        Of::Mean if own.n < 2 => Value {
            value: Some(own.mean),
            n,
            why: Some("one repetition has no deviation".to_owned()),
            ..Value::default()
        },
        Of::Mean => {
            let t = student::quantile(f64::midpoint(CONFIDENCE, 1.0), freedom);
            Value::half(Some(own.mean), Some(t * own.error_squared().sqrt()), n)
        }
        Of::Sd if own.n < 2 => Value::absent("one repetition has no deviation"),
        Of::Sd => {
            // As if the repetitions were normal.
            let end = |p: f64| own.sd * (freedom / chi::chi_square_quantile(freedom, p)).sqrt();
            let tail = f64::midpoint(CONFIDENCE, 1.0);
            let (low, high) = (Some(end(tail)), Some(end(1.0 - tail)));
            Value { value: Some(own.sd), low, high, n, ..Value::default() }
        }
        Of::Advantage => {
            // Of the first system itself there is none.
            let base =
                base.filter(|b| b.header.id != run.header.id || b.header.lab != run.header.lab);
            let Some(base) = base.and_then(|b| Sample::of(&repetitions(b, cost))) else {
                return Value::absent(
                    "it takes a system without PREEMPT_RT, measured with the same step",
                );
            };
            match advantage::advantage(&own, &base, CONFIDENCE) {
                None => Value::absent("the other system's mean is not above 0"),
                Some(a) => Value {
                    value: Some(a.percent),
                    low: a.ratio_low.map(|r| (r - 1.0) * 100.0),
                    high: a.ratio_high.map(|r| (r - 1.0) * 100.0),
                    n,
                    extreme: false,
                    why: a.why_not,
                },
            }
        }
    }
}
