// SPDX-License-Identifier: MIT OR Apache-2.0
//! The PIO program of the box, and the arithmetic of its schedule.
//!
//! Two state machines a channel begin in the same cycle. One gives pulses: it takes intervals from its FIFO, and
//! an interval lasts as long whatever the machine answers. The other hears: it samples the line every second
//! cycle, counts, and puts the count of each edge into its FIFO. Neither waits for the other or for the processor.
//!
//! One tick is two cycles. A pulse after intervals of `n` ticks together is on the pad from cycle `2 n` on; an edge
//! that is on the pad at cycle `2 n` is counted as `n`, and one later behind the chip's input synchroniser (two
//! cycles). Paths through the programs that do not sample take an even number of cycles, and count them.
#![no_std]
#![forbid(unsafe_code)]

use pio::{Instruction, pio_asm};

/// Words of a program.
pub type Words = pio::ArrayVec<u16, 32>;

/// Where the state machine that hears begins, and what it repeats.
pub const HEAR: Loop = Loop { begin: 8, wrap_target: 8, wrap: 9 };

/// Where the state machine that gives pulses begins, and what it repeats.
pub const PULSE: Loop = Loop { begin: 22, wrap_target: 22, wrap: 29 };

/// The part of a program that a state machine repeats.
#[derive(Debug, Clone, Copy)]
pub struct Loop {
    /// Its first instruction.
    pub begin: u8,
    /// Where it goes on behind `wrap`.
    pub wrap_target: u8,
    /// The last instruction.
    pub wrap: u8,
}

/// Cycles of an interval that are not its loop: pull, mov, the loop's last pass, set.
const FIXED_CYCLES: u32 = 4;

/// Of a pulse: mov, mov, the loop's last pass, set.
const WIDTH_FIXED_CYCLES: u32 = 4;

/// The shortest interval that the program can do, beside the width.
pub const INTERVAL_MIN_TICKS: u32 = 2;

/// What a wire from output to input reads on a chip: the two cycles of the input synchroniser.
pub const LOOP_BACK_TICKS: u8 = 1;

/// Instructions that set a state machine up while it stands still.
pub mod set_up {
    /// `set pindirs, 1`
    pub const OUTPUT: u16 = 0xE081;
    /// `set pindirs, 0`
    pub const INPUT: u16 = 0xE080;
    /// `set pins, 0`
    pub const LOW: u16 = 0xE000;
    /// `pull block`
    pub const PULL: u16 = 0x80A0;
    /// `mov y, osr`
    pub const Y_FROM_OSR: u16 = 0xA047;
    /// `mov x, ~null`
    pub const X_ONES: u16 = 0xA02B;
    /// `mov y, ~null`
    pub const Y_ONES: u16 = 0xA04B;
    /// `mov isr, x`
    pub const ISR_FROM_X: u16 = 0xA0C1;
    /// `push noblock`
    pub const PUSH: u16 = 0x8000;
}

/// The program where the line changes its level with each pulse.
#[must_use]
pub fn toggle() -> Words {
    let mut words = hear();
    let give = pio_asm!(
        "    pull block",
        "    mov x, osr",
        "gap:",
        "    jmp x-- gap",
        "    set pins, 1",
        "    pull block",
        "    mov x, osr",
        "back:",
        "    jmp x-- back",
        "    set pins, 0",
    );
    append(&mut words, &give.program.code, 22);
    words
}

/// The program where each pulse goes up and comes back after the width in Y.
#[must_use]
pub fn pulse() -> Words {
    let mut words = hear();
    let give = pio_asm!(
        "    pull block",
        "    mov x, osr",
        "gap:",
        "    jmp x-- gap",
        "    set pins, 1",
        "    mov x, y",
        "    nop",
        "back:",
        "    jmp x-- back",
        "    set pins, 0",
    );
    append(&mut words, &give.program.code, 22);
    words
}

/// X counts ticks down from all ones. A word of the FIFO is 31 bits of it and the level.
fn hear() -> Words {
    let hear = pio_asm!(
        "fell:", // 2 cycles until here, 10 in all: 5 ticks
        "    in x, 31",
        "    in null, 1",
        "    push noblock",
        "    jmp x-- f1",
        "f1:",
        "    jmp x-- f2",
        "f2:",
        "    jmp x-- f3",
        "f3:",
        "    jmp x-- f4",
        "f4:",
        "    jmp x-- low", // the fifth; where X ends it is `low` as well
        "low:",
        "    jmp pin rose",
        "    jmp x-- low", // wraps to `low` where X ends
        "rose:",           // 1 cycle until here, 8 in all: 4 ticks
        "    in x, 31",
        "    in y, 1",
        "    push noblock",
        "    jmp x-- r1",
        "r1:",
        "    jmp x-- r2",
        "r2:",
        "    jmp x-- r3",
        "r3:",
        "    jmp x-- high",
        "high:",
        "    jmp pin still",
        "    jmp fell",
        "still:",
        "    jmp x-- high",
        "    jmp x-- again", // where X ends: 2 cycles more, and a tick counted for them
        "again:",
        "    jmp high",
    );
    let mut words = Words::new();
    append(&mut words, &hear.program.code, 0);
    words
}

/// Puts a part behind what is there; its jumps are by distances from its own begin.
fn append(words: &mut Words, part: &[u16], begin: u8) {
    for word in part {
        // A jump (opcode 0) has its target in the lower five bits.
        let is_jump = word >> 13 == 0;
        let _ = words.try_push(if is_jump { word + u16::from(begin) } else { *word });
    }
}

/// What a part decodes to, for listings.
#[must_use]
pub fn decode(word: u16) -> Option<Instruction> {
    Instruction::decode(word, pio::SideSet::default())
}

/// The word for an interval, after a pulse that came back after `width_ticks` (0 where the line toggles, and
/// before the first). `None` if it is too short or too long.
#[must_use]
pub fn interval_word(interval_ticks: u32, width_ticks: u32) -> Option<u32> {
    let rest_ticks = interval_ticks.checked_sub(width_ticks)?;
    rest_ticks.checked_mul(2)?.checked_sub(FIXED_CYCLES)
}

/// The word in Y for a width.
#[must_use]
pub fn width_word(width_ticks: u32) -> Option<u32> {
    width_ticks.checked_mul(2)?.checked_sub(WIDTH_FIXED_CYCLES)
}

/// An edge as a word of the FIFO has it: the lower 31 bits of its ticks, and whether the line is up.
#[must_use]
pub const fn edge(word: u32) -> (u32, bool) {
    (!(word >> 1) & 0x7FFF_FFFF, word & 1 == 1)
}
