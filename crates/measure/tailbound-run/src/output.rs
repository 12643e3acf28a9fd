// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the run file goes: opened, and room looked for, before anything is started; under its
//! name from the moment the measurement begins.
//!
//! Context: SETUP and COLD. Units: bytes.
//! The file stays unnamed (O_TMPFILE) until then, so that a failed start leaves an older file as it was; from then
//! on a kill leaves a valid shorter run under the name that was asked for.
//! If the file cannot be written in the middle of a run, the measurement goes on and the
//! run is saved elsewhere at the end: nothing is lost, and it is said aloud.
//! Not here: how names are given (`tailbound_sys::new_file`), how much room (`room`).

use std::fmt;
use std::io::{self, BufRead, BufWriter, Write};
use std::path::{Path, PathBuf};

use tailbound_core::Run;
use tailbound_core::plan::Plan;
use tailbound_core::record::Line;
use tailbound_core::runfile::Writer;
use tailbound_core::unwritten::{Alternative, UnwrittenFile};
use tailbound_sys::new_file::{Existing, NewFile};

use crate::disk::{self, Disk, OnDisk};
use crate::error::RunError;
use crate::room::{Estimate, Room};

/// Where a run file is written.
pub struct Output {
    to: Option<Writer<BufWriter<Box<dyn Write>>>>,
    path: Option<PathBuf>,
    failed: Option<io::Error>,
    disk: Option<Box<dyn Disk>>,
    /// An older file has the name until ours gets it.
    replaces: bool,
    placed: bool,
}

/// A run file that is whole.
pub(crate) struct Closed {
    pub(crate) path: PathBuf,
    disk: Box<dyn Disk>,
}

impl Closed {
    /// Its text, from its beginning.
    pub(crate) fn reader(&self) -> io::Result<Box<dyn BufRead>> {
        self.disk.reader()
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Output");
        shown.field("path", &self.path).field("disk", &self.disk).field("failed", &self.failed);
        shown.finish_non_exhaustive()
    }
}

impl Output {
    /// Writes nowhere: the run exists in memory only.
    #[must_use]
    pub fn none() -> Self {
        Self::to(None)
    }

    fn to(to: Option<Box<dyn Write>>) -> Self {
        let to = to.map(|to| Writer::new(BufWriter::new(to)));
        Self { to, path: None, failed: None, disk: None, replaces: false, placed: false }
    }

    /// Writes to `disk`, where the file will be `path`.
    ///
    /// # Errors
    /// It cannot be written to.
    pub(crate) fn on(path: &Path, disk: Box<dyn Disk>) -> io::Result<Self> {
        let to = disk.writer()?;
        Ok(Self { path: Some(path.to_owned()), disk: Some(disk), ..Self::to(Some(to)) })
    }

    /// Opens `path` (`-`: standard output) and looks for room for what `plan` will write.
    ///
    /// # Errors
    /// The file exists and is to stay; it cannot be created; the disk is too full.
    pub fn open(path: &Path, plan: &Plan, existing: Existing) -> Result<Self, RunError> {
        if path == Path::new("-") {
            return Ok(Self::to(Some(Box::new(io::stdout()))));
        }
        let unwritten = |e| UnwrittenFile::of(path, e, Alternative::Out);
        let new = NewFile::open(path, existing).map_err(unwritten)?;
        let room = new.is_file().then(|| Room::take(new.file(), path, plan)).transpose();
        let room = room.map_err(|why| {
            let mib = Estimate::of(plan).total().div_ceil(1 << 20);
            RunError::NoRoom { path: path.to_owned(), mib, why }
        })?;
        let (is_file, replaces) = (new.is_file(), path.symlink_metadata().is_ok());
        let disk = OnDisk { path: path.to_owned(), new: Some(new), room };
        let output = Self::on(path, Box::new(disk)).map_err(unwritten)?;
        Ok(Self { replaces: is_file && replaces, placed: !is_file, ..output })
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
        self.attempt(|to| to.line(line));
    }

    /// Writes the digest of everything so far.
    pub fn checkpoint(&mut self) {
        self.attempt(Writer::checkpoint);
    }

    /// Could something not be written?
    #[must_use]
    pub fn failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Hands what was written to the kernel, so that a kill leaves a valid shorter run. Says, once,
    /// that there is no more room to reserve.
    pub fn flush(&mut self) -> Option<String> {
        self.attempt(Writer::flush);
        self.disk.as_mut().filter(|_| self.failed.is_none())?.top_up()
    }

    /// Brings the beginning to the disk where an older file will be replaced by it: a power failure
    /// must not cost both. Called before the measurement, which it would disturb.
    pub fn settle(&mut self) {
        drop(self.flush());
        if let (Some(disk), true, None) = (&self.disk, self.replaces, &self.failed) {
            self.failed = disk.sync().err();
        }
    }

    /// The measurement has begun: the file gets its name.
    pub fn place(&mut self) {
        if let (Some(disk), false, None) = (&mut self.disk, self.placed, &self.failed) {
            self.failed = disk.place().err();
            self.placed = self.failed.is_none();
        }
    }

    /// Takes the file away again: there was no run.
    pub fn discard(self) {
        drop(self.to);
        if let Some(mut disk) = self.disk {
            disk.discard();
        }
    }

    fn attempt(
        &mut self,
        write: impl FnOnce(&mut Writer<BufWriter<Box<dyn Write>>>) -> io::Result<()>,
    ) {
        if let (Some(to), None) = (&mut self.to, &self.failed) {
            self.failed = write(to).err();
        }
    }

    /// Writes the last line. Where the file failed, saves `run` elsewhere.
    ///
    /// # Errors
    /// Where the run is now, or that it could not be saved anywhere.
    pub(crate) fn end(mut self, run: &Run) -> Result<Option<Closed>, RunError> {
        let reason = run.end_reason();
        let measured_ns = run.end.as_ref().map_or(0, |e| e.measured_ns);
        if self.replaces && !self.placed && measured_ns == 0 && !reason.is_as_planned() {
            return Err(RunError::Unchanged { path: self.path.unwrap_or_default() });
        }
        let ended = match (self.to.take(), self.failed.take()) {
            (None, None) => return Ok(None),
            (_, Some(e)) => Err(e),
            (Some(to), None) => to
                .end(reason, measured_ns)
                .and_then(|b| b.into_inner().map(drop).map_err(io::IntoInnerError::into_error))
                .and_then(|()| self.disk.as_mut().map_or(Ok(()), |disk| disk.finish())),
        };
        if let Err(e) = ended {
            return Err(self.save_elsewhere(run, &e));
        }
        Ok(self.path.zip(self.disk).map(|(path, disk)| Closed { path, disk }))
    }

    fn save_elsewhere(&self, run: &Run, why: &io::Error) -> RunError {
        let shown =
            self.path.as_ref().map_or("standard output".to_owned(), |p| p.display().to_string());
        let name = format!("{}.tailbound.jsonl", run.header.id);
        for folder in [Path::new("/dev/shm"), &std::env::temp_dir(), Path::new(".")] {
            let path = folder.join(&name);
            let saved = match &self.disk {
                Some(disk) => disk.save(&path, run),
                None => disk::save(&path, run),
            };
            if saved.is_ok() {
                let why = why.to_string();
                return RunError::SavedElsewhere { shown, why, placed: self.placed, saved: path };
            }
        }
        RunError::Lost { shown, why: why.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use tailbound_core::EndReason;
    use tailbound_core::plan::RunConfig;
    use tailbound_core::record::{End, Event, Facts, Header, SCHEMA};
    use tailbound_core::runfile;
    use tailbound_host::Root;

    use crate::resolve::{Request, resolve};

    fn a_run(reason: EndReason, measured_ns: i64) -> Run {
        let words = RunConfig {
            loops: Some(10),
            policy: Some("other".into()),
            load: Some(vec!["none".into()]),
            ..RunConfig::default()
        };
        let plan = resolve(&Request { config: words, ..Request::default() }, &Root::real())
            .expect("a plan")
            .plan;
        let mut run = Run::new(Header {
            schema: SCHEMA.to_owned(),
            tool: "t".to_owned(),
            id: format!("test-{}", std::process::id()),
            started: "2026-11-22T12:00:00Z".to_owned(),
            command: Vec::new(),
            plan,
            machine: Facts::new(),
            source: None,
            lab: None,
            round: None,
            purpose: None,
        });
        run.end = Some(End { reason, measured_ns, lines: 0 });
        run
    }

    fn begin(path: &Path, run: &Run, existing: Existing) -> Output {
        let mut output = Output::open(path, &run.header.plan, existing).expect("opened");
        output.line(&Line::Header(Box::new(run.header.clone())));
        output.settle();
        output
    }

    #[test]
    fn an_older_file_stays_until_the_measurement_begins() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("r.tailbound.jsonl");
        let text = || std::fs::read_to_string(&path).expect("a file");
        let names = || std::fs::read_dir(folder.path()).expect("a folder").count();
        std::fs::write(&path, "older").expect("written");
        let run = a_run(EndReason::Complete, 10_000_000);
        assert!(Output::open(&path, &run.header.plan, Existing::Keep).is_err(), "it is there");
        begin(&path, &run, Existing::Replace).discard();
        assert_eq!((text().as_str(), names()), ("older", 1), "a start that is refused");
        drop(begin(&path, &run, Existing::Replace));
        assert_eq!((text().as_str(), names()), ("older", 1), "a start that fails");
        let ended = begin(&path, &run, Existing::Replace).end(&a_run(EndReason::Interrupted, 0));
        assert!(ended.is_err_and(|e| e.to_string().contains("is unchanged")));
        assert_eq!((text().as_str(), names()), ("older", 1), "ended in the warm-up");

        let mut output = begin(&path, &run, Existing::Replace);
        output.place();
        assert!(text().starts_with("{\"type\":\"header\""), "{}", text());
        output.line(&Line::Event(Event::new(1, "x", "later")));
        assert_eq!(output.flush(), None);
        assert!(text().contains("later"), "written on under its name");
        let at = output.end(&run).expect("ended");
        assert_eq!((at.map(|c| c.path), names()), (Some(path.clone()), 1));
        let whole =
            runfile::read_run(io::BufReader::new(std::fs::File::open(&path).expect("there")));
        assert_eq!(whole.expect("a run").end.map(|e| e.reason), Some(EndReason::Complete));
        // One that was never placed, such as one that was over at the first look.
        let path = folder.path().join("s.tailbound.jsonl");
        begin(&path, &run, Existing::Keep).end(&run).expect("ended");
        assert!(path.exists());
    }

    #[test]
    fn links_are_refused_and_devices_written_as_they_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("r");
        std::os::unix::fs::symlink(folder.path().join("precious"), &path).expect("linked");
        let run = a_run(EndReason::Complete, 10_000_000);
        let e = Output::open(&path, &run.header.plan, Existing::Replace).expect_err("a link");
        assert!(
            e.kind() == tailbound_core::FailureKind::Usage
                && e.to_string().contains("symbolic link"),
            "{e}"
        );
        let mut output = begin(Path::new("/dev/null"), &run, Existing::Replace);
        output.place();
        output.end(&run).expect("a device takes it");
    }
}
