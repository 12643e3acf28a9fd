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
    let own = &args.run;
    if own.beside.probe.is_some() {
        return Err(Failure::usage("--probe: `box answer` has its own; use `tailbound run`"));
    }
    let mut request = session::request(&own.plan)?;
    request.config = request.config.over(&own.beside.config()?);
    request.config.probe = Some(probe(&args.line)?.to_string());
    run::one(OneRun { request, plan: &own.plan, report: own.report.as_deref(), round: None })
}

/// The probe that these flags ask for, with its options.
fn probe(line: &LineArgs) -> Result<Spec, Failure> {
    let mut options: Vec<(&str, String)> = Vec::new();
    let name = match (&line.udp, &line.port) {
        (Some(address), _) => {
            options.push(("address", address.clone()));
            options.extend(line.sender.clone().map(|sender| ("sender", sender)));
            "answer-udp"
        }
        (None, port) => {
            options.extend(port.clone().map(|port| ("port", port)));
            options.extend(line.baud.map(|baud| ("baud", baud.to_string())));
            options.extend(line.frame.map(|bytes| ("frame", bytes.to_string())));
            options.extend(line.counting.then(|| ("counting", "yes".to_owned())));
            "answer-uart"
        }
    };
    options.extend(line.by.clone().map(|by| ("by", by)));
    if let Some((flag, value)) = options.iter().find(|(_, value)| value.contains(',')) {
        return Err(Failure::usage(format!("--{flag} {value}: a comma cannot be part of it")));
    }
    let options = options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(Spec { name: name.to_owned(), options })
}
