// SPDX-License-Identifier: MIT OR Apache-2.0
//! What came of an experiment, in sentences and for scripts.
//!
//! Not here: tables and pages (`tailbound-report`), what a change is on a machine (`tailbound-tune`).

use serde_json::{Value, json};
use tailbound_stats::compare::Settings;
use tailbound_stats::compare::sentence::{margin_words, sentence};

use super::{Answered, ExperimentResult, Stage, UNTOUCHED};

/// What was tried, and how it was judged.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    /// The names of all changes, in their order.
    pub changes: &'a [String],
    /// How differences were judged.
    pub settings: &'a Settings,
}

impl Trial<'_> {
    /// The answer in a few sentences: what is kept, how much is gained, and what the loads lost.
    #[must_use]
    pub fn sentences(&self, found: &ExperimentResult) -> Vec<String> {
        let mut out = Vec::new();
        let kept = self.names(&found.kept());
        if kept.is_empty() {
            out.push(format!(
                "None of {} changes helps by more than the margin ({}): nothing is kept.",
                self.changes.len(),
                margin_words(&self.settings.margin)
            ));
        } else {
            out.push(format!(
                "{} of {} changes help and are kept: {}.",
                kept.len(),
                self.changes.len(),
                kept.join(", ")
            ));
        }
        let confirmed = found.confirmed();
        if let Some(d) = confirmed.and_then(|a| a.difference.as_ref().ok()) {
            out.push(sentence(d, UNTOUCHED, "kept", self.settings));
        }
        if let Some(e) = confirmed.and_then(|a| a.difference.as_ref().ok()?.exceedance.as_ref()) {
            let [before, after] = e.beyond;
            out.push(format!(
                "Later than the deadline: {before} activations of the untouched system, {after} with what is kept."
            ));
        }
        let costs: Vec<String> = confirmed
            .into_iter()
            .flat_map(|a| &a.costs)
            .map(|c| format!("{} {:.0} %", c.load, c.ratio * 100.0))
            .collect();
        if !costs.is_empty() {
            out.push(format!(
                "What the loads get done, of what they did before: {}.",
                costs.join(", ")
            ));
        }
        out
    }

    /// How it was found out, a sentence each; `length` is that of one measurement.
    #[must_use]
    pub fn design(&self, found: &ExperimentResult, length: &str) -> Vec<String> {
        let mut out = vec![format!(
            "Each measurement lasted {length}; a change helps if it is earlier by more than the margin ({}), and one regression of any figure makes it none.",
            margin_words(&self.settings.margin)
        )];
        for stage in &found.stages {
            let sets: Vec<&str> = stage.answers.iter().map(|a| a.set.name.as_str()).collect();
            out.push(format!(
                "Stage {}: {} rounds of {} and {}, in turn and in random order.",
                stage.name,
                stage.rounds,
                stage.reference,
                sets.join(", ")
            ));
        }
        out.push(
            "Candidates are ranked by the mean of the logarithms of the ratios of p99 and above and of the block maximum."
                .to_owned(),
        );
        out.push(
            "Only the last stage says how much is gained: its runs had no part in the choice."
                .to_owned(),
        );
        out
    }

    /// Every stage, for scripts.
    #[must_use]
    pub fn stages_json(&self, found: &ExperimentResult) -> Vec<Value> {
        let stage = |s: &Stage| {
            let sets: Vec<Value> = s.answers.iter().map(|a| self.answered(a)).collect();
            json!({ "stage": s.name, "rounds": s.rounds, "reference": s.reference, "sets": sets })
        };
        found.stages.iter().map(stage).collect()
    }

    fn answered(&self, a: &Answered) -> Value {
        json!({
            "set": a.set.name,
            "changes": self.names(&a.set.members),
            "score": a.score(),
            "difference": a.difference.as_ref().ok(),
            "refused": a.difference.as_ref().err().map(ToString::to_string),
            "loads": a.costs,
        })
    }

    /// The names of changes by their places.
    #[must_use]
    pub fn names(&self, places: &[usize]) -> Vec<&str> {
        places.iter().filter_map(|c| self.changes.get(*c)).map(String::as_str).collect()
    }
}
