// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answers to the questions of the flow: from flags, else from what was measured, else from
//! the person at the terminal.
//!
//! Not here: what the answers come to (`tailbound_stats::decide`).

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use tailbound_stats::decide::{Answers, FlowAnswer, GivenAnswers, Sides};

use crate::cli_decide::DecideArgs;
use crate::say::Failure;

/// What the flags and the runs answer.
pub(super) fn answers(args: &DecideArgs, given: &Sides) -> Result<Answers, Failure> {
    let flag = |word: &Option<String>| match word.as_deref() {
        Some("yes") => Some(FlowAnswer::Yes),
        Some(_) => Some(FlowAnswer::No),
        None => None,
    };
    let given_answers = GivenAnswers {
        throughput_only: flag(&args.throughput_only),
        barriers: flag(&args.barriers),
        memory_full: flag(&args.memory_full),
        virtualised: flag(&args.virtualised),
        utilisation_percent: args.utilisation.as_deref().map(percent).transpose()?,
    };
    Ok(given_answers.with(given))
}

fn percent(text: &str) -> Result<f64, Failure> {
    let number = text.trim().trim_end_matches('%').trim().parse::<f64>().ok();
    number.filter(|p| (0.0..=100.0).contains(p)).ok_or_else(|| {
        Failure::usage(format!("--utilisation {text}: write a percentage, for example 80%"))
    })
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
    let mut asked: Vec<&str> = Vec::new();
    if unit_ns.is_some() {
        // Answered by the length, later.
        asked.push("long-items");
    }
    while let Some(step) = answers.open(&asked) {
        asked.push(step.id);
        let hint = match step.known.from.as_str() {
            "" => String::new(),
            from => format!(" ({from})"),
        };
        let mut err = io::stderr().lock();
        let shown = write!(err, "{}{hint} [y/n, Enter: not known] ", step.question);
        drop(shown.and_then(|()| err.flush()));
        drop(err);
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map_err(Failure::cannot)?;
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => answers.answer(step.id, FlowAnswer::Yes),
            "n" | "no" => answers.answer(step.id, FlowAnswer::No),
            _ => {}
        }
    }
    Ok(answers)
}
