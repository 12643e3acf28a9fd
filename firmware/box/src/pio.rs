// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers of a PIO block: the same on both chips but for the interrupts' place.
//!
//! The HALs' state machines cannot be begun together with what they have in FIFOs and registers; here a channel's
//! two are set up by instructions that are written to them, and begin with one write.

const CTRL: usize = 0x00;
const FSTAT: usize = 0x04;
const FDEBUG: usize = 0x08;
const FLEVEL: usize = 0x0C;
const TXF: usize = 0x10;
const RXF: usize = 0x20;
const INSTR_MEM: usize = 0x48;
const SM_CLKDIV: usize = 0xC8;
const SM_EXECCTRL: usize = 0xCC;
const SM_SHIFTCTRL: usize = 0xD0;
const SM_INSTR: usize = 0xD8;
const SM_PINCTRL: usize = 0xDC;
const SM_SIZE: usize = 0x18;
#[cfg(chip = "rp2040")]
const IRQ0_INTE: usize = 0x12C;
#[cfg(chip = "rp2350")]
const IRQ0_INTE: usize = 0x170;

/// Aliases of a register that set or clear bits.
const SET: usize = 0x2000;
const CLEAR: usize = 0x3000;

/// Both FIFOs as one that is read.
const JOIN_RX: u32 = 1 << 31;

/// A state machine of a block.
#[derive(Clone, Copy)]
pub(crate) struct StateMachine {
    base: usize,
    index: usize,
}

/// How a machine runs.
pub(crate) struct Course {
    /// What it repeats.
    pub(crate) part: tailbound_box_line::Loop,
    /// The pin that it asks in jumps.
    pub(crate) jump_pin: u8,
    /// The pin that it sets.
    pub(crate) set_pin: u8,
    /// Whether its FIFOs are one that is read.
    pub(crate) hears: bool,
}

impl StateMachine {
    /// StateMachine `index` of block 0 or 1.
    pub(crate) const fn new(block: usize, index: usize) -> Self {
        Self { base: 0x5020_0000 + block * 0x10_0000, index }
    }

    fn write(self, offset: usize, value: u32) {
        // SAFETY: a register of a PIO block, which is out of its reset and has no other user.
        unsafe { ((self.base + offset) as *mut u32).write_volatile(value) }
    }

    fn read(self, offset: usize) -> u32 {
        // SAFETY: as above.
        unsafe { ((self.base + offset) as *const u32).read_volatile() }
    }

    /// Puts the program into the block.
    pub(crate) fn load(self, words: &[u16]) {
        for (place, word) in words.iter().enumerate() {
            self.write(INSTR_MEM + 4 * place, u32::from(*word));
        }
    }

    /// Stops, empties the FIFOs and sets the machine up; it does not run yet.
    pub(crate) fn prepare(self, course: &Course) {
        let sm = self.index * SM_SIZE;
        self.write(CTRL + CLEAR, 1 << self.index);
        self.write(SM_CLKDIV + sm, 1 << 16);
        let part = course.part;
        self.write(
            SM_EXECCTRL + sm,
            u32::from(course.jump_pin) << 24
                | u32::from(part.wrap) << 12
                | u32::from(part.wrap_target) << 7,
        );
        // A change of the joining empties both.
        let join = if course.hears { JOIN_RX } else { 0 };
        self.write(SM_SHIFTCTRL + sm, join ^ JOIN_RX);
        self.write(SM_SHIFTCTRL + sm, join);
        self.write(SM_PINCTRL + sm, 1 << 26 | u32::from(course.set_pin) << 5);
        self.write(CTRL + SET, 0x10 << self.index);
        self.write(FDEBUG, 0x0101_0101 << self.index);
    }

    /// Runs one instruction now.
    pub(crate) fn run(self, word: u16) {
        self.write(SM_INSTR + self.index * SM_SIZE, u32::from(word));
    }

    /// Begins this and the next machine in the same cycle.
    pub(crate) fn begin_both(self) {
        self.write(CTRL + SET, 0x303 << self.index);
    }

    /// Ends this and the next machine in the same cycle.
    pub(crate) fn end_both(self) {
        self.write(CTRL + CLEAR, 3 << self.index);
    }

    pub(crate) fn put(self, word: u32) {
        self.write(TXF + 4 * self.index, word);
    }

    pub(crate) fn is_full(self) -> bool {
        self.read(FSTAT) >> (16 + self.index) & 1 == 1
    }

    /// Words that wait to be taken by the machine.
    pub(crate) fn waiting(self) -> usize {
        (self.read(FLEVEL) >> (8 * self.index) & 15) as usize
    }

    /// A word that the machine gave.
    pub(crate) fn take(self) -> Option<u32> {
        let is_empty = self.read(FSTAT) >> (8 + self.index) & 1 == 1;
        (!is_empty).then(|| self.read(RXF + 4 * self.index))
    }

    /// Whether it had no word when it needed one.
    pub(crate) fn has_starved(self) -> bool {
        self.read(FDEBUG) >> (24 + self.index) & 1 == 1
    }

    /// Whether a word had no place; asked once.
    pub(crate) fn has_overrun(self) -> bool {
        let overrun = self.read(FDEBUG) >> self.index & 1 == 1;
        if overrun {
            self.write(FDEBUG, 1 << self.index);
        }
        overrun
    }

    /// Interrupts when there is room in this machine's FIFO, or a word in the next one's.
    pub(crate) fn interrupt(self, is_wanted: bool) {
        let bits = 0x10 << self.index | 2 << self.index;
        self.write(IRQ0_INTE + if is_wanted { SET } else { CLEAR }, bits);
    }
}
