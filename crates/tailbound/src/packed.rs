// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that gzip, zstd or xz packed are read as what is in them.
//!
//! By their first bytes, whatever their names are. What comes out is bounded by the
//! limits of its readers, as that of a plain file is: nothing is unpacked ahead of them.

use std::io::{self, Read};

use tailbound_archive::Packing;

/// Endings that name such files.
const ENDINGS: [&str; 3] = [".gz", ".zst", ".xz"];

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
    let (packing, source) = Packing::open(source).map_err(io::Error::other)?;
    Ok(Unpacked { source, packed: packing != Packing::Plain })
}

/// The name of a file without an ending that says how it was packed.
pub(crate) fn plain_name(name: &str) -> &str {
    ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
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
