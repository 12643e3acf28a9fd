// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs candidates in guests of the lab: one guest a core, all from one snapshot.
//!
//! Units: ns. Results are told in the order of the candidates, whichever guest is ready first. What a
//! candidate shows depends on nothing here.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tailbound_core::FailureKind;
use tailbound_core::paths::SectionKind;
use tailbound_core::units;
use tailbound_lab::bench::{self, Bench};
use tailbound_lab::error::{GuestError, WatchError};
use tailbound_lab::watching::{latencies, start};
use tailbound_lab::{
    Cell, Emulator, Happened, Kernel, LabError, Made, Prepared, Request, on_cores, paths, run,
};
use tailbound_paths::executed;
use tailbound_paths::look::{Samples, Sparse};
use tailbound_paths::plan::Plan;
use tailbound_trace::symbols::Symbols;

use crate::error::SearchError;
use crate::hunt::{Candidate, Code, End, Evaluator, Figures, Outcome, lab};

/// Virtual time that a guest may take beside that of its activations. Loads that leave the measurement no CPU to begin with
/// would go on to the guest's own limit, which takes minutes.
const SLACK_NS: u64 = 5_000_000_000;

/// What the plugin is told, and what addresses are called.
pub(super) struct Watch {
    plan: Plan,
    symbols: Symbols,
}

/// Guests, ready to take any candidate.
pub(super) struct Guests<'a> {
    pub(super) bench: &'a Bench<'a>,
    emulator: &'a Emulator,
    request: Request,
    kernel: Kernel,
    base: Prepared,
    watch: Option<Watch>,
    jobs: usize,
    /// Nothing is begun after this time.
    pub(super) until: Option<Instant>,
    /// Told how many were run, each time one is done and now and then.
    pub(super) shown: Box<dyn FnMut(usize) + 'a>,
    /// Guests that were run here.
    pub(super) runs: usize,
    /// What failed that is no candidate's doing: nothing is begun after it.
    broken: Option<LabError>,
}

/// What is asked for one candidate: the words of `lab run`.
pub(super) fn request(words: &Request, candidate: &Candidate) -> Request {
    let mut request =
        Request { loads: vec![candidate.load()], seed: Some(candidate.seed), ..words.clone() };
    // As the command has it: the text of a job is a part of the run.
    request.campaign.interval = Some(interval(candidate));
    request
}

pub(super) fn interval(candidate: &Candidate) -> String {
    units::exact(i64::try_from(candidate.interval_ns).unwrap_or(i64::MAX))
}

impl<'a> Guests<'a> {
    /// The guest of `words`, which hold no load yet.
    pub(super) fn of(
        bench: &'a Bench<'a>,
        emulator: &'a Emulator,
        words: Request,
        kernel: Kernel,
        jobs: usize,
    ) -> Result<Self, SearchError> {
        let none = Candidate { loads: Vec::new(), interval_ns: 250_000, seed: 1 };
        let cell = one(request(&words, &none), &kernel)?;
        let base = cell.prepare(emulator)?;
        Ok(Self {
            bench,
            emulator,
            request: words,
            kernel,
            base,
            watch: None,
            jobs: jobs.max(1),
            until: None,
            shown: Box::new(|_| {}),
            runs: 0,
            broken: None,
        })
    }

    /// What this host failed at, such as a full disk.
    pub(super) fn whole(&mut self) -> Result<(), LabError> {
        self.broken.take().map_or(Ok(()), Err)
    }

    /// SHA-256 of image and program, and QEMU's version.
    pub(super) fn made_of(&self) -> [String; 3] {
        let record = &self.base.record;
        [&record.kernel.sha256, &record.guest_sha256, &record.qemu].map(Clone::clone)
    }

    /// The cell of a candidate.
    pub(super) fn cell(&self, candidate: &Candidate) -> Result<Cell, LabError> {
        self.cell_of(request(&self.request, candidate))
    }

    /// The cell of a request for this guest.
    pub(super) fn cell_of(&self, request: Request) -> Result<Cell, LabError> {
        one(request, &self.kernel)
    }

    /// Sections are watched from now on: one run must have the same bytes with and without.
    pub(super) fn watch(&mut self) -> Result<(), SearchError> {
        let means = self.bench.means(self.emulator);
        let mut hear = |_| self.bench.hear();
        let none = Candidate { loads: Vec::new(), interval_ns: 250_000, seed: 1 };
        let cell = self.cell(&none)?;
        let symbols = paths::symbols(&cell, &means, &mut hear)?;
        let guest = paths::guest(cell.kernel.arch);
        let (_, interval_ns) = lab().interval_ns;
        let loops = self.request.campaign.loops.unwrap_or(0);
        let limit_ns = SLACK_NS.saturating_add(loops.saturating_mul(2 * interval_ns));
        let plan = Plan::of(&symbols, guest)?;
        let plan = plan.with_code().with_limit(limit_ns);
        let prepared = self.base.with_job(&cell)?;
        let plain = run::prepared(&prepared, &means, &mut hear)?;
        let (watched, _log) = paths::prepared_watched(&prepared, &means, &plan, &mut hear)?;
        if bench::bytes(&plain.run)? != bench::bytes(&watched.run)? {
            return Err(SearchError::WatchedDiffers);
        }
        self.watch = Some(Watch { plan, symbols: Symbols::parse(&symbols) });
        Ok(())
    }

    /// One run of a candidate, as `lab run` makes it.
    pub(super) fn plain(&self, cell: &Cell) -> Result<Made, LabError> {
        let means = self.bench.means(self.emulator);
        let mut made =
            run::prepared(&self.base.with_job(cell)?, &means, &mut |_| self.bench.hear())?;
        bench::judge_here(&mut made.run);
        Ok(made)
    }
}

fn one(request: Request, kernel: &Kernel) -> Result<Cell, LabError> {
    let cells = request.cells(&mut |_, _| Ok(kernel.clone()))?;
    let first = cells.into_iter().next();
    first.map(|l| l.cell).ok_or_else(|| GuestError::NoCell.into())
}

/// The latest wake-up of a run.
pub(super) fn latest_ns(run: &tailbound_core::Run) -> Result<i64, LabError> {
    latest_of(&latencies(run)?)
}

fn latest_of(latencies_ns: &[i64]) -> Result<i64, LabError> {
    let latest = latencies_ns.iter().copied().max();
    latest.ok_or_else(|| WatchError::NoSamples.into())
}

/// What one guest showed.
fn figures(
    prepared: &Prepared,
    means: &tailbound_lab::Means<'_>,
    watch: Option<&Watch>,
) -> Result<Figures, LabError> {
    let Some(watch) = watch else {
        let made = run::prepared(prepared, means, &mut |_| {})?;
        return Ok(Figures { latest_ns: latest_ns(&made.run)?, ..Figures::default() });
    };
    let (made, mut log) = paths::prepared_watched(prepared, means, &watch.plan, &mut |_| {})?;
    let latencies_ns = latencies(&made.run)?;
    let mut figures = Figures { latest_ns: latest_of(&latencies_ns)?, ..Figures::default() };
    // A log that cannot be read says so again below.
    figures.code = executed::code(&mut log).ok().map(Code::of);
    let samples = Samples {
        start_ns: start(&made.run)?,
        latencies_ns: &latencies_ns,
        step_ns: 1 << prepared.record.shift,
        guest: watch.plan.guest(),
    };
    match Sparse::of(&mut log, watch.plan.marks(), &watch.symbols, samples) {
        Err(e) => figures.unwatched = Some(e.to_string()),
        Ok(found) => {
            let longest = |kind| {
                let total = found.record().totals.iter().find(|t| t.kind == kind);
                total.map(|t| t.longest_ns)
            };
            figures.section_ns = longest(SectionKind::NotPreemptible);
            figures.pending_ns = longest(SectionKind::ReschedPending);
            let word = |kind| match kind {
                SectionKind::InterruptsOff => Some("interrupts"),
                SectionKind::PreemptionOff => Some("preemption"),
                // They lie where one of the two others lies.
                SectionKind::NotPreemptible | SectionKind::Unknown(_) => None,
                SectionKind::ReschedPending => Some("pending"),
            };
            let pairs = found.pairs(&watch.symbols).into_iter();
            figures.pairs = pairs
                .filter_map(|(kind, from, to)| Some(format!("{}: {from} to {to}", word(kind)?)))
                .collect();
        }
    }
    Ok(figures)
}

impl Evaluator for Guests<'_> {
    fn evaluate(&mut self, batch: &[Candidate], told: &mut dyn FnMut(Outcome)) -> End {
        let over = AtomicBool::new(false);
        let mut nth = 0;
        let (bench, emulator, base) = (self.bench, self.emulator, &self.base);
        let (words, kernel, watch) = (&self.request, &self.kernel, self.watch.as_ref());
        let late = || self.until.is_some_and(|until| Instant::now() >= until);
        let (shown, runs) = (&mut self.shown, &mut self.runs);
        let stopped = || over.load(Ordering::Relaxed);
        let work = |candidate: &Candidate, _: &mut dyn FnMut(())| {
            one(request(words, candidate), kernel)
                .and_then(|cell| base.with_job(&cell))
                .and_then(|prepared| figures(&prepared, &bench.means(emulator), watch))
        };
        let mut early: BTreeMap<usize, Result<Figures, LabError>> = BTreeMap::new();
        let mut is_cut_off = false;
        let broken = &mut self.broken;
        on_cores(batch, self.jobs, &stopped, &work, &mut |what| {
            if let Happened::Done(at, made) = what {
                *runs += 1;
                early.insert(at, made);
            }
            while let Some(made) = early.remove(&nth).filter(|_| !is_cut_off) {
                match made {
                    Ok(figures) => told(Outcome::Ran(figures)),
                    Err(LabError::Interrupted) => {
                        is_cut_off = true;
                        continue;
                    }
                    // Of a candidate it would say something that is not so, now and whenever the hunt goes on.
                    Err(e) if !e.is_of_kernel() && e.kind() == FailureKind::Cannot => {
                        is_cut_off = true;
                        broken.get_or_insert(e);
                        continue;
                    }
                    Err(e) => told(Outcome::Failed(first_line(&e.to_string()))),
                }
                nth += 1;
            }
            bench.hear();
            if is_cut_off || bench.stopped() || late() {
                over.store(true, Ordering::Relaxed);
            }
            shown(*runs);
        });
        if nth < batch.len() { End::Early } else { End::Done }
    }
}

/// A console may follow.
pub(super) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// The words of `lab run` that make this candidate's run.
pub(super) fn command(words: &Request, candidate: &Candidate) -> Vec<String> {
    let mut all: Vec<String> = ["tailbound", "lab", "run"].map(str::to_owned).to_vec();
    let mut add = |flag: &str, value: &str| all.extend([flag.to_owned(), value.to_owned()]);
    for kernel in &words.kernels {
        add("-k", kernel);
    }
    for append in words.append.iter().filter(|a| !a.is_empty()) {
        add("--append", append);
    }
    if let Some(arch) = &words.arch {
        add("--arch", arch);
    }
    add("-L", &candidate.load());
    add("-i", &interval(candidate));
    if let Some(loops) = words.campaign.loops {
        add("-l", &loops.to_string());
    }
    add("--seed", &candidate.seed.to_string());
    all.push("--raw".to_owned());
    all
}
