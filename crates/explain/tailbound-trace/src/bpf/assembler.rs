// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instructions of programs in the kernel, put together in the order in which they run.
//!
//! Context: SETUP. Jumps go to labels, and forwards alone, so that every program has an end. A jump to a
//! label that was never set, or is too far, is an error of [`Assembler::finish`].
//! Not here: what the programs do (`tailbound-record`, `tailbound-monitor`), loading them (`tailbound_sys::bpf`).
//! Source: Documentation/bpf/standardization/instruction-set.rst.

use std::os::fd::{AsFd, AsRawFd as _};

/// A register: R0 has results, R1 to R5 arguments, R6 to R9 are kept, R10 is the end of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reg {
    /// The result.
    R0 = 0,
    /// An argument.
    R1 = 1,
    /// An argument.
    R2 = 2,
    /// An argument.
    R3 = 3,
    /// An argument.
    R4 = 4,
    /// Kept over calls.
    R6 = 6,
    /// Kept over calls.
    R7 = 7,
    /// Kept over calls.
    R8 = 8,
    /// Kept over calls.
    R9 = 9,
    /// The stack grows down from here.
    Stack = 10,
}

/// How much is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 32 bits.
    Word = 0x00,
    /// 8 bits.
    Byte = 0x10,
    /// 64 bits.
    Double = 0x18,
}

/// What becomes of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Sum.
    Add = 0x00,
    /// Difference.
    Sub = 0x10,
    /// Either bit.
    Or = 0x40,
    /// Both bits.
    And = 0x50,
    /// Bits up.
    ShiftLeft = 0x60,
    /// Bits down.
    ShiftRight = 0x70,
    /// The second alone.
    Mov = 0xb0,
}

/// When a jump is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum If {
    /// The same.
    Equal = 0x10,
    /// Not the same.
    NotEqual = 0x50,
    /// Not above, with signs.
    SignedAtMost = 0xd0,
    /// Not above.
    AtMost = 0xb0,
}

/// A function that the kernel has for programs, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Helper {
    /// The address of a value, or 0.
    MapLookup = 1,
    /// Sets a value.
    MapUpdate = 2,
    /// Takes a key out.
    MapDelete = 3,
    /// CLOCK_MONOTONIC.
    KtimeNs = 5,
    /// The number of this CPU.
    Cpu = 8,
    /// Process and thread that run.
    PidTgid = 14,
    /// The name of the thread that runs.
    Comm = 16,
    /// The stack of the kernel.
    GetStack = 67,
    /// Copies the kernel's memory.
    ReadKernel = 113,
    /// Room in a ring, or 0.
    RingReserve = 131,
    /// Hands a record over.
    RingSubmit = 132,
    /// A thread's registers.
    TaskRegisters = 175,
}

/// A place to jump to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(usize);

/// The program cannot be put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a program for the kernel has a jump that leads nowhere")]
pub struct JumpError;

const ALU64: u8 = 0x07;
const JMP: u8 = 0x05;
const BY_REGISTER: u8 = 0x08;
const LOAD: u8 = 0x61;
const STORE_IMMEDIATE: u8 = 0x62;
const STORE: u8 = 0x63;
const ATOMIC: u8 = 0xdb;
const LOAD_64: u8 = 0x18;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// In the place of a source register: the number is of a map, or of a map's first value.
const MAP: u8 = 1;
const MAP_VALUE: u8 = 2;

/// See the module.
#[derive(Debug, Default)]
pub struct Assembler {
    code: Vec<u64>,
    /// Jumps, and where to.
    jumps: Vec<(usize, Label)>,
    labels: Vec<Option<usize>>,
}

fn instruction(code: u8, to: u8, from: u8, offset: i16, number: i32) -> u64 {
    // Two fields of four bits lie in the machine's order.
    let registers = if cfg!(target_endian = "big") { to << 4 | from } else { from << 4 | to };
    let [a, b] = offset.to_ne_bytes();
    let [c, d, e, f] = number.to_ne_bytes();
    u64::from_ne_bytes([code, registers, a, b, c, d, e, f])
}

impl Assembler {
    fn push(&mut self, code: u8, to: Reg, from: u8, offset: i16, number: i32) {
        self.code.push(instruction(code, to as u8, from, offset, number));
    }

    /// `to = to OP number`
    pub fn op(&mut self, op: Op, to: Reg, number: i32) {
        self.push(ALU64 | op as u8, to, 0, 0, number);
    }

    /// `to = to OP from`
    pub fn op_reg(&mut self, op: Op, to: Reg, from: Reg) {
        self.push(ALU64 | BY_REGISTER | op as u8, to, from as u8, 0, 0);
    }

    /// `to = *(from + offset)`
    pub fn load(&mut self, width: Width, to: Reg, from: Reg, offset: i16) {
        self.push(LOAD | width as u8, to, from as u8, offset, 0);
    }

    /// `*(to + offset) = from`
    pub fn store(&mut self, width: Width, to: Reg, offset: i16, from: Reg) {
        self.push(STORE | width as u8, to, from as u8, offset, 0);
    }

    /// `*(to + offset) = number`
    pub fn store_number(&mut self, width: Width, to: Reg, offset: i16, number: i32) {
        self.push(STORE_IMMEDIATE | width as u8, to, 0, offset, number);
    }

    /// `*(to + offset) += from`, whoever else does so at the same time.
    pub fn add_atomic(&mut self, to: Reg, offset: i16, from: Reg) {
        self.push(ATOMIC, to, from as u8, offset, 0);
    }

    fn wide(&mut self, to: Reg, from: u8, low: u32, high: u32) {
        self.push(LOAD_64, to, from, 0, low.cast_signed());
        self.code.push(instruction(0, 0, 0, 0, high.cast_signed()));
    }

    /// `to = number`, of 64 bits.
    pub fn number(&mut self, to: Reg, number: u64) {
        let (low, high) = (number & u64::from(u32::MAX), number >> 32);
        self.wide(to, 0, u32::try_from(low).unwrap_or(0), u32::try_from(high).unwrap_or(0));
    }

    /// `to = map`
    pub fn map(&mut self, to: Reg, map: &impl AsFd) {
        self.wide(to, MAP, map.as_fd().as_raw_fd().cast_unsigned(), 0);
    }

    /// `to = &map[0]`, of an array.
    pub fn map_value(&mut self, to: Reg, map: &impl AsFd) {
        self.wide(to, MAP_VALUE, map.as_fd().as_raw_fd().cast_unsigned(), 0);
    }

    /// `to = stack + offset`
    pub fn on_stack(&mut self, to: Reg, offset: i32) {
        self.op_reg(Op::Mov, to, Reg::Stack);
        self.op(Op::Add, to, offset);
    }

    /// `R0 = helper(R1, …)`; R1 to R5 are lost.
    pub fn call(&mut self, helper: Helper) {
        self.push(CALL, Reg::R0, 0, 0, helper as i32);
    }

    /// A place that is not known yet.
    pub fn label(&mut self) -> Label {
        let label = Label(self.labels.len());
        self.labels.push(None);
        label
    }

    /// `label` is here.
    pub fn here(&mut self, label: Label) {
        if let Some(place) = self.labels.get_mut(label.0) {
            *place = Some(self.code.len());
        }
    }

    /// To `label` if `reg` compares so with `number`.
    pub fn jump(&mut self, when: If, reg: Reg, number: i32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(JMP | when as u8, reg, 0, 0, number);
    }

    /// To `label` if `reg` compares so with `other`.
    pub fn jump_reg(&mut self, when: If, reg: Reg, other: Reg, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(JMP | BY_REGISTER | when as u8, reg, other as u8, 0, 0);
    }

    /// To `label`.
    pub fn go(&mut self, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(JMP, Reg::R0, 0, 0, 0);
    }

    /// The program ends, with 0.
    pub fn exit(&mut self) {
        self.op(Op::Mov, Reg::R0, 0);
        self.push(EXIT, Reg::R0, 0, 0, 0);
    }

    /// The program.
    ///
    /// # Errors
    /// A jump leads nowhere.
    pub fn finish(mut self) -> Result<Vec<u64>, JumpError> {
        for (at, label) in &self.jumps {
            let to = self.labels.get(label.0).copied().flatten().ok_or(JumpError)?;
            let away = to.checked_sub(at.saturating_add(1)).ok_or(JumpError)?;
            let [low, high] = i16::try_from(away).map_err(|_| JumpError)?.to_ne_bytes();
            let place = self.code.get_mut(*at).ok_or(JumpError)?;
            let [code, registers, _, _, c, d, e, f] = place.to_ne_bytes();
            *place = u64::from_ne_bytes([code, registers, low, high, c, d, e, f]);
        }
        Ok(self.code)
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_those_of_the_standard() {
        let mut a = Assembler::default();
        let end = a.label();
        a.op(Op::Mov, Reg::R1, -1);
        a.load(Width::Double, Reg::R2, Reg::R1, 8);
        a.store(Width::Word, Reg::Stack, -4, Reg::R2);
        a.jump(If::Equal, Reg::R2, 0, end);
        a.number(Reg::R3, 0xffff_ffff_8100_0000);
        a.add_atomic(Reg::R3, 16, Reg::R1);
        a.here(end);
        a.exit();
        let code = a.finish().unwrap();
        let bytes: Vec<[u8; 8]> = code.iter().map(|w| w.to_le_bytes()).collect();
        assert_eq!(
            bytes,
            [
                [0xb7, 0x01, 0, 0, 0xff, 0xff, 0xff, 0xff],
                [0x79, 0x12, 8, 0, 0, 0, 0, 0],
                [0x63, 0x2a, 0xfc, 0xff, 0, 0, 0, 0],
                [0x15, 0x02, 3, 0, 0, 0, 0, 0],
                [0x18, 0x03, 0, 0, 0x00, 0x00, 0x00, 0x81],
                [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff],
                [0xdb, 0x13, 16, 0, 0, 0, 0, 0],
                [0xb7, 0, 0, 0, 0, 0, 0, 0],
                [0x95, 0, 0, 0, 0, 0, 0, 0],
            ]
        );
    }

    #[test]
    fn a_jump_that_leads_nowhere_or_back_is_refused() {
        let mut a = Assembler::default();
        let nowhere = a.label();
        a.go(nowhere);
        assert_eq!(a.finish(), Err(JumpError));
        let mut a = Assembler::default();
        let back = a.label();
        a.here(back);
        a.go(back);
        assert_eq!(a.finish(), Err(JumpError));
    }
}
