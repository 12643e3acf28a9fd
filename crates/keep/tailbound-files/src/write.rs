// SPDX-License-Identifier: MIT OR Apache-2.0
//! Result files: an existing one only where that was asked for.
//!
//! Not here: how a file is written (`tailbound_sys::new_file`), standard output.

use std::io::{self, Write};
use std::path::Path;

use tailbound_core::unwritten::{Alternative, UnwrittenFile};
use tailbound_sys::new_file::{self, Existing, NewFile};

use crate::error::FilesError;

/// Writes a result file.
///
/// # Errors
/// [`FilesError::Unwritten`].
pub fn bytes(path: &Path, bytes: &[u8], existing: Existing) -> Result<(), FilesError> {
    new_file::write(path, existing, bytes).map_err(|e| unwritten(path, e))
}

/// A result file that grows while something goes on; it has its name at once, so that a kill leaves it there.
///
/// # Errors
/// As [`bytes`].
pub fn growing(path: &Path, existing: Existing) -> Result<Box<dyn Write>, FilesError> {
    let failed = |e| unwritten(path, e);
    let mut new = NewFile::open(path, existing).map_err(failed)?;
    new.place().map_err(failed)?;
    let file = new.file().try_clone().map_err(failed)?;
    Ok(Box::new(io::BufWriter::new(file)))
}

/// May this result file be written? Looked at before work that takes long.
///
/// # Errors
/// As [`bytes`].
pub fn may(path: &Path, existing: Existing) -> Result<(), FilesError> {
    new_file::may_write(path, existing).map_err(|e| unwritten(path, e))
}

fn unwritten(path: &Path, source: io::Error) -> FilesError {
    UnwrittenFile::of(path, source, Alternative::Name).into()
}
