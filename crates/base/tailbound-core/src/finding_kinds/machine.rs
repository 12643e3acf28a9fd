// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings about the machine, during a run.

use super::FindingKind;

pub(super) const KINDS: &[FindingKind] = &[
    FindingKind::new("suspend", "The machine was suspended during the run.")
        .meaning("Nothing ran during the suspend, and CLOCK_MONOTONIC stood still; latencies around it are those of the resume.")
        .remedy("Inhibit suspend during the run (systemd-inhibit --what=sleep), and repeat it."),
    FindingKind::new("clock-step", "A clock was stepped during the run.")
        .remedy("Measure on CLOCK_MONOTONIC, or let the time service slew and not step."),
    FindingKind::new("clocksource-changed", "The kernel changed its clocksource during the run."),
    FindingKind::new("page-faults", "Page faults came inside the measuring loop.")
        .meaning("Each takes between a microsecond and a disk access. The measuring program caused them: its memory was not locked, or was unmapped.")
        .remedy("Allow memory locking (RLIMIT_MEMLOCK or CAP_IPC_LOCK), and repeat the run."),
    FindingKind::new("frequency", "The CPU frequency changed during the run.")
        .meaning("The figures were taken at different CPU speeds; runs at different speeds cannot be compared.")
        .remedy("For comparable runs fix the frequency: governor performance, equal minimum and maximum, and stop daemons that change them."),
    FindingKind::new("higher-priority", "Other threads of the same or a higher priority may run on the measured CPUs.")
        .remedy("If these threads are part of the system under test, leave them. Otherwise move them to other CPUs (taskset), lower their priority (chrt), or measure at a higher priority."),
    FindingKind::new("cpu-offline", "A measured CPU went offline during the run.")
        .meaning("Its thread was moved to another CPU, or stopped: the figures are not those of the CPU they are labelled with.")
        .remedy("Find what switches CPUs off (power management, a hotplug daemon, the hypervisor), and repeat the run."),
    FindingKind::new("affinity-changed", "Measured threads lost their CPU during the run.")
        .meaning("Another program, or the loss of a CPU, changed where the threads run: the figures mix CPUs.")
        .remedy("Stop the program that sets affinities (irqbalance does not; cgroup managers and isolation tools do), and repeat the run."),
    FindingKind::new("policy-changed", "Measured threads changed their policy during the run.")
        .meaning("Some of the figures were taken under another policy than the one they are labelled with.")
        .remedy("Find what demotes real-time threads (rtkit's watchdog does), and repeat the run."),
    FindingKind::new("kernel-log", "The kernel logged a warning or worse during the run.")
        .meaning("Printing and handling it takes time on the CPU where it happened, and the event itself may be the cause of a latency.")
        .remedy("Read the kernel log (dmesg) of that time."),
    FindingKind::new("cgroup-quota", "A CPU quota throttled the control group of the run.")
        .meaning("Threads of ordinary policy, among them the load, stood still for whole periods: latencies may come from the quota, or the load was lower than configured."),
    FindingKind::new("smt-sibling", "Measured CPUs share a core with other CPUs.")
        .meaning("What runs on the sibling takes execution units and cache from the measured CPU; a quiet sibling in the test may be a busy one in the field.")
        .remedy("Measure both siblings, switch the sibling off (cpuN/online), or load it as it will be loaded."),
    FindingKind::new("virtual-machine", "The machine is a virtual one.")
        .meaning("The hypervisor may stop a virtual CPU at any time, invisibly for the guest: the figures describe the guest together with the hypervisor and its other guests.")
        .remedy("For the machine's own figures measure on the host; for a guest, pin and reserve its virtual CPUs and measure under the host's full load."),
    FindingKind::new("kernel-debug-options", "The kernel is built with debug options.")
        .meaning("Such options lengthen critical sections many times: the figures say little about a kernel without them.")
        .remedy("Measure a kernel that is built without them."),
    FindingKind::new("tracing-active", "Somebody else traces the kernel.")
        .meaning("Each traced event or function adds to the latency that is measured.")
        .remedy("If it is not needed: write nop to /sys/kernel/tracing/current_tracer and 0 to /sys/kernel/tracing/events/enable."),
    FindingKind::new("idle-states", "A measured CPU may enter a deep idle state.")
        .meaning("A wake-up from it is late by that much. Whether it is entered depends on how long the CPU expects to idle, and so on the interval.")
        .remedy("Leave it if the product uses it too. Otherwise hold /dev/cpu_dma_latency, or disable the state (cpuidle/stateN/disable)."),
    FindingKind::new("steal-time", "The hypervisor took time from the measured CPUs.")
        .meaning("A guest cannot see when within a second this happened: any latency of the run may include it. The kernel counts steal time in steps of 10 ms.")
        .remedy("Against this time pin and reserve the virtual CPUs on the host, or measure on the bare machine. It is one possible cause: `tailbound check` names those within the guest, and `--blame` tells them apart."),
    FindingKind::new("stopped", "A signal stopped the measuring program.")
        .meaning("A signal (SIGSTOP, or Ctrl-Z) stopped this program and SIGCONT let it go on: the latencies of that time are its own, not the machine's.")
        .remedy("Repeat the run, and let nobody stop it."),
    FindingKind::new("thermal", "A CPU was throttled by heat.")
        .meaning("The CPU was throttled by heat; the latencies are those of a hot machine.")
        .remedy("Improve the cooling, or accept it if the machine is as hot in the field; compare runs at similar temperatures only."),
    FindingKind::new("rt-throttling", "The kernel throttled real-time threads, or probably did.")
        .meaning("Real-time threads that have used their share of a period stop until the next one, by default for 50 ms: the largest latencies are these pauses.")
        .remedy("Find the real-time thread that does not sleep. Only if it must not sleep: write -1 to /proc/sys/kernel/sched_rt_runtime_us."),
    FindingKind::new("fair-server", "The kernel ran ordinary threads before real-time threads, or may.")
        .meaning("Linux 6.12 and later let ordinary threads that have starved for about a second run before every FIFO and RR thread. It does not matter as long as real-time threads leave the CPU time to breathe; sched_rt_runtime_us does not switch it off.")
        .remedy("Keep real-time threads from filling a CPU; or write 0 to /sys/kernel/debug/sched/fair_server/cpuN/runtime for CPUs that run nothing else."),
    FindingKind::new("measured-beside", "Two measurements ran at the same time.")
        .meaning("Each is work that the other one does not know of: late activations of this run may be due to it.")
        .remedy("Measure one after the other."),
    FindingKind::new("unwatched", "A disturbance could not be watched during the run."),
    FindingKind::new("not-realtime", "The measured threads got no real-time policy, although they should have one.")
        .meaning("Without a real-time policy any other program may run first, and the kernel may delay timers by the timer slack (50 µs). The figures do not describe a real-time thread, and cannot show that a deadline is met."),
    FindingKind::new("not-realtime-chosen", "The measured threads are ordinary ones, as requested.")
        .meaning("An ordinary thread competes with every other one: the figures describe fair scheduling and timer slack, not what a real-time thread would see."),
    FindingKind::new("not-locked", "The memory of the measuring program is not locked.")
        .meaning("The kernel may take a page of the measuring loop away at any time, and the next access waits for it; faults inside the loop are counted, and reported if there were any.")
        .remedy("Run as root, give the program CAP_IPC_LOCK, or raise RLIMIT_MEMLOCK (limits.conf: memlock unlimited)."),
    FindingKind::new("timer-slack-unused", "Timer slack is set and has no effect.")
        .meaning("Timers of real-time and deadline threads have no slack: the setting has no effect on the figures.")
        .remedy("Measure an ordinary thread with --policy other to see what slack does."),
    FindingKind::new("tuned", "Settings of the machine were changed for the time of the run."),
    FindingKind::new("tuned-left", "A setting that was changed for the run is not as it was.")
        .meaning("The machine was not the same during the whole run, or is not as it was before.")
        .remedy("See `tailbound tune status`, then run `tailbound tune undo`."),
];
