// SPDX-License-Identifier: MIT OR Apache-2.0
//! The threads of a probe at work, and what is left when they have ended.
//!
//! Units: ns.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError};

use tailbound_core::record::Clocks;
use tailbound_record::MeasuredThread;
use tailbound_sys::clock;
use tailbound_sys::error::SysError;
use tailbound_sys::thread::Thread;

use super::context::{Finished, ProbeOutput, Shared};
use super::slot::{RecordSlot, Recorders};
use super::watchdog::Watchdog;
use crate::error::ProbeError;

/// One thread of the group.
pub(super) struct Member {
    /// For people: the CPU, or what it is for.
    pub(super) name: String,
    pub(super) thread: Thread<Result<Finished, SysError>>,
    pub(super) tid: Arc<AtomicI64>,
}

/// A slot, and which thread records in it.
pub(super) struct SlotOwner {
    pub(super) slot: RecordSlot,
    pub(super) recorders: Arc<Recorders>,
    /// Index of the member.
    pub(super) member: usize,
    /// It is the member's first: its counters are reported here.
    pub(super) own: bool,
}

/// One slot, its recorders and how its thread ended.
#[derive(Debug)]
pub struct ThreadResult {
    /// The slot.
    pub slot: RecordSlot,
    /// What was recorded.
    pub recorders: Arc<Recorders>,
    /// How the thread ended.
    pub finished: Finished,
}

pub(super) type After = Box<dyn FnOnce(&[ThreadResult]) -> ProbeOutput + Send>;

/// Threads at work.
pub struct Running {
    pub(super) places: Vec<SlotOwner>,
    pub(super) members: Vec<Member>,
    pub(super) shared: Arc<Shared>,
    pub(super) clock: i32,
    pub(super) epoch_ns: i64,
    pub(super) start_ns: i64,
    pub(super) after: Option<After>,
    pub(super) watchdog: Option<Watchdog>,
}

impl Running {
    /// Time on the run's clock since the first due activation of the measurement;
    /// negative during the warm-up.
    #[must_use]
    pub fn t_ns(&self) -> i64 {
        clock::now_ns(self.clock).saturating_sub(self.start_ns)
    }

    /// The first due activation of the measurement, on the run's clock.
    #[must_use]
    pub fn start_ns(&self) -> i64 {
        self.start_ns
    }

    /// What the clocks of the system read at the first due activation of the measurement, as far
    /// as their distance from the run's clock is the same now.
    #[must_use]
    pub fn clocks_at_start(&self) -> Clocks {
        let now = clock::now_ns(self.clock);
        let at = |id| clock::now_ns(id).saturating_sub(now).saturating_add(self.start_ns);
        Clocks {
            monotonic_ns: at(clock::CLOCK_MONOTONIC),
            boottime_ns: at(clock::CLOCK_BOOTTIME),
            realtime_ns: at(clock::CLOCK_REALTIME),
        }
    }

    /// The first due activation of the warm-up, on the run's clock.
    #[must_use]
    pub fn epoch_ns(&self) -> i64 {
        self.epoch_ns
    }

    /// Every thread has ended.
    #[must_use]
    pub fn finished(&self) -> bool {
        self.shared.running.load(Ordering::Acquire) == 0
    }

    /// Each slot and its recorders.
    pub fn recorders(&self) -> impl Iterator<Item = (RecordSlot, &Recorders)> {
        self.places.iter().map(|p| (p.slot, &*p.recorders))
    }

    /// The threads of the slots, for those who record beside them.
    #[must_use]
    pub fn measured_threads(&self) -> Vec<MeasuredThread> {
        let thread = |place: &SlotOwner| {
            let tid = self.members.get(place.member)?.tid.load(Ordering::Relaxed);
            let RecordSlot { thread, cpu, phase_ns, context } = place.slot;
            Some(MeasuredThread { thread, tid: i32::try_from(tid).ok()?, cpu, phase_ns, context })
        };
        self.places.iter().filter_map(thread).collect()
    }

    /// Kernel thread ids, those of helpers among them.
    #[must_use]
    pub fn tids(&self) -> Vec<i32> {
        self.members
            .iter()
            .filter_map(|m| i32::try_from(m.tid.load(Ordering::Relaxed)).ok())
            .collect()
    }

    /// All thread ids of the probe, the watchdog's too: threads that are no strangers.
    #[must_use]
    pub fn own_tids(&self) -> Vec<i32> {
        let watchdog = self.watchdog.as_ref().and_then(Watchdog::tid);
        self.tids().into_iter().chain(watchdog).collect()
    }

    /// Waits for every thread; they end at the end of their schedule or at the stop flag.
    ///
    /// # Errors
    /// The first thread that could not run.
    pub fn join(self) -> Result<(Vec<ThreadResult>, ProbeOutput), ProbeError> {
        let ended = all_ended(self.members);
        drop(self.watchdog);
        let ended = ended?;
        let results: Vec<ThreadResult> = self
            .places
            .into_iter()
            .filter_map(|place| {
                let theirs = ended.get(place.member)?;
                let finished = if place.own { *theirs } else { Finished::of(theirs.ended) };
                Some(ThreadResult { slot: place.slot, recorders: place.recorders, finished })
            })
            .collect();
        let mut output =
            std::mem::take(&mut *self.shared.output.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(after) = self.after {
            output.append(after(&results));
        }
        Ok((results, output))
    }
}

/// Waits for all of them; the first that could not run is the error.
pub(super) fn all_ended(members: Vec<Member>) -> Result<Vec<Finished>, ProbeError> {
    let mut all = Vec::new();
    let mut failed = None;
    for Member { name, thread, .. } in members {
        match thread.join().and_then(|finished| finished) {
            Ok(finished) => all.push(finished),
            Err(source) => failed = failed.or(Some(ProbeError::Thread { cpu: name, source })),
        }
    }
    failed.map_or(Ok(all), Err)
}
