// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run three times: as always, watched sparsely, and with every block of instructions around what matters.
//!
//! Not here: what is said of it (`tailbound_report::paths`).

use std::fs::File;
use std::io::BufReader;

use serde_json::{Value, json};
use tailbound_core::cpus::CpuSet;
use tailbound_core::paths::PathsRecord;
use tailbound_core::record::Fact;
use tailbound_core::theory::{Holds, Precondition};
use tailbound_core::{Context, Finding, Impact, Run, runfile};
use tailbound_paths::look::{Samples, Sparse};
use tailbound_paths::plan::{Guest, Plan};
use tailbound_rules::PREFIX;
use tailbound_stats::theory;
use tailbound_trace::symbols::Symbols;

use crate::bench::{self, Bench};
use crate::boot::Progress;
use crate::cell::Cell;
use crate::emulator::Emulator;
use crate::error::{LabError, WatchError};
use crate::machine::Accelerator;
use crate::paths;
use crate::pool::{Happened, on_cores};
use crate::progress::{Counted, Moved, Step, Steps, TaskListener};
use crate::request::Request;
use crate::run::{self, Made};
use crate::slices::SHARES;

/// Are runs watched from within QEMU too?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watching {
    /// They are made as always.
    Off,
    /// The paths of each.
    Paths,
}

/// How much of a run is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Sections and wake-ups.
    Sections,
    /// Also what the longest and the latest of them executed.
    Trees,
    /// All that, and the theoretical bound.
    Bound,
}

impl Depth {
    /// Its runs, with the one that tells the kernel's symbols.
    #[must_use]
    pub const fn steps(self) -> Steps {
        match self {
            Self::Sections => Steps(3),
            Self::Trees | Self::Bound => Steps(4),
        }
    }
}

/// When the activations of a run are due, by the guest's clock.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    start_ns: i64,
    interval_ns: i64,
    activations: u64,
}

impl Schedule {
    /// That of the run, which another one repeats; `None` where it is not known.
    fn of(run: &Run, activations: usize) -> Option<Self> {
        let interval_ns = run.header.plan.interval()?;
        Some(Self { start_ns: start(run).ok()?, interval_ns, activations: activations as u64 })
    }

    /// The activations that were due up to `due_ns`.
    fn due_until(self, due_ns: u64) -> u64 {
        let since = due_ns.cast_signed().saturating_sub(self.start_ns);
        let due = since.div_euclid(self.interval_ns.max(1)).saturating_add(1);
        due.max(0).cast_unsigned().min(self.activations)
    }
}

/// What is counted of a guest that is watched.
#[derive(Clone, Copy, Debug)]
enum Of {
    Nothing,
    Activations(Schedule),
    /// So many windows in which every block is recorded.
    Windows(u64),
}

impl Of {
    fn count(self, p: Progress) -> Option<Moved> {
        match self {
            Self::Nothing => None,
            Self::Activations(schedule) => {
                let done = schedule.due_until(p.newest.due_ns?);
                let count = Moved::Count(Counted::Activations, done, schedule.activations);
                (done > 0).then_some(count)
            }
            Self::Windows(of) => {
                let begun = p.newest.window?.saturating_add(1);
                Some(Moved::Count(Counted::Windows, begun.min(of), of))
            }
        }
    }
}

/// How far a guest is.
fn guest(p: Progress, of: Of, tell: &mut dyn FnMut(Moved)) {
    tell(Moved::Guest(p.phase));
    if let Some(count) = of.count(p) {
        tell(count);
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Watched {
    /// The run as always.
    pub plain: Made,
    /// What was watched.
    pub record: PathsRecord,
    /// The theoretical bound from it, where it was asked for.
    pub bound: Option<theory::TheoreticalBound>,
    /// What each of the three runs cost the host.
    pub costs: Value,
}

/// Watches the run of `cell`, which keeps its raw samples.
///
/// # Errors
/// It cannot be watched, or shows other bytes when it is; as [`run::run`].
pub fn watch(
    bench: &Bench<'_>,
    emulator: &Emulator,
    cell: &Cell,
    depth: Depth,
    shown: &dyn TaskListener,
) -> Result<Watched, LabError> {
    let watched = watch_as(bench, emulator, cell, depth, &mut |what| {
        shown.moved(0, what);
        bench.hear();
    });
    shown.over(0);
    watched
}

/// As [`watch`], among others; who calls this looks at the signals.
fn watch_as(
    bench: &Bench<'_>,
    emulator: &Emulator,
    cell: &Cell,
    depth: Depth,
    tell: &mut dyn FnMut(Moved),
) -> Result<Watched, LabError> {
    paths::plugin(emulator)?;
    paths::possible(cell.kernel.arch, Accelerator::kvm_if(cell.kvm), cell.smp)?;
    if depth == Depth::Bound {
        theory_possible(cell.smp)?;
    }
    tell(Moved::Step(Step::Prepare));
    let prepared = cell.prepare(emulator)?;
    paths::in_slices(&prepared)?;
    let means = &bench.means(emulator);
    tell(Moved::Step(Step::Symbols));
    let symbols = paths::symbols(cell, means, &mut |p| guest(p, Of::Nothing, tell))?;
    let kind = paths::guest(cell.kernel.arch);
    let mut plan = Plan::of(&symbols, kind).map_err(WatchError::Plan)?;
    if cell.smp > 1 {
        plan = plan.of_several().map_err(WatchError::Plan)?;
    }
    tell(Moved::Step(Step::Plain));
    let plain = run::prepared(&prepared, means, &mut |p| guest(p, Of::Nothing, tell))?;
    let latencies_ns = latencies(&plain.run)?;
    let schedule = Schedule::of(&plain.run, latencies_ns.len());
    let activations = schedule.map_or(Of::Nothing, Of::Activations);
    tell(Moved::Step(Step::Sections));
    let watched = &mut |p: Progress| guest(p, activations, tell);
    let (sparse, mut log) = paths::prepared_watched(&prepared, means, &plan, watched)?;
    tell(Moved::Step(Step::ReadSections));
    let same = bench::bytes(&plain.run)? == bench::bytes(&sparse.run)?;
    if !same {
        return Err(WatchError::Differs.into());
    }
    let names = Symbols::parse(&symbols);
    let samples = Samples {
        start_ns: start(&plain.run)?,
        latencies_ns: &latencies_ns,
        step_ns: 1 << cell.shift,
        guest: kind,
    };
    let mut found = first_look(&plain.run, &mut log, &plan, &names, samples, depth)?;
    found.keep_shares(&shares(&plain.run));
    let mut bound = None;
    if depth == Depth::Bound {
        let mut evidence = found.theory(&mut log, &plan, &names).map_err(WatchError::look)?;
        evidence.preconditions.push(throttling(&plain.run));
        let record = theory::condense(&evidence);
        let answer = theory::answer(&record);
        answer.holds(&record).map_err(WatchError::Bound)?;
        found.keep(record);
        bound = Some(answer);
    }
    drop(log);
    let (record, full) = if depth == Depth::Sections {
        (found.record().clone(), Value::Null)
    } else {
        let windows = found.windows();
        let plan = plan.full(&windows);
        tell(Moved::Step(Step::Blocks));
        let watched = &mut |p: Progress| guest(p, Of::Windows(windows.len() as u64), tell);
        let (full, log) = paths::prepared_watched(&prepared, means, &plan, watched)?;
        tell(Moved::Step(Step::ReadBlocks));
        let record = found.full(BufReader::new(log), &names, &plan).map_err(WatchError::look)?;
        (record, full.cost.json())
    };
    let costs = json!({
        "plain": plain.cost.json(),
        "sparse": sparse.cost.json(),
        "full": full,
    });
    Ok(Watched { plain, record, bound, costs })
}

/// What the log of the sparse run, which has the bytes of `run`, tells.
fn first_look(
    run: &Run,
    log: &mut File,
    plan: &Plan,
    names: &Symbols,
    samples: Samples<'_>,
    depth: Depth,
) -> Result<Sparse, LabError> {
    let begin = Begin::of(run);
    if begin != Begin::Timer {
        not_by_timers_possible(depth, samples.guest)?;
    }
    let found = match begin {
        Begin::Timer => Sparse::of(log, plan.marks(), names, samples),
        Begin::Sender => Sparse::of_handovers(log, plan.marks(), names, samples),
        Begin::Edge => {
            let (starts_ns, interval_ns) = (raw_of(run, Context::Start)?, interval(run)?);
            // The probe makes each edge half an interval after the activation.
            let start_ns = samples.start_ns.saturating_add(interval_ns / 2);
            let samples = Samples { start_ns, ..samples };
            Sparse::of_answers(log, plan, names, samples, &starts_ns)
        }
    };
    Ok(found.map_err(WatchError::look)?)
}

/// Can hand-overs and answers be followed so?
fn not_by_timers_possible(depth: Depth, kind: Guest) -> Result<(), LabError> {
    if depth == Depth::Bound {
        return Err(WatchError::TheoryOfTimers.into());
    }
    if kind != Guest::X86_64 {
        return Err(WatchError::NotByTimers.into());
    }
    Ok(())
}

/// Watches the runs of all `cells`, as many at a time as there may be guests; `done` is called with each as [`Bench::make`]
/// does.
///
/// # Errors
/// As [`Bench::make`].
pub fn all(
    bench: &Bench<'_>,
    cells: &[Cell],
    emulator: &Emulator,
    done: &mut dyn FnMut(usize, Result<Made, LabError>) -> String,
) -> Result<(), LabError> {
    let shown = bench.tasks(cells.len(), Some(Depth::Trees.steps()));
    let stopped = || bench.stopped();
    let work = |cell: &Cell, tell: &mut dyn FnMut(Moved)| {
        watch_as(bench, emulator, cell, Depth::Trees, tell)
    };
    on_cores(cells, bench.jobs(), &stopped, &work, &mut |what| {
        match what {
            Happened::Begun(at) => shown.moved(at, Moved::Begun),
            Happened::Progress(at, what) => shown.moved(at, what),
            // What Ctrl-C ended is not a cell that failed.
            Happened::Done(_, watched) if watched.is_err() && bench.stopped() => {}
            Happened::Done(at, watched) => {
                let watched = watched.map_err(|e| WatchError::Cell(Box::new(e)).into());
                let made = watched.map(|watched| {
                    let mut made = watched.plain;
                    bench::judge(&mut made, &*shown);
                    made.run.paths = Some(Box::new(watched.record));
                    made
                });
                let note = done(at, made);
                shown.over(at);
                shown.note(&note);
            }
            Happened::Tick => {}
        }
        bench.hear();
    });
    shown.clear();
    bench.went_on()
}

/// Can the paths of these runs be watched? Asked before anything boots.
///
/// # Errors
/// Why not.
pub fn possible(words: &Request) -> Result<(), LabError> {
    let smp = words.smp.unwrap_or(1);
    paths::possible(words.arch()?, Accelerator::kvm_if(words.kvm), smp)?;
    let cpus = words.campaign.cpus.as_deref().map(str::parse::<CpuSet>);
    let one = cpus.is_some_and(|cpus| cpus.is_ok_and(|cpus| cpus.iter().count() == 1));
    if smp > 1 && !one {
        return Err(WatchError::WhichThread.into());
    }
    Ok(())
}

/// Can the theoretical bound be computed?
///
/// # Errors
/// Why not.
pub fn theory_possible(smp: u32) -> Result<(), LabError> {
    if smp == 1 {
        return Ok(());
    }
    Err(WatchError::TheoryOfOneCpu.into())
}

/// The share of each CPU, in parts of a thousand; empty with one CPU.
fn shares(run: &Run) -> Vec<u64> {
    match run.header.machine.get(SHARES) {
        Some(Fact::Value(shares)) => {
            shares.as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
        }
        _ => Vec::new(),
    }
}

/// All samples of the only thread, as they were measured.
///
/// # Errors
/// They cannot be unpacked.
pub fn latencies(run: &Run) -> Result<Vec<i64>, LabError> {
    let mut all = Vec::new();
    for raw in run.raw.iter().filter(|raw| raw.thread == 0) {
        all.extend(runfile::unpack_raw(raw).map_err(WatchError::Samples)?);
    }
    Ok(all)
}

/// What a sample begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    /// A timer that was due.
    Timer,
    /// The call of a sender, which only hand-overs have.
    Sender,
    /// An edge of a line.
    Edge,
}

impl Begin {
    fn of(run: &Run) -> Self {
        let has = |context| run.threads.iter().any(|t| t.context == context);
        match (has(Context::Send), has(Context::Work)) {
            (true, _) => Self::Sender,
            (_, true) if run.header.plan.probe.starts_with("answer-gpio") => Self::Edge,
            _ => Self::Timer,
        }
    }
}

/// All samples of the only thread of a context.
fn raw_of(run: &Run, context: Context) -> Result<Vec<i64>, LabError> {
    let thread = run.threads.iter().find(|t| t.context == context).map(|t| t.thread);
    let mut all = Vec::new();
    for raw in run.raw.iter().filter(|raw| Some(raw.thread) == thread) {
        all.extend(runfile::unpack_raw(raw).map_err(WatchError::Samples)?);
    }
    Ok(all)
}

fn interval(run: &Run) -> Result<i64, LabError> {
    let interval_ns = run.header.plan.interval();
    interval_ns.ok_or_else(|| WatchError::NoInterval.into())
}

/// When the first judged activation was due, by the guest's clock.
///
/// # Errors
/// The run does not say it.
pub fn start(run: &Run) -> Result<i64, LabError> {
    let event = run.events.iter().find(|e| e.event == "clock-start");
    let time = event.and_then(|e| e.text.parse().ok());
    time.ok_or_else(|| WatchError::NoStart.into())
}

/// The throttling of real-time threads, by what the guest's own run saw of it.
fn throttling(run: &Run) -> Precondition {
    let fact = run.header.machine.get(&format!("{PREFIX}no-throttling"));
    throttled(fact, run.findings.iter().find(|f| f.id == "rt-throttling"))
}

/// By its setting, and by the disturbance that the run watches for.
fn throttled(fact: Option<&Fact>, seen: Option<&Finding>) -> Precondition {
    let (holds, why) = match (seen, fact) {
        (Some(f), _) if f.impact == Impact::Unfit => (Holds::No, f.title.clone()),
        (Some(f), _) => (Holds::Unknown, f.title.clone()),
        (None, Some(Fact::Value(v))) => {
            let evidence = v.get("evidence").and_then(Value::as_str).unwrap_or_default();
            let off = v.get("holds").and_then(Value::as_bool) == Some(true);
            let watched = if off { "" } else { "; the run watched for it and saw none" };
            (Holds::Yes, format!("{evidence}{watched}"))
        }
        (None, Some(Fact::Unknown(why))) => (Holds::Unknown, why.clone()),
        (None, _) => (Holds::Unknown, "the run does not tell of it".to_owned()),
    };
    Precondition { name: "throttling of real-time threads".to_owned(), holds, why }
}

#[cfg(test)]
mod tests {
    use crate::boot::Phase;
    use tailbound_paths::log::Newest;

    use super::*;

    #[test]
    fn activations_are_counted_by_the_times_at_which_timers_were_due() {
        let schedule = Schedule { start_ns: 1_000_000, interval_ns: 250_000, activations: 3000 };
        let due = [(0, 0), (999_999, 0), (1_000_000, 1), (1_250_000, 2), (1_260_000, 2)];
        for (due_ns, activations) in due {
            assert_eq!(schedule.due_until(due_ns), activations, "{due_ns}");
        }
        // Timers of others go on when the measurement is over.
        assert_eq!(schedule.due_until(u64::MAX / 4), 3000);
        let count = |of: Of, due_ns, window| {
            let newest = Newest { due_ns, window };
            of.count(Progress { phase: Phase::AtWork, newest })
        };
        let of = Of::Activations(schedule);
        assert_eq!(count(of, Some(999_999), None), None, "the warm-up");
        let second = Moved::Count(Counted::Activations, 2, 3000);
        assert_eq!(count(of, Some(1_250_000), None), Some(second));
        let window = Moved::Count(Counted::Windows, 1, 40);
        assert_eq!(count(Of::Windows(40), None, Some(0)), Some(window));
        assert_eq!(count(Of::Nothing, Some(1_250_000), Some(0)), None);
    }

    #[test]
    fn throttling_is_told_by_setting_and_disturbance() {
        let armed = Fact::of(json!({ "holds": false, "evidence": "on: 95 %" }));
        let unread = Fact::Unknown("no file".to_owned());
        let finding = |impact| Finding::new("rt-throttling", impact, "it was throttled");
        let holds = |fact, impact: Option<Impact>| {
            let finding = impact.map(finding);
            throttled(fact, finding.as_ref()).holds
        };
        assert_eq!(holds(Some(&armed), None), Holds::Yes);
        assert_eq!(holds(Some(&armed), Some(Impact::Unfit)), Holds::No);
        assert_eq!(holds(Some(&armed), Some(Impact::Doubt)), Holds::Unknown);
        assert_eq!(holds(Some(&unread), None), Holds::Unknown);
        assert_eq!(holds(None, None), Holds::Unknown);
    }
}
