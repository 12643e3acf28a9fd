// SPDX-License-Identifier: MIT OR Apache-2.0
//! What watching a program came to, thread by thread, as records of a run file.
//!
//! Units: ns; times are made to count from the begin of the watching.
//! Not here: the rest of the run (`tailbound-run`).

use std::collections::BTreeMap;

use tailbound_core::cycle::CycleRecord;
use tailbound_core::record::{BlockRecord, SecondRecord};
use tailbound_core::tasks::Job;
pub use tailbound_trace::cycle::LateWakeUp;
use tailbound_trace::cycle::{Cycles, ThreadCycles};

use crate::recording::Recorded;
use crate::watch::{ThreadListing, WatchEnd};

/// One watched thread.
#[derive(Clone, Debug)]
pub struct WatchedThread {
    /// Its cycles.
    pub cycles: CycleRecord,
    /// Its latest wake-ups at the begin of a cycle.
    pub late: Vec<LateWakeUp>,
    /// Those wake-ups by the second.
    pub seconds: Vec<SecondRecord>,
    /// The same in stretches.
    pub blocks: Vec<BlockRecord>,
    /// Its cycles as jobs, on the trace's clock: those that were not taken while it was watched.
    pub jobs: Vec<Option<Job>>,
    /// The CPUs on which watched threads had to wait for it.
    pub delayed_on: Vec<u32>,
}

/// Everything.
#[derive(Debug)]
pub struct WatchOutcome {
    /// The threads, those with the highest priority first.
    pub threads: Vec<WatchedThread>,
    /// Threads that were there and not followed: they have no real-time policy or another name.
    pub others: usize,
    /// The recording.
    pub recorded: Recorded,
    /// Events that were looked at.
    pub events: u64,
}

impl WatchOutcome {
    /// From the end of watching that began at `begin_ns`.
    #[must_use]
    pub fn of(end: WatchEnd<Cycles>, begin_ns: u64) -> Self {
        let WatchEnd { sink, known, recorded } = end;
        let (events, _) = sink.extent();
        let mut found = sink.finish();
        let mut followed: Vec<(i32, &ThreadListing)> =
            known.iter().filter(|(_, k)| k.followed).map(|(t, k)| (*t, k)).collect();
        followed.sort_by_key(|(tid, k)| (std::cmp::Reverse(k.policy.priority()), *tid));
        // Cycles of a thread whose rhythm was told at the end alone have no owners yet.
        for (tid, found) in &mut found {
            for told in recorded.locks.iter().filter(|told| told.tid == *tid) {
                found.cycles.worst.iter_mut().for_each(|record| told.onto_cycle_once(record));
            }
        }
        let threads = followed
            .iter()
            .zip(0u32..)
            .filter_map(|((tid, known), number)| one(&mut found, *tid, known, number, begin_ns))
            .collect();
        let others = known.len().saturating_sub(followed.len());
        Self { threads, others, recorded, events }
    }
}

fn one(
    found: &mut BTreeMap<i32, ThreadCycles>,
    tid: i32,
    known: &ThreadListing,
    number: u32,
    begin_ns: u64,
) -> Option<WatchedThread> {
    let ThreadCycles { mut cycles, mut late, mut seconds, mut blocks, jobs, delayed_on } =
        found.remove(&tid)?;
    let begin = i64::try_from(begin_ns).unwrap_or(0);
    (cycles.thread, cycles.process, cycles.policy) = (number, known.pid, known.policy);
    cycles.name.clone_from(&known.name);
    for record in cycles.worst.iter_mut().chain(late.iter_mut().map(|l| &mut l.record)) {
        record.thread = number;
        record.name.clone_from(&known.name);
        record.t_ns = record.t_ns.saturating_sub(begin);
    }
    cycles.jobs.iter_mut().for_each(|j| j.release_ns = j.release_ns.saturating_sub(begin));
    seconds.iter_mut().for_each(|s| s.thread = number);
    blocks.iter_mut().for_each(|b| b.thread = number);
    Some(WatchedThread { cycles, late, seconds, blocks, jobs, delayed_on })
}
