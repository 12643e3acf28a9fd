// SPDX-License-Identifier: MIT OR Apache-2.0
//! What lies in a fleet's folder of before: of which campaign it is, how a target's runs were made, which are complete.
//!
//! So that a command that goes on with a folder mixes nothing, and measures nothing twice.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tailbound_core::limits::TEXT_BYTES_MAX;
use tailbound_series::campaign::folder;
pub(super) use tailbound_series::campaign::folder::is_complete;
use tailbound_sys::given;
use tailbound_sys::new_file::{self, Existing};

use super::EngineError;

const HOW_FILE: &str = "made.json";

/// How the runs of a target are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct How {
    pub(super) scale: f64,
    pub(super) cpus: Option<String>,
}

/// The fleet's folder is of this campaign from now on.
///
/// # Errors
/// It is of another one, or cannot be made.
pub(super) fn settle(all: &Path, notes: &Path, campaign: &str) -> Result<(), EngineError> {
    fs::create_dir_all(notes).map_err(|e| EngineError::file(notes, e))?;
    let path = notes.join(folder::FILE);
    if path.exists() {
        let there = given::text(&path, TEXT_BYTES_MAX).map_err(|e| EngineError::file(&path, e))?;
        if there != campaign {
            return Err(EngineError::OtherCampaign { folder: all.to_owned(), campaign: path });
        }
        return Ok(());
    }
    new_file::write(&path, Existing::Replace, campaign.as_bytes())
        .map_err(|e| EngineError::file(&path, e))
}

/// A target's runs are made so from now on.
///
/// # Errors
/// There are runs that were made in another way.
pub(super) fn same_way(notes: &Path, results: &Path, how: &How) -> Result<(), EngineError> {
    let path = notes.join(HOW_FILE);
    if !path.exists() {
        return write(&path, how);
    }
    if read::<How>(&path)? == *how {
        return Ok(());
    }
    let why = format!(
        "{} has runs of another --scale or other CPUs: give another --out",
        results.display()
    );
    Err(EngineError::failed("the folder of results", why))
}

pub(super) fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, EngineError> {
    let text = given::text(path, TEXT_BYTES_MAX).map_err(|e| EngineError::file(path, e))?;
    serde_json::from_str(&text).map_err(|e| EngineError::file(path, e.into()))
}

pub(super) fn write(path: &Path, what: &impl Serialize) -> Result<(), EngineError> {
    let text = serde_json::to_vec(what).map_err(|e| EngineError::file(path, e.into()))?;
    new_file::write(path, Existing::Replace, &text).map_err(|e| EngineError::file(path, e))
}
