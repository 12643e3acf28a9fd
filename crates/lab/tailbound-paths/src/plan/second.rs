// SPDX-License-Identifier: MIT OR Apache-2.0
//! A dual kernel: what its second kernel below Linux calls when a timer wakes a thread.
//!
//! Context: SETUP. Dovetail hands the timer's interrupt to the second kernel first.
//! Source: Xenomai 3 kernel/cobalt/{thread,sched}.c and pipeline/intr.c; EVL kernel/evl/{thread,clock}.c and sched/core.c.

use super::Symbols;
use crate::wakeups::Second;

/// Its handler of timers, and its scheduler.
const KNOWN: [(&str, &str); 2] =
    [("xnintr_core_clock_handler", "___xnsched_run"), ("evl_core_tick", "__evl_schedule")];
/// The function of a thread's timer, in both.
const WAKE: &str = "timeout_handler";

/// The second kernel, where there is one, and what it calls for a timer of a thread.
pub(super) fn found(symbols: &Symbols<'_>) -> Option<(Second, u64)> {
    let known = |(interrupt, schedule): &(&str, &str)| {
        Some(Second { interrupt: symbols.named(interrupt)?, schedule: symbols.named(schedule)? })
    };
    let second = KNOWN.iter().find_map(known)?;
    // Others may have the name: its own is not far from its scheduler.
    let all = symbols.upper().filter(|s| s.name == WAKE).map(|s| s.address);
    Some((second, all.min_by_key(|at| at.abs_diff(second.schedule))?))
}

#[cfg(test)]
mod tests {
    use super::super::{Guest, Plan, X86_64_SYMBOLS};
    use super::*;

    #[test]
    fn the_timer_of_a_thread_is_the_one_beside_the_scheduler() {
        let text = format!(
            "{X86_64_SYMBOLS}ffffffff81700000 t timeout_handler\nffffffff81100000 T ___xnsched_run\n\
             ffffffff81101000 t timeout_handler\nffffffff81102000 T xnintr_core_clock_handler\n"
        );
        let (second, wake) = found(&Symbols::of(&text)).unwrap();
        let at = 0xffff_ffff_8110_0000;
        assert_eq!(second, Second { interrupt: at + 0x2000, schedule: at });
        assert_eq!(wake, at + 0x1000);
        assert_eq!(Plan::of(&text, Guest::X86_64).unwrap().marks().second, Some(second));
        assert_eq!(found(&Symbols::of(X86_64_SYMBOLS)), None);
    }
}
