// SPDX-License-Identifier: MIT OR Apache-2.0
//! The measuring process's side: starts a worker for each load, collects what they count,
//! ends them, and says which of them were no load at all.
//!
//! Context: SETUP (`start`, `ready`: before the measurement is armed), COLD (`poll`, `stop`).
//! Units: ns of CLOCK_MONOTONIC.
//! The thread that calls [`Loads::start`] must live as long as the loads: the kernel ends
//! a worker when the *thread* that started it ends. Source: prctl(2) PR_SET_PDEATHSIG.

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tailbound_core::Spec;
use tailbound_core::number::Real as _;
use tailbound_core::record::LoadRecord;
use tailbound_core::{CpuSet, Finding, Impact, units};
use tailbound_sys::process::{self, Pid};
use tailbound_sys::{SysError, clock, ipc, sched};

use crate::error::LoadError;
use crate::kind::LoadKind;
use crate::launch;
use crate::options::{self, Parsed};
use crate::phase::Phase;
use crate::protocol::{Garbled, Lines, Report, STOP};

/// How long a worker may take to end by itself before it is killed.
const STOP_GRACE: Duration = Duration::from_millis(700);
/// How long the kernel may take to end what was killed: the dying need the CPU as well, and may
/// have to wait for a disk first.
const KILL_GRACE: Duration = Duration::from_secs(120);
/// A load that does nothing for so long is reported.
const STALL_NS: i64 = 2_000_000_000;
/// A phase that is begun later than this is told.
const LATE_NS: i64 = 500_000_000;

/// How to start loads.
#[derive(Clone, Debug)]
pub struct StartOptions {
    /// The program whose main function calls [`crate::worker_main`].
    pub exe: PathBuf,
    /// Arguments that make it do so; the specification is added as the last one.
    pub arguments: Vec<OsString>,
    /// CPUs of loads without a `cpus=` option; `None`: those of the calling thread.
    pub cpus: Option<CpuSet>,
}

impl StartOptions {
    /// `exe load-worker SPEC`, on the CPUs of the calling thread.
    #[must_use]
    pub fn new(exe: impl Into<PathBuf>) -> Self {
        Self { exe: exe.into(), arguments: vec!["load-worker".into()], cpus: None }
    }
}

/// What one load did since the sample before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadSample {
    /// Position of the load in the list given to [`Loads::start`].
    pub load: u32,
    /// Its name.
    pub name: String,
    /// Units of work done in the span.
    pub count: u64,
    /// What is counted.
    pub unit: &'static str,
    /// Length of the span.
    pub span_ns: i64,
    /// End of the span.
    pub at_ns: i64,
}

impl LoadSample {
    /// As a line of the run file, on a clock that began at `epoch_ns` of CLOCK_MONOTONIC.
    #[must_use]
    pub fn record(&self, epoch_ns: i64) -> LoadRecord {
        LoadRecord {
            load: self.load,
            name: self.name.clone(),
            t_ns: self.at_ns.saturating_sub(epoch_ns),
            span_ns: self.span_ns,
            count: self.count,
            unit: self.unit.to_owned(),
        }
    }

    /// Units a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        if self.span_ns > 0 { self.count.real() * 1e9 / self.span_ns.real() } else { 0.0 }
    }
}

/// How one load ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadEnd {
    /// Position of the load in the list given to [`Loads::start`].
    pub load: u32,
    /// Its name.
    pub name: String,
    /// Units of work done in all.
    pub total: u64,
    /// What is counted.
    pub unit: &'static str,
    /// From the first report to the last.
    pub span_ns: i64,
    /// For a load with an end of its own that reached it: the time its work took.
    pub elapsed_ns: Option<u64>,
    /// Why it ended before it was told to, without an error.
    pub ended: Option<String>,
    /// What went wrong.
    pub failure: Option<String>,
}

/// The process of a load, until it has ended.
#[derive(Debug)]
struct Worker {
    pid: Pid,
    /// Since when it has been told to stop.
    stopping: Option<Instant>,
    stream: UnixStream,
    lines: Lines,
}

#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) spec: Spec,
    kind: &'static LoadKind,
    cpus: Option<CpuSet>,
    pub(crate) phase: Phase,
    worker: Option<Worker>,
    /// Has it ever begun?
    begun: bool,
    first_ns: Option<i64>,
    /// Total of the workers before this one.
    before: u64,
    /// End and total of the last sample handed out.
    sampled: (i64, u64),
    latest: (i64, u64),
    /// What it did at the end of a phase, not handed out yet.
    over: Option<LoadSample>,
    /// When the total last grew, and the longest time it did not.
    grew_ns: i64,
    stall_ns: i64,
    /// How late a phase of it was begun, at most.
    pub(crate) begun_late_ns: i64,
    /// Phases that were over before anybody looked.
    pub(crate) passed_over: u64,
    /// How much smaller than usual it is.
    reduced: Option<String>,
    elapsed_ns: Option<u64>,
    ended: Option<String>,
    failure: Option<String>,
    notes: Vec<String>,
}

/// Loads at work. Dropping it stops them.
#[derive(Debug)]
pub struct Loads {
    pub(crate) all: Vec<Running>,
    pub(crate) how: StartOptions,
    /// When phases were looked at last.
    pub(crate) looked_ns: Option<i64>,
}

impl Loads {
    /// Starts a worker for each load that begins at once; returns before they are at work
    /// ([`Loads::ready`]). Those that have phases begin and end in [`Loads::keep_phases`].
    ///
    /// # Errors
    /// A specification that means nothing, CPUs that are not there, a refused system call;
    /// loads started before the error are stopped.
    pub fn start(specs: &[Spec], how: &StartOptions) -> Result<Self, LoadError> {
        let parsed: Vec<Parsed> = specs.iter().map(options::parse).collect::<Result<_, _>>()?;
        for one in &parsed {
            check_cpus(one)?;
        }
        let mut how = how.clone();
        if how.cpus.is_none() {
            // The caller may leave CPUs later, and a load that begins then is not to follow it.
            how.cpus = sched::affinity(0).ok().map(|cpus| cpus.into_iter().collect());
        }
        let mut loads = Self { all: Vec::with_capacity(specs.len()), how, looked_ns: None };
        for (spec, one) in specs.iter().zip(&parsed) {
            let mut it = Running::new(spec, one);
            if it.phase.is_on(0) {
                it.begin(&loads.how)
                    .map_err(|source| LoadError::Start { load: spec.to_string(), source })?;
            }
            loads.all.push(it);
        }
        Ok(loads)
    }

    /// Waits until every load has done work, at most `timeout`. A signal handled by the
    /// calling thread does not end the wait.
    ///
    /// # Errors
    /// [`LoadError::Failed`] as soon as one says it cannot work; [`LoadError::NotReady`].
    pub fn ready(&mut self, timeout: Duration) -> Result<(), LoadError> {
        let start = Instant::now();
        loop {
            self.listen();
            if let Some((load, reason)) =
                self.all.iter().find_map(|r| Some((r.spec.to_string(), r.failure.clone()?)))
            {
                return Err(LoadError::Failed { load, reason });
            }
            let idle: Vec<String> = self
                .all
                .iter()
                .filter(|r| r.begun && r.latest.1 == 0 && r.ended.is_none())
                .map(|r| r.spec.to_string())
                .collect();
            if idle.is_empty() {
                return Ok(());
            }
            let waited = start.elapsed();
            if waited >= timeout {
                return Err(LoadError::NotReady { loads: idle, waited_ms: timeout.as_millis() });
            }
            self.wait_for_news((timeout - waited).min(Duration::from_millis(100)));
        }
    }

    /// What each load did since it was last asked; never waits. A load without news has
    /// no sample.
    pub fn poll(&mut self) -> Vec<LoadSample> {
        self.listen();
        let fresh = |(load, r): (u32, &mut Running)| {
            let over = r.over.take();
            [over, r.sample(load)].into_iter().flatten()
        };
        (0..).zip(&mut self.all).flat_map(fresh).collect()
    }

    /// Is any load still running, or going to begin?
    pub fn any_running(&mut self) -> bool {
        self.listen();
        self.all.iter().any(|r| r.worker.is_some() || r.is_awaited())
    }

    /// What the workers had to say about how they run, with the load's name.
    #[must_use]
    pub fn notes(&self) -> Vec<(String, String)> {
        self.all
            .iter()
            .flat_map(|r| r.notes.iter().map(|n| (r.spec.to_string(), n.clone())))
            .collect()
    }

    /// Waits until a worker says something or `timeout` is over.
    pub fn wait_for_news(&self, timeout: Duration) {
        let fds: Vec<_> =
            self.all.iter().filter_map(|r| Some(r.worker.as_ref()?.stream.as_fd())).collect();
        let ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        // A failed wait is an early return: the callers look at the clock.
        let _early = ipc::wait_readable(&fds, ms.max(1));
    }

    /// Stops all loads and everything they started; how each ended. Later calls change
    /// nothing and say the same.
    pub fn stop(&mut self) -> Vec<LoadEnd> {
        self.listen();
        for r in &mut self.all {
            r.request_stop();
        }
        self.wait_for_ends(STOP_GRACE);
        for worker in self.all.iter().filter_map(|r| r.worker.as_ref()) {
            // It may have ended this moment, which is what was wanted.
            let _gone = process::kill(worker.pid, process::SIGKILL);
        }
        self.wait_for_ends(KILL_GRACE);
        for r in &mut self.all {
            if let Some(worker) = r.worker.take() {
                r.fail(format!("process {} did not end when killed", worker.pid));
            }
        }
        (0..).zip(&self.all).map(|(load, r)| r.end(load)).collect()
    }

    /// What a reader of the figures must know about the loads. Complete after
    /// [`Loads::stop`].
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        self.all.iter().flat_map(Running::findings).collect()
    }

    pub(crate) fn listen(&mut self) {
        for (load, r) in (0..).zip(&mut self.all) {
            r.listen(load);
        }
    }

    fn wait_for_ends(&mut self, limit: Duration) {
        let start = Instant::now();
        while self.all.iter().any(|r| r.worker.is_some()) && start.elapsed() < limit {
            // The end of a process is no news on its socket: tasks may hold copies of it.
            let _early = ipc::wait_readable(&[], 5);
            self.listen();
        }
    }
}

impl Drop for Loads {
    fn drop(&mut self) {
        self.stop();
    }
}

pub(crate) fn check_cpus(one: &Parsed) -> Result<(), LoadError> {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").ok();
    let online = online.and_then(|text| text.trim().parse::<CpuSet>().ok());
    let (Some(cpus), Some(online)) = (&one.cpus, online) else { return Ok(()) };
    let absent = cpus.minus(&online);
    if absent.is_empty() {
        return Ok(());
    }
    Err(LoadError::BadValue {
        load: one.kind.name,
        option: "cpus".into(),
        value: cpus.to_string(),
        reason: format!("CPU {absent} is not online; online are {online}"),
    })
}

impl Running {
    fn new(spec: &Spec, parsed: &Parsed) -> Self {
        let now = clock::now_ns(clock::CLOCK_MONOTONIC);
        Self {
            spec: spec.clone(),
            kind: parsed.kind,
            cpus: parsed.cpus.clone(),
            phase: parsed.phase,
            worker: None,
            begun: false,
            first_ns: None,
            before: 0,
            sampled: (now, 0),
            latest: (now, 0),
            over: None,
            grew_ns: now,
            stall_ns: 0,
            begun_late_ns: 0,
            passed_over: 0,
            reduced: None,
            elapsed_ns: None,
            ended: None,
            failure: None,
            notes: Vec::new(),
        }
    }

    /// Starts its worker, whose work is added to what was done before.
    pub(crate) fn begin(&mut self, how: &StartOptions) -> Result<(), SysError> {
        // Before it starts: on a busy machine it may have reported when the launch returns.
        let now = clock::now_ns(clock::CLOCK_MONOTONIC);
        let (pid, stream) = launch::worker(&self.spec.to_string(), self.cpus.as_ref(), how)?;
        self.worker = Some(Worker { pid, stopping: None, stream, lines: Lines::default() });
        self.begun = true;
        self.before = self.latest.1;
        self.latest.0 = now;
        self.sampled = self.latest;
        self.grew_ns = now;
        Ok(())
    }

    /// Is it going to begin, as far as anybody knows?
    pub(crate) fn is_awaited(&self) -> bool {
        let again = !self.begun || self.phase.every_ns.is_some();
        self.worker.is_none() && again && !self.is_over()
    }

    /// Nothing more will come: it failed, or reached an end of its own.
    pub(crate) fn is_over(&self) -> bool {
        self.failure.is_some() || self.ended.is_some() || self.elapsed_ns.is_some()
    }

    pub(crate) fn is_working(&self) -> bool {
        self.worker.is_some()
    }

    /// Asks its worker to end; one that was asked before and did not is killed.
    pub(crate) fn request_stop(&mut self) -> bool {
        let Some(worker) = &mut self.worker else { return false };
        match worker.stopping {
            None => {
                worker.stopping = Some(Instant::now());
                // A worker that cannot be told is killed later.
                let _refused = worker.stream.write_all(STOP);
                true
            }
            Some(since) => {
                if since.elapsed() > STOP_GRACE {
                    let _gone = process::kill(worker.pid, process::SIGKILL);
                }
                false
            }
        }
    }

    /// Takes in what arrived, then looks whether the worker lives: in this order, so that
    /// its last words are heard.
    fn listen(&mut self, load: u32) {
        let Some(mut worker) = self.worker.take() else { return };
        let ended = process::try_wait(worker.pid);
        let mut buffer = [0; 4096];
        while let Ok(n) = worker.stream.read(&mut buffer) {
            if n == 0 {
                break;
            }
            for report in worker.lines.feed(buffer.get(..n).unwrap_or_default()) {
                self.hear(report);
            }
        }
        if let Ok(None) = ended {
            self.worker = Some(worker);
            return;
        }
        self.over = self.sample(load).or(self.over.take());
        if worker.stopping.is_some() || self.elapsed_ns.is_some() || self.ended.is_some() {
            return;
        }
        let how = match ended {
            Ok(Some(status)) if status.signal() == Some(process::SIGKILL) => {
                format!("{} (by the kernel, if memory ran out: see dmesg)", process::ended(status))
            }
            Ok(Some(status)) => process::ended(status),
            // Somebody made this process ignore SIGCHLD: the kernel collects its children.
            _ => "a status nobody knows".to_owned(),
        };
        self.fail(format!("its worker ended with {how}"));
        // In a PID namespace the kernel has done this.
        process::kill_session(worker.pid);
    }

    fn hear(&mut self, report: Result<Report, Garbled>) {
        match report {
            Ok(Report::Count { total, at_ns }) => {
                self.first_ns.get_or_insert(at_ns);
                let total = self.before.saturating_add(total);
                if total > self.latest.1 {
                    self.grew_ns = at_ns;
                } else if self.latest.1 > self.before {
                    self.stall_ns = self.stall_ns.max(at_ns.saturating_sub(self.grew_ns));
                }
                self.latest = (at_ns, total.max(self.latest.1));
            }
            Ok(Report::Done { elapsed_ns }) => self.elapsed_ns = Some(elapsed_ns),
            Ok(Report::Ended { reason }) => self.ended = Some(reason),
            Ok(Report::Failed { reason }) => self.fail(reason),
            Err(garbled) => self.fail(garbled.to_string()),
            Ok(Report::Reduced { how }) => self.reduced = Some(how),
            Ok(Report::Note { text }) => self.notes.push(text),
        }
    }

    /// Keeps the first reason: later ones are its consequences.
    pub(crate) fn fail(&mut self, reason: String) {
        self.failure.get_or_insert(reason);
    }

    fn sample(&mut self, load: u32) -> Option<LoadSample> {
        let (at_ns, total) = self.latest;
        let span_ns = at_ns.saturating_sub(self.sampled.0);
        if self.first_ns.is_none() || span_ns <= 0 {
            return None;
        }
        let count = total - self.sampled.1;
        self.sampled = self.latest;
        let (name, unit) = (self.spec.name.clone(), self.kind.unit);
        Some(LoadSample { load, name, count, unit, span_ns, at_ns })
    }

    fn end(&self, load: u32) -> LoadEnd {
        LoadEnd {
            load,
            name: self.spec.name.clone(),
            total: self.latest.1,
            unit: self.kind.unit,
            span_ns: self.first_ns.map_or(0, |first| self.latest.0.saturating_sub(first)),
            elapsed_ns: self.elapsed_ns,
            ended: self.ended.clone(),
            failure: self.failure.clone(),
        }
    }

    fn findings(&self) -> Vec<Finding> {
        let spec = &self.spec;
        let mut out = Vec::new();
        if let Some(reason) = &self.failure {
            out.push(
                Finding::new("load-failed", Impact::Doubt, format!("load {spec} failed: {reason}"))
                    .meaning("From then on the machine was not loaded as configured.")
                    .remedy("Remove the cause and measure again."),
            );
        } else if !self.begun && self.passed_over == 0 {
            let title = format!("load {spec} never began: the run ended before its from=");
            out.push(
                Finding::new("load-idle", Impact::Doubt, title)
                    .meaning("The figures do not include this load.")
                    .remedy("Write an earlier from=, or measure longer."),
            );
        } else if self.begun && self.latest.1 == 0 {
            let title = format!("load {spec} was never scheduled: 0 {}", self.kind.unit);
            out.push(
                Finding::new("load-idle", Impact::Doubt, title)
                    .meaning("The machine was not loaded as configured.")
                    .remedy("Check whether the load gets any CPU time, and measure again."),
            );
        }
        if let Some(how) = &self.reduced {
            out.push(Finding::listed(
                "load-reduced",
                Impact::Notice,
                format!("load {spec} is smaller than usual: {how}"),
            ));
        }
        if self.passed_over > 0 || self.begun_late_ns > LATE_NS {
            let late = units::format_ns_i64(self.begun_late_ns);
            let title = match (self.begun, self.passed_over) {
                (false, n) => format!(
                    "load {spec} never began: {n} of its phases were over before the supervisor could start them"
                ),
                (true, 0) => format!(
                    "load {spec} began up to {late} after its time: the supervisor of the run came late"
                ),
                (true, n) => format!(
                    "load {spec} began up to {late} after its time and {n} times not at all: the supervisor of the run came late"
                ),
            };
            out.push(Finding::listed("load-late", Impact::Doubt, title));
        }
        let over = self.ended.clone().or_else(|| {
            let ns = i64::try_from(self.elapsed_ns?).unwrap_or(i64::MAX);
            Some(format!("its work was done after {}", units::format_ns_i64(ns)))
        });
        if let Some(reason) = over {
            out.push(Finding::listed(
                "load-ended",
                Impact::Doubt,
                format!("load {spec} ended: {reason}"),
            ));
        }
        if self.stall_ns > STALL_NS && !self.kind.coarse {
            let span = units::format_ns_i64(self.stall_ns);
            out.push(Finding::listed(
                "load-stalled",
                Impact::Notice,
                format!("load {spec} did nothing for {span}"),
            ));
        }
        out
    }
}
