// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words for what a latency is made of: phases of the way, causes, how sure, activities of a CPU.
//!
//! Names of the kernel's documentation where it has one.

use crate::words::open_words;

open_words! {
    /// A phase of the way from the due time to the thread.
    #[derive(Default)]
    Phase {
        /// From the due time until the timer's interrupt looked at the clock.
        Timer = "timer",
        /// From there until the thread was made ready (or from the due time, where another thread wakes it).
        WakeUp = "wake-up",
        /// From ready to the CPU going over to it.
        #[default]
        Switch = "switch",
        /// From there until the thread has read the clock.
        Return = "return",
        /// In the cycle: on its CPU.
        Running = "running",
        /// In the cycle: ready, while something else ran.
        Preempted = "preempted",
        /// In the cycle: asleep.
        Blocked = "blocked",
        /// No wake-up: a stretch of the kernel's code whose length was measured.
        Section = "section",
    }
}

open_words! {
    /// What a part of a latency went to.
    #[derive(Default)]
    Cause {
        /// A device's interrupt handler.
        Interrupt = "interrupt",
        /// A soft interrupt.
        Softirq = "softirq",
        /// An interrupt from another CPU: function call, TLB flush, reschedule.
        Ipi = "ipi",
        /// The timer's interrupt, with what else it did.
        TimerInterrupt = "timer-interrupt",
        /// A non-maskable interrupt.
        Nmi = "nmi",
        /// A thread of higher or equal priority had the CPU.
        HigherPriority = "higher-priority",
        /// A thread of lower priority was in the kernel and could not be preempted.
        NotPreemptible = "not-preemptible",
        /// Interrupts were disabled.
        InterruptsOff = "interrupts-off",
        /// A thread waited for a lock, spinning, and could not be preempted.
        LockSpin = "lock-spin",
        /// A work queue's function ran and could not be preempted.
        Workqueue = "workqueue",
        /// The CPU had to leave an idle state first.
        IdleExit = "idle-exit",
        /// Ordinary threads ran on the time that the scheduler keeps for them (dl_server).
        FairServer = "fair-server",
        /// The limit of real-time time (sched_rt_runtime_us) was reached.
        RtThrottling = "rt-throttling",
        /// Every CPU was stopped for one operation of the kernel (stop_machine, a CPU taken off or added).
        StopMachine = "stop-machine",
        /// A thread waited for one of lower priority, which others kept off its CPU.
        PriorityInversion = "priority-inversion",
        /// The thread was moved to another CPU.
        Migration = "migration",
        /// A page fault of the thread.
        PageFault = "page-fault",
        /// The kernel wrote to its console.
        Console = "console",
        /// The hypervisor, or whoever stops virtual CPUs, took the time.
        Host = "host",
        /// The machine's firmware took the time (SMI).
        Firmware = "firmware",
        /// The CPU changed its frequency.
        Frequency = "frequency",
        /// Our own tracing.
        Tracing = "tracing",
        /// The kernel's ordinary way: it wakes, chooses and switches.
        WakeUp = "kernel-path",
        /// The thread's own work, or its way back to user mode.
        Own = "own",
        /// The thread that was to wake it came late.
        Waker = "waker",
        /// It was asleep and nothing says what for.
        Blocked = "blocked",
        /// A signal had stopped the thread (SIGSTOP, Ctrl-Z) until SIGCONT.
        Stopped = "stopped",
        /// A debugger or another tracer (ptrace) held the thread.
        Traced = "traced",
        /// The CPU quota of its control group was used up.
        Throttled = "throttled",
        /// The timer was allowed to come so late: the thread's timer slack.
        TimerSlack = "timer-slack",
        /// The clock of the timer was set.
        ClockStep = "clock-step",
        /// Another ordinary thread had its turn.
        FairShare = "fair-share",
        /// An earlier cycle of the thread had not finished.
        Backlog = "backlog",
        /// Nothing recorded explains it.
        #[default]
        Unexplained = "unexplained",
    }
}

impl Cause {
    /// Is it something else than the way that every wake-up takes, and what recording it adds?
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        !matches!(self, Self::WakeUp | Self::Own | Self::Tracing)
    }

    /// For people: `interrupts disabled in`, to stand before a name.
    #[must_use]
    pub fn phrase(&self) -> &str {
        match self {
            Self::Interrupt => "interrupt handler",
            Self::Softirq => "soft interrupt",
            Self::Ipi => "interrupt from another CPU:",
            Self::TimerInterrupt => "timer interrupt",
            Self::Nmi => "non-maskable interrupt",
            Self::HigherPriority => "thread of higher or equal priority:",
            Self::NotPreemptible => "kernel code that cannot be preempted, of",
            Self::InterruptsOff => "interrupts disabled in",
            Self::LockSpin => "spinning for a lock:",
            Self::Workqueue => "work queue function",
            Self::IdleExit => "exit from an idle state",
            Self::FairServer => "fair server: ordinary thread",
            Self::RtThrottling => "real-time throttling: ordinary thread",
            Self::StopMachine => "all CPUs stopped by",
            Self::PriorityInversion => "priority inversion: waiting for",
            Self::Migration => "migration to another CPU",
            Self::PageFault => "page fault",
            Self::Console => "console output",
            Self::Host => "the host took the virtual CPU",
            Self::Firmware => "firmware (SMI)",
            Self::Frequency => "change of frequency",
            Self::Tracing => "our own tracing",
            Self::WakeUp => "the kernel's ordinary path",
            Self::Own => "the thread itself",
            Self::Waker => "the thread that wakes it was late:",
            Self::Blocked => "asleep",
            Self::Stopped => "stopped by a signal",
            Self::Traced => "held by a tracer:",
            Self::Throttled => "CPU quota used up",
            Self::TimerSlack => "timer slack",
            Self::ClockStep => "the clock was set:",
            Self::FairShare => "the scheduler gave the CPU to another ordinary thread:",
            Self::Backlog => "backlog: the previous cycle had not finished",
            Self::Unexplained => "unexplained",
            Self::Unknown(word) => word.as_str(),
        }
    }

    /// Phrase and name together: `spinning for a lock: hackbench-3975`.
    #[must_use]
    pub fn sentence(&self, who: &str) -> String {
        let phrase = self.phrase();
        if who.is_empty() {
            let first = phrase.split(':').next().unwrap_or(phrase);
            let end = first.trim_end_matches(" of").trim_end_matches(" in");
            return end.trim_end_matches(',').to_owned();
        }
        match self {
            Self::Unexplained
            | Self::Host
            | Self::Firmware
            | Self::IdleExit
            | Self::Stopped
            | Self::Throttled
            | Self::TimerSlack
            | Self::Backlog => {
                format!("{phrase} ({who})")
            }
            _ => format!("{phrase} {who}"),
        }
    }
}

open_words! {
    /// How sure an attribution is.
    #[derive(Default)]
    Sureness {
        /// The events say so.
        #[default]
        Sure = "sure",
        /// The events fit it and nothing else that is known.
        Likely = "likely",
        /// One of several that fit.
        Unsure = "unsure",
    }
}

open_words! {
    /// What a CPU does.
    Activity {
        /// Nothing.
        Idle = "idle",
        /// A thread.
        Thread = "thread",
        /// The thread that was late.
        Target = "target",
        /// A work queue's function, within its thread.
        Work = "work",
        /// A device's interrupt.
        Interrupt = "interrupt",
        /// The timer's interrupt.
        Timer = "timer",
        /// An interrupt from another CPU.
        Ipi = "ipi",
        /// A soft interrupt.
        Softirq = "softirq",
        /// A non-maskable interrupt.
        Nmi = "nmi",
        /// A spinning wait for a lock, within its thread.
        Spin = "spin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_reads_with_and_without_a_name() {
        for word in Cause::WORDS {
            let cause = Cause::of(word);
            let bare = cause.sentence("");
            assert!(!bare.is_empty() && !bare.ends_with([':', ',', ' ']), "{bare}");
            assert!(!bare.ends_with(" of") && !bare.ends_with(" in"), "{bare}");
            assert!(cause.sentence("x").contains('x'));
        }
    }
}
