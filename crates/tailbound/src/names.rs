// SPDX-License-Identifier: MIT OR Apache-2.0
//! Default file names: they contain what was measured, and never collide (a taken one gets a number). A name that was given is used as it is, or refused before anything starts.
//!
//! Not here: how they are found (`tailbound_files::free_names`), how a name gets its number (`tailbound_sys::free_name`).

use std::path::{Path, PathBuf};

use crate::say::Failure;

pub(crate) use tailbound_files::free_names::free;
pub(crate) use tailbound_sys::free_name::{numbered, plain};

/// Writes under the first free name, and says which it was.
pub(crate) fn write_free(path: &Path, text: &str) -> Result<PathBuf, Failure> {
    Ok(tailbound_files::free_names::write_free(path, text)?)
}
