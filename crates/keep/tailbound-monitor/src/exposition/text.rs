// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text format 0.0.4.
//!
//! Units: seconds.
//! Source: Prometheus, "Exposition formats", text format 0.0.4.

use std::fmt::Write as _;

use tailbound_core::exposition::{self, label};

use super::{Family, Kind, Value, Whose, buckets, seconds};

fn labels(whose: &Whose) -> String {
    format!("comm=\"{}\",policy=\"{}\"", label(&whose.0), whose.1)
}

fn push(out: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(out, "{line}").unwrap_or_default();
}

/// The page.
pub(super) fn page(families: &[Family<'_>]) -> String {
    let mut out = String::new();
    for Family { name, help, kind, metrics } in families {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        exposition::Family { name, kind, help }.text(&mut out);
        for metric in metrics {
            let whose = metric.whose.map(labels);
            match (&metric.value, whose) {
                (Value::Number(value), None) => push(&mut out, format_args!("{name} {value}")),
                (Value::Number(value), Some(whose)) => {
                    push(&mut out, format_args!("{name}{{{whose}}} {value}"));
                }
                (Value::Histogram(series), whose) => {
                    let whose = whose.unwrap_or_default();
                    for (end, n) in buckets(series) {
                        push(&mut out, format_args!("{name}_bucket{{{whose},le=\"{end}\"}} {n}"));
                    }
                    let n = series.n;
                    push(&mut out, format_args!("{name}_bucket{{{whose},le=\"+Inf\"}} {n}"));
                    push(
                        &mut out,
                        format_args!("{name}_sum{{{whose}}} {}", seconds(series.sum_ns)),
                    );
                    push(&mut out, format_args!("{name}_count{{{whose}}} {n}"));
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::{Format, Metrics, page};
    use crate::window::{Policy, Series};

    #[test]
    fn buckets_are_cumulative_and_end_with_all() {
        let mut series = Series { n: 4, sum_ns: 5_000_000_000, max_ns: 2_000, ..Series::default() };
        series.classes = BTreeMap::from([(767, 1), (1023, 1), (1279, 1), (4_294_967_295, 1)]);
        let whose = ("a\"b\\".to_owned(), Policy::of(1, 80));
        let told = Metrics { series: BTreeMap::from([(whose, series)]), ..Metrics::default() };
        let page = String::from_utf8(page(&told, Format::Text)).unwrap();
        for line in [
            "# TYPE tailbound_wakeup_wait_seconds histogram",
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
