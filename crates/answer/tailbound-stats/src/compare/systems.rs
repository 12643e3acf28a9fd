// SPDX-License-Identifier: MIT OR Apache-2.0
//! From runs to the systems that are compared and their units.
//!
//! Units: ns.
//!
//! | runs given | unit |
//! |---|---|
//! | all made in turn (`round` of one series) | the round; rounds that lack a variant are left out |
//! | one of each system | the stretch of the run, not interleaved |
//! | several of each system | the run, not interleaved |
//!
//! Not here: reading files (`tailbound`), the comparison itself ([`mod@super::difference`]).

use std::collections::{BTreeMap, BTreeSet};

use tailbound_core::record::{End, ThreadRecord};
use tailbound_core::run::contexts;
use tailbound_core::{Context, EndReason, Outcome, Run};

use super::block::Block;
use super::design::Design;
use super::difference::{Difference, difference};
use super::refusal::Refusal;
use super::settings::Settings;
use super::slices;
use super::stretches::stretches;

/// One of the systems compared.
#[derive(Clone, Debug)]
pub struct System {
    /// Name for people: a variant, a file, a folder.
    pub name: String,
    /// Number of runs.
    pub runs: usize,
    /// The units, or why there are none.
    pub units: Result<Vec<Block>, Refusal>,
}

/// All systems, the first being what the others are compared with.
#[derive(Clone, Debug)]
pub struct Systems {
    /// What the units are.
    pub design: Design,
    /// The systems.
    pub systems: Vec<System>,
    /// All runs of each system as one, under the header of its first.
    pub wholes: Vec<Run>,
    /// The deadline they share.
    pub deadline_ns: Option<i64>,
    /// The context compared: `user`, where there is one.
    pub context: Context,
    /// What a reader must know of how they came about, a sentence each.
    pub notes: Vec<String>,
}

/// Two files of one name in two folders need two names.
#[must_use]
pub fn distinct(given: Vec<(String, Vec<Run>)>) -> Vec<(String, Vec<Run>)> {
    let names: Vec<String> = given.iter().map(|(n, _)| n.clone()).collect();
    let renamed = |i: usize, name: String| {
        let same = names.iter().filter(|n| **n == name).count();
        if same > 1 { format!("{name} ({})", i + 1) } else { name }
    };
    given.into_iter().enumerate().map(|(i, (name, runs))| (renamed(i, name), runs)).collect()
}

impl Systems {
    /// Systems of what was given under a name each; `order` names variants, the reference first.
    ///
    /// # Errors
    /// Fewer than two systems, or several variants under one name: what to give instead.
    pub fn of(given: &[(String, Vec<Run>)], order: &[String]) -> Result<Self, Refusal> {
        let all = || given.iter().flat_map(|(_, runs)| runs);
        let series: BTreeSet<Option<&str>> =
            all().map(|r| r.header.round.as_ref().map(|x| x.series.as_str())).collect();
        let in_turn = series.len() == 1 && series.first().is_some_and(Option::is_some);
        let mut notes = Vec::new();
        let mut said = Vec::new();
        let in_rounds = in_turn.then(|| by_variant(all(), order, &mut said));
        // Files of one series that share no round, each named by itself, are still runs.
        let in_rounds = in_rounds.filter(|groups| {
            let whole = groups.len() >= 2 && groups.iter().all(|(_, runs)| !runs.is_empty());
            whole || given.len() < 2
        });
        if in_turn && in_rounds.is_none() {
            notes.push(
                "The runs are of one series but have no round in common: they are compared as single runs."
                    .to_owned(),
            );
        }
        let in_turn = in_rounds.is_some();
        let (design, groups) = if let Some(groups) = in_rounds {
            notes.append(&mut said);
            (Design::Rounds, groups)
        } else {
            let groups: Vec<(String, Vec<&Run>)> =
                given.iter().map(|(name, runs)| (name.clone(), runs.iter().collect())).collect();
            let several = groups.iter().any(|(_, runs)| runs.len() > 1);
            (if several { Design::Runs } else { Design::Stretches }, groups)
        };
        if let Some((name, _)) = groups.iter().find(|(_, runs)| runs.is_empty()) {
            return Err(Refusal::NoRound { name: name.clone() });
        }
        if groups.len() < 2 {
            return Err(match groups.first() {
                Some((name, _)) if in_turn => Refusal::OneVariant { name: name.clone() },
                Some((name, runs)) => Refusal::OneSystem { name: name.clone(), runs: runs.len() },
                None => Refusal::NoRun,
            });
        }
        let deadlines: BTreeSet<Option<i64>> =
            all().map(|r| r.header.plan.requirement.deadline_ns).collect();
        let deadline_ns = deadlines.first().copied().flatten().filter(|_| deadlines.len() == 1);
        let context = context(&groups, &mut notes);
        let mut systems: Vec<System> = groups
            .iter()
            .map(|(name, runs)| System {
                name: name.clone(),
                runs: runs.len(),
                units: Ok(Vec::new()),
            })
            .collect();
        let wholes = groups
            .iter()
            .filter_map(|(_, runs)| {
                runs.split_first().map(|(first, others)| together(first, others))
            })
            .collect();
        set_units(&mut systems, &groups, design, context, deadline_ns, &mut notes);
        for (name, runs) in &groups {
            notes.extend(within(name, runs));
        }
        notes.extend(slices::doubt(&all().collect::<Vec<_>>()));
        Ok(Self { design, systems, wholes, deadline_ns, context, notes })
    }

    /// The systems' names, in their order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.systems.iter().map(|s| s.name.clone()).collect()
    }

    /// Every system but the first compared with it, or why it cannot be.
    #[must_use]
    pub fn differences(&self, settings: &Settings) -> Vec<Result<Difference, Refusal>> {
        let Some(first) = self.systems.first() else { return Vec::new() };
        let one = |(i, other): (usize, &System)| {
            if let (Some(a), Some(b)) = (self.wholes.first(), self.wholes.get(i)) {
                slices::comparable(a, b)?;
            }
            let units = |s: &System| match &s.units {
                Ok(units) => Ok(units.clone()),
                Err(why) => Err(Refusal::Of { name: s.name.clone(), why: Box::new(why.clone()) }),
            };
            let (a, b) = (units(first)?, units(other)?);
            difference(&a, &b, self.design, self.deadline_ns, settings)
        };
        self.systems.iter().enumerate().skip(1).map(one).collect()
    }
}

/// Runs by variant, each with the rounds that all variants have, in order.
fn by_variant<'r>(
    runs: impl Iterator<Item = &'r Run>,
    order: &[String],
    notes: &mut Vec<String>,
) -> Vec<(String, Vec<&'r Run>)> {
    let mut names: Vec<String> = order.to_vec();
    let mut rounds: BTreeMap<u32, BTreeMap<String, &Run>> = BTreeMap::new();
    let mut cut = 0;
    for run in runs {
        let Some(place) = &run.header.round else { continue };
        if !names.contains(&place.variant) {
            names.push(place.variant.clone());
        }
        if run.ended_as_planned() {
            rounds.entry(place.round).or_default().insert(place.variant.clone(), run);
        } else {
            cut += 1;
        }
    }
    names.retain(|n| rounds.values().any(|r| r.contains_key(n)));
    let before = rounds.len();
    rounds.retain(|_, r| names.iter().all(|n| r.contains_key(n)));
    if before > rounds.len() || cut > 0 {
        notes.push(format!(
            "{} of {before} rounds are compared: the others lack the complete run of a variant.",
            rounds.len()
        ));
    }
    let of = |name: &String| rounds.values().filter_map(|r| r.get(name).copied()).collect();
    names.iter().map(|n| (n.clone(), of(n))).collect()
}

/// The context that is compared, and that others are there.
fn context(groups: &[(String, Vec<&Run>)], notes: &mut Vec<String>) -> Context {
    let all = contexts(groups.iter().flat_map(|(_, runs)| runs).flat_map(|r| &r.threads));
    let chosen = Context::judged(&all).unwrap_or_default();
    if all.len() > 1 {
        let all: Vec<&str> = all.iter().map(Context::as_str).collect();
        notes.push(format!(
            "The context `{chosen}` is judged; the table has all of {}.",
            all.join(", ")
        ));
    }
    chosen
}

/// All runs of one system as one: histograms added, lengths added.
fn together(first: &Run, others: &[&Run]) -> Run {
    let mut whole = first.clone();
    if others.is_empty() {
        return whole;
    }
    for run in others {
        for t in &run.threads {
            let same = |x: &&mut ThreadRecord| x.thread == t.thread && x.context == t.context;
            match whole.threads.iter_mut().find(same) {
                Some(x) => {
                    x.wakeup.merge(&t.wakeup);
                    x.missed.merge(&t.missed);
                }
                None => whole.threads.push(t.clone()),
            }
        }
    }
    let measured_ns = others.iter().fold(first.measured_ns(), |sum, r| sum + r.measured_ns());
    whole.end = Some(End { reason: EndReason::Complete, measured_ns, lines: 0 });
    (whole.seconds, whole.blocks, whole.windows) = (Vec::new(), Vec::new(), Vec::new());
    whole
}

fn set_units(
    systems: &mut [System],
    groups: &[(String, Vec<&Run>)],
    design: Design,
    context: Context,
    deadline_ns: Option<i64>,
    notes: &mut Vec<String>,
) {
    if design == Design::Stretches {
        let cut = |at_least: u64| -> Vec<_> {
            let runs = groups.iter().filter_map(|(_, runs)| runs.first());
            runs.map(|r| stretches(r, at_least, deadline_ns)).collect()
        };
        // One length for all: that of the run that needs the longest.
        let length_s = cut(0).iter().flatten().map(|s| s.length_s).max().unwrap_or(0);
        for (system, found) in systems.iter_mut().zip(cut(length_s)) {
            system.units = found.map(|s| s.units);
        }
        if length_s > 0 {
            notes.push(format!("The runs are cut into stretches of {length_s} s."));
        }
        return;
    }
    let precision = groups
        .iter()
        .flat_map(|(_, runs)| runs)
        .flat_map(|r| &r.threads)
        .flat_map(|t| [t.wakeup.late.precision(), t.missed.late.precision()])
        .min()
        .unwrap_or(1);
    for (system, (_, runs)) in systems.iter_mut().zip(groups) {
        let unit = |run: &&Run| Block::of(&run.total(context).1, precision, deadline_ns);
        system.units = runs.iter().map(unit).collect();
    }
}

/// What is wrong within one system.
fn within(name: &str, runs: &[&Run]) -> Vec<String> {
    let mut out = Vec::new();
    let first = runs.first();
    let other_plan = runs.iter().filter(|r| first.is_some_and(|f| f.header.plan != r.header.plan));
    match other_plan.count() {
        0 => {}
        n => out.push(format!(
            "{n} of the {} runs of {name} have another plan than its first.",
            runs.len()
        )),
    }
    let unfit = |r: &&&Run| r.verdict.as_ref().is_some_and(|v| v.outcome == Outcome::Unfit);
    match runs.iter().filter(unfit).count() {
        0 => {}
        n if runs.len() == 1 && n == 1 => {
            out.push(format!(
                "The run of {name} is unfit: its figures do not describe this machine."
            ));
        }
        n => out.push(format!(
            "{n} of the {} runs of {name} are unfit: their figures do not describe this machine.",
            runs.len()
        )),
    }
    out
}
