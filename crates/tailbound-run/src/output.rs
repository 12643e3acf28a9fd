// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the run file goes: opened, and its room reserved, before anything is started.
//!
//! Context: SETUP and COLD. Units: bytes.
//! If the file cannot be written in the middle of a run, the measurement goes on and the
//! run is saved elsewhere at the end: nothing is lost, and it is said aloud.
//! Source: fallocate(2), FALLOC_FL_KEEP_SIZE.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tailbound_core::plan::Plan;
use tailbound_core::record::{Line, Run};
use tailbound_core::runfile::{self, Writer};
use tailbound_sys::file::reserve;

use crate::error::RunError;

/// Where a run file is written.
#[derive(Debug)]
pub struct Output {
    to: Option<Target>,
    path: Option<PathBuf>,
    failed: Option<io::Error>,
}

#[derive(Debug)]
enum Target {
    File(Writer<BufWriter<File>>),
    Stdout(Writer<BufWriter<io::Stdout>>),
}

impl Output {
    /// Writes nowhere: the run exists in memory only.
    #[must_use]
    pub fn none() -> Self {
        Self { to: None, path: None, failed: None }
    }

    /// Opens `path` (`-`: standard output) and reserves room for what `plan` will write.
    ///
    /// # Errors
    /// The file exists and `force` is not given; it cannot be created; the disk is too full.
    pub fn open(path: &Path, plan: &Plan, force: bool) -> Result<Self, RunError> {
        if path == Path::new("-") {
            let to = Writer::new(BufWriter::new(io::stdout()));
            return Ok(Self { to: Some(Target::Stdout(to)), path: None, failed: None });
        }
        let shown = path.display();
        let opened =
            File::options().write(true).create(true).truncate(force).create_new(!force).open(path);
        let file = opened.map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => RunError::Usage(format!(
                "{shown} exists already: choose another --out, or give --force to overwrite it"
            )),
            _ => RunError::Cannot(format!("{shown} cannot be written: {e}; choose another --out")),
        })?;
        if let Err(e) = reserve(&file, estimate_bytes(plan)) {
            drop(std::fs::remove_file(path));
            return Err(RunError::Cannot(format!(
                "{shown}: no room for the run file (about {} MiB for this plan): {e}; choose another --out or a shorter run",
                estimate_bytes(plan).div_ceil(1 << 20)
            )));
        }
        let to = Writer::new(BufWriter::new(file));
        Ok(Self { to: Some(Target::File(to)), path: Some(path.to_owned()), failed: None })
    }

    /// The file's path, if it is a file.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Is there a file that holds every record written so far?
    #[must_use]
    pub fn holds(&self) -> bool {
        self.path.is_some() && self.failed.is_none()
    }

    /// Writes one record; the first failure is kept and later records are held in memory only.
    pub fn line(&mut self, line: &Line) {
        self.attempt(|to| match to {
            Target::File(w) => w.line(line),
            Target::Stdout(w) => w.line(line),
        });
    }

    /// Writes the digest of everything so far.
    pub fn checkpoint(&mut self) {
        self.attempt(|to| match to {
            Target::File(w) => w.checkpoint(),
            Target::Stdout(w) => w.checkpoint(),
        });
    }

    /// Could something not be written?
    #[must_use]
    pub fn failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Hands what was written to the kernel, so that a kill leaves a valid shorter run.
    pub fn flush(&mut self) {
        self.attempt(|to| match to {
            Target::File(w) => w.flush(),
            Target::Stdout(w) => w.flush(),
        });
    }

    /// Takes the file away again: there was no run.
    pub fn discard(self) {
        drop(self.to);
        if let Some(path) = &self.path {
            drop(std::fs::remove_file(path));
        }
    }

    fn attempt(&mut self, write: impl FnOnce(&mut Target) -> io::Result<()>) {
        if let (Some(to), None) = (&mut self.to, &self.failed) {
            self.failed = write(to).err();
        }
    }

    /// Writes the last line. Where the file failed, saves `run` elsewhere.
    ///
    /// # Errors
    /// Where the run is now, or that it could not be saved anywhere.
    pub fn end(mut self, run: &Run) -> Result<Option<PathBuf>, RunError> {
        let reason = run.end_reason();
        let measured_ns = run.end.as_ref().map_or(0, |e| e.measured_ns);
        let ended = match (self.to.take(), self.failed.take()) {
            (None, None) => return Ok(None),
            (_, Some(e)) => Err(e),
            (Some(Target::Stdout(w)), None) => w.end(reason, measured_ns).map(drop),
            (Some(Target::File(w)), None) => w
                .end(reason, measured_ns)
                .and_then(|b| b.into_inner().map_err(io::IntoInnerError::into_error))
                // Gives back the room that was reserved and not used.
                .and_then(|f| {
                    f.metadata().and_then(|m| f.set_len(m.len())).and_then(|()| f.sync_all())
                }),
        };
        match ended {
            Ok(()) => Ok(self.path),
            Err(e) => Err(self.save_elsewhere(run, &e)),
        }
    }

    fn save_elsewhere(&self, run: &Run, why: &io::Error) -> RunError {
        let shown =
            self.path.as_ref().map_or("standard output".to_owned(), |p| p.display().to_string());
        let name = format!("{}.tailbound.jsonl", run.header.id);
        for folder in [Path::new("/dev/shm"), &std::env::temp_dir(), Path::new(".")] {
            let path = folder.join(&name);
            let saved = File::create_new(&path)
                .and_then(|f| runfile::write_run(run, BufWriter::new(f)))
                .and_then(|mut b| b.flush());
            match saved {
                Ok(()) => {
                    return RunError::Cannot(format!(
                        "{shown} could not be written ({why}) and holds what came before; the result was saved as {}",
                        path.display()
                    ));
                }
                Err(_) => drop(std::fs::remove_file(&path)),
            }
        }
        RunError::Cannot(format!(
            "{shown} could not be written ({why}), and neither could /dev/shm, the temporary folder or this one"
        ))
    }
}

/// About what a plan's run file will hold: header and ends, a line a second and thread, raw samples.
fn estimate_bytes(plan: &Plan) -> u64 {
    let threads = plan.tasks.map_or(plan.cpus.len().max(1) as u64, u64::from);
    let seconds = u64::try_from(plan.duration_ns() / 1_000_000_000).unwrap_or(0);
    let raw = if plan.raw { plan.activations.saturating_mul(4) } else { 0 };
    let lines = seconds.saturating_mul(400).saturating_add(512 << 10);
    (128u64 << 10).saturating_add(threads.saturating_mul(lines.saturating_add(raw)))
}
