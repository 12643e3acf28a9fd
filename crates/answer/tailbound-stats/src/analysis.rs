// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run with everything that is computed from it, once: what text, JSON, HTML and exports render.
//!
//! Units: ns. Each part is computed when it is first asked for and kept, so that one line for
//! a log costs no bound, and a page with its JSON costs one.
//! Not here: the verdict ([`mod@crate::judge`], made when a run is read), words and pictures (`tailbound-report`).

use std::cell::OnceCell;

use tailbound_core::{Context, Outcome, Run};

use crate::bound::{self, Statement};
use crate::change::{Phase, phases};
use crate::coincidence::{self, Coincidence};
use crate::loads::{LoadTotal, loads};
use crate::period;
use crate::period::of_run::ThreadPeriod;
use crate::precision::{self, Precision, TooFewStretches};
use crate::summary::Summary;

/// The figures of a thread, or of all threads of a context together, counted both ways.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Of the wake-ups.
    pub wakeup: Summary,
    /// Of all due activations, with how well each figure is known.
    pub due: Summary,
}

impl Figures {
    /// Activations that were missed.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.due.n.saturating_sub(self.wakeup.n)
    }
}

/// All threads of one context together.
#[derive(Clone, Debug, PartialEq)]
pub struct Total {
    /// Which.
    pub context: Context,
    /// How many they are.
    pub threads: usize,
    /// Their figures.
    pub figures: Figures,
}

/// What is known of a run.
#[derive(Debug)]
pub struct Analysis<'a> {
    run: &'a Run,
    threads: OnceCell<Vec<Figures>>,
    totals: OnceCell<Vec<Total>>,
    bound: OnceCell<Option<Statement>>,
    phases: OnceCell<Result<Vec<Phase>, TooFewStretches>>,
    loads: OnceCell<Vec<LoadTotal>>,
    periods: OnceCell<Vec<ThreadPeriod>>,
    coincidence: OnceCell<Option<Coincidence>>,
}

impl<'a> Analysis<'a> {
    /// Of `run`, whose verdict was made when it was read ([`crate::judge()`]).
    #[must_use]
    pub fn of(run: &'a Run) -> Self {
        Self {
            run,
            threads: OnceCell::new(),
            totals: OnceCell::new(),
            bound: OnceCell::new(),
            phases: OnceCell::new(),
            loads: OnceCell::new(),
            periods: OnceCell::new(),
            coincidence: OnceCell::new(),
        }
    }

    /// The run itself.
    #[must_use]
    pub fn run(&self) -> &'a Run {
        self.run
    }

    /// The outcome; without a verdict, undecided.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.run.verdict.as_ref().map_or(Outcome::Undecided, |v| v.outcome)
    }

    /// The figures of each thread, in the order of the run.
    #[must_use]
    pub fn threads(&self) -> &[Figures] {
        self.threads.get_or_init(|| {
            let one = |t: &tailbound_core::record::ThreadRecord| Figures {
                wakeup: Summary::of(&t.wakeup),
                due: Summary::of(&t.due()).with_precision(precision::of_run(
                    self.run,
                    t.context,
                    Some(t.thread),
                )),
            };
            self.run.threads.iter().map(one).collect()
        })
    }

    /// The figures of each context, in the order of the run.
    #[must_use]
    pub fn totals(&self) -> &[Total] {
        self.totals.get_or_init(|| {
            let one = |context: Context| {
                let (wakeup, due) = self.run.total(context);
                let known = precision::of_run(self.run, context, None);
                let figures = Figures {
                    wakeup: Summary::of(&wakeup),
                    due: Summary::of(&due).with_precision(known),
                };
                let threads = self.run.threads.iter().filter(|t| t.context == context).count();
                Total { context, threads, figures }
            };
            self.run.contexts().into_iter().map(one).collect()
        })
    }

    /// The figures that the verdict is about; `None` without threads.
    #[must_use]
    pub fn judged(&self) -> Option<&Figures> {
        let context = self.run.judged_context()?;
        self.totals().iter().find(|t| t.context == context).map(|t| &t.figures)
    }

    /// How well those are known; `None` without threads.
    #[must_use]
    pub fn precision(&self) -> Option<&Precision> {
        self.judged().and_then(|f| f.due.precision.as_ref())
    }

    /// How late it can be, as every report has it: 95 %, ten times the run. `None` without threads.
    #[must_use]
    pub fn bound(&self) -> Option<&Statement> {
        let of = || (!self.run.threads.is_empty()).then(|| bound::of_run(self.run));
        self.bound.get_or_init(of).as_ref()
    }

    /// Where the machine began to behave otherwise.
    ///
    /// # Errors
    /// Why that is not known.
    pub fn phases(&self) -> Result<&[Phase], TooFewStretches> {
        let found = self.phases.get_or_init(|| phases(&self.run.blocks));
        found.as_deref().map_err(|why| *why)
    }

    /// What the loads achieved, in the order of the plan.
    #[must_use]
    pub fn loads(&self) -> &[LoadTotal] {
        self.loads.get_or_init(|| loads(self.run))
    }

    /// The periods in which exceedances come, thread by thread.
    #[must_use]
    pub fn periods(&self) -> &[ThreadPeriod] {
        self.periods.get_or_init(|| period::of_run::of_run(self.run))
    }

    /// What comes with the latest seconds.
    #[must_use]
    pub fn coincidence(&self) -> Option<&Coincidence> {
        self.coincidence.get_or_init(|| coincidence::of_run(self.run)).as_ref()
    }
}
