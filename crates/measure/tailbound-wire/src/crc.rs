// SPDX-License-Identifier: MIT OR Apache-2.0
//! CRC-32 as Ethernet and zip have it, four bits at a time: a table of 64 bytes.

const fn table() -> [u32; 16] {
    let mut table = [0_u32; 16];
    let mut i = 0;
    while i < 16 {
        let mut remainder = i as u32;
        let mut bit = 0;
        while bit < 4 {
            remainder =
                if remainder & 1 == 1 { (remainder >> 1) ^ 0xEDB8_8320 } else { remainder >> 1 };
            bit += 1;
        }
        #[expect(clippy::indexing_slicing, reason = "i is below 16, and this runs in the compiler")]
        {
            table[i] = remainder;
        }
        i += 1;
    }
    table
}

static TABLE: [u32; 16] = table();

/// The sum of `bytes`.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let nibble = |crc: u32| (crc >> 4) ^ TABLE.get((crc & 15) as usize).copied().unwrap_or(0);
    !bytes.iter().fold(u32::MAX, |crc, &byte| nibble(nibble(crc ^ u32::from(byte))))
}

#[cfg(test)]
mod tests {
    use super::crc32;

    #[test]
    fn the_check_value_of_the_standard() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(b""), 0);
    }
}
