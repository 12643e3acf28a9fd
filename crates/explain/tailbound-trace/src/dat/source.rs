// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file: any stretch of it, as far as it goes.
//!
//! Units: bytes. What is asked for beyond the end is not there, and nothing is
//! allocated for it.

use std::io::{self, Read, Seek, SeekFrom};

use super::DatError;

/// See the module.
#[derive(Debug)]
pub(crate) struct Source<R> {
    inner: R,
    length: u64,
}

impl<R: Read + Seek> Source<R> {
    pub(crate) fn new(mut inner: R) -> Result<Self, DatError> {
        let length = inner.seek(SeekFrom::End(0)).map_err(|e| failed(0, &e))?;
        Ok(Self { inner, length })
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// At most `n` bytes from `at` on: fewer where the file ends before.
    pub(crate) fn read(&mut self, at: u64, n: u64) -> Result<Vec<u8>, DatError> {
        let mut out = Vec::new();
        self.read_into(at, n, &mut out)?;
        Ok(out)
    }

    /// The same, behind what `out` holds.
    pub(crate) fn read_into(&mut self, at: u64, n: u64, out: &mut Vec<u8>) -> Result<(), DatError> {
        let n = n.min(self.length.saturating_sub(at));
        if n == 0 {
            return Ok(());
        }
        let room = usize::try_from(n).map_err(|e| failed(at, &io::Error::other(e)))?;
        self.inner.seek(SeekFrom::Start(at)).map_err(|e| failed(at, &e))?;
        out.reserve(room);
        self.inner.by_ref().take(n).read_to_end(out).map_err(|e| failed(at, &e))?;
        Ok(())
    }
}

fn failed(at: u64, e: &io::Error) -> DatError {
    DatError::Read { at, reason: e.to_string() }
}
