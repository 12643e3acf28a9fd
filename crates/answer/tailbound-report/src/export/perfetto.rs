// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counter tracks as JSON trace events: the latest wake-up of each second and the rates of the loads,
//! and each exceedance as an instant. ui.perfetto.dev and chrome://tracing open it.
//!
//! Units: µs for times, as that format has them; ns for latencies. Times are those of
//! CLOCK_MONOTONIC where the run holds them, so that a trace of the same machine lies beside them,
//! otherwise from the first due activation.
//! Source: "Trace Event Format", phases C, i and M.

use serde_json::{Value, json};
use tailbound_core::Run;
use tailbound_core::number::Real as _;

use crate::{label, worst};

/// `run` as a trace.
pub(super) fn text(run: &Run) -> String {
    let clocks = worst::clocks(run);
    let origin = clocks.map_or(0, |c| c.monotonic_ns);
    let us = |t_ns: i64| origin.saturating_add(t_ns).real() / 1000.0;
    let mut events: Vec<Value> = vec![
        json!({"ph": "M", "pid": 1, "name": "process_name", "args": {"name": format!("tailbound {}", run.header.id)}}),
    ];
    for s in run.seconds.iter().filter(|s| s.n > 0) {
        let name = format!("{} latest (ns)", label::thread_id(run, s.thread));
        let at = i64::try_from(s.second).unwrap_or(i64::MAX).saturating_mul(1_000_000_000);
        events.push(
            json!({"ph": "C", "pid": 1, "ts": us(at), "name": name, "args": {"ns": s.max_ns}}),
        );
        if s.missed > 0 {
            let name = format!("{} missed per second", label::thread_id(run, s.thread));
            events.push(
                json!({"ph": "C", "pid": 1, "ts": us(at), "name": name, "args": {"n": s.missed}}),
            );
        }
    }
    for l in run.loads.iter().filter(|l| l.span_ns > 0) {
        let rate = l.count.real() * 1e9 / l.span_ns.real();
        let name = format!("load {}.{} ({}/s)", l.load, l.name, l.unit);
        let at = us(l.t_ns.saturating_sub(l.span_ns));
        events.push(json!({"ph": "C", "pid": 1, "ts": at, "name": name, "args": {"rate": rate}}));
    }
    for e in &run.exceedances {
        events.push(json!({
            "ph": "i", "pid": 1, "tid": e.thread + 1, "s": "t", "ts": us(e.t_ns), "name": "exceedance",
            "args": {"late_ns": e.error_ns, "activation": e.activation, "missed": e.missed},
        }));
    }
    for t in &run.threads {
        events.push(json!({
            "ph": "M", "pid": 1, "tid": t.thread + 1, "name": "thread_name",
            "args": {"name": label::thread_id(run, t.thread)},
        }));
    }
    let clock = if clocks.is_some() { "CLOCK_MONOTONIC" } else { "from the first due activation" };
    let trace = json!({
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {"tool": run.header.tool, "run": run.header.id, "clock": clock},
    });
    trace.to_string()
}
