// SPDX-License-Identifier: MIT OR Apache-2.0
//! From waits to cycles: pieces are put together from one wait for the next cycle to the next one.
//!
//! Units: ns on the trace's clock. Pieces are kept until the wait that paces the thread is
//! told (`choose`), then go through; where that wait does not come any more it is looked for again.
//! A call of it that returns at once is the begin of a cycle too: the cycle before took longer than its
//! period. A cycle of whose time events were lost counts where the period says that its begin and end are
//! those of one cycle; else it is broken, and in no figure.

use std::collections::{BTreeSet, HashMap};
use tailbound_core::order;

use tailbound_core::Distribution;
use tailbound_core::blame::{BlameRecord, Cause, Phase, Sureness, without_numbers};
use tailbound_core::cycle::{Activation, CycleCause, CycleRecord, Job, Pace};
use tailbound_core::tasks::Job as TaskJob;

use super::calls::Calls;
use super::choose::{Choice, CycleHints, choose};
use super::job::{self, Cycle, Delayers};
use super::lateness::{CycleOutcome, Lateness};
use super::locks::{Locks, Said};
use super::part::{Part, PartCharge, Parts, Whats};
use super::seconds::Seconds;
use super::wait::{Piece, Wait};
use super::{LateWakeUp, ThreadCycles};
use crate::blame::{Engine, Late, WakeUpRecord, sentences, shorten, since, total};

/// Pieces and time after which the wait is told if it is likely; and after which it is told in any case.
const ENOUGH: (usize, u64) = (400, 3_000_000_000);
const AT_MOST: (usize, u64) = (8192, 20_000_000_000);
/// Fewer waits are not enough, however long they took.
const WAITS_ENOUGH: u64 = 24;
/// Without the chosen wait for so many pieces, and so many periods, it is looked for again.
const GONE: (u64, u64) = (64, 50);
/// Releases that the rhythm is told from.
const RELEASES_MAX: usize = 8192;
/// Cycles in figures.
const JOBS_MAX: usize = 4096;
/// Causes of the table.
const CAUSES_MAX: usize = 256;

/// What is wanted of every thread.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) known: CycleHints,
    pub(super) deadline_ns: Option<i64>,
    /// The longest cycles that are kept part by part.
    pub(super) worst: usize,
    pub(super) begin_ns: u64,
}

/// What pieces are looked up in.
pub(super) struct Ground<'a> {
    pub(super) engine: &'a Engine,
    pub(super) calls: &'a Calls,
    pub(super) whats: &'a mut Whats,
    pub(super) options: &'a Options,
    /// What the CPUs did before this is forgotten.
    pub(super) since: u64,
    pub(super) event_ns: i64,
    /// The threads that are watched.
    pub(super) watched: &'a BTreeSet<i32>,
    /// Where cycles go as jobs.
    pub(super) jobs: &'a mut Vec<(i32, Option<TaskJob>)>,
    /// The watched threads that others waited for, and where.
    pub(super) delayers: &'a mut Delayers,
}

/// What time went to, without the numbers of threads: ten workers are one.
type Key = u32;

/// Over all cycles.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    cycles: u64,
    ns: u64,
    ns_max: u64,
}

#[derive(Clone, Debug)]
struct Open {
    release: u64,
    start: u64,
    parts: Parts,
    end: u64,
    faults: u32,
    cpu: u32,
    /// The cycle before it still ran when it was released.
    overrun: bool,
    /// Its begin is not sure.
    unsure: bool,
    lost: bool,
    late: Option<Box<BlameRecord>>,
}

/// Do more pieces come?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PieceStream {
    GoesOn,
    Over,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Assembly {
    pid: i32,
    choice: Option<Choice>,
    learning: Vec<Piece>,
    open: Option<Open>,
    releases: Vec<u64>,
    last_release: Option<u64>,
    since_activation: u64,
    waits: u64,
    others: u64,
    sums: HashMap<Key, Sum>,
    /// The key of everything that time went to, made once.
    keys: HashMap<u32, Key>,
    /// Who had the locks that it waited for.
    locks: Locks,
    /// Why cycles were late.
    lateness: Lateness,
    record: Figures,
    /// The latest wake-ups, the latest first.
    late: Vec<LateWakeUp>,
}

#[derive(Clone, Debug, Default)]
struct Figures {
    cpu: Option<u32>,
    moved: bool,
    misses: u64,
    beyond_period: u64,
    cycles: u64,
    overruns: u64,
    broken: u64,
    lossy: u64,
    page_faults: u64,
    wakeup: Distribution,
    execution: Distribution,
    blocked: Distribution,
    response: Distribution,
    worst: Vec<BlameRecord>,
    jobs: Vec<Job>,
    seconds: Seconds,
}

impl Assembly {
    pub(super) fn new(pid: i32) -> Self {
        Self { pid, ..Self::default() }
    }

    /// Whole cycles so far, and the longest.
    pub(super) fn so_far(&self) -> (u64, Option<i64>) {
        (self.record.cycles, self.record.response.max_ns)
    }

    /// Is the wait that paces it told?
    pub(super) fn is_told(&self) -> bool {
        self.choice.is_some()
    }

    /// What is kept part by part: the longest cycles and the latest wake-ups.
    pub(super) fn records_mut(&mut self) -> impl Iterator<Item = &mut BlameRecord> {
        self.record.worst.iter_mut().chain(self.late.iter_mut().map(|l| &mut l.record))
    }

    /// From when on what the CPUs did is still wanted.
    pub(super) fn since(&self) -> Option<u64> {
        let learning = self.learning.first().map(|p| p.wait.as_ref().map_or(p.end, |w| w.from));
        learning.or(self.open.as_ref().map(|o| o.release))
    }

    /// Takes the next piece.
    pub(super) fn piece(&mut self, g: &mut Ground<'_>, piece: Piece) {
        if self.choice.is_some() {
            self.pass(g, piece);
            return;
        }
        self.learning.push(piece);
        let pieces = self.learning.len();
        // A look takes time: after 50, 100, 200, … pieces, and where it must come to an end.
        let look = pieces >= AT_MOST.0
            || pieces >= 50 && (pieces.is_power_of_two() || pieces.is_multiple_of(400));
        if look {
            self.learn(g, PieceStream::GoesOn);
        }
    }

    fn learn(&mut self, g: &mut Ground<'_>, stream: PieceStream) {
        let span = match (self.learning.first(), self.learning.last()) {
            (Some(a), Some(b)) => b.end.saturating_sub(a.end),
            _ => return,
        };
        let Some(choice) = choose(g.calls, &self.learning, &g.options.known) else {
            self.give_up(stream);
            return;
        };
        let pieces = self.learning.len();
        let enough = (pieces >= ENOUGH.0 || span >= ENOUGH.1) && choice.waits >= WAITS_ENOUGH;
        let likely =
            choice.sureness != Sureness::Unsure && choice.pace.sureness != Sureness::Unsure;
        let at_most = pieces >= AT_MOST.0 || span >= AT_MOST.1 && choice.waits >= WAITS_ENOUGH;
        if stream == PieceStream::Over || enough && likely || at_most {
            self.choice = Some(choice);
            self.since_activation = 0;
            for piece in std::mem::take(&mut self.learning) {
                self.pass(g, piece);
            }
        }
    }

    /// No wait comes often enough.
    fn give_up(&mut self, stream: PieceStream) {
        if stream == PieceStream::Over || self.learning.len() >= AT_MOST.0 {
            let gone = self.learning.drain(..self.learning.len() / 2).count() as u64;
            self.others = self.others.saturating_add(gone);
        }
    }

    fn pass(&mut self, g: &mut Ground<'_>, piece: Piece) {
        let Some(choice) = &self.choice else { return };
        let Piece { wait, run, end, faults, cpu, lost } = piece;
        let Some(wait) = wait else { return };
        let level = usize::from(choice.site.level);
        let matches = wait.sites.get(level) == Some(&choice.site) || {
            // Without a sleep there is no length that would tell it apart.
            !wait.slept && level == 2 && wait.sites[0].call == choice.site.call
        };
        let period = choice.pace.period_ns.map(i64::cast_unsigned).filter(|p| *p > 0);
        let release = if matches { self.release(&wait, period, choice) } else { None };
        if let Some(release) = release {
            self.waits = self.waits.saturating_add(1);
            self.since_activation = 0;
            self.finish(g, wait.from, &wait, release, period);
            self.start(g, wait, release);
        } else {
            self.others = self.others.saturating_add(1);
            self.since_activation = self.since_activation.saturating_add(1);
            if let Some(open) = &mut self.open {
                wait.within.0.iter().for_each(|p| open.parts.push(*p, 0));
                open.lost |= wait.lost;
            }
        }
        if let Some(open) = &mut self.open {
            run.0.iter().for_each(|p| open.parts.push(*p, 0));
            open.end = end;
            open.faults = open.faults.saturating_add(faults);
            open.lost |= lost;
            open.cpu = cpu;
        }
        let quiet = self.last_release.map_or(0, |r| end.saturating_sub(r));
        let gone = self.since_activation > GONE.0
            && quiet > period.map_or(ENOUGH.1, |p| p.saturating_mul(GONE.1).max(ENOUGH.1));
        if gone {
            self.choice = None;
            self.open = None;
            g.jobs.push((self.pid, None));
        }
    }

    /// When the cycle that this wait begins was released; `None` where it begins none.
    fn release(&self, wait: &Wait, period: Option<u64>, choice: &Choice) -> Option<u64> {
        if wait.slept || wait.timed {
            return Some(wait.release);
        }
        match (period.filter(|_| choice.pace.is_paced()), self.last_release) {
            (Some(period), Some(last)) => {
                let due = last.saturating_add(period);
                let jitter = choice.pace.jitter_ns.unwrap_or(0).max(0).cast_unsigned();
                (wait.to.saturating_add(jitter.max(period / 50)) >= due).then_some(due.min(wait.to))
            }
            // When it came is not told: it had when it was asked for.
            _ => Some(wait.to),
        }
    }

    fn start(&mut self, g: &mut Ground<'_>, wait: Wait, release: u64) {
        if !wait.lost && (wait.slept || wait.timed) && self.releases.len() < RELEASES_MAX {
            self.releases.push(release);
        }
        self.last_release = Some(release);
        let mut parts = wait.way;
        if !wait.slept {
            // What it did before it asked for the next cycle was of the cycle before.
            let what = PartCharge {
                phase: Phase::WakeUp,
                cause: Cause::Backlog,
                who: String::new(),
                sureness: Sureness::Sure,
            };
            let what = g.whats.number(what);
            let asked = wait.within.last(wait.to.saturating_sub(release));
            let late = wait.to.saturating_sub(release).saturating_sub(asked.ns());
            parts.push(Part { ns: late, what }, 0);
            asked.0.iter().for_each(|p| parts.push(*p, 0));
        }
        self.open = Some(Open {
            release,
            start: wait.to,
            parts,
            end: wait.to,
            faults: 0,
            cpu: 0,
            overrun: !wait.slept || release < wait.from,
            unsure: wait.lost,
            lost: wait.lost,
            late: wait.late,
        });
    }

    /// The cycle under way ends at `end`, where `next` begins.
    fn finish(
        &mut self,
        g: &mut Ground<'_>,
        end: u64,
        next: &Wait,
        next_release: u64,
        period: Option<u64>,
    ) {
        let Some(open) = self.open.take() else { return };
        let response = since(open.end, open.release);
        // Records that contradict each other, of a thread on two CPUs at once, leave pieces apart.
        if open.end != end || signed(open.parts.ns()) != response {
            self.record.broken = self.record.broken.saturating_add(1);
            g.jobs.push((self.pid, None));
            return;
        }
        if open.lost {
            let apart = next_release.saturating_sub(open.release);
            let one = period.is_some_and(|p| apart.abs_diff(p) <= p / 4);
            if open.unsure || next.lost || !one {
                self.record.broken = self.record.broken.saturating_add(1);
                g.jobs.push((self.pid, None));
                return;
            }
            self.record.lossy = self.record.lossy.saturating_add(1);
        }
        let Open { release, start, end, cpu, .. } = open;
        let whole = Cycle { release, start, end, cpu };
        let task = job::job(g.whats, &open.parts.0, whole, g.watched, g.delayers);
        g.jobs.push((self.pid, Some(task)));
        let mut sums: Vec<(Key, u64)> = Vec::new();
        let (mut execution, mut blocked) = (0u64, 0u64);
        for part in &open.parts.0 {
            let Some(key) = self.key(g.whats, *part) else { continue };
            match sums.iter_mut().find(|(w, _)| *w == key) {
                Some((_, ns)) => *ns = ns.saturating_add(part.ns),
                None => sums.push((key, part.ns)),
            }
            let Some(what) = g.whats.get(*part) else { continue };
            match what.phase {
                Phase::Running if matches!(what.cause, Cause::Own | Cause::LockSpin) => {
                    execution = execution.saturating_add(part.ns);
                }
                Phase::Blocked => blocked = blocked.saturating_add(part.ns),
                _ => {}
            }
        }
        let limit = g.options.deadline_ns.map(i64::cast_unsigned).or(period);
        let late = limit.is_some_and(|limit| response > signed(limit));
        let ended = CycleOutcome { sums: &sums, late, overran: next_release < end };
        self.lateness.add(g.whats, &ended);
        self.sum(g.whats, &sums);
        let job = Job {
            release_ns: signed(open.release),
            wakeup_ns: since(open.start, open.release),
            execution_ns: signed(execution),
            blocked_ns: signed(blocked),
            response_ns: response,
        };
        self.count(g, &job, &open, period);
        self.keep(g, open, response);
    }

    /// What a part is counted as: without the numbers of threads, and all waits for one lock together.
    fn key(&mut self, whats: &mut Whats, part: Part) -> Option<Key> {
        let key = match self.keys.get(&part.what) {
            Some(key) => *key,
            None => {
                let what = whats.get(part)?.clone();
                let (what, by) = Locks::group(what);
                let what = PartCharge { who: without_numbers(&what.who), ..what };
                let key = whats.number(what.clone());
                self.locks.holds(part.what, key, &what, by);
                self.keys.insert(part.what, key);
                key
            }
        };
        self.locks.add(part.what, part.ns);
        Some(key)
    }

    /// Every instant counts once: what an earlier cycle took is in that one.
    fn sum(&mut self, whats: &Whats, sums: &[(Key, u64)]) {
        for (what, ns) in sums {
            if whats.of(*what).is_some_and(|w| w.cause == Cause::Backlog) {
                continue;
            }
            let sum = self.sums.entry(*what).or_default();
            sum.cycles = sum.cycles.saturating_add(1);
            (sum.ns, sum.ns_max) = (sum.ns.saturating_add(*ns), sum.ns_max.max(*ns));
        }
    }

    fn count(&mut self, g: &Ground<'_>, job: &Job, open: &Open, period: Option<u64>) {
        let r = &mut self.record;
        r.moved |= r.cpu.is_some_and(|c| c != open.cpu);
        r.cpu = Some(open.cpu);
        r.cycles = r.cycles.saturating_add(1);
        r.overruns = r.overruns.saturating_add(u64::from(open.overrun));
        r.page_faults = r.page_faults.saturating_add(u64::from(open.faults));
        r.wakeup.add(job.wakeup_ns);
        r.execution.add(job.execution_ns);
        r.blocked.add(job.blocked_ns);
        r.response.add(job.response_ns);
        let missed = u64::from(g.options.deadline_ns.is_some_and(|d| job.response_ns > d));
        r.misses = r.misses.saturating_add(missed);
        let beyond = u64::from(period.is_some_and(|p| job.response_ns > signed(p)));
        r.beyond_period = r.beyond_period.saturating_add(beyond);
        r.seconds.add(since(open.release, g.options.begin_ns), job.wakeup_ns);
        if r.jobs.len() < JOBS_MAX {
            r.jobs.push(*job);
        }
    }

    /// Keeps it part by part where it is one of the longest, and its wake-up where it is one of the latest.
    fn keep(&mut self, g: &mut Ground<'_>, open: Open, response: i64) {
        if let Some(late) = open.late {
            let place = self.late.partition_point(|r| r.record.latency_ns >= late.latency_ns);
            let activation = self.record.cycles.saturating_sub(1);
            self.late.insert(place, LateWakeUp { activation, record: *late });
            self.late.truncate(g.options.worst);
        }
        let worst = &mut self.record.worst;
        let place = worst.partition_point(|r| r.latency_ns >= response);
        if place >= g.options.worst {
            return;
        }
        let mut parts = g.whats.spread(&open.parts.0);
        let chain = sentences(&parts, WakeUpRecord::Present);
        shorten(&mut parts);
        let late = Late {
            pid: self.pid,
            due_ns: open.release,
            end_ns: open.end,
            cpu: Some(open.cpu),
            ours: false,
        };
        let lanes = if open.release >= g.since { g.engine.lanes(&late) } else { Vec::new() };
        let events = g.engine.records_of(open.cpu, open.release, open.end);
        let record = BlameRecord {
            thread: 0,
            name: g.engine.comm(self.pid).unwrap_or_default().to_owned(),
            t_ns: signed(open.release),
            latency_ns: response,
            cpu: Some(open.cpu),
            parts,
            chain,
            lanes,
            tracing_ns: g.event_ns.saturating_mul(i64::try_from(events).unwrap_or(i64::MAX)),
            near: false,
            lost: open.lost,
        };
        worst.insert(place, record);
        worst.truncate(g.options.worst);
    }

    /// Everything is said: what was found. The cycle under way has no end, and does not count.
    pub(super) fn end(mut self, g: &mut Ground<'_>) -> ThreadCycles {
        if self.choice.is_none() {
            self.learn(g, PieceStream::Over);
        }
        let pace = Pace::of(&self.releases, g.options.known.period_ns);
        let said = self.locks.said();
        let (causes, causes_left_out_ns) = self.causes(g.whats, &said);
        let late_reasons = self.lateness.reasons(g.whats, &said);
        let r = self.record;
        let named = g.options.known.call.is_some();
        let activation = self.choice.map(|c| Activation {
            wait: c.words,
            waits: self.waits,
            others: self.others,
            sureness: if named { Sureness::Sure } else { c.sureness },
            given: named,
        });
        let (deadline_ns, misses) = match (g.options.deadline_ns, pace.period_ns) {
            (Some(deadline), _) => (Some(deadline), r.misses),
            (None, Some(period)) if pace.is_paced() => (Some(period), r.beyond_period),
            _ => (None, 0),
        };
        let record = CycleRecord {
            thread: 0,
            name: g.engine.comm(self.pid).unwrap_or_default().to_owned(),
            tid: self.pid,
            process: 0,
            policy: tailbound_core::Policy::Other,
            cpu: r.cpu.filter(|_| !r.moved),
            activation,
            pace,
            deadline_ns,
            misses,
            cycles: r.cycles,
            overruns: r.overruns,
            broken: r.broken,
            lossy: r.lossy,
            page_faults: r.page_faults,
            jobs_left_out: r.cycles.saturating_sub(r.jobs.len() as u64),
            wakeup: r.wakeup,
            execution: r.execution,
            blocked: r.blocked,
            response: r.response,
            causes,
            causes_left_out_ns,
            late_reasons,
            worst: r.worst,
            jobs: r.jobs,
        };
        let (seconds, blocks) = r.seconds.finish();
        ThreadCycles {
            cycles: record,
            late: self.late,
            seconds,
            blocks,
            jobs: Vec::new(),
            delayed_on: Vec::new(),
        }
    }

    fn causes(&self, whats: &Whats, said: &HashMap<Key, Said>) -> (Vec<CycleCause>, i64) {
        let mut all: Vec<CycleCause> = self
            .sums
            .iter()
            .filter_map(|(what, sum)| {
                let w = whats.get(Part { ns: 0, what: *what })?;
                Some(CycleCause {
                    phase: w.phase,
                    cause: said.get(what).map_or(w.cause, |s| s.cause),
                    who: said.get(what).map_or_else(|| w.who.clone(), |s| s.who.clone()),
                    sureness: w.sureness,
                    cycles: sum.cycles,
                    total_ns: signed(sum.ns),
                    worst_ns: signed(sum.ns_max),
                })
            })
            .collect();
        order::by(&mut all, |a, b| {
            (b.total_ns, &a.who, a.phase).cmp(&(a.total_ns, &b.who, b.phase))
        });
        let rest = all.split_off(CAUSES_MAX.min(all.len()));
        (all, total(rest.iter().map(|c| c.total_ns)))
    }
}

fn signed(t: u64) -> i64 {
    i64::try_from(t).unwrap_or(i64::MAX)
}
