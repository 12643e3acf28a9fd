// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes packed as gzip does, the same bytes for the same content: without a name and a time.
//!
//! Not here: unpacking (`tailbound-archive`). Source: RFC 1952.

use crate::crc32;

/// No flags, no time, of no system.
pub const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// Packs them; `level` is 0 to 10, as for zlib.
#[must_use]
pub fn pack(bytes: &[u8], level: u8) -> Vec<u8> {
    let mut out = HEADER.to_vec();
    out.extend(miniz_oxide::deflate::compress_to_vec(bytes, level));
    out.extend(crc32::of(bytes).to_le_bytes());
    // Their number without what is beyond 4 GiB.
    let [a, b, c, d, ..] = u64::try_from(bytes.len()).unwrap_or_default().to_le_bytes();
    out.extend([a, b, c, d]);
    out
}
