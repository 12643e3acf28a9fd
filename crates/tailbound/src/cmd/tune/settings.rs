// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound tune profiles` and `settings`: what there is to choose from.

use std::process::ExitCode;

use tailbound_tune::offered::{
    profile_text, profiles_json, profiles_text, settings_json, settings_text,
};

use crate::cli_color::ColorChoice;
use crate::cli_tune::{JsonArg, ProfilesArgs};
use crate::say::{self, Failure, Form};

/// `tailbound tune profiles`
pub(super) fn profiles(args: &ProfilesArgs) -> Result<ExitCode, Failure> {
    match &args.name {
        Some(name) => say::answer(profile_text(name)?)?,
        None if args.json => say::answer_json(&profiles_json())?,
        None => say::answer(&profiles_text())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// `tailbound tune settings`
pub(super) fn settings(args: &JsonArg) -> Result<ExitCode, Failure> {
    Form::of(args.json, ColorChoice::Auto)
        .answer(settings_json, |style| settings_text(style.width))?;
    Ok(ExitCode::SUCCESS)
}
