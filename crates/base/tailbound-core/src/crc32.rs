// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checksum of gzip and Ethernet.
//!
//! Source: RFC 1952, section 8.

/// The checksum of `bytes`.
#[must_use]
pub fn of(bytes: &[u8]) -> u32 {
    let table: [u32; 256] = std::array::from_fn(|n| {
        let first = u32::try_from(n).unwrap_or_default();
        (0..8).fold(first, |c, _| if c & 1 == 1 { 0xedb8_8320 ^ (c >> 1) } else { c >> 1 })
    });
    !bytes.iter().fold(!0, |c: u32, b| {
        let at = usize::try_from((c ^ u32::from(*b)) & 0xff).unwrap_or_default();
        table.get(at).copied().unwrap_or_default() ^ (c >> 8)
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_check_value_of_the_standard() {
        assert_eq!(super::of(b"123456789"), 0xcbf4_3926);
    }
}
