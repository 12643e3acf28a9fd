// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound tune status`, `verify`, `history`: what was changed, and is it still so?
//!
//! Reads only.

use std::process::ExitCode;

use tailbound_report::Style;
use tailbound_tune::journal::{self, Places, Transaction};
use tailbound_tune::status::{Verification, changes_json, changes_text};
use tailbound_tune::{chosen, needs_root};

use crate::cli_color::ColorChoice;
use crate::cli_tune::{JsonArg, WhichJsonArgs};
use crate::say::{self, Failure, Form};

/// Exit status where something was changed since.
const CHANGED: u8 = 1;

fn read() -> Result<Vec<Transaction>, Failure> {
    needs_root().map_err(Failure::cannot)?;
    journal::all(&Places::of_machine()).map_err(Failure::cannot)
}

fn list(all: &[&Transaction], form: Form, none: &str) -> Result<ExitCode, Failure> {
    let text = |style: Style| match all {
        [] => none.to_owned(),
        all => changes_text(all, style.width),
    };
    form.answer(|| changes_json(all), text)?;
    Ok(ExitCode::SUCCESS)
}

/// `tailbound tune history`
pub(super) fn history(args: &JsonArg) -> Result<ExitCode, Failure> {
    let all = read()?;
    list(
        &all.iter().collect::<Vec<_>>(),
        Form::of(args.json, ColorChoice::Auto),
        "Nothing was ever changed",
    )
}

/// `tailbound tune status`
pub(super) fn status(args: &JsonArg) -> Result<ExitCode, Failure> {
    let all = read()?;
    let now: Vec<&Transaction> = all.iter().filter(|t| !t.has_ended()).collect();
    list(&now, Form::of(args.json, ColorChoice::Auto), "Nothing is changed")
}

/// `tailbound tune verify`
pub(super) fn verify(args: &WhichJsonArgs) -> Result<ExitCode, Failure> {
    let all = read()?;
    let found = Verification::of(chosen::one(&all, args.which.number)?);
    if args.json {
        say::answer_json(&found.json())?;
    } else {
        say::answer(&found.text())?;
    }
    Ok(ExitCode::from(if found.drifted() == 0 { 0 } else { CHANGED }))
}
