// SPDX-License-Identifier: MIT OR Apache-2.0
//! A periodic loop of somebody else's: how late each cycle started and how late it was done.
//!
//! Context: HOT (no allocation, lock, panic or system call: the caller reads the clock).
//! Units: ns on the loop's clock; both latencies count from the due time.
//! Every due activation is accounted for. A loop that serves each one, however late, has each
//! recorded as it was. One that leaves some out has them recorded as missed, in both contexts:
//! such an activation could have started when the loop came free (at the end of the cycle
//! before; if it fell due only after that, at the next start), and would have taken as long
//! as the cycle that came in its place.
//! Not here: our own loop ([`crate::cyclic`]), which skips by one fixed rule.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::recorder::{Recorder, Writer};

/// Why a call was not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobError {
    /// The due time is not after that of the cycle before, or leaves out what is yet to come.
    Order,
    /// An end without a start.
    NotStarted,
}

/// What the loop tells beside its two recorders. All zero is valid: nothing has happened.
#[derive(Debug, Default)]
pub struct Counts {
    begun: AtomicU64,
    first_due_ns: AtomicI64,
    activations: AtomicU64,
    unended: AtomicU64,
    refused: AtomicU64,
    finished: AtomicU64,
}

/// [`Counts`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Due time of the first activation; `None` before it.
    pub first_due_ns: Option<i64>,
    /// Due activations so far, served or missed.
    pub activations: u64,
    /// Cycles that were started and never ended: their completion is not known.
    pub unended: u64,
    /// Calls that were refused.
    pub refused: u64,
    /// The loop said that it is over.
    pub finished: bool,
}

impl Counts {
    /// Nothing has happened yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            begun: AtomicU64::new(0),
            first_due_ns: AtomicI64::new(0),
            activations: AtomicU64::new(0),
            unended: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            finished: AtomicU64::new(0),
        }
    }

    /// The reader's look.
    pub fn progress(&self) -> Progress {
        let begun = self.begun.load(Ordering::Acquire) != 0;
        Progress {
            first_due_ns: begun.then(|| self.first_due_ns.load(Ordering::Relaxed)),
            activations: self.activations.load(Ordering::Relaxed),
            unended: self.unended.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            finished: self.finished.load(Ordering::Acquire) != 0,
        }
    }
}

/// Activations left out before the cycle at hand: `first` could have started when the cycle
/// before ended, `rest` when this one started. The times count from the due time before them.
#[derive(Clone, Copy, Debug, Default)]
struct Left {
    first_ns: i64,
    first: u64,
    rest_ns: i64,
    rest: u64,
}

/// The writer's half of a periodic loop.
#[derive(Debug)]
pub struct Jobs<'r> {
    recorders: (&'r Recorder, &'r Recorder),
    counts: &'r Counts,
    start: Writer<'r>,
    completion: Writer<'r>,
    interval_ns: i64,
    /// Of the cycle at hand, or the last one.
    activation: u64,
    due_ns: i64,
    begun_ns: i64,
    /// When the loop last came free.
    free_ns: i64,
    begun: bool,
    open: bool,
    left: Left,
}

#[inline]
fn bump(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

impl<'r> Jobs<'r> {
    /// A loop of period `interval_ns` (at least 1) that writes into two empty recorders.
    #[must_use]
    pub fn new(
        start: &'r Recorder,
        completion: &'r Recorder,
        counts: &'r Counts,
        interval_ns: i64,
    ) -> Self {
        let interval_ns = interval_ns.max(1);
        Self {
            recorders: (start, completion),
            counts,
            start: Writer::new(start, 0, interval_ns),
            completion: Writer::new(completion, 0, interval_ns),
            interval_ns,
            activation: 0,
            due_ns: 0,
            begun_ns: 0,
            free_ns: 0,
            begun: false,
            open: false,
            left: Left::default(),
        }
    }

    /// The cycle that was due at `due_ns` starts at `now_ns`. The first one begins the schedule.
    ///
    /// # Errors
    /// [`JobError::Order`]; nothing is recorded then, but counted.
    #[inline]
    pub fn start(&mut self, due_ns: i64, now_ns: i64) -> Result<(), JobError> {
        if self.begun {
            let step = due_ns.saturating_sub(self.due_ns);
            if step <= 0 {
                bump(&self.counts.refused);
                return Err(JobError::Order);
            }
            // A schedule may wander a little: half a period decides.
            let half = self.interval_ns.checked_div(2).unwrap_or(0);
            let skips = step >= self.interval_ns.saturating_add(half);
            if skips && now_ns < due_ns.saturating_sub(self.interval_ns) {
                // What has not fallen due yet cannot have been missed.
                bump(&self.counts.refused);
                return Err(JobError::Order);
            }
            if self.open {
                self.abandon();
            }
            let steps = if skips { self.leave_out(step.saturating_add(half), now_ns) } else { 1 };
            self.activation = self.activation.wrapping_add(steps);
        } else {
            self.begin(due_ns);
        }
        (self.due_ns, self.begun_ns, self.open) = (due_ns, now_ns, true);
        self.start.wake(self.activation, due_ns, now_ns, 0);
        self.counts.activations.store(self.activation.wrapping_add(1), Ordering::Relaxed);
        Ok(())
    }

    /// The cycle at hand is done at `now_ns`.
    ///
    /// # Errors
    /// [`JobError::NotStarted`]; nothing is recorded then, but counted.
    #[inline]
    pub fn end(&mut self, now_ns: i64) -> Result<(), JobError> {
        if !self.open {
            bump(&self.counts.refused);
            return Err(JobError::NotStarted);
        }
        self.open = false;
        if self.left.first > 0 || self.left.rest > 0 {
            self.settle_left(now_ns.saturating_sub(self.begun_ns).max(0));
        }
        self.completion.wake(self.activation, self.due_ns, now_ns, 0);
        self.free_ns = now_ns;
        Ok(())
    }

    /// The next due time for a loop that leaves out what has passed: the first activation after
    /// the last one started that is later than `now_ns`. Before the first: a period from now.
    #[must_use]
    pub fn next_due_ns(&self, now_ns: i64) -> i64 {
        if !self.begun {
            return now_ns.saturating_add(self.interval_ns);
        }
        let behind = now_ns.saturating_sub(self.due_ns).max(0);
        let steps = behind.checked_div(self.interval_ns).unwrap_or(0).saturating_add(1);
        self.due_ns.saturating_add(steps.saturating_mul(self.interval_ns))
    }

    /// The loop is over: settles what is owed and publishes the last, partial second.
    pub fn finish(&mut self) {
        if self.open {
            self.abandon();
        }
        self.start.finish();
        self.completion.finish();
        self.counts.finished.store(1, Ordering::Release);
    }

    #[cold]
    fn begin(&mut self, due_ns: i64) {
        let (start, completion) = self.recorders;
        self.start = Writer::new(start, due_ns, self.interval_ns);
        self.completion = Writer::new(completion, due_ns, self.interval_ns);
        self.begun = true;
        self.counts.first_due_ns.store(due_ns, Ordering::Relaxed);
        self.counts.begun.store(1, Ordering::Release);
    }

    /// A cycle without an end: when it was done, nobody knows.
    #[cold]
    fn abandon(&mut self) {
        bump(&self.counts.unended);
        self.open = false;
        self.settle_left(0);
        self.free_ns = self.begun_ns;
    }

    /// Records the starts of what was left out; `step` is the rounded way to the next due
    /// time. Yields that way in periods.
    #[cold]
    fn leave_out(&mut self, step: i64, now_ns: i64) -> u64 {
        let steps = step.checked_div(self.interval_ns).map_or(1, i64::unsigned_abs).max(1);
        let all = steps.saturating_sub(1);
        let free = self.free_ns.saturating_sub(self.due_ns);
        let first = free.max(0).checked_div(self.interval_ns).map_or(0, i64::unsigned_abs).min(all);
        let passed = self.interval_ns.saturating_mul(i64::try_from(first).unwrap_or(i64::MAX));
        self.left = Left {
            first_ns: free,
            first,
            rest_ns: now_ns.saturating_sub(self.due_ns).saturating_sub(passed),
            rest: all.saturating_sub(first),
        };
        self.start.skipped(self.left.first_ns, self.left.first);
        self.start.skipped(self.left.rest_ns, self.left.rest);
        steps
    }

    /// Records the completions of what was left out: each start and `took_ns` more.
    #[cold]
    fn settle_left(&mut self, took_ns: i64) {
        let left = core::mem::take(&mut self.left);
        self.completion.skipped(left.first_ns.saturating_add(took_ns), left.first);
        self.completion.skipped(left.rest_ns.saturating_add(took_ns), left.rest);
    }
}
