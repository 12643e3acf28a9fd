// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plan of a 32-bit ARM kernel: its vectors, which lie where all such kernels have them.
//!
//! Context: SETUP.
//! A thread's own structure, with its flags and its preemption count, is its beginning since 5.16, and the kernel has a function
//! then that it had not before. Before, the structure is below the stack and has a pointer to the thread. Dovetail has a word
//! of its own in it. (What else tells is data, which Debian's 32-bit kernels do not name.)
//! Source: Arm ARM (DDI 0406), B1.8; Linux arch/arm/kernel/{entry-armv.S,process.c}, arch/arm/include/asm/{memory,thread_info}.h;
//! Dovetail's kernel/irq/pipeline.c.

use std::fmt::Write as _;

use super::{Own, PlanError, Symbols, one};
use crate::record::point;

/// The kernel's addresses and those of its modules begin here.
const BEGIN: u64 = 0xbf00_0000;
/// As they are told: with the upper half set.
const UPPER: u64 = 0xffff_ffff << 32;
/// Vectors, as they are told, and how long all of them are.
const VECTORS: u64 = UPPER | 0xffff_0000;
const VECTORS_BYTES: u64 = 0x20;
const OF_INTERRUPTS: u64 = 0x18;
const OF_FAST_INTERRUPTS: u64 = 0x1c;

/// The text of /proc/kallsyms with addresses as they are told, and with a name for the vectors.
pub(super) fn lifted(kallsyms: &str) -> String {
    let mut text = String::with_capacity(kallsyms.len() * 2);
    for line in kallsyms.lines() {
        let (address, rest) = line.split_once(' ').unwrap_or((line, ""));
        let upper = u64::from_str_radix(address, 16).is_ok_and(|at| (BEGIN..1 << 32).contains(&at));
        let _infallible = writeln!(text, "{}{address} {rest}", if upper { "ffffffff" } else { "" });
    }
    let _infallible = writeln!(text, "{VECTORS:x} t vectors");
    text
}

/// Does an exception enter there?
pub(super) fn is_vector(address: u64) -> bool {
    (VECTORS..VECTORS + VECTORS_BYTES).contains(&address)
}

/// Of a vector.
pub(super) fn is_interrupt(vector: u64) -> bool {
    [OF_INTERRUPTS, OF_FAST_INTERRUPTS].contains(&(vector % VECTORS_BYTES))
}

pub(super) fn own(symbols: &Symbols<'_>) -> Result<Own, PlanError> {
    let own_word = if symbols.named("inband_irq_enable").is_some() { 4 } else { 0 };
    let count = 4 + own_word;
    // Behind the count and the limit of addresses.
    let current = if symbols.named("put_task_stack").is_some() { 0 } else { count + 8 };
    let points = vec![
        (VECTORS, VECTORS + VECTORS_BYTES, point::ENTER),
        one(symbols.needed("__switch_to")?, point::SWITCH),
    ];
    let entries = vec![VECTORS + OF_INTERRUPTS];
    Ok(Own { entries, offset_at: 0, count, count_bytes: 0, current, points })
}

#[cfg(test)]
mod tests {
    use super::super::{Guest, Plan};
    use super::*;

    const SYMBOLS: &str = "\
00001000 A cpu_v7_suspend_size
bf000010 t of_a_module [module]
c0100000 T _stext
c0102000 T __switch_to
c0103000 T hrtimer_interrupt
c0104000 t hrtimer_wakeup
c0105000 t __schedule
c0106000 T put_task_stack
";

    #[test]
    fn addresses_of_the_kernel_have_their_upper_half_set() {
        let text = Guest::Arm32.told(SYMBOLS.to_owned());
        assert!(text.starts_with(
            "00001000 A cpu_v7_suspend_size\nffffffffbf000010 t of_a_module [module]\n"
        ));
        assert!(text.ends_with("ffffffffffff0000 t vectors\n"));
        let plan = Plan::of(&text, Guest::Arm32).unwrap();
        assert_eq!(plan.marks().entries[..2], [0xffff_ffff_ffff_0018, 0]);
        assert_eq!(plan.text(), 0xffff_ffff_c010_5000);
        assert!(plan.enters(VECTORS + 4) && !plan.enters(VECTORS + 0x20));
        assert!(Guest::Arm32.is_interrupt(VECTORS + 0x18, "vectors"));
        assert!(!Guest::Arm32.is_interrupt(VECTORS + 0x8, "vectors"));
    }

    #[test]
    fn where_the_structure_of_a_thread_is_and_what_is_in_it() {
        let of = |symbols: &str| {
            let plan = Plan::of(&Guest::Arm32.told(symbols.to_owned()), Guest::Arm32).unwrap();
            (plan.count, plan.current)
        };
        let below = SYMBOLS.replace("put_task_stack", "other");
        let dovetail = "c0107000 T inband_irq_enable\n";
        assert_eq!(of(SYMBOLS), (4, 0));
        assert_eq!(of(&below), (4, 12));
        assert_eq!(of(&format!("{SYMBOLS}{dovetail}")), (8, 0));
        assert_eq!(of(&format!("{below}{dovetail}")), (8, 16));
    }
}
