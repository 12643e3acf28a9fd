// SPDX-License-Identifier: MIT OR Apache-2.0
//! The theoretical bound on the scheduling latency: from variables and interrupts to the least fixed point.
//!
//! Units: ns.
//!
//! ```text
//! L = max( max(D_ST, D_POID) + D_PAIE , D_ST + D_IDLE ) + D_PSD + step + I(L)        the theorem, and idle exit
//! sample = Timer + L + Return + Reading, with the interrupts of that longer window    what a measuring thread sees
//! D_IDLE = max(IdleIn + IdleOut, IdleThrough)
//! ```
//! **Idle exit** is no part of the theorem. A wake-up finds the CPU either with the idle thread or with another one, so the
//! greater of the two ways is taken and not their sum. The idle thread has no POID and no PAIE of its own here: all that
//! it executes between scheduler, halt and scheduler is `D_IDLE`, whatever is disabled. A wake-up while the scheduler goes over to
//! the idle thread waits for `D_ST` first. One that comes before the halt waits for the way in (`IdleIn`) at most, then for
//! the way out; where nothing halts in between, for the whole (`IdleThrough`).
//! **From where**: from the time at which the interrupt could have been taken, had nothing been disabled. What was disabled
//! then is in `D_POID` or `D_ST`; one instruction more (`step`) goes by before the interrupt is taken.
//! **Never optimistic**: I(L) is taken of the window L as it is. A window less the interference that it has itself (as the
//! proof of concept `rtsl` evaluates) is shorter than the time in which interrupts come, and is not used.
//! Non-maskable interrupts are vectors like others: theirs is `I_NMI`.
//!
//! Not here: where the evidence is from. Source: ECRTS 2020, theorem 8 (see `tailbound_core::theory`).

mod curve;
mod file;
mod models;
mod words;

pub use curve::{at, greatest, steps};
pub use file::{OtherSystem, StatedBound, StatedBoundError};
pub use models::{Model, Refusal};
pub use words::remedies;

use serde::Serialize;
use tailbound_core::order;
use tailbound_core::theory::{Evidence, Holds, TheoryRecord, Variable};

/// Curves are taken for windows of at least so long.
const CURVES_NS: i64 = 1_000_000;
/// And so many times the bound without interrupts.
const CURVES_TIMES: i64 = 8;

/// A part of the bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Term {
    /// The variable, or the interrupts' vector.
    pub name: String,
    /// How much.
    pub ns: i64,
    /// The bound if this were nothing: what can be had by work on it, at most.
    pub without_ns: Option<i64>,
}

/// The bound by one model of interference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ByModel {
    /// Which.
    pub model: Model,
    /// The scheduling latency.
    pub latency_ns: Option<i64>,
    /// What a thread measures that sleeps until a time: with timer, return to user mode and reading of the clock.
    pub sample_ns: Option<i64>,
    /// Why there is none.
    pub refused: Option<String>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TheoreticalBound {
    /// Why there is no bound at all.
    pub refused: Vec<String>,
    /// By each model.
    pub models: Vec<ByModel>,
    /// Parts of the sample's bound by [`Model::Window`], the greatest first.
    pub terms: Vec<Term>,
    /// What is taken for granted.
    pub assumptions: Vec<String>,
}

/// Something that was observed is later than what is claimed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a {what} of {observed_ns} ns was observed, above the bound of {bound_ns} ns: the model does not describe this kernel, and no bound is given"
)]
pub struct BrokenBound {
    /// What was observed.
    pub what: &'static str,
    /// How late.
    pub observed_ns: i64,
    /// What is claimed of it.
    pub bound_ns: i64,
}

impl TheoreticalBound {
    /// Of one model.
    #[must_use]
    pub fn of(&self, model: Model) -> Option<&ByModel> {
        self.models.iter().find(|m| m.model == model)
    }

    /// Nothing that was observed is later than what is claimed: the latest by the exact model.
    ///
    /// # Errors
    /// What is.
    pub fn holds(&self, record: &TheoryRecord) -> Result<(), BrokenBound> {
        let Some(window) = self.of(Model::Window) else { return Ok(()) };
        let seen = &record.observed;
        for (what, bound_ns, observed_ns) in [
            ("scheduling latency", window.latency_ns, seen.scheduling_ns),
            ("sample", window.sample_ns, seen.sample_ns),
        ] {
            if let Some(bound_ns) = bound_ns.filter(|bound_ns| *bound_ns < observed_ns) {
                return Err(BrokenBound { what, observed_ns, bound_ns });
            }
        }
        Ok(())
    }
}

/// From what was seen to what is kept of it.
#[must_use]
pub fn condense(evidence: &Evidence) -> TheoryRecord {
    let mut record = TheoryRecord {
        variables: evidence.variables.clone(),
        span_ns: evidence.span_ns,
        step_ns: evidence.step_ns,
        preconditions: evidence.preconditions.clone(),
        observed: evidence.observed,
        ..TheoryRecord::default()
    };
    let base = Parts::of(&record).sample();
    record.curves_to_ns = base.saturating_mul(CURVES_TIMES).max(CURVES_NS).min(record.span_ns);
    record.interrupts =
        evidence.vectors.iter().map(|v| curve::interrupt(v, record.curves_to_ns)).collect();
    record
}

/// The variables' part of the bound.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    values: [i64; Variable::ALL.len()],
    step: i64,
}

impl Parts {
    fn of(record: &TheoryRecord) -> Self {
        let mut parts = Self { step: record.step_ns.max(0), ..Self::default() };
        for v in &record.variables {
            if let Some(value) = parts.values.get_mut(v.variable as usize) {
                *value = (*value).max(v.ns);
            }
        }
        parts
    }

    fn get(&self, variable: Variable) -> i64 {
        self.values.get(variable as usize).copied().unwrap_or(0)
    }

    fn without(mut self, variables: &[Variable]) -> Self {
        for variable in variables {
            self.values.iter_mut().skip(*variable as usize).take(1).for_each(|v| *v = 0);
        }
        self
    }

    /// The idle thread's part, and the variables that it is made of.
    fn idle(&self) -> (i64, &'static [Variable]) {
        let halted = self.get(Variable::IdleIn).saturating_add(self.get(Variable::IdleOut));
        if halted >= self.get(Variable::IdleThrough) {
            (halted, &[Variable::IdleIn, Variable::IdleOut])
        } else {
            (self.get(Variable::IdleThrough), &[Variable::IdleThrough])
        }
    }

    /// From the time at which the interrupt could have come to the scheduler, and by which variables.
    fn before(&self) -> (i64, Vec<Variable>) {
        let (st, poid) = (self.get(Variable::St), self.get(Variable::Poid));
        let first = if st > poid { Variable::St } else { Variable::Poid };
        let busy = st.max(poid).saturating_add(self.get(Variable::Paie));
        let (idle, of) = self.idle();
        let idle_way = st.saturating_add(idle);
        if idle > 0 && idle_way > busy {
            (idle_way, [&[Variable::St], of].concat())
        } else {
            (busy, vec![first, Variable::Paie])
        }
    }

    fn latency(&self) -> i64 {
        self.before().0.saturating_add(self.get(Variable::Psd)).saturating_add(self.step)
    }

    fn sample(&self) -> i64 {
        let outside = [Variable::Timer, Variable::Return, Variable::Reading];
        outside.iter().fold(self.latency(), |sum, v| sum.saturating_add(self.get(*v)))
    }
}

/// What must be there to compute anything, and must be possible.
fn refusals(record: &TheoryRecord) -> Vec<String> {
    let mut all: Vec<String> = record
        .preconditions
        .iter()
        .filter(|p| p.holds == Holds::No)
        .map(|p| format!("{}: {}", p.name, p.why))
        .collect();
    for needed in [Variable::Poid, Variable::Psd, Variable::St] {
        if !record.variables.iter().any(|v| v.variable == needed && v.n > 0) {
            all.push(format!("{} was never observed: watch for longer", words::name(needed)));
        }
    }
    let curve = |i: &tailbound_core::theory::InterruptRecord| {
        i.curve.windows(2).all(|pair| match pair {
            [a, b] => a.within_ns < b.within_ns && a.n <= b.n && a.sum_ns <= b.sum_ns,
            _ => true,
        }) && i.curve.iter().all(|s| s.within_ns >= 0 && s.sum_ns >= 0)
            && i.longest_ns >= 0
            && i.nested_ns >= 0
            && i.apart_ns.is_none_or(|apart| apart >= 0)
            && (i.n == 0
                || i.curve.first().is_some_and(|s| s.within_ns == 0 && s.sum_ns >= i.longest_ns))
    };
    if record.variables.iter().any(|v| v.ns < 0)
        || record.span_ns < 0
        || record.step_ns < 0
        || record.curves_to_ns > record.span_ns
        || !record.interrupts.iter().all(curve)
    {
        all.push("the evidence contradicts itself (a negative time, or a curve that falls): it was not written by this program".to_owned());
    }
    all
}

/// The bound by all models.
#[must_use]
pub fn answer(record: &TheoryRecord) -> TheoreticalBound {
    let refused = refusals(record);
    let assumptions = words::assumptions(record);
    if !refused.is_empty() {
        return TheoreticalBound { refused, models: Vec::new(), terms: Vec::new(), assumptions };
    }
    let parts = Parts::of(record);
    let models = Model::ALL.map(|model| {
        let latency = models::solve(model, parts.latency(), record);
        let sample = models::solve(model, parts.sample(), record);
        ByModel {
            model,
            latency_ns: latency.as_ref().ok().copied(),
            sample_ns: sample.as_ref().ok().copied(),
            refused: latency.err().or_else(|| sample.err()).map(|r| r.to_string()),
        }
    });
    TheoreticalBound { refused, models: models.to_vec(), terms: terms(record, parts), assumptions }
}

fn terms(record: &TheoryRecord, parts: Parts) -> Vec<Term> {
    let Ok(sample) = models::solve(Model::Window, parts.sample(), record) else {
        return Vec::new();
    };
    let solved = |parts: Parts, record: &TheoryRecord| {
        models::solve(Model::Window, parts.sample(), record).ok()
    };
    let mut variables = parts.before().1;
    variables.extend([Variable::Psd, Variable::Timer, Variable::Return, Variable::Reading]);
    let mut all: Vec<Term> = variables
        .into_iter()
        .map(|v| Term {
            name: words::name(v).to_owned(),
            ns: parts.get(v),
            without_ns: solved(parts.without(&[v]), record),
        })
        .collect();
    for (nth, interrupt) in record.interrupts.iter().enumerate() {
        let mut fewer = record.clone();
        fewer.interrupts.remove(nth);
        all.push(Term {
            name: format!("interrupt {}", interrupt.vector),
            ns: at(&interrupt.curve, sample).sum_ns,
            without_ns: solved(parts, &fewer),
        });
    }
    all.retain(|t| t.ns > 0);
    order::by_key(&mut all, |t| std::cmp::Reverse(t.ns));
    all
}
