// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the pages of a trace instance's ring buffers, of every CPU, without ever waiting: a
//! reader that waits would have each measured CPU interrupted to wake it.
//!
//! Context: SETUP (`open`), COLD (`read`). Not here: what a page holds (`tailbound_trace::page`).
//! Source: Documentation/trace/ftrace.rst, "trace_pipe_raw".

use std::fs::File;
use std::io::{ErrorKind, Read};

use tailbound_host::{Instance, TracefsError};
use tailbound_trace::PageError;

/// Most pages taken of one CPU in one look, so that a look ends even if the trace outruns it.
const PAGES_A_LOOK: usize = 8192;

/// Open ring buffers. They have to be closed before the instance is removed.
#[derive(Debug, Default)]
pub(crate) struct RingReaders {
    files: Vec<(u32, File)>,
    page: Vec<u8>,
    unreadable: Option<String>,
}

impl RingReaders {
    /// None yet; pages have `size` bytes.
    pub(crate) fn new(size: usize) -> Self {
        Self { files: Vec::new(), page: vec![0; size], unreadable: None }
    }

    /// Opens that of one CPU.
    ///
    /// # Errors
    /// [`TracefsError`].
    pub(crate) fn open(&mut self, instance: &Instance, cpu: u32) -> Result<(), TracefsError> {
        self.files.push((cpu, instance.open_raw(cpu)?));
        Ok(())
    }

    pub(crate) fn close(&mut self) {
        self.files.clear();
    }

    /// Hands over every page that is there. What `each` cannot read is noted.
    pub(crate) fn read(&mut self, mut each: impl FnMut(u32, &[u8]) -> Result<(), PageError>) {
        for (cpu, file) in &mut self.files {
            for _ in 0..PAGES_A_LOOK {
                let got = match file.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(got) => got,
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                    Err(e) => {
                        self.unreadable.get_or_insert_with(|| format!("CPU {cpu}: {e}"));
                        break;
                    }
                };
                if let Err(why) = each(*cpu, self.page.get(..got).unwrap_or(&self.page)) {
                    self.unreadable.get_or_insert_with(|| format!("CPU {cpu}: {why}"));
                }
            }
        }
    }

    /// Why a part could not be read, if so.
    pub(crate) fn unreadable(&self) -> Option<&str> {
        self.unreadable.as_deref()
    }
}
