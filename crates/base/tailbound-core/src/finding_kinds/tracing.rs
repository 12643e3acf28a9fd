// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings about what the kernel's tracing saw, and what it did not.

use super::FindingKind;

pub(super) const KINDS: &[FindingKind] = &[
    FindingKind::new("observed", "The kernel's tracing was on during the run, or the machine's own threads were observed at work."),
    FindingKind::new("not-observed", "The kernel's tracing could not be used.")
        .meaning("The run has the figures of the measured threads, and none of the kernel's tracing."),
    FindingKind::new("partly-observed", "The kernel's trace does not contain every wake-up.")
        .meaning("In these columns the maximum may be too small and the quantiles wrong. The threads' own figures (user) are complete, and the verdict is about them.")
        .remedy("Compare only columns that have all, or use --observe timerlat where the kernel has it."),
    FindingKind::new("trace-lost", "Trace events were overwritten before they were read."),
    FindingKind::new("trace-unreadable", "A part of the trace could not be read.")
        .meaning("What the kernel told lacks it; the threads' own figures are whole."),
    FindingKind::new("trace-left", "The trace instance of the run could not be removed.")
        .remedy("Close the program that reads it; the next run tries again."),
    FindingKind::new("trace-empty", "No late wake-up lies within the trace that was to be kept."),
    FindingKind::new("trace-kept", "The kernel's trace around the latest wake-up was kept."),
    FindingKind::new("trace-not-written", "The kept trace could not be written.")
        .meaning("The run file has what was told of late wake-ups; the trace itself is gone."),
    FindingKind::new("no-trace-guard", "Nothing would remove the trace instance if the program were killed."),
    FindingKind::new("blamed", "The kernel's events were recorded to find what makes wake-ups late.")
        .meaning("The threads' own figures include what that cost them.")
        .remedy("Make the same run without --blame and `tailbound compare` the two."),
    FindingKind::new("not-blamed", "What makes wake-ups late could not be recorded.")
        .meaning("The run has its figures; what made wake-ups late is not known."),
    FindingKind::new("not-all-blamed", "Not every late wake-up was analysed.")
        .meaning("The worst of each tenth of a second were. The ranking is of these.")
        .remedy("Choose a higher limit: --blame=TIME."),
    FindingKind::new("no-stacks", "Late wake-ups have no kernel stacks.")
        .meaning("The thread that kept another off its CPU is named; the place in the kernel and the owners of locks are not.")
        .remedy("Run as root, or with CAP_BPF and CAP_PERFMON, on a kernel with CONFIG_DEBUG_INFO_BTF that is not locked down to confidentiality."),
    FindingKind::new("irq-late", "The timer's interrupt came late.")
        .meaning("This part of a wake-up's latency passes before the kernel knows of it: interrupts were off, the CPU slept, or the hypervisor or firmware had it."),
    FindingKind::new("watched", "The program was watched with the kernel's events.")
        .meaning("The threads' own figures include what that cost them."),
    FindingKind::new("rules-broken", "The program broke rules for real-time programs.")
        .meaning("What broke a rule once may make the program late at any time, also where no deadline was missed here.")
        .remedy("The lines `violation` and docs/rules.md tell where, and what to do."),
    FindingKind::new("cycles-broken", "Cycles of the program are not counted: an event is missing.")
        .meaning("A cycle that is not counted may be the longest."),
    FindingKind::new("monitor-lost", "The monitor did not count every wake-up."),
    FindingKind::new("monitor-windows", "The monitor's run file has no line for some windows of threads."),
    FindingKind::new("run-files-dropped", "Older run files of the monitor were removed."),
];
