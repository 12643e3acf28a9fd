// SPDX-License-Identifier: MIT OR Apache-2.0
//! The whole of one run: inventory → load → warm-up → measure → verdict, every record
//! written as it comes.
//!
//! Context: SETUP and COLD. Units: ns. Order matters: facts are read before anything
//! disturbs them, the measurement ends before anything is torn down, and what was
//! measured reaches the file whatever happens after.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tailbound_core::Run;
use tailbound_core::cpus::CpuSet;
use tailbound_core::finding::{Finding, Impact};
use tailbound_core::occurrence::Occurrence;
use tailbound_core::record::{End, Fact, Facts, Line};
use tailbound_core::{Context, EndReason};
use tailbound_host::machine_lock::Shared;
use tailbound_host::{Switches, Watch, WatchPlan};
use tailbound_load::{LoadError, Loads, StartOptions};
use tailbound_probe::{Prepared, Running, Setup, ThreadResult, catalogue};
use tailbound_record::{Blamer, KeptTrace, Observed, Observer};
use tailbound_rt::LoopEnd;
use tailbound_sys::signal::Signals;
use tailbound_sys::{clock, limits, mem, resident, sched};
use tailbound_tune::dma_latency;

use crate::actions::{Actions, GuardedShell, Occasions, TraceFile, at_end, path_variable};
use crate::benchmarks;
use crate::error::RunError;
use crate::journal::Journal;
use crate::no_load;
use crate::output::Output;

use crate::session::{Session, TIMER_SLACK};
use crate::supervise::{AtThreshold, Subject, SupervisionOutcome, Supervisor, WatchedThread};
use crate::thread_record::thread_record;
use crate::trace_file;
use crate::tuned::Tuned;
use crate::view::View;
use crate::world::{Disturbances, Interruptions as _, LoadSet as _, Machine, World};

/// Time the loads have until somebody is told that they take their time, and until they fail.
const LOADS_PATIENCE: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(40)];

/// A warm-up in which all threads of the machine can be read, and memory locked: far from the measurement.
const CHORES_NS: i64 = 500_000_000;

/// Time and cycles that the measured threads have at least, to fetch their code again before the measurement begins.
const REFETCH_NS: i64 = 100_000_000;
const REFETCH_CYCLES: i64 = 16;

/// Makes the run with the probe that was prepared for its plan. `show` is called with the progress; `signals` end the run early.
/// Yields the run and where its file is.
///
/// # Errors
/// [`RunError`]: before anything was measured, or where the run file had to go elsewhere.
pub fn run(
    mut session: Session,
    probe: Prepared,
    output: Output,
    signals: &Signals,
    show: &mut dyn FnMut(View<'_>),
) -> Result<(Run, Option<PathBuf>), RunError> {
    if let Some(word) = session.plan.unknown_words().first() {
        return Err(RunError::UnknownWord { word: word.to_string() });
    }
    let Actions { late, end, trace, irq } = std::mem::take(&mut session.actions);
    let tuned = Tuned::apply(session.plan.tune.as_ref(), &session.root)?;
    let file = output.path().map(|path| path_variable("TAILBOUND_FILE", path));
    let trace_path = trace.as_ref().map(|trace| trace.path.clone());
    let exe = session.exe.clone();
    let shell = || GuardedShell { exe: exe.clone() };
    let mut journal = Journal::new(output, session.header());
    if !session.inventory_late {
        journal.run.header.machine = session.inventory();
        journal.begin();
    }
    let noticed = session.findings.iter().cloned().chain(tuned.as_ref().map(Tuned::finding));
    noticed.for_each(|finding| journal.finding(finding));
    if !session.inventory_late {
        session.note_beside(&mut journal);
    }
    let chores = session.chores();
    // Never while it is measured: on a non-preemptible kernel, reading them holds the CPU.
    let early = (chores == Chores::Before).then(|| Switches::now(&session.root));
    let begun = session.observe(&mut journal, signals).and_then(|observer| {
        let mut blamer = session.blamer(&mut journal)?;
        if let (Some(blamer), Some(_)) = (&mut blamer, &trace) {
            blamer.keep_trace(&session.root, session.plan.clock).map_err(RunError::Blame)?;
        }
        Ok((observer, blamer, session.start(probe, chores, &mut journal, show)?))
    });
    let (mut observer, mut blamer, (mut loads, held, running)) = match begun {
        Ok(started) => started,
        Err(e) => {
            // Nothing was measured: a run file without a run would only be in the way.
            journal.discard();
            return Err(e);
        }
    };
    if chores == Chores::InWarmUp {
        lock_memory(&mut journal);
    }
    if session.inventory_late {
        session.self_cost(&mut journal);
        session.note_beside(&mut journal);
        journal.run.header.machine = session.inventory();
        journal.begin();
    }
    if let Some(observer) = &mut observer {
        observer.limit_irq(irq.map_or(i64::MAX, |limit| limit.ns));
        observer.begin(&running.measured_threads(), running.start_ns(), &session.plan);
    }
    if let Some(blamer) = &mut blamer {
        blamer.begin(&running.measured_threads(), running.start_ns());
    }
    // Lets other observers of the same clock lay their records beside these.
    journal.event(0, Occurrence::ClockStart { at_ns: running.start_ns() });
    if let Some(at_ns) = session.begin_at_ns {
        journal.event(-session.plan.warm_up_ns, Occurrence::BeginAt { at_ns });
    }
    let switches = early.unwrap_or_else(|| Switches::now(&session.root));
    let watch = session.watch(&running, &journal.run.header.machine, switches);
    let start_ns = running.start_ns();
    let subject = Subject::<Machine> { running, watch, loads: &mut loads, stop: &limits::STOP };
    let mut supervisor = Supervisor::new(&session, subject, journal);
    supervisor.observer = observer;
    supervisor.blamer = blamer;
    let occasions = Occasions::new(late, Box::new(shell()), file.into_iter().collect());
    supervisor.at_threshold = AtThreshold { occasions, trace, irq };
    if session.inventory_late {
        session.release_begin(start_ns);
    }
    supervisor.watch_over(signals, show);
    let watched = supervisor.into_watched();
    drop(held);
    let made = watched.and_then(|w| finish(&session, w, &mut loads, tuned, signals, show));
    at_end(&end, &mut shell(), (&made, trace_path.as_deref()), signals, show);
    made
}

/// From the last activation to the last line.
///
/// # Errors
/// [`RunError`]: the threads could not keep their schedule, or the run file had to go elsewhere.
pub(crate) fn finish<W: World>(
    session: &Session,
    watched: SupervisionOutcome<W>,
    loads: &mut W::Loads,
    tuned: Option<Tuned>,
    signals: &W::Signals,
    show: &mut dyn FnMut(View<'_>),
) -> Result<(Run, Option<PathBuf>), RunError> {
    let SupervisionOutcome {
        mut journal,
        threads,
        watch,
        observed,
        blamed,
        at_threshold: AtThreshold { mut occasions, trace, .. },
        output,
        interrupted,
        by_rule,
    } = watched;
    let mut kept = None;
    let ends = loads.stop();
    for end in ends {
        let total = format!("{}: {} {} in total", end.name, end.total, end.unit);
        journal.event(session.plan.duration_ns(), Occurrence::LoadStopped { total: &total });
    }
    for (i, mut finding) in loads.findings().into_iter().enumerate() {
        // Two loads may fail alike; a later finding of one id would replace the earlier one.
        if journal.run.findings.iter().any(|f| f.id == finding.id) {
            finding.id = format!("{}-{}", finding.id, i + 1);
        }
        journal.finding(finding);
    }
    if let Some(observed) = observed {
        session.add_observed(&mut journal, observed, &threads);
    }
    if let Some(mut blamed) = blamed {
        kept = blamed.kept.take();
        journal.run.self_cost.extend(blamed.self_cost);
        blamed.records.into_iter().for_each(|b| journal.line(Line::Blame(Box::new(b))));
        blamed.findings.into_iter().for_each(|f| journal.finding(f));
        let t = journal.run.events.last().map_or(0, |e| e.t_ns);
        blamed.notes.iter().for_each(|note| journal.event(t, Occurrence::Blame { note }));
    }
    output.figures.into_iter().for_each(|f| journal.line(Line::Figure(f)));
    output.timelines.into_iter().for_each(|t| journal.line(Line::Timeline(t)));
    let pulses = output.pulses.into_iter().map(|p| Line::AnsweredPulses(Box::new(p)));
    pulses.for_each(|line| journal.line(line));
    output.findings.into_iter().for_each(|f| journal.finding(f));
    let ended =
        if by_rule { Some(EndReason::Rule) } else { interrupted.map(|_| EndReason::Interrupted) };
    session.conclude(&mut journal, threads, watch, ended)?;
    // Who began later than this run.
    if let Some(finding) = session.beside() {
        journal.finding(finding);
    }
    // Everything measured is in the file by now: killing a long benchmark loses nothing.
    journal.flush();
    if let Some(to) = trace {
        keep(to, kept.as_ref(), &mut journal, &mut occasions);
    }
    occasions.settle(interrupted.is_some(), &mut |ms| signals.wait(ms).is_some());
    record(&mut occasions, &mut journal);
    match interrupted {
        None => benchmarks::all(session, &mut journal, signals, show),
        Some(_) => benchmarks::none(session, &mut journal),
    }
    if let Some(left) = tuned.and_then(Tuned::end) {
        journal.finding(left);
    }
    journal.end()
}

/// Writes the trace around the latest wake-up; commands that come now are told where it is.
fn keep(to: TraceFile, kept: Option<&KeptTrace>, journal: &mut Journal, occasions: &mut Occasions) {
    let path = to.path.clone();
    let finding = trace_file::write(to, kept);
    if finding.id == trace_file::KEPT {
        occasions.tell(path_variable("TAILBOUND_TRACE", &path));
    }
    journal.finding(finding);
}

/// What was done at late wake-ups, which are over.
fn record(occasions: &mut Occasions, journal: &mut Journal) {
    let t = journal.run.measured_ns();
    for note in occasions.take_notes() {
        journal.event(t, Occurrence::OnLate { note: &note });
    }
    occasions.finding().into_iter().for_each(|f| journal.finding(f));
}

/// Locks memory; that it cannot be is a finding.
fn lock_memory(journal: &mut Journal) {
    if let Err(e) = mem::lock_all() {
        journal.finding(tailbound_host::not_locked(&e.to_string()));
    }
}

/// When memory is locked and the run queues are read: both take long, and must be over before it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chores {
    /// Before anything is begun.
    Before,
    /// While the threads warm up.
    InWarmUp,
}

/// What is held for the time of the measurement and given back by dropping it.
struct RunGuards {
    #[expect(dead_code, reason = "held for its effect while open")]
    dma_latency: Option<dma_latency::DmaLatency>,
    affinity: Option<Vec<u32>>,
}

impl Drop for RunGuards {
    fn drop(&mut self) {
        if let Some(cpus) = &self.affinity {
            // Only this process's own affinity: nothing is lost if it stays narrower.
            drop(sched::set_affinity(0, cpus));
        }
    }
}

impl Session {
    /// When there is time for them. In the warm-up where it is long enough and this thread has a CPU that is not measured: what a measured
    /// CPU did would be in the warm-up's latencies, from which it is chosen what is kept one by one.
    fn chores(&self) -> Chores {
        let is_long = self.plan.warm_up_ns >= CHORES_NS;
        match self.inventory_late && is_long && !self.free_cpus().is_empty() {
            true => Chores::InWarmUp,
            false => Chores::Before,
        }
    }

    /// Where this process may run, but for what is measured.
    fn free_cpus(&self) -> CpuSet {
        let own: CpuSet = sched::affinity(0).into_iter().flatten().collect();
        own.minus(&self.plan.cpus)
    }

    /// Other measurements that go on at the begin.
    fn note_beside(&mut self, journal: &mut Journal) {
        let beside = self.machine.as_mut().and_then(Shared::finding_at_begin);
        beside.into_iter().for_each(|finding| journal.finding(finding));
    }

    /// Other measurements that go on now.
    fn beside(&self) -> Option<Finding> {
        self.machine.as_ref().and_then(Shared::finding)
    }

    /// What the kernel's tracing saw, with what it lacks of the wake-ups that happened.
    fn add_observed(
        &self,
        journal: &mut Journal,
        mut observed: Observed,
        threads: &[WatchedThread],
    ) {
        let happened = threads.iter().map(|t| {
            let (woken, _) = t.collector.distributions(&t.result.recorders.measured);
            (t.result.slot.thread, woken.n)
        });
        let lacking =
            crate::observed::whole(&self.plan, &mut observed.threads, &happened.collect());
        observed.findings.extend(lacking);
        journal.run.self_cost.extend(observed.self_cost);
        observed.findings.into_iter().for_each(|f| journal.finding(f));
        // Before the threads' own: the order of the stages of a wake-up.
        observed.threads.into_iter().for_each(|t| journal.line(Line::Thread(Box::new(t))));
    }

    /// Loads at work, memory locked, threads on their way to the first activation.
    fn start(
        &self,
        probe: Prepared,
        chores: Chores,
        journal: &mut Journal,
        show: &mut dyn FnMut(View<'_>),
    ) -> Result<(Loads, RunGuards, Running), RunError> {
        let loads = match self.start_loads(show) {
            Err(e @ RunError::Load(_)) if self.loads_optional => {
                journal.finding(
                    Finding::new("load-failed", Impact::Doubt, format!("no default load: {e}"))
                        .meaning("The machine was measured without load; under load latencies are larger.")
                        .remedy("Name loads that can run here with --load, or --load none."),
                );
                Loads::start(&[], &StartOptions::new(&self.exe)).map_err(RunError::Load)?
            }
            other => other?,
        };
        let held = self.prepare(chores, journal)?;
        limits::STOP.store(false, Ordering::Relaxed);
        let setup = Setup {
            plan: &self.plan,
            root: &self.root,
            exe: &self.exe,
            stop: &limits::STOP,
            begin_at_ns: self.begin_at_ns,
        };
        let running = probe.begin(&setup).map_err(Box::new).map_err(RunError::Threads)?;
        Ok((loads, held, running))
    }

    /// What disturbs the measurement from here on, by what the machine is like before.
    fn watch(&self, running: &Running, machine: &Facts, switches: Switches) -> Watch {
        let mut before = machine.clone();
        // This process's own, which the machine's facts do not have.
        before.remove(TIMER_SLACK);
        before.retain(|name, _| !name.starts_with(tailbound_rules::PREFIX));
        let threads = running.own_tids().into_iter().filter_map(|t| u32::try_from(t).ok());
        let plan = WatchPlan {
            cpus: self.plan.cpus.clone(),
            policy: self.plan.policy,
            clock: self.plan.clock,
            threads: threads.collect(),
        };
        Watch::begin(&self.root, &plan, before, switches)
    }

    /// The kernel's tracing, set up and off; hwlat has looked already.
    fn observe(
        &self,
        journal: &mut Journal,
        signals: &Signals,
    ) -> Result<Option<Observer>, RunError> {
        let cannot = RunError::Observe;
        let mut observer = Observer::prepare(&self.root, &self.plan, &self.exe).map_err(cannot)?;
        if let Some(observer) = &mut observer {
            for note in observer.take_notes() {
                journal.event(-self.plan.warm_up_ns, Occurrence::Observe { note: &note });
            }
            let mut ended = false;
            let mut pause = |ms| {
                ended = signals.wait(ms).is_some();
                ended
            };
            observer.look_alone(&self.plan, &mut pause).map_err(cannot)?;
            if ended {
                return Err(RunError::Ended);
            }
        }
        Ok(observer)
    }

    /// The trace that late wake-ups are explained from, set up and off.
    fn blamer(&self, journal: &mut Journal) -> Result<Option<Blamer>, RunError> {
        let prepared = Blamer::prepare(&self.root, &self.plan, &self.exe);
        let mut blamer = prepared.map_err(RunError::Blame)?;
        if let Some(blamer) = &mut blamer {
            for note in blamer.take_notes() {
                journal.event(-self.plan.warm_up_ns, Occurrence::Blame { note: &note });
            }
            let kind = journal.run.header.machine.get("virt.kind").and_then(Fact::as_str);
            blamer.on_ground(kind.map(|k| k != "none"));
            if self.virtual_time {
                blamer.in_virtual_time();
            }
        }
        Ok(blamer)
    }

    fn start_loads(&self, show: &mut dyn FnMut(View<'_>)) -> Result<Loads, RunError> {
        let cannot = RunError::Load;
        let mut loads =
            Loads::start(&self.plan.loads, &StartOptions::new(&self.exe)).map_err(cannot)?;
        let [soon, late] = LOADS_PATIENCE;
        match loads.ready(soon) {
            Err(LoadError::NotReady { .. }) => {
                show(View::Note("the loads are still filling memory and starting tasks"));
                loads.ready(late).map_err(cannot)?;
            }
            other => other.map_err(cannot)?,
        }
        Ok(loads)
    }

    /// Locks memory unless that comes later, arms the guard, leaves the measured CPUs, holds what was asked for.
    fn prepare(&self, chores: Chores, journal: &mut Journal) -> Result<RunGuards, RunError> {
        let hog = catalogue::kind(&self.plan.probe).is_ok_and(|k| k.spins(&self.plan.options));
        let busy_ns = self.plan.warm_up_ns.saturating_add(self.plan.duration_ns());
        let guarded = limits::guard_realtime(if hog { busy_ns } else { 0 });
        // Ordinary threads need none.
        if self.plan.policy.is_realtime() {
            guarded.map_err(RunError::Guard)?;
        }
        if !self.inventory_late && self.is_wholly_fetched() {
            // Start-up memory, some megabytes, is released before the rest is locked. Where the kernel refuses, it stays.
            resident::release_code().unwrap_or_default();
        }
        if chores == Chores::Before {
            lock_memory(journal);
        }
        let dma_latency = self
            .plan
            .cpu_dma_latency_us
            .map(dma_latency::hold)
            .transpose()
            .map_err(RunError::DmaLatency)?;
        let before = sched::affinity(0).ok();
        let free: CpuSet =
            before.iter().flatten().copied().collect::<CpuSet>().minus(&self.plan.cpus);
        let moved =
            !free.is_empty() && sched::set_affinity(0, &free.iter().collect::<Vec<_>>()).is_ok();
        if !self.inventory_late {
            self.self_cost(journal);
        }
        Ok(RunGuards { dma_latency, affinity: before.filter(|_| moved) })
    }

    /// Is all code of the measuring loop fetched again by its warm-up and by the recorder's rare paths? That was tried for this probe;
    /// `busy` and `queue` met one page fault each while they measured.
    fn is_wholly_fetched(&self) -> bool {
        catalogue::kind(&self.plan.probe).is_ok_and(|kind| kind.name == "cyclic")
    }

    /// Gives back what only the begin and the inventory needed, of the program's code: megabytes. Not where the threads may no longer
    /// have been everywhere again before the measurement begins at `start_ns`: it never fetches pages.
    fn release_begin(&self, start_ns: i64) {
        let clock = tailbound_host::clock_id(self.plan.clock);
        let left_ns = start_ns.saturating_sub(clock::now_ns(clock));
        if !self.is_wholly_fetched()
            || left_ns < REFETCH_NS.max(self.plan.interval_ns.saturating_mul(REFETCH_CYCLES))
        {
            return;
        }
        // An older kernel refuses: then they stay.
        if resident::release_code().is_ok() {
            // Without memory for it they are fetched where they are first taken, which the run counts.
            tailbound_probe::selfcost::fetch_rare_paths().unwrap_or_default();
            resident::release_stack().unwrap_or_default();
        }
    }

    /// Measures what the tool itself costs; also brings the recorder's rare paths into memory.
    fn self_cost(&self, journal: &mut Journal) {
        match tailbound_probe::selfcost::measure(tailbound_host::clock_id(self.plan.clock)) {
            Ok(values) => journal.run.self_cost = values,
            Err(e) => journal.finding(Finding::new(
                "no-self-cost",
                Impact::Notice,
                format!("the cost of the tool itself is unknown: {e}"),
            )),
        }
    }

    /// Everything after the last activation.
    fn conclude(
        &self,
        journal: &mut Journal,
        threads: Vec<WatchedThread>,
        watch: impl Disturbances,
        ended: Option<EndReason>,
    ) -> Result<(), RunError> {
        if threads.iter().any(|t| t.result.finished.overloaded) {
            return Err(RunError::Overloaded { interval_ns: self.plan.interval_ns });
        }
        let mut measured = self.plan.activations;
        for WatchedThread { collector, p2, result } in &threads {
            let ThreadResult { slot, recorders, finished } = result;
            let mut record = thread_record(collector, *slot, recorders, Some(finished));
            let known =
                p2.iter().filter_map(|(p, v)| Some((tailbound_stats::quantile::label(*p), (*v)?)));
            record.p2 = known.collect();
            let accounted = match finished.ended {
                LoopEnd::Complete => self.plan.activations,
                LoopEnd::Stopped(n) | LoopEnd::Failed(_, n) => n,
            };
            if slot.context == Context::User {
                measured = measured.min(accounted);
            }
            if let LoopEnd::Failed(errno, _) = finished.ended {
                let why = std::io::Error::from_raw_os_error(errno);
                journal.finding(Finding::listed(
                    &format!("thread-failed-{}", slot.thread),
                    Impact::Unfit,
                    format!("thread {}: a system call of its loop failed: {why}", slot.thread),
                ));
            }
            journal.line(Line::Thread(Box::new(record)));
        }
        if limits::RUNAWAY.load(Ordering::Relaxed) {
            journal.finding(Finding::listed(
                "runaway",
                Impact::Unfit,
                "a measured thread ran for 0.5 s without sleeping: the guard stopped the run",
            ));
        }
        let self_cost = journal.run.self_cost.clone();
        journal.line(Line::SelfCost { values: self_cost });
        let (after, findings) = watch.end(&journal.run.threads);
        let loaded = no_load::found(&journal.run.findings, &journal.run.header.machine, &after);
        journal.line(Line::After { facts: after });
        if let Some(finding) = loaded {
            journal.finding(finding);
        }
        for finding in findings {
            journal.finding(finding);
        }
        let complete = threads.iter().all(|t| t.result.finished.ended == LoopEnd::Complete);
        let reason = match ended {
            _ if complete => EndReason::Complete,
            Some(why) => why,
            None => EndReason::Failed,
        };
        let measured_ns =
            self.plan.interval_ns.saturating_mul(i64::try_from(measured).unwrap_or(i64::MAX));
        journal.run.end = Some(End { reason, measured_ns, lines: 0 });
        journal.judge();
        Ok(())
    }
}
