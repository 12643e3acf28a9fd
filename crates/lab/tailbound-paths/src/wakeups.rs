// SPDX-License-Identifier: MIT OR Apache-2.0
//! The chain of each wake-up by a timer, from the time that was due to user mode.
//!
//! Units: ns.
//!
//! ```text
//! due ─► interrupt taken ─► hrtimer_interrupt ─► hrtimer_wakeup ─► to be rescheduled ─► __schedule ─► switched ─► user mode
//!                                                     └─► the other CPU is told ─┘
//! ```
//! Times of the guest's clock (due) and of QEMU's (all others) are a constant apart, which is found in the samples. With
//! several CPUs each has steps of its own: the timer's are those of the CPU that served it, the others those of the CPU that
//! the thread came to, which is known from the switch.

use tailbound_core::paths::Leg;

use crate::log::Record;
use crate::record::{CPUS, kind, state};
use crate::turns::Turns;

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
    /// `clockevents_program_event`, with several CPUs; else 0.
    pub sets: u64,
    /// Those of a second kernel below Linux, which takes the timer's interrupt first.
    pub second: Option<Second>,
}

/// What [`Marks`] has of a second kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Second {
    /// Its handler of timers.
    pub interrupt: u64,
    /// Its scheduler.
    pub schedule: u64,
}

impl Marks {
    fn schedules(&self, at: u64) -> bool {
        at == self.schedule || self.second.is_some_and(|s| s.schedule == at)
    }
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
    /// A second kernel below Linux woke it.
    pub second: bool,
    /// How long it was out of user mode again, the first times; 0: not so often. By interrupts, perhaps before it read its clock.
    pub away_ns: Aways,
    /// The CPU that served the timer, and the one that the thread came to.
    pub cpus: (u8, u8),
    /// With several CPUs: the timer of the CPU began to be set for it.
    pub set_ns: u64,
    /// The thread's CPU was told, where another one served the timer.
    pub told_ns: u64,
    /// The entry by which it was told; 0: none was seen.
    pub told_by: u64,
    /// It went on to another CPU before it was in user mode.
    pub moved: bool,
    /// The first times after it at which the thread read the processor's counter; 0: none. With one CPU none is recorded.
    pub reads_ns: Reads,
}

/// A thread reads its clock before so many others come to user mode.
const LOOKED_BACK: usize = 64;
/// Interrupts that may come between user mode and the reading of the clock. Two do where a timer was set when it was due.
pub type Aways = [u64; 4];
/// A clock is read again where another CPU changes its parameters meanwhile.
pub type Reads = [u64; 3];

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

/// With several CPUs: where it stands among [`LEGS`].
const TELLING_AT: usize = 3;
/// From the timer's function to the other CPU.
pub const TELLING: &str = "to the other CPU";

/// A leg of a wake-up in a guest with several CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnLeg {
    /// [`LEGS`], [`TELLING`]
    pub name: &'static str,
    /// How long.
    pub ns: i64,
    /// How much of it its CPU executed; none where it lies on two.
    pub own_ns: Option<i64>,
}

impl WakeUp {
    /// Did another CPU serve the timer?
    #[must_use]
    pub fn handed_over(&self) -> bool {
        self.cpus.0 != self.cpus.1
    }

    /// As [`Self::legs`], with several CPUs.
    #[must_use]
    pub fn own_legs(&self, due_ns: u64, reading_ns: i64, turns: &Turns) -> Vec<OwnLeg> {
        let read_ns = self.user_ns.saturating_add_signed(reading_ns);
        let (timer, thread) = self.cpus;
        let mut steps = vec![
            (timer, due_ns),
            (timer, self.taken_ns.max(due_ns)),
            (timer, self.interrupt_ns.max(due_ns)),
            (timer, self.woken_ns),
            (thread, self.told_ns),
            (thread, self.resched_ns),
            (thread, self.schedule_ns),
            (thread, self.switched_ns),
            (thread, self.user_ns),
        ];
        steps.push((thread, read_ns));
        let mut names = LEGS.to_vec();
        names.insert(TELLING_AT, TELLING);
        let one = |(name, pair): (&'static str, &[(u8, u64)])| {
            let [(from, a), (to, b)] = pair else { return None };
            let own_ns = (from == to).then(|| turns.within(*from, *a, *b).cast_signed());
            Some(OwnLeg { name, ns: b.cast_signed() - a.cast_signed(), own_ns })
        };
        names.into_iter().zip(steps.windows(2)).filter_map(one).collect()
    }

    /// Was no reading of the clock seen?
    #[must_use]
    pub fn is_unread(&self) -> bool {
        self.reads_ns == Reads::default()
    }

    /// When the sample may have been taken: at one of these, less a constant.
    fn ends(&self) -> impl Iterator<Item = u64> {
        let reads = self.reads_ns.into_iter().filter(|t| *t > 0);
        reads.chain(self.is_unread().then_some(self.user_ns))
    }

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

/// The legs of a wake-up; with several CPUs also in their own time.
pub(crate) fn legs(w: &WakeUp, due_ns: u64, reading_ns: i64, turns: &Turns) -> Vec<Leg> {
    let leg = |name: &str, ns, own_ns| Leg { name: name.to_owned(), ns, own_ns };
    if turns.several() {
        let all = w.own_legs(due_ns, reading_ns, turns);
        return all.into_iter().map(|l| leg(l.name, l.ns, l.own_ns)).collect();
    }
    LEGS.iter().zip(w.legs(due_ns, reading_ns)).map(|(name, ns)| leg(name, ns, None)).collect()
}

/// What one CPU does.
#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    taken_ns: u64,
    interrupt_ns: u64,
    set_ns: u64,
    /// A second kernel serves the timer.
    second: bool,
    state: u8,
    current: u64,
    /// The last interrupt or exception, and its entry.
    entered: (u64, u64),
}

/// What one CPU did for a wake-up since it was woken; 0: nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Since {
    resched_ns: u64,
    schedule_ns: u64,
    /// Entry and time of the interrupt in which it was told.
    told: (u64, u64),
}

/// One that is not in user mode.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    wakeup: WakeUp,
    cpus: [Since; CPUS],
}

/// See the module.
#[derive(Debug, Default)]
pub struct WakeUps {
    marks: Marks,
    cpus: [Cpu; CPUS],
    open: Vec<Open>,
    waking: Option<u64>,
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
        let at = usize::from(r.cpu);
        let Some(cpu) = self.cpus.get_mut(at) else { return };
        match r.kind {
            kind::STATE => {
                if self.marks.entries.contains(&r.value) {
                    cpu.taken_ns = r.t_ns;
                    cpu.interrupt_ns = r.t_ns;
                }
                let (rises, entered) = (r.state & !cpu.state & state::RESCHED != 0, cpu.entered);
                if rises {
                    self.since(at, |since, _| {
                        if since.resched_ns == 0 {
                            (since.resched_ns, since.told) = (r.t_ns, entered);
                        }
                    });
                }
                self.last = self.away(r);
                if let Some(cpu) = self.cpus.get_mut(at) {
                    cpu.state = r.state;
                }
            }
            kind::ENTER => cpu.entered = (r.value, r.t_ns),
            kind::POINT if r.value == self.marks.interrupt => {
                (cpu.interrupt_ns, cpu.second) = (r.t_ns, false);
            }
            kind::POINT if self.marks.second.is_some_and(|s| s.interrupt == r.value) => {
                (cpu.interrupt_ns, cpu.second) = (r.t_ns, true);
            }
            kind::POINT if r.value == self.marks.sets => cpu.set_ns = r.t_ns,
            kind::POINT if self.marks.schedules(r.value) => {
                let entered = cpu.entered;
                self.since(at, |since, _| {
                    since.schedule_ns = r.t_ns;
                    if since.resched_ns == 0 {
                        since.told = entered;
                    }
                });
            }
            kind::WAKE => self.waking = Some(r.value),
            kind::DUE => self.wakes(r, at),
            kind::SWITCH => {
                cpu.current = r.value;
                let cpu = r.cpu;
                for open in self.open.iter_mut().filter(|o| o.wakeup.thread == r.value) {
                    open.comes_to(cpu, r.t_ns);
                }
            }
            kind::READ => self.reads(r),
            kind::RETURN => {
                let ended = |o: &mut Open| o.wakeup.thread == r.value && o.wakeup.switched_ns != 0;
                for Open { wakeup: mut w, .. } in self.open.extract_if(.., ended) {
                    w.user_ns = r.t_ns;
                    w.moved |= w.cpus.1 != r.cpu;
                    self.last = Some((self.all.len(), None));
                    self.all.push(w);
                }
            }
            _ => {}
        }
    }

    /// What this CPU did for all that do not have it yet.
    fn since(&mut self, cpu: usize, mut does: impl FnMut(&mut Since, &WakeUp)) {
        for open in self.open.iter_mut().filter(|o| o.wakeup.switched_ns == 0) {
            if let Some(since) = open.cpus.get_mut(cpu) {
                does(since, &open.wakeup);
            }
        }
    }

    /// A timer's function wakes a thread.
    fn wakes(&mut self, r: &Record, at: usize) {
        let (Some(thread), Some(cpu)) = (self.waking.take(), self.cpus.get(at)) else { return };
        let mut open = Open {
            wakeup: WakeUp {
                thread,
                due_ns: r.value,
                taken_ns: cpu.taken_ns,
                interrupt_ns: cpu.interrupt_ns,
                woken_ns: r.t_ns,
                set_ns: cpu.set_ns,
                second: cpu.second,
                cpus: (r.cpu, r.cpu),
                ..WakeUp::default()
            },
            ..Open::default()
        };
        for (since, cpu) in open.cpus.iter_mut().zip(&self.cpus) {
            // Another one woke before it, and nothing was done about it yet.
            if cpu.state & state::RESCHED != 0 {
                since.resched_ns = r.t_ns;
            }
        }
        // It slept again in the kernel: the wake-up before this one was none to user mode.
        self.open.retain(|o| o.wakeup.thread != thread);
        self.open.push(open);
    }

    /// A thread reads its clock: that of the last that came to user mode.
    fn reads(&mut self, r: &Record) {
        let last = self.all.iter_mut().rev().take(LOOKED_BACK).find(|w| w.thread == r.value);
        let free = last.and_then(|w| w.reads_ns.iter_mut().find(|t| **t == 0));
        if let Some(free) = free {
            *free = r.t_ns;
        }
    }

    /// The state is another while the last one is in user mode, or out of it.
    fn away(&mut self, r: &Record) -> Option<(usize, Option<u64>)> {
        let (at, since) = self.last?;
        let w = self.all.get_mut(at)?;
        if w.cpus.1 != r.cpu {
            return self.last;
        }
        let current = self.cpus.get(usize::from(r.cpu))?.current;
        let user = r.state & state::USER != 0;
        match since {
            None if user => self.last,
            None => Some((at, Some(r.t_ns))),
            Some(_) if !user || current != w.thread => self.last,
            Some(from) => {
                let mut free = w.away_ns.iter_mut().filter(|away| **away == 0);
                *free.next()? = r.t_ns - from;
                free.next().map(|_| (at, None))
            }
        }
    }
}

impl Open {
    /// The scheduler of a CPU goes over to its thread.
    fn comes_to(&mut self, cpu: u8, t_ns: u64) {
        let w = &mut self.wakeup;
        if w.switched_ns != 0 {
            w.moved |= w.cpus.1 != cpu;
            return;
        }
        let since = self.cpus.get(usize::from(cpu)).copied().unwrap_or_default();
        (w.cpus.1, w.switched_ns) = (cpu, t_ns);
        w.told_ns = w.woken_ns;
        if w.handed_over() && since.resched_ns != w.woken_ns {
            let (entry, entered_ns) = since.told;
            let first = if since.resched_ns == 0 { since.schedule_ns } else { since.resched_ns };
            (w.told_by, w.told_ns) =
                if entered_ns >= w.woken_ns { (entry, entered_ns) } else { (0, first) };
            w.told_ns = w.told_ns.max(w.woken_ns);
        }
        w.resched_ns = since.resched_ns.max(w.told_ns);
        w.schedule_ns = since.schedule_ns.max(w.woken_ns);
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

/// Interrupts that are in time lie so close together, or a step of the guest's clock.
const IN_TIME_NS: i64 = 16;

/// From the due time by the samples' line to the interrupt, of interrupts that were in time: `apart_ns` has it of all wake-ups. At
/// least a twentieth of them is in time. An earlier one was under way already when the timer fell due. The guest's clock advances in
/// steps of `clock_step_ns`.
#[must_use]
pub fn in_time(mut apart_ns: Vec<i64>, clock_step_ns: i64) -> i64 {
    apart_ns.sort_unstable();
    let in_time_ns = IN_TIME_NS.max(clock_step_ns);
    // Those that another timer's interrupt served, always the same time before, lie close together too: a tick's, each fourth one.
    let within = |from: i64| apart_ns.partition_point(|at| at - from <= in_time_ns);
    let most = apart_ns.iter().enumerate().map(|(at, from)| within(*from) - at).max().unwrap_or(0);
    let some = (apart_ns.len() / 20).max(most * 3 / 5).max(1);
    let close = |pair: &(&i64, &i64)| *pair.1 - *pair.0 <= in_time_ns;
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

/// Is every sample the time from due to user mode, by one line? With several CPUs, to the reading of the clock: between user
/// mode and that it may be another CPU's turn. An interrupt that came before the thread had read its
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
            let end = w.ends().next().unwrap_or(w.user_ns);
            (read - first.due_ns.cast_signed(), end.cast_signed() - read)
        })
        .collect();
    let drift = slope(&points);
    let mut level: Vec<i64> = points.iter().map(|(x, y)| y - drifted(drift, *x)).collect();
    level.sort_unstable();
    let constant_ns = level.get(level.len() / 2).copied().unwrap_or(0);
    let other = |(w, (x, y)): &(&WakeUp, &(i64, i64))| {
        let off = y - drifted(drift, *x) - constant_ns;
        let first = w.ends().next().unwrap_or(0).cast_signed();
        // Where its clock's reading was seen that is the end, and no interrupt before it matters.
        let away = w.away_ns.iter().take_while(|away| **away > 0 && w.is_unread());
        let fits = |mut off: i64| {
            let mut away = away.clone();
            while off.abs() > step_ns {
                let Some(next) = away.next() else { return false };
                off = off.saturating_add_unsigned(*next);
            }
            true
        };
        !w.ends().any(|end| fits(off + end.cast_signed() - first))
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
        Record { t_ns, cpu: 0, state, kind, value }
    }

    /// One wake-up of thread 7, due at 100 by a clock that is 1000 behind.
    fn chain() -> WakeUps {
        let mut entries = [0; ENTRIES];
        entries[0] = 0xe;
        let marks = Marks { entries, interrupt: 0x1, schedule: 0x5, sets: 0, second: None };
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
    fn a_thread_that_slept_again_in_the_kernel_came_to_user_mode_once() {
        let mut all = WakeUps::new(Marks::default());
        for n in 0..3 {
            for (at, kind, value) in [(0, kind::WAKE, 7), (0, kind::DUE, n), (5, kind::SWITCH, 7)] {
                all.add(&record(1000 * n + at, kind, 1, value));
            }
        }
        all.add(&record(2010, kind::RETURN, state::USER, 7));
        let [w] = all.all.try_into().unwrap();
        assert_eq!((w.due_ns, w.woken_ns, w.user_ns), (2, 2000, 2010));
    }

    #[test]
    fn legs_and_the_reading_are_the_latency() {
        let [w] = chain().all.try_into().unwrap();
        let legs = w.legs(1100, 40);
        assert_eq!(legs, [5, 5, 10, 10, 10, 10, 10, 40]);
        assert_eq!(w.away_ns, [30, 0, 0, 0]);
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
        assert_eq!(in_time(apart.clone(), 1), 3);
        apart.extend([-1500; 20]);
        assert_eq!(in_time(apart, 1), 3);
        assert_eq!(in_time(vec![7], 1), 7);
        assert_eq!(in_time(Vec::new(), 1), 0);
    }

    #[test]
    fn interrupts_in_time_are_as_far_apart_as_the_steps_of_the_clock() {
        // A clock of 1 MHz: 100 that lie anywhere within a step, 60 late ones, one that was under way.
        let in_a_step = (0..100).map(|n| n * 370 % 1_000);
        let late = (0..60).map(|n| 1_000 + n * n);
        let apart: Vec<i64> = in_a_step.chain(late).chain([-1_860]).collect();
        assert_eq!(in_time(apart, 1_000), 0);
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
        let after = |n: u64| WakeUp {
            due_ns: w.due_ns + n * 1_000_000,
            user_ns: w.user_ns + n * 1_000_000,
            ..w
        };
        let all: Vec<WakeUp> = (0..10).map(after).collect();
        let last = |ns| {
            let mut samples = [70; 10];
            samples[9] = ns;
            fit(&all, &samples, 1)
        };
        assert_eq!(last(70).unwrap().constant_ns, 990);
        // Interrupted later than it read its clock.
        assert_eq!(last(100).unwrap().constant_ns, 990);
        assert_eq!(last(90), Err(FitError::NotConstant(1, 10)));
        // Twice.
        let twice = WakeUp { away_ns: [30, 1400, 0, 0], ..all[9] };
        let all: Vec<WakeUp> = all[..9].iter().copied().chain([twice]).collect();
        let last = |ns| fit(&all, &[[70; 9].as_slice(), &[ns]].concat(), 1);
        assert!([70, 100, 1500].into_iter().all(|ns| last(ns).is_ok()));
        assert_eq!(last(1470), Err(FitError::NotConstant(1, 10)));
        assert_eq!(fit(&[w], &[], 1), Err(FitError::Numbers(1, 0)));
    }
}
