// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the plugin writes and what it is told: two files of 64-bit words, in the machine's order.
//!
//! Context: HOT (the plugin writes records), COLD (they are read). Units: ns of the guest's virtual time.
//! This file is compiled twice: into this crate, and into the plugin, which has no standard library.
//!
//! ```text
//! the plan   MAGIC, Plan's words, then points (begin, end, kind), then windows (from, to)
//! the log    MAGIC, number of records, status, comparisons; from LOG_HEAD_BYTES on records of two words:
//!            time << 16 | CPU << 12 | state << 8 | kind, and a value
//! ```

/// First word of both files.
pub const MAGIC: u64 = u64::from_le_bytes(*b"tbpaths3");

/// Where the log's records begin.
pub const LOG_HEAD_BYTES: usize = 4096;
/// Words of the log's head: MAGIC, number of records, [`status`], how often the plugin's time was compared with QEMU's.
pub const LOG_COUNT: usize = 1;
/// See [`LOG_COUNT`].
pub const LOG_STATUS: usize = 2;
/// See [`LOG_COUNT`].
pub const LOG_COMPARED: usize = 3;
/// Bytes of a record.
pub const RECORD_BYTES: usize = 16;

/// CPUs that a record has room for.
pub const CPUS: usize = 16;

/// State of the processor, as bits.
pub mod state {
    /// Interrupts are disabled.
    pub const INTERRUPTS_OFF: u8 = 1;
    /// Preemption is disabled: the count is not 0.
    pub const PREEMPTION_OFF: u8 = 2;
    /// The current thread is to be rescheduled.
    pub const RESCHED: u8 = 4;
    /// User mode.
    pub const USER: u8 = 8;
}

/// Kinds of records.
pub mod kind {
    /// The state is another; value: the instruction that made it so.
    pub const STATE: u8 = 1;
    /// A point of the plan was reached; value: its address.
    pub const POINT: u8 = 2;
    /// A timer wakes a thread; value: the thread.
    pub const WAKE: u8 = 3;
    /// Follows WAKE; value: when the timer was due.
    pub const DUE: u8 = 4;
    /// Another thread has the CPU; value: the thread.
    pub const SWITCH: u8 = 5;
    /// A thread that was woken is in user mode; value: the thread.
    pub const RETURN: u8 = 6;
    /// The CPU halts.
    pub const HALT: u8 = 7;
    /// A block of instructions begins; value: the low halves of the stack's end, its upper half
    /// folded into it from bit 16 on, and of its address; in the state's place
    /// [`super::block`].
    pub const BLOCK: u8 = 8;
    /// A window of the plan begins; value: its number.
    pub const WINDOW: u8 = 9;
    /// An interrupt or exception is taken; value: the address of its entry. The state is that of what it interrupts.
    pub const ENTER: u8 = 10;
    /// iretq; value: its address. The state is that of what goes on.
    pub const LEAVE: u8 = 11;
    /// Of a guest with several CPUs: from here on this one executes, after another or after a halt; value: ns that all of
    /// them have executed before, without those in which all halted.
    pub const TURN: u8 = 12;
    /// Of a guest with several CPUs: a thread in user mode has read the processor's counter; value: the thread.
    pub const READ: u8 = 13;
    /// QEMU has translated a block of the kernel's instructions, which it does before it executes them for the first
    /// time, or after it forgot them; value: [`super::code`].
    pub const CODE: u8 = 14;
}

/// Where a block is, in the state's place of its record.
pub mod block {
    /// Bit: in the kernel.
    pub const KERNEL: u8 = 1;
}

/// Where translated instructions lie: their bytes above the lower bits of their address.
pub mod code {
    /// Bits of the address; those above are as the uppermost of these.
    pub const ADDRESS_BITS: u32 = 48;

    /// The value of a record.
    #[must_use]
    pub const fn value(address: u64, bytes: u64) -> u64 {
        bytes << ADDRESS_BITS | address & ((1 << ADDRESS_BITS) - 1)
    }

    /// Address and bytes of a record's value.
    #[must_use]
    pub const fn place(value: u64) -> (u64, u64) {
        const ABOVE: u32 = u64::BITS - ADDRESS_BITS;
        let address = (value << ABOVE).cast_signed() >> ABOVE;
        (address.cast_unsigned(), value >> ADDRESS_BITS)
    }
}

/// Kinds of the plan's points.
pub mod point {
    /// An entry into the kernel: interrupts are disabled there. Any block that begins in the range.
    pub const ENTRY: u64 = 1;
    /// Is recorded when it is reached.
    pub const MARK: u64 = 2;
    /// hrtimer_wakeup(): its timer is recorded too.
    pub const WAKE: u64 = 3;
    /// As [`ENTRY`], of an interrupt or exception: is recorded too.
    pub const ENTER: u64 = 4;
    /// What a second kernel calls when a timer of its own wakes a thread: its timer is recorded too.
    pub const WAKE_SECOND: u64 = 6;
    /// `__switch_to` of ARM: the next thread is its second argument, of 32 bits its third.
    pub const SWITCH: u64 = 5;
}

/// Words of the plan behind MAGIC.
pub mod plan {
    /// [`super::mode`]
    pub const MODE: usize = 1;
    /// Where the offset of the CPU's data is; 0: there is none.
    pub const OFFSET_AT: usize = 2;
    /// Address of the preemption count, without the offset; on 32-bit ARM from a thread's own structure.
    pub const COUNT: usize = 3;
    /// Address of the current thread, without the offset; on 32-bit ARM from there, 0: it is the thread's beginning.
    pub const CURRENT: usize = 4;
    /// Bytes from a timer to its time.
    pub const TIMER_DUE: usize = 5;
    /// Bytes from a timer to its thread.
    pub const TIMER_THREAD: usize = 6;
    /// Number of points.
    pub const POINTS: usize = 7;
    /// Number of windows.
    pub const WINDOWS: usize = 8;
    /// See [`super::guest`].
    pub const GUEST: usize = 9;
    /// Not 0: all blocks of the kernel that are translated are recorded.
    pub const CODE: usize = 10;
    /// ns of virtual time from the first record on, after which the log's status is [`super::status::OVERTIME`]; 0: there is
    /// no limit.
    pub const LIMIT_NS: usize = 11;
    /// Bytes of the preemption count of 64-bit x86, whose uppermost bit says that nothing is to be rescheduled.
    pub const COUNT_BYTES: usize = 12;
    /// Words before the points.
    pub const WORDS: usize = 13;
    /// Words of a point: begin, end, kind.
    pub const POINT_WORDS: usize = 3;
    /// Words of a window: from, to.
    pub const WINDOW_WORDS: usize = 2;
}

/// Architecture of the guest.
pub mod guest {
    /// 64-bit x86.
    pub const X86_64: u64 = 0;
    /// 64-bit ARM.
    pub const ARM64: u64 = 1;
    /// 32-bit ARM.
    pub const ARM32: u64 = 2;
}

/// What the plugin does.
pub mod mode {
    /// Sections and wake-ups.
    pub const SPARSE: u64 = 1;
    /// Every block of instructions within the windows.
    pub const FULL: u64 = 2;
}

/// How the log stands.
pub mod status {
    /// The plugin has not begun.
    pub const NONE: u64 = 0;
    /// All is recorded.
    pub const WHOLE: u64 = 1;
    /// The file was full: what came later is missing.
    pub const FULL: u64 = 2;
    /// This QEMU's machine code is not understood: nothing is recorded.
    pub const UNKNOWN_CODE: u64 = 3;
    /// This QEMU lacks a function that the plugin calls.
    pub const LACKING: u64 = 4;
    /// The plugin's time is not QEMU's.
    pub const OTHER_TIME: u64 = 5;
    /// The plan cannot be read.
    pub const NO_PLAN: u64 = 6;
    /// The kernel wakes or switches threads where the plugin does not know the registers.
    pub const UNKNOWN_REGISTERS: u64 = 8;
    /// QEMU does not count instructions, or has more processors than are watched.
    pub const NOT_COUNTED: u64 = 7;
    /// Where QEMU or the kernel keeps what is watched has not been found.
    pub const UNKNOWN_GUEST: u64 = 9;
    /// The kernel was entered where the plugin does not look.
    pub const OTHER_ENTRY: u64 = 10;
    /// A CPU has its own data where another's was expected.
    pub const OTHER_CPU: u64 = 11;
    /// The guest went on for longer than the plan allows.
    pub const OVERTIME: u64 = 12;
}

/// The first word of a record; `state` has the CPU's number in its upper half.
#[must_use]
pub const fn head(t_ns: u64, state: u8, kind: u8) -> u64 {
    t_ns << 16 | (state as u64) << 8 | kind as u64
}
