// SPDX-License-Identifier: MIT OR Apache-2.0
//! One look at the machine, as rows of its tables.
//!
//! About 10 ms for 300 threads. Nothing is written.

use std::collections::BTreeMap;

use tailbound_core::{CpuSet, units};
use tailbound_host::interrupts::{Class, Interrupt, interrupts};
use tailbound_host::threads::{Thread, threads};
use tailbound_host::{Cpus, CpusError, Found, Missing, Root};
use tailbound_report::machine::{
    ClassRow, InterruptRow, Look, MachineFact, Switches, ThreadId, ThreadRow, UnknownFact, Which,
};
use tailbound_sys::clock;

use crate::error::TuneError;
use crate::interval::{INTERVAL_MAX_NS, INTERVAL_MIN_NS};

/// A look at the machine under `root` as it is now.
///
/// # Errors
/// [`TuneError::Machine`].
pub fn look_now(root: &Root, which: Which) -> Result<Look, TuneError> {
    let cpus = Cpus::read(root).map_err(TuneError::Machine)?;
    Ok(look(root, &cpus, clock::now_ns(clock::CLOCK_MONOTONIC), which))
}

/// The CPUs that `text` means. Any that is there may be looked at, also one that this process may not use:
/// an isolated one is taken from the cpuset of all others.
///
/// # Errors
/// [`TuneError::Cpus`].
pub fn chosen_cpus(cpus: &Cpus, text: &str) -> Result<CpuSet, TuneError> {
    let chosen = match text.trim() {
        "all" => cpus.present.clone(),
        "isolated" if cpus.isolated.is_empty() => {
            return Err(TuneError::Cpus(CpusError::NoneIsolated));
        }
        "isolated" => cpus.isolated.clone(),
        list => list.parse().map_err(|e| TuneError::Cpus(CpusError::Text(e)))?,
    };
    let absent = chosen.minus(&cpus.present);
    if chosen.is_empty() {
        Err(TuneError::Cpus(CpusError::Empty))
    } else if absent.is_empty() {
        Ok(chosen)
    } else {
        let present = cpus.present.clone();
        Err(TuneError::Cpus(CpusError::Absent { cpus: absent, present }))
    }
}

/// The time between two looks that `text` means, in ns; 0 for totals since boot.
///
/// # Errors
/// [`TuneError::Interval`], [`TuneError::IntervalLength`].
pub fn look_interval_ns(text: &str) -> Result<i64, TuneError> {
    let ns = match text.trim() {
        "0" => 0,
        text => units::parse_ns(text).map_err(TuneError::Interval)?,
    };
    if ns == 0 || (INTERVAL_MIN_NS..=INTERVAL_MAX_NS).contains(&ns) {
        return Ok(ns);
    }
    Err(TuneError::IntervalLength { text: tailbound_core::printable::excerpt(text, 40) })
}

/// Looks at what `which` names; threads are always read, they handle interrupts.
fn look(root: &Root, cpus: &Cpus, at_ns: i64, which: Which) -> Look {
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
    found.map_err(|e: Missing| UnknownFact { reason: e.reason().to_owned() })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_cpu_that_is_there_may_be_looked_at() {
        let set = |text: &str| text.parse::<CpuSet>().unwrap_or_default();
        let cpus = Cpus {
            present: set("0-3"),
            online: set("0-3"),
            allowed: set("0-1"),
            cpuset: Some(set("0-1")),
            isolated: set("3"),
        };
        let of = |text: &str| chosen_cpus(&cpus, text).map(|c| c.to_string()).ok();
        assert_eq!(of("2-3").as_deref(), Some("2-3"));
        assert_eq!(of("isolated").as_deref(), Some("3"));
        assert_eq!(of("all").as_deref(), Some("0-3"));
        for wrong in ["4", "", "x", "3-1"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn intervals_are_times_within_reason() {
        let of = |text| look_interval_ns(text).map_err(|e| e.kind().exit_status());
        assert_eq!(of("0"), Ok(0));
        assert_eq!(of("0s"), Ok(0));
        assert_eq!(of("250ms"), Ok(250_000_000));
        for wrong in ["1", "1us", "-1s", "2d", "soon", ""] {
            assert_eq!(of(wrong), Err(2), "{wrong}");
        }
    }
}
