// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run from a file of ours or of any tool that `tailbound-import` knows, packed or not.
//!
//! `-` is standard input. A verdict is kept, or made where the file has none.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use tailbound_core::order;

use tailbound_archive::Packing;
use tailbound_core::runfile::{self, Integrity, read_run_checked};
use tailbound_core::{Run, limits};
use tailbound_import::{Format, ImportSource, Options};
use tailbound_sys::given;

use crate::error::FilesError;
use crate::folder;
use crate::named::name;

/// The plain bytes of a file.
pub type PlainBytes = BufReader<Box<dyn Read + Send>>;

/// Hears how far the reading of another tool's file is, which may be long.
pub trait ReadProgress {
    /// The file `name`, of `length` bytes where that is known, is read from now on.
    fn begins(&mut self, name: &str, length: Option<u64>);
    /// After `bytes` of it; whether to go on.
    fn at(&mut self, bytes: u64) -> bool;
}

/// What is in the file, unpacked, and how many bytes that is where it is known.
///
/// # Errors
/// It cannot be opened, or what packed it is not known.
pub fn open(path: &Path) -> Result<(PlainBytes, Option<u64>), FilesError> {
    let source: Box<dyn Read + Send> = if path == Path::new("-") {
        Box::new(given::Reader::stdin().map_err(|e| FilesError::of(path, &e))?)
    } else {
        Box::new(given::Reader::open(path).map_err(|e| match folder::advice(path) {
            Some(advice) => FilesError::of(path, &format!("{e}{advice}")),
            None => FilesError::of(path, &e),
        })?)
    };
    let (packing, source) = Packing::open(source).map_err(|e| FilesError::of(path, &e))?;
    // Of a packed one the length is not that of what is in it.
    let length = length(path).filter(|_| packing == Packing::Plain);
    Ok((BufReader::with_capacity(1 << 16, source), length))
}

/// A file whose first bytes tell what it is.
pub struct StartedFile {
    /// These bytes.
    pub start: Vec<u8>,
    /// All of it.
    pub source: Box<dyn BufRead + Send>,
    /// Its bytes, where they are known.
    pub length: Option<u64>,
}

/// As [`open`], with the first `most` bytes apart.
///
/// # Errors
/// It cannot be opened or read, or what packed it is not known.
pub fn open_with_start(path: &Path, most: usize) -> Result<StartedFile, FilesError> {
    let (mut source, length) = open(path)?;
    let mut start = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX);
    source.by_ref().take(limit).read_to_end(&mut start).map_err(|e| FilesError::of(path, &e))?;
    let source = Box::new(Cursor::new(start.clone()).chain(source));
    Ok(StartedFile { start, source, length })
}

/// Number of bytes of `path`, where it is a file that knows them.
#[must_use]
pub fn length(path: &Path) -> Option<u64> {
    path.metadata().ok().filter(std::fs::Metadata::is_file).map(|m| m.len())
}

/// All bytes of `path`, a file of words.
///
/// # Errors
/// It cannot be read, or is too long.
pub fn bytes(path: &Path) -> Result<Vec<u8>, FilesError> {
    let path = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
    given::read(path, limits::TEXT_BYTES_MAX).map_err(|e| FilesError::of(path, &e))
}

/// A run file, or another tool's file, which is imported, without the line types in `skip` (`window`, `raw`, …).
///
/// # Errors
/// It cannot be read, or holds no run.
pub fn run_without(
    path: &Path,
    skip: &[&str],
    progress: &mut dyn ReadProgress,
) -> Result<Run, FilesError> {
    let (source, length) = open(path)?;
    run_of(
        path,
        StartedFile { start: Vec::new(), source: Box::new(source), length },
        skip,
        progress,
    )
}

/// As [`run_without`], of a file that is open.
///
/// # Errors
/// It cannot be read, or holds no run.
pub fn run_of(
    path: &Path,
    file: StartedFile,
    skip: &[&str],
    progress: &mut dyn ReadProgress,
) -> Result<Run, FilesError> {
    let StartedFile { mut source, length, .. } = file;
    // Only our own files begin so; everything else is another tool's.
    let ours = runfile::is_run_file(source.fill_buf().map_err(|e| FilesError::of(path, &e))?);
    let mut run = if ours {
        runfile::read_run_without(source, skip).map_err(|e| FilesError::of(path, &e))?
    } else {
        imported(path, (source, length), None, &Options::default(), progress)?
    };
    tailbound_stats::judge(&mut run);
    Ok(run)
}

/// Another tool's file, or one of ours, of a given or found format; where `progress` ends the reading of a long
/// list of samples, what was read so far is the run.
///
/// # Errors
/// It cannot be read, or holds no run, or several.
pub fn import(
    path: &Path,
    format: Option<Format>,
    options: &Options,
    progress: &mut dyn ReadProgress,
) -> Result<Run, FilesError> {
    let (source, length) = open(path)?;
    imported(path, (Box::new(source), length), format, options, progress)
}

/// As [`import`], every run of the file.
///
/// # Errors
/// It cannot be read, or holds no run.
pub fn import_all(
    path: &Path,
    format: Option<Format>,
    options: &Options,
    progress: &mut dyn ReadProgress,
) -> Result<Vec<Run>, FilesError> {
    let (mut source, length) = open(path)?;
    let name = name(path);
    progress.begins(&name, length);
    let mut watch = |bytes| progress.at(bytes);
    let source = ImportSource { bytes: &mut source, length };
    Ok(tailbound_import::runs_of(format, &name, source, options, &mut watch)?)
}

fn imported(
    path: &Path,
    (mut source, length): (Box<dyn BufRead + Send>, Option<u64>),
    format: Option<Format>,
    options: &Options,
    progress: &mut dyn ReadProgress,
) -> Result<Run, FilesError> {
    let name = name(path);
    progress.begins(&name, length);
    let mut watch = |bytes| progress.at(bytes);
    let source = ImportSource { bytes: &mut source, length };
    Ok(tailbound_import::import_of(format, &name, source, options, &mut watch)?)
}

/// What `read` makes of each of `paths`, in their order, on every CPU; `told` is given how many were begun. After
/// an error nobody begins another file; those begun are finished.
///
/// # Errors
/// The first of `read`.
pub fn on_every_cpu<T: Send, E: Send>(
    paths: &[PathBuf],
    read: &(dyn Fn(&Path) -> Result<T, E> + Sync),
    told: &(dyn Fn(usize) + Sync),
) -> Result<Vec<T>, E> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(paths.len());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut mine = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = paths.get(at) else { return mine };
            let read = read(path);
            let failed = read.is_err();
            mine.push((at, read));
            if failed {
                next.store(paths.len(), Ordering::Relaxed);
            }
            told(at + 1);
        }
    };
    let mut all = std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        // A panic of another thread is ours.
        others.into_iter().for_each(|t| match t.join() {
            Ok(theirs) => all.extend(theirs),
            Err(panic) => std::panic::resume_unwind(panic),
        });
        all
    });
    order::by_key(&mut all, |(at, _)| *at);
    all.into_iter().map(|(_, read)| read).collect()
}

/// A run file of ours that was read to its end, and stands at its begin again.
#[derive(Debug)]
pub struct CheckedFile {
    /// It.
    pub file: File,
    /// What it says.
    pub run: Run,
    /// What its digest tells.
    pub integrity: Integrity,
}

impl CheckedFile {
    /// Of the file at `path`.
    ///
    /// # Errors
    /// It cannot be read, or is no run file.
    pub fn of(path: &Path) -> Result<Self, FilesError> {
        let failed = |e: &dyn std::fmt::Display| FilesError::of(path, e);
        let mut file = given::file(path).map_err(|e| failed(&e))?;
        let (mut run, integrity) =
            read_run_checked(BufReader::with_capacity(1 << 16, &file), &["raw"])
                .map_err(|e| failed(&e))?;
        tailbound_stats::judge(&mut run);
        file.rewind().map_err(|e| failed(&e))?;
        Ok(Self { file, run, integrity })
    }
}
