// SPDX-License-Identifier: MIT OR Apache-2.0
//! SHA-256 of bytes and files, as text.
//!
//! Source: FIPS 180-4, through the `sha2` crate.

use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest as _, Sha256};
use tailbound_sys::{given, signal};

use crate::error::{FileError, LabError};

/// Of bytes.
#[must_use]
pub fn of_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Of a file.
///
/// # Errors
/// It cannot be read; interrupted.
pub fn of_file(path: &Path) -> Result<String, LabError> {
    let mut file = given::file(path).map_err(|e| LabError::file(path, e))?;
    if file.metadata().is_ok_and(|m| m.len() > BYTES_MAX) {
        return Err(FileError::TooLarge { path: path.to_owned() }.into());
    }
    of_reader(&mut file, path)
}

/// Of what is left of an open file; `path` is its name for people.
///
/// # Errors
/// It cannot be read; interrupted.
pub(crate) fn of_reader(from: &mut dyn Read, path: &Path) -> Result<String, LabError> {
    let mut hashing = Hashing::new(from);
    hashing.read_rest().map_err(|e| LabError::file(path, e))?.finish()
}

/// Hashes what others read through it.
pub(crate) struct Hashing<R> {
    from: R,
    sum: Sha256,
    interrupted: bool,
}

impl<R: Read> Hashing<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, sum: Sha256::new(), interrupted: false }
    }

    /// Reads to the end, or until a signal is pending.
    ///
    /// # Errors
    /// Those of read(2).
    pub(crate) fn read_rest(&mut self) -> io::Result<&mut Self> {
        let mut buffer = vec![0; 256 << 10];
        loop {
            if signal::pending().is_some() {
                self.interrupted = true;
                return Ok(self);
            }
            match self.read(&mut buffer) {
                Ok(0) => return Ok(self),
                Err(e) if e.kind() != io::ErrorKind::Interrupted => return Err(e),
                _ => {}
            }
        }
    }

    /// The sum of what was read.
    ///
    /// # Errors
    /// Interrupted before the end.
    pub(crate) fn finish(&mut self) -> Result<String, LabError> {
        if self.interrupted {
            return Err(LabError::Interrupted);
        }
        Ok(hex(&std::mem::take(&mut self.sum).finalize()))
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(buffer)?;
        self.sum.update(buffer.get(..n).unwrap_or_default());
        Ok(n)
    }
}

/// The largest file that is hashed: larger ones are none of the lab's (/proc/kcore is one).
const BYTES_MAX: u64 = 16 << 30;

/// Bytes as hexadecimal text.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
