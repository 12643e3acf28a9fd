// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of a campaign's folder, and the answer.
//!
//! Reads run files alone, wherever they were made.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tailbound_core::campaign::CampaignFile;
use tailbound_report::campaign::{html, json, text};
use tailbound_series::campaign::{Folder, find, folder};
use tailbound_stats::campaign::{CampaignEvidence, Word, claims};

use crate::caller::Machine;
use crate::cli_campaign::CampaignPageArgs;
use crate::input;
use crate::say::{self, Failure};

/// `tailbound campaign page`
pub(super) fn page(args: &CampaignPageArgs) -> Result<ExitCode, Failure> {
    let first = args.folders.first().map_or(Path::new("."), PathBuf::as_path);
    let chosen = match &args.campaign {
        Some(name) => find(name)?,
        None => Folder::campaign(first)?,
    };
    // Runs of another campaign have other parts: they would be passed over.
    for folder in args.folders.iter().filter(|f| f.join(folder::FILE).exists()) {
        let other = Folder::campaign(folder)?;
        if other.file.name != chosen.file.name {
            return Err(Failure::usage(format!(
                "{}: its runs are of `{}`, not of `{}`: a page shows one campaign; make one page for each",
                folder.display(),
                other.file.name,
                chosen.file.name
            )));
        }
    }
    finish(&args.folders, chosen.file, args.out.as_deref(), args.json, &args.color.when)
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
    as_json: bool,
    color: &str,
) -> Result<ExitCode, Failure> {
    let parts = file.parts();
    let first = folders.first().map_or(Path::new("."), PathBuf::as_path);
    let out = out.map_or_else(|| default_page(first), Path::to_path_buf);
    let mut systems = Vec::new();
    for folder in folders {
        // Links of the page's own folder are relative, so that it can be copied as a whole.
        let own = out.parent() == Some(folder.as_path());
        let prefix = if own { String::new() } else { format!("{}/", shown(folder)) };
        systems.extend(folder::systems(folder, &parts, &prefix, &mut Machine::default())?);
    }
    if systems.is_empty() {
        let first = first.display();
        return Err(Failure::cut_off(format!("{first}: contains no run of this campaign yet")));
    }
    let given = CampaignEvidence::of(file, systems);
    input::write(&out, &html(&given), true)?;
    if as_json {
        say::answer_json(&json(&given))?;
    } else {
        let style = say::style(color);
        say::answer_in(&text(&given, style), style)?;
        say::answer(&format!("\nRuns      {}\nReport    {}", shown(first), shown(&out)))?;
    }
    Ok(ExitCode::from(status(&given)))
}

fn shown(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// A run that could not be made, a claim that does not hold, runs that are missing.
fn status(given: &CampaignEvidence) -> u8 {
    if given.has_failed() {
        3
    } else if !given.is_complete() {
        5
    } else {
        u8::from(claims(given).iter().any(|c| c.word == Word::DoesNotHold))
    }
}
