// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeping work of others off CPUs: threads, kernel threads, work queues, interrupts, and the
//! cpuset partition that makes it hold.
//!
//! Partitions of type `isolated` exist since Linux 6.1; until somewhere behind
//! 6.12 they take a CPU out of load balancing and unbound work queues only, so that the other
//! settings here are needed beside them. Source: Documentation/admin-guide/cgroup-v2.rst,
//! Documentation/admin-guide/kernel-per-CPU-kthreads.rst, Documentation/core-api/workqueue.rst.

use tailbound_core::CpuSet;
use tailbound_host::cgroups::{PARTITION, cpuset_v2};
use tailbound_host::threads::Thread;

use super::{Draft, Effect, Omission, OnRefusal, Setting, Value, Values};
use crate::codec::Codec;
use crate::target::{DEFAULT_AFFINITY, InterruptId, Target, ThreadId};

const OFF_RT: Values = Values::Words(&[("housekeeping", "housekeeping")]);
/// The setting that moves threads of programs.
pub(crate) const THREADS: &str = "threads";
const PARTITIONS_SINCE: (u32, u32) = (6, 1);

pub(super) static SETTINGS: &[Setting] = &[
    Setting {
        name: THREADS,
        about: "Threads of programs leave the real-time CPUs; those pinned there alone stay",
        cures: &["iso.foreign-tasks"],
        cost: "less room for everything else",
        values: OFF_RT,
        needs_cpus: true,
        effect: Effect::Function(|draft, _| threads(draft, ThreadKind::Program)),
    },
    Setting {
        name: "kernel-threads",
        about: "Kernel threads that can be moved leave the real-time CPUs",
        cures: &["iso.kthreads", "rcu.nocb-threads"],
        cost: "less room for the kernel's own work",
        values: OFF_RT,
        needs_cpus: true,
        effect: Effect::Function(|draft, _| threads(draft, ThreadKind::Kernel)),
    },
    Setting {
        name: "default-irq-affinity",
        about: "Interrupts requested later stay off the real-time CPUs",
        cures: &["irq.default-affinity"],
        cost: "none",
        values: OFF_RT,
        needs_cpus: true,
        effect: Effect::Function(|draft, _| {
            mask(draft, DEFAULT_AFFINITY, Codec::Mask);
        }),
    },
    Setting {
        name: "interrupts",
        about: "Interrupts of devices leave the real-time CPUs, as far as the kernel lets them",
        cures: &["irq.affinity"],
        cost: "other CPUs handle them",
        values: OFF_RT,
        needs_cpus: true,
        effect: Effect::Function(interrupts),
    },
    Setting {
        name: "workqueues",
        about: "Unbound work queues leave the real-time CPUs",
        cures: &["iso.workqueue-unbound"],
        cost: "none",
        values: OFF_RT,
        needs_cpus: true,
        effect: Effect::Function(|draft, _| {
            mask(draft, "/sys/devices/virtual/workqueue/cpumask", Codec::Mask);
        }),
    },
    Setting {
        name: "own-workqueues",
        about: "Work queues with CPUs of their own (writeback, …) leave the real-time CPUs",
        cures: &["iso.workqueue-sysfs"],
        cost: "none",
        values: OFF_RT,
        needs_cpus: true,
        effect: Effect::Function(own_workqueues),
    },
    Setting {
        name: "watchdog-cpus",
        about: "The lockup detectors leave the real-time CPUs alone",
        cures: &["wd.soft"],
        cost: "a lockup there is not reported",
        values: OFF_RT,
        needs_cpus: true,
        effect: Effect::Function(|draft, _| {
            mask(draft, "/proc/sys/kernel/watchdog_cpumask", Codec::List);
        }),
    },
    Setting {
        name: "partition",
        about: "The real-time CPUs become an isolated cpuset partition: no load balancing, nobody gets there by himself",
        cures: &["iso.partition", "iso.effective-set"],
        cost: "programs must be put there: tailbound tune exec",
        values: Values::Words(&[("isolated", "isolated"), ("root", "root")]),
        needs_cpus: true,
        effect: Effect::Function(partition),
    },
];

/// Whose threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadKind {
    Kernel,
    Program,
}

fn threads(draft: &mut Draft<'_>, kind: ThreadKind) {
    let all = match &draft.facts.threads {
        Ok(all) => all,
        Err(why) => {
            let why = why.reason().to_owned();
            return draft.leave_out(why, Omission::Wanting);
        }
    };
    let facts = draft.facts;
    // This program has ended before anybody could be disturbed by it.
    let own = facts.root.is_real().then(std::process::id);
    let kernel = kind == ThreadKind::Kernel;
    let movable = |t: &&Thread| t.kernel == kernel && !t.fixed && Some(t.pid) != own;
    for thread in all.iter().filter(movable) {
        let Ok(allowed) = &thread.allowed else { continue };
        if allowed.and(&facts.rt).is_empty() {
            continue;
        }
        let rest = allowed.minus(&facts.rt);
        let pinned = rest.is_empty();
        if pinned && !kernel {
            draft.leave_out(
                format!("{} is pinned to CPU {allowed}", label(thread)),
                Omission::Wanting,
            );
            continue;
        }
        let new = if pinned { &facts.housekeeping } else { &rest };
        let target = Target::Affinity(ThreadId::from(thread));
        draft.push(target, Some(allowed.to_string()), Some(new.to_string()), OnRefusal::Skip);
    }
}

fn label(thread: &Thread) -> String {
    format!("thread {} ({})", thread.tid, thread.name)
}

/// A file of CPUs loses the real-time ones.
pub(super) fn mask(draft: &mut Draft<'_>, path: &str, codec: Codec) {
    let target = Target::setting(path, codec);
    let Some(Some(old)) = draft.read(&target) else { return };
    let Ok(cpus) = old.parse::<CpuSet>() else { return };
    // What names CPUs beyond those that are online means "all": it keeps them.
    let new = draft.facts.without_rt(&cpus).to_string();
    if cpus.and(&draft.facts.rt).is_empty() {
        draft.leave_out(format!("{target} is so already"), Omission::Harmless);
    } else {
        draft.push(target, Some(old), Some(new), OnRefusal::Undo);
    }
}

fn interrupts(draft: &mut Draft<'_>, _: &Value) {
    let facts = draft.facts;
    let all = match &facts.interrupts {
        Ok(all) => all,
        Err(why) => return draft.leave_out(why.reason().to_owned(), Omission::Wanting),
    };
    for line in &all.lines {
        let Ok(affinity) = &line.affinity else { continue };
        if affinity.and(&facts.rt).is_empty() {
            continue;
        }
        let id = InterruptId::from(line);
        if line.managed == Ok(true) {
            let inside = line.effective.as_ref().is_ok_and(|e| !e.and(&facts.rt).is_empty());
            draft.leave_out(
                format!("interrupt {id} is managed by the kernel, which alone moves it"),
                if inside { Omission::Wanting } else { Omission::Harmless },
            );
            continue;
        }
        let new = facts.without_rt(affinity).and(&facts.online);
        let new = if new.is_empty() { &facts.housekeeping } else { &new };
        draft.push(
            Target::Interrupt(id),
            Some(affinity.to_string()),
            Some(new.to_string()),
            OnRefusal::Skip,
        );
    }
}

fn own_workqueues(draft: &mut Draft<'_>, _: &Value) {
    const BASE: &str = "/sys/devices/virtual/workqueue";
    let names = match draft.facts.root.list(BASE) {
        Ok(names) => names,
        Err(why) => return draft.leave_out(why.reason().to_owned(), Omission::Harmless),
    };
    for name in names {
        let path = format!("{BASE}/{name}/cpumask");
        if draft.facts.root.exists(&path) {
            mask(draft, &path, Codec::Mask);
        }
    }
}

fn partition(draft: &mut Draft<'_>, value: &Value) {
    let facts = draft.facts;
    let mount = match cpuset_v2(&facts.root) {
        Ok(mount) => mount,
        Err(why) => return draft.leave_out(why.reason().to_owned(), Omission::Wanting),
    };
    if facts.release < PARTITIONS_SINCE {
        return draft
            .leave_out("isolated partitions exist since Linux 6.1".to_owned(), Omission::Wanting);
    }
    let group = format!("{mount}/{PARTITION}");
    if facts.root.exists(&group) {
        return draft.leave_out(
            format!("{group} is there already: undo what made it first (tailbound tune status)"),
            Omission::Wanting,
        );
    }
    let on = Target::setting(
        format!("{mount}/cgroup.subtree_control"),
        Codec::Controller("cpuset".to_owned()),
    );
    draft.change(on, Some("on".to_owned()), OnRefusal::Undo);
    let state = |text: &str| Some(text.to_owned());
    draft.push(Target::Group { path: group.clone() }, None, state("new"), OnRefusal::Undo);
    let file = |name: &str, codec| Target::setting(format!("{group}/{name}"), codec);
    draft.push(
        file("cpuset.cpus", Codec::List),
        state(""),
        state(&facts.rt.to_string()),
        OnRefusal::Undo,
    );
    draft.push(
        file("cpuset.cpus.partition", Codec::Text),
        state("member"),
        state(&value.0),
        OnRefusal::Undo,
    );
}
