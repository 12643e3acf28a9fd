// SPDX-License-Identifier: MIT OR Apache-2.0
//! The benchmarks of one run: each repetition with its times, their mean and deviation, and what was
//! done a second over time.
//!
//! Units: ns in; seconds for people, as time(1) writes them.

use serde_json::{Value, json};
use tailbound_core::Run;
use tailbound_core::number::Real as _;
use tailbound_core::record::BenchmarkRecord;
use tailbound_stats::decide::rates::{Rate, rates as rates_of};
use tailbound_stats::decide::sample::Sample;

use super::rates;
use crate::escape::terminal;
use crate::table::Table;

/// Columns of a terminal.
const WIDTH: usize = 80;

/// The benchmarks of a run as text; empty where it has none.
#[must_use]
pub fn text(run: &Run) -> String {
    if run.benchmarks.is_empty() {
        return String::new();
    }
    let mut out = String::from("\nBenchmarks: what the system costs in throughput\n");
    for spec in specs(run) {
        out.push_str(&format!("\n  {}\n", terminal(spec)));
        for line in table(run, spec).text(WIDTH - 2) {
            out.push_str(&format!("  {line}\n"));
        }
        if let Some(words) = steadiness(run, spec) {
            out.push_str(&format!("  {words}\n"));
        }
        for w in run.benchmarks.iter().filter(|w| w.spec == spec) {
            if let Some(why) = &w.failed {
                out.push_str(&format!("  {} failed: {}\n", w.repetition, terminal(why)));
            }
        }
    }
    out.push('\n');
    out
}

/// The same as part of a page of one run.
pub(crate) fn section(page: &mut crate::html::page::Page, run: &Run, prefix: &str) {
    if run.benchmarks.is_empty() {
        return;
    }
    page.heading("Benchmarks: what the system costs in throughput");
    for (n, spec) in specs(run).into_iter().enumerate() {
        page.text("", spec);
        page.push(&table(run, spec).html());
        match rate(run, spec).as_ref().and_then(rates::of_one) {
            Some(figure) => page.figure(&figure, &format!("{prefix}-{n}")),
            None => page.list(&steadiness(run, spec).into_iter().collect::<Vec<_>>()),
        }
        for w in run.benchmarks.iter().filter(|w| w.spec == spec) {
            if let Some(why) = &w.failed {
                page.text("soft", &format!("{} failed: {why}", w.repetition));
            }
        }
    }
}

/// The same for scripts: a list of benchmarks with their repetitions, means and deviations.
#[must_use]
pub fn json(run: &Run) -> Value {
    let benchmarks: Vec<Value> = specs(run)
        .into_iter()
        .map(|spec| {
            let of: Vec<&BenchmarkRecord> =
                run.benchmarks.iter().filter(|w| w.spec == spec).collect();
            let stat = |ns: fn(&BenchmarkRecord) -> i64| {
                Sample::of(&times(&of, ns))
                    .map(|s| json!({"n": s.n, "mean_s": s.mean, "sd_s": s.sd}))
            };
            json!({
                "work": of.first().map(|w| w.work.as_str()),
                "spec": spec,
                "repetitions": of,
                "real": stat(|w| w.real_ns),
                "user": stat(|w| w.user_ns),
                "sys": stat(|w| w.sys_ns),
                "a_second": rate(run, spec).and_then(|r| r.sample),
            })
        })
        .collect();
    json!({"schema": "tailbound-works/1", "id": run.header.id, "works": benchmarks})
}

/// What one benchmark did a second, over its time; `None` where too little of it was told.
fn rate(run: &Run, spec: &str) -> Option<Rate> {
    let of: Vec<&BenchmarkRecord> = run.benchmarks.iter().filter(|w| w.spec == spec).collect();
    rates_of(&of).into_iter().next()
}

/// What it did a second and how steadily, or why that is unknown; `None` of what has no rate.
fn steadiness(run: &Run, spec: &str) -> Option<String> {
    if let Some(rate) = rate(run, spec) {
        return rates::sentence(&rate);
    }
    let counts = |w: &BenchmarkRecord| w.spec == spec && w.count > 0 && w.work != "cmd";
    run.benchmarks.iter().any(counts).then(|| {
        "Its rate over time is unknown: a repetition has too few whole intervals of 100 ms; a greater loops= shows it."
            .to_owned()
    })
}

/// Specifications in the order they were done first.
#[must_use]
pub fn specs(run: &Run) -> Vec<&str> {
    let mut out: Vec<&str> = Vec::new();
    for w in &run.benchmarks {
        if !out.contains(&w.spec.as_str()) {
            out.push(&w.spec);
        }
    }
    out
}

/// Seconds of the repetitions that came to their end.
#[must_use]
pub fn times(of: &[&BenchmarkRecord], ns: fn(&BenchmarkRecord) -> i64) -> Vec<f64> {
    of.iter().filter(|w| w.failed.is_none()).map(|w| ns(w).real() / 1e9).collect()
}

fn table(run: &Run, spec: &str) -> Table {
    let of: Vec<&BenchmarkRecord> = run.benchmarks.iter().filter(|w| w.spec == spec).collect();
    let mut table = Table::new(&["", "real", "user", "sys", "done"]);
    let done = |w: &BenchmarkRecord| match w.count {
        0 => String::new(),
        n => format!("{} {}", tailbound_core::units::grouped(n), w.unit),
    };
    for w in of.iter().filter(|w| w.failed.is_none()) {
        let s = |ns: i64| seconds(ns.real() / 1e9);
        let row = vec![w.repetition.to_string(), s(w.real_ns), s(w.user_ns), s(w.sys_ns), done(w)];
        table.row(row);
    }
    let stats = [
        |w: &BenchmarkRecord| w.real_ns,
        |w: &BenchmarkRecord| w.user_ns,
        |w: &BenchmarkRecord| w.sys_ns,
    ]
    .map(|ns| Sample::of(&times(&of, ns)));
    let row = |name: &str, of: fn(&Sample) -> f64| {
        let cell = |s: &Option<Sample>| s.as_ref().map_or(String::new(), |s| seconds(of(s)));
        let [real, user, sys] = &stats;
        vec![name.to_owned(), cell(real), cell(user), cell(sys), String::new()]
    };
    table.row(row("mean", |s| s.mean));
    if stats.iter().flatten().any(|s| s.n > 1) {
        table.row(row("σ", |s| s.sd));
    }
    table
}

/// `1.332 s`, `14.60 ms`: four digits that count.
#[must_use]
pub fn seconds(s: f64) -> String {
    let (value, unit) = match s.abs() {
        a if a >= 1.0 => (s, "s"),
        a if a >= 1e-3 => (s * 1e3, "ms"),
        a if a >= 1e-6 => (s * 1e6, "µs"),
        0.0 => return "0".to_owned(),
        _ => (s * 1e9, "ns"),
    };
    let decimals = match value.abs() {
        a if a >= 1000.0 => 1,
        a if a >= 100.0 => 1,
        a if a >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$} {unit}")
}
