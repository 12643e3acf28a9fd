// SPDX-License-Identifier: MIT OR Apache-2.0
//! What came of an experiment: the profile, the evidence, the page; what helps is applied.

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};
use tailbound_core::units::format_span;
use tailbound_report::compare::Answer;
use tailbound_report::experiment::{Experiment, Row, SCHEMA};
use tailbound_series::auto::{
    Answered, CandidateRecord, Design, ExperimentResult, Trial, UNTOUCHED,
};
use tailbound_stats::compare::{Settings, Systems};
use tailbound_tune::candidates::{Candidate, profile};
use tailbound_tune::{Recipe, apply_here};

use crate::cli_tune_auto::AutoArgs;
use crate::cmd::tune::recipes::plan_of;
use crate::input::{self, Existing};
use crate::say::{self, Failure};

/// Activations of a run of the lab, where nobody says how many.
pub(super) const LAB_LOOPS: u64 = 3000;

/// What was asked for, and how it was tried.
pub(super) struct Asked<'a> {
    pub(super) args: &'a AutoArgs,
    pub(super) candidates: &'a [Candidate],
    /// Their names.
    pub(super) names: &'a [String],
    pub(super) notes: Vec<String>,
    pub(super) design: Design,
    pub(super) settings: Settings,
    pub(super) folder: &'a Path,
}

impl Asked<'_> {
    fn trial(&self) -> Trial<'_> {
        Trial { changes: self.names, settings: &self.settings }
    }
}

/// Says it, and keeps what helps.
pub(super) fn answer(asked: &Asked<'_>, found: &ExperimentResult) -> Result<ExitCode, Failure> {
    let kept: Vec<&Candidate> =
        found.kept().into_iter().filter_map(|c| asked.candidates.get(c)).collect();
    let written = profile("auto", &kept);
    let file = asked.folder.join("auto.toml");
    if let Some(written) = &written {
        input::write(&file, &Recipe::of(written).profile, Existing::Replace)?;
    }
    let mut sentences = sentences(asked, found);
    let applied = match &written {
        Some(written) if !asked.args.lab && !asked.args.no_apply => {
            let rt_cpus = asked.args.rt_cpus.clone().unwrap_or_default();
            let plan = plan_of(&Recipe { rt_cpus, ..Recipe::of(written) })?;
            let done = apply_here(&plan).map_err(Failure::cannot)?;
            sentences.push(format!(
                "They are applied as change {}. To undo: tailbound tune undo.",
                done.number
            ));
            Some(done.number)
        }
        Some(_) => {
            sentences.push(format!(
                "To apply the settings: tailbound tune apply --profile {}{}.",
                file.display(),
                asked.args.rt_cpus.as_ref().map_or_else(String::new, |c| format!(" --rt-cpus {c}"))
            ));
            None
        }
        None => None,
    };
    let last = last(asked, found)?;
    let experiment = Experiment {
        sentences,
        rows: rows(asked.candidates, found),
        design: design(asked, found),
        last: last.as_ref(),
        json: as_json(asked, found, applied),
    };
    let page = asked.folder.join("auto.html");
    input::write(&page, &experiment.html(), Existing::Replace)?;
    if asked.args.host.json {
        say::answer_json(&experiment.json)?;
    } else {
        let style = say::style(asked.args.host.color.when);
        say::answer_in(&experiment.text(style), style)?;
        let profile =
            written.map_or_else(String::new, |_| format!("\nProfile   {}", file.display()));
        say::answer(&format!("{profile}\nReport    {}", page.display()))?;
    }
    Ok(ExitCode::from(if found.interrupted { 5 } else { 0 }))
}

fn sentences(asked: &Asked<'_>, found: &ExperimentResult) -> Vec<String> {
    if found.interrupted {
        let restored = if asked.args.lab { "" } else { " Every setting is as before." };
        return vec![format!(
            "Ended by a signal before it was decided.{restored} The same command with --out {} goes on.",
            asked.folder.display()
        )];
    }
    asked.trial().sentences(found)
}

fn rows<'a>(candidates: &[Candidate], found: &'a ExperimentResult) -> Vec<Row<'a>> {
    let difference = |a: &'a Answered| a.difference.as_ref().ok();
    let row = |(t, c): (&CandidateRecord, &Candidate)| {
        let alone = found.alone(t.candidate).map(|(_, a)| a);
        Row {
            change: c.name.clone(),
            what: c.what.clone(),
            fate: t.fate.words().to_owned(),
            alone: alone.and_then(difference),
            without: found.without(t.candidate).and_then(difference),
            loads: alone
                .map(|a| a.costs.iter().map(|c| (c.load.clone(), c.ratio)).collect())
                .unwrap_or_default(),
        }
    };
    found.tried.iter().zip(candidates).map(row).collect()
}

fn design(asked: &Asked<'_>, found: &ExperimentResult) -> Vec<String> {
    let length = if asked.args.lab {
        format!("{} activations of virtual time", asked.args.loops.unwrap_or(LAB_LOOPS))
    } else {
        format_span(asked.design.run_ns)
    };
    let mut out = asked.trial().design(found, &length);
    out.extend(asked.notes.iter().cloned());
    out
}

/// The comparison of the last stage, for the page.
fn last(asked: &Asked<'_>, found: &ExperimentResult) -> Result<Option<Answer>, Failure> {
    let Some(stage) = found.stages.last().filter(|_| found.confirmed().is_some()) else {
        return Ok(None);
    };
    let runs = input::runs(&input::in_folder(&asked.folder.join(&stage.name))?)?;
    let order = [UNTOUCHED.to_owned(), "kept".to_owned()];
    let systems = Systems::of(&[(stage.name.clone(), runs)], &order).map_err(Failure::cannot)?;
    Ok(Some(Answer::of(systems, asked.settings)))
}

fn as_json(asked: &Asked<'_>, found: &ExperimentResult, applied: Option<u32>) -> Value {
    let change = |(t, c): (&CandidateRecord, &Candidate)| {
        json!({
            "name": c.name,
            "settings": c.settings.settings,
            "append": c.append,
            "kernel": c.kernel,
            "result": t.fate,
        })
    };
    json!({
        "schema": SCHEMA,
        "interrupted": found.interrupted,
        "design": asked.design,
        "changes": found.tried.iter().zip(asked.candidates).map(change).collect::<Vec<_>>(),
        "kept": asked.trial().names(&found.kept()),
        "applied": applied,
        "stages": asked.trial().stages_json(found),
        "notes": asked.notes,
    })
}
