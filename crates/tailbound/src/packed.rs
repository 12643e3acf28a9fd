// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that gzip or zstd packed are read as what is in them.
//!
//! Context: COLD. By their first bytes, whatever their names are. What comes out is bounded by the
//! limits of its readers, as that of a plain file is: nothing is unpacked ahead of them.
//! Source: RFC 1952, RFC 8878.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The most that a frame may ask to be kept, as zstd(1) has it without `--long`.
const WINDOW_BYTES_MAX: u64 = 1 << 27;
/// Endings that name such files.
const ENDINGS: [&str; 2] = [".gz", ".zst"];

/// What is to be read.
pub(crate) struct Unpacked {
    pub(crate) source: Box<dyn Read + Send>,
    /// It was packed: its length is not that of the file.
    pub(crate) packed: bool,
}

/// `source`, unpacked where it is packed.
///
/// # Errors
/// The first bytes cannot be read, or are no frame of their format.
pub(crate) fn unpacked(source: Box<dyn Read + Send>) -> io::Result<Unpacked> {
    let mut source = Ahead { held: Vec::new(), source };
    let first = source.peek()?;
    Ok(if first.starts_with(&GZIP) {
        Unpacked { source: Box::new(MultiGzDecoder::new(source)), packed: true }
    } else if first == ZSTD {
        Unpacked { source: Box::new(Frames::Open(frame(source)?)), packed: true }
    } else {
        Unpacked { source: Box::new(source), packed: false }
    })
}

/// The name of a file without an ending that says how it was packed.
pub(crate) fn plain_name(name: &str) -> &str {
    ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

/// A source whose next bytes can be looked at.
struct Ahead {
    held: Vec<u8>,
    source: Box<dyn Read + Send>,
}

impl Ahead {
    /// The next four bytes, fewer at the end.
    fn peek(&mut self) -> io::Result<&[u8]> {
        let missing = ZSTD.len().saturating_sub(self.held.len());
        self.source.by_ref().take(missing as u64).read_to_end(&mut self.held)?;
        Ok(&self.held)
    }
}

impl Read for Ahead {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.held.is_empty() {
            return self.source.read(out);
        }
        let n = self.held.len().min(out.len());
        for (to, from) in out.iter_mut().zip(self.held.drain(..n)) {
            *to = from;
        }
        Ok(n)
    }
}

type Frame = Box<StreamingDecoder<Ahead, FrameDecoder>>;

fn frame(source: Ahead) -> io::Result<Frame> {
    let decoder = StreamingDecoder::new_with_max_window_size(source, WINDOW_BYTES_MAX);
    decoder.map(Box::new).map_err(io::Error::other)
}

/// Frames of zstd, one behind the other.
enum Frames {
    Open(Frame),
    Ended,
}

impl Read for Frames {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let Self::Open(open) = self else { return Ok(0) };
            let n = open.read(out)?;
            if n > 0 || out.is_empty() {
                return Ok(n);
            }
            let Self::Open(ended) = std::mem::replace(self, Self::Ended) else { return Ok(0) };
            let mut rest = ended.into_inner();
            if rest.peek()?.is_empty() {
                return Ok(0);
            }
            // What follows is another frame, or an error that says so.
            *self = Self::Open(frame(rest)?);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn read(bytes: Vec<u8>) -> io::Result<(String, bool)> {
        let mut text = String::new();
        let mut unpacked = unpacked(Box::new(io::Cursor::new(bytes)))?;
        unpacked.source.read_to_string(&mut text)?;
        Ok((text, unpacked.packed))
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
