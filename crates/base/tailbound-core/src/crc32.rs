// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checksum of gzip and Ethernet.
//!
//! Source: RFC 1952, section 8.

/// What each value of a byte does to the checksum.
static TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let (mut rest, mut byte): (&mut [u32], u32) = (&mut table, 0);
    while let Some((entry, after)) = rest.split_first_mut() {
        let (mut c, mut bits) = (byte, u8::MAX);
        while bits != 0 {
            c = if c & 1 == 1 { 0xedb8_8320 ^ (c >> 1) } else { c >> 1 };
            bits >>= 1;
        }
        *entry = c;
        byte = byte.wrapping_add(1);
        rest = after;
    }
    table
};

/// The checksum of `bytes`.
#[must_use]
pub fn of(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |c: u32, b| {
        let [low, ..] = c.to_le_bytes();
        TABLE.get(usize::from(low ^ b)).copied().unwrap_or_default() ^ (c >> 8)
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_check_value_of_the_standard() {
        assert_eq!(super::of(b"123456789"), 0xcbf4_3926);
    }
}
