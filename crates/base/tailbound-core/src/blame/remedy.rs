// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be done about a cause: a sentence, the check that looks for it, the setting that
//! changes it.
//!
//! That checks and settings exist is a test of the program (`tests/cli/blame.rs`).
//! Source: docs/check.md, docs/tune.md.

use super::{Cause, KernelKind};

/// What to do about a culprit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// What to do, in a sentence.
    pub text: &'static str,
    /// The check that shows it (`tailbound check --all`, of a program `--pid PID`).
    pub check: Option<&'static str>,
    /// The setting that changes it (`tailbound tune set NAME=…`), with a value.
    pub setting: Option<&'static str>,
}

const fn remedy(
    text: &'static str,
    check: Option<&'static str>,
    setting: Option<&'static str>,
) -> Remedy {
    Remedy { text, check, setting }
}

const RCU: Remedy = remedy(
    "let other CPUs run this one's RCU callbacks (rcu_nocbs=, nohz_full= on the kernel's command line)",
    Some("rcu.nocb"),
    None,
);

/// Functions of work queues and threads of the kernel, by a word in their names.
const KNOWN: &[(&str, Remedy)] = &[
    (
        "vmstat_update",
        remedy(
            "let the kernel fold its memory statistics less often",
            Some("mm.stat-interval"),
            Some("stat-interval=120"),
        ),
    ),
    (
        "ksoftirqd",
        remedy(
            "keep the interrupts that raise soft interrupts off this CPU",
            Some("irq.affinity"),
            Some("interrupts=housekeeping"),
        ),
    ),
    (
        "kcompactd",
        remedy("stop proactive compaction", Some("mm.compaction"), Some("compaction=off")),
    ),
    (
        "ksmd",
        remedy("stop the merging of same pages", Some("mm.ksm"), Some("same-page-merging=off")),
    ),
    (
        "khugepaged",
        remedy(
            "switch transparent huge pages off",
            Some("mm.thp"),
            Some("transparent-hugepages=never"),
        ),
    ),
    ("RCU", RCU),
    ("rcu", RCU),
    (
        "watchdog",
        remedy("keep the watchdog off this CPU", Some("wd.soft"), Some("soft-watchdog=off")),
    ),
];

/// By cause.
const BY_CAUSE: &[(Cause, Remedy)] = &[
    (
        Cause::Interrupt,
        remedy(
            "move this interrupt to another CPU",
            Some("irq.affinity"),
            Some("interrupts=housekeeping"),
        ),
    ),
    (
        Cause::Ipi,
        remedy(
            "keep programs that share memory with this CPU's threads (munmap, mprotect, membarrier), and profilers, off it",
            Some("iso.ipi-sender"),
            None,
        ),
    ),
    (
        Cause::Nmi,
        remedy("stop the NMI watchdog and profilers", Some("wd.nmi"), Some("nmi-watchdog=off")),
    ),
    (
        Cause::HigherPriority,
        remedy(
            "give the measured thread the higher priority, or the other one another CPU",
            Some("sched.prio-order"),
            None,
        ),
    ),
    (
        Cause::Workqueue,
        remedy(
            "keep work queues off this CPU",
            Some("iso.workqueue-unbound"),
            Some("workqueues=housekeeping"),
        ),
    ),
    (
        Cause::IdleExit,
        remedy("forbid deep idle states", Some("pwr.cstates"), Some("dma-latency=0us")),
    ),
    (
        Cause::FairServer,
        remedy(
            "switch the fair server of this CPU off, and let no real-time thread use all of it",
            Some("sched.fair-server"),
            Some("fair-server=off"),
        ),
    ),
    (
        Cause::RtThrottling,
        remedy(
            "let real-time threads sleep; where each of them does, the limit can be lifted",
            Some("sched.rt-throttle"),
            Some("rt-throttling=off"),
        ),
    ),
    (
        Cause::StopMachine,
        remedy(
            "do not take CPUs off or add them, load modules or patch the kernel while it matters",
            None,
            None,
        ),
    ),
    (
        Cause::PriorityInversion,
        remedy(
            "use locks with priority inheritance (PTHREAD_PRIO_INHERIT)",
            Some("app.non-pi-lock"),
            None,
        ),
    ),
    (Cause::Migration, remedy("pin the thread to its CPU", Some("app.cpu-placement"), None)),
    (Cause::PageFault, remedy("lock the program's memory (mlockall)", Some("app.mlock"), None)),
    (
        Cause::Console,
        remedy("keep messages off the console", Some("hw.console"), Some("console-level=1")),
    ),
    (
        Cause::Host,
        remedy("give the virtual machine CPUs of its own on the host", Some("virt.steal"), None),
    ),
    (
        Cause::Firmware,
        remedy(
            "look for settings of the firmware: power, USB, error reports",
            Some("hw.smi"),
            None,
        ),
    ),
    (
        Cause::Frequency,
        remedy("hold the CPU at one frequency", Some("pwr.governor"), Some("governor=performance")),
    ),
    (Cause::Waker, remedy("look at the thread that wakes this one: `tailbound watch`", None, None)),
    (
        Cause::Stopped,
        remedy("leave the time that it was stopped out: SIGSTOP or Ctrl-Z stopped it", None, None),
    ),
    (
        Cause::Traced,
        remedy("measure again without debugger, strace or another tracer (ptrace)", None, None),
    ),
    (
        Cause::Throttled,
        remedy(
            "give its control group a higher CPU quota, or none (cpu.max, cpu.cfs_quota_us)",
            Some("sched.cpu-quota"),
            None,
        ),
    ),
    (
        Cause::TimerSlack,
        remedy(
            "set the timer slack of the thread to 1 ns (prctl PR_SET_TIMERSLACK), or give it a real-time policy, which has none",
            Some("app.timerslack"),
            None,
        ),
    ),
    (
        Cause::ClockStep,
        remedy(
            "wait for times of CLOCK_MONOTONIC, which nobody can set, or have the clock slewed instead of stepped",
            Some("app.sleep-method"),
            None,
        ),
    ),
    (
        Cause::FairShare,
        remedy(
            "give the thread a real-time policy: ordinary threads share their CPU",
            Some("sched.prio-order"),
            None,
        ),
    ),
    (
        Cause::TimerInterrupt,
        remedy("keep timers of others off this CPU", Some("sched.timer-migration"), None),
    ),
];

/// What a remedy is where it depends on the kernel.
struct ByKernel {
    causes: &'static [Cause],
    stock: Remedy,
    preempt_rt: Remedy,
    unknown: Remedy,
}

/// A section of the kernel that PREEMPT_RT left as it is.
const LEFT_BY_RT: Remedy = remedy(
    "keep such work off this CPU, or have the kernel's code mended: the kernel is PREEMPT_RT already",
    None,
    None,
);

const BY_KERNEL: &[ByKernel] = &[
    ByKernel {
        causes: &[Cause::NotPreemptible, Cause::LockSpin],
        stock: remedy(
            "use a kernel that can preempt its own code (preempt=full, better PREEMPT_RT), or keep such work off this CPU",
            Some("kern.preempt-model"),
            Some("preemption=full"),
        ),
        preempt_rt: LEFT_BY_RT,
        unknown: remedy(
            "keep such work off this CPU; if the kernel is not PREEMPT_RT, use one that can preempt its own code (preempt=full, better PREEMPT_RT)",
            Some("kern.preempt-model"),
            None,
        ),
    },
    ByKernel {
        causes: &[Cause::InterruptsOff],
        stock: remedy(
            "use PREEMPT_RT, where few places disable interrupts, or keep such work off this CPU",
            Some("kern.preempt-model"),
            None,
        ),
        preempt_rt: LEFT_BY_RT,
        unknown: remedy(
            "keep such work off this CPU; if the kernel is not PREEMPT_RT, use that, where few places disable interrupts",
            Some("kern.preempt-model"),
            None,
        ),
    },
    ByKernel {
        causes: &[Cause::Softirq],
        stock: remedy(
            "move the interrupts that raise it to another CPU; with PREEMPT_RT it runs in a thread whose priority can be set",
            Some("irq.affinity"),
            Some("interrupts=housekeeping"),
        ),
        preempt_rt: remedy(
            "move the interrupts that raise it to another CPU, or give the thread it runs in a lower priority",
            Some("irq.affinity"),
            Some("interrupts=housekeeping"),
        ),
        unknown: remedy(
            "move the interrupts that raise it to another CPU; where the kernel is PREEMPT_RT it runs in a thread whose priority can be set",
            Some("irq.affinity"),
            Some("interrupts=housekeeping"),
        ),
    },
];

impl Remedy {
    /// What to do about `cause`, made by `who`, on a kernel of that kind; `None` where nothing can be advised.
    #[must_use]
    pub fn of(cause: Cause, who: &str, kernel: KernelKind) -> Option<Self> {
        if let Some((_, known)) = KNOWN.iter().find(|(word, _)| who.contains(word)) {
            return Some(*known);
        }
        let depends = BY_KERNEL.iter().find(|b| b.causes.contains(&cause));
        let depends = depends.map(|b| match kernel {
            KernelKind::Stock => b.stock,
            KernelKind::PreemptRt => b.preempt_rt,
            KernelKind::Unknown => b.unknown,
        });
        depends.or_else(|| BY_CAUSE.iter().find(|(c, _)| *c == cause).map(|(_, r)| *r))
    }

    /// Every remedy there is, for those who check them.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let known = KNOWN.iter().map(|(_, r)| *r);
        let depends = BY_KERNEL.iter().flat_map(|b| [b.stock, b.preempt_rt, b.unknown]);
        known.chain(BY_CAUSE.iter().map(|(_, r)| *r)).chain(depends).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_with_preempt_rt_is_told_to_take_it() {
        for cause in Cause::WORDS.iter().map(|word| Cause::of(word)) {
            let text = |kernel| Remedy::of(cause, "x", kernel).map_or("", |remedy| remedy.text);
            let takes =
                |text: &str| text.contains("use PREEMPT_RT") || text.contains("use a kernel");
            assert!(!takes(text(KernelKind::PreemptRt)), "{cause:?}");
            if takes(text(KernelKind::Stock)) {
                let unknown = text(KernelKind::Unknown);
                assert!(unknown.contains("if the kernel is not PREEMPT_RT"), "{unknown}");
            }
        }
    }
}
