// SPDX-License-Identifier: MIT OR Apache-2.0
//! A campaign for scripts.
//!
//! Units: ns for times, shares from 0 to 1, percent, per second; `told` is the publication's own.

use serde_json::{Value, json};

use super::notes;
use tailbound_stats::Analysis;
use tailbound_stats::campaign::{self, CampaignEvidence, CampaignRun, State};

/// Schema of the answer.
pub const SCHEMA: &str = "tailbound-campaign/1";

/// The campaign as JSON.
#[must_use]
pub fn json(given: &CampaignEvidence) -> Value {
    let (rows, claims) = (campaign::rows(given), campaign::claims(given));
    let systems: Vec<Value> = given
        .systems
        .iter()
        .map(|s| {
            json!({
                "name": s.name,
                "kind": s.kind,
                "runs": s.places.iter().map(|p| place(given, p)).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "schema": SCHEMA,
        "campaign": given.file.name,
        "text": given.file.text,
        "reference": given.file.reference(),
        "headline": notes::headline(given, &claims, &rows),
        "complete": given.is_complete(),
        "systems": systems,
        "figures": rows,
        "claims": claims,
        "lost": notes::lost(given),
        "doubts": notes::doubts(given),
        "differs": notes::differs(given),
    })
}

fn place(given: &CampaignEvidence, p: &CampaignRun) -> Value {
    let part = given.parts.iter().find(|part| part.id == p.part);
    let state = match &p.state {
        State::Complete(_) => "complete",
        State::Cut(..) => "not-complete",
        State::Failed(_) => "failed",
        State::NotRun => "not-run",
        State::NotHere(_) => "not-applicable",
    };
    json!({
        "part": p.part,
        "title": part.map(|p| p.title.as_str()),
        "state": state,
        "words": p.words(),
        "file": p.file,
        "share": part.zip(p.run()).map(|(part, run)| tailbound_stats::campaign::share(part, run)),
        "report": p.run().map(|run| crate::json::json(&Analysis::of(run))),
    })
}
