// SPDX-License-Identifier: MIT OR Apache-2.0
//! The threads of one probe: created with their policy and priority, released at one common
//! moment, watched over, and joined with what they recorded.
//!
//! Context: SETUP until the common epoch, then HOT in the bodies. Units: ns.
//! Something is recorded in a record slot; most slots have a thread of their own, some share that
//! of another (the sender's round trip). Helpers record nothing. A body begins when the gate opens
//! and runs warm-up and measurement with the same machine code ([`ThreadContext::phases`]).
//! Not here: what is measured (one file per probe), the schedule of `cyclic` (`crate::cyclic`).

mod begin;
mod context;
mod gate;
mod running;
mod slot;
mod spec;
mod watchdog;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use tailbound_core::Context;
use tailbound_core::plan::Plan;
use tailbound_host::clock_id;
use tailbound_rt::cyclic::LoopEnd;
use tailbound_sys::clock;
use tailbound_sys::error::SysError;
use tailbound_sys::thread::{self, ThreadSpec};

use crate::error::ProbeError;
use context::{Body, Shared, Work};
pub use context::{Finished, ProbeOutput, ThreadContext};
use running::{After, Member, SlotOwner, all_ended};
pub use running::{Running, ThreadResult};
pub use slot::{RawSamples, RecordSlot, Recorders};
pub use spec::thread_spec;
use watchdog::Watchdog;

/// From the moment all threads wait to the first due activation.
const LEAD_NS: i64 = 500_000;

/// Threads that wait for the epoch. Dropping it ends them without a run.
pub struct ThreadGroup {
    places: Vec<SlotOwner>,
    members: Vec<Member>,
    shared: Arc<Shared>,
    plan: Plan,
    interval_ns: i64,
    warm_n: u64,
    clock: i32,
    stop: &'static AtomicBool,
    may_be_busy: bool,
    watched: bool,
    begin_at_ns: Option<i64>,
    after: Option<After>,
    opened: bool,
}

/// A thread that records, before it is started.
pub struct RecordingThread<'g> {
    group: &'g mut ThreadGroup,
    slot: RecordSlot,
    recorders: Arc<Recorders>,
    beside: Vec<(RecordSlot, Arc<Recorders>)>,
}

impl RecordingThread<'_> {
    /// One more slot, in which the same thread records; its recorders, for the body.
    ///
    /// # Errors
    /// No memory for them.
    pub fn beside(&mut self, slot: RecordSlot) -> Result<Arc<Recorders>, ProbeError> {
        let recorders = self.group.recorders(&slot)?;
        self.beside.push((slot, Arc::clone(&recorders)));
        Ok(recorders)
    }

    /// Starts the thread, which waits for the epoch before it runs `body`.
    ///
    /// # Errors
    /// No such thread; nothing is left running when the group is dropped.
    pub fn start(
        self,
        spec: ThreadSpec,
        body: impl FnOnce(&ThreadContext) -> Result<Finished, SysError> + Send + 'static,
    ) -> Result<(), ProbeError> {
        let Self { group, slot, recorders, beside } = self;
        let own = Some(Arc::clone(&recorders));
        let member = group.start(slot.cpu_name(), slot.phase_ns, own, spec, Box::new(body))?;
        let beside = beside.into_iter().map(|(slot, recorders)| (slot, recorders, false));
        let own = std::iter::once((slot, recorders, true));
        group.places.extend(beside.chain(own).map(|(slot, recorders, own)| SlotOwner {
            slot,
            recorders,
            member,
            own,
        }));
        Ok(())
    }
}

impl ThreadGroup {
    /// No thread yet.
    ///
    /// # Errors
    /// The plan's clock is not known to this kernel.
    pub fn new(plan: &Plan, stop: &'static AtomicBool) -> Result<Self, ProbeError> {
        let clock = clock_id(plan.clock);
        clock::resolution_ns(clock)
            .map_err(|source| ProbeError::Clock { clock: plan.clock, source })?;
        let interval_ns = plan.interval_ns.max(1);
        Ok(Self {
            places: Vec::new(),
            members: Vec::new(),
            shared: Arc::new(Shared::default()),
            plan: plan.clone(),
            interval_ns,
            warm_n: u64::try_from(plan.warm_up_ns / interval_ns).unwrap_or(0),
            clock,
            stop,
            may_be_busy: false,
            watched: false,
            begin_at_ns: None,
            after: None,
            opened: false,
        })
    }

    /// The threads are meant to use whole CPUs: a warm-up without sleep is no overload.
    #[must_use]
    pub fn busy(mut self) -> Self {
        self.may_be_busy = true;
        self
    }

    /// A watchdog above all of them ends threads that do not end.
    #[must_use]
    pub fn watched(mut self) -> Self {
        self.watched = true;
        self
    }

    /// The first activations fall due at this instant of CLOCK_REALTIME.
    #[must_use]
    pub fn beginning(mut self, at_ns: Option<i64>) -> Self {
        self.begin_at_ns = at_ns;
        self
    }

    /// A thread that records in `slot`, and in those that are added to it before it is started.
    ///
    /// # Errors
    /// No memory for its recorders.
    pub fn thread(&mut self, slot: RecordSlot) -> Result<RecordingThread<'_>, ProbeError> {
        let recorders = self.recorders(&slot)?;
        Ok(RecordingThread { group: self, slot, recorders, beside: Vec::new() })
    }

    /// A thread with one slot.
    ///
    /// # Errors
    /// No memory for its recorders, or no such thread.
    pub fn measured(
        &mut self,
        slot: RecordSlot,
        spec: ThreadSpec,
        body: impl FnOnce(&ThreadContext) -> Result<Finished, SysError> + Send + 'static,
    ) -> Result<(), ProbeError> {
        self.thread(slot)?.start(spec, body)
    }

    /// A thread without a slot, for the sake of the others.
    ///
    /// # Errors
    /// No such thread.
    pub fn helper(
        &mut self,
        name: &str,
        spec: ThreadSpec,
        body: impl FnOnce(&ThreadContext) -> Result<(), SysError> + Send + 'static,
    ) -> Result<(), ProbeError> {
        let body: Body = Box::new(|thread| body(thread).map(|()| Finished::of(LoopEnd::Complete)));
        self.start(name.to_owned(), 0, None, spec, body).map(drop)
    }

    /// What is found out from the records when every thread has ended.
    pub fn after(&mut self, find: impl FnOnce(&[ThreadResult]) -> ProbeOutput + Send + 'static) {
        self.after = Some(Box::new(find));
    }

    fn recorders(&self, slot: &RecordSlot) -> Result<Arc<Recorders>, ProbeError> {
        let raw = self.plan.raw && matches!(slot.context, Context::User | Context::Start);
        let samples = if raw { RawSamples::Kept } else { RawSamples::NotKept };
        let recorders = Recorders::new(samples)
            .map_err(|source| ProbeError::Thread { cpu: slot.cpu_name(), source })?;
        // Others are not judged: for them it is chosen from the warm-up.
        if let (Some(deadline), Context::User) = (self.plan.requirement.deadline_ns, slot.context) {
            recorders.measured.set_threshold_ns(deadline);
        }
        Ok(Arc::new(recorders))
    }

    /// Starts one more member; its index.
    fn start(
        &mut self,
        name: String,
        phase_ns: i64,
        recorders: Option<Arc<Recorders>>,
        spec: ThreadSpec,
        body: Body,
    ) -> Result<usize, ProbeError> {
        let tid = Arc::new(AtomicI64::new(0));
        let work = Work {
            context: ThreadContext {
                epoch_ns: 0,
                phase_ns,
                interval_ns: self.interval_ns,
                warm_n: self.warm_n,
                activations: self.plan.activations,
                may_be_busy: self.may_be_busy,
                stop: self.stop,
                recorders,
                shared: Arc::clone(&self.shared),
            },
            tid: Arc::clone(&tid),
        };
        self.shared.running.fetch_add(1, Ordering::Relaxed);
        let thread = thread::spawn(spec, move || work.run(body))
            .map_err(|source| ProbeError::Thread { cpu: name.clone(), source })?;
        self.members.push(Member { name, thread, tid });
        Ok(self.members.len() - 1)
    }

    /// Waits until every thread is ready, sets the common epoch and lets them go.
    ///
    /// # Errors
    /// The first thread that could not get ready (its policy, its CPU); the instant to begin at is over.
    pub fn release(mut self) -> Result<Running, ProbeError> {
        let n = u32::try_from(self.members.len()).unwrap_or(u32::MAX);
        if !self.shared.gate.all_waiting(n) {
            self.opened = true;
            self.shared.gate.cancel();
            all_ended(std::mem::take(&mut self.members))?;
        }
        let appointed =
            self.begin_at_ns.map(|at_ns| begin::appointed(at_ns, self.clock)).transpose()?;
        let warm_up_ns =
            self.interval_ns.saturating_mul(i64::try_from(self.warm_n).unwrap_or(i64::MAX));
        let span = warm_up_ns.saturating_add(self.plan.duration_ns());
        let tids = self.members.iter().map(|m| Arc::clone(&m.tid)).collect();
        let watchdog = self.watched.then(|| Watchdog::start(span, tids, self.stop)).flatten();
        let epoch = appointed.unwrap_or_else(|| clock::now_ns(self.clock).saturating_add(LEAD_NS));
        self.opened = true;
        self.shared.gate.open(epoch);
        Ok(Running {
            places: std::mem::take(&mut self.places),
            members: std::mem::take(&mut self.members),
            shared: Arc::clone(&self.shared),
            clock: self.clock,
            start_ns: epoch.saturating_add(warm_up_ns),
            epoch_ns: epoch,
            after: self.after.take(),
            watchdog,
        })
    }
}

impl Drop for ThreadGroup {
    fn drop(&mut self) {
        if !self.opened {
            self.shared.gate.cancel();
            for member in self.members.drain(..) {
                drop(member.thread.join());
            }
        }
    }
}
