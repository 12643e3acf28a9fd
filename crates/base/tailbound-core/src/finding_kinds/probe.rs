// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings about a probe.

use super::FindingKind;

pub(super) const KINDS: &[FindingKind] = &[
    FindingKind::new("pulses-dropped", "Pulses were dropped because the queue of the machine was full.")
        .meaning("The thread was later than the queue is long. What was dropped has no latency; it would be among the greatest.")
        .remedy("Find what kept the thread with --blame, or send at a longer interval."),
    FindingKind::new("pulses-refused", "The kernel refused answers to pulses.")
        .meaning("The thread was there, and the kernel did not take its answer."),
    FindingKind::new("no-pulse", "No pulse came.")
        .remedy("Start the sender, and check address, port and firewall, or the wiring: docs/box.md."),
    FindingKind::new("pulses-lost", "Pulses never came to the thread.")
        .meaning("Their numbers are missing in the sequence. They were lost on the way, or by this machine; they are in no figure, and from outside they got no answer."),
    FindingKind::new("pulses-unfollowed", "Pulses came from more senders than are followed."),
    FindingKind::new("clock-set", "CLOCK_REALTIME was set while pulses came.")
        .meaning("How late the thread ran is missing in these.")
        .remedy("Let NTP slew the clock, or set it before the run."),
    FindingKind::new("pulses-twice", "Pulses came twice."),
    FindingKind::new("pulses-reordered", "Pulses came after later ones."),
    FindingKind::new("pulses-stale", "Pulses have a number too old to be placed."),
    FindingKind::new("arrivals-foreign", "Something arrived that is no pulse."),
    FindingKind::new("answer-path", "The time of an answer leaves out parts of its path."),
    FindingKind::new("edges-unseen", "Edges of the line were not seen.")
        .meaning("The kernel was later than the time between two edges, or the line rings. What was not seen got no answer.")
        .remedy("Look at the line with a logic analyser; send at a longer interval."),
    FindingKind::new("pulses-torn", "Pulses came only in part."),
    FindingKind::new("pulses-unstamped", "Pulses came without the kernel's stamp.")
        .meaning("How late the thread ran is missing in these.")
        .remedy("The kernel begins to stamp a moment after it was asked to: use a longer --warm-up."),
    FindingKind::new("clock-ways-unknown", "Which clocks need a system call is unknown."),
    FindingKind::new("no-clock", "The kernel does not know a clock.").numbered(),
    FindingKind::new("clock-back", "A clock went back.")
        .numbered()
        .remedy("Look at the clock source and at what the kernel logged about it."),
    FindingKind::new("thread-clocks-unknown", "Whether thread clocks add up is unknown."),
    FindingKind::new("thread-clocks-off", "Thread clocks do not add up to the clock of the process.")
        .meaning("CPU time is counted wrongly; CPU utilisation figures are not reliable."),
    FindingKind::new("sender-records-dropped", "Records of the sender's process were lost.")
        .meaning("The contexts of the sender lack them; the judged context is complete."),
    FindingKind::new("clock-skew-unknown", "The offset between the clocks of two CPUs could not be measured.")
        .meaning("A one-way latency is the difference of clock reads on two CPUs. Round trips are not affected: --round-trip yes.")
        .remedy("Keep both CPUs idle for a moment before and after the run."),
    FindingKind::new("clock-skew-unsteady", "The clocks of two CPUs contradict each other.")
        .meaning("One-way latencies between them are not reliable; round trips are read on one CPU.")
        .remedy("Use --round-trip yes, or another clocksource."),
    FindingKind::new("clock-skew", "The clocks of two CPUs may differ by more than the shortest hand-over.")
        .meaning("Part of what was measured one way may be the difference of two clocks.")
        .remedy("Use --round-trip yes: it is read on one CPU."),
    FindingKind::new("late-start", "A polling loop began late.").numbered(),
    FindingKind::new("counter-not-trusted", "The kernel does not trust the counter that the probe reads.")
        .meaning("A TSC that the kernel rejected may change its frequency or differ between CPUs."),
    FindingKind::new("counter-stood-still", "The counter that the probe reads did not advance."),
    FindingKind::new("counter-speed", "The counter that the probe reads changed its speed.")
        .meaning("Its ticks cannot be converted to time."),
    FindingKind::new("hwlat-means", "How hardware latency was measured."),
    FindingKind::new("hwlat-refused", "The kernel's hwlat tracer did not run.")
        .remedy("--with polling needs no tracer."),
    FindingKind::new("smi-unknown", "System management interrupts are not counted.")
        .remedy("On Intel hardware, as root: `modprobe msr`."),
    FindingKind::new("no-sample", "A CPU got no interrupt from the counter.")
        .numbered()
        .meaning("A counter that never overflows measures nothing."),
    FindingKind::new("nmi-source", "What caused the non-maskable interrupts."),
    FindingKind::new("duty-cycle", "Only a part of the time was observed."),
    FindingKind::new("hidden-by-interrupts", "Gaps with an interrupt in them are longer than interrupt handlers usually are.")
        .numbered()
        .meaning("Interrupt handlers are seldom that long: firmware may have run at the same time, which a polling loop cannot distinguish.")
        .remedy("--with tracer, which keeps interrupts off."),
    FindingKind::new("interrupts-unknown", "The number of interrupts is unknown."),
    FindingKind::new("siblings-measured", "Both threads of one core were measured.")
        .meaning("Each polling loop slowed the other down: turns are longer than those of one loop alone.")
        .remedy("Measure one CPU of each core."),
    FindingKind::new("queue-overflow", "The simulated queue overflowed.")
        .numbered()
        .remedy("`measure busy` on the same CPU shows what takes the time; a deeper queue bridges longer gaps."),
    FindingKind::new("rate-not-confirmed", "No packet rate was confirmed.")
        .numbered()
        .meaning("The search was still going on, or lowered its rate, when the run ended.")
        .remedy("Give the run more time (--duration), or begin nearer (--pps)."),
    FindingKind::new("deadline-missed", "A thread with a deadline policy missed its deadline."),
    FindingKind::new("overrun-asked-for", "The kernel reported overruns, as requested.")
        .meaning("A thread that wants more than its runtime is held back until the next period."),
    FindingKind::new("scaling-unknown", "How the work scales over CPUs is unknown."),
    FindingKind::new("period-missed", "A task was done after its period.")
        .numbered()
        .meaning("The set as a whole was not served in time: by its own work, by what is more urgent, or by what took the CPU away.")
        .remedy("Give the set less work, or find what ran instead with --observe on the probe cyclic."),
    FindingKind::new("ball-moved", "The offence ran while the defence wanted every CPU."),
    FindingKind::new("game-stuck", "A game did not end.")
        .meaning("A player of the defence never got a CPU, or was never let go on.")
        .remedy("Look for real-time tasks above the players, and at kernel.sched_rt_runtime_us."),
    FindingKind::new("trial-stuck", "A trial did not end."),
    FindingKind::new("not-preempted", "A task went on before the more urgent one that it had woken."),
    FindingKind::new("wrong-task-began", "A task began before more urgent ones had their CPUs."),
    FindingKind::new("shared-lock", "A lock shared by processes failed its urgent waiter."),
    FindingKind::new("priority-inversion", "A task waited for one of lower priority, despite inheritance."),
    FindingKind::new("control-failed", "The control trials did not show what they must.")
        .meaning("The control trials did not show the inversion that inheritance prevents, so its absence in the other trials proves less.")
        .remedy("Make --spin longer; look for something that takes the CPU away from the spinner."),
    FindingKind::new("wrong-order", "A less urgent task went on before a more urgent one that waited for the same."),
    FindingKind::new("step-wrong", "Steps of a traced process went wrong."),
];
