// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who made the samples late, for scripts.
//!
//! Units: ns. Shape, schema `tailbound-blame/1` (members are added, never renamed or
//! removed): `schema`, the members of the ranking, `records` as in the run file. The ranking has
//! `samples`, `near`, `near_only` (the samples are near misses), `least_ns`, `sentence`, and `culprits`: a list of `cause`, `who`, `samples`, `worst_ns`,
//! `part_ns_max`, `total_ns`, `sureness`, `remedy` (`null`, or `text`, `check`, `setting`).

use serde_json::{Value, json};
use tailbound_core::blame::{BlameRecord, Culprit, KernelKind, Ranking, Remedy};

/// Version of the JSON answer.
pub const SCHEMA: &str = "tailbound-blame/1";

/// The ranking of the culprits of `records`, made on a kernel of that kind.
#[must_use]
pub fn ranking(records: &[BlameRecord], kernel: KernelKind) -> Value {
    let ranking = Ranking::of(records);
    let culprits: Vec<Value> = ranking.culprits.iter().map(|c| culprit(c, kernel)).collect();
    json!({
        "samples": ranking.samples,
        "near": ranking.near,
        "near_only": ranking.near_only,
        "least_ns": ranking.least_ns,
        "sentence": ranking.sentence(),
        "culprits": culprits,
    })
}

fn culprit(c: &Culprit, kernel: KernelKind) -> Value {
    let remedy = |r: Remedy| json!({"text": r.text, "check": r.check, "setting": r.setting});
    json!({
        "cause": c.cause,
        "who": c.who,
        "samples": c.samples,
        "worst_ns": c.worst_ns,
        "part_ns_max": c.part_ns_max,
        "total_ns": c.total_ns,
        "sureness": c.sureness,
        "remedy": Remedy::of(c.cause, &c.who, kernel).map(remedy),
    })
}

/// The ranking with the records.
#[must_use]
pub fn json(records: &[BlameRecord], kernel: KernelKind) -> Value {
    let mut out = ranking(records, kernel);
    if let Some(members) = out.as_object_mut() {
        members.insert("schema".to_owned(), json!(SCHEMA));
        members.insert("records".to_owned(), json!(records));
    }
    out
}
