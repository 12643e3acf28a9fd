// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answers to the questions of the flow: from flags, else from what was measured, else from
//! the person at the terminal.
//!
//! Not here: what a run tells of its machine (`tailbound_series::decide::measured`).

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use tailbound_series::decide::{Sides, measured};
use tailbound_stats::decide::flow::{self, AnswerEvidence, Answers, FlowAnswer};

use crate::cli_decide::DecideArgs;
use crate::say::Failure;

/// What the flags and the runs answer.
pub(super) fn answers(args: &DecideArgs, given: &Sides) -> Result<Answers, Failure> {
    let run = given.runs.first();
    let flag = |word: &Option<String>, or: AnswerEvidence| match word.as_deref() {
        Some("yes") => AnswerEvidence::new(FlowAnswer::Yes, "as given"),
        Some(_) => AnswerEvidence::new(FlowAnswer::No, "as given"),
        None => or,
    };
    let throughput = given.deadline.as_ref().map_or_else(AnswerEvidence::default, |d| {
        AnswerEvidence::new(FlowAnswer::No, format!("a deadline of {d} is required"))
    });
    let utilisation = match &args.utilisation {
        Some(text) => percent(text)?,
        None => run.map_or_else(AnswerEvidence::default, measured::utilisation_high),
    };
    Ok(Answers {
        throughput_only: flag(&args.throughput_only, throughput),
        utilisation_high: utilisation,
        barriers: flag(&args.barriers, AnswerEvidence::default()),
        memory_full: flag(
            &args.memory_full,
            run.map_or_else(AnswerEvidence::default, measured::memory_full),
        ),
        virtualised: flag(
            &args.virtualised,
            run.map_or_else(AnswerEvidence::default, measured::virtualised),
        ),
        long_items: AnswerEvidence::default(),
    })
}

fn percent(text: &str) -> Result<AnswerEvidence, Failure> {
    let number = text.trim().trim_end_matches('%').trim().parse::<f64>().ok();
    let percent = number.filter(|p| (0.0..=100.0).contains(p)).ok_or_else(|| {
        Failure::usage(format!("--utilisation {text}: write a percentage, for example 80%"))
    })?;
    let high = if percent >= measured::HIGH_PERCENT { FlowAnswer::Yes } else { FlowAnswer::No };
    Ok(AnswerEvidence::new(high, format!("{percent} %, as given")))
}

/// Asks the person at the terminal what is still unknown and on the way.
pub(super) fn request(
    args: &DecideArgs,
    mut answers: Answers,
    unit_ns: Option<f64>,
) -> Result<Answers, Failure> {
    let person = io::stdin().is_terminal() && io::stderr().is_terminal();
    if args.no_ask || args.json || args.svg.is_some() || !person {
        return Ok(answers);
    }
    let mut seen: Vec<&str> = Vec::new();
    if unit_ns.is_some() {
        // Answered by the length, later.
        seen.push("long-items");
    }
    loop {
        let path = flow::walk(&answers);
        let open = path
            .steps
            .iter()
            .find(|s| s.taken && s.known.answer == FlowAnswer::Unknown && !seen.contains(&s.id));
        let Some(step) = open else { return Ok(answers) };
        seen.push(step.id);
        let hint = if step.known.from.is_empty() {
            String::new()
        } else {
            format!(" ({})", step.known.from)
        };
        let mut err = io::stderr().lock();
        let shown = write!(err, "{}{hint} [y/n, Enter: not known] ", step.question);
        drop(shown.and_then(|()| err.flush()));
        drop(err);
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map_err(Failure::cannot)?;
        let answer = match line.trim().to_lowercase().as_str() {
            "y" | "yes" => FlowAnswer::Yes,
            "n" | "no" => FlowAnswer::No,
            _ => continue,
        };
        let known = AnswerEvidence::new(answer, "as answered");
        match step.id {
            "throughput-only" => answers.throughput_only = known,
            "utilisation-high" => answers.utilisation_high = known,
            "barriers" => answers.barriers = known,
            "memory-full" => answers.memory_full = known,
            "virtualised" => answers.virtualised = known,
            _ => answers.long_items = known,
        }
    }
}
