// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the two logs of one run to its record: first what was watched sparsely, then what the longest executed.
//!
//! Context: COLD. Units: ns; of the guest's clock (due), or of QEMU's, which is a constant ahead.
//! The log is read twice: for the wake-ups, which give the window, and for the sections within it.

use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};

use tailbound_core::paths::{
    Behind, CurvePoint, Leg, PathsChecks, PathsRecord, SectionKind, SectionRecord, SectionTotal,
    WakeUpRecord,
};
use tailbound_core::theory::{Evidence, TheoryRecord};
use tailbound_trace::symbols::Symbols;

use crate::log::{Log, LogError, Record};
use crate::plan::Plan;
use crate::record::{self, kind, state};
use crate::sections::{self, Section, Sections};
use crate::theory::{self, Wanted};
use crate::tree::{Step, Tree};
use crate::wakeups::{self, FitError, LEGS, Marks, WakeUp, WakeUps};

/// Latest wake-ups that are told.
const WAKEUPS: usize = 5;
/// Sections of each kind that are told, and of how many it is told what they executed.
const SECTIONS: usize = 10;
const TREES: usize = 2;
/// Points of the curve.
const POINTS: i64 = 40;
/// A block that is under way when a window begins began at most so much before it.
const EARLIER_NS: u64 = 5_000;
/// An interrupt that is later than this, and than two steps of the guest's clock, waited for something.
const DELAYED_NS: i64 = 1_000;

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
    /// Steps of the guest's clock.
    pub clock_step_ns: i64,
}

/// A time within a run of which it is to be known what it executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Section(usize),
    WakeUp(usize),
}

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
    targets: Vec<(u64, u64, Target)>,
    waits: Vec<WakeAndWait>,
    window: (u64, u64),
    step_ns: u64,
}

/// What one reading of the log found.
struct Seen {
    sections: Sections,
    /// By the time at which an interrupt was taken: the section before.
    before: HashMap<u64, Section>,
    /// Of each wake-up: how long the section lasted that it fell into.
    residual: Vec<u64>,
    /// Timer interrupts that were taken where interrupts were disabled.
    disabled: u64,
}

/// The wake-ups of the measured thread: that one of all threads whose timers were due when the run's were.
fn judged(
    log: &mut (impl Read + Seek),
    marks: Marks,
    samples: Samples<'_>,
) -> Result<Vec<WakeUp>, LookError> {
    log.seek(SeekFrom::Start(0))?;
    let mut wakeups = WakeUps::new(marks);
    Log::open(&mut *log)?.each(|r| wakeups.add(&r))?;
    let start = samples.start_ns.max(0).cast_unsigned();
    let own = wakeups.all.iter().find(|w| w.due_ns == start).map(|w| w.thread);
    let all = wakeups.all.iter().filter(|w| Some(w.thread) == own && w.due_ns >= start);
    Ok(all.copied().take(samples.latencies_ns.len()).collect())
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
        let wakeups = judged(log, marks, samples)?;
        let fit = wakeups::fit(&wakeups, samples.latencies_ns, samples.clock_step_ns)?;
        // Due times by QEMU's clock.
        let apart = |w: &WakeUp| w.taken_ns.cast_signed() - fit.on_line(w);
        let apart_ns = wakeups::in_time(wakeups.iter().map(apart).collect());
        let due = |w: &WakeUp| fit.on_line(w).saturating_add(apart_ns).max(0).cast_unsigned();
        let early_ns = EARLY_NS.max(samples.clock_step_ns.unsigned_abs());
        let early = wakeups.iter().filter(|w| w.woken_ns + early_ns < due(w)).count();
        if early > 0 {
            return Err(LookError::Early(early));
        }
        let window = (wakeups.first().map_or(0, due), wakeups.last().map_or(0, |w| w.user_ns));
        let dues: Vec<u64> = wakeups.iter().map(due).collect();
        let seen = read(log, window, &wakeups, &dues, samples.step_ns, marks)?;
        if seen.disabled > 0 {
            return Err(LookError::Disabled(seen.disabled));
        }
        let delayed_ns = DELAYED_NS.max(2 * samples.clock_step_ns);
        let mut late = wakeups.iter().filter(|w| apart(w) - apart_ns > delayed_ns);
        let all = late.clone().count();
        let elsewhere = late.clone().filter(|w| !seen.before.contains_key(&w.taken_ns)).count();
        if elsewhere > 0 {
            return Err(LookError::Elsewhere { late: elsewhere, all });
        }
        let checks = PathsChecks {
            same_bytes,
            samples: fit.samples as u64,
            constant_ns: fit.constant_ns,
            drift_ppb: fit.drift_ppb(),
            delayed: late.by_ref().count() as u64,
        };
        let mut sparse = Self {
            record: PathsRecord { checks, ..PathsRecord::default() },
            pairs: Vec::new(),
            targets: Vec::new(),
            waits: waits(&wakeups, samples, &dues, &seen),
            window,
            step_ns: samples.step_ns,
        };
        sparse.record.window_ns = seen.sections.window_ns().cast_signed();
        sparse.sections(&seen.sections, symbols, window.0);
        sparse.wakeups(&wakeups, samples, &dues, &seen, symbols);
        sparse.record.curve = curve(&seen, samples.latencies_ns);
        Ok(sparse)
    }

    fn sections(&mut self, all: &Sections, symbols: &Symbols, begin_ns: u64) {
        let name = |at: u64| named(symbols, at).to_owned();
        for kind in SectionKind::ALL {
            let table = all.table(kind);
            self.pairs.extend(table.iter().map(|((first, last), _)| (kind, *first, *last)));
            self.record.totals.push(SectionTotal {
                kind,
                n: table.iter().map(|(_, b)| b.n).sum(),
                sum_ns: table.iter().map(|(_, b)| b.sum_ns).sum::<u64>().cast_signed(),
                longest_ns: table.first().map_or(0, |(_, b)| b.longest_ns.cast_signed()),
            });
            for (nth, ((first, last), b)) in table.into_iter().take(SECTIONS).enumerate() {
                if nth < TREES {
                    let target = Target::Section(self.record.sections.len());
                    self.targets.push((b.at_ns, b.at_ns + b.longest_ns, target));
                }
                self.record.sections.push(SectionRecord {
                    kind,
                    from: name(first),
                    to: name(last),
                    n: b.n,
                    mean_ns: (b.sum_ns / b.n.max(1)).cast_signed(),
                    longest_ns: b.longest_ns.cast_signed(),
                    at_ns: b.at_ns.saturating_sub(begin_ns).cast_signed(),
                    tree: Vec::new(),
                });
            }
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
        for at in latest.into_iter().take(WAKEUPS) {
            let (Some(w), Some(due_ns)) = (wakeups.get(at), dues.get(at)) else { continue };
            let to_user = w.user_ns.saturating_sub(*due_ns).cast_signed();
            let legs = w.legs(*due_ns, latency(&at) - to_user);
            let delayed = legs.first().is_some_and(|first| *first > 0);
            let before = seen.before.get(&w.taken_ns).filter(|_| delayed);
            self.targets.push((*due_ns, w.user_ns, Target::WakeUp(self.record.wakeups.len())));
            self.record.wakeups.push(WakeUpRecord {
                activation: at as u64,
                latency_ns: latency(&at),
                legs: LEGS
                    .iter()
                    .zip(legs)
                    .map(|(name, ns)| Leg { name: (*name).to_owned(), ns })
                    .collect(),
                behind: before.map(|s| Behind {
                    from: named(symbols, s.first).to_owned(),
                    to: named(symbols, s.last).to_owned(),
                    ns: (s.to_ns - s.from_ns).cast_signed(),
                }),
                tree: Vec::new(),
            });
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
        let early = |(from, to, _): &(u64, u64, Target)| (from.saturating_sub(EARLIER_NS), *to);
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
        for (from, to, target) in std::mem::take(&mut self.targets) {
            let lines = tree(&blocks, from, to, symbols, plan).lines();
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
            }
        }
        Ok(self.record)
    }
}

/// From when on nothing but the kernel was in the way of each wake-up.
fn waits(wakeups: &[WakeUp], samples: Samples<'_>, dues: &[u64], seen: &Seen) -> Vec<WakeAndWait> {
    let one = |((w, due_ns), latency_ns): ((&WakeUp, &u64), &i64)| {
        // Interrupts were disabled when it was due, or were before the timer came.
        let free = seen.before.get(&w.taken_ns).map_or(w.taken_ns, |s| s.from_ns.max(*due_ns));
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
) -> Result<Seen, LookError> {
    log.seek(SeekFrom::Start(0))?;
    let mut sections = Sections::new(window);
    let (mut before, mut residual) = (HashMap::new(), vec![0; dues.len()]);
    let mut taken = wakeups.iter().map(|w| w.taken_ns).peekable();
    let (mut next, mut disabled) = (0, 0);
    Log::open(&mut *log)?.each(|r| {
        let timer = r.kind == kind::ENTER && marks.entries.contains(&r.value);
        let within = r.t_ns >= window.0 && r.t_ns <= window.1;
        disabled += u64::from(timer && within && r.state & state::INTERRUPTS_OFF != 0);
        sections.add(&r, |kind, s| match kind {
            SectionKind::InterruptsOff => {
                while taken.next_if(|t| *t < s.to_ns).is_some() {}
                if let Some(t) = taken.peek().filter(|t| **t <= s.to_ns + step_ns) {
                    before.insert(*t, s);
                }
            }
            SectionKind::NotPreemptible => {
                while let Some(due) = dues.get(next).filter(|due| **due < s.to_ns) {
                    if *due >= s.from_ns
                        && let Some(residual) = residual.get_mut(next)
                    {
                        *residual = s.to_ns - due;
                    }
                    next += 1;
                }
            }
            _ => {}
        });
    })?;
    Ok(Seen { sections, before, residual, disabled })
}

/// P(later than x), of the samples and of all instants: what a wake-up takes that fell into no section is as the
/// samples have it, and what it waits for is as the sections have it.
fn curve(seen: &Seen, latencies_ns: &[i64]) -> Vec<CurvePoint> {
    let lengths = seen.sections.lengths();
    let window = seen.sections.window_ns();
    let mut rest: Vec<u64> = latencies_ns
        .iter()
        .zip(&seen.residual)
        .filter(|(_, residual)| **residual == 0)
        .map(|(latency, _)| (*latency).max(0).cast_unsigned())
        .collect();
    if rest.is_empty() {
        rest.extend(latencies_ns.iter().min().map(|l| (*l).max(0).cast_unsigned()));
    }
    rest.sort_unstable();
    // A hundred of them stand for all.
    let some: Vec<u64> = rest.iter().copied().step_by((rest.len() / 100).max(1)).collect();
    let longest = lengths.last().map_or(0, |l| l.0.cast_signed());
    let most = latencies_ns.iter().copied().max().unwrap_or(0);
    let end = most.max(longest + some.first().map_or(0, |r| r.cast_signed()));
    let begin = latencies_ns.iter().copied().min().unwrap_or(0);
    let step = ((end - begin) / POINTS).max(1);
    let mut points = Vec::new();
    for n in 0..=POINTS {
        let ns = begin + n * step;
        let later = latencies_ns.iter().filter(|l| **l > ns).count();
        let of = |r: &u64| sections::later_than(&lengths, window, *r, ns.max(0).cast_unsigned());
        let instants: f64 = some.iter().map(of).sum();
        points.push(CurvePoint {
            ns,
            samples: share(later, latencies_ns.len()),
            instants: if some.is_empty() { 0.0 } else { instants / real(some.len()) },
        });
    }
    points
}

#[expect(clippy::cast_precision_loss, reason = "counts of samples")]
fn real(n: usize) -> f64 {
    n as f64
}

fn share(part: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { real(part) / real(of) }
}

/// A block of instructions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) t_ns: u64,
    pub(crate) address: u64,
    stack: u32,
}

impl Block {
    /// The kernel's code lies within 2 GiB of `text`.
    fn of(r: &Record, text: u64) -> Self {
        let (stack, low) = ((r.value >> 32) as u32, r.value as u32);
        let kernel = r.state & record::block::KERNEL != 0;
        let apart = low.wrapping_sub(text as u32).cast_signed();
        let address =
            if kernel { text.wrapping_add_signed(i64::from(apart)) } else { u64::from(low) };
        Self { t_ns: r.t_ns, address, stack }
    }
}

/// All of a log; none where a window begins: what the last one before executed is not known.
pub(crate) fn blocks(log: impl Read, plan: &Plan) -> Result<Vec<Option<Block>>, LogError> {
    let mut blocks = Vec::new();
    Log::open(log)?.each(|r| match r.kind {
        kind::BLOCK => blocks.push(Some(Block::of(&r, plan.text()))),
        kind::WINDOW => blocks.push(None),
        _ => {}
    })?;
    Ok(blocks)
}

pub(crate) fn tree(
    blocks: &[Option<Block>],
    from: u64,
    to: u64,
    symbols: &Symbols,
    plan: &Plan,
) -> Tree {
    let mut tree = Tree::new(plan.guest().calls());
    for pair in blocks.windows(2) {
        let [Some(one), Some(next)] = pair else { continue };
        let (begin, end) = (one.t_ns.max(from), next.t_ns.min(to));
        if begin < end {
            tree.add(Step {
                name: named(symbols, one.address),
                begins: symbols.begins(one.address),
                enters: plan.enters(one.address),
                stack: one.stack,
                ns: (end - begin).cast_signed(),
            });
        }
    }
    tree
}

pub(crate) fn named(symbols: &Symbols, address: u64) -> &str {
    match symbols.name(address) {
        _ if address >> 63 == 0 => "user mode",
        Some(name) => name,
        None => "a function without a name",
    }
}
