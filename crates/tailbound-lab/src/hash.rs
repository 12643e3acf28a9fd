// SPDX-License-Identifier: MIT OR Apache-2.0
//! SHA-256 of bytes and files, as text.
//!
//! Context: COLD. Source: FIPS 180-4, through the `sha2` crate.

use std::io;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use tailbound_sys::given;

use crate::error::LabError;

/// Of bytes.
#[must_use]
pub fn of_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Of a file.
///
/// # Errors
/// It cannot be read.
pub fn of_file(path: &Path) -> Result<String, LabError> {
    struct Into(Sha256);
    impl io::Write for Into {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut file = given::open(path).map_err(|e| LabError::file(path, &e))?;
    if file.metadata().is_ok_and(|m| m.len() > BYTES_MAX) {
        return Err(LabError::cannot(format!("{}: too large for the lab", path.display())));
    }
    let mut into = Into(Sha256::new());
    io::copy(&mut file, &mut into).map_err(|e| LabError::file(path, &e))?;
    Ok(hex(&into.0.finalize()))
}

/// The largest file that is hashed: larger ones are none of the lab's (/proc/kcore is one).
const BYTES_MAX: u64 = 16 << 30;

/// Bytes as hexadecimal text.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
