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

/// Most entries by which a timer's interrupt may come.
pub const ENTRIES: usize = 16;

/// Addresses that a chain is told by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Entries of the timer's interrupt; unused places are 0.
    pub entries: [u64; ENTRIES],
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
    /// How long it was out of user mode again, the first time: by an interrupt, perhaps before it read its clock.
    pub away_ns: u64,
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
    /// Lengths of [`LEGS`]: `due_ns` is by QEMU's clock, `reading_ns` the last. A timer that falls due while the interrupt
    /// of another one is handled is served by that interrupt: what was before its due time is no part of its way.
    #[must_use]
    pub fn legs(&self, due_ns: u64, reading_ns: i64) -> [i64; 8] {
        let steps = [
            due_ns.cast_signed(),
            self.taken_ns.max(due_ns).cast_signed(),
            self.interrupt_ns.max(due_ns).cast_signed(),
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
    current: u64,
    /// The last that is in user mode, and since when it is out of it again.
    last: Option<(usize, Option<u64>)>,
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
                if self.marks.entries.contains(&r.value) {
                    self.taken_ns = r.t_ns;
                    self.interrupt_ns = r.t_ns;
                }
                if r.state & !self.state & state::RESCHED != 0 {
                    for w in self.open.iter_mut().filter(|w| w.resched_ns == 0) {
                        w.resched_ns = r.t_ns;
                    }
                }
                self.last = self.away(r);
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
                self.current = r.value;
                for w in self.open.iter_mut().filter(|w| w.thread == r.value && w.switched_ns == 0)
                {
                    w.switched_ns = r.t_ns;
                }
            }
            kind::RETURN => {
                let ended = |w: &mut WakeUp| w.thread == r.value && w.switched_ns != 0;
                for mut w in self.open.extract_if(.., ended) {
                    w.user_ns = r.t_ns;
                    for (before, step) in
                        [(w.woken_ns, &mut w.resched_ns), (w.woken_ns, &mut w.schedule_ns)]
                    {
                        *step = (*step).max(before);
                    }
                    self.last = Some((self.all.len(), None));
                    self.all.push(w);
                }
            }
            _ => {}
        }
    }

    /// The state is another while the last one is in user mode, or out of it.
    fn away(&mut self, r: &Record) -> Option<(usize, Option<u64>)> {
        let (at, since) = self.last?;
        let w = self.all.get_mut(at)?;
        let user = r.state & state::USER != 0;
        match since {
            None if user => self.last,
            None => Some((at, Some(r.t_ns))),
            Some(_) if !user || self.current != w.thread => self.last,
            Some(from) => {
                w.away_ns = r.t_ns - from;
                None
            }
        }
    }
}

/// What QEMU's clock and the samples have in common: a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// At the first: from the guest's clock to QEMU's, less from user mode to the reading of the clock.
    pub constant_ns: i64,
    /// What the guest's clock is slower than QEMU's, as a share: its kernel measures its counter at the boot.
    pub drift: f64,
    /// When the first was due.
    pub first_ns: u64,
    /// Samples that lie on it.
    pub samples: usize,
}

impl Fit {
    /// The due time by a clock that runs as QEMU's, and is a constant apart from it.
    #[must_use]
    pub fn on_line(&self, w: &WakeUp) -> i64 {
        let since = w.due_ns.cast_signed() - self.first_ns.cast_signed();
        w.due_ns.cast_signed() + drifted(self.drift, since)
    }

    /// Parts in 10⁹.
    #[must_use]
    pub fn drift_ppb(&self) -> i64 {
        whole(self.drift * 1e9)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "ns")]
fn whole(x: f64) -> i64 {
    x.round() as i64
}

#[expect(clippy::cast_precision_loss, reason = "ns within a run")]
fn drifted(drift: f64, since_ns: i64) -> i64 {
    whole(drift * since_ns as f64)
}

/// Interrupts that are in time lie so close together.
const IN_TIME_NS: i64 = 16;

/// From the due time by the samples' line to the interrupt, of interrupts that were in time: `apart_ns` has it of all wake-ups. At
/// least a twentieth of them is in time. An earlier one was under way already when the timer fell due.
#[must_use]
pub fn in_time(mut apart_ns: Vec<i64>) -> i64 {
    apart_ns.sort_unstable();
    let some = (apart_ns.len() / 20).max(1);
    let close = |pair: &(&i64, &i64)| *pair.1 - *pair.0 <= IN_TIME_NS;
    let found = apart_ns.iter().zip(apart_ns.iter().skip(some)).find(close);
    found.map_or_else(|| apart_ns.first().copied().unwrap_or(0), |(first, _)| *first)
}

/// Why wake-ups and samples do not belong together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// Other numbers.
    #[error("{0} wake-ups were watched of {1} samples: they do not belong together")]
    Numbers(usize, usize),
    /// Several constants.
    #[error("{0} of {1} samples are not what was watched: nothing can be said of them")]
    NotConstant(usize, usize),
}

/// Is every sample the time from due to user mode, by one line? An interrupt that came before the thread had read its
/// clock is in the sample, with its whole length. The guest's clock advances in steps of `step_ns`: as much more or less
/// is the same.
///
/// # Errors
/// [`FitError`]
pub fn fit(wakeups: &[WakeUp], samples_ns: &[i64], step_ns: i64) -> Result<Fit, FitError> {
    let (Some(first), true) = (wakeups.first(), wakeups.len() == samples_ns.len()) else {
        return Err(FitError::Numbers(wakeups.len(), samples_ns.len()));
    };
    let points: Vec<(i64, i64)> = wakeups
        .iter()
        .zip(samples_ns)
        .map(|(w, sample)| {
            // When the thread read its clock, by that clock: a late sample drifts as long as it is.
            let read = w.due_ns.cast_signed() + sample;
            (read - first.due_ns.cast_signed(), w.user_ns.cast_signed() - read)
        })
        .collect();
    let drift = slope(&points);
    let mut level: Vec<i64> = points.iter().map(|(x, y)| y - drifted(drift, *x)).collect();
    level.sort_unstable();
    let constant_ns = level.get(level.len() / 2).copied().unwrap_or(0);
    let other = |(w, (x, y)): &(&WakeUp, &(i64, i64))| {
        let off = y - drifted(drift, *x) - constant_ns;
        off.abs() > step_ns && off.saturating_add_unsigned(w.away_ns).abs() > step_ns
    };
    match wakeups.iter().zip(&points).filter(other).count() {
        0 => Ok(Fit { constant_ns, drift, first_ns: first.due_ns, samples: samples_ns.len() }),
        n => Err(FitError::NotConstant(n, samples_ns.len())),
    }
}

/// The median of the slopes between each point and the one half of all further on.
fn slope(points: &[(i64, i64)]) -> f64 {
    let half = points.len().div_ceil(2);
    let pairs = points.iter().zip(points.iter().skip(half));
    #[expect(clippy::cast_precision_loss, reason = "ns within a run")]
    let of = |((x, y), (u, v)): (&(i64, i64), &(i64, i64))| (v - y) as f64 / (u - x).max(1) as f64;
    let mut all: Vec<f64> = pairs.map(of).collect();
    all.sort_unstable_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(t_ns: u64, kind: u8, state: u8, value: u64) -> Record {
        Record { t_ns, state, kind, value }
    }

    /// One wake-up of thread 7, due at 100 by a clock that is 1000 behind.
    fn chain() -> WakeUps {
        let mut entries = [0; ENTRIES];
        entries[0] = 0xe;
        let marks = Marks { entries, interrupt: 0x1, schedule: 0x5 };
        let mut all = WakeUps::new(marks);
        for r in [
            record(1105, kind::STATE, state::INTERRUPTS_OFF, 0xe),
            record(1110, kind::POINT, 1, 0x1),
            record(1120, kind::WAKE, 1, 7),
            record(1120, kind::DUE, 1, 100),
            record(1130, kind::STATE, 1 | state::RESCHED, 0xa),
            record(1140, kind::POINT, 5, 0x5),
            record(1150, kind::SWITCH, 1, 7),
            record(1160, kind::STATE, state::USER, 0xb),
            record(1160, kind::RETURN, state::USER, 7),
            record(1165, kind::STATE, state::INTERRUPTS_OFF, 0xe),
            record(1195, kind::STATE, state::USER, 0xb),
            record(1250, kind::STATE, 0, 0xc),
        ] {
            all.add(&r);
        }
        all
    }

    #[test]
    fn legs_and_the_reading_are_the_latency() {
        let [w] = chain().all.try_into().unwrap();
        let legs = w.legs(1100, 40);
        assert_eq!(legs, [5, 5, 10, 10, 10, 10, 10, 40]);
        assert_eq!(w.away_ns, 30);
    }

    #[test]
    fn a_timer_that_falls_due_within_an_interrupt_has_no_leg_before() {
        let [w] = chain().all.try_into().unwrap();
        let legs = w.legs(1112, 40);
        assert_eq!(legs, [0, 0, 8, 10, 10, 10, 10, 40]);
    }

    #[test]
    fn the_time_of_an_interrupt_is_not_that_of_one_under_way() {
        let mut apart = vec![-900, -70, 5000];
        apart.extend([3; 50]);
        assert_eq!(in_time(apart), 3);
        assert_eq!(in_time(vec![7]), 7);
        assert_eq!(in_time(Vec::new()), 0);
    }

    #[test]
    fn a_clock_that_drifts_is_a_line() {
        let one = chain().all.pop().unwrap();
        let later = |n: u64| WakeUp {
            due_ns: one.due_ns + n * 1_000_000,
            user_ns: one.user_ns + n * 999_999,
            ..one
        };
        let all: Vec<WakeUp> = (0..100).map(later).collect();
        let fit = fit(&all, &[70; 100], 1).unwrap();
        assert_eq!((fit.constant_ns, fit.drift_ppb()), (990, -1000));
        assert_eq!(fit.on_line(&all[50]), 100 + 50 * 999_999);
    }

    #[test]
    fn a_late_sample_drifts_until_the_clock_is_read() {
        let one = chain().all.pop().unwrap();
        // Each of 1 ms, but one of 8 ms, by a clock that a second takes a microsecond longer on.
        let late = |n: u64| if n == 50 { 8_000_000 } else { 70 };
        let of = |n: u64| {
            let read_ns = n * 1_000_000 + late(n);
            let user_ns = one.user_ns + read_ns - 70 - (read_ns - 70) / 1_000_000;
            WakeUp { due_ns: one.due_ns + n * 1_000_000, user_ns, ..one }
        };
        let all: Vec<WakeUp> = (0..100).map(of).collect();
        let samples: Vec<i64> = (0..100).map(|n| late(n).cast_signed()).collect();
        let fit = fit(&all, &samples, 1).unwrap();
        assert_eq!((fit.constant_ns, fit.drift_ppb()), (990, -1000));
    }

    #[test]
    fn a_sample_has_the_constant_with_or_without_an_interrupt() {
        let w = chain().all.pop().unwrap();
        assert_eq!(fit(&[w, w], &[70, 70], 1).unwrap().constant_ns, 990);
        // All but the last were interrupted later than they read their clock.
        let at = |n: u64| {
            let later_ns = n * 1_000_000;
            WakeUp { due_ns: w.due_ns + later_ns, user_ns: w.user_ns + later_ns, ..w }
        };
        let all: Vec<WakeUp> = (0..9).map(at).collect();
        let with = |last| [70, 70, 70, 70, 70, 70, 70, 70, last];
        assert_eq!(fit(&all, &with(100), 1).unwrap().constant_ns, 990);
        assert_eq!(fit(&all, &with(90), 1), Err(FitError::NotConstant(1, 9)));
        assert_eq!(fit(&[w], &[], 1), Err(FitError::Numbers(1, 0)));
    }
}
