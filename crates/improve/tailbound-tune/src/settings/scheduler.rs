// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the scheduler may do to a real-time thread.
//!
//! Source: Documentation/scheduler/{sched-rt-group,sched-deadline}.rst,
//! Documentation/admin-guide/sysctl/kernel.rst, kernel/sched/debug.c.

use super::{Effect, Setting, Values};
use crate::codec::Codec;

const OFF_ON: Values = Values::Words(&[("off", "0"), ("on", "1")]);

pub(super) static SETTINGS: &[Setting] = &[
    Setting {
        name: "rt-throttling",
        about: "Real-time threads may use a CPU without a pause",
        cures: &["sched.rt-throttle"],
        cost: "a real-time thread that never sleeps takes its CPU for good",
        values: Values::Words(&[("off", "-1"), ("default", "950000")]),
        needs_cpus: false,
        effect: Effect::Files(&[("/proc/sys/kernel/sched_rt_runtime_us", Codec::Number)]),
    },
    Setting {
        name: "fair-server",
        about: "Ordinary threads no longer get 50 ms a second above real-time ones (since Linux 6.12)",
        cures: &["sched.fair-server"],
        cost: "ordinary threads starve on a CPU that real-time threads fill",
        values: Values::Words(&[("off", "0"), ("default", "50000000")]),
        needs_cpus: true,
        effect: Effect::RtCpus("/sys/kernel/debug/sched/fair_server/cpu{}/runtime", Codec::Number),
    },
    Setting {
        name: "ext-server",
        about: "As fair-server, for threads of sched_ext",
        cures: &["sched.ext-server"],
        cost: "threads of sched_ext starve on a CPU that real-time threads fill",
        values: Values::Words(&[("off", "0"), ("default", "50000000")]),
        needs_cpus: true,
        effect: Effect::RtCpus("/sys/kernel/debug/sched/ext_server/cpu{}/runtime", Codec::Number),
    },
    Setting {
        name: "preemption",
        about: "Where the kernel may be preempted (PREEMPT_DYNAMIC)",
        cures: &["kern.preempt-model"],
        cost: "full: some throughput",
        values: Values::Words(&[
            ("full", "full"),
            ("lazy", "lazy"),
            ("voluntary", "voluntary"),
            ("none", "none"),
        ]),
        needs_cpus: false,
        effect: Effect::Files(&[("/sys/kernel/debug/sched/preempt", Codec::Choice)]),
    },
    Setting {
        name: "timer-migration",
        about: "Timers stay on the CPU that armed them",
        cures: &["sched.timer-migration"],
        cost: "idle CPUs wake up more often",
        values: OFF_ON,
        needs_cpus: false,
        effect: Effect::Files(&[("/proc/sys/kernel/timer_migration", Codec::Number)]),
    },
    Setting {
        name: "autogroup",
        about: "Ordinary threads compete by nice value, not by session",
        cures: &[],
        cost: "none on a machine without a desktop",
        values: OFF_ON,
        needs_cpus: false,
        effect: Effect::Files(&[("/proc/sys/kernel/sched_autogroup_enabled", Codec::Number)]),
    },
    Setting {
        name: "numa-balancing",
        about: "The kernel does not unmap memory to find out who uses it",
        cures: &["sched.numa-balancing"],
        cost: "memory stays where it is, also if that is far away",
        values: OFF_ON,
        needs_cpus: false,
        effect: Effect::Files(&[("/proc/sys/kernel/numa_balancing", Codec::Number)]),
    },
    Setting {
        name: "rcu-normal",
        about: "RCU waits without interrupting all CPUs",
        cures: &["rcu.expedited"],
        cost: "some system calls (network, modules) take longer",
        values: Values::Words(&[("on", "1"), ("off", "0")]),
        needs_cpus: false,
        effect: Effect::Files(&[("/sys/kernel/rcu_normal", Codec::Number)]),
    },
    Setting {
        name: "rcu-expedited",
        about: "RCU never interrupts all CPUs because of this file",
        cures: &["rcu.expedited"],
        cost: "as rcu-normal",
        values: OFF_ON,
        needs_cpus: false,
        effect: Effect::Files(&[("/sys/kernel/rcu_expedited", Codec::Number)]),
    },
];
