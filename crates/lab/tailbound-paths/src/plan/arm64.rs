// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plan of a 64-bit ARM kernel: its sets of vectors, and where it goes over to another thread.
//!
//! Context: SETUP.
//! A set has 16 vectors of 0x80 bytes: synchronous, interrupt, fast interrupt, error; of the kernel on the other stack, of the
//! kernel, of user mode, of 32-bit user mode. Where a CPU needs a mitigation, exceptions of user mode enter by another set.
//! Not here: where threads keep their preemption count, which the plugin finds.
//! Source: Arm ARM (DDI 0487), D1.10; Linux arch/arm64/kernel/entry.S (`vectors`, `__bp_harden_el1_vectors`, `cpu_switch_to`).

use super::{Own, PlanError, Symbols, one};
use crate::record::point;
use crate::wakeups::ENTRIES;

/// Lengths of a set and of a vector.
const SET_BYTES: u64 = 0x800;
const VECTOR_BYTES: u64 = 0x80;
/// Within a set: interrupts of the kernel, of user mode, of 32-bit user mode.
const INTERRUPTS: [u64; 3] = [0x280, 0x480, 0x680];

/// Does an exception enter there, if it lies within a set?
pub(super) fn is_vector(address: u64) -> bool {
    address.is_multiple_of(VECTOR_BYTES)
}

/// Of a vector: all but synchronous ones.
pub(super) fn is_interrupt(vector: u64) -> bool {
    vector & 0x180 != 0
}

pub(super) fn own(symbols: &Symbols<'_>) -> Result<Own, PlanError> {
    let mut sets = vec![symbols.needed("vectors")?];
    if let Some(begin) = symbols.named("__bp_harden_el1_vectors") {
        let end = symbols.end(begin).unwrap_or(begin);
        let more = (0..).map(|nth| begin + nth * SET_BYTES);
        sets.extend(
            more.take_while(|at| at + SET_BYTES <= end).take(ENTRIES / INTERRUPTS.len() - 1),
        );
    }
    let mut points: Vec<(u64, u64, u64)> =
        sets.iter().map(|set| (*set, set + SET_BYTES, point::ENTER)).collect();
    points.push(one(symbols.needed("__switch_to")?, point::SWITCH));
    let entries = sets.iter().flat_map(|set| INTERRUPTS.map(|at| set + at)).collect();
    Ok(Own { entries, offset_at: 0, count: 0, count_bytes: 0, current: 0, points })
}

#[cfg(test)]
mod tests {
    use super::super::{Guest, Plan};
    use super::*;

    const SYMBOLS: &str = "\
ffff800008010000 T _stext
ffff800008011000 T vectors
ffff800008011800 t __bad_stack
ffff800008014000 T __bp_harden_el1_vectors
ffff800008015800 t next
ffff800008020000 T __switch_to
ffff800008020100 T hrtimer_interrupt
ffff800008020200 t hrtimer_wakeup
ffff800008020300 t __schedule
ffff80000a000000 D init_task
";

    #[test]
    fn each_set_of_vectors_is_watched_and_has_three_entries_of_interrupts() {
        let found = own(&Symbols::of(SYMBOLS)).unwrap();
        let base = 0xffff_8000_0801_0000;
        assert_eq!(found.entries.len(), 4 * 3);
        assert_eq!(found.entries[..3], [base + 0x1280, base + 0x1480, base + 0x1680]);
        assert_eq!(found.entries[3], base + 0x4280);
        let sets = found.points.iter().filter(|p| p.2 == point::ENTER);
        assert_eq!(sets.map(|p| p.0 - base).collect::<Vec<_>>(), [0x1000, 0x4000, 0x4800, 0x5000]);
        let plan = Plan::of(SYMBOLS, Guest::Arm64).unwrap();
        assert!(plan.enters(base + 0x4480) && !plan.enters(base + 0x4484));
        assert!(!plan.enters(base) && !plan.enters(base + 0x1800));
        assert_eq!(plan.text(), base + 0x1_0300);
    }

    #[test]
    fn calls_and_faults_are_no_interrupts() {
        let of = |at: u64| Guest::Arm64.is_interrupt(0xffff_8000_0801_1000 + at, "vectors");
        assert!(of(0x280) && of(0x480) && of(0x500) && of(0x580));
        assert!(!of(0x200) && !of(0x400) && !of(0x600));
    }

    #[test]
    fn a_kernel_without_a_name_that_is_needed_is_refused() {
        let text = SYMBOLS.replace("__switch_to", "other");
        assert_eq!(Plan::of(&text, Guest::Arm64), Err(PlanError::Lacking("__switch_to")));
    }
}
