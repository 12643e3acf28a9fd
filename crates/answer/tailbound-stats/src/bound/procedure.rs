// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the maxima of a run to a statement: what holds anyway, then the bound with all it comes
//! from, or every reason against one.
//!
//! Context: COLD, some milliseconds; 0.1 s for twelve hours of seconds. Units: ns; seconds.
//! Blocks are a second, or longer so that a long run has about 3600: the power of the tests
//! then does not grow with the run until they reject every real machine.
//! Source: docs/results/bound.md.

use tailbound_core::Run;
use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::units::{format_ns, format_span, grouped};

use super::extrapolate::{Fitted, Limits, Stop, descending, extrapolate};
use super::gate::{Gate, regroup};
use super::input::BlockMaxima;
use super::modes::{tail_from, tail_modes};
use super::statement::{
    Bound, Extrapolation, Influence, METHOD, Reason, ReturnLevel, Settings, Statement,
};
use super::{free, refuse};
use crate::rates;

/// Warm-up that is left out, at least; a run that discarded this much itself keeps all.
const WARM_UP_S: u64 = 10;

/// About how many blocks a long run has.
const BLOCKS: u64 = 3600;

/// A run below this is too short for a verdict.
const VERDICT_S: u64 = 12 * 3600;

/// Points of the curve, and of the observations, in the answer.
const CURVE_POINTS: u32 = 9;
const OBSERVED_POINTS: usize = 60;

/// What a run shows about how late it can be.
#[must_use]
pub fn bound(maxima: &BlockMaxima, settings: &Settings) -> Statement {
    let settings =
        Settings { deadline_ns: settings.deadline_ns.or(maxima.deadline_ns), ..settings.clone() };
    if !maxima.unfit.is_empty() {
        return of_unfit(maxima, settings);
    }
    let series = Series::of(maxima);
    let free = free::lines(maxima, &settings);
    let extrapolation = extrapolation(maxima, &settings, &series);
    // Without a curve that leaves them out, the first seconds are seconds like all others.
    let observed = match extrapolation {
        Extrapolation::Bound(_) => observed(&series),
        Extrapolation::Refused { .. } => observed(&Series::whole(maxima)),
    };
    Statement {
        method: METHOD,
        context: maxima.context,
        seconds: maxima.seconds,
        observed_max_ns: maxima.observed_max_ns(),
        free_missing: free.is_empty().then(|| free_missing(maxima)),
        free,
        clustering: free::clustering(maxima),
        extrapolation,
        discarded: series.discarded,
        assumptions: assumptions(maxima),
        observed,
        settings,
    }
}

/// Of figures that do not describe the machine nothing is said but why.
fn of_unfit(maxima: &BlockMaxima, settings: Settings) -> Statement {
    let reasons = refuse::known(maxima, &settings);
    Statement {
        method: METHOD,
        context: maxima.context,
        seconds: maxima.seconds,
        observed_max_ns: maxima.observed_max_ns(),
        free: Vec::new(),
        free_missing: Some("The run is unfit, so that no rate is given.".to_owned()),
        clustering: None,
        extrapolation: Extrapolation::Refused { reasons, modes: Vec::new(), gate: None },
        discarded: Vec::new(),
        assumptions: Vec::new(),
        observed: Vec::new(),
        settings,
    }
}

/// The blocks that are extrapolated from.
struct Series {
    values: Vec<f64>,
    block_s: u64,
    discarded: Vec<String>,
}

impl Series {
    fn of(maxima: &BlockMaxima) -> Self {
        let mut discarded = Vec::new();
        let mut seconds = maxima.maxima_ns.as_slice();
        let own_s = u64::try_from(maxima.warm_up_ns / 1_000_000_000).unwrap_or(0);
        if maxima.warm_up_ns > 0 {
            let own = format_span(maxima.warm_up_ns);
            discarded.push(format!("The run itself discarded a warm-up of {own}."));
        }
        if own_s < WARM_UP_S && !seconds.is_empty() {
            let more = usize::try_from(WARM_UP_S).unwrap_or(10).min(seconds.len());
            seconds = seconds.get(more..).unwrap_or_default();
            discarded.push(format!(
                "The first {more} s of the measurement are not extrapolated from, as further \
                 warm-up."
            ));
        }
        let block_s = ((seconds.len() as u64 + BLOCKS / 2) / BLOCKS).max(1);
        let values: Vec<f64> = seconds.iter().map(|v| v.real()).collect();
        let values = regroup(&values, usize::try_from(block_s).unwrap_or(1));
        Self { values, block_s, discarded }
    }

    /// Every second, the last ones too where they fill no block.
    fn whole(maxima: &BlockMaxima) -> Self {
        let seconds = maxima.maxima_ns.as_slice();
        let block_s = ((seconds.len() as u64 + BLOCKS / 2) / BLOCKS).max(1);
        let size = usize::try_from(block_s).unwrap_or(1);
        let greatest = |block: &[i64]| block.iter().max().map(|v| v.real());
        let values = seconds.chunks(size).filter_map(greatest).collect();
        Self { values, block_s, discarded: Vec::new() }
    }

    fn length_s(&self) -> f64 {
        self.values.len().real() * self.block_s.real()
    }
}

fn extrapolation(maxima: &BlockMaxima, settings: &Settings, series: &Series) -> Extrapolation {
    let mut reasons = refuse::known(maxima, settings);
    let mut modes_from = tail_from(&maxima.due);
    let mut gate = None;
    if !maxima.maxima_ns.is_empty() {
        let q = 1.0 / (settings.extrapolate.max(1.0) * series.values.len().max(1).real());
        match extrapolate(&series.values, q, maxima.step_ns.real(), settings.seed) {
            Ok(found) if reasons.is_empty() => {
                return Extrapolation::Bound(Box::new(answer(maxima, settings, series, q, &found)));
            }
            Ok(found) => gate = Some(found.gate),
            // A run that is too short has too few blocks: once is enough.
            Err(Stop::Few) if maxima.seconds < refuse::SECONDS_MIN => {}
            Err(stop) => {
                gate = gate_of(&stop);
                let from = match &stop {
                    Stop::Bursts(_, t, _) | Stop::NoMean(_, t, _) => Some(t.value),
                    Stop::Apart(_, few) => Some(few.below),
                    _ => None,
                };
                modes_from = from.map_or(modes_from, |ns| modes_from.min(ns.whole_i64()));
                reasons.push(refuse::found(&stop));
            }
        }
    }
    Extrapolation::Refused { reasons, modes: tail_modes(&maxima.due, modes_from), gate }
}

fn gate_of(stop: &Stop) -> Option<Gate> {
    match stop {
        Stop::Gate(g)
        | Stop::NoThreshold(g)
        | Stop::Apart(g, _)
        | Stop::Bursts(g, ..)
        | Stop::NoMean(g, ..)
        | Stop::Coarse { gate: g, .. } => Some(*g),
        Stop::Few | Stop::Inside => None,
    }
}

fn answer(
    maxima: &BlockMaxima,
    settings: &Settings,
    series: &Series,
    q: f64,
    found: &Fitted,
) -> Bound {
    let bound_ns = found.limits.bound();
    let period_s = series.block_s.real() / q;
    let influence = found.without_largest(q).map(|without| {
        let drop = 1.0 - without.bound() / bound_ns;
        Influence { bound_ns: without.bound(), drop, one_event: drop > 0.5 }
    });
    let block_s = series.block_s * found.factor as u64;
    let whose = if maxima.virtual_time { "virtual time" } else { "this load and configuration" };
    let sentence = format!(
        "Under {whose}, and if the future is like this run, later than {} comes about once per {} \
         or more rarely, at 95 % confidence ({} times the length of the run; the latest seen was \
         {}).",
        format_ns(bound_ns),
        rates::at_least(period_s),
        settings.extrapolate,
        maxima.observed_max_ns().map_or_else(|| "unknown".into(), |m| format_ns(m.real()))
    );
    Bound {
        bound_ns,
        point_ns: found.limits.point,
        limits: found.limits,
        period_s,
        probability_per_s: 1.0 / period_s,
        extrapolation: settings.extrapolate,
        block_s,
        blocks: found.blocks,
        threshold_ns: found.threshold.value,
        exceedances: found.threshold.exceedances,
        shape: found.fit.shape,
        shape_upper: found.shape_upper,
        shape_words: shape_words(found.fit.shape),
        scale_ns: found.fit.scale,
        variation: found.variation,
        gate: found.gate,
        fit_p: found.threshold.fit_p,
        spread: found.spread,
        curve: curve(series, found, period_s),
        sentence,
        warnings: warnings(maxima, settings, &found.limits, influence.as_ref()),
        influence,
    }
}

fn shape_words(shape: f64) -> &'static str {
    match shape {
        s if s > 0.05 => "above 0: a heavy tail, without an end",
        s if s < -0.05 => "below 0: a tail that looks as if it had an end",
        _ => "about 0: an exponential tail",
    }
}

fn warnings(
    maxima: &BlockMaxima,
    settings: &Settings,
    limits: &Limits,
    influence: Option<&Influence>,
) -> Vec<String> {
    let mut out = Vec::new();
    if maxima.seconds < VERDICT_S {
        let length = i64::try_from(maxima.seconds).unwrap_or(0).saturating_mul(1_000_000_000);
        out.push(format!(
            "Preliminary: the run is {} long; a verdict takes 12 h, in which a machine does most of \
             what it does.",
            format_span(length)
        ));
    }
    if settings.extrapolate > 10.0 {
        out.push(format!(
            "{} times the length of the run is far: the study of the method is of 10 times.",
            settings.extrapolate
        ));
    }
    if let Some(i) = influence.filter(|i| i.one_event) {
        out.push(format!(
            "The bound rests on one event: without the latest wake-up it would be {}.",
            format_ns(i.bound_ns)
        ));
    }
    if let Some(higher) = limits.higher.filter(|h| *h > 1.5 * limits.of_three()) {
        out.push(format!(
            "The fewest and greatest values alone give {}, against {} from all of the tail: it may \
             be of two kinds, or they are too few.",
            format_ns(higher),
            format_ns(limits.of_three())
        ));
    }
    out
}

/// Levels from inside the data to the bound's own time.
fn curve(series: &Series, found: &Fitted, period_s: f64) -> Vec<ReturnLevel> {
    let exceedances = found.threshold.exceedances.max(1).real();
    let from = series.length_s() / exceedances * 1.1;
    (0..CURVE_POINTS)
        .filter_map(|i| {
            let share = f64::from(i) / f64::from(CURVE_POINTS - 1);
            let period = from * (period_s / from).powf(share);
            let at = found.at(series.block_s.real() / period)?;
            Some(ReturnLevel { period_s: period, level_ns: at.point, upper_ns: at.bound() })
        })
        .collect()
}

/// The greatest blocks, and the time in which one as great was seen once.
fn observed(series: &Series) -> Vec<(f64, i64)> {
    let values = descending(&series.values);
    let length = series.length_s();
    let mut out: Vec<(f64, i64)> = Vec::new();
    let mut next = 1.0f64;
    for (rank, v) in (1u32..).zip(&values) {
        // All of the first ones, then ever fewer.
        if f64::from(rank) < next {
            continue;
        }
        if out.len() >= OBSERVED_POINTS {
            break;
        }
        next = if rank < 20 { f64::from(rank + 1) } else { f64::from(rank) * 1.15 };
        out.push((length / f64::from(rank), v.whole_i64()));
    }
    out
}

fn free_missing(maxima: &BlockMaxima) -> String {
    let n = grouped(maxima.due.n);
    match (&maxima.source, maxima.observed_max_ns()) {
        (Some(_), Some(max)) if maxima.due.n > 0 => format!(
            "Of {n} activations the latest was {}. How rare later ones are is unknown: the \
             source keeps no order, late activations come in groups, and a rate needs to know which \
             of them do not depend on each other.",
            format_ns(max.real())
        ),
        _ => "There is no whole second to count.".to_owned(),
    }
}

fn assumptions(maxima: &BlockMaxima) -> Vec<String> {
    let mut out = vec![rates::ASSUMPTION.to_owned()];
    if maxima.virtual_time {
        out.push(
            "The time of this run is virtual: path length, not caches, buses or firmware. What is \
             said here holds for the model, not for a machine."
                .to_owned(),
        );
    }
    out
}

/// The statement of a run as every report has it: 95 %, ten times the run.
#[must_use]
pub fn of_run(run: &Run) -> Statement {
    bound(&BlockMaxima::of(run), &Settings::default())
}

/// All reasons in one line, for a table.
#[must_use]
pub fn in_short(reasons: &[Reason]) -> String {
    reasons.first().map_or_else(String::new, |r| {
        let more = reasons.len() - 1;
        let others = if more > 0 { format!(" ({more} more)") } else { String::new() };
        format!("{}{others}", r.sentence)
    })
}
