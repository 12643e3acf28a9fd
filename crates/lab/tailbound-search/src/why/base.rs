// SPDX-License-Identifier: MIT OR Apache-2.0
//! The run that is asked about, made again and watched; and how any run of its beginning is made.
//!
//! Units: ns of the guest's virtual time, by QEMU's clock.

use std::fs::File;
use std::path::{Path, PathBuf};

use tailbound_core::Run;
use tailbound_lab::bench::{self, Bench};
use tailbound_lab::progress::{Moved, Step, TaskListener};
use tailbound_lab::vary::{self, Rewound};
use tailbound_lab::watching::{latencies, start};
use tailbound_lab::{
    Accelerator, Arch, LabError, Means, Prepared, Progress, Target, paths, repeat,
};
use tailbound_paths::look::{Samples, Sparse};
use tailbound_paths::plan::Plan;
use tailbound_paths::varied::{self, Sample, Variation, Varies};
use tailbound_trace::symbols::Symbols;

use crate::error::SearchError;

/// The log of a varied run begins so much before the due time: the wake-up is in it.
const LOG_BEFORE_NS: u64 = 1000;
/// The run is kept so long before the sample, where going there from its beginning takes longer than to load that state.
const REWOUND_NS: u64 = 50_000_000;
const REWOUND_LATER_NS: u64 = 100_000;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhyQuestion {
    /// The number of the activation; the latest where none is named.
    pub activation: Option<usize>,
    /// Variations of each instant in which the processor stands still.
    pub variations: u8,
    /// Those with other random numbers; as many as usual where nobody says.
    pub seeds: Option<u8>,
    /// A varied sample counts as late from this percentage of the latency on.
    pub late_percent: u8,
    /// The target description of the run.
    pub target: Option<PathBuf>,
}

/// See the module.
#[derive(Debug)]
pub struct Base<'a> {
    pub(super) bench: &'a Bench<'a>,
    emulator: tailbound_lab::Emulator,
    prepared: Prepared,
    pub(super) plan: Plan,
    pub(super) symbols: Symbols,
    /// The text that they are from.
    pub(super) kallsyms: String,
    pub(super) activation: usize,
    pub(super) sample: Sample,
    /// The first judged activation was due.
    pub(super) start_ns: u64,
    /// The first instant behind the halt in which the CPU was when the sample was due.
    pub(super) halted_ns: Option<u64>,
    /// From one due time to the next, on average.
    pub(super) interval_ns: u64,
    /// The state of the run at an instant before the sample.
    rewound: Option<(u64, Rewound)>,
}

/// The run of a file, and its bytes as they were before anything was watched.
#[derive(Debug)]
pub struct GivenRun {
    run: Run,
    bytes: Vec<u8>,
}

impl GivenRun {
    /// Of the file `path`, which holds it.
    ///
    /// # Errors
    /// It cannot be varied, or its activations have no numbers.
    pub fn of(path: &Path, run: Run, bytes: Vec<u8>) -> Result<Self, SearchError> {
        let record = run.header.lab.as_deref().ok_or(LabError::Bug)?;
        let arch = record.arch.parse().map_err(SearchError::Arch)?;
        if arch != Arch::X86_64 {
            return Err(SearchError::OtherArch { path: path.to_owned(), arch });
        }
        paths::possible(arch, Accelerator::kvm_if(record.accelerator == "kvm"), record.smp)?;
        paths::one_cpu("lab why", record.smp)?;
        if run.raw.is_empty() {
            return Err(SearchError::NoRaw { path: path.to_owned() });
        }
        Ok(Self { run, bytes })
    }
}

impl<'a> Base<'a> {
    /// Makes the run again while it is watched.
    ///
    /// # Errors
    /// It cannot be made again, or is another run.
    pub fn make(
        bench: &'a Bench<'a>,
        question: &WhyQuestion,
        given: GivenRun,
        shown: &dyn TaskListener,
    ) -> Result<Self, SearchError> {
        let record = given.run.header.lab.as_deref().ok_or(LabError::Bug)?;
        let latencies_ns = latencies(&given.run)?;
        let activation = chosen(question.activation, &latencies_ns)?;
        let emulator = bench.ready_again(record)?;
        paths::plugin(&emulator)?;
        let target = question.target.as_deref().map(Target::read).transpose()?;
        let (guest, target) = (bench.guest(), target.as_ref());
        let cell = repeat::cell(record, guest, target, &mut |name, arch| bench.obtain(name, arch))?;
        shown.moved(0, Moved::Step(Step::Prepare));
        let prepared = cell.prepare(&emulator)?;
        let (kallsyms, plan, made, mut log) = {
            let means = bench.means(&emulator);
            let progress = &mut |p: Progress| {
                shown.moved(0, Moved::Guest(p.phase));
                bench.hear();
            };
            shown.moved(0, Moved::Step(Step::Symbols));
            let kallsyms = paths::symbols(&cell, &means, progress)?;
            shown.moved(0, Moved::Step(Step::Sections));
            let plan = Plan::of(&kallsyms, paths::guest(cell.kernel.arch))?;
            let (made, log) = paths::prepared_watched(&prepared, &means, &plan, progress)?;
            (kallsyms, plan, made, log)
        };
        shown.moved(0, Moved::Step(Step::ReadSections));
        let mut now = made.run;
        bench::judge_here(&mut now);
        if bench::bytes(&now)? != given.bytes {
            let new = now.header.lab.as_deref();
            let differing = new.map_or_else(Vec::new, |new| repeat::differences(record, new));
            return Err(SearchError::NotRepeated { differing });
        }
        let symbols = Symbols::parse(&kallsyms);
        let samples = Samples {
            start_ns: start(&now)?,
            latencies_ns: &latencies_ns,
            step_ns: 1 << cell.shift,
            guest: plan.guest(),
        };
        let found =
            Sparse::of(&mut log, plan.marks(), &symbols, samples).map_err(SearchError::look)?;
        let (first, wait) = (found.wait(0), found.wait(activation));
        let (Some(first), Some(wait)) = (first, wait) else { return Err(LabError::Bug.into()) };
        let last = found.wait(latencies_ns.len().saturating_sub(1)).unwrap_or(wait);
        let gaps = (latencies_ns.len() as u64).saturating_sub(1).max(1);
        let sample = Sample::of(&mut log, plan.marks(), wait).map_err(SearchError::look)?;
        let halted_ns = varied::halted_before(&mut log, wait.due_ns).map_err(SearchError::look)?;
        Ok(Self {
            bench,
            emulator,
            prepared,
            plan,
            symbols,
            kallsyms,
            activation,
            sample: sample.ok_or(LabError::Bug)?,
            start_ns: first.due_ns,
            // Behind the instruction that halts.
            halted_ns: halted_ns.map(|at| at + (1 << cell.shift) + 1),
            interval_ns: last.due_ns.saturating_sub(first.due_ns) / gaps,
            rewound: None,
        })
    }

    /// The name of the kernel.
    #[must_use]
    pub fn kernel(&self) -> &str {
        &self.prepared.record.kernel.name
    }

    pub(super) fn means(&self) -> Means<'_> {
        self.bench.means(&self.emulator)
    }

    pub(super) fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    /// What is to happen at `at_ns`; what the sample needs is recorded.
    pub(super) fn variation<'v>(&self, at_ns: u64, varies: Varies<'v>) -> Variation<'v> {
        Variation {
            at_ns,
            varies,
            sample: self.sample,
            log_from_ns: self.sample.due_ns.saturating_sub(LOG_BEFORE_NS),
            first_thread: 0,
        }
    }

    /// The log of the run varied so.
    pub(super) fn varied(&self, plan: &Plan, variation: &Variation<'_>) -> Result<File, LabError> {
        // What is asked for from before its instant on begins at the beginning.
        let earliest = variation.at_ns.min(variation.log_from_ns);
        let rewound = self.rewound.as_ref().filter(|(at_ns, _)| *at_ns < earliest);
        let rewound = rewound.map(|(_, rewound)| rewound);
        vary::prepared(&self.prepared, &self.means(), rewound, plan, variation, &mut |_| {
            self.bench.hear();
        })
    }

    /// Keeps the run's state some time before the sample, if that spares anything.
    pub(super) fn rewind(&mut self) -> Result<(), LabError> {
        let at_ns = self.sample.due_ns.saturating_sub(REWOUND_NS);
        if at_ns > self.start_ns {
            let variation = self.variation(at_ns, Varies::Stop);
            let made =
                Rewound::make(&self.prepared, &self.means(), &self.plan, &variation, &mut |_| {
                    self.bench.hear();
                })?;
            // It is stopped a block of instructions later.
            self.rewound = made.map(|rewound| (at_ns + REWOUND_LATER_NS, rewound));
        }
        Ok(())
    }

    /// From the beginning each time.
    pub(super) fn forget_rewound(&mut self) -> bool {
        self.rewound.take().is_some()
    }

    /// How long before the sample's due time the run is kept.
    pub(super) fn kept_before_ns(&self) -> Option<i64> {
        let (at_ns, _) = self.rewound.as_ref()?;
        Some(self.sample.due_ns.cast_signed() - at_ns.cast_signed())
    }

    /// An instant since the first activation was due.
    pub(super) fn since_start(&self, at_ns: u64) -> i64 {
        at_ns.cast_signed() - self.start_ns.cast_signed()
    }

    /// The same by QEMU's clock.
    ///
    /// # Errors
    /// It lies behind the sample.
    pub fn instant(&self, since_start_ns: i64) -> Result<u64, SearchError> {
        let at = self.start_ns.checked_add_signed(since_start_ns);
        at.filter(|at| *at <= self.sample.user_ns)
            .ok_or(SearchError::BehindSample { since_start_ns })
    }
}

/// The activation that was asked for, or the latest: the first of equal ones.
fn chosen(asked: Option<usize>, latencies_ns: &[i64]) -> Result<usize, SearchError> {
    let latest = (0..latencies_ns.len())
        .max_by_key(|at| (latencies_ns.get(*at).copied(), std::cmp::Reverse(*at)));
    match asked {
        Some(nr) if nr >= latencies_ns.len() => {
            Err(SearchError::NoActivation { nr, of: latencies_ns.len() })
        }
        Some(n) => Ok(n),
        None => latest.ok_or(SearchError::NoSamples),
    }
}
