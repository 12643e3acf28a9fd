// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much of the time a look beneath the kernel observed, as it belongs into the verdict.
//!
//! Units: ns; shares of the time.

use tailbound_core::number::Real as _;
use tailbound_core::units::format_ns_i64;
use tailbound_core::{Finding, Impact};
use tailbound_rt::poll::Tally;

use crate::thread_group::ProbeOutput;

/// Below this share of the time looked at, a run without gaps proves little.
const DUTY_DOUBT: f64 = 0.5;
/// Gaps with an interrupt from which on firmware may well be part of them.
const LONG_INTERRUPT_NS: i64 = 100_000;

/// The share of the time that was looked at, as it belongs into the verdict.
pub(super) fn finding(looked: f64) -> Finding {
    let impact = if looked < DUTY_DOUBT { Impact::Doubt } else { Impact::Notice };
    Finding::new("duty-cycle", impact, format!("{:.1} % of the time was observed", looked * 100.0))
        .meaning("What happened in the rest of the time is not known.")
}

/// How much of the time of one CPU was looked at, and what may have been hidden from the look.
pub(super) fn of_cpu(cpu: u32, tally: &Tally, output: &mut ProbeOutput) {
    let away = [tally.rested_ns, tally.own_ns, tally.task.ns, tally.interrupt.ns, tally.unknown.ns];
    let eyes_ns = away.iter().fold(tally.span_ns, |left, ns| left.saturating_sub(*ns)).max(0);
    let share = eyes_ns.real() / tally.span_ns.max(1).real();
    let mut duty = finding(share);
    duty.id = format!("duty-cycle-{cpu}");
    duty.title = format!("CPU {cpu}: {}", duty.title);
    output.findings.push(duty);
    if tally.interrupt.ns_max < LONG_INTERRUPT_NS {
        return;
    }
    output.findings.push(Finding::listed(
        &format!("hidden-by-interrupts-{cpu}"),
        Impact::Notice,
        format!(
            "CPU {cpu}: gaps with an interrupt and no other task took up to {}",
            format_ns_i64(tally.interrupt.ns_max)
        ),
    ));
}
