// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the probe `clocks` tells beside its latencies: figures of every clock, and violations.
//!
//! Units: ns; parts per million.

use tailbound_core::Finding;
use tailbound_core::finding::Impact;
use tailbound_core::number::Real as _;
use tailbound_core::record::FigureRecord;
use tailbound_core::units::format_ns;
use tailbound_sys::readings::{READINGS, Reading, that_enter_the_kernel};

use super::burst::{ClockReadings, TOGETHER, Tally};
use super::drift::{self, Drift};
use crate::figures::figure;
use crate::thread_group::ProbeOutput;

/// Clocks that may be set: a step back is somebody's doing.
const SETTABLE: [&str; 5] = ["realtime", "tai", "gettimeofday", "realtime-coarse", "time"];
/// What the sum of thread clocks may differ by, as their accounting is not made at one moment.
const SUM_SLACK_NS: i64 = 1_000_000;

/// Everything, of all threads together.
pub(super) fn output(tallies: &[Tally], source: &str, drift: Drift) -> ProbeOutput {
    let mut output = ProbeOutput::default();
    let entering = that_enter_the_kernel();
    for (i, (name, reading)) in READINGS.iter().enumerate() {
        let mut of_all = tallies.iter().filter_map(|t| t.seen.get(i));
        let Some(mut seen) = of_all.next().cloned() else { continue };
        of_all.for_each(|s| seen.add(s));
        let way = match entering.as_ref().map(|e| e.get(name)) {
            Ok(Some(true)) => "by a system call",
            Ok(Some(false)) if *reading == Reading::Counter => "one instruction",
            Ok(Some(false)) => "without a system call (vDSO)",
            _ => "by a way that could not be found out",
        };
        one_clock(&mut output, name, *reading, &seen, way);
    }
    let kernel = figure(
        "clocks-by-system-call".to_owned(),
        (entering.as_ref().map_or(-1, |e| {
            i64::try_from(e.values().filter(|enters| **enters).count()).unwrap_or(-1)
        }))
        .real(),
        "1",
        format!("of {} ways to read a clock; the clock source is {source}", READINGS.len()),
    );
    match &entering {
        Ok(_) => output.figures.push(kernel),
        Err(e) => output.findings.push(Finding::new(
            "clock-ways-unknown",
            Impact::Notice,
            format!("it is unknown which clocks need a system call: {e}"),
        )),
    }
    if let Some((ppm, low, high)) = drift.end() {
        output.figures.push(FigureRecord {
            low: Some(low),
            high: Some(high),
            ..figure(
                "realtime-drift".to_owned(),
                ppm,
                "ppm",
                "CLOCK_REALTIME against CLOCK_MONOTONIC_RAW over the run: what NTP or PTP corrects, or a step".to_owned(),
            )
        });
    }
    thread_sum(&mut output);
    output
}

fn one_clock(
    output: &mut ProbeOutput,
    name: &str,
    reading: Reading,
    seen: &ClockReadings,
    way: &str,
) {
    let resolution = match reading.resolution_ns() {
        Ok(Some(ns)) => format!("resolution {}", format_ns(ns.real())),
        Ok(None) => "no resolution of its own".to_owned(),
        Err(e) => {
            output.findings.push(Finding::new(
                &format!("no-clock-{name}"),
                Impact::Notice,
                format!("{name}: this kernel does not know it: {e}"),
            ));
            return;
        }
    };
    let note = format!("cost of a read, {way}; {resolution}");
    for (label, p) in [("p50", 0.5), ("p99", 0.99)] {
        if let Some(ns) = seen.cost_ns(p).and_then(|ns| i64::try_from(ns).ok()) {
            let note = if label == "p50" { note.clone() } else { String::new() };
            output.figures.push(figure(format!("read-{name}-{label}"), ns.real(), "ns", note));
        }
    }
    let max_note = format!("largest mean of {TOGETHER} reads together");
    output.figures.push(figure(
        format!("read-{name}-max"),
        seen.cost_ns_max.real(),
        "ns",
        if name == "monotonic" { max_note } else { String::new() },
    ));
    if reading != Reading::Counter {
        let note = format!("longest from one reading to the next, of {} readings", seen.readings);
        let note = if name == "monotonic" { note } else { String::new() };
        output.figures.push(figure(format!("gap-{name}-max"), seen.gap_ns_max.real(), "ns", note));
    }
    for (where_, id, back) in
        [("on one CPU", "back", seen.same_cpu), ("across CPUs", "back-across", seen.across)]
    {
        if back.times == 0 {
            continue;
        }
        let settable = SETTABLE.contains(&name);
        let impact = if settable { Impact::Doubt } else { Impact::Violation };
        let meaning = if settable {
            "This clock may be set: a step back is what somebody, or NTP, did to it. Nothing may be timed by it."
        } else {
            "A reading was lower than one that had been finished before it was begun: times between two stamps of this clock can be wrong by so much."
        };
        output.findings.push(
            Finding::listed(
                &format!("clock-{id}-{name}"),
                impact,
                format!(
                    "{name} went back {where_} {} times in {} readings, by {} at most",
                    back.times,
                    seen.readings,
                    format_ns(back.most_ns.real())
                ),
            )
            .meaning(meaning),
        );
    }
}

/// Thread clocks against the process clock.
fn thread_sum(output: &mut ProbeOutput) {
    let Some(sums) = drift::sums() else {
        output.findings.push(Finding::new(
            "thread-clocks-unknown",
            Impact::Notice,
            "it is unknown whether thread clocks add up: threads were created or ended in each attempt",
        ));
        return;
    };
    output.figures.push(figure(
        "thread-clocks-off".to_owned(),
        sums.outside_ns.real(),
        "ns",
        format!(
            "what thread clocks ({}) contradict the process clock ({}) by",
            format_ns(sums.threads_ns.real()),
            format_ns(sums.process_ns.real())
        ),
    ));
    if sums.outside_ns > SUM_SLACK_NS {
        output.findings.push(Finding::listed(
            "thread-clocks-off",
            Impact::Violation,
            format!(
                "thread clocks advanced by {}, the process clock by {}",
                format_ns(sums.threads_ns.real()),
                format_ns(sums.process_ns.real())
            ),
        ));
    }
}
