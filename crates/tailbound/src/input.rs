// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads runs and writes result files as the verbs need it: with progress on standard error, `-` as standard output,
//! failures with an exit status.
//!
//! Not here: how files are read and written (`tailbound-files`).

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tailbound_core::Run;
use tailbound_files::read::{self, on_every_cpu};
use tailbound_files::{FilesError, ReadingLine, folder, write as result_files};
use tailbound_import::{Format, Options};
use tailbound_sys::signal::Signals;

use crate::say::{self, Failure, from_library};

pub(crate) use tailbound_files::named::{name, sibling};
pub(crate) use tailbound_files::read::length;
pub(crate) use tailbound_sys::new_file::Existing;

/// From one word about the progress to the next.
const PROGRESS_EVERY: Duration = Duration::from_secs(2);

/// The type of the lines that hold raw samples.
const RAW: &str = "raw";

from_library!(FilesError);

/// How far the reading of a file is, told on standard error; one of `signals` ends it.
pub(crate) fn reading(signals: Option<&Signals>) -> ReadingLine<'_> {
    ReadingLine::new(say::writer(), signals)
}

/// A run file, or another tool's file, which is imported.
///
/// Without its raw samples: no page shows them.
pub(crate) fn run(path: &Path) -> Result<Run, Failure> {
    run_without(path, &[RAW])
}

/// Several of them, in the order of `paths`, read on every CPU.
pub(crate) fn runs(paths: &[PathBuf]) -> Result<Vec<Run>, Failure> {
    runs_without(paths, &[RAW])
}

/// Several of them without the line types in `skip` (`window`, `raw`, …), which the caller
/// does not need; a verdict is kept or made as in [`run`]. Says how far it is where that takes
/// more than two seconds.
pub(crate) fn runs_without(paths: &[PathBuf], skip: &[&str]) -> Result<Vec<Run>, Failure> {
    let said = Mutex::new(Instant::now());
    on_every_cpu(paths, &|path| run_without(path, skip), &|begun| {
        if let Ok(mut last) = said.try_lock()
            && last.elapsed() > PROGRESS_EVERY
        {
            *last = Instant::now();
            say::note(&format!("read {begun} of {} files", paths.len()));
        }
    })
}

/// The same without the line types in `skip`.
pub(crate) fn run_without(path: &Path, skip: &[&str]) -> Result<Run, Failure> {
    Ok(read::run_without(path, skip, &mut reading(None))?)
}

/// Another tool's file, or one of ours, of a given or found format; one of `signals` ends the
/// reading of a long list of samples, and what was read so far is the run.
pub(crate) fn import(
    path: &Path,
    format: Option<Format>,
    options: &Options,
    signals: Option<&Signals>,
) -> Result<Run, Failure> {
    Ok(read::import(path, format, options, &mut reading(signals))?)
}

/// As [`import`], every run of the file.
pub(crate) fn import_all(
    path: &Path,
    format: Option<Format>,
    options: &Options,
    signals: Option<&Signals>,
) -> Result<Vec<Run>, Failure> {
    Ok(read::import_all(path, format, options, &mut reading(signals))?)
}

/// The plain bytes of a file, unpacked where it is packed.
#[cfg(feature = "server")]
pub(crate) fn plain(path: &Path) -> Result<read::PlainBytes, Failure> {
    Ok(read::open(path)?.0)
}

/// All bytes of `path`, a file of words; `-` is standard input.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    Ok(read::bytes(path)?)
}

/// Writes a result file; `-` is standard output.
pub(crate) fn write(path: &Path, text: &str, existing: Existing) -> Result<(), Failure> {
    if path == Path::new("-") {
        return say::answer(text);
    }
    write_bytes(path, text.as_bytes(), existing)
}

/// Writes a result file that need not be text.
pub(crate) fn write_bytes(path: &Path, bytes: &[u8], existing: Existing) -> Result<(), Failure> {
    Ok(result_files::bytes(path, bytes, existing)?)
}

/// A result file that grows while something goes on; it has its name at once, so that a kill leaves it there.
pub(crate) fn growing(path: &Path, existing: Existing) -> Result<Box<dyn Write>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdout()));
    }
    Ok(result_files::growing(path, existing)?)
}

/// May this result file be written? Looked at before work that takes long.
pub(crate) fn may_write(path: &Path, existing: Existing) -> Result<(), Failure> {
    if path == Path::new("-") {
        return Ok(());
    }
    Ok(result_files::may(path, existing)?)
}

/// Files as they are named, and of folders the runs in them.
pub(crate) fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    Ok(folder::files(named)?)
}

/// The runs in a folder, by name.
pub(crate) fn in_folder(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    Ok(folder::in_folder(path)?)
}
