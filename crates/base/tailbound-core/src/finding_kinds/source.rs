// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings about what another tool's file leaves open.

use super::FindingKind;

pub(super) const KINDS: &[FindingKind] = &[
    FindingKind::new(
        "source-nothing-found",
        "The tool records only what is above a threshold, and recorded nothing.",
    )
    .meaning("What is below the threshold is not recorded: there is no figure of it."),
    FindingKind::new("source-not-realtime", "The measured threads had no real-time policy.")
        .meaning("Any other thread could delay them, and timer slack of 50 µs is in every wake-up.")
        .remedy(
            "Measure with a real-time priority, for example -p 95, if a real-time task is meant.",
        ),
    FindingKind::new("source-dma-latency", "The tool held /dev/cpu_dma_latency.")
        .meaning("Deep idle states were off: without the tool running, wake-ups can be later.")
        .remedy("Set the same in production, or measure as deployed."),
    FindingKind::new("source-distance", "The threads had different intervals."),
    FindingKind::new("source-coarse-timers", "The kernel had no high-resolution timers.")
        .meaning(
            "Up to a tick (1 to 10 ms) of each latency is the timer's and not the scheduler's.",
        )
        .remedy("Enable CONFIG_HIGH_RES_TIMERS, and measure again."),
    FindingKind::new(
        "source-one-of-several",
        "The file holds several results, of which one was read.",
    ),
    FindingKind::new("source-smi", "The processor counted system management interrupts.")
        .meaning("Firmware took the CPU, unseen by the kernel.")
        .remedy("Look for the setting in the firmware that makes them, or ask its maker."),
    FindingKind::new(
        "source-other-quantity",
        "The tool does not measure wake-up latencies of timers.",
    ),
    FindingKind::new("source-cause", "The tool analysed the cause of a latency."),
    FindingKind::new("source-stack", "The tool recorded a stack."),
    FindingKind::new("source-carried", "The tool's output was part of another text."),
    FindingKind::new("source-other-tools", "The file also holds output of other tools."),
    FindingKind::new(
        "source-in-cells",
        "Values stand in cells of a histogram, at their lower edge.",
    )
    .meaning(
        "Each stands at the lower edge of its cell, and is as much as its width later at most.",
    ),
    FindingKind::new("source-taken", "The share of the time that interruptions took.")
        .meaning("A busy loop was kept from running for that share of the time."),
    FindingKind::new("source-one-sample", "The file holds one value only."),
    FindingKind::new("source-ended", "The source of pulses ended before its time."),
    FindingKind::new("source-gives-up", "The source gives a pulse up after some time."),
    FindingKind::new(
        "source-waits",
        "The source sends the next pulse only after the answer to the last one.",
    ),
    FindingKind::new("source-unanswered", "Pulses were not answered."),
    FindingKind::new("source-no-samples", "The file holds no sample."),
    FindingKind::new("source-skipped", "Pulses of the schedule were not sent."),
    FindingKind::new("source-spurious", "Answers belong to no pulse."),
    FindingKind::new("source-edges-lost", "Answers came faster than they were taken."),
    FindingKind::new("source-samples-lost", "Samples are missing."),
    FindingKind::new("source-constant", "All numbers of the file are the same."),
    FindingKind::new("source-no-missed", "The file does not account for missed activations."),
    FindingKind::new("source-inconsistent", "Figures of the file contradict each other."),
    FindingKind::new(
        "source-folded-early",
        "Early wake-ups were entered into the histogram by their magnitude.",
    ),
    FindingKind::new("source-clock-realtime", "The tool measured on a clock that can be set."),
    FindingKind::new("source-gravity", "The core's timers fired before their time on purpose."),
    FindingKind::new("source-no-count", "How many samples there are is not in the file."),
    FindingKind::new("source-no-histogram", "The file holds no histogram."),
    FindingKind::new("source-lost-tail", "Values are outside the histogram's range."),
    FindingKind::new("source-cut-off", "The file ends too soon."),
    FindingKind::new("source-mixed", "The file holds more than one measurement, or mixes several."),
    FindingKind::new("source-unit", "The unit of the figures is not certain."),
    FindingKind::new("source-abridged", "Rows of the histogram were left out."),
    FindingKind::new("source-torn", "Lines of the file are incomplete."),
    FindingKind::new("source-ambiguous", "Answers may belong to one of several pulses."),
    FindingKind::new("source-unknown-level", "A line was neither 0 nor 1."),
    FindingKind::new("source-in-flight", "A pulse had no answer yet when the capture ended."),
    FindingKind::new("source-resolution", "The sample rate is not in the capture."),
    FindingKind::new("source-short-level", "A level lasted about as long as a sample."),
    FindingKind::new("source-all-late", "Nearly every answer came after the next pulse."),
    FindingKind::new("source-rows-broken", "Rows of the file cannot be read."),
    FindingKind::new("source-failed", "The tool ended with a failure."),
    FindingKind::new("source-blind-time", "The tool looked for a part of the time only."),
    FindingKind::new("source-unknown-quantity", "What was measured is not in the file."),
];
