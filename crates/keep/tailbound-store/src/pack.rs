// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run file as it is read: its identity, and its bytes packed.
//!
//! One pass, so that neither a pipe nor a long file is read twice: memory is that of the packed bytes.
//! The identity is the SHA-256 of the plain bytes; what is added twice has the same.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Take, Write};

use sha2::{Digest as _, Sha256};
use zstd::stream::read::Decoder;
use zstd::stream::write::Encoder;

use crate::error::StoreError;

/// Most bytes of a packed run file: SQLite and PostgreSQL end at 1 GB a value, and both copy it several times.
pub const PACKED_BYTES_MAX: usize = 256 << 20;
/// Most bytes of a plain one: what packs this well is no run file.
pub(crate) const PLAIN_BYTES_MAX: u64 = 32 << 30;
/// Run files are read seldom and kept for years. Level 9 saves a fiftieth more and takes twice as long, which was most of the
/// time of an upload.
const LEVEL: i32 = 6;

/// A run file, packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// SHA-256 of the plain bytes, in hexadecimal.
    pub id: String,
    /// How many plain bytes there are.
    pub bytes: u64,
    /// A frame of Zstandard.
    pub zstd: Vec<u8>,
}

impl Packed {
    /// Are its bytes those of the run?
    ///
    /// # Errors
    /// It is damaged.
    pub fn check(&self) -> Result<(), StoreError> {
        plain_of(self)?.checked(self)
    }

    /// Unpacks it in pieces of at most `bytes`, until `each` says that it is enough.
    ///
    /// # Errors
    /// It is damaged.
    pub fn pieces(
        &self,
        bytes: usize,
        mut each: impl FnMut(Vec<u8>) -> bool,
    ) -> Result<(), StoreError> {
        let mut plain = plain_of(self)?;
        loop {
            let mut piece = Vec::with_capacity(bytes);
            (&mut plain).take(bytes as u64).read_to_end(&mut piece)?;
            if piece.is_empty() || !each(piece) {
                return Ok(());
            }
        }
    }
}

/// A source whose bytes are hashed and packed as they are consumed.
pub(crate) struct Packing<R> {
    source: R,
    hash: Sha256,
    packer: Encoder<'static, Vec<u8>>,
    bytes: u64,
    failed: Option<io::Error>,
}

impl<R: BufRead> Packing<R> {
    pub(crate) fn new(source: R) -> io::Result<Self> {
        let mut packer = Encoder::new(Vec::new(), LEVEL)?;
        packer.include_checksum(true)?;
        Ok(Self { source, hash: Sha256::new(), packer, bytes: 0, failed: None })
    }

    /// What is left is read, and the whole is packed.
    pub(crate) fn packed(mut self) -> Result<Packed, StoreError> {
        loop {
            let n = self.fill_buf()?.len();
            if n == 0 {
                break;
            }
            self.consume(n);
        }
        if let Some(e) = self.failed {
            return Err(e.into());
        }
        let zstd = self.packer.finish()?;
        if zstd.len() > PACKED_BYTES_MAX {
            return Err(StoreError::TooLarge { bytes: zstd.len(), most: PACKED_BYTES_MAX });
        }
        Ok(Packed { id: hexadecimal(&self.hash.finalize()), bytes: self.bytes, zstd })
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing into a String never fails.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

impl<R: BufRead> Read for Packing<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = self.fill_buf()?.read(to)?;
        self.consume(n);
        Ok(n)
    }
}

impl<R: BufRead> BufRead for Packing<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if let Some(e) = self.failed.take() {
            return Err(e);
        }
        self.source.fill_buf()
    }

    fn consume(&mut self, n: usize) {
        // They are in the buffer already: this reads nothing.
        let now = self.source.fill_buf().ok().and_then(|all| all.get(..n));
        if let Some(now) = now {
            self.hash.update(now);
            self.bytes += now.len() as u64;
            self.failed = self.packer.write_all(now).err();
        }
        if self.packer.get_ref().len() > PACKED_BYTES_MAX || self.bytes > PLAIN_BYTES_MAX {
            self.failed = Some(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!(
                    "a store takes run files of at most {} MiB when packed",
                    PACKED_BYTES_MAX >> 20
                ),
            ));
        }
        self.source.consume(n);
    }
}

/// The plain bytes again.
///
/// # Errors
/// It is damaged, or has more bytes than it says.
pub(crate) fn unpacked(packed: &Packed) -> Result<Vec<u8>, StoreError> {
    let mut plain = Vec::new();
    let mut source = plain_of(packed)?;
    source.read_to_end(&mut plain).map_err(|e| damaged(packed, &e.to_string()))?;
    source.checked(packed)?;
    Ok(plain)
}

fn damaged(packed: &Packed, reason: &str) -> StoreError {
    StoreError::Damaged { id: packed.id.clone(), reason: reason.to_owned() }
}

/// The plain bytes, unpacked as they are read.
pub(crate) type Plain<'a> = Hashed<BufReader<Take<Decoder<'a, &'a [u8]>>>>;

/// Reads the plain bytes without holding them. Whether they are those of the run [`Hashed::checked`] says at the end.
pub(crate) fn plain_of(packed: &Packed) -> Result<Plain<'_>, StoreError> {
    let decoder = Decoder::with_buffer(packed.zstd.as_slice())?.take(packed.bytes + 1);
    Ok(Hashed { source: BufReader::new(decoder), hash: Sha256::new() })
}

/// A source whose bytes are hashed as they are consumed.
pub(crate) struct Hashed<R> {
    source: R,
    hash: Sha256,
}

impl<R: BufRead> Hashed<R> {
    /// Reads what is left. Are they the bytes of this run?
    pub(crate) fn checked(mut self, packed: &Packed) -> Result<(), StoreError> {
        io::copy(&mut self, &mut io::sink()).map_err(|e| damaged(packed, &e.to_string()))?;
        if hexadecimal(&self.hash.finalize()) != packed.id {
            return Err(damaged(packed, "its bytes have another SHA-256"));
        }
        Ok(())
    }
}

impl<R: BufRead> BufRead for Hashed<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.source.fill_buf()
    }

    fn consume(&mut self, n: usize) {
        // They are in the buffer already: this reads nothing.
        if let Some(now) = self.source.fill_buf().ok().and_then(|all| all.get(..n)) {
            self.hash.update(now);
        }
        self.source.consume(n);
    }
}

impl<R: BufRead> Read for Hashed<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = self.fill_buf()?.read(to)?;
        self.consume(n);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(bytes: &[u8]) -> Packed {
        Packing::new(bytes)
            .and_then(|p| p.packed().map_err(io::Error::other))
            .unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn what_is_packed_is_what_was_read_however_it_was_read() {
        let plain: Vec<u8> = (0..100_000u32).flat_map(|n| (n % 251).to_le_bytes()).collect();
        let whole = packed(&plain);
        assert_eq!(whole.bytes, plain.len() as u64);
        assert!(whole.zstd.len() < plain.len() / 10);
        assert_eq!(unpacked(&whole).ok().as_deref(), Some(plain.as_slice()));
        let small = io::BufReader::with_capacity(7, plain.as_slice());
        let mut packing = Packing::new(small).unwrap_or_else(|e| panic!("{e}"));
        let mut line = Vec::new();
        assert!(packing.read_until(250, &mut line).is_ok_and(|n| n > 0));
        let mut some = [0; 1000];
        assert!(packing.read_exact(&mut some).is_ok());
        assert_eq!(packing.packed().ok(), Some(whole));
        let empty = packed(b"");
        assert_eq!(empty.id, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    #[test]
    fn damage_is_noticed() {
        let good = packed(b"a run");
        let other = Packed { id: packed(b"another").id, ..good.clone() };
        assert!(matches!(unpacked(&other), Err(StoreError::Damaged { .. })));
        let short = Packed { bytes: 2, ..good.clone() };
        assert!(unpacked(&short).is_err());
        let mut cut = good;
        cut.zstd.truncate(6);
        assert!(unpacked(&cut).is_err());
    }
}
