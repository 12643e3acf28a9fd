// SPDX-License-Identifier: MIT OR Apache-2.0
//! What became of each run of a fleet, from the files that came back.

use std::path::Path;

use serde_json::{Value, json};
use tailbound_core::campaign::Part;
use tailbound_report::cases::{self, Status, ktap};
use tailbound_series::Caller;
use tailbound_series::campaign::folder;
use tailbound_stats::campaign::State;

use super::EngineError;
use super::aligned::Aligned;
use super::fleet::Outcome;

/// One run of one target.
#[derive(Clone, Debug)]
pub struct TargetRun {
    /// Whose.
    target: String,
    /// Which.
    part: String,
    /// Why it is not whole; nothing where it is.
    why: Option<String>,
    aligned: Option<Aligned>,
}

/// All runs of a fleet.
#[derive(Clone, Debug, Default)]
pub struct FleetRuns {
    runs: Vec<TargetRun>,
    status: u8,
}

impl FleetRuns {
    /// Of what lies in `out`, read by `caller`.
    #[must_use]
    pub fn of(out: &Path, ended: &[Outcome], parts: &[Part], caller: &mut impl Caller) -> Self {
        let mut all = Self::default();
        for outcome in ended {
            all.add(out, outcome, parts, caller);
        }
        all
    }

    /// The exit status: what could not be made outweighs what was cut off.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        self.status
    }

    fn add(&mut self, out: &Path, outcome: &Outcome, parts: &[Part], caller: &mut impl Caller) {
        let found = folder::systems(&out.join(&outcome.target), parts, "", caller);
        let lost = matches!(outcome.error, Some(EngineError::Lost(_)));
        let its = match &outcome.error {
            Some(EngineError::Lost(_)) => 5,
            Some(_) => 3,
            None => 0,
        };
        self.status = worse(self.status, its);
        let error = outcome.error.as_ref().map(ToString::to_string);
        for part in parts {
            let measured = found.iter().flatten();
            let place = measured.flat_map(|(_, m)| &m.places).find(|p| p.part == part.id);
            let (why, its) = match place.map(|p| &p.state) {
                // Its files are of before, or half there: nothing of a lost lease counts.
                _ if lost => (error.clone(), 5),
                Some(State::Complete(_)) => (None, 0),
                Some(State::Cut(_, how)) => (Some(how.clone()), 5),
                Some(State::Failed(why) | State::NotHere(why)) => (Some(why.clone()), 3),
                Some(State::NotRun) | None => {
                    let said = error.clone().or_else(|| outcome.said.get(&part.id).cloned());
                    (Some(said.unwrap_or_else(|| "there is no run file".to_owned())), 3)
                }
            };
            self.status = worse(self.status, its);
            let aligned = outcome.aligned.get(&part.id).cloned();
            let (target, part) = (outcome.target.clone(), part.id.clone());
            self.runs.push(TargetRun { target, part, why, aligned });
        }
    }

    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let line = |run: &TargetRun| {
            let state = run.why.as_deref().unwrap_or("complete");
            format!("{}  {}  {state}\n", run.target, run.part)
        };
        self.runs.iter().map(line).collect()
    }

    /// For scripts; the runs lie in `folder`.
    #[must_use]
    pub fn json(&self, folder: &Path) -> Value {
        let row = |c: &TargetRun| json!({ "target": c.target, "run": c.part, "complete": c.why.is_none(), "why": c.why, "aligned": c.aligned });
        json!({ "folder": folder, "runs": self.runs.iter().map(row).collect::<Vec<_>>() })
    }

    /// As test cases. Only a run that came to its end passes: what could not be made, for lack of a tool, a tracer
    /// or a machine, fails.
    #[must_use]
    pub fn ktap(&self) -> String {
        let case = |run: &TargetRun| cases::Case {
            name: format!("{}.{}", run.target, run.part),
            status: run.why.clone().map_or(Status::Pass, Status::Fail),
        };
        ktap(&self.runs.iter().map(case).collect::<Vec<_>>())
    }
}

/// What could not be made outweighs what was cut off.
fn worse(a: u8, b: u8) -> u8 {
    if a == 3 || b == 3 { 3 } else { a.max(b) }
}
