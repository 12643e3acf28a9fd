// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plan of an x86-64 kernel: entries by their names, the CPU's own data.
//!
//! Context: SETUP.
//! Source: Linux arch/x86/entry/entry_64.S, arch/x86/include/asm/{current,idtentry,preempt}.h.

use super::{Own, PlanError, Symbols, one};
use crate::record::point;

/// Entries into the kernel, by the beginnings of their names.
const ENTRIES: [&str; 2] = ["asm_", "entry_"];
/// Of these, interrupts and exceptions.
const TAKEN: [&str; 2] = ["asm_sysvec_", "asm_exc_"];
/// Tables of entries: one every few bytes, up to the next symbol.
const TABLES: [&str; 2] = ["irq_entries_start", "spurious_entries_start"];

/// Disable interrupts and count it: of stock kernels, and of PREEMPT_RT.
const COUNTED: [&str; 2] = ["_raw_spin_lock_irq_disable", "local_interrupt_disable"];

pub(super) fn own(symbols: &Symbols<'_>) -> Result<Own, PlanError> {
    // One structure since 6.2, variables of their own before and since 6.15.
    let (count, current) = match symbols.named("pcpu_hot") {
        Some(hot) => (hot + 8, hot),
        None => (symbols.needed("__preempt_count")?, symbols.needed("current_task")?),
    };
    // With calls that count how often interrupts are disabled (seen in 7.3) it has 8 bytes.
    let is_wide = COUNTED.iter().any(|name| symbols.named(name).is_some());
    let count_bytes = if is_wide && symbols.room(count) == 8 { 8 } else { 4 };
    let mut points = Vec::new();
    for s in symbols.upper() {
        if TAKEN.iter().any(|begin| s.name.starts_with(begin)) {
            points.push(one(s.address, point::ENTER));
        } else if ENTRIES.iter().any(|begin| s.name.starts_with(begin)) {
            points.push(one(s.address, point::ENTRY));
        }
        if TABLES.contains(&s.name) {
            points.push((s.address, symbols.end(s.address).unwrap_or(s.address + 8), point::ENTER));
        }
    }
    Ok(Own {
        entries: vec![symbols.needed("asm_sysvec_apic_timer_interrupt")?],
        offset_at: symbols.named("__per_cpu_offset").unwrap_or(0),
        count,
        count_bytes,
        current,
        points,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::{Guest, Plan, TimerForm};
    use super::*;
    use crate::record::plan;

    pub(crate) const OLD: &str = "\
0000000000014d00 A __preempt_count
0000000000014d80 A current_task
ffffffff81000000 T hrtimer_interrupt
ffffffff81000100 T hrtimer_wakeup
ffffffff81000200 t __schedule
ffffffff81a00000 T irq_entries_start
ffffffff81a00400 T asm_sysvec_apic_timer_interrupt
ffffffff81a00500 T asm_exc_page_fault
ffffffff81a00600 T entry_SYSCALL_64
ffffffff82000000 D init_task
ffffffff82000100 D __per_cpu_offset
";

    #[test]
    fn kernels_with_variables_and_with_one_structure_are_known() {
        let symbols = Symbols::of(OLD);
        let found = own(&symbols).unwrap();
        assert_eq!(
            (found.count, found.current, found.offset_at),
            (0x14d00, 0x14d80, 0xffff_ffff_8200_0100)
        );
        assert!(found.points.contains(&(
            0xffff_ffff_81a0_0000,
            0xffff_ffff_81a0_0400,
            point::ENTER
        )));
        assert!(found.points.contains(&one(0xffff_ffff_81a0_0600, point::ENTRY)));
        let text = OLD.replace("A __preempt_count", "A pcpu_hot");
        let found = own(&Symbols::of(&text)).unwrap();
        assert_eq!((found.count, found.current), (0x14d08, 0x14d00));
        let text = OLD.replace("__preempt_count", "other");
        assert_eq!(Plan::of(&text, Guest::X86_64), Err(PlanError::Lacking("__preempt_count")));
    }

    #[test]
    fn a_count_of_eight_bytes_is_known() {
        let bytes = |text: &str| own(&Symbols::of(text)).unwrap().count_bytes;
        let room = |bytes: u64| format!("{OLD}{:016x} A this_cpu_off\n", 0x14d00 + bytes);
        let counted = "ffffffff81000900 T _raw_spin_lock_irq_disable\n";
        assert_eq!(bytes(&(room(8) + counted)), 8);
        assert_eq!((bytes(&room(8)), bytes(&(room(4) + counted))), (4, 4));
    }

    #[test]
    fn timers_that_are_linked_have_their_time_further_on() {
        let word = |text: &str, at: usize| {
            let bytes = Plan::of(text, Guest::X86_64).unwrap().bytes();
            let word = bytes.chunks_exact(8).nth(at).unwrap();
            u64::from_ne_bytes(word.try_into().unwrap())
        };
        let times = |text: &str| (word(text, plan::TIMER_DUE), word(text, plan::TIMER_THREAD));
        assert_eq!(times(OLD), (24, 64));
        let linked = format!("{OLD}ffffffff81000900 T timerqueue_linked_add\n");
        assert_eq!(times(&linked), (40, 80));
        assert_eq!(Guest::Arm32.timer(TimerForm::Tree), (16, 48));
        assert_eq!(Guest::Arm32.timer(TimerForm::Linked), (24, 64));
    }

    #[test]
    fn an_exception_is_no_interrupt() {
        let of = |name| Guest::X86_64.is_interrupt(0, name);
        assert!(
            of("asm_sysvec_apic_timer_interrupt") && of("irq_entries_start") && of("asm_exc_nmi")
        );
        assert!(!of("asm_exc_page_fault"));
    }
}
