// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a series needs from the program that makes it: runs, and run files that are read.
//!
//! The command line starts itself ([`Children`](crate::Children)) and reads whatever its importers
//! know; tests give answers of their own.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::Path;

use tailbound_core::Run;

use crate::error::SeriesError;

/// How a run ended that was made for a series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildEnd {
    /// What it wrote to its standard error.
    pub message: String,
    /// A signal was received meanwhile and handed on.
    pub interrupted: bool,
}

impl ChildEnd {
    /// Its message without the name of the program; `otherwise` where it wrote none.
    #[must_use]
    pub fn reason<'a>(&'a self, otherwise: &'a str) -> &'a str {
        let message = self.message.trim_start_matches("tailbound: ");
        if message.is_empty() { otherwise } else { message }
    }
}

/// Makes the runs of a series and reads them.
pub trait Caller {
    /// Why it could not; a series adds its own reasons.
    type Error: From<SeriesError> + Display;

    /// Makes the run that the options in `arguments` describe; its log may lie in `folder`. `tick` is called some
    /// ten times per second.
    ///
    /// # Errors
    /// When it cannot be started or waited for. A run that fails is no error: its file is not complete.
    fn make(
        &mut self,
        arguments: &[OsString],
        folder: &Path,
        tick: &mut dyn FnMut(),
    ) -> Result<ChildEnd, Self::Error>;

    /// The run in the file at `path`, without its lines of the types in `skip`.
    ///
    /// # Errors
    /// When it cannot be read, or holds no run.
    fn read(&mut self, path: &Path, skip: &[&str]) -> Result<Run, Self::Error>;

    /// The run in the file at `path`, if it ended as planned. A file that cannot be read holds none: it is made
    /// again.
    fn complete(&mut self, path: &Path) -> Option<Run> {
        let run = path.exists().then(|| self.read(path, &["raw"]).ok()).flatten();
        run.filter(Run::ended_as_planned)
    }
}
