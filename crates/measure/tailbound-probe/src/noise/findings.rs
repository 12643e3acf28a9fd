// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a polling loop saw, as figures.
//!
//! Units: %, ns, 1/s. Shares are of the time polled: without rests and without
//! what recording took.

use tailbound_core::number::Real as _;
use tailbound_core::record::FigureRecord;
use tailbound_core::units::format_ns_i64;
use tailbound_core::{Finding, Impact};
use tailbound_rt::poll::{Kind, Settings, Tally};
use tailbound_rt::ticks::Scale;

use crate::figures::of_cpu as figure;
use crate::noise::observed_share;
use crate::noise::poll_settings::{PollSettings, THRESHOLD_NS};
use crate::thread_group::ProbeOutput;

const SECOND_NS: f64 = 1e9;

fn kinds(tally: &Tally) -> [(&'static str, Kind, &'static str); 4] {
    [
        ("tasks", tally.task, "gaps in which another task ran"),
        (
            "interrupts",
            tally.interrupt,
            "gaps in which the kernel was entered and came straight back",
        ),
        (
            "outside",
            tally.outside,
            "gaps in which this CPU's kernel was not entered: firmware, hypervisor, hardware",
        ),
        ("unknown", tally.unknown, "gaps whose cause this machine does not show"),
    ]
}

/// Figures and findings of one CPU.
pub(super) fn of(
    cpu: u32,
    tally: &Tally,
    settings: &Settings,
    way: &PollSettings,
    scale: Scale,
    output: &mut ProbeOutput,
) {
    let polled_ns = tally.span_ns.saturating_sub(tally.rested_ns).saturating_sub(tally.own_ns);
    let polled = polled_ns.max(1).real();
    let percent = |ns: i64| ns.real() / polled * 100.0;
    let all = tally.gaps();
    let mut add = |name: &str, value: f64, unit: &str, note: String| {
        output.figures.push(figure(name, cpu, value, unit, note));
    };
    add(
        "noise-share",
        percent(all.ns),
        "%",
        format!("of the time polled; {} gaps, the longest {}", all.n, format_ns_i64(all.ns_max)),
    );
    for (name, kind, what) in kinds(tally) {
        if kind.n > 0 || name == "outside" {
            let note = format!("{what}: {}", kind.n);
            add(&format!("noise-{name}"), percent(kind.ns), "%", note);
            let longest = "the longest of them".to_owned();
            add(&format!("noise-{name}-longest"), kind.ns_max.real(), "ns", longest);
        }
    }
    let least = if all.n == 0 {
        String::new()
    } else {
        format!("; the shortest {}", format_ns_i64(tally.gap_ns_min))
    };
    add(
        "gaps",
        all.n.real() / polled * SECOND_NS,
        "1/s",
        format!(
            "longer than a turn by {}{least}",
            format_ns_i64(way.least_ns.max(way.threshold_ns.unwrap_or(THRESHOLD_NS)))
        ),
    );
    add("quiet-longest", tally.quiet_ns_max.real(), "ns", "longest time without a gap".to_owned());
    let turn = polled / tally.turns.max(1).real();
    let shortest = scale.ns(tally.turn_ticks_min);
    add(
        "turn",
        turn,
        "ns",
        format!(
            "a turn of the loop, on average; the shortest {}, the one gaps are counted beyond {}",
            format_ns_i64(shortest),
            format_ns_i64(scale.ns(settings.turn_ticks))
        ),
    );
    let span = tally.span_ns.max(1).real();
    let note = format!(
        "of the run; recording took {:.2} %, rests {:.1} %",
        tally.own_ns.real() / span * 100.0,
        tally.rested_ns.real() / span * 100.0
    );
    add("polled", polled / span * 100.0, "%", note);
    if way.outside_only {
        observed_share::of_cpu(cpu, tally, output);
    }
    if tally.late_start_ns > 0 {
        output.findings.push(Finding::new(
            &format!("late-start-{cpu}"),
            Impact::Notice,
            format!("the loop on CPU {cpu} began {} late", format_ns_i64(tally.late_start_ns)),
        ));
    }
}

/// Interrupts of one CPU by name.
pub(super) fn interrupts(cpu: u32, taken: &[(String, u64)], span_ns: i64) -> FigureRecord {
    let rate = |n: u64| n.real() / span_ns.real() * SECOND_NS;
    let total: u64 = taken.iter().map(|(_, n)| n).sum();
    let named: Vec<String> =
        taken.iter().take(4).map(|(name, n)| format!("{name} {:.0}/s", rate(*n))).collect();
    let note = if named.is_empty() { "none".to_owned() } else { named.join(", ") };
    figure("interrupts", cpu, rate(total), "1/s", format!("by /proc/interrupts: {note}"))
}
