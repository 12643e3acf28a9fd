// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace of the tracer `function_graph`: its longest outermost calls as samples.
//!
//! Units: ns. Such a trace tells how long functions take. Whether another thread waited meanwhile is not in it.
//! Not here: the reading of the lines (`graph`).

use tailbound_core::blame::{BlamePart, BlameRecord, Cause, Phase, Sureness};

use super::graph::{CallTree, GraphCall};
use super::section::micros;
use super::state::Context;

/// Sentences about calls within.
const SENTENCES: usize = 4;

/// `The longest piece within: 31.2 µs in copy_page, called from vfs_read.`
pub(super) fn call_sentence(call: &GraphCall) -> String {
    let mut out = format!("{} of it were in {} itself", micros(call.own_ns), call.function);
    for caller in call.callers.iter().take(2) {
        out.push_str(&format!(", called from {caller}"));
    }
    out.push('.');
    out
}

/// An outermost call as a sample.
pub(super) fn sample(tree: &CallTree) -> BlameRecord {
    let (function, ns) = (&tree.top.function, tree.top.ns);
    let task = if tree.task.is_empty() { "a thread that is not named" } else { &tree.task };
    let state = tree.state.unwrap_or_default();
    let (cause, who) = match (tree.state, state.context) {
        (None, _) => (
            Cause::Unexplained,
            format!("{function}; whether it could be preempted is not in the trace"),
        ),
        (_, Context::Nmi) => (Cause::Nmi, function.clone()),
        (_, Context::Interrupt) => (Cause::Interrupt, function.clone()),
        (_, Context::Softirq) => (Cause::Softirq, function.clone()),
        _ if state.irqs_off => (Cause::InterruptsOff, format!("{task}, in {function}")),
        _ if state.preempt_depth > 0 => (Cause::NotPreemptible, format!("{task}, in {function}")),
        _ => (Cause::Own, String::new()),
    };
    let begin = tree.end_ns.and_then(|t| i64::try_from(t).ok()).map(|t| t.saturating_sub(ns));
    BlameRecord {
        name: match tree.task.as_str() {
            "" => function.clone(),
            task => format!("{task}, {function}"),
        },
        t_ns: begin.unwrap_or(0),
        latency_ns: ns,
        cpu: Some(tree.cpu),
        parts: vec![BlamePart {
            phase: Phase::Section,
            from_ns: 0,
            ns,
            cause,
            who,
            sureness: Sureness::Sure,
            ..BlamePart::default()
        }],
        chain: tree
            .longest
            .iter()
            .filter(|c| c.own_ns.saturating_mul(50) >= ns && !c.callers.is_empty())
            .take(SENTENCES)
            .map(call_sentence)
            .collect(),
        ..BlameRecord::default()
    }
}
