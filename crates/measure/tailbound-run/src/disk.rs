// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file of a run on a disk: a second descriptor for the records, its name, its room.
//!
//! Context: SETUP and COLD. Units: bytes.
//! A trait, because the simulation of whole runs (`simulated`) has disks that are full or fail.
//! Not here: when each of these is done (`output`), how much room (`room`).

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use tailbound_core::Run;
use tailbound_core::runfile;
use tailbound_sys::new_file::{self, Existing, NewFile};

use crate::room::Room;

/// Where a run is written.
pub(crate) trait Disk: fmt::Debug {
    /// Takes the records.
    fn writer(&self) -> io::Result<Box<dyn Write>>;
    /// Brings what was written to the disk.
    fn sync(&self) -> io::Result<()>;
    /// Gives the file its name.
    fn place(&mut self) -> io::Result<()>;
    /// Takes more room; says once that there is none.
    fn top_up(&mut self) -> Option<String>;
    /// Gives back room that was not used, and leaves the file under its name.
    fn finish(&mut self) -> io::Result<()>;
    /// Takes the file away.
    fn discard(&mut self);
    /// Reads what was written, once it is finished.
    fn reader(&self) -> io::Result<Box<dyn BufRead>>;
    /// Writes all of `run` to another place.
    fn save(&self, path: &Path, run: &Run) -> io::Result<()> {
        save(path, run)
    }
}

/// Writes all of `run` as a new file.
pub(crate) fn save(path: &Path, run: &Run) -> io::Result<()> {
    new_file::write_with(path, Existing::Keep, |out| runfile::write_run(run, out).map(drop))
}

/// A file, device or pipe of this machine.
#[derive(Debug)]
pub(crate) struct OnDisk {
    pub(crate) path: PathBuf,
    pub(crate) new: Option<NewFile>,
    pub(crate) room: Option<Room>,
}

impl Disk for OnDisk {
    fn writer(&self) -> io::Result<Box<dyn Write>> {
        match &self.new {
            Some(new) => Ok(Box::new(new.file().try_clone()?)),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.new.as_ref().map_or(Ok(()), |new| new.file().sync_data())
    }

    fn place(&mut self) -> io::Result<()> {
        self.new.as_mut().map_or(Ok(()), NewFile::place)
    }

    fn top_up(&mut self) -> Option<String> {
        self.room.as_mut().and_then(Room::top_up)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.room.take().map_or(Ok(()), Room::give_back)?;
        self.new.take().map_or(Ok(()), NewFile::finish)
    }

    fn discard(&mut self) {
        if let Some(new) = self.new.take() {
            new.discard();
        }
    }

    fn reader(&self) -> io::Result<Box<dyn BufRead>> {
        Ok(Box::new(BufReader::new(File::open(&self.path)?)))
    }
}
