// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of a campaign's folder, and the answer.
//!
//! Reads run files alone, wherever they were made.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tailbound_core::campaign::CampaignFile;
use tailbound_report::campaign::{html, json, text};
use tailbound_series::campaign::{absolute, campaign_of, evidence};

use crate::caller::Machine;
use crate::cli_campaign::CampaignPageArgs;
use crate::input::{self, Existing};
use crate::say::{self, Failure, Form};

/// `tailbound campaign page`
pub(super) fn page(args: &CampaignPageArgs) -> Result<ExitCode, Failure> {
    let chosen = campaign_of(&args.folders, args.campaign.as_deref())?;
    let form = Form::of(args.json, args.color.when);
    finish(&args.folders, chosen.file, args.out.as_deref(), form)
}

/// Where the page of a folder goes.
pub(super) fn default_page(folder: &Path) -> PathBuf {
    folder.join("campaign.html")
}

/// Writes the page of `folders` and answers.
pub(super) fn finish(
    folders: &[PathBuf],
    file: CampaignFile,
    out: Option<&Path>,
    form: Form,
) -> Result<ExitCode, Failure> {
    let first = folders.first().map_or(Path::new("."), PathBuf::as_path);
    let out = out.map_or_else(|| default_page(first), Path::to_path_buf);
    let Some(given) = evidence(folders, file, &out, &mut Machine::default())? else {
        let first = first.display();
        return Err(Failure::cut_off(format!("{first}: contains no run of this campaign yet")));
    };
    input::write(&out, &html(&given), Existing::Replace)?;
    form.answer(|| json(&given), |style| text(&given, style))?;
    if !form.is_json() {
        say::answer(&format!("\nRuns      {}\nReport    {}", absolute(first), absolute(&out)))?;
    }
    Ok(ExitCode::from(given.exit_status()))
}
