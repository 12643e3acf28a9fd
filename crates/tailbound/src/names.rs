// SPDX-License-Identifier: MIT OR Apache-2.0
//! Default file names: they contain what was measured, and never collide (a taken one gets a number). A name that was given is used as it is, or refused before anything starts.
//!
//! Not here: how they are found (`tailbound_files::free_names`), how a name gets its number (`tailbound_sys::free_name`).

use std::path::{Path, PathBuf};

use crate::input::{self, Existing};
use crate::say::Failure;

pub(crate) use tailbound_files::free_names::free;
pub(crate) use tailbound_sys::free_name::{numbered, plain};

/// Writes under this name, or under the first free one where what is there is kept; says which it was.
pub(crate) fn write(path: &Path, text: &str, existing: Existing) -> Result<PathBuf, Failure> {
    match existing {
        Existing::Replace => input::write(path, text, existing).map(|()| path.to_owned()),
        // A default file name never collides: what took long is over.
        Existing::Keep => Ok(tailbound_files::free_names::write_free(path, text)?),
    }
}
