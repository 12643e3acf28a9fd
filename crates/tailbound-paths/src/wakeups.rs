// SPDX-License-Identifier: MIT OR Apache-2.0
//! The chain of each wake-up by a timer, from the time that was due to user mode.
//!
//! Context: COLD. Units: ns.
//!
//! ```text
//! due ─► interrupt taken ─► hrtimer_interrupt ─► hrtimer_wakeup ─► to be rescheduled ─► __schedule ─► switched ─► user mode
//! ```
//! Times of the guest's clock (due) and of QEMU's (all others) are a constant apart, which is found in the samples.

use crate::log::Record;
use crate::record::{kind, state};

/// Addresses that a chain is told by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Entry of the timer's interrupt.
    pub entry: u64,
    /// `hrtimer_interrupt`
    pub interrupt: u64,
    /// `__schedule`
    pub schedule: u64,
}

/// One wake-up. A step that was not seen has the time of the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeUp {
    /// The kernel's thread.
    pub thread: u64,
    /// When its timer was due, by the guest's clock.
    pub due_ns: u64,
    /// The interrupt was taken.
    pub taken_ns: u64,
    /// The handler of timers began.
    pub interrupt_ns: u64,
    /// The timer's function was called.
    pub woken_ns: u64,
    /// The thread on the CPU was to be rescheduled.
    pub resched_ns: u64,
    /// The scheduler was called, the last time before it went over.
    pub schedule_ns: u64,
    /// The scheduler went over to the thread.
    pub switched_ns: u64,
    /// The thread was in user mode.
    pub user_ns: u64,
}

/// What lies between two steps, in their order.
pub const LEGS: [&str; 8] = [
    "due to interrupt",
    "entry",
    "timers",
    "wake-up",
    "to the scheduler",
    "scheduler",
    "switch to user mode",
    "reading the clock",
];

impl WakeUp {
    /// Lengths of [`LEGS`]: `apart_ns` is what QEMU's clock is ahead of the guest's, `reading_ns` the last.
    #[must_use]
    pub fn legs(&self, apart_ns: i64, reading_ns: i64) -> [i64; 8] {
        let due = self.due_ns.cast_signed().saturating_add(apart_ns);
        let steps = [
            due,
            self.taken_ns.cast_signed(),
            self.interrupt_ns.cast_signed(),
            self.woken_ns.cast_signed(),
            self.resched_ns.cast_signed(),
            self.schedule_ns.cast_signed(),
            self.switched_ns.cast_signed(),
            self.user_ns.cast_signed(),
        ];
        let mut legs = [reading_ns; 8];
        for (leg, pair) in legs.iter_mut().zip(steps.windows(2)) {
            if let [a, b] = pair {
                *leg = b - a;
            }
        }
        legs
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct WakeUps {
    marks: Marks,
    taken_ns: u64,
    interrupt_ns: u64,
    state: u8,
    open: Vec<WakeUp>,
    waking: Option<u64>,
    /// Whole ones, in the order of their ends.
    pub all: Vec<WakeUp>,
}

impl WakeUps {
    /// By these addresses.
    #[must_use]
    pub fn new(marks: Marks) -> Self {
        Self { marks, ..Self::default() }
    }

    /// The next record.
    pub fn add(&mut self, r: &Record) {
        match r.kind {
            kind::STATE => {
                if r.value == self.marks.entry {
                    self.taken_ns = r.t_ns;
                    self.interrupt_ns = r.t_ns;
                }
                if r.state & !self.state & state::RESCHED != 0 {
                    for w in self.open.iter_mut().filter(|w| w.resched_ns == 0) {
                        w.resched_ns = r.t_ns;
                    }
                }
                self.state = r.state;
            }
            kind::POINT if r.value == self.marks.interrupt => self.interrupt_ns = r.t_ns,
            kind::POINT if r.value == self.marks.schedule => {
                for w in self.open.iter_mut().filter(|w| w.switched_ns == 0) {
                    w.schedule_ns = r.t_ns;
                }
            }
            kind::WAKE => self.waking = Some(r.value),
            kind::DUE => {
                let Some(thread) = self.waking.take() else { return };
                self.open.push(WakeUp {
                    thread,
                    due_ns: r.value,
                    taken_ns: self.taken_ns,
                    interrupt_ns: self.interrupt_ns,
                    woken_ns: r.t_ns,
                    // Another one woke before it, and nothing was done about it yet.
                    resched_ns: if self.state & state::RESCHED == 0 { 0 } else { r.t_ns },
                    ..WakeUp::default()
                });
            }
            kind::SWITCH => {
                for w in self.open.iter_mut().filter(|w| w.thread == r.value && w.switched_ns == 0) {
                    w.switched_ns = r.t_ns;
                }
            }
            kind::RETURN => {
                let ended = |w: &mut WakeUp| w.thread == r.value && w.switched_ns != 0;
                for mut w in self.open.extract_if(.., ended) {
                    w.user_ns = r.t_ns;
                    for (before, step) in [
                        (w.woken_ns, &mut w.resched_ns),
                        (w.woken_ns, &mut w.schedule_ns),
                    ] {
                        *step = (*step).max(before);
                    }
                    self.all.push(w);
                }
            }
            _ => {}
        }
    }
}

/// What QEMU's clock and the samples have in common, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fit {
    /// The sum of both constants: from the guest's clock to QEMU's, less from user mode to the sample's reading.
    pub constant_ns: i64,
    /// Samples that have it.
    pub samples: usize,
}

/// Why wake-ups and samples do not belong together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// Other numbers.
    #[error("{0} wake-ups were watched of {1} samples: they do not belong together")]
    Numbers(usize, usize),
    /// Several constants.
    #[error("the samples and what was watched differ by {0} to {1} ns, and not by one constant: nothing can be said of them")]
    NotConstant(i64, i64),
}

/// Is every sample the time from due to user mode, by one constant?
///
/// # Errors
/// [`FitError`]
pub fn fit(wakeups: &[WakeUp], samples_ns: &[i64]) -> Result<Fit, FitError> {
    if wakeups.len() != samples_ns.len() || samples_ns.is_empty() {
        return Err(FitError::Numbers(wakeups.len(), samples_ns.len()));
    }
    let apart = wakeups.iter().zip(samples_ns).map(|(w, sample)| {
        w.user_ns.cast_signed() - w.due_ns.cast_signed() - sample
    });
    let (least, most) = apart.fold((i64::MAX, i64::MIN), |(a, b), x| (a.min(x), b.max(x)));
    if least != most {
        return Err(FitError::NotConstant(least, most));
    }
    Ok(Fit { constant_ns: least, samples: samples_ns.len() })
}
