// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cycles of watched threads, for scripts.
//!
//! Units: ns. Shape, schema `tailbound-cycles/1` (members are added, never renamed or
//! removed): `schema`, and `threads`: a list with one object a thread, whose members are those of a line
//! `cycle` of the run file (docs/run-file.md) without the histograms: of each distribution `n`, `min_ns`,
//! `mean_ns`, `p99_ns` (`null` where there are too few), `max_ns`.

use serde_json::{Value, json};
use tailbound_core::Distribution;
use tailbound_core::cycle::CycleRecord;
use tailbound_stats::quantile::quantile;

/// Version of the JSON answer.
const SCHEMA: &str = "tailbound-cycles/1";

/// Everything about `all`.
#[must_use]
pub fn json(all: &[CycleRecord]) -> Value {
    let threads: Vec<Value> = all.iter().map(thread).collect();
    json!({"schema": SCHEMA, "threads": threads})
}

fn thread(c: &CycleRecord) -> Value {
    json!({
        "thread": c.thread,
        "name": c.name,
        "tid": c.tid,
        "process": c.process,
        "policy": c.policy,
        "cpu": c.cpu,
        "activation": c.activation,
        "pace": c.pace,
        "deadline_ns": c.deadline_ns,
        "misses": c.misses,
        "cycles": c.cycles,
        "overruns": c.overruns,
        "broken": c.broken,
        "lossy": c.lossy,
        "page_faults": c.page_faults,
        "wakeup": distribution(&c.wakeup),
        "execution": distribution(&c.execution),
        "blocked": distribution(&c.blocked),
        "response": distribution(&c.response),
        "total_ns": c.total_ns(),
        "causes": c.causes,
        "late_reasons": c.late_reasons,
        "causes_left_out_ns": c.causes_left_out_ns,
        "worst": c.worst,
    })
}

fn distribution(d: &Distribution) -> Value {
    json!({
        "n": d.n,
        "min_ns": d.min_ns,
        "mean_ns": d.mean(),
        "p99_ns": quantile(d, 0.99).ns(),
        "max_ns": d.max_ns,
    })
}
