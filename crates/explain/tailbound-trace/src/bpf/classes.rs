// SPDX-License-Identifier: MIT OR Apache-2.0
//! The classes of histograms that programs in the kernel count: four for each power of two.
//!
//! Context: SETUP (making the instructions), HOT of the kernel (what they do). Units: those of the value.
//! The class is four times the place of the highest bit above the third, and the two bits below it. The values 0 to 3 are in the classes of 4 to 7.
//! Not here: where the counts lie (`tailbound-record`, `tailbound-monitor`).

use super::assembler::{Assembler, If, Op, Reg};

/// The largest value of class `class`.
#[must_use]
pub fn upper(class: usize) -> u64 {
    let (shift, part) = (class / 4, class % 4);
    let power = u32::try_from(shift).ok().and_then(|s| 1u64.checked_shl(s));
    let above = power.and_then(|p| p.checked_mul((part as u64).saturating_add(5)));
    above.unwrap_or(0).wrapping_sub(1)
}

/// Instructions: R2 = the class of R0, the last of `classes` at most. R0 and R3 are lost.
pub fn classify(a: &mut Assembler, classes: usize) {
    // Four at least, so that there are two bits below the highest. More than that stays what it is.
    let (few, enough) = (a.label(), a.label());
    a.jump(If::AtMost, Reg::R0, 3, few);
    a.go(enough);
    a.here(few);
    a.op(Op::Or, Reg::R0, 4);
    a.here(enough);
    a.op(Op::Mov, Reg::R2, 0);
    for bits in [32, 16, 8, 4, 2, 1] {
        let small = a.label();
        a.op_reg(Op::Mov, Reg::R3, Reg::R0);
        a.op(Op::ShiftRight, Reg::R3, bits);
        a.jump(If::AtMost, Reg::R3, 3, small);
        a.op_reg(Op::Mov, Reg::R0, Reg::R3);
        a.op(Op::Add, Reg::R2, bits);
        a.here(small);
    }
    // R0 is 4 to 7 now, R2 by how many bits it was shifted.
    let within = a.label();
    let last = i32::try_from(classes.saturating_sub(1)).unwrap_or(0);
    a.op(Op::ShiftLeft, Reg::R2, 2);
    a.op(Op::And, Reg::R0, 3);
    a.op_reg(Op::Add, Reg::R2, Reg::R0);
    a.jump(If::AtMost, Reg::R2, last, within);
    a.op(Op::Mov, Reg::R2, last);
    a.here(within);
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;

    /// What the instructions leave in R2, for `value` in R0: those that are used here, as the standard defines them.
    fn run(code: &[u64], value: u64) -> u64 {
        let mut registers = [0u64; 11];
        registers[0] = value;
        let mut at = 0;
        while let Some(instruction) = code.get(at) {
            let [op, places, low, high, number @ ..] = instruction.to_le_bytes();
            let to = usize::from(places & 15);
            let other = match op & 8 {
                0 => i64::from(i32::from_le_bytes(number)).cast_unsigned(),
                _ => registers[usize::from(places >> 4)],
            };
            let (is_jump, jumped) = match (op & 7, op & 0xf0) {
                (5, 0x00) => (true, true),
                (5, 0xb0) => (true, registers[to] <= other),
                (5, 0x90) => return registers[2],
                _ => (false, false),
            };
            if !is_jump {
                registers[to] = match op & 0xf0 {
                    0x00 => registers[to].wrapping_add(other),
                    0x40 => registers[to] | other,
                    0x50 => registers[to] & other,
                    0x60 => registers[to] << other,
                    0x70 => registers[to] >> other,
                    0xb0 => other,
                    op => panic!("{op:#x}"),
                };
            }
            let away = if jumped { i16::from_le_bytes([low, high]) } else { 0 };
            at = at.checked_add_signed(isize::from(away)).unwrap() + 1;
        }
        panic!("it has no end")
    }

    #[test]
    fn each_value_is_in_the_first_class_whose_upper_end_is_not_below_it() {
        for classes in [168, 256] {
            let mut a = Assembler::default();
            classify(&mut a, classes);
            a.exit();
            let code = a.finish().unwrap();
            let powers = (2..64).map(|bits| 1u64 << bits);
            let near = powers.flat_map(|p| [p - 1, p, p + 1, p + p / 4, p + p / 2 - 1]);
            for value in (0..5000).chain(near).chain([u64::MAX]) {
                let class = usize::try_from(run(&code, value)).unwrap();
                if class == classes - 1 {
                    assert!(value > upper(class - 1), "{value} {class}");
                    continue;
                }
                assert!(value <= upper(class), "{value} {class} {}", upper(class));
                assert!(class == 0 || value < 4 || value > upper(class - 1), "{value} {class}");
            }
        }
        assert_eq!((upper(0), upper(3), upper(4), upper(247)), (4, 7, 9, u64::MAX));
    }
}
