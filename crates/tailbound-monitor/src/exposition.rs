// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Prometheus reads.
//!
//! Context: COLD. Units: seconds, as its conventions want. Classic buckets at powers of two of ns: each is the end of a class, so
//! that its count is exact. Native histograms exist in its binary format alone, and their classes are others
//! than the kernel's programs count.
//! Source: Prometheus, "Exposition formats", text format 0.0.4.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::cost::Cost;
use crate::window::{Policy, Series};

/// Buckets from 2^10 ns (1 µs) to 2^30 ns (1 s).
const BUCKET_BITS: std::ops::RangeInclusive<u32> = 10..=30;

/// Name and policy of the threads of one series.
pub(crate) type Whose = (String, Policy);

/// All that is told.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Told {
    pub(crate) series: BTreeMap<Whose, Series>,
    pub(crate) windows: u64,
    pub(crate) not_written: u64,
    pub(crate) lost: u64,
    pub(crate) late: u64,
    pub(crate) suspended_ns: i64,
    pub(crate) own: Cost,
}

fn label(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
    out
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// The page.
pub(crate) fn text(told: &Told) -> String {
    let mut out = String::from(
        "# HELP tailbound_wakeup_wait_seconds From the wake-up of a real-time thread until it has a CPU.\n\
         # TYPE tailbound_wakeup_wait_seconds histogram\n",
    );
    for ((comm, policy), series) in &told.series {
        let whose = format!("comm=\"{}\",policy=\"{policy}\"", label(comm));
        let name = "tailbound_wakeup_wait_seconds";
        let mut sum = 0u64;
        let mut classes = series.classes.iter().peekable();
        for bits in BUCKET_BITS {
            let end = 1u64 << bits;
            while let Some((_, n)) = classes.next_if(|(upper, _)| **upper < end) {
                sum = sum.saturating_add(*n);
            }
            push(&mut out, format_args!("{name}_bucket{{{whose},le=\"{}\"}} {sum}", seconds(end)));
        }
        push(&mut out, format_args!("{name}_bucket{{{whose},le=\"+Inf\"}} {}", series.n));
        push(&mut out, format_args!("{name}_sum{{{whose}}} {}", seconds(series.sum_ns)));
        push(&mut out, format_args!("{name}_count{{{whose}}} {}", series.n));
    }
    out.push_str(
        "# HELP tailbound_wakeup_wait_max_seconds The longest wait of the last whole window.\n\
         # TYPE tailbound_wakeup_wait_max_seconds gauge\n",
    );
    for ((comm, policy), series) in &told.series {
        let name = "tailbound_wakeup_wait_max_seconds";
        let (comm, max) = (label(comm), seconds(series.max_ns));
        push(&mut out, format_args!("{name}{{comm=\"{comm}\",policy=\"{policy}\"}} {max}"));
    }
    for (name, kind, help, value) in [
        (
            "lost_wakeups_total",
            "counter",
            "Wake-ups that found no room and are in no figure.",
            told.lost as f64,
        ),
        ("late_wakeups_total", "counter", "Wake-ups over the threshold.", told.late as f64),
        ("windows_total", "counter", "Windows that ended.", told.windows as f64),
        (
            "windows_not_written_total",
            "counter",
            "Windows that could not be written.",
            told.not_written as f64,
        ),
        (
            "suspended_seconds_total",
            "counter",
            "What the machine slept.",
            told.suspended_ns as f64 / 1e9,
        ),
        (
            "cpu_seconds_total",
            "counter",
            "CPU time of the monitor itself.",
            seconds(told.own.cpu_ns),
        ),
        (
            "peak_resident_bytes",
            "gauge",
            "The most memory the monitor had resident.",
            told.own.peak_bytes.map_or(f64::NAN, |b| b as f64),
        ),
    ] {
        push(&mut out, format_args!("# HELP tailbound_monitor_{name} {help}"));
        push(&mut out, format_args!("# TYPE tailbound_monitor_{name} {kind}"));
        push(&mut out, format_args!("tailbound_monitor_{name} {value}"));
    }
    out
}

fn push(out: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(out, "{line}").unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative_and_end_with_all() {
        let mut series = Series { n: 4, sum_ns: 5_000_000_000, max_ns: 2_000, ..Series::default() };
        series.classes = BTreeMap::from([(767, 1), (1023, 1), (1279, 1), (4_294_967_295, 1)]);
        let whose = ("a\"b\\".to_owned(), Policy::of(1, 80));
        let told = Told { series: BTreeMap::from([(whose, series)]), ..Told::default() };
        let page = text(&told);
        for line in [
            r#"tailbound_wakeup_wait_seconds_bucket{comm="a\"b\\",policy="fifo:80",le="0.000001024"} 2"#,
            r#"tailbound_wakeup_wait_seconds_bucket{comm="a\"b\\",policy="fifo:80",le="0.000002048"} 3"#,
            r#"tailbound_wakeup_wait_seconds_bucket{comm="a\"b\\",policy="fifo:80",le="1.073741824"} 3"#,
            r#"tailbound_wakeup_wait_seconds_bucket{comm="a\"b\\",policy="fifo:80",le="+Inf"} 4"#,
            r#"tailbound_wakeup_wait_seconds_sum{comm="a\"b\\",policy="fifo:80"} 5"#,
            r#"tailbound_wakeup_wait_max_seconds{comm="a\"b\\",policy="fifo:80"} 0.000002"#,
            "tailbound_monitor_lost_wakeups_total 0",
        ] {
            assert!(page.lines().any(|l| l == line), "{line}\n{page}");
        }
    }
}
