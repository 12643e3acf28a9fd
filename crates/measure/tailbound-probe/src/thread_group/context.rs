// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a thread of a probe knows while it runs: its schedules, its recorders, the stop flag.
//!
//! Context: HOT in the bodies that [`ThreadContext::phases`] runs. Units: ns.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tailbound_core::Finding;
use tailbound_core::number::Real as _;
use tailbound_core::pulses::AnsweredPulses;
use tailbound_core::record::{FigureRecord, TimelineRecord};
use tailbound_rt::cyclic::{LoopEnd, Schedule};
use tailbound_rt::recorder::Recorder;
use tailbound_sys::error::SysError;
use tailbound_sys::limits::{self, Usage};
use tailbound_sys::sched;

use super::gate::Gate;
use super::slot::Recorders;

/// A thread that used this share of its warm-up as CPU time cannot keep its schedule.
const OVERLOAD: f64 = 0.9;

/// What the threads share with the supervisor.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) gate: Gate,
    pub(super) running: AtomicU64,
    pub(super) output: Mutex<ProbeOutput>,
}

/// What a probe found beside latencies.
#[derive(Debug, Default)]
pub struct ProbeOutput {
    /// Figures.
    pub figures: Vec<FigureRecord>,
    /// What some tasks did.
    pub timelines: Vec<TimelineRecord>,
    /// The longest answers to pulses.
    pub pulses: Vec<AnsweredPulses>,
    /// What a reader must know; a proven violation among it.
    pub findings: Vec<Finding>,
}

impl ProbeOutput {
    /// Adds what another found.
    pub fn append(&mut self, other: Self) {
        self.figures.extend(other.figures);
        self.timelines.extend(other.timelines);
        self.pulses.extend(other.pulses);
        self.findings.extend(other.findings);
    }
}

/// How one thread ended.
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    /// How the measured loop ended.
    pub ended: LoopEnd,
    /// Counters of the thread over the measured loop.
    pub usage: Usage,
    /// The thread used almost all of its CPU in the warm-up: the interval is too short here.
    pub overloaded: bool,
}

impl Finished {
    /// Ended so, without counters.
    #[must_use]
    pub fn of(ended: LoopEnd) -> Self {
        Self { ended, usage: Usage::default(), overloaded: false }
    }
}

/// What the body of a thread knows.
pub struct ThreadContext {
    pub(super) epoch_ns: i64,
    pub(super) phase_ns: i64,
    pub(super) interval_ns: i64,
    pub(super) warm_n: u64,
    pub(super) activations: u64,
    pub(super) may_be_busy: bool,
    pub(super) stop: &'static AtomicBool,
    pub(super) recorders: Option<Arc<Recorders>>,
    pub(super) shared: Arc<Shared>,
}

impl ThreadContext {
    /// When the activations of the warm-up fall due.
    #[must_use]
    pub fn warm_up(&self) -> Schedule {
        Schedule {
            first_ns: self.epoch_ns.saturating_add(self.phase_ns),
            interval_ns: self.interval_ns,
            activations: self.warm_n,
        }
    }

    /// When those of the measurement fall due.
    #[must_use]
    pub fn measurement(&self) -> Schedule {
        let warm = self.warm_up();
        Schedule {
            first_ns: warm.first_ns.saturating_add(self.warm_span_ns()),
            activations: self.activations,
            ..warm
        }
    }

    fn warm_span_ns(&self) -> i64 {
        self.interval_ns.saturating_mul(i64::try_from(self.warm_n).unwrap_or(0))
    }

    /// Set when the threads are to end.
    #[must_use]
    pub fn stop(&self) -> &'static AtomicBool {
        self.stop
    }

    /// The recorders of the thread's own slot; a helper has none.
    #[must_use]
    pub fn recorders(&self) -> Option<&Arc<Recorders>> {
        self.recorders.as_ref()
    }

    /// Adds to what the probe found. Takes a lock: before or after the loops only.
    pub fn output(&self, add: impl FnOnce(&mut ProbeOutput)) {
        add(&mut self.shared.output.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Runs `body` twice: over the warm-up, then over the measurement, with the recorder of
    /// each (of the thread's own slot).
    ///
    /// # Errors
    /// `EINVAL` for a helper, which has no slot: a bug of ours.
    pub fn phases(
        &self,
        mut body: impl FnMut(&Schedule, &Recorder) -> LoopEnd,
    ) -> Result<Finished, SysError> {
        let Some(recorders) = &self.recorders else {
            return Err(SysError::code("phases", "a thread without a slot: a bug of ours", 22));
        };
        let before = limits::thread_usage();
        let ended = body(&self.warm_up(), &recorders.warm_up);
        let used = limits::thread_usage();
        let overloaded = !self.may_be_busy
            && self.warm_n >= 100
            && used.since(&before).cpu_ns.real() > OVERLOAD * self.warm_span_ns().real();
        if overloaded || ended != LoopEnd::Complete {
            let ended = match ended {
                LoopEnd::Failed(errno, _) => LoopEnd::Failed(errno, 0),
                _ => LoopEnd::Stopped(0),
            };
            return Ok(Finished { overloaded, ..Finished::of(ended) });
        }
        let measurement = self.measurement();
        // Only what the loop itself did: the lines above touch pages that it never does.
        let begun = limits::thread_usage();
        let ended = body(&measurement, &recorders.measured);
        let usage = limits::thread_usage().since(&begun);
        Ok(Finished { ended, usage, overloaded: false })
    }
}

/// What a thread runs.
pub(super) type Body = Box<dyn FnOnce(&ThreadContext) -> Result<Finished, SysError> + Send>;

/// What one thread does around its body.
pub(super) struct Work {
    pub(super) context: ThreadContext,
    pub(super) tid: Arc<AtomicI64>,
}

impl Drop for Work {
    /// Counts the thread out, also when it panics or never began: the supervisor waits for that.
    fn drop(&mut self) {
        self.context.shared.running.fetch_sub(1, Ordering::Release);
        self.context.shared.gate.leave();
    }
}

impl Work {
    pub(super) fn run(mut self, body: Body) -> Result<Finished, SysError> {
        self.tid.store(i64::from(sched::gettid()), Ordering::Relaxed);
        match self.context.shared.gate.wait() {
            None => Ok(Finished::of(LoopEnd::Stopped(0))),
            Some(epoch_ns) => {
                self.context.epoch_ns = epoch_ns;
                body(&self.context)
            }
        }
    }
}
