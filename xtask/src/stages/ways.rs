// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two ways to see where a wake-up loses its time, laid side by side: the timerlat tracer and
//! tracepoints, and the same run without either.
//!
//! Units: ns of virtual time, which are instructions. What tracing costs is measured:
//! the mean of `user` with it, less that without. Both ways agree when their means of each context
//! differ by no more than the costs of both together; beyond that one of them would be telling of
//! something else than the way of a wake-up.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// Means by context.
type Means = BTreeMap<String, f64>;

/// What a run file says of each context.
fn means(text: &str) -> anyhow::Result<Means> {
    let mut found = Means::new();
    for line in text.lines() {
        let value: Value = serde_json::from_str(line)?;
        if value.get("type").and_then(Value::as_str) != Some("thread") {
            continue;
        }
        let at = |pointer: &str| value.pointer(pointer);
        let context = at("/context").and_then(Value::as_str).context("a thread without context")?;
        let n = at("/wakeup/n").and_then(Value::as_f64).unwrap_or(0.0);
        // 128-bit sums are text.
        let sum = at("/wakeup/sums/s1").and_then(Value::as_str).and_then(|s| s.parse::<f64>().ok());
        let sum = sum.with_context(|| format!("context {context} has no sum"))?;
        ensure!(n > 0.0, "context {context} is empty");
        found.insert(context.to_owned(), sum / n);
    }
    Ok(found)
}

/// Do the run files of the same kernel agree? Yields the table.
///
/// # Errors
/// They do not, or one of them lacks a context.
pub(super) fn agree(bare: &str, timerlat: &str, tracepoints: &str) -> anyhow::Result<String> {
    let (bare, timerlat, tracepoints) = (means(bare)?, means(timerlat)?, means(tracepoints)?);
    let of = |means: &Means, context: &str, way: &str| {
        means.get(context).copied().with_context(|| format!("{way} has no context {context}"))
    };
    let user = of(&bare, "user", "the run without tracing")?;
    let cost_of = |means: &Means, way: &str| of(means, "user", way).map(|u| u - user);
    let costs = [cost_of(&timerlat, "timerlat")?, cost_of(&tracepoints, "tracepoints")?];
    let allowed: f64 = costs.iter().map(|c| c.max(0.0)).sum();
    let mut table =
        format!("{:8} {:>10} {:>12} {:>10}\n", "mean", "timerlat", "tracepoints", "apart");
    let mut apart = Vec::new();
    for context in ["irq", "thread"] {
        let (a, b) =
            (of(&timerlat, context, "timerlat")?, of(&tracepoints, context, "tracepoints")?);
        writeln!(table, "{context:8} {a:>10.0} {b:>12.0} {:>10.0}", (a - b).abs())?;
        apart.push((context, (a - b).abs()));
    }
    writeln!(table, "{:8} {:>10.0} {:>12.0}", "cost", costs[0], costs[1])?;
    let back =
        of(&tracepoints, "user", "tracepoints")? - of(&tracepoints, "thread", "tracepoints")?;
    writeln!(table, "{:8} {:>10} {back:>12.0}", "back", "-")?;
    ensure!(back > 0.0, "the user was reached before the thread:\n{table}");
    for (context, apart) in apart {
        ensure!(
            apart <= allowed,
            "{context}: {apart:.0} ns apart, the tracing costs {allowed:.0} ns:\n{table}"
        );
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(contexts: &[(&str, u64)]) -> String {
        let line = |(context, mean): &(&str, u64)| {
            let sums = format!(r#"{{"s1":"{}"}}"#, mean * 10);
            format!(
                r#"{{"type":"thread","context":"{context}","wakeup":{{"n":10,"sums":{sums}}}}}"#
            )
        };
        contexts.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn apart_by_more_than_the_cost_is_no_agreement() {
        let bare = run(&[("user", 3641)]);
        let timerlat = run(&[("irq", 728), ("thread", 4163), ("user", 3961)]);
        let tracepoints = run(&[("irq", 391), ("thread", 4237), ("user", 5363)]);
        let table = agree(&bare, &timerlat, &tracepoints).unwrap();
        assert!(table.contains("1722") && table.contains("1126"), "{table}");
        let elsewhere = run(&[("irq", 391), ("thread", 9000), ("user", 5363)]);
        let said = agree(&bare, &timerlat, &elsewhere).unwrap_err().to_string();
        assert!(said.contains("thread") && said.contains("apart"), "{said}");
        assert!(agree(&bare, &bare, &tracepoints).is_err(), "a context is missing");
    }
}
