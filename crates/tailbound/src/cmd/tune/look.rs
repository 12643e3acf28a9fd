// SPDX-License-Identifier: MIT OR Apache-2.0
//! One look at the machine, as rows of its tables.
//!
//! About 10 ms for 300 threads. Nothing is written.

use std::collections::BTreeMap;

use tailbound_host::interrupts::{Class, Interrupt, interrupts};
use tailbound_host::threads::{Thread, threads};
use tailbound_host::{Cpus, Found, Missing, Root};
use tailbound_report::machine::{
    ClassRow, InterruptRow, Look, MachineFact, Switches, ThreadId, ThreadRow, Which,
};

/// Looks at what `which` names; threads are always read, they handle interrupts.
pub(crate) fn look(root: &Root, cpus: &Cpus, at_ns: i64, which: Which) -> Look {
    let mut look = Look {
        at_ns,
        online: cpus.online.clone(),
        isolated: cpus.isolated.clone(),
        ..Look::default()
    };
    match threads(root) {
        Ok(all) => look.threads = thread_rows(all),
        Err(why) => look.missing.push(format!("threads: {}", why.reason())),
    }
    if which.interrupts() {
        match interrupts(root) {
            Ok(all) => {
                look.interrupts = all.lines.into_iter().map(interrupt_row).collect();
                look.classes = all.classes.into_iter().map(class_row).collect();
            }
            Err(why) => look.missing.push(format!("interrupts: {}", why.reason())),
        }
    }
    look.with_handlers()
}

fn known<T>(found: Found<T>) -> MachineFact<T> {
    found.map_err(|e: Missing| e.reason().to_owned())
}

fn thread_rows(all: Vec<Thread>) -> Vec<ThreadRow> {
    let first = |t: &&Thread| t.tid == t.pid;
    let processes: BTreeMap<u32, String> =
        all.iter().filter(first).map(|t| (t.pid, t.name.clone())).collect();
    let row = |t: Thread| ThreadRow {
        id: ThreadId { tid: t.tid, start_ticks: t.start_ticks },
        pid: t.pid,
        process: processes.get(&t.pid).filter(|p| **p != t.name).cloned(),
        name: t.name,
        kernel: t.kernel,
        fixed: t.fixed,
        policy: t.policy,
        nice: t.nice,
        last_cpu: t.last_cpu,
        affinity: known(t.allowed),
        switches: known(t.switches)
            .map(|s| Switches { voluntary: s.voluntary, involuntary: s.involuntary }),
        rate: None,
    };
    all.into_iter().map(row).collect()
}

fn interrupt_row(i: Interrupt) -> InterruptRow {
    InterruptRow {
        number: i.number,
        counts: i.counts,
        rates: None,
        chip: i.chip,
        users: i.actions,
        affinity: known(i.affinity),
        effective: known(i.effective),
        managed: known(i.managed),
        handlers: Vec::new(),
    }
}

fn class_row(c: Class) -> ClassRow {
    ClassRow { name: c.name, about: c.about, counts: c.counts, rates: None }
}
