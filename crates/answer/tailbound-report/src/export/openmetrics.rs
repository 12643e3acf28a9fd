// SPDX-License-Identifier: MIT OR Apache-2.0
//! OpenMetrics text: for Prometheus, its node exporter's text files, and what reads the same.
//!
//! Units: s. A bucket of ours that an edge goes through counts above it, so that
//! no share is stated too low. Source: the OpenMetrics specification 1.0.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tailbound_core::exposition::{self, Family};
use tailbound_core::record::ThreadRecord;
use tailbound_core::{Distribution, Outcome, Run};
use tailbound_stats::Analysis;

use crate::label;

/// Upper edges of the buckets, in ns: 1, 2, 5 from 1 µs to 10 s.
fn edges() -> Vec<u64> {
    let mut out: Vec<u64> = (3..10).flat_map(|e| [1, 2, 5].map(|m| m * 10u64.pow(e))).collect();
    out.push(10_000_000_000);
    out
}

/// A run as metrics.
pub(super) fn text(analysis: &Analysis<'_>) -> String {
    let run = analysis.run();
    let mut out = String::new();
    info(&mut out, run);
    for (kind, help, of) in [
        (
            "wakeup_latency",
            "Lateness of the wake-ups, as a stopwatch at the thread saw it.",
            (|t| t.wakeup.clone()) as fn(&ThreadRecord) -> Distribution,
        ),
        (
            "due_latency",
            "Lateness of all due activations: wake-ups, and missed ones with the lateness each would have had.",
            ThreadRecord::due,
        ),
    ] {
        family(&mut out, &format!("{kind}_seconds"), "histogram", "seconds", help);
        for t in &run.threads {
            histogram(&mut out, &format!("tailbound_{kind}_seconds"), &labels(t), &of(t));
        }
        family(
            &mut out,
            &format!("{kind}_max_seconds"),
            "gauge",
            "seconds",
            "The latest of them, exactly.",
        );
        for t in &run.threads {
            if let Some(max) = of(t).max_ns {
                let value = super::seconds(max.into());
                let _ = writeln!(out, "tailbound_{kind}_max_seconds{{{}}} {value}", labels(t));
            }
        }
    }
    family(
        &mut out,
        "missed_activations",
        "counter",
        "",
        "Activations that fell due while their thread was late.",
    );
    for t in &run.threads {
        let _ = writeln!(out, "tailbound_missed_activations_total{{{}}} {}", labels(t), t.missed.n);
    }
    findings(&mut out, run);
    loads(&mut out, analysis);
    out.push_str("# EOF\n");
    out
}

fn family(out: &mut String, name: &str, kind: &str, unit: &str, help: &str) {
    let name = &format!("tailbound_{name}");
    Family { name, kind, help }.open_metrics(out, unit);
}

fn info(out: &mut String, run: &Run) {
    let fact = |name: &str| {
        run.header
            .machine
            .get(name)
            .map_or_else(|| "unknown".to_owned(), tailbound_core::record::Fact::text)
    };
    family(out, "run", "info", "", "Which run, of what, on which kernel.");
    let _ = writeln!(
        out,
        "tailbound_run_info{{id=\"{}\",tool=\"{}\",probe=\"{}\",kernel=\"{}\",preemption=\"{}\"}} 1",
        quoted(&run.header.id),
        quoted(&run.header.tool),
        quoted(&run.header.plan.probe),
        quoted(&fact("kernel.release")),
        quoted(&fact("kernel.preempt")),
    );
    family(out, "outcome", "stateset", "", "The verdict.");
    let is = label::outcome(run);
    for state in
        [Outcome::Measured, Outcome::Met, Outcome::NotMet, Outcome::Undecided, Outcome::Unfit]
    {
        let _ = writeln!(
            out,
            "tailbound_outcome{{tailbound_outcome=\"{}\"}} {}",
            state,
            u8::from(is == state)
        );
    }
    family(out, "measured_seconds", "gauge", "seconds", "Measured length of the schedule.");
    let _ =
        writeln!(out, "tailbound_measured_seconds {}", super::seconds(run.measured_ns().into()));
    if let Some(deadline) = run.header.plan.requirement.deadline_ns {
        family(out, "deadline_seconds", "gauge", "seconds", "The latest acceptable wake-up.");
        let _ = writeln!(out, "tailbound_deadline_seconds {}", super::seconds(deadline.into()));
    }
}

fn labels(t: &ThreadRecord) -> String {
    let cpu = t.cpu.map_or_else(String::new, |c| c.to_string());
    format!("thread=\"{}\",cpu=\"{cpu}\",context=\"{}\"", t.thread, quoted(t.context.as_str()))
}

fn histogram(out: &mut String, name: &str, labels: &str, d: &Distribution) {
    let mut below = d.early.total();
    let mut buckets = d.late.buckets().peekable();
    for edge in edges() {
        while let Some(b) = buckets.next_if(|b| b.low_ns + b.width_ns.saturating_sub(1) <= edge) {
            below = below.saturating_add(b.count);
        }
        let le = super::seconds(edge.into());
        let le = le.trim_end_matches('0').trim_end_matches('.');
        let le = if le.contains('.') { le.to_owned() } else { format!("{le}.0") };
        let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{le}\"}} {below}");
    }
    let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", d.n);
    let _ = writeln!(out, "{name}_count{{{labels}}} {}", d.n);
    // A sum of a run with early wake-ups may fall: then OpenMetrics wants none.
    if let Some(sums) = d.sums.filter(|s| s.n == d.n && s.clamped == 0 && d.early.total() == 0) {
        let _ = writeln!(out, "{name}_sum{{{labels}}} {}", super::seconds(sums.s1));
    }
}

fn findings(out: &mut String, run: &Run) {
    family(out, "findings", "gauge", "", "Findings by impact.");
    let mut by_impact: BTreeMap<&str, u64> = BTreeMap::new();
    for f in &run.findings {
        *by_impact.entry(f.impact.as_str()).or_default() += 1;
    }
    for (impact, n) in by_impact {
        let _ = writeln!(out, "tailbound_findings{{impact=\"{}\"}} {n}", quoted(impact));
    }
}

fn loads(out: &mut String, analysis: &Analysis<'_>) {
    family(out, "load_work", "counter", "", "Units of work that each load did.");
    for l in analysis.loads() {
        let _ = writeln!(
            out,
            "tailbound_load_work_total{{load=\"{}\",name=\"{}\",unit=\"{}\"}} {}",
            l.load,
            quoted(&l.name),
            quoted(&l.unit),
            l.count
        );
    }
}

/// A text as the value of a label.
fn quoted(text: &str) -> String {
    exposition::label(&tailbound_core::printable::line(text))
}
