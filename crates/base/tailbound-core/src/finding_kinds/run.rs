// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings about the run: its threads, its loads, its supervisor, its benchmarks.

use super::FindingKind;

pub(super) const KINDS: &[FindingKind] = &[
    FindingKind::new("no-load", "Tailbound started no load for the run."),
    FindingKind::new("load-failed", "A load failed."),
    FindingKind::new("load-idle", "A load did nothing, or never began."),
    FindingKind::new("load-reduced", "A load is smaller than usual.")
        .meaning("There is too little memory for its usual size: compare with runs under the same load only.")
        .remedy("Give it more memory, or set its options explicitly: then a load that does not fit is refused."),
    FindingKind::new("load-late", "A load began after its time.")
        .meaning("The loads did not keep to their phases.")
        .remedy("Leave the supervisor a CPU that is not measured (--cpus), or use fewer loads."),
    FindingKind::new("load-ended", "A load ended before the run.")
        .meaning("After that the machine was no longer under this load.")
        .remedy("Use a load without an end (cmd: repeat=yes; hackbench: no loops=)."),
    FindingKind::new("load-stalled", "A load stood still for a while.")
        .meaning("Real-time threads or a limit may have kept it from the CPU."),
    FindingKind::new("supervisor-late", "The supervisor of the run came late.")
        .meaning("The measured threads do not wait for it. But it collects their records, flushes the file, starts and stops loads with phases and applies the stopping rule: all of that was late.")
        .remedy("Leave it a CPU that is not measured (--cpus), or use fewer loads. If the disk of the file is slow, write to another one with -o."),
    FindingKind::new("no-self-cost", "The cost of the tool itself could not be measured."),
    FindingKind::new("thread-failed", "A system call of a measured thread failed.")
        .numbered()
        .meaning("The figures of this thread end where it failed."),
    FindingKind::new("runaway", "A measured thread never slept, and the guard stopped the run.")
        .meaning("The thread was never on time; to continue would have blocked its CPU for all other tasks.")
        .remedy("Choose a longer interval."),
    FindingKind::new("work-failed", "A benchmark failed.")
        .numbered()
        .meaning("This repetition has no times; the latencies are not affected."),
    FindingKind::new("works-cut-short", "Not every benchmark was run.")
        .meaning("The cost of the system comes from the completed repetitions only."),
    FindingKind::new("acted", "Commands or signals were sent because wake-ups were late, as requested."),
    FindingKind::new("cycles-not-ended", "A cycle of the program has a start and no end.")
        .meaning("Their completion is not known; the figures of `completion` leave them out.")
        .remedy("Call tb_cycle_end on every way out of the cycle."),
    FindingKind::new("calls-refused", "The library refused a call of the program.")
        .meaning("A due time was not after the one before, or an end had no start: those cycles are not in the figures.")
        .remedy("Look at what tb_cycle_start and tb_cycle_end return."),
];
