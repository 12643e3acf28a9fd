// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the two logs of one run to its record: first what was watched sparsely, then what the longest executed.
//!
//! Units: ns; of the guest's clock (due), or of QEMU's, which is a constant ahead.
//!
//! ```text
//! reading.rs readings of the log: wake-ups of the measured thread, sections around them
//! summary.rs what is told of them
//! error.rs   why nothing is told
//! ```

mod error;
mod reading;
mod summary;

use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use tailbound_core::order;

use tailbound_core::paths::{
    Leg, PathsChecks, PathsRecord, SectionKind, SeveralChecks, WakeUpRecord,
};
use tailbound_core::theory::{Evidence, TheoryRecord};
use tailbound_trace::symbols::Symbols;

pub use self::error::LookError;

use self::reading::{LogReading, judged, read, waits};
use crate::answers::{self, Answer, Answers};
use crate::blocks::{blocks, tree};
use crate::curve;
use crate::handovers::{self, HandOver, HandOvers};
use crate::log::Log;
use crate::names::named;
use crate::plan::{Guest, Plan};
use crate::theory::{self, EvidenceQuery};
use crate::turns::Turns;
use crate::wake_and_wait::WakeAndWait;
use crate::wakeups::{self, Fit, Marks, WakeUp};
use crate::window::GuestWindow;

/// Latest wake-ups that are told.
const WAKEUPS: usize = 5;
/// A block that is under way when a window begins began at most so much before it.
const EARLIER_NS: u64 = 5_000;
/// An interrupt that is later than this, and than two steps of the guest's clock, waited for something.
const DELAYED_NS: i64 = 1_000;

/// From where a CPU begins to set its timer to where it is set, of its own time.
const SETTING_OWN_NS: u64 = 200;
/// Both clocks are rounded, to this or to the steps of the guest's.
const EARLY_NS: u64 = 16;

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

/// A time of which it is to be known what a CPU executed.
#[derive(Clone, Copy, Debug)]
struct Targeted {
    within: GuestWindow,
    cpu: u8,
    target: Target,
}

/// The record so far, and what is to be looked at block by block.
#[derive(Debug)]
pub struct Sparse {
    record: PathsRecord,
    pairs: Vec<(SectionKind, u64, u64)>,
    targets: Vec<Targeted>,
    waits: Vec<WakeAndWait>,
    window: GuestWindow,
    step_ns: u64,
    guest: Guest,
}

/// From the due time by the samples' line to that by QEMU's clock.
fn apart_ns(wakeups: &[WakeUp], turns: &Turns, fit: &Fit, clock_step_ns: i64) -> i64 {
    if turns.several() {
        // The readings of the clock were seen: that is what the line is.
        return fit.constant_ns;
    }
    wakeups::in_time(wakeups.iter().map(|w| apart(w, fit)).collect(), clock_step_ns)
}

/// From the due time by the samples' line to the interrupt.
fn apart(w: &WakeUp, fit: &Fit) -> i64 {
    w.taken_ns.cast_signed() - fit.on_line(w)
}

impl Sparse {
    /// From the log of the sparse run, which had the same bytes as without being watched.
    ///
    /// # Errors
    /// [`LookError`]: also where a check failed, after which nothing is told.
    pub fn of(
        log: &mut (impl Read + Seek),
        marks: Marks,
        symbols: &Symbols,
        samples: Samples<'_>,
    ) -> Result<Self, LookError> {
        let (wakeups, turns) = judged(log, marks, samples)?;
        let unread = wakeups.iter().filter(|w| w.is_unread()).count();
        if turns.several() && unread > 0 {
            return Err(LookError::Unread(unread));
        }
        let fit = wakeups::fit(&wakeups, samples.latencies_ns, samples.guest.clock_step_ns())?;
        // Due times by QEMU's clock.
        let apart_ns = apart_ns(&wakeups, &turns, &fit, samples.guest.clock_step_ns());
        let due = |w: &WakeUp| fit.on_line(w).saturating_add(apart_ns).max(0).cast_unsigned();
        let early_ns = EARLY_NS.max(samples.guest.clock_step_ns().unsigned_abs());
        let early = wakeups.iter().filter(|w| w.woken_ns + early_ns < due(w)).count();
        if early > 0 {
            return Err(LookError::Early(early));
        }
        let window = GuestWindow {
            from_ns: wakeups.first().map_or(0, due),
            to_ns: wakeups.last().map_or(0, |w| w.user_ns),
        };
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
            same_bytes: true,
            samples: fit.samples as u64,
            constant_ns: fit.constant_ns,
            drift_ppb: fit.drift_ppb(),
            delayed: late.len() as u64,
            set_late: late.iter().filter(|w| seen.is_set_late(w)).count() as u64,
            several: seen.several().then(|| SeveralChecks {
                turns: seen.turns.n,
                out_of_turn: out_of_turn.len() as u64,
                handed_over: wakeups.iter().filter(|w| w.handed_over()).count() as u64,
                unexplained: 0,
            }),
            start_constant_ns: None,
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

    /// As [`Sparse::of`], of a probe that hands over: what is told of each begins with the sender's call.
    ///
    /// # Errors
    /// [`LookError`]: also where a check failed, after which nothing is told.
    pub fn of_handovers(
        log: &mut (impl Read + Seek),
        marks: Marks,
        symbols: &Symbols,
        samples: Samples<'_>,
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
        let window =
            GuestWindow { from_ns: of(calls.first()).due_ns, to_ns: of(calls.last()).user_ns };
        let seen = read(log, window, &[], &[], samples.step_ns, marks, turns)?;
        let checks = PathsChecks {
            same_bytes: true,
            samples: fit.samples as u64,
            constant_ns: fit.constant_ns,
            drift_ppb: fit.drift_ppb(),
            ..PathsChecks::default()
        };
        let mut sparse = Self::begun(checks, &seen, window, samples, symbols);
        sparse.tell_latest(samples.latencies_ns, &handovers::LEGS, |at, latency_ns| {
            let one = found.all.get(at)?;
            Some((one.call_ns..one.user_ns, one.legs(latency_ns)))
        });
        Ok(sparse)
    }

    /// From the log of the sparse run of a probe that answers edges: what is told of each begins with the stamp of its
    /// interrupt. `samples` begin where the edges do, `starts_ns` end with the thread that answers.
    ///
    /// # Errors
    /// [`LookError`]: also where a check failed, after which nothing is told.
    pub fn of_answers(
        log: &mut (impl Read + Seek),
        plan: &Plan,
        symbols: &Symbols,
        samples: Samples<'_>,
        starts_ns: &[i64],
    ) -> Result<Self, LookError> {
        let marks = plan.answers()?;
        let (woken, turns) = judged(log, plan.marks(), samples)?;
        if turns.several() {
            return Err(LookError::AnswersOfSeveral);
        }
        let mut found = Answers::new(marks, &woken);
        log.seek(SeekFrom::Start(0))?;
        Log::open(&mut *log)?.each(|r| found.add(&r))?;
        let all = found.all;
        let step_ns = samples.guest.clock_step_ns();
        let fit = |of: fn(&Answer) -> WakeUp, samples_ns: &[i64]| {
            wakeups::fit(&all.iter().map(of).collect::<Vec<_>>(), samples_ns, step_ns)
        };
        let (whole, start) =
            (fit(Answer::whole, samples.latencies_ns)?, fit(Answer::start, starts_ns)?);
        let of = |a: Option<&Answer>| a.copied().unwrap_or_default();
        let window =
            GuestWindow { from_ns: of(all.first()).line_ns, to_ns: of(all.last()).given_ns };
        let seen = read(log, window, &[], &[], samples.step_ns, plan.marks(), turns)?;
        let checks = PathsChecks {
            same_bytes: true,
            samples: whole.samples as u64,
            constant_ns: whole.constant_ns,
            drift_ppb: whole.drift_ppb(),
            start_constant_ns: Some(start.constant_ns),
            ..PathsChecks::default()
        };
        let mut sparse = Self::begun(checks, &seen, window, samples, symbols);
        sparse.record.split = answers::split(&all, samples.latencies_ns);
        sparse.tell_latest(samples.latencies_ns, &answers::LEGS, |at, latency_ns| {
            let one = all.get(at)?;
            Some((one.stamp_ns..one.given_ns, one.legs(latency_ns)))
        });
        Ok(sparse)
    }

    /// The latest samples, to be looked at once more: `of` gives the span of one, and how long its legs are.
    fn tell_latest(
        &mut self,
        latencies_ns: &[i64],
        names: &[&str],
        of: impl Fn(usize, i64) -> Option<(Range<u64>, [i64; 5])>,
    ) {
        for (at, latency_ns) in latest(latencies_ns) {
            let Some((span_ns, lengths_ns)) = of(at, latency_ns) else { continue };
            let target = Target::WakeUp(self.record.wakeups.len());
            let within = GuestWindow { from_ns: span_ns.start, to_ns: span_ns.end };
            self.targets.push(Targeted { within, cpu: 0, target });
            self.record.wakeups.push(WakeUpRecord {
                activation: at as u64,
                latency_ns,
                legs: legs(names, &lengths_ns),
                ..WakeUpRecord::default()
            });
        }
    }

    /// What wake-ups and hand-overs have in common: checks, window, sections.
    fn begun(
        checks: PathsChecks,
        seen: &LogReading,
        window: GuestWindow,
        samples: Samples<'_>,
        symbols: &Symbols,
    ) -> Self {
        let window_ns = window.length_ns().cast_signed();
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
                sparse.sections(kind, *cpu, all, seen, symbols);
            }
        }
        sparse
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
    /// [`LookError`]
    pub fn theory(
        &self,
        log: &mut (impl Read + Seek),
        plan: &Plan,
        symbols: &Symbols,
    ) -> Result<Evidence, LookError> {
        if self.record.second_kernel {
            return Err(LookError::SecondKernel);
        }
        let wanted = EvidenceQuery {
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
    pub fn windows(&self) -> Vec<GuestWindow> {
        let early = |Targeted { within, .. }: &Targeted| GuestWindow {
            from_ns: within.from_ns.saturating_sub(EARLIER_NS),
            to_ns: within.to_ns,
        };
        let mut all: Vec<GuestWindow> = self.targets.iter().map(early).collect();
        all.sort_unstable();
        let mut windows: Vec<GuestWindow> = Vec::new();
        for window in all {
            match windows.last_mut().filter(|last| window.from_ns <= last.to_ns) {
                Some(last) => last.to_ns = last.to_ns.max(window.to_ns),
                None => windows.push(window),
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
        for Targeted { within, cpu, target } in std::mem::take(&mut self.targets) {
            let lines = tree(&blocks, cpu, within, symbols, plan).lines();
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
    order::by_key(&mut all, |(at, ns)| (std::cmp::Reverse(*ns), *at));
    all.truncate(WAKEUPS);
    all
}

fn legs(names: &[&str], lengths_ns: &[i64]) -> Vec<Leg> {
    let leg = |(name, ns): (&&str, &i64)| Leg { name: (*name).to_owned(), ns: *ns, own_ns: None };
    names.iter().zip(lengths_ns).map(leg).collect()
}

#[cfg(test)]
mod tests;
