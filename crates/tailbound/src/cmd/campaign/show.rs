// SPDX-License-Identifier: MIT OR Apache-2.0
//! `campaign list` and `campaign show`.

use std::process::ExitCode;

use tailbound_core::campaign::CampaignFile;
use tailbound_report::campaign::{contents_json, contents_text, list_json, list_text};
use tailbound_series::campaign::{SHIPPED, find};

use crate::cli_campaign::CampaignShowArgs;
use crate::cli_color::ColorChoice;
use crate::say::{self, Failure, Form};

/// `tailbound campaign list`
pub(super) fn list(form: Form) -> Result<ExitCode, Failure> {
    let all = SHIPPED.iter().map(|(name, _)| find(name).map(|c| c.file));
    let all: Vec<CampaignFile> = all.collect::<Result<_, _>>()?;
    form.answer(|| list_json(&all), |style| list_text(&all, style.width))?;
    Ok(ExitCode::SUCCESS)
}

/// `tailbound campaign show`
pub(super) fn show(args: &CampaignShowArgs) -> Result<ExitCode, Failure> {
    let chosen = find(&args.name)?;
    if args.toml {
        say::answer(&chosen.text)?;
    } else if args.json {
        say::answer_json(&contents_json(&chosen.file))?;
    } else {
        say::answer(&contents_text(&chosen.file, say::style(ColorChoice::Never).width))?;
    }
    Ok(ExitCode::SUCCESS)
}
