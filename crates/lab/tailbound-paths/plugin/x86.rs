// SPDX-License-Identifier: MIT OR Apache-2.0
//! x86-64: which instructions change what is watched, and how.
//!
//! Context: SETUP. Pure: bytes in.
//! Kernels enter by gates that disable interrupts; they change the flag by cli, sti, popf, iretq and sysret; they keep
//! the preemption count, the need to reschedule (its uppermost bit, inverted) and the current thread in the CPU's own data,
//! which instructions with the prefix gs reach. Kernels before 5.12 restore the flag by popf, whose value is not in memory
//! within a block. QEMU ends its block there, and the flags are in memory when the next one begins. Threads read their clock by
//! rdtsc or rdtscp, in user mode.
//! Source: Intel SDM volume 2; Linux arch/x86/include/asm/{irqflags,preempt,current}.h, arch/x86/entry.

/// Bits of the flags and of the count.
pub(crate) const FLAG_INTERRUPTS: u64 = 1 << 9;
pub(crate) const COUNT_NOT_RESCHED: u32 = 1 << 31;

/// Where a virtual CPU keeps its registers, from their beginning.
pub(crate) const RSP: usize = 4 * 8;
pub(crate) const RDI: usize = 7 * 8;
pub(crate) const FLAGS: usize = 17 * 8;

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    Nothing,
    /// cli
    Disables,
    /// sti
    Enables,
    /// popf
    PopsFlags,
    /// iretq: address, segment and flags are at the stack's end.
    ReturnsFromInterrupt,
    /// sysret: to user mode.
    ReturnsFromCall,
    /// hlt
    Halts,
    /// With the prefix gs: it may store into the CPU's own data.
    OwnData,
    /// rdtsc, rdtscp
    ReadsCounter,
}

/// Of an instruction's bytes.
pub(crate) fn does(code: &[u8]) -> Does {
    match code {
        [0xfa, ..] => Does::Disables,
        [0xfb, ..] => Does::Enables,
        [0x9d, ..] => Does::PopsFlags,
        [0xf4, ..] => Does::Halts,
        [0x48, 0xcf, ..] => Does::ReturnsFromInterrupt,
        [0x0f, 0x31, ..] | [0x0f, 0x01, 0xf9, ..] => Does::ReadsCounter,
        [0x48, 0x0f, 0x07, ..] | [0x0f, 0x07, ..] => Does::ReturnsFromCall,
        [0x65, ..] | [0xf0, 0x65, ..] if !only_loads(code) => Does::OwnData,
        _ => Does::Nothing,
    }
}

/// Prefixes: segment, lock, repeat, size, and those of 64 bits.
const fn prefix(byte: u8) -> bool {
    matches!(byte, 0x65 | 0xf0 | 0xf2 | 0xf3 | 0x66 | 0x40..=0x4f)
}

/// mov, and arithmetic, from memory into a register: by far the most instructions that reach the CPU's own data.
fn only_loads(code: &[u8]) -> bool {
    let opcode = code.iter().copied().find(|byte| !prefix(*byte));
    matches!(opcode, Some(0x8b | 0x03 | 0x0b | 0x13 | 0x1b | 0x23 | 0x2b | 0x33 | 0x3b))
}

/// Kernel addresses are the upper half.
pub(crate) const fn kernel(address: u64) -> bool {
    address >> 63 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_told_apart() {
        assert_eq!(does(&[0xfa]), Does::Disables);
        assert_eq!(does(&[0x48, 0xcf]), Does::ReturnsFromInterrupt);
        assert_eq!(does(&[0xcf]), Does::Nothing);
        assert_eq!(does(&[0x0f, 0x31]), Does::ReadsCounter);
        assert_eq!(does(&[0x0f, 0x01, 0xf9]), Does::ReadsCounter);
        assert_eq!(does(&[0x0f, 0x01, 0xca]), Does::Nothing);
        // decl %gs:count
        assert_eq!(does(&[0x65, 0xff, 0x0d, 0, 0, 0, 0]), Does::OwnData);
        // mov %gs:current,%rax; mov %rax,%gs:current
        assert_eq!(does(&[0x65, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0]), Does::Nothing);
        assert_eq!(does(&[0x65, 0x48, 0x89, 0x04, 0x25, 0, 0, 0, 0]), Does::OwnData);
        // lock cmpxchg %rdx,%gs:count
        assert_eq!(does(&[0xf0, 0x65, 0x48, 0x0f, 0xb1, 0x15]), Does::OwnData);
        assert_eq!(does(&[]), Does::Nothing);
    }
}
