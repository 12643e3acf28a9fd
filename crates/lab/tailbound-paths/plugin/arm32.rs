// SPDX-License-Identifier: MIT OR Apache-2.0
//! 32-bit ARM, version 7: which instructions change what is watched, and how.
//!
//! Context: SETUP. Pure: bytes in.
//! Exceptions are taken with interrupts disabled, at the vectors, in a mode of their own, which the kernel's code there leaves by
//! an instruction that returns (to the kernel's own mode); kernels change the flag by cpsid, cpsie, a move to cpsr, and
//! such returns. They keep the preemption count and the thread's flags in the thread's own structure; those
//! are changed by strex. Addresses of the kernel are told with their upper half set, as on machines of 64 bits.
//! Source: Arm ARM (DDI 0406), A8.8, B1.8, B9.3; Linux arch/arm/kernel/{entry-header,entry-armv}.S,
//! arch/arm/include/asm/{irqflags,thread_info}.h.

use crate::arm::Does;

/// Where a virtual CPU keeps its registers, from their beginning.
pub(crate) const R0: usize = 0;
pub(crate) const R2: usize = 2 * 4;
pub(crate) const SP: usize = 13 * 4;

/// In the flags that a thread's own structure begins with: it is to be rescheduled.
pub(crate) const NEED: u32 = 1 << 1;

/// Mode of a saved state: these bits, and what they are.
pub(crate) const MODE: u64 = 0x1f;
pub(crate) const USER: u64 = 0x10;
pub(crate) const KERNEL: u64 = 0x13;

/// The kernel's addresses and those of its modules begin here: a gibibyte for the kernel, three for user mode.
const BEGIN: u64 = 0xbf00_0000;
/// Vectors, the code that they jump to, and within them code of the kernel that user mode calls.
const VECTORS: u64 = 0xffff_0000;
const HELPERS: u64 = VECTORS + 0xf00;
const HELPERS_END: u64 = VECTORS + 0x1000;
const UPPER: u64 = 0xffff_ffff << 32;

/// An address, with the upper half set where it is the kernel's.
pub(crate) const fn lifted(address: u64) -> u64 {
    if address < BEGIN || (address >= HELPERS && address < HELPERS_END) {
        address
    } else {
        address | UPPER
    }
}

/// Is it among the vectors or in the code that they jump to? It returns into the kernel.
pub(crate) const fn stub(address: u64) -> bool {
    address >= UPPER | VECTORS
}

/// Is it the vector of interrupts?
pub(crate) const fn of_interrupts(vector: u64) -> bool {
    vector & 0x1f == 0x18
}

/// Of an instruction's bytes, where the preemption count lies that many bytes into a thread's own structure.
pub(crate) fn does(code: &[u8], count_at: u64) -> Does {
    let Some(code) = code.first_chunk::<4>() else { return Does::Nothing };
    let code = u32::from_le_bytes(*code);
    match code {
        // movs pc, lr; subs pc, lr, #4; ldm sp, {… pc}^
        0xe1b0_f00e | 0xe25e_f004 => Does::Returns,
        _ if code & 0xffff_8000 == 0xe8dd_8000 => Does::Returns,
        0xe320_f003 => Does::Halts,
        // cpsid and cpsie with i.
        _ if code & 0xffff_fe3f == 0xf10c_0000 && code & 0x80 != 0 => Does::Disables,
        _ if code & 0xffff_fe3f == 0xf108_0000 && code & 0x80 != 0 => Does::Enables,
        // msr cpsr with its low byte, from a register or not.
        _ if code & 0x0ff1_fff0 == 0x0121_f000 || code & 0x0ff1_f000 == 0x0321_f000 => Does::Moves,
        // strex; str r, [r, #count]
        _ if code & 0x0ff0_0ff0 == 0x0180_0f90 => Does::OwnData,
        _ if code & 0x0ff0_0000 == 0x0580_0000 && u64::from(code & 0xfff) == count_at => {
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
        let of = |code: u32| does(&code.to_le_bytes(), 4);
        // cpsid i; cpsie i; cpsid f
        assert_eq!(of(0xf10c_0080), Does::Disables);
        assert_eq!(of(0xf108_0080), Does::Enables);
        assert_eq!(of(0xf10c_0040), Does::Nothing);
        // msr cpsr_c, r3; msr cpsr_c, #0xd3; msr cpsr_f, r3; msr spsr_fsxc, r1
        assert_eq!(of(0xe121_f003), Does::Moves);
        assert_eq!(of(0xe321_f0d3), Does::Moves);
        assert_eq!(of(0xe128_f003), Does::Nothing);
        assert_eq!(of(0xe16f_f001), Does::Nothing);
        // movs pc, lr; ldm sp, {r0-pc}^; ldmdb sp, {r1-lr}^; mov pc, lr
        assert_eq!(of(0xe1b0_f00e), Does::Returns);
        assert_eq!(of(0xe8dd_ffff), Does::Returns);
        assert_eq!(of(0xe95d_7ffe), Does::Nothing);
        assert_eq!(of(0xe1a0_f00e), Does::Nothing);
        // str r3, [r2, #4]; strex r0, r2, [r1]; str r3, [r2, #8]; wfi; nop
        assert_eq!(of(0xe582_3004), Does::OwnData);
        assert_eq!(of(0xe181_0f92), Does::OwnData);
        assert_eq!(of(0xe582_3008), Does::Nothing);
        assert_eq!(does(&0xe582_3008_u32.to_le_bytes(), 8), Does::OwnData);
        assert_eq!(of(0xe320_f003), Does::Halts);
        assert_eq!(of(0xe320_f000), Does::Nothing);
    }

    #[test]
    fn the_kernel_and_user_mode_are_told_apart() {
        assert_eq!(lifted(0xc010_0000), 0xffff_ffff_c010_0000);
        assert_eq!(lifted(0xbf00_0000), 0xffff_ffff_bf00_0000);
        assert_eq!(lifted(0xb6f0_0000), 0xb6f0_0000);
        assert_eq!(lifted(0xffff_0fe0), 0xffff_0fe0);
        let vector = lifted(0xffff_0018);
        assert!(of_interrupts(vector) && stub(vector) && stub(lifted(0xffff_1020)));
        assert!(!stub(lifted(0xc010_0000)) && !of_interrupts(lifted(0xffff_0008)));
    }
}
