// SPDX-License-Identifier: MIT OR Apache-2.0
//! When a run may end before its time, and what may be said of exceedances while it goes on.
//!
//! Context: COLD, once a second. Units: seconds of schedule; rates per second.
//! *demonstrated*: the length is planned from rate and confidence; the first exceedance ends it
//! ("not shown"), the planned end without one shows it. *anytime*: exceedances do not end it;
//! it ends when the limit that holds at every look is low enough. *precision*: it ends when the
//! chosen quantiles are known well enough, all at once, at three checks in a row, each at twice
//! the length of the one before: one lucky check is none.
//! Not here: the limits ([`crate::rates`], [`crate::anytime`]), ending threads (`tailbound-run`).

use std::collections::BTreeSet;

use tailbound_core::Plan;
use tailbound_core::number::Real as _;
use tailbound_core::plan::{StopRule, Until};
use tailbound_core::record::{BlockRecord, SecondRecord};
use tailbound_core::units::format_ns_i64;

use crate::anytime;
use crate::precision::{QuantileWidth, STRETCHES_MIN, Series, batches, quantile_widths};
use crate::quantile::label;
use crate::rates::{at_least, at_most, exposure_needed, percent};

/// Seconds before the first check of precision.
const FIRST_CHECK_S: u64 = 20;
/// Checks in a row that must hold.
const CHECKS: u32 = 3;
/// No run ends by *precision* before this.
pub const PRECISE_FIRST_S: u64 = FIRST_CHECK_S << (CHECKS - 1);
/// Seconds after which no thread still reports an earlier one.
const LATE_S: u64 = 600;
/// Stretches kept; of more, two become one.
const STRETCHES_MAX: usize = 256;

/// Why a run ends now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Was what was asked for reached?
    pub reached: bool,
    /// In a sentence.
    pub text: String,
}

/// Follows a run and knows when to end it.
#[derive(Clone, Debug)]
pub struct Stopping {
    until: Option<Until>,
    deadline_ns: Option<i64>,
    early_ns: Option<i64>,
    rate_per_s: Option<f64>,
    confidence: f64,
    planned_s: f64,
    recent: BTreeSet<u64>,
    older: u64,
    /// The first exceedance that was reported before its second was over: when, and how late.
    first: Option<(i64, i64)>,
    series: Series,
    check_s: u64,
    good: u32,
}

impl Stopping {
    /// For a run of `plan`.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let r = &plan.requirement;
        let rate_per_s = r.rate.map(|x| f64::from(x.count) / (x.per_ns.real() / 1e9));
        Self {
            until: plan.until.clone(),
            deadline_ns: r.deadline_ns,
            early_ns: r.early_ns,
            rate_per_s,
            confidence: r.confidence,
            planned_s: rate_per_s.map_or(plan.duration_ns().real() / 1e9, |rate| {
                exposure_needed(0, rate, r.confidence)
            }),
            recent: BTreeSet::new(),
            older: 0,
            first: None,
            series: Series { length_s: 1, stretches: Vec::new() },
            check_s: FIRST_CHECK_S,
            good: 0,
        }
    }

    /// Are stretches of one second wanted?
    #[must_use]
    pub fn wants_stretches(&self) -> bool {
        self.until.as_ref().is_some_and(|u| u.rule == StopRule::Precision)
    }

    /// Takes a complete second of one thread.
    pub fn second(&mut self, s: &SecondRecord) {
        let late = self.deadline_ns.is_some_and(|d| s.max_ns > d);
        let early = self.early_ns.is_some_and(|e| s.min_ns < e.saturating_neg());
        if s.n > 0 && (late || early) {
            self.recent.insert(s.second);
        }
        while self.recent.len() > 1
            && let Some(oldest) = self.recent.first().copied()
            && oldest.saturating_add(LATE_S) < s.second
        {
            self.recent.remove(&oldest);
            self.older += 1;
        }
    }

    /// Takes a single latency of a thread, which comes before its second is complete.
    pub fn exceedance(&mut self, t_ns: i64, latency_ns: i64) {
        let late = self.deadline_ns.is_some_and(|d| latency_ns > d);
        let early = self.early_ns.is_some_and(|e| latency_ns < e.saturating_neg());
        if (late || early) && self.first.is_none() && second_of(t_ns).is_some() {
            self.first = Some((t_ns, latency_ns));
        }
    }

    /// Does one exceedance decide, so that looking more often ends the run sooner?
    #[must_use]
    pub fn wants_exceedances(&self) -> bool {
        self.until
            .as_ref()
            .is_some_and(|u| matches!(u.rule, StopRule::Demonstrated | StopRule::Exceedance))
    }

    /// Takes a stretch of one thread.
    pub fn stretch(&mut self, b: &BlockRecord) {
        self.series.absorb(b);
        if self.series.stretches.len() > STRETCHES_MAX {
            self.series.halve();
        }
    }

    /// Seconds that held an exceedance.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.older + self.recent.len() as u64
    }

    /// The deadline, for people.
    fn limit(&self) -> String {
        self.deadline_ns.map_or_else(String::new, format_ns_i64)
    }

    fn what(&self) -> String {
        format!("exceedances of {}", self.limit())
    }

    /// Should the run end, of which `complete_s` seconds are over?
    pub fn look(&mut self, complete_s: u64) -> Option<Stop> {
        let until = self.until.clone()?;
        match until.rule {
            StopRule::Exceedance => {
                let hit = self.hits() > 0 || self.first.is_some();
                let limit = self.limit();
                let which = self.first.map_or_else(String::new, |(t_ns, late_ns)| {
                    let at = format_ns_i64(t_ns.max(0));
                    format!(": it was {} late, {at} after the begin", format_ns_i64(late_ns))
                });
                let text = format!("ended at the first wake-up later than {limit}{which}");
                hit.then_some(Stop { reached: true, text })
            }
            StopRule::Demonstrated => {
                let hits = self.hits().max(u64::from(self.first.is_some()));
                let first_s = self.first.and_then(|(t_ns, _)| second_of(t_ns));
                let within_s = first_s.map_or(complete_s, |s| complete_s.max(s + 1));
                (hits > 0).then(|| Stop {
                    reached: false,
                    text: format!(
                        "not demonstrated: there was an exceedance of {} within {}; to show {} anyway takes {} with no further one",
                        self.limit(),
                        at_most(within_s.real()),
                        self.rate_words(),
                        at_most(self.rate_per_s.map_or(f64::INFINITY, |rate| {
                            exposure_needed(hits, rate, self.confidence)
                        })),
                    ),
                })
            }
            StopRule::Anytime => {
                let upper = self.upper(complete_s)?;
                (upper <= self.rate_per_s?).then(|| Stop {
                    reached: true,
                    text: format!(
                        "shown: {}, with {} of {complete_s} seconds holding one",
                        self.limit_words(upper),
                        self.hits()
                    ),
                })
            }
            StopRule::Precision => self.check(&until, complete_s),
            StopRule::Unknown(_) => None,
        }
    }

    fn rate_words(&self) -> String {
        self.rate_per_s.map_or_else(String::new, |r| format!("one per {}", at_least(1.0 / r)))
    }

    fn upper(&self, complete_s: u64) -> Option<f64> {
        self.deadline_ns.or(self.early_ns)?;
        (complete_s > 0).then(|| {
            anytime::rate_upper(self.hits(), complete_s.real(), self.planned_s, self.confidence)
        })
    }

    fn limit_words(&self, upper: f64) -> String {
        let (level, what) = (percent(self.confidence), self.what());
        format!("at {level}, {what} are rarer than one per {}", at_least(1.0 / upper))
    }

    fn check(&mut self, until: &Until, complete_s: u64) -> Option<Stop> {
        if complete_s < self.check_s {
            return None;
        }
        self.check_s = self.check_s.saturating_mul(2);
        let wanted = until.precision?;
        let widths = self.widths(until);
        let worst = worst(&widths);
        self.good = if worst.is_some_and(|w| w <= wanted) { self.good + 1 } else { 0 };
        (self.good >= CHECKS).then(|| Stop {
            reached: true,
            text: format!("precise: {}, at three checks in a row", widths_words(&widths)),
        })
    }

    /// The quantiles' intervals, which hold together at the confidence.
    fn widths(&self, until: &Until) -> Vec<QuantileWidth> {
        if self.series.stretches.len() < STRETCHES_MIN || until.quantiles.is_empty() {
            return Vec::new();
        }
        let each = 1.0 - (1.0 - self.confidence) / until.quantiles.len().real();
        // Of stretches that states outlast nothing is known well enough.
        let (series, lasting) = batches(self.series.clone());
        if lasting.is_some() {
            return Vec::new();
        }
        quantile_widths(&series, &until.quantiles, each)
    }

    /// What may be said now, however often it is looked at. `None`: nothing yet.
    #[must_use]
    pub fn statement(&self, complete_s: u64) -> Option<String> {
        if let Some(until) = self.until.as_ref().filter(|u| u.rule == StopRule::Precision) {
            let widths = self.widths(until);
            let wanted = percent(until.precision?);
            return (!widths.is_empty())
                .then(|| format!("so far {} (wanted ±{wanted})", widths_words(&widths)));
        }
        let upper = self.upper(complete_s)?;
        if self.hits() > 0 && upper > 1.0 {
            return None;
        }
        let words = self.limit_words(upper);
        let seen = match self.hits() {
            0 => String::new(),
            1 => "; 1 second had one".to_owned(),
            n => format!("; {n} seconds had one"),
        };
        Some(format!("so far, {words}{seen}"))
    }

    /// What is to be said at the end of a run that was not ended by the rule.
    #[must_use]
    pub fn at_end(&self, complete_s: u64) -> Option<String> {
        let until = self.until.as_ref()?;
        let seconds = complete_s.real();
        Some(match until.rule {
            StopRule::Demonstrated if seconds + 1.0 >= self.planned_s && self.hits() == 0 => {
                format!(
                    "shown: the planned {} are over without an exceedance of {}: at {} they are rarer than {}",
                    at_least(seconds),
                    self.limit(),
                    percent(self.confidence),
                    self.rate_words()
                )
            }
            StopRule::Precision => match self.widths(until) {
                w if w.is_empty() => {
                    "not reached: the run was too short, or states of the machine outlast its stretches"
                        .to_owned()
                }
                w => {
                    let worst = worst(&w).zip(until.precision);
                    let enough = worst.is_some_and(|(worst, wanted)| worst <= wanted);
                    let how = if enough { "precise enough, but" } else { "not reached:" };
                    format!(
                        "{how} {CHECKS} checks in a row (at least {PRECISE_FIRST_S} s) are needed: {}",
                        widths_words(&w)
                    )
                }
            },
            StopRule::Exceedance => {
                format!("no wake-up was later than {}", self.limit())
            }
            _ => match self.upper(complete_s) {
                Some(upper) => format!("not demonstrated: {}", self.limit_words(upper)),
                None => "not demonstrated: the run was too short".to_owned(),
            },
        })
    }
}

/// Which second of the schedule; `None` before it.
fn second_of(t_ns: i64) -> Option<u64> {
    u64::try_from(t_ns / 1_000_000_000).ok()
}

fn relative(w: &QuantileWidth) -> Option<f64> {
    let (low, high) = w.low_ns.zip(w.high_ns)?;
    let middle = f64::midpoint(low, high).abs();
    (middle > 0.0).then(|| (high - low) / 2.0 / middle)
}

/// The greatest relative half-width; `None` where one is not bounded.
fn worst(widths: &[QuantileWidth]) -> Option<f64> {
    let all: Option<Vec<f64>> = widths.iter().map(relative).collect();
    all?.into_iter().reduce(f64::max)
}

fn widths_words(widths: &[QuantileWidth]) -> String {
    let one = |w: &QuantileWidth| {
        let known =
            relative(w).map_or_else(|| "open".to_owned(), |r| format!("±{:.1} %", r * 100.0));
        format!("{} {known}", label(w.p))
    };
    widths.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use crate::random::Random;
    use crate::{anytime, rates};

    /// Runs of Poisson events at a true rate, looked at a hundred times: at how many is some
    /// look's limit below the truth?
    fn wrong(limit: impl Fn(u64, f64) -> f64, runs: u32) -> f64 {
        let (mut random, rate, length) = (Random::new(2024), 1.0, 20.0);
        let mut wrong = 0u32;
        for _ in 0..runs {
            let (mut events, mut next) = (0u64, -random.uniform().ln() / rate);
            let missed = (1..=100u32).any(|look| {
                let t = length * f64::from(look) / 100.0;
                while next <= t {
                    events += 1;
                    next -= random.uniform().ln() / rate;
                }
                limit(events, t) < rate
            });
            wrong += u32::from(missed);
        }
        f64::from(wrong) / f64::from(runs)
    }

    #[test]
    fn looking_often_breaks_the_fixed_limit_and_not_the_anytime_one() {
        let fixed = wrong(|k, t| rates::rate_upper(k, t, 0.95), 2000);
        let anytime = wrong(|k, t| anytime::rate_upper(k, t, 20.0, 0.95), 2000);
        assert!((0.12..0.24).contains(&fixed), "fixed: {fixed}");
        assert!(anytime <= 0.05, "anytime: {anytime}");
    }
}
