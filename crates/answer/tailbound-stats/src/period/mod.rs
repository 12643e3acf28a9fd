// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exceedances that come again every so often: from their times alone to one period, or to none.
//!
//! Units: ns. Each exceedance is followed by at most one link: to the first later one that is at least half a
//! period away. Where exceedances are independent, clustered or come in spells, the distance of that one decreases
//! from half a period on, so that it is a whole number of periods, within a tolerance, no more often than the share
//! of the period that the tolerance covers. More such links than that is a period: the binomial tail (Chernoff's
//! bound) with all candidates and tolerances that were tried counted as trials.
//! Links reach over few periods, so a period may drift, exceedances may be absent, and others may lie between.
//! A time that can only be a multiple of the measuring interval covers whole intervals of the period, never less.
//! Not here: whose exceedances these are ([`of_run`]), words (`tailbound-report`).
//! Source: Mardia 1989 (deinterleaving of pulse trains by differences); Hoeffding 1963 (the bound).

mod coherence;
mod links;
pub mod of_run;

use serde::Serialize;
use tailbound_core::number::{Real as _, Whole as _};

use links::{Links, Tolerance, between, kept};

/// Fewest times that a period shows.
pub const COUNT_MIN: usize = 6;
/// Share of runs without a period in which one may be claimed, before the trials are counted. The study in the tests
/// holds it to less than 1 %.
const LEVEL: f64 = 0.001;
/// A window in which candidates are looked for, in exceedances.
const WINDOW: usize = 192;
/// Windows of a long list.
const WINDOWS: usize = 4;
/// Candidates of a window that are tried on the whole list.
const BEST: usize = 8;
/// A candidate is the distance to one of so many next exceedances,
const NEXT: usize = 6;
/// divided by up to so many.
const PARTS: u32 = 6;
/// A part of a period is the fundamental where at least this share of its links is no multiple of the whole.
const BETWEEN_MIN: f64 = 0.35;
/// Shortest period that is looked for where times are not tied to an interval.
const PERIOD_MIN_NS: f64 = 10_000.0;

/// Exceedances that come every so often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExceedancePeriod {
    /// The period.
    pub period_ns: i64,
    /// Nine of ten distances are within this of it; at least the measuring interval.
    pub error_ns: i64,
    /// Exceedances that keep the period.
    pub count: usize,
    /// Of how many.
    pub of: usize,
    /// The first of them, within the period.
    pub phase_ns: i64,
    /// Their times.
    #[serde(skip)]
    pub times_ns: Vec<i64>,
}

/// Looks for the period that explains most of `times_ns`, which need not be sorted. They are multiples of
/// `interval_ns`, or free where it is 0. `families` is how many lists are looked at beside this one and itself.
#[must_use]
pub fn period(times_ns: &[i64], interval_ns: i64, families: usize) -> Option<ExceedancePeriod> {
    let mut sorted = times_ns.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let first_ns = *sorted.first()?;
    // Whole ns from the first one: exact in a double for a hundred days.
    let times: Vec<f64> = sorted.iter().map(|t| t.saturating_sub(first_ns).real()).collect();
    if times.len() < COUNT_MIN {
        return None;
    }
    let interval = interval_ns.max(0).real();
    let mut trials = 0usize;
    let mut best: Option<Candidate> = None;
    for window in windows(&times) {
        let (mut tried, number) = candidates(window, interval);
        trials = trials.saturating_add(number);
        if window.len() < times.len() {
            tried.sort_by(|a, b| b.gain.total_cmp(&a.gain));
            tried.truncate(BEST);
            tried =
                tried.iter().filter_map(|c| Candidate::of(&times, c.period, interval)).collect();
        }
        for candidate in tried {
            if best.as_ref().is_none_or(|b| candidate.gain > b.gain) {
                best = Some(candidate);
            }
        }
    }
    let mut best = best?;
    for _ in 0..3 {
        let refined = Candidate::of(&times, best.mean_period, interval);
        match refined {
            Some(refined) if refined.gain >= best.gain => best = refined,
            _ => break,
        }
    }
    let trials = trials.saturating_mul(Tolerance::MOST).saturating_mul(families.max(1)).real();
    let least = (trials / LEVEL).ln();
    if best.gain < least {
        return None;
    }
    let best = polished(&times, interval, best, least);
    answer(&times, first_ns, interval, &best)
}

/// The fundamental of a multiple, and its period as exact as the phases of all make it.
fn polished(times: &[f64], interval: f64, found: Candidate, least: f64) -> Candidate {
    let mut best = found;
    for part in [2.0, 2.0, 3.0] {
        let fundamental = Candidate::of(times, best.mean_period / part, interval)
            .filter(|c| c.gain >= least)
            .filter(|c| between(times, c.period, c.tolerance, part) > BETWEEN_MIN);
        best = fundamental.unwrap_or(best);
    }
    let reach = interval.max(best.period / 100.0).min(best.period / 4.0);
    if let Some(exact) = coherence::exact(times, best.period, reach)
        .and_then(|period| Candidate::of(times, period, interval))
        .filter(|exact| exact.gain * 2.0 > best.gain)
    {
        best = exact;
    }
    // Of two that explain as much, the one that is a whole number of intervals.
    let whole = (best.period / interval.max(1.0)).round() * interval;
    match Candidate::of(times, whole.max(1.0), interval) {
        Some(tied) if (whole - best.period).abs() * 1000.0 < whole && tied.gain >= best.gain => {
            tied
        }
        _ => best,
    }
}

/// Adjoining stretches of a long list, evenly spread over it; a short one is its own.
fn windows(times: &[f64]) -> Vec<&[f64]> {
    if times.len() <= WINDOW * 3 / 2 {
        return vec![times];
    }
    let step = (times.len() - WINDOW) / (WINDOWS - 1);
    (0..WINDOWS).filter_map(|i| times.get(i * step..i * step + WINDOW)).collect()
}

/// A period, and how much it explains.
struct Candidate {
    period: f64,
    tolerance: Tolerance,
    /// Of the links that keep it, by the periods that they span.
    mean_period: f64,
    /// Minus the logarithm of the chance that independent exceedances keep it as often.
    gain: f64,
}

impl Candidate {
    /// `period` at the tolerance at which it explains most.
    fn of(times: &[f64], period: f64, interval: f64) -> Option<Self> {
        let mut best: Option<Self> = None;
        let (all, tried) = Links::of(times, period, interval);
        for links in all.iter().filter(|l| l.count + 1 >= COUNT_MIN) {
            // The candidate came from one of them.
            let gain = chernoff(links.count - 1, tried, links.tolerance.share);
            if best.as_ref().is_none_or(|b| gain > b.gain) {
                let (tolerance, mean_period) = (links.tolerance, links.mean_period(period));
                best = Some(Self { period, tolerance, mean_period, gain });
            }
        }
        best
    }
}

/// All that distances within `window` suggest and that explain something, and how many were tried.
fn candidates(window: &[f64], interval: f64) -> (Vec<Candidate>, usize) {
    let least = PERIOD_MIN_NS.max(2.0 * interval);
    let length = window.last().zip(window.first()).map_or(0.0, |(last, first)| last - first);
    let (mut out, mut number) = (Vec::new(), 0);
    for (i, from) in window.iter().enumerate() {
        for to in window.iter().skip(i + 1).take(NEXT) {
            for part in 1..=PARTS {
                let period = (to - from) / f64::from(part);
                if period < least {
                    break;
                }
                if period * (COUNT_MIN - 1).real() <= length * 1.001 {
                    number += 1;
                    out.extend(Candidate::of(window, period, interval));
                }
            }
        }
    }
    (out, number)
}

/// Minus the logarithm of a bound on the chance of `count` or more of `n`, each with chance `share` at most.
fn chernoff(count: usize, n: usize, share: f64) -> f64 {
    let (k, n) = (count.real(), n.real());
    if n <= 0.0 || k <= n * share {
        return 0.0;
    }
    let part = k / n;
    let rest = if part < 1.0 { (1.0 - part) * ((1.0 - part) / (1.0 - share)).ln() } else { 0.0 };
    n * (part * (part / share).ln() + rest)
}

fn answer(
    times: &[f64],
    first_ns: i64,
    interval: f64,
    best: &Candidate,
) -> Option<ExceedancePeriod> {
    let (kept, off) = kept(times, best.period, best.tolerance);
    let error = off.get(off.len() * 9 / 10)?.max(interval).max(1.0);
    let at = |i: &usize| Some(times.get(*i)?.whole_i64().saturating_add(first_ns));
    let times_ns: Vec<i64> = kept.iter().filter_map(at).collect();
    let period_ns = best.period.round().whole_i64().max(1);
    Some(ExceedancePeriod {
        period_ns,
        error_ns: error.ceil().whole_i64(),
        count: times_ns.len(),
        of: times.len(),
        phase_ns: times_ns.first()?.rem_euclid(period_ns),
        times_ns,
    })
}

#[cfg(test)]
mod tests;
