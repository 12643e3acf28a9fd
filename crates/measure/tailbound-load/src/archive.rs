// SPDX-License-Identifier: MIT OR Apache-2.0
//! An archive to be downloaded and unpacked: tar within gzip, written and read here, so that
//! the load is the same on every machine and needs neither program.
//!
//! Context: SETUP (`pack`), the load itself (`unpack`). Units: bytes.
//! Not here: archives of others: links, long names and extensions are refused.
//! Source: POSIX.1-2017 pax, ustar interchange format; RFC 1952.

use std::io::Write as _;

use tailbound_core::{crc32, gzip};

const BLOCK_BYTES: usize = 512;
/// Archives of this program are all smaller.
const UNPACKED_BYTES_MAX: usize = 1 << 30;

/// A file in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) content: Vec<u8>,
}

/// The archive of `entries`; names of at most 99 ASCII bytes.
pub(crate) fn pack(entries: &[Entry]) -> Vec<u8> {
    let mut tar = Vec::new();
    for entry in entries {
        tar.extend_from_slice(&header(entry));
        tar.extend_from_slice(&entry.content);
        tar.resize(tar.len().next_multiple_of(BLOCK_BYTES), 0);
    }
    tar.resize(tar.len() + 2 * BLOCK_BYTES, 0);
    gzip::pack(&tar, 1)
}

fn header(entry: &Entry) -> [u8; BLOCK_BYTES] {
    let mut block = [0u8; BLOCK_BYTES];
    let mut put = |at: usize, text: &[u8]| {
        for (to, from) in block.iter_mut().skip(at).zip(text) {
            *to = *from;
        }
    };
    put(0, entry.name.as_bytes().get(..99).unwrap_or(entry.name.as_bytes()));
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{:011o}\0", entry.content.len()).as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        0");
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|b| u32::from(*b)).sum();
    let mut text = Vec::new();
    let _infallible = write!(text, "{sum:06o}\0 ");
    for (to, from) in block.iter_mut().skip(148).zip(&text) {
        *to = *from;
    }
    block
}

/// An archive that is not as [`pack`] made it: what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the archive is broken: {0}")]
pub(crate) struct Broken(String);

/// The files of an archive of [`pack`].
///
/// # Errors
/// What is wrong with it.
pub(crate) fn unpack(gzip: &[u8]) -> Result<Vec<Entry>, Broken> {
    let broken = |what: &str| Broken(what.to_owned());
    let trailer = gzip.len().checked_sub(8).ok_or_else(|| broken("too short"))?;
    let (body, trailer) = gzip.split_at(trailer);
    let body = body.strip_prefix(&gzip::HEADER).ok_or_else(|| broken("no gzip header"))?;
    let tar = miniz_oxide::inflate::decompress_to_vec_with_limit(body, UNPACKED_BYTES_MAX)
        .map_err(|e| broken(&e.to_string()))?;
    let sums = [crc32::of(&tar).to_le_bytes(), (tar.len() as u32).to_le_bytes()];
    if trailer != sums.as_flattened() {
        return Err(broken("its sum is another"));
    }
    let mut entries = Vec::new();
    let mut rest = tar.as_slice();
    while let Some((block, after)) = rest.split_at_checked(BLOCK_BYTES) {
        if block.iter().all(|b| *b == 0) {
            return Ok(entries);
        }
        let text = |from: usize, to: usize| -> Option<String> {
            let field = block.get(from..to)?.split(|b| *b == 0).next()?;
            Some(String::from_utf8_lossy(field).into_owned())
        };
        let name = text(0, 100).ok_or_else(|| broken("no name"))?;
        let bytes = text(124, 136).and_then(|t| usize::from_str_radix(t.trim(), 8).ok());
        let bytes = bytes.ok_or_else(|| broken("no size"))?;
        let content = after.get(..bytes).ok_or_else(|| broken("it is cut off"))?;
        entries.push(Entry { name, content: content.to_vec() });
        rest = after.get(bytes.next_multiple_of(BLOCK_BYTES)..).unwrap_or_default();
    }
    Err(broken("it has no end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked() {
        let entry = |name: &str, bytes: usize| Entry {
            name: name.into(),
            content: (0..bytes).map(|n| (n * n % 251) as u8).collect(),
        };
        let all = [entry("a/b.c", 700), entry("empty", 0), entry("c", 512), entry("d", 100_000)];
        let packed = pack(&all);
        assert_eq!(unpack(&packed).as_deref(), Ok(all.as_slice()));
        assert_eq!(unpack(&pack(&[])), Ok(vec![]));
        for cut in [0, 5, 17, packed.len() / 2, packed.len() - 1] {
            assert!(unpack(packed.get(..cut).unwrap_or_default()).is_err());
        }
        let mut wrong = packed;
        if let Some(byte) = wrong.last_mut() {
            *byte ^= 1;
        }
        assert!(unpack(&wrong).is_err_and(|e| e.0.contains("sum")));
    }
}
