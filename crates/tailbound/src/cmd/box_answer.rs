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

/// The probe that these flags ask for, with its options.
fn probe(line: &LineArgs) -> Result<Spec, Failure> {
    let given = |name, value: Option<String>| value.map(|value| (name, value));
    let (name, own) = if line.udp.is_some() {
        let options = [given("address", line.udp.clone()), given("sender", line.sender.clone())];
        ("answer-udp", options.to_vec())
    } else if line.chip.is_some() {
        let options = [
            given("chip", line.chip.clone()),
            given("in", line.input.clone()),
            given("answer", line.answer.clone()),
            given("edge", line.edge.clone()),
        ];
        ("answer-gpio", options.to_vec())
    } else {
        let options = [
            given("port", line.port.clone()),
            given("baud", line.baud.map(|baud| baud.to_string())),
            given("frame", line.frame.map(|bytes| bytes.to_string())),
            given("counting", line.counting.then(|| "yes".to_owned())),
        ];
        ("answer-uart", options.to_vec())
    };
    let mut options: Vec<(&str, String)> = own.into_iter().flatten().collect();
    options.extend(line.by.clone().map(|by| ("by", by)));
    if let Some((flag, value)) = options.iter().find(|(_, value)| value.contains(',')) {
        return Err(Failure::usage(format!("--{flag} {value}: a comma cannot be part of it")));
    }
    let options = options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(Spec { name: name.to_owned(), options })
}
