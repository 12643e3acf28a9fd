// SPDX-License-Identifier: MIT OR Apache-2.0
//! gzip, xz and zstd, told by their first bytes, not by a name.
//!
//! Units: bytes. All three are unpacked by code in Rust: an archive of a stranger meets no C.
//! Memory: a window of 128 MiB at most.
//! Source: RFC 1952; the xz file format 1.2; RFC 8878.

use std::io::{self, BufRead, BufReader, Read};

use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use tailbound_sys::signal;

use crate::error::ArchiveError;

/// The largest dictionary of xz and window of zstd, as zstd(1) has it without `--long`; `xz -9` needs half.
const WINDOW_BYTES_MAX: u64 = 128 << 20;
/// What tells a packer, and the dictionary of the first block of xz.
const START_BYTES: u64 = 64;
/// Read at once.
const BUFFER_BYTES: usize = 256 << 10;

/// Endings that name files of one run or text which are packed.
const ENDINGS: [&str; 3] = [".gz", ".zst", ".xz"];

/// The name of a file without an ending that says how it was packed.
#[must_use]
pub fn plain_name(name: &str) -> &str {
    ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

/// Is a zip archive a session of sigrok, by its first member? It is a document of its own, which its reader takes apart.
fn is_session(start: &[u8]) -> bool {
    let name = start.get(30..).unwrap_or_default();
    [&b"version"[..], b"metadata"].iter().any(|first| name.starts_with(first))
}

/// How bytes are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Not at all, as far as can be told.
    Plain,
    /// RFC 1952.
    Gzip,
    /// .xz.
    Xz,
    /// RFC 8878.
    Zstd,
}

impl Packing {
    /// By the first bytes of a file.
    ///
    /// # Errors
    /// It is a packer that is not read here.
    pub fn of(start: &[u8]) -> Result<Self, ArchiveError> {
        Ok(match start {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            [b'B', b'Z', b'h', ..] => return Err(ArchiveError::Packer("bzip2")),
            [b'L', b'Z', b'I', b'P', ..] => return Err(ArchiveError::Packer("lzip")),
            [b'P', b'K', 3, 4, ..] if is_session(start) => Self::Plain,
            [b'P', b'K', 3, 4, ..] => return Err(ArchiveError::Packer("zip")),
            [b'7', b'z', 0xbc, 0xaf, ..] => return Err(ArchiveError::Packer("7z")),
            _ => Self::Plain,
        })
    }

    /// `from` as what is in it, unpacked while it is read; and how it was packed. What comes out has no limit here.
    ///
    /// # Errors
    /// The first bytes cannot be read, are damaged, or are another packer's.
    pub fn open<'a>(
        mut from: impl Read + Send + 'a,
    ) -> Result<(Self, Box<dyn Read + Send + 'a>), ArchiveError> {
        let damaged = |e: io::Error| ArchiveError::damaged(&e);
        let mut start = Vec::new();
        from.by_ref().take(START_BYTES).read_to_end(&mut start).map_err(damaged)?;
        let packing = Self::of(&start)?;
        let source = io::Cursor::new(start.clone()).chain(from);
        let source = BufReader::with_capacity(BUFFER_BYTES, source);
        Ok((
            packing,
            match packing {
                Self::Plain => Box::new(source),
                Self::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(source)),
                Self::Xz => {
                    if dictionary_bytes(&start).is_some_and(|n| n > WINDOW_BYTES_MAX) {
                        let text = "its xz dictionary is larger than 128 MiB";
                        return Err(ArchiveError::Damaged(text.to_owned()));
                    }
                    Box::new(lzma_rust2::XzReader::new(source, true))
                }
                Self::Zstd => Box::new(Frames::Open(frame(source).map_err(damaged)?)),
            },
        ))
    }

    /// All of `from`, unpacked, where that is at most `most` bytes.
    ///
    /// # Errors
    /// [`ArchiveError::Bytes`] beyond that; it is damaged; a signal.
    pub fn whole(from: impl Read + Send, most: u64) -> Result<Vec<u8>, ArchiveError> {
        let (_, mut reader) = Self::open(from)?;
        let (mut all, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
        loop {
            if signal::pending().is_some() {
                return Err(ArchiveError::Interrupted);
            }
            match reader.read(&mut buffer) {
                Ok(0) => return Ok(all),
                Ok(n) if (all.len() as u64).saturating_add(n as u64) > most => {
                    return Err(ArchiveError::Bytes { most });
                }
                Ok(n) => all.extend_from_slice(buffer.get(..n).unwrap_or_default()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(ArchiveError::damaged(&e)),
            }
        }
    }
}

type Frame<R> = Box<StreamingDecoder<R, FrameDecoder>>;

fn frame<R: Read>(source: R) -> io::Result<Frame<R>> {
    let decoder = StreamingDecoder::new_with_max_window_size(source, WINDOW_BYTES_MAX);
    decoder.map(Box::new).map_err(io::Error::other)
}

/// Frames of zstd, one behind the other.
enum Frames<R: BufRead> {
    Open(Frame<R>),
    Ended,
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let Self::Open(open) = self else { return Ok(0) };
            let n = open.read(out)?;
            if n > 0 || out.is_empty() {
                return Ok(n);
            }
            let Self::Open(ended) = std::mem::replace(self, Self::Ended) else { return Ok(0) };
            let mut rest = ended.into_inner();
            if rest.fill_buf()?.is_empty() {
                return Ok(0);
            }
            // What follows is another frame, or an error that says so.
            *self = Self::Open(frame(rest)?);
        }
    }
}

/// The dictionary that the first block of an .xz file asks for; `None` where its header has another form.
/// Source: the xz file format 1.2, sections 2.1.1, 3.1 and 5.3.1.
fn dictionary_bytes(start: &[u8]) -> Option<u64> {
    const LZMA2: u8 = 0x21;
    const SIZES_GIVEN: u8 = 0xc0;
    let block = start.get(12..)?;
    let flags = *block.get(1)?;
    let mut at = 2usize;
    // A size is seven bits a byte, the last of them below 128.
    for _ in 0..(flags & SIZES_GIVEN).count_ones() {
        at = at.checked_add(block.get(at..)?.iter().position(|b| *b < 128)?.checked_add(1)?)?;
    }
    // A filter before it (the kernel's own for machine code) has one more byte or none.
    let at = at.checked_add(block.get(at..)?.iter().take(8).position(|b| *b == LZMA2)?)?;
    let bits = u32::from(*block.get(at.checked_add(2)?)?);
    let (mantissa, exponent) = (2u64 | u64::from(bits & 1), (bits & 0x3f) / 2 + 11);
    mantissa.checked_shl(exponent)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    // `printf 'a module'` through `gzip -n`, `xz --check=crc32 --lzma2=dict=1MiB` and `zstd`.
    const GZIP: &[u8] = &[
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b, 0x54, 0xc8, 0xcd, 0x4f, 0x29, 0xcd, 0x49, 5, 0,
        0x5b, 0xc1, 0x38, 0xb, 8, 0, 0, 0,
    ];
    const XZ: &[u8] = &[
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0, 0, 1, 0x69, 0x22, 0xde, 0x36, 2, 0, 0x21, 1, 0x10, 0, 0,
        0, 0xa8, 0x70, 0x8e, 0x86, 1, 0, 7, 0x61, 0x20, 0x6d, 0x6f, 0x64, 0x75, 0x6c, 0x65, 0,
        0x5b, 0xc1, 0x38, 0xb, 0, 1, 0x1c, 8, 0x44, 0x60, 0x2a, 0xc8, 0x90, 0x42, 0x99, 0xd, 1, 0,
        0, 0, 0, 1, 0x59, 0x5a,
    ];
    const ZSTD: &[u8] = &[
        0x28, 0xb5, 0x2f, 0xfd, 4, 0x58, 0x41, 0, 0, 0x61, 0x20, 0x6d, 0x6f, 0x64, 0x75, 0x6c,
        0x65, 0xaf, 0xab, 0xf2, 0x6b,
    ];

    #[test]
    fn three_packers_are_told_by_their_bytes_and_damage_is_an_error() {
        for bytes in [GZIP, XZ, ZSTD] {
            assert_eq!(Packing::whole(bytes, 8).ok().as_deref(), Some(&b"a module"[..]));
            assert!(matches!(Packing::whole(bytes, 7), Err(ArchiveError::Bytes { most: 7 })));
            for length in 6..bytes.len() {
                let part = bytes.get(..length).unwrap_or_default();
                assert!(Packing::whole(part, 8).is_err(), "{length}");
            }
        }
        assert_eq!(Packing::whole(&b"plain"[..], 8).ok().as_deref(), Some(&b"plain"[..]));
    }

    fn read(bytes: Vec<u8>) -> io::Result<(String, bool)> {
        let mut text = String::new();
        let (packing, mut source) =
            Packing::open(io::Cursor::new(bytes)).map_err(io::Error::other)?;
        source.read_to_string(&mut text)?;
        Ok((text, packing != Packing::Plain))
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(text.as_bytes()).unwrap();
        packer.finish().unwrap()
    }

    fn zstd(text: &str) -> Vec<u8> {
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        ruzstd::encoding::compress_to_vec(text.as_bytes(), level)
    }

    #[test]
    fn packed_files_are_read_to_their_end_and_plain_ones_as_they_are() {
        let long = "x".repeat(300_000);
        for pack in [gzip, zstd] {
            assert_eq!(read(pack("a line\n")).unwrap(), ("a line\n".to_owned(), true));
            assert_eq!(read(pack(&long)).unwrap().0, long);
            let two = [pack("one\n"), pack("two\n")].concat();
            assert_eq!(read(two).unwrap().0, "one\ntwo\n", "appended to");
            let mut cut = pack(&long);
            cut.truncate(cut.len() / 2);
            assert!(read(cut).is_err(), "an end that is missing is an error");
        }
        for plain in ["", "{", "{\"type\":\"header\"}\n"] {
            assert_eq!(read(plain.into()).unwrap(), (plain.to_owned(), false));
        }
        assert_eq!(plain_name("r.tailbound.jsonl.zst"), "r.tailbound.jsonl");
    }
}
