// SPDX-License-Identifier: MIT OR Apache-2.0
//! Was the requirement met? The answer, one sentence a person can act on, and what the run
//! demonstrates with which confidence.
//!
//! Units: ns.
//! Rules, in this order: an unfit finding decides everything; a violation of what the probe
//! tries the kernel for fails it; what was certainly beyond the requirement fails it, whatever else is doubtful; and "met" needs that nothing stands
//! against it: the run is complete, every thread recorded, the source tells of every value, no
//! finding casts doubt, and (class safe with a rate) the run is long enough. Otherwise the
//! answer is "undecided". Missed activations count with the latency they would have had.
//! Not here: counting ([`crate::exceed`]), limits of rates ([`crate::rates`]); no bound
//! extrapolates beyond what was seen.

use tailbound_core::context::Context;
use tailbound_core::finding::NOTHING_FOUND;
use tailbound_core::number::Real as _;
use tailbound_core::order;
use tailbound_core::record::{SecondRecord, ThreadRecord};
use tailbound_core::requirement::{Class, Rate};
use tailbound_core::units::{format_ns, grouped};
use tailbound_core::{EndReason, Finding, Impact, Outcome, Plan, Verdict};

use crate::phrases;
use crate::quantile::{Quantile, median};
use crate::rates::{self, at_most, percent};
use crate::tally::{Tally, tally};

/// Share of the activations that class 95 lets be beyond, as 1/20.
const NINETY_FIVE_ONE_IN: u64 = 20;

/// A required rate above this (per second) cannot be judged by seconds that hold an exceedance.
const DENSEST_RATE: f64 = 0.1;

/// Everything a verdict is made from.
struct Case<'a> {
    plan: &'a Plan,
    tally: Tally,
    findings: &'a [Finding],
    threads: &'a [ThreadRecord],
    ended: EndReason,
    measured_ns: i64,
}

/// What the counts alone say.
enum Count {
    /// Within the requirement; the words for the sentence.
    Within(String),
    /// Beyond it; likewise.
    Beyond(String),
    /// Neither; why.
    Open(String),
}

/// The verdict of a run.
///
/// `threads`, `seconds` and `findings` are the run's records; `ended` is `complete` or why
/// the run ended before its time; `measured_ns` is the length of the schedule that was measured.
#[must_use]
pub fn verdict(
    plan: &Plan,
    threads: &[ThreadRecord],
    seconds: &[SecondRecord],
    findings: &[Finding],
    ended: EndReason,
    measured_ns: i64,
) -> Verdict {
    let tally = tally(plan, threads, seconds, measured_ns);
    let case = Case { plan, tally, findings, threads, ended, measured_ns };
    let (outcome, sentence) = case.decide();
    Verdict {
        outcome,
        sentence,
        statements: case.statements(),
        due: case.tally.due.n,
        beyond: case.tally.found.beyond(),
        beyond_unknown: case.tally.found.unknown,
    }
}

impl Case<'_> {
    fn decide(&self) -> (Outcome, String) {
        let requirement = &self.plan.requirement;
        if let Some(unfit) = self.of_impact(Impact::Unfit).next() {
            let what = phrases::clause(&unfit.title);
            let text = format!("Unfit: {what}; the figures do not describe this machine.");
            return (Outcome::Unfit, text);
        }
        if let Some(violation) = self.of_impact(Impact::Violation).next() {
            let text = format!("Not met: {}.", phrases::clause(&violation.title));
            return (Outcome::NotMet, text);
        }
        if self.tally.due.n == 0 {
            if let Some(answer) = self.nothing_found() {
                return answer;
            }
            let why = self.incomplete().unwrap_or_else(|| "the run is complete but empty".into());
            return (Outcome::Undecided, format!("Undecided: no activation was recorded; {why}."));
        }
        if requirement.deadline_ns.is_none() && requirement.early_ns.is_none() {
            return match &self.plan.property {
                Some(property) => self.held(property),
                None => (Outcome::Measured, self.measured_without_a_limit()),
            };
        }
        let missed = phrases::missed(&self.tally);
        let counted = match (requirement.class, requirement.rate) {
            (Class::BestEffort, _) => {
                let text = format!("Measured: {}{missed}.", self.counts(""));
                return (Outcome::Measured, text);
            }
            (Class::NinetyFive, _) => self.ninety_five(),
            (Class::Safe, Some(rate)) => self.safe(rate),
            (Class::Safe | Class::Hard, _) => self.hard(),
            (Class::Unknown(class), _) => match self.hard() {
                Count::Within(text) => {
                    Count::Open(format!("the class `{class}` is not known to this version; {text}"))
                }
                beyond => beyond,
            },
        };
        match counted {
            Count::Beyond(text) => (Outcome::NotMet, format!("Not met: {text}{missed}.")),
            Count::Open(why) => (Outcome::Undecided, format!("Undecided: {why}{missed}.")),
            Count::Within(text) => match self.obstacle() {
                Some(why) => (Outcome::Undecided, format!("Undecided: {why}; {text}{missed}.")),
                None => (Outcome::Met, format!("Met: {text}{missed}.")),
            },
        }
    }

    /// A tool that records only what is above a threshold recorded nothing: that is an answer, but
    /// not one about a deadline.
    fn nothing_found(&self) -> Option<(Outcome, String)> {
        let found = self.findings.iter().find(|f| f.id == NOTHING_FOUND)?;
        let what = phrases::clause(&found.title);
        let length = tailbound_core::units::format_span(self.measured_ns);
        let length = if self.measured_ns > 0 { format!(" in {length}") } else { String::new() };
        let requirement = &self.plan.requirement;
        let end = self.incomplete().map_or_else(String::new, |why| format!("; {why}"));
        Some(if requirement.deadline_ns.is_none() && requirement.early_ns.is_none() {
            let text = format!("Measured: {what}{length}{end}; no deadline was given.");
            (Outcome::Measured, text)
        } else {
            let text = format!(
                "Undecided: {what}{length}{end}; what it does not record cannot be judged by a deadline."
            );
            (Outcome::Undecided, text)
        })
    }

    /// Without a deadline, what the probe tries the kernel for is the requirement. It is claimed of what was tried: what fell due
    /// meanwhile was not, and its latency is none that the probe timed.
    fn held(&self, property: &str) -> (Outcome, String) {
        let scope = phrases::tried(&self.tally, self.measured_ns);
        let latest = phrases::latest_tried(&self.tally);
        let rest = format!("in {scope}; {latest}{}", phrases::missed(&self.tally));
        match self.obstacle() {
            // Beside a doubt the property itself is not claimed: the doubt may be about it.
            Some(why) => {
                let text = format!("Undecided: {why}; it is not shown that {property}, {rest}.");
                (Outcome::Undecided, text)
            }
            None => (Outcome::Met, format!("Met: {property}, {rest}.")),
        }
    }

    fn measured_without_a_limit(&self) -> String {
        let scope = phrases::scope(&self.tally, self.measured_ns);
        let latest = phrases::latest(&self.tally, &self.plan.requirement);
        let median = match median(&self.tally.due) {
            Quantile::Value { ns, .. } => format!(", the median {}", format_ns(ns)),
            Quantile::Below { ns, .. } => format!(", the median below {}", phrases::exactly(ns)),
            _ => String::new(),
        };
        let missed = phrases::missed(&self.tally);
        let end = self.incomplete().map_or_else(String::new, |why| format!("; {why}"));
        format!("Measured: {scope}; {latest}{median}{missed}{end}; no deadline was given.")
    }

    /// `17 of 120,000 activations … (0.014 %) came later than 100 µs; the worst was …`; what
    /// stands between limit and worst is `aside`.
    fn counts(&self, aside: &str) -> String {
        let (tally, requirement) = (&self.tally, &self.plan.requirement);
        let scope = phrases::scope(tally, self.measured_ns);
        let limit = phrases::limit(requirement);
        let beyond = tally.found.beyond();
        if beyond == 0 {
            let latest = phrases::latest(tally, requirement);
            return format!("none of {scope} came {limit}{aside}; {latest}");
        }
        let worst = phrases::worst(tally, requirement);
        let least = if tally.found.unknown > 0 { "at least " } else { "" };
        let share = phrases::share(beyond, tally.due.n);
        format!("{least}{} of {scope} ({share}) came {limit}{aside}; {worst}", grouped(beyond))
    }

    fn hard(&self) -> Count {
        if self.tally.found.beyond() > 0 {
            return Count::Beyond(self.counts(""));
        }
        self.unknown().map_or_else(|| Count::Within(self.counts("")), Count::Open)
    }

    fn ninety_five(&self) -> Count {
        let found = &self.tally.found;
        let too_many = |n: u64| n.saturating_mul(NINETY_FIVE_ONE_IN) > self.tally.due.n;
        if too_many(found.beyond()) {
            return Count::Beyond(self.counts(", and only 5 % may"));
        }
        if too_many(found.beyond().saturating_add(found.unknown)) {
            return self.unknown().map_or_else(|| Count::Within(self.counts("")), Count::Open);
        }
        Count::Within(self.counts(if found.beyond() > 0 { ", and 5 % may" } else { "" }))
    }

    fn safe(&self, rate: Rate) -> Count {
        let Some(confidence) = self.confidence() else {
            let given = self.plan.requirement.confidence;
            return Count::Open(format!("the confidence {given} is not between 0 and 1"));
        };
        let blocks = self.tally.blocks;
        let exposure = self.measured_ns.max(0).real() / 1e9;
        let required = f64::from(rate.count) / (rate.per_ns.real() / 1e9);
        let level = percent(confidence);
        if rates::rate_lower(blocks.hits_min, exposure, confidence) > required {
            return Count::Beyond(
                self.counts(&format!(", at {level} confidence more often than {rate}")),
            );
        }
        let text = self.counts("");
        if blocks.hits_max > 0 && required > DENSEST_RATE {
            return Count::Open(format!(
                "{text}; whether that is within {rate} cannot be stated with a confidence, because \
                 exceedances come in clusters and this rate is denser than one per 10 s (class \
                 95 can be)"
            ));
        }
        if rates::rate_upper(blocks.hits_max, exposure, confidence) > required {
            if let Some(why) = self.unknown() {
                return Count::Open(why);
            }
            let total = rates::exposure_needed(blocks.hits_max, required, confidence);
            let seen = match blocks.hits_max {
                0 => "without one".to_owned(),
                1 => "with no further one".to_owned(),
                n => format!("with no more than these {n} seconds"),
            };
            return Count::Open(format!(
                "{text}; to show at most {rate} at {level} confidence takes a run of {} {seen}, \
                 {} longer than this one",
                at_most(total),
                at_most(total - exposure)
            ));
        }
        let plain = self.tally.found.beyond().saturating_add(self.tally.found.unknown).real();
        if plain > required * exposure {
            return Count::Open(format!(
                "{text}; counted one by one that is more often than {rate}, but they came within \
                 {} of the run's seconds, which is not",
                blocks.hits_max
            ));
        }
        Count::Within(
            self.counts(&format!(", and the run is long enough for {rate} at {level} confidence")),
        )
    }

    /// Values of which the source does not tell, as a clause.
    fn unknown(&self) -> Option<String> {
        let unknown = self.tally.found.unknown;
        if unknown == 0 {
            return None;
        }
        let scope = phrases::scope(&self.tally, self.measured_ns);
        let limit = phrases::limit(&self.plan.requirement);
        let latest = phrases::latest(&self.tally, &self.plan.requirement);
        Some(format!(
            "for {} of {scope} the data does not show whether they came {limit}; {latest}",
            grouped(unknown)
        ))
    }

    /// What prevents "met", the weightiest first.
    fn obstacle(&self) -> Option<String> {
        self.incomplete().or_else(|| self.silent()).or_else(|| {
            let doubt = self.findings.iter().find(|f| f.impact.forbids_met())?;
            let kind = match doubt.impact {
                Impact::Unknown(word) => {
                    format!("a finding of impact `{word}`, which this version does not know")
                }
                _ => "the results are unreliable".to_owned(),
            };
            Some(format!("{kind}: {}", phrases::clause(&doubt.title)))
        })
    }

    fn incomplete(&self) -> Option<String> {
        // Ended by the rule that the plan named: its threads were stopped, as planned.
        if self.ended == EndReason::Rule {
            return None;
        }
        if !self.ended.is_as_planned() {
            return Some(phrases::ended(self.ended, self.measured_ns, self.plan.duration_ns()));
        }
        let broken =
            |t: &&ThreadRecord| t.context == self.tally.context && !t.ended.is_as_planned();
        self.threads.iter().find(broken).map(|t| {
            let place = t.cpu.map_or_else(String::new, |c| format!(" on CPU {c}"));
            format!(
                "thread {}{place} ended early ({})",
                t.thread,
                phrases::clause(t.ended.as_str())
            )
        })
    }

    fn silent(&self) -> Option<String> {
        let silent = &self.tally.silent;
        (!silent.is_empty()).then(|| format!("nothing was recorded on {}", silent.join(", ")))
    }

    fn confidence(&self) -> Option<f64> {
        Some(self.plan.requirement.confidence).filter(|c| *c > 0.0 && *c < 1.0)
    }

    fn of_impact(&self, impact: Impact) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |f| f.impact == impact)
    }

    fn statements(&self) -> Vec<String> {
        let (tally, requirement) = (&self.tally, &self.plan.requirement);
        let mut out = Vec::new();
        let limit = phrases::limit(requirement);
        if let Some(confidence) = self.confidence().filter(|_| !limit.is_empty())
            && tally.due.n > 0
        {
            let what = format!("{}s {limit}", self.plan.late_word());
            let blocks = tally.blocks;
            let said = rates::sentence(&what, blocks.hits_max, blocks.seconds, confidence);
            match said {
                Some(text) => {
                    out.push(phrases::as_sentence(&text));
                    out.push(rates::ASSUMPTION.to_owned());
                }
                None if blocks.seconds == 0 => {
                    out.push(
                        "Shorter than a second: no statement about rates is possible.".to_owned(),
                    );
                }
                // How often they came is said with the bound, and why no rate is claimed.
                None => {}
            }
        }
        if requirement.class == Class::Safe && requirement.rate.is_none() && !limit.is_empty() {
            out.push("Class safe without a rate is judged as hard.".to_owned());
        }
        if tally.missed > 0 {
            let while_ = if self.plan.event.is_none() {
                "before the thread had woken for an earlier one"
            } else {
                "while an earlier one was not over"
            };
            // A property is told of what was tried.
            let told = self.plan.property.is_some() && limit.is_empty();
            let aside = if told {
                "they were not tried, and in the table's rows \"+ missed\" "
            } else {
                ""
            };
            let (missed, event) = (grouped(tally.missed), &tally.event);
            let share = phrases::share(tally.missed, tally.due.n);
            out.push(if tally.context == Context::External {
                format!(
                    "{missed} {event}s ({share}) were not answered; each counts with the time that had passed when it was given up, at least."
                )
            } else {
                format!(
                    "{missed} {event}s ({share}) fell due {while_}; {aside}they count with the latency they would have had."
                )
            });
        }
        if tally.found.unknown > 0 {
            let (what, who) = match tally.found.unknown {
                1 => ("1 activation".to_owned(), "it"),
                n => (format!("{} activations", grouped(n)), "they"),
            };
            out.push(format!("For {what} the data does not show whether {who} came {limit}."));
        }
        if !tally.context.is_outermost() {
            out.push(format!(
                "Judged where the source measured outermost: `{}`; a program is later than that.",
                tally.context
            ));
        }
        for why in self.incomplete().into_iter().chain(self.silent()) {
            out.push(phrases::as_sentence(&why));
        }
        let mut weighty: Vec<&Finding> =
            self.findings.iter().filter(|f| f.impact.forbids_met()).collect();
        order::by_key(&mut weighty, |f| std::cmp::Reverse(f.impact));
        for finding in weighty {
            let kind = match finding.impact {
                Impact::Unfit => "Unfit".to_owned(),
                Impact::Violation => "Violation".to_owned(),
                Impact::Doubt | Impact::Notice => "Doubt".to_owned(),
                Impact::Unknown(word) => format!("Impact `{word}`, not known to this version"),
            };
            out.push(format!("{kind}: {}.", phrases::clause(&finding.title)));
        }
        out
    }
}
