// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every system with every load, resumable; and one run per kernel, side by side.
//!
//! A cell whose file holds just what would be made is not made again.
//! Not here: the table of them (`tailbound_report::matrix`).

use std::path::{Path, PathBuf};

use serde_json::Value;
use tailbound_core::Run;
use tailbound_core::lab::LabRecord;
use tailbound_sys::new_file::Existing;

use crate::bench::Bench;
use crate::emulator::Emulator;
use crate::error::{FileError, LabError};
use crate::keep::{folders, keep};
use crate::request::Labelled;
use crate::run::Made;
use crate::watching::{self, Watching};

/// Where nobody names a folder.
const FOLDER: &str = "matrix";

/// Reads a run file.
pub type RunReader<'a> = dyn Fn(&Path) -> Result<Run, LabError> + 'a;
/// Writes what was made of a cell.
pub type RunKeeper<'a> = dyn FnMut(&Path, &Made) -> Result<(), LabError> + 'a;

/// The run of a cell, or why there is none.
pub type CellRun = Result<Run, LabError>;

/// Cells, and how they are made.
#[derive(Clone, Copy, Debug)]
pub struct Cells<'a> {
    /// What makes them.
    pub bench: &'a Bench<'a>,
    /// QEMU.
    pub emulator: &'a Emulator,
    /// What is made, and what it is called.
    pub labelled: &'a [Labelled],
    /// Are they watched too?
    pub watching: Watching,
}

impl Cells<'_> {
    /// Those at these places; `done` is called with each, by its number in `open`.
    fn make(
        &self,
        open: &[usize],
        done: &mut dyn FnMut(usize, Result<Made, LabError>) -> String,
    ) -> Result<(), LabError> {
        let all: Vec<_> =
            open.iter().filter_map(|at| self.labelled.get(*at)).map(|l| l.cell.clone()).collect();
        match self.watching {
            Watching::Off => self.bench.make(&all, self.emulator, done),
            Watching::Paths => watching::all(self.bench, &all, self.emulator, done),
        }
    }

    /// Makes all of them, each to be written to its place in `files`; what each cost is told with it.
    ///
    /// # Errors
    /// Ctrl-C came; the last file that could not be written.
    pub fn make_all(
        &self,
        files: &[PathBuf],
        keep: &mut RunKeeper<'_>,
    ) -> Result<Vec<(Option<CellRun>, Value)>, LabError> {
        let mut runs = Vec::new();
        runs.resize_with(self.labelled.len(), || (None, Value::Null));
        let mut broken = None;
        let all: Vec<usize> = (0..self.labelled.len()).collect();
        self.make(&all, &mut |at, made| {
            let (Some(l), Some(path)) = (self.labelled.get(at), files.get(at)) else {
                return String::new();
            };
            let (run, cost, note) = match made {
                Ok(made) => {
                    let note = match keep(path, &made) {
                        Ok(()) => made.summary(&l.title()),
                        Err(e) => {
                            let text = e.to_string();
                            broken = Some(e);
                            text
                        }
                    };
                    (Ok(made.run), made.cost.json(), note)
                }
                Err(e) => (Err(e), Value::Null, format!("{}: failed", l.title())),
            };
            if let Some(place) = runs.get_mut(at) {
                *place = (Some(run), cost);
            }
            note
        })?;
        broken.map_or(Ok(runs), Err)
    }
}

/// A matrix: cells, and what each file is to hold.
#[derive(Debug)]
pub struct Matrix<'a> {
    cells: Cells<'a>,
    records: Vec<LabRecord>,
    /// What else than system and load tells the files from those of others.
    more: &'a str,
}

/// What is in a folder of the cells that are asked for.
#[derive(Debug)]
pub struct MatrixFolder {
    /// The folder.
    pub out: PathBuf,
    /// The file of each cell.
    pub files: Vec<PathBuf>,
    /// The run of each, as far as it is there.
    pub runs: Vec<Option<CellRun>>,
    /// A file of one of them that holds something else.
    other: Option<PathBuf>,
}

impl<'a> Matrix<'a> {
    /// Of these cells.
    ///
    /// # Errors
    /// One of them cannot be prepared.
    pub fn of(cells: Cells<'a>, more: &'a str) -> Result<Self, LabError> {
        let record = |l: &Labelled| Ok(l.cell.prepare(cells.emulator)?.record);
        let records = cells.labelled.iter().map(record).collect::<Result<_, LabError>>()?;
        Ok(Self { cells, records, more })
    }

    /// The folder `out`, or the first that holds nothing else.
    ///
    /// # Errors
    /// A file of it cannot be read, or holds a run of other options, which is not to be replaced.
    pub fn folder(
        &self,
        out: Option<&Path>,
        existing: Existing,
        read: &RunReader<'_>,
    ) -> Result<MatrixFolder, LabError> {
        let folder = match out {
            Some(out) => self.look(out, read)?,
            // A folder that holds other words is not the one of these.
            None => {
                let mut all = folders(FOLDER);
                loop {
                    let folder = self.look(&all.next().ok_or(LabError::Bug)?, read)?;
                    if folder.other.is_none() || existing == Existing::Replace {
                        break folder;
                    }
                }
            }
        };
        match &folder.other {
            Some(path) if existing != Existing::Replace => {
                Err(FileError::OtherRun { path: path.clone() }.into())
            }
            _ => Ok(folder),
        }
    }

    fn look(&self, out: &Path, read: &RunReader<'_>) -> Result<MatrixFolder, LabError> {
        let more = self.more;
        let place = |l: &Labelled| out.join(format!("{}{more}.tailbound.jsonl", l.stem()));
        let files: Vec<PathBuf> = self.cells.labelled.iter().map(place).collect();
        let (mut runs, mut other) = (Vec::new(), None);
        for (path, record) in files.iter().zip(&self.records) {
            let there = path.exists().then(|| read(path)).transpose()?;
            let same = there.as_ref().is_some_and(|r| r.header.lab.as_deref() == Some(record));
            if there.is_some() && !same {
                other.get_or_insert_with(|| path.clone());
            }
            let is_watched = |r: &Run| r.paths.is_some() || self.cells.watching == Watching::Off;
            runs.push(there.filter(|r| same && is_watched(r)).map(Ok));
        }
        Ok(MatrixFolder { out: out.to_owned(), files, runs, other })
    }

    /// Makes the cells that are not there.
    ///
    /// # Errors
    /// Ctrl-C came; the first file that could not be written.
    pub fn make(&self, folder: &mut MatrixFolder) -> Result<(), LabError> {
        let MatrixFolder { files, runs, .. } = folder;
        let open: Vec<usize> =
            (0..).zip(&*runs).filter(|(_, r)| r.is_none()).map(|(at, _)| at).collect();
        let labelled = self.cells.labelled;
        let kept = labelled.len() - open.len();
        if kept > 0 {
            let all = labelled.len();
            self.cells.bench.note(&format!("{kept} of {all} cells were made before"));
        }
        let mut broken = None;
        self.cells.make(&open, &mut |nth, made| {
            let Some(at) = open.get(nth).copied() else { return String::new() };
            let (Some(l), Some(path)) = (labelled.get(at), files.get(at)) else {
                return String::new();
            };
            let (run, note) = match made {
                Ok(made) => {
                    let note = made.summary(&l.title());
                    if let Err(e) = keep(path, &made.run, &made.console, Existing::Replace) {
                        broken.get_or_insert(e);
                    }
                    (Ok(made.run), note)
                }
                Err(e) => {
                    let note = format!("{}: failed: {e}", l.title());
                    (Err(e), note)
                }
            };
            if let Some(place) = runs.get_mut(at) {
                *place = Some(run);
            }
            note
        })?;
        broken.map_or(Ok(()), Err)
    }
}
