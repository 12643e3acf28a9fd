// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads as tasks, for scripts.
//!
//! Units: ns. Shape, schema `tailbound-tasks/1` (members are added, never renamed or
//! removed): `schema`, `name`, `watched_ns` (`null`: written by hand), `condition`, `outcome`, `threads`,
//! `what_if` (`null`, or `changes`, `outcome`, `threads`), `records` (lines `task` as in the run file),
//! `latency_bound` (`null`, or `ns` and `from`: it is in the model).
//! A thread has `name`, `policy`, `cpus`, `load`, `jitter_ns`, `observed_ns`, `deadline_ns`, `slack_ns`,
//! `outcome`, `bound_ns` (`null` where there is none), `no_bound` (the reason, or `null`) and `terms`: a list
//! of `kind`, `who`, `jobs`, `ns` whose sum is the bound.

use serde_json::{Value, json};
use tailbound_stats::tasks::{ResponseTimes, Term, TermKind, Thread};

use super::TaskReport;

/// Version of the JSON answer.
pub const SCHEMA: &str = "tailbound-tasks/1";

/// The whole answer.
#[must_use]
pub fn json(told: &TaskReport<'_>) -> Value {
    let what_if = told.what_if.as_ref().map(|(changes, answer)| {
        json!({
            "changes": changes,
            "outcome": answer.outcome(),
            "threads": threads(answer),
        })
    });
    json!({
        "schema": SCHEMA,
        "name": told.name,
        "watched_ns": told.answer.watched_ns,
        "condition": told.answer.condition(),
        "outcome": told.answer.outcome(),
        "threads": threads(told.answer),
        "what_if": what_if,
        "records": told.records,
        "latency_bound": told.latency.as_ref().map(|l| json!({ "ns": l.ns, "from": l.from })),
    })
}

fn threads(answer: &ResponseTimes) -> Vec<Value> {
    answer.threads.iter().map(thread).collect()
}

fn thread(t: &Thread) -> Value {
    let terms = t.bound.as_ref().map(|b| b.terms.iter().map(term).collect::<Vec<_>>());
    json!({
        "name": t.name,
        "policy": t.policy,
        "cpus": t.cpus,
        "load": t.load,
        "jitter_ns": t.jitter_ns,
        "observed_ns": t.observed_ns,
        "deadline_ns": t.deadline_ns,
        "slack_ns": t.slack_ns(),
        "outcome": t.outcome(),
        "bound_ns": t.bound.as_ref().ok().map(|b| b.ns),
        "no_bound": t.bound.as_ref().err().map(ToString::to_string),
        "terms": terms.unwrap_or_default(),
    })
}

fn term(t: &Term) -> Value {
    let who = match &t.kind {
        TermKind::Interference(who) => Some(who),
        _ => None,
    };
    json!({"kind": t.kind.word(), "who": who, "jobs": t.jobs, "ns": t.ns})
}
