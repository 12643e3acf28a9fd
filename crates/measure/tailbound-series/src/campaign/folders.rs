// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several folders of one campaign, read as its evidence.

use std::path::{Path, PathBuf};

use tailbound_core::campaign::CampaignFile;
use tailbound_stats::campaign::CampaignEvidence;

use super::folder::{self, FILE, Folder};
use super::shipped::{Chosen, find};
use crate::caller::Caller;
use crate::error::SeriesError;

/// The campaign that is named, or else that of the first of `folders`. Runs of another campaign have other parts,
/// and would be passed over: they are refused.
///
/// # Errors
/// [`SeriesError::OtherThan`]; a folder says nothing of its campaign.
pub fn campaign_of(folders: &[PathBuf], name: Option<&str>) -> Result<Chosen, SeriesError> {
    let first = folders.first().map_or(Path::new("."), PathBuf::as_path);
    let chosen = match name {
        Some(name) => find(name)?,
        None => Folder::campaign(first)?,
    };
    for folder in folders.iter().filter(|f| f.join(FILE).exists()) {
        let other = Folder::campaign(folder)?;
        if other.file.name != chosen.file.name {
            return Err(SeriesError::OtherThan {
                path: folder.clone(),
                is: other.file.name,
                wanted: chosen.file.name,
            });
        }
    }
    Ok(chosen)
}

/// What lies in `folders`, for a page at `page`: links within the page's own folder are relative, so that it can
/// be copied as a whole. None where no run of the campaign is there.
///
/// # Errors
/// When a folder cannot be read.
pub fn evidence<C: Caller>(
    folders: &[PathBuf],
    file: CampaignFile,
    page: &Path,
    caller: &mut C,
) -> Result<Option<CampaignEvidence>, SeriesError> {
    let parts = file.parts();
    let mut systems = Vec::new();
    for folder in folders {
        let own = page.parent() == Some(folder.as_path());
        let prefix = if own { String::new() } else { format!("{}/", absolute(folder)) };
        systems.extend(folder::systems(folder, &parts, &prefix, caller)?);
    }
    Ok((!systems.is_empty()).then(|| CampaignEvidence::of(file, systems)))
}

/// A path that holds wherever it is read.
#[must_use]
pub fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}
