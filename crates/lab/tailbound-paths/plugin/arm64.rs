// SPDX-License-Identifier: MIT OR Apache-2.0
//! 64-bit ARM: which instructions change what is watched, and how.
//!
//! Context: SETUP. Pure: bytes in.
//! Exceptions are taken with interrupts disabled, at the vectors; kernels change the flag by daifset, daifclr, a move to
//! daif, and eret; they keep the preemption count and the need to reschedule (0: needed) side by side in the thread's own
//! structure, and store each with an instruction of its own.
//! Source: Arm ARM (DDI 0487), C6.2, D1.10; Linux arch/arm64/include/asm/{daifflags,preempt,thread_info}.h,
//! arch/arm64/kernel/entry.S.

use crate::arm::Does;

/// Bits of a saved state: 0 where it is of user mode, and what they are in the kernel (EL1, its own stack).
pub(crate) const LEVEL: u64 = 0xf;
pub(crate) const LEVEL_KERNEL: u64 = 5;

/// Where a virtual CPU keeps its registers, from their beginning: sixteen of 32 bits come first.
pub(crate) const X0: usize = 64;
pub(crate) const X1: usize = X0 + 8;
pub(crate) const SP: usize = X0 + 31 * 8;

/// Where a thread's preemption count can be, and behind it the need to reschedule: with what an option of the kernel
/// (`ARM64_SW_TTBR0_PAN`) or a patch (the lazy count of 6.1-rt) puts before it, or without.
pub(crate) const COUNTS: [u64; 2] = [8, 16];
/// From the count to the need.
pub(crate) const NEED: u64 = 4;

/// Vectors are so far apart.
const VECTOR_BYTES: u64 = 0x80;

/// Does an exception enter at this address of the vectors' range? Other vectors jump to behind the beginning of one.
pub(crate) const fn is_vector(address: u64) -> bool {
    address.is_multiple_of(VECTOR_BYTES)
}

/// Is it a vector of exceptions of user mode?
pub(crate) const fn of_user(vector: u64) -> bool {
    vector & 0x400 != 0
}

/// Of an instruction's bytes.
pub(crate) fn does(code: &[u8]) -> Does {
    let Some(code) = code.first_chunk::<4>() else { return Does::Nothing };
    let code = u32::from_le_bytes(*code);
    let interrupts = code & 0x200 != 0;
    match code {
        0xd69f_03e0 => Does::Returns,
        0xd503_207f => Does::Halts,
        _ if code & 0xffff_f0ff == 0xd503_40df && interrupts => Does::Disables,
        _ if code & 0xffff_f0ff == 0xd503_40ff && interrupts => Does::Enables,
        _ if code & 0xffff_ffe0 == 0xd51b_4220 => Does::Moves,
        _ if matches!(
            code & 0xffff_fc00,
            0xb900_0800 | 0xb900_0c00 | 0xb900_1000 | 0xb900_1400
        ) =>
        {
            Does::OwnData
        }
        _ => Does::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_told_apart() {
        let of = |code: u32| does(&code.to_le_bytes());
        // msr daifset, #3; msr daifset, #1; msr daifclr, #3; msr daif, x20; eret; wfi
        assert_eq!(of(0xd503_43df), Does::Disables);
        assert_eq!(of(0xd503_41df), Does::Nothing);
        assert_eq!(of(0xd503_43ff), Does::Enables);
        assert_eq!(of(0xd51b_4234), Does::Moves);
        assert_eq!(of(0xd69f_03e0), Does::Returns);
        assert_eq!(of(0xd503_207f), Does::Halts);
        // str w0, [x1, #8]; str wzr, [x1, #12]; str w0, [x1, #16]; str wzr, [x1, #20]; str w0, [x1, #24]; ldr w0, [x1, #8]
        assert_eq!(of(0xb900_0820), Does::OwnData);
        assert_eq!(of(0xb900_0c3f), Does::OwnData);
        assert_eq!(of(0xb900_1020), Does::OwnData);
        assert_eq!(of(0xb900_143f), Does::OwnData);
        assert_eq!(of(0xb900_1820), Does::Nothing);
        assert_eq!(of(0xb940_0820), Does::Nothing);
        assert_eq!(does(&[0xdf]), Does::Nothing);
    }

    #[test]
    fn vectors_are_told_from_what_others_jump_to() {
        let vectors = 0xffff_8000_0801_1000;
        assert!(is_vector(vectors + 0x280) && !of_user(vectors + 0x280));
        assert!(is_vector(vectors + 0x480) && of_user(vectors + 0x480) && of_user(vectors + 0x680));
        assert!(!is_vector(vectors + 0x484));
    }
}
