// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the two logs of one run to its record: first what was watched sparsely, then what the longest executed.
//!
//! Context: COLD. Units: ns; of the guest's clock (due), or of QEMU's, which is a constant ahead.
//! The log is read twice: for the wake-ups, which give the window, and for the sections within it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{Read, Seek, SeekFrom};

use tailbound_core::paths::{
    Behind, HandedOver, Leg, PathsChecks, PathsCpu, PathsRecord, SectionKind, SectionRecord,
    SectionTotal, SeveralChecks, WakeUpRecord,
};
use tailbound_core::theory::{Evidence, TheoryRecord};
use tailbound_trace::symbols::Symbols;

use crate::blocks::{blocks, tree};
use crate::curve;
use crate::handovers::{self, HandOver, HandOvers};
use crate::log::{Log, LogError};
use crate::plan::{Guest, Plan};
use crate::record::{kind, state};
use crate::sections::{Section, Sections};
use crate::theory::{self, Wanted};
use crate::turns::Turns;
use crate::wakeups::{self, Fit, FitError, Marks, WakeUp, WakeUps};

/// Latest wake-ups that are told.
const WAKEUPS: usize = 5;
/// Sections of each kind that are told, and of how many it is told what they executed.
const SECTIONS: usize = 10;
const TREES: usize = 2;
/// A block that is under way when a window begins began at most so much before it.
const EARLIER_NS: u64 = 5_000;
/// An interrupt that is later than this, and than two steps of the guest's clock, waited for something.
const DELAYED_NS: i64 = 1_000;

/// From where a CPU begins to set its timer to where it is set, of its own time.
const SETTING_OWN_NS: u64 = 200;
/// Both clocks are rounded, to this or to the steps of the guest's.
const EARLY_NS: u64 = 16;

/// Why nothing is told of a run.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// The log.
    #[error(transparent)]
    Log(#[from] LogError),
    /// It cannot be read twice.
    #[error("the plugin's log: {0}")]
    Read(#[from] std::io::Error),
    /// Samples and wake-ups.
    #[error("{0}")]
    Fit(#[from] FitError),
    /// An interrupt came at another instant than it should have.
    #[error(
        "{late} of {all} late interrupts were not taken where interrupts were enabled again: nothing can be said of them"
    )]
    Elsewhere {
        /// How many.
        late: usize,
        /// Of how many.
        all: usize,
    },
    /// An interrupt came where it could not.
    #[error(
        "{0} timer interrupts were taken where interrupts were seen as disabled: this kernel enables them in a way that is not followed, and nothing can be said of it"
    )]
    Disabled(u64),
    /// The theorem is of Linux's scheduler.
    #[error(
        "the theoretical bound is of Linux's scheduler, and the thread that was measured is a second kernel's: leave --theory out"
    )]
    SecondKernel,
    /// A hand-over is followed on one CPU.
    #[error("lab paths follows hand-overs in guests of one CPU: use --smp 1")]
    HandOversOfSeveral,
    /// CPUs did not execute one after the other.
    #[error(
        "{wrong} of {all} turns of CPUs are not where the one before ended: nothing can be said of this run"
    )]
    Turns {
        /// How many.
        wrong: u64,
        /// Of how many.
        all: u64,
    },
    /// With several CPUs it is the reading of the clock that a sample ends with.
    #[error(
        "of {0} wake-ups it was not seen that the thread read its clock by rdtsc in user mode: nothing can be said of them"
    )]
    Unread(usize),
    /// A timer's function was called before the timer was due.
    #[error("{0} timers were served before they were due: nothing can be said of this run")]
    Early(usize),
}

/// What the run says by itself.
#[derive(Clone, Copy, Debug)]
pub struct Samples<'a> {
    /// When the first judged activation was due, by the guest's clock.
    pub start_ns: i64,
    /// Latencies of the judged activations, in their order.
    pub latencies_ns: &'a [i64],
    /// One instruction.
    pub step_ns: u64,
    /// Whose kernel it is.
    pub guest: Guest,
}

/// A time within a run of which it is to be known what it executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Section(usize),
    WakeUp(usize),
    /// The other CPU's part of a wake-up.
    Timer(usize),
}

/// From when to when, on which CPU, for what.
type Targeted = (u64, u64, u8, Target);

/// A wake-up of the measured thread, by QEMU's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeAndWait {
    /// The kernel's thread.
    pub thread: u64,
    /// Its timer was due.
    pub due_ns: u64,
    /// Its interrupt could have come: where interrupts were disabled then, that is the due time.
    pub free_ns: u64,
    /// The thread was in user mode.
    pub user_ns: u64,
    /// As the run has it.
    pub latency_ns: i64,
}

/// The record so far, and what is to be looked at block by block.
#[derive(Debug)]
pub struct Sparse {
    record: PathsRecord,
    pairs: Vec<(SectionKind, u64, u64)>,
    targets: Vec<Targeted>,
    waits: Vec<WakeAndWait>,
    window: (u64, u64),
    step_ns: u64,
    guest: Guest,
}

/// What one reading of the log found.
struct Seen {
    /// Of each CPU: that of the measured thread first.
    sections: Vec<(u8, Sections)>,
    /// By the CPU's own time at which an interrupt was taken: the section before.
    before: HashMap<(u8, u64), Section>,
    /// Of each wake-up: how long the section lasted that it fell into.
    residual: Vec<u64>,
    turns: Turns,
}

impl Seen {
    /// The section that an interrupt waited for. With several CPUs, one that ended where its CPU halted before the timer was
    /// due is no such: a halted CPU has no time of its own.
    fn behind(&self, w: &WakeUp, due_ns: u64) -> Option<&Section> {
        let (timer, _) = w.cpus;
        let found = self.before.get(&(timer, self.turns.own(timer, w.taken_ns)));
        found.filter(|s| !self.several() || self.turns.own(timer, due_ns) < s.own.1)
    }

    fn several(&self) -> bool {
        self.turns.several()
    }
}

/// The wake-ups of the measured thread: that one of all threads whose timers were due when the run's were.
fn judged(
    log: &mut (impl Read + Seek),
    marks: Marks,
    samples: Samples<'_>,
) -> Result<(Vec<WakeUp>, Turns), LookError> {
    log.seek(SeekFrom::Start(0))?;
    let (mut wakeups, mut turns) = (WakeUps::new(marks), Turns::default());
    Log::open(&mut *log)?.each(|r| {
        turns.add(&r);
        wakeups.add(&r);
    })?;
    if turns.wrong > 0 {
        return Err(LookError::Turns { wrong: turns.wrong, all: turns.n });
    }
    let start = samples.start_ns.max(0).cast_unsigned();
    // Cobalt's timers are due one ns later than was asked for: it counts from the end of the ns.
    let begins =
        |w: &&WakeUp| w.due_ns.checked_sub(start).is_some_and(|d| d <= u64::from(w.second));
    let own = wakeups.all.iter().find(begins).map(|w| w.thread);
    let all = wakeups.all.iter().filter(|w| Some(w.thread) == own && w.due_ns >= start);
    Ok((all.copied().take(samples.latencies_ns.len()).collect(), turns))
}

/// From the due time by the samples' line to that by QEMU's clock.
fn apart_ns(wakeups: &[WakeUp], turns: &Turns, fit: &Fit) -> i64 {
    if turns.several() {
        // The readings of the clock were seen: that is what the line is.
        return fit.constant_ns;
    }
    wakeups::in_time(wakeups.iter().map(|w| apart(w, fit)).collect())
}

/// From the due time by the samples' line to the interrupt.
fn apart(w: &WakeUp, fit: &Fit) -> i64 {
    w.taken_ns.cast_signed() - fit.on_line(w)
}

impl Sparse {
    /// From the log of the sparse run.
    ///
    /// # Errors
    /// [`LookError`]: also where a check failed, after which nothing is told.
    pub fn of(
        log: &mut (impl Read + Seek),
        marks: Marks,
        symbols: &Symbols,
        samples: Samples<'_>,
        same_bytes: bool,
    ) -> Result<Self, LookError> {
        let (wakeups, turns) = judged(log, marks, samples)?;
        let unread = wakeups.iter().filter(|w| w.is_unread()).count();
        if turns.several() && unread > 0 {
            return Err(LookError::Unread(unread));
        }
        let fit = wakeups::fit(&wakeups, samples.latencies_ns, samples.guest.clock_step_ns())?;
        // Due times by QEMU's clock.
        let apart_ns = apart_ns(&wakeups, &turns, &fit);
        let due = |w: &WakeUp| fit.on_line(w).saturating_add(apart_ns).max(0).cast_unsigned();
        let early_ns = EARLY_NS.max(samples.guest.clock_step_ns().unsigned_abs());
        let early = wakeups.iter().filter(|w| w.woken_ns + early_ns < due(w)).count();
        if early > 0 {
            return Err(LookError::Early(early));
        }
        let window = (wakeups.first().map_or(0, due), wakeups.last().map_or(0, |w| w.user_ns));
        let dues: Vec<u64> = wakeups.iter().map(due).collect();
        let seen = read(log, window, &wakeups, &dues, samples.step_ns, marks, turns)?;
        let delayed_ns = DELAYED_NS.max(2 * samples.guest.clock_step_ns());
        // With several CPUs: late though it was its CPU's turn. A timer is set as a time from now on: a CPU that loses its turn
        // between reading the clock and that sets it so much late.
        let own = |w: &WakeUp| {
            let (timer, _) = w.cpus;
            let lost = seen.turns.lost(timer, w.set_ns, SETTING_OWN_NS);
            let waited = |from| seen.turns.within(timer, from, w.taken_ns).cast_signed();
            if seen.behind(w, due(w)).is_some() { waited(due(w)) } else { waited(due(w) + lost) }
        };
        let is_late = |w: &&WakeUp| apart(w, &fit) - apart_ns > delayed_ns;
        let late = wakeups.iter().filter(is_late);
        let (late, out_of_turn): (Vec<&WakeUp>, Vec<&WakeUp>) =
            late.partition(|w| !seen.several() || own(w) > delayed_ns);
        let elsewhere = late.iter().filter(|w| seen.behind(w, due(w)).is_none()).count();
        if elsewhere > 0 {
            return Err(LookError::Elsewhere { late: elsewhere, all: late.len() });
        }
        let checks = PathsChecks {
            same_bytes,
            samples: fit.samples as u64,
            constant_ns: fit.constant_ns,
            drift_ppb: fit.drift_ppb(),
            delayed: late.len() as u64,
            several: seen.several().then(|| SeveralChecks {
                turns: seen.turns.n,
                out_of_turn: out_of_turn.len() as u64,
                handed_over: wakeups.iter().filter(|w| w.handed_over()).count() as u64,
                unexplained: 0,
            }),
        };
        let mut sparse = Self::begun(checks, &seen, window, samples, symbols);
        sparse.waits = waits(&wakeups, samples, &dues, &seen);
        sparse.record.second_kernel = wakeups.first().is_some_and(|w| w.second);
        sparse.wakeups(&wakeups, samples, &dues, &seen, symbols);
        sparse.several(&wakeups, &seen, symbols);
        // The estimate is of timers that the thread's own CPU serves.
        let cpu = wakeups.first().map_or(0, |w| w.cpus.1);
        let local = wakeups.iter().all(|w| w.cpus == (cpu, cpu));
        if let (true, Some((_, own))) = (local, seen.sections.first()) {
            sparse.record.curve = curve::of(own, &seen.residual, samples.latencies_ns);
        }
        Ok(sparse)
    }

    /// From the log of the sparse run of a probe that hands over: what is told of each begins with the sender's call.
    ///
    /// # Errors
    /// [`LookError`]: also where a check failed, after which nothing is told.
    pub fn of_handovers(
        log: &mut (impl Read + Seek),
        marks: Marks,
        symbols: &Symbols,
        samples: Samples<'_>,
        same_bytes: bool,
    ) -> Result<Self, LookError> {
        let (woken, turns) = judged(log, marks, samples)?;
        if turns.several() {
            return Err(LookError::HandOversOfSeveral);
        }
        let sender = woken.first().map_or(0, |w| w.thread);
        let mut found = HandOvers::new(sender, &woken);
        log.seek(SeekFrom::Start(0))?;
        Log::open(&mut *log)?.each(|r| found.add(&r))?;
        let calls: Vec<WakeUp> = found.all.iter().map(HandOver::as_wake_up).collect();
        let fit = wakeups::fit(&calls, samples.latencies_ns, samples.guest.clock_step_ns())?;
        let of = |w: Option<&WakeUp>| w.copied().unwrap_or_default();
        let window = (of(calls.first()).due_ns, of(calls.last()).user_ns);
        let seen = read(log, window, &[], &[], samples.step_ns, marks, turns)?;
        let checks = PathsChecks {
            same_bytes,
            samples: fit.samples as u64,
            constant_ns: fit.constant_ns,
            drift_ppb: fit.drift_ppb(),
            delayed: 0,
            several: None,
        };
        let mut sparse = Self::begun(checks, &seen, window, samples, symbols);
        for (at, latency_ns) in latest(samples.latencies_ns) {
            let Some(one) = found.all.get(at) else { continue };
            let target = Target::WakeUp(sparse.record.wakeups.len());
            sparse.targets.push((one.call_ns, one.user_ns, 0, target));
            sparse.record.wakeups.push(WakeUpRecord {
                activation: at as u64,
                latency_ns,
                legs: legs(&handovers::LEGS, &one.legs(latency_ns)),
                ..WakeUpRecord::default()
            });
        }
        Ok(sparse)
    }

    /// What wake-ups and hand-overs have in common: checks, window, sections.
    fn begun(
        checks: PathsChecks,
        seen: &Seen,
        window: (u64, u64),
        samples: Samples<'_>,
        symbols: &Symbols,
    ) -> Self {
        let window_ns = (window.1 - window.0).cast_signed();
        let mut sparse = Self {
            record: PathsRecord { checks, window_ns, ..PathsRecord::default() },
            pairs: Vec::new(),
            targets: Vec::new(),
            waits: Vec::new(),
            window,
            step_ns: samples.step_ns,
            guest: samples.guest,
        };
        for kind in SectionKind::ALL {
            for (cpu, all) in &seen.sections {
                sparse.sections(kind, (*cpu, seen.several()), all, symbols);
            }
        }
        sparse
    }

    /// Those of one kind and CPU.
    fn sections(
        &mut self,
        kind: SectionKind,
        (cpu, several): (u8, bool),
        all: &Sections,
        symbols: &Symbols,
    ) {
        let name = |at: u64| named(symbols, at).to_owned();
        let number = several.then(|| u32::from(cpu));
        let table = all.table(kind);
        self.pairs.extend(table.iter().map(|((first, last), _)| (kind, *first, *last)));
        self.record.totals.push(SectionTotal {
            kind,
            cpu: number,
            n: table.iter().map(|(_, b)| b.n).sum(),
            sum_ns: table.iter().map(|(_, b)| b.sum_ns).sum::<u64>().cast_signed(),
            longest_ns: table.iter().map(|(_, b)| b.longest_ns).max().unwrap_or(0).cast_signed(),
            own_ns: several.then(|| table.first().map_or(0, |(_, b)| b.own_ns.cast_signed())),
        });
        for (nth, ((first, last), b)) in table.into_iter().take(SECTIONS).enumerate() {
            if nth < TREES {
                let target = Target::Section(self.record.sections.len());
                self.targets.push((b.at_ns, b.at_ns + b.at_length_ns, cpu, target));
            }
            self.record.sections.push(SectionRecord {
                kind,
                cpu: number,
                from: name(first),
                to: name(last),
                n: b.n,
                mean_ns: (b.sum_ns / b.n.max(1)).cast_signed(),
                longest_ns: b.longest_ns.cast_signed(),
                own_ns: several.then(|| b.own_ns.cast_signed()),
                at_ns: b.at_ns.saturating_sub(self.window.0).cast_signed(),
                tree: Vec::new(),
            });
        }
    }

    fn wakeups(
        &mut self,
        wakeups: &[WakeUp],
        samples: Samples<'_>,
        dues: &[u64],
        seen: &Seen,
        symbols: &Symbols,
    ) {
        let mut latest: Vec<usize> = (0..wakeups.len()).collect();
        let latency = |at: &usize| samples.latencies_ns.get(*at).copied().unwrap_or(0);
        latest.sort_by_key(|at| (std::cmp::Reverse(latency(at)), *at));
        // Of those that another CPU handed over the latest is told, too.
        let over = |at: &usize| wakeups.get(*at).is_some_and(WakeUp::handed_over);
        let over = latest
            .iter()
            .skip(WAKEUPS)
            .copied()
            .find(over)
            .filter(|_| !latest.iter().take(WAKEUPS).any(over));
        for at in latest.into_iter().take(WAKEUPS).chain(over) {
            let (Some(w), Some(due_ns)) = (wakeups.get(at), dues.get(at)) else { continue };
            let to_user = w.user_ns.saturating_sub(*due_ns).cast_signed();
            let legs = wakeups::legs(w, *due_ns, latency(&at) - to_user, &seen.turns);
            let delayed = legs.first().is_some_and(|first| first.ns > 0);
            let before = seen.behind(w, *due_ns).filter(|_| delayed);
            let nth = self.record.wakeups.len();
            self.targets.push((*due_ns, w.user_ns, w.cpus.1, Target::WakeUp(nth)));
            if w.handed_over() {
                self.targets.push((*due_ns, w.told_ns, w.cpus.0, Target::Timer(nth)));
            }
            self.record.wakeups.push(WakeUpRecord {
                activation: at as u64,
                latency_ns: latency(&at),
                legs,
                behind: before.map(|s| Behind {
                    from: named(symbols, s.first).to_owned(),
                    to: named(symbols, s.last).to_owned(),
                    ns: (s.to_ns - s.from_ns).cast_signed(),
                    own_ns: seen.several().then(|| (s.own.1 - s.own.0).cast_signed()),
                }),
                handed_over: w.handed_over().then(|| HandedOver {
                    cpu: u32::from(w.cpus.0),
                    by: self.told_by(w, symbols),
                    tree: Vec::new(),
                }),
                tree: Vec::new(),
            });
        }
    }

    /// The interrupt by which the thread's CPU was told.
    fn told_by(&self, w: &WakeUp, symbols: &Symbols) -> Option<String> {
        let name = named(symbols, w.told_by);
        let seen = w.told_by != 0 && self.guest.is_interrupt(w.told_by, name);
        (seen && !w.moved).then(|| name.to_owned())
    }

    /// What there is to say of several CPUs.
    fn several(&mut self, wakeups: &[WakeUp], seen: &Seen, symbols: &Symbols) {
        if !seen.several() {
            return;
        }
        let unexplained =
            |w: &&WakeUp| w.moved || (w.handed_over() && self.told_by(w, symbols).is_none());
        let unexplained = wakeups.iter().filter(unexplained).count() as u64;
        if let Some(checks) = &mut self.record.checks.several {
            checks.unexplained = unexplained;
        }
        let (from, to) = self.window;
        let one = |(cpu, _): &(u8, Sections)| PathsCpu {
            cpu: u32::from(*cpu),
            executed_ns: seen.turns.within(*cpu, from, to).cast_signed(),
            share_permille: None,
        };
        self.record.cpus = seen.sections.iter().map(one).collect();
    }

    /// Keeps the shares of the CPUs, by their numbers.
    pub fn keep_shares(&mut self, permille: &[u64]) {
        for cpu in &mut self.record.cpus {
            let at = usize::try_from(cpu.cpu).unwrap_or(usize::MAX);
            cpu.share_permille = permille.get(at).copied();
        }
    }

    /// What is known without the full run.
    #[must_use]
    pub const fn record(&self) -> &PathsRecord {
        &self.record
    }

    /// All pairs of functions that sections lay between, by kind: each once, in the order of the alphabet.
    #[must_use]
    pub fn pairs(&self, symbols: &Symbols) -> Vec<(SectionKind, String, String)> {
        let names = |(kind, first, last): &(SectionKind, u64, u64)| {
            (*kind, named(symbols, *first).to_owned(), named(symbols, *last).to_owned())
        };
        let all: std::collections::BTreeSet<_> = self.pairs.iter().map(names).collect();
        all.into_iter().collect()
    }

    /// The wake-up of an activation of the run, by its number.
    #[must_use]
    pub fn wait(&self, activation: usize) -> Option<WakeAndWait> {
        self.waits.get(activation).copied()
    }

    /// The evidence of the theoretical bound, from the same log.
    ///
    /// # Errors
    /// [`LogError`]
    pub fn theory(
        &self,
        log: &mut (impl Read + Seek),
        plan: &Plan,
        symbols: &Symbols,
    ) -> Result<Evidence, LookError> {
        if self.record.second_kernel {
            return Err(LookError::SecondKernel);
        }
        let wanted = Wanted {
            window: self.window,
            wakeups: &self.waits,
            guest: plan.guest(),
            schedule: plan.marks().schedule,
            idle_thread: plan.idle_thread(),
            outside: plan.outside(),
            step_ns: self.step_ns,
        };
        Ok(theory::evidence(log, &wanted, symbols)?)
    }

    /// Keeps it in the record.
    pub fn keep(&mut self, theory: TheoryRecord) {
        self.record.theory = Some(theory);
    }

    /// Times of which the blocks are wanted, apart and in order.
    #[must_use]
    pub fn windows(&self) -> Vec<(u64, u64)> {
        let early = |(from, to, ..): &Targeted| (from.saturating_sub(EARLIER_NS), *to);
        let mut all: Vec<(u64, u64)> = self.targets.iter().map(early).collect();
        all.sort_unstable();
        let mut windows: Vec<(u64, u64)> = Vec::new();
        for (from, to) in all {
            match windows.last_mut().filter(|last| from <= last.1) {
                Some(last) => last.1 = last.1.max(to),
                None => windows.push((from, to)),
            }
        }
        windows
    }

    /// The whole record, with what was executed, from the log of the full run.
    ///
    /// # Errors
    /// [`LookError`]
    pub fn full(
        mut self,
        log: impl Read,
        symbols: &Symbols,
        plan: &Plan,
    ) -> Result<PathsRecord, LookError> {
        let blocks = blocks(log, plan)?;
        for (from, to, cpu, target) in std::mem::take(&mut self.targets) {
            let lines = tree(&blocks, cpu, (from, to), symbols, plan).lines();
            match target {
                Target::Section(at) => {
                    if let Some(section) = self.record.sections.get_mut(at) {
                        section.tree = lines;
                    }
                }
                Target::WakeUp(at) => {
                    if let Some(wakeup) = self.record.wakeups.get_mut(at) {
                        wakeup.tree = lines;
                    }
                }
                Target::Timer(at) => {
                    let wakeup = self.record.wakeups.get_mut(at);
                    if let Some(over) = wakeup.and_then(|w| w.handed_over.as_mut()) {
                        over.tree = lines;
                    }
                }
            }
        }
        Ok(self.record)
    }
}

/// Numbers of the latest samples, and what they are.
fn latest(latencies_ns: &[i64]) -> Vec<(usize, i64)> {
    let mut all: Vec<(usize, i64)> = latencies_ns.iter().copied().enumerate().collect();
    all.sort_by_key(|(at, ns)| (std::cmp::Reverse(*ns), *at));
    all.truncate(WAKEUPS);
    all
}

fn legs(names: &[&str], lengths_ns: &[i64]) -> Vec<Leg> {
    let leg = |(name, ns): (&&str, &i64)| Leg { name: (*name).to_owned(), ns: *ns, own_ns: None };
    names.iter().zip(lengths_ns).map(leg).collect()
}

/// From when on nothing but the kernel was in the way of each wake-up.
fn waits(wakeups: &[WakeUp], samples: Samples<'_>, dues: &[u64], seen: &Seen) -> Vec<WakeAndWait> {
    let one = |((w, due_ns), latency_ns): ((&WakeUp, &u64), &i64)| {
        // Interrupts were disabled when it was due, or were before the timer came.
        let free = seen.behind(w, *due_ns).map_or(w.taken_ns, |s| s.from_ns.max(*due_ns));
        WakeAndWait {
            thread: w.thread,
            due_ns: *due_ns,
            free_ns: free.max(*due_ns),
            user_ns: w.user_ns,
            latency_ns: *latency_ns,
        }
    };
    wakeups.iter().zip(dues).zip(samples.latencies_ns).map(one).collect()
}

fn read(
    log: &mut (impl Read + Seek),
    window: (u64, u64),
    wakeups: &[WakeUp],
    dues: &[u64],
    step_ns: u64,
    marks: Marks,
    turns: Turns,
) -> Result<Seen, LookError> {
    log.seek(SeekFrom::Start(0))?;
    // A second kernel preempts Linux wherever interrupts are enabled.
    let waits = match wakeups.first() {
        Some(w) if w.second => SectionKind::InterruptsOff,
        _ => SectionKind::NotPreemptible,
    };
    let measured = wakeups.first().map_or(0, |w| w.cpus.1);
    let mut sections: BTreeMap<u8, Sections> =
        turns.cpus().into_iter().map(|cpu| (cpu, Sections::new(window, waits))).collect();
    let (mut before, mut residual) = (HashMap::new(), vec![0; dues.len()]);
    // By CPU, in its own time: what another one executed meanwhile is in nobody's way.
    let mut taken: BTreeMap<u8, VecDeque<u64>> = BTreeMap::new();
    for w in wakeups {
        let own_ns = turns.own(w.cpus.0, w.taken_ns);
        taken.entry(w.cpus.0).or_default().push_back(own_ns);
    }
    let (mut next, mut disabled) = (0, 0);
    Log::open(&mut *log)?.each(|r| {
        let timer = r.kind == kind::ENTER && marks.entries.contains(&r.value);
        let within = r.t_ns >= window.0 && r.t_ns <= window.1;
        disabled += u64::from(timer && within && r.state & state::INTERRUPTS_OFF != 0);
        let Some(sections) = sections.get_mut(&r.cpu) else { return };
        sections.add(&r, turns.own(r.cpu, r.t_ns), |kind, s| {
            if kind == SectionKind::InterruptsOff
                && let Some(taken) = taken.get_mut(&r.cpu)
            {
                while taken.front().is_some_and(|t| *t < s.own.1) {
                    taken.pop_front();
                }
                if let Some(t) = taken.front().filter(|t| **t <= s.own.1 + step_ns) {
                    before.insert((r.cpu, *t), s);
                }
            }
            if kind == waits && r.cpu == measured {
                while let Some(due) = dues.get(next).filter(|due| **due < s.to_ns) {
                    if *due >= s.from_ns
                        && let Some(residual) = residual.get_mut(next)
                    {
                        *residual = s.to_ns - due;
                    }
                    next += 1;
                }
            }
        });
    })?;
    if disabled > 0 {
        return Err(LookError::Disabled(disabled));
    }
    let mut sections: Vec<(u8, Sections)> = sections.into_iter().collect();
    sections.sort_by_key(|(cpu, _)| *cpu != measured);
    Ok(Seen { sections, before, residual, turns })
}

pub(crate) fn named(symbols: &Symbols, address: u64) -> &str {
    match symbols.name(address) {
        _ if address >> 63 == 0 => "user mode",
        Some(name) => name,
        None => "a function without a name",
    }
}

#[cfg(test)]
#[path = "look_tests.rs"]
mod tests;
