// SPDX-License-Identifier: MIT OR Apache-2.0
//! Violations for scripts.
//!
//! Units: ns. Shape, schema `tailbound-rules/1` (members are added, never renamed or
//! removed): `schema`, `sentence`, `violations` (how many in all), `rules` (one object a rule that was
//! broken: `rule`, `violations`, `remedy` with `text` and `check`), `records` as the lines `violation` of
//! a run file (docs/run-file.md).

use serde_json::{Value, json};
use tailbound_core::blame::Remedy;
use tailbound_core::rules::{Rule, ViolationRecord, sentence};

use super::rows;

/// Version of the JSON answer.
const SCHEMA: &str = "tailbound-rules/1";

/// Everything about `records`.
#[must_use]
pub fn json(records: &[ViolationRecord]) -> Value {
    let sum = |of: &dyn Fn(&&ViolationRecord) -> bool| {
        records.iter().filter(of).map(|v| v.n).fold(0, u64::saturating_add)
    };
    let remedies = rows::remedies(records);
    let one = |(at, (rule, remedy)): (usize, &(Rule, Remedy))| {
        let before = remedies.get(..at).unwrap_or_default();
        let more: Vec<Value> = remedies
            .iter()
            .filter(|(r, _)| r == rule)
            .map(|(_, remedy)| json!(remedy.text))
            .collect();
        before.iter().all(|(r, _)| r != rule).then(|| {
            json!({
                "rule": rule,
                "violations": sum(&|v| v.rule == *rule),
                "remedy": {"text": remedy.text, "check": remedy.check},
                "remedies": more,
            })
        })
    };
    let rules: Vec<Value> = remedies.iter().enumerate().filter_map(one).collect();
    json!({
        "schema": SCHEMA,
        "sentence": sentence(records),
        "violations": sum(&|_| true),
        "rules": rules,
        "records": records,
    })
}
