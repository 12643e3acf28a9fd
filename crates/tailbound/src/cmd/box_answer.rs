// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound box answer`: a run whose probe answers pulses from outside.
//!
//! Not here: the probes (`tailbound_probe`, `answer-*`), everything that is the same for any run ([`super::run`]).

use std::process::ExitCode;

use tailbound_core::Spec;

use super::run::{self, OneRun};
use super::session;
use crate::cli_box::{AnswerArgs, LineArgs};
use crate::say::Failure;

/// `tailbound box answer`
pub(super) fn answer(args: &AnswerArgs) -> Result<ExitCode, Failure> {
    if args.beside.probe.is_some() {
        return Err(Failure::usage("--probe: `box answer` has its own; use `tailbound run`"));
    }
    let mut request = session::request(&args.plan)?;
    request.config = request.config.over(&args.beside.config()?);
    request.config.probe = Some(probe(&args.line)?.to_string());
    run::one(OneRun { request, plan: &args.plan, report: args.report.as_deref(), round: None })
}

/// The probe that these flags ask for, with its options: a flag of another line was refused before.
fn probe(line: &LineArgs) -> Result<Spec, Failure> {
    let name = match (&line.udp, &line.chip) {
        (Some(_), _) => "answer-udp",
        (_, Some(_)) => "answer-gpio",
        _ => "answer-uart",
    };
    let options = [
        ("address", line.udp.clone()),
        ("sender", line.sender.clone()),
        ("chip", line.chip.clone()),
        ("in", line.input.clone()),
        ("answer", line.answer.clone()),
        ("edge", line.edge.clone()),
        ("port", line.port.clone()),
        ("baud", line.baud.map(|baud| baud.to_string())),
        ("frame", line.frame.map(|bytes| bytes.to_string())),
        ("counting", line.counting.then(|| "yes".to_owned())),
        ("by", line.by.clone()),
    ];
    let given = options.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let options: Vec<(String, String)> = given.collect();
    if let Some((flag, value)) = options.iter().find(|(_, value)| value.contains(',')) {
        return Err(Failure::usage(format!("--{flag} {value}: a comma cannot be part of it")));
    }
    Ok(Spec { name: name.to_owned(), options })
}
