// SPDX-License-Identifier: MIT OR Apache-2.0
//! A disk in memory that is full at some byte, fails at one, or refuses the file its name.
//!
//! Context: COLD, tests only. Units: bytes.

use std::io::{self, BufRead, Cursor, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tailbound_core::Run;
use tailbound_core::runfile;

use super::fate::Fate;
use crate::disk::Disk;

const EIO: i32 = 5;

/// What is on it.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) bytes: Vec<u8>,
    limit: Option<usize>,
    bad_block: Option<usize>,
    pub(super) placed: bool,
    pub(super) finished: bool,
    /// The file when the power failed.
    pub(super) at_power_cut: Option<Vec<u8>>,
    /// The run that was saved elsewhere.
    pub(super) elsewhere: Option<Vec<u8>>,
}

/// Shared with the test.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory(Arc<Mutex<Content>>);

impl Memory {
    pub(super) fn with<T>(&self, look: impl FnOnce(&mut Content) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Memory {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.with(|content| {
            if content.bad_block.is_some_and(|at| at < content.bytes.len() + buf.len()) {
                content.bad_block = None;
                return Err(io::Error::from_raw_os_error(EIO));
            }
            let room = content.limit.map_or(buf.len(), |l| l.saturating_sub(content.bytes.len()));
            let taken = buf.get(..room.min(buf.len())).unwrap_or_default();
            if taken.is_empty() && !buf.is_empty() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            content.bytes.extend_from_slice(taken);
            Ok(taken.len())
        })
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The disk of one run.
#[derive(Debug)]
pub(super) struct SimulatedDisk {
    memory: Memory,
    nameless: bool,
}

impl SimulatedDisk {
    pub(super) fn new(fate: &Fate) -> Self {
        let memory = Memory::default();
        memory.with(|content| {
            content.limit = fate.disk_bytes;
            content.bad_block = fate.bad_block;
        });
        Self { memory, nameless: fate.nameless }
    }

    pub(super) fn memory(&self) -> Memory {
        self.memory.clone()
    }
}

impl Disk for SimulatedDisk {
    fn writer(&self) -> io::Result<Box<dyn Write>> {
        Ok(Box::new(self.memory.clone()))
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
    fn place(&mut self) -> io::Result<()> {
        if self.nameless {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        self.memory.with(|content| content.placed = true);
        Ok(())
    }
    fn top_up(&mut self) -> Option<String> {
        None
    }
    fn finish(&mut self) -> io::Result<()> {
        self.place()?;
        self.memory.with(|content| content.finished = true);
        Ok(())
    }
    fn discard(&mut self) {
        self.memory.with(|content| content.bytes.clear());
    }
    fn reader(&self) -> io::Result<Box<dyn BufRead>> {
        Ok(Box::new(Cursor::new(self.memory.with(|content| content.bytes.clone()))))
    }
    fn save(&self, _: &Path, run: &Run) -> io::Result<()> {
        let bytes = runfile::write_run(run, Vec::new())?;
        self.memory.with(|content| content.elsewhere = Some(bytes));
        Ok(())
    }
}
