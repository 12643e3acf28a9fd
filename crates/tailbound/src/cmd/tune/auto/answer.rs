// SPDX-License-Identifier: MIT OR Apache-2.0
//! What came of an experiment: the profile, the evidence, the page; what helps is applied.

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};
use tailbound_core::units::format_span;
use tailbound_report::compare::Answer;
use tailbound_report::experiment::{Experiment, Row, SCHEMA};
use tailbound_series::auto::{Answered, Design, ExperimentResult, UNTOUCHED};
use tailbound_stats::compare::sentence::{margin_words, sentence};
use tailbound_stats::compare::{Settings, Systems};
use tailbound_tune::{Recipe, apply_here};

use super::candidates::{Candidate, profile};
use crate::cli_tune_auto::AutoArgs;
use crate::cmd::tune::recipe;
use crate::input;
use crate::say::{self, Failure};

/// What was asked for, and how it was tried.
pub(super) struct Asked<'a> {
    pub(super) args: &'a AutoArgs,
    pub(super) candidates: &'a [Candidate],
    pub(super) notes: Vec<String>,
    pub(super) design: Design,
    pub(super) settings: Settings,
    pub(super) folder: &'a Path,
}

/// Says it, and keeps what helps.
pub(super) fn answer(asked: &Asked<'_>, found: &ExperimentResult) -> Result<ExitCode, Failure> {
    let kept: Vec<&Candidate> =
        found.kept().into_iter().filter_map(|c| asked.candidates.get(c)).collect();
    let written = profile("auto", &kept);
    let file = asked.folder.join("auto.toml");
    if let Some(written) = &written {
        input::write(&file, &Recipe::of(written).profile, true)?;
    }
    let mut sentences = sentences(asked, found, &kept);
    let applied = match &written {
        Some(written) if !asked.args.lab && !asked.args.no_apply => {
            let rt_cpus = asked.args.rt_cpus.clone().unwrap_or_default();
            let plan = recipe::plan(&Recipe { rt_cpus, ..Recipe::of(written) })?;
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
    input::write(&page, &experiment.html(), true)?;
    if asked.args.host.json {
        say::answer_json(&experiment.json)?;
    } else {
        let style = say::style(&asked.args.host.color.when);
        say::answer_in(&experiment.text(style), style)?;
        let profile =
            written.map_or_else(String::new, |_| format!("\nProfile   {}", file.display()));
        say::answer(&format!("{profile}\nReport    {}", page.display()))?;
    }
    Ok(ExitCode::from(if found.interrupted { 5 } else { 0 }))
}

fn sentences(asked: &Asked<'_>, found: &ExperimentResult, kept: &[&Candidate]) -> Vec<String> {
    if found.interrupted {
        let restored = if asked.args.lab { "" } else { " Every setting is as before." };
        return vec![format!(
            "Ended by a signal before it was decided.{restored} The same command with --out {} goes on.",
            asked.folder.display()
        )];
    }
    let mut out = Vec::new();
    if kept.is_empty() {
        out.push(format!(
            "None of {} changes helps by more than the margin ({}): nothing is kept.",
            asked.candidates.len(),
            margin_words(&asked.settings.margin)
        ));
    } else {
        let names: Vec<&str> = kept.iter().map(|c| c.name.as_str()).collect();
        out.push(format!(
            "{} of {} changes help and are kept: {}.",
            kept.len(),
            asked.candidates.len(),
            names.join(", ")
        ));
    }
    if let Some(d) = found.confirmed().and_then(|a| a.difference.as_ref().ok()) {
        out.push(sentence(d, UNTOUCHED, "kept", &asked.settings));
    }
    if let Some(e) = found.confirmed().and_then(|a| a.difference.as_ref().ok()?.exceedance.as_ref())
    {
        let [before, after] = e.beyond;
        out.push(format!(
            "Later than the deadline: {before} activations of the untouched system, {after} with what is kept."
        ));
    }
    let costs: Vec<String> = found
        .confirmed()
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

fn rows<'a>(candidates: &[Candidate], found: &'a ExperimentResult) -> Vec<Row<'a>> {
    let difference = |a: &'a Answered| a.difference.as_ref().ok();
    let row = |(t, c): (&tailbound_series::auto::CandidateRecord, &Candidate)| {
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
    let mut out = vec![format!(
        "Each measurement lasted {}; a change helps if it is earlier by more than the margin ({}), and one regression of any figure makes it none.",
        if asked.args.lab {
            format!("{} activations of virtual time", asked.args.loops.unwrap_or(super::LAB_LOOPS))
        } else {
            format_span(asked.design.run_ns)
        },
        margin_words(&asked.settings.margin)
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
    let answered = |a: &Answered| {
        let members: Vec<&str> = a
            .set
            .members
            .iter()
            .filter_map(|c| asked.candidates.get(*c))
            .map(|c| c.name.as_str())
            .collect();
        json!({
            "set": a.set.name,
            "changes": members,
            "score": a.score(),
            "difference": a.difference.as_ref().ok(),
            "refused": a.difference.as_ref().err(),
            "loads": a.costs,
        })
    };
    let stage = |s: &tailbound_series::auto::Stage| {
        let sets: Vec<Value> = s.answers.iter().map(answered).collect();
        json!({ "stage": s.name, "rounds": s.rounds, "reference": s.reference, "sets": sets })
    };
    let change = |(t, c): (&tailbound_series::auto::CandidateRecord, &Candidate)| {
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
        "kept": found.kept().iter().filter_map(|c| asked.candidates.get(*c)).map(|c| &c.name).collect::<Vec<_>>(),
        "applied": applied,
        "stages": found.stages.iter().map(stage).collect::<Vec<_>>(),
        "notes": asked.notes,
    })
}
