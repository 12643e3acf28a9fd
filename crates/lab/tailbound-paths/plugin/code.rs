// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where QEMU keeps what no plugin is told, found in the machine code of its own functions.
//!
//! Context: SETUP. Pure: bytes in, offsets out. Where a pattern does not match there is no answer, and the plugin
//! refuses to work. The patterns are those of gcc's code for 7.2 and 10.0.
//! Source: QEMU accel/tcg/icount-common.c (`icount_update`, `icount_get`), hw/core/cpu-common.c.

/// Bytes of a function that are looked at.
pub(crate) const LOOK: usize = 96;

/// Offsets within a virtual CPU, and addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inside {
    /// Instructions that the current slice may have.
    pub(crate) budget: usize,
    /// Those of them that the counter has no room for.
    pub(crate) extra: usize,
    /// The counter, 16 bits, that each block takes its instructions from.
    pub(crate) left: usize,
    /// The processor's registers.
    pub(crate) registers: usize,
    /// Address: instructions before the current slice.
    pub(crate) counted: u64,
    /// Address: ns before the first instruction, beyond instructions.
    pub(crate) bias: u64,
    /// Address: one instruction is 2^shift ns.
    pub(crate) shift: u64,
}

/// The four bytes at `at`.
fn word(code: &[u8], at: usize) -> Option<u32> {
    let bytes = code.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*bytes))
}

/// Where `pattern` begins, at or behind `from`.
fn find(code: &[u8], from: usize, pattern: &[u8]) -> Option<usize> {
    let rest = code.get(from..)?;
    rest.windows(pattern.len()).position(|w| w == pattern).map(|at| from + at)
}

/// The offset behind `pattern`, and where it ends.
fn offset(code: &[u8], from: usize, pattern: &[u8]) -> Option<(usize, usize)> {
    let at = find(code, from, pattern)? + pattern.len();
    Some((word(code, at)? as usize, at + 4))
}

/// The address that an instruction names from its own end; `code` begins at `base`.
fn address(code: &[u8], base: u64, from: usize, pattern: &[u8]) -> Option<(u64, usize)> {
    let (distance, end) = offset(code, from, pattern)?;
    #[expect(clippy::cast_possible_truncation, reason = "32 bits")]
    let distance = i64::from((distance as u32).cast_signed());
    Some(((base + end as u64).wrapping_add_signed(distance), end))
}

/// From the code of `icount_update`, which begins at `update_at`, and that of `icount_get`.
pub(crate) fn inside(update: &[u8], update_at: u64, get: &[u8], get_at: u64) -> Option<Inside> {
    // mov budget(%rdi),%rax; movzwl left(%rdi),%edx; add counted(%rip),%rax; add extra(%rdi),%rdx; sub %rdx,%rax
    let (budget, end) = offset(update, 0, &[0x48, 0x8b, 0x87])?;
    let (left, end) = offset(update, end, &[0x0f, 0xb7, 0x97])?;
    let (counted, end) = address(update, update_at, end, &[0x48, 0x03, 0x05])?;
    let (extra, end) = offset(update, end, &[0x48, 0x03, 0x97])?;
    find(update, end, &[0x48, 0x29, 0xd0]).filter(|at| *at == end)?;
    // mov bias(%rip),%rsi; movzwl shift(%rip),%ecx; … shl %cl,%rax; … add %rsi,%rax
    let (bias, end) = address(get, get_at, 0, &[0x48, 0x8b, 0x35])?;
    let (shift, end) = address(get, get_at, end, &[0x0f, 0xb7, 0x0d])?;
    let shifted = find(get, end, &[0x48, 0xd3, 0xe0])?;
    find(get, shifted, &[0x48, 0x01, 0xf0])?;
    // The registers are what follows the counter, at the next 16 bytes.
    let registers = (left & !15) + 16;
    Some(Inside { budget, extra, left, registers, counted, bias, shift })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The beginnings of both functions in Debian's QEMU 7.2.22 for x86-64.
    const UPDATE: &[u8] = &[
        0xba, 0x01, 0x00, 0x00, 0x00, 0x89, 0xd0, 0x87, 0x05, 0xd7, 0xf1, 0xa0, 0x00, 0x85, 0xc0,
        0x75, 0x61, 0x8b, 0x05, 0xc9, 0xf1, 0xa0, 0x00, 0x83, 0xc0, 0x01, 0x89, 0x05, 0xc0, 0xf1,
        0xa0, 0x00, 0x48, 0x8b, 0x87, 0xe0, 0x00, 0x00, 0x00, 0x0f, 0xb7, 0x97, 0xa0, 0x13, 0x00,
        0x00, 0x48, 0x03, 0x05, 0xdb, 0xf1, 0xa0, 0x00, 0x48, 0x03, 0x97, 0xe8, 0x00, 0x00, 0x00,
        0x48, 0x29, 0xd0, 0x48, 0x89, 0x97, 0xe0, 0x00, 0x00, 0x00,
    ];
    const GET: &[u8] = &[
        0x53, 0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00, 0x8b, 0x1d, 0x22, 0xf1, 0xa0, 0x00, 0xe8,
        0xfd, 0xfa, 0xff, 0xff, 0x48, 0x8b, 0x35, 0x2e, 0xf1, 0xa0, 0x00, 0x0f, 0xb7, 0x0d, 0x19,
        0xf1, 0xa0, 0x00, 0x83, 0xe3, 0xfe, 0x8b, 0x15, 0x06, 0xf1, 0xa0, 0x00, 0x39, 0xda, 0x75,
        0xda, 0x48, 0xd3, 0xe0, 0x5b, 0x48, 0x01, 0xf0, 0xc3,
    ];

    #[test]
    fn offsets_are_read_from_the_code_of_a_real_qemu() {
        let found = inside(UPDATE, 0x77_e9b0, GET, 0x77_ea60).unwrap();
        assert_eq!((found.budget, found.extra, found.left), (0xe0, 0xe8, 0x13a0));
        assert_eq!((found.registers, found.counted), (0x13b0, 0x118_dbc0));
        assert_eq!((found.bias, found.shift), (0x118_dba8, 0x118_db9a));
    }

    #[test]
    fn other_code_is_refused() {
        for cut in 0..UPDATE.len() - 7 {
            assert_eq!(inside(&UPDATE[..cut], 0, GET, 0), None, "{cut}");
        }
        for byte in [32, 39, 46, 53, 60] {
            let mut other = UPDATE.to_vec();
            other[byte] ^= 1;
            assert_eq!(inside(&other, 0, GET, 0), None, "{byte}");
        }
    }
}
