// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of a thread's waits is the one for its next cycle.
//!
//! Units: ns. Every place of waiting is a candidate, under a coarse name (call and
//! descriptor, lock or clock) and finer ones. What paces a thread is told by two things that waits
//! within a cycle do not have together: its wake-ups are the most regular, for all others come later by
//! what the cycle did before, which varies; and the thread spends its idle time there. The score is the
//! share of the time slept there over the irregularity of its wake-ups: the first decides where nothing is
//! regular (sporadic threads), the second where a long service call within the cycle outlasts the idle
//! time. A call that puts something out paces a thread only where nothing else does nearly as well: a loop of a timer whose
//! output blocks has its rhythm from the timer. How far the next best is behind says how sure it is.
//! Not here: what a rhythm is (`tailbound_core::cycle::Pace`).

use std::collections::{HashMap, HashSet};
use tailbound_core::order;

use tailbound_core::blame::Sureness;
use tailbound_core::cycle::Pace;
use tailbound_core::number::Real as _;

use super::calls::Calls;
use super::wait::{Piece, Site, Wait};

/// Fewer waits are no rhythm.
const WAITS_MIN: usize = 4;
/// More regular than this is exact.
const EXACT: f64 = 0.002;
/// A share of less says no less: a loop that is always late does not sleep at all.
const FLOOR: f64 = 0.02;
/// A finer name has to be better by this (a logarithm) to be taken for a coarser one.
const FINER: f64 = 0.1;
/// How far the next best must be behind (a logarithm) to be sure, and likely.
const SURE: f64 = 1.1;
const LIKELY: f64 = 0.3;
/// A wait to get rid of something (a full pipe, a disk) is taken for the one for the next cycle where it is better by this.
const OUTPUT: f64 = 3.0;
/// Most waits of one candidate whose regularity is looked at.
const LOOKED_AT: usize = 1024;

/// What was found.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) site: Site,
    pub(super) words: String,
    pub(super) sureness: Sureness,
    /// The rhythm of its releases as far as it was seen then.
    pub(super) pace: Pace,
    pub(super) waits: u64,
}

/// What the user knows.
#[derive(Clone, Debug, Default)]
pub(super) struct CycleHints {
    pub(super) period_ns: Option<i64>,
    /// The name of the system call that paces the threads.
    pub(super) call: Option<String>,
}

#[derive(Default)]
struct Candidate<'a> {
    waits: Vec<&'a Wait>,
    asleep_ns: u64,
}

/// The wait that paces the thread which did `pieces`.
pub(super) fn choose(calls: &Calls, pieces: &[Piece], known: &CycleHints) -> Option<Choice> {
    let mut all: HashMap<Site, Candidate<'_>> = HashMap::new();
    let waits = || pieces.iter().filter_map(|p| p.wait.as_ref());
    // A loop that is always late hardly sleeps: its timer was due when it was set, and tells the rhythm.
    let tells = |w: &&Wait| (w.slept || w.timed) && named(calls, w, known);
    for wait in waits().filter(tells) {
        for site in wait.sites {
            let candidate = all.entry(site).or_default();
            candidate.asleep_ns =
                candidate.asleep_ns.saturating_add(wait.release.saturating_sub(wait.from).max(1));
            candidate.waits.push(wait);
        }
    }
    let from = waits().next()?.from;
    let span = pieces.last()?.end.saturating_sub(from).max(1);
    let mut scored: Vec<(Site, f64, &Candidate<'_>)> = all
        .iter()
        .filter(|(_, c)| c.waits.len() >= WAITS_MIN)
        .map(|(site, c)| {
            let output = c.waits.first().and_then(|w| w.call).is_some_and(|k| calls.puts_out(&k));
            (*site, score(c, span, known) - if output { OUTPUT } else { 0.0 }, c)
        })
        .collect();
    // A map has no order: equal scores must not be a matter of chance.
    order::by_key(&mut scored, |(site, ..)| (site.level, *site));
    let mut best: Option<(Site, f64, &Candidate<'_>)> = None;
    for next in &scored {
        let (level, score) = best.map_or((0, f64::NEG_INFINITY), |(s, score, _)| (s.level, score));
        let margin = if next.0.level > level { FINER } else { 0.0 };
        if next.1 > score + margin {
            best = Some(*next);
        }
    }
    let (site, score, candidate) = best?;
    let related: HashSet<Site> = candidate.waits.iter().flat_map(|w| w.sites).collect();
    let rival = scored
        .iter()
        .filter(|(s, ..)| !related.contains(s))
        .map(|(_, score, _)| *score)
        .fold(f64::NEG_INFINITY, f64::max);
    let sureness = match score - rival {
        ahead if ahead >= SURE => Sureness::Sure,
        ahead if ahead >= LIKELY => Sureness::Likely,
        _ => Sureness::Unsure,
    };
    let pace = Pace::of(&releases(candidate, usize::MAX), known.period_ns);
    let words = candidate
        .waits
        .first()
        .and_then(|w| w.call.as_ref())
        .map_or_else(|| "a call that was not recorded".to_owned(), |call| calls.words(call));
    let waits = candidate.waits.len() as u64;
    Some(Choice { site, words, sureness, pace, waits })
}

fn named(calls: &Calls, wait: &Wait, known: &CycleHints) -> bool {
    let Some(name) = &known.call else { return true };
    wait.call.and_then(|c| calls.name(c.id)) == Some(name)
}

fn releases(c: &Candidate<'_>, most: usize) -> Vec<u64> {
    c.waits.iter().filter(|w| !w.lost).map(|w| w.release).take(most).collect()
}

fn score(c: &Candidate<'_>, span: u64, known: &CycleHints) -> f64 {
    let share = c.asleep_ns.real() / span.real();
    let irregular = Pace::irregularity(&releases(c, LOOKED_AT), known.period_ns);
    (share + FLOOR).ln() - (irregular + EXACT).ln()
}
