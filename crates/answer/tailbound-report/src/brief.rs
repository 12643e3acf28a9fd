// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run in one line of `key=value`, for logs and CI.
//!
//! Figures are per due activation of the judged context. Keys are added at the end, never
//! renamed. Source: the logfmt convention; values with a space stand in quotes.

use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::printable;
use tailbound_core::units::exact;
use tailbound_stats::analysis::Figures;
use tailbound_stats::{Analysis, Quantile};

/// A run in one line.
#[must_use]
pub fn brief(analysis: &Analysis<'_>) -> String {
    let run = analysis.run();
    let judged = analysis.judged();
    let due = judged.map(|f| &f.due);
    let plan = &run.header.plan;
    let time = |ns: Option<i64>| ns.map_or_else(|| "unknown".to_owned(), short);
    let quantile = |p: f64| match due.and_then(|s| s.quantile(p)) {
        Some(Quantile::Value { ns, .. }) => short(ns.whole_i64()),
        Some(Quantile::AtLeast { ns }) => format!(">={}", short(ns)),
        _ => "n/a".to_owned(),
    };
    let loads: Vec<String> = plan.loads.iter().map(ToString::to_string).collect();
    let fact = |name: &str| {
        run.header.machine.get(name).and_then(|f| f.as_str()).unwrap_or("unknown").to_owned()
    };
    let grave = run.findings.iter().filter(|f| f.impact != tailbound_core::Impact::Notice).count();
    let pairs = [
        ("outcome", analysis.outcome().to_string()),
        ("probe", plan.probe.clone()),
        ("deadline", plan.requirement.deadline_ns.map_or_else(|| "none".to_owned(), exact)),
        ("n", due.map_or(0, |s| s.n).to_string()),
        ("missed", judged.map_or(0, Figures::missed).to_string()),
        ("min", time(due.and_then(|s| s.min_ns))),
        ("p50", quantile(0.5)),
        ("p99", quantile(0.99)),
        ("p99.9", quantile(0.999)),
        ("max", time(due.and_then(|s| s.max_ns))),
        ("measured", short(run.measured_ns())),
        ("cpus", plan.cpus.to_string()),
        ("load", if loads.is_empty() { "none".to_owned() } else { loads.join("+") }),
        ("kernel", fact("kernel.release")),
        ("doubts", grave.to_string()),
        ("id", run.header.id.clone()),
        ("policy", plan.policy.to_string()),
        ("interval", plan.interval().map_or_else(|| "unknown".to_owned(), short)),
        ("sleep", plan.means.to_string()),
    ];
    let words: Vec<String> = pairs.iter().map(|(k, v)| format!("{k}={}", value(v))).collect();
    words.join(" ")
}

/// ns with four significant digits at most and without a space: `4.263ms`.
fn short(ns: i64) -> String {
    let a = ns.unsigned_abs();
    let (unit, factor) = match a {
        0..1_000 => return format!("{ns}ns"),
        1_000..1_000_000 => ("us", 1e3),
        1_000_000..1_000_000_000 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    let v = ns.real() / factor;
    let decimals = match v.abs() {
        v if v < 9.9995 => 3,
        v if v < 99.995 => 2,
        v if v < 999.95 => 1,
        _ => 0,
    };
    let text = format!("{v:.decimals$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

fn value(text: &str) -> String {
    let text = printable::line(text).into_owned();
    if text.is_empty() || text.contains([' ', '"', '=']) {
        return format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_four_digits_and_no_space() {
        let all = [
            (0, "0ns"),
            (999, "999ns"),
            (29_400, "29.4us"),
            (4_263_100, "4.263ms"),
            (-1_500, "-1.5us"),
            (60_000_000_000, "60s"),
        ];
        for (ns, text) in all {
            assert_eq!(short(ns), text);
        }
        assert_eq!(value("a b"), "\"a b\"");
        assert_eq!(value("hackbench:groups=4"), "\"hackbench:groups=4\"");
    }
}
