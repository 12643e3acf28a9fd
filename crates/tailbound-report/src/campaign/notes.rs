// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a reader of a campaign must mind: headline, what differs from the text, and what runs
//! shorter than the text's can no longer show.
//!
//! Context: COLD. Not here: figures.

use tailbound_core::campaign::Part;
use tailbound_core::units::grouped;
use tailbound_core::{Impact, Run};
use tailbound_stats::decide::latency;

use super::given::{Given, Measured, Place, State, share};
use super::judge::{Judged, Row, Word};
use super::tables::part_of;
use crate::{digest, label};

/// `3 of 4 claims hold, …`
pub(super) fn headline(given: &Given, claims: &[Judged], rows: &[Row]) -> String {
    let all: Vec<&Place> = given.systems.iter().flat_map(|s| &s.places).collect();
    let done = all.iter().filter(|p| matches!(p.state, State::Complete(_))).count();
    let can = all.iter().filter(|p| !matches!(p.state, State::NotHere(_))).count();
    let systems: Vec<&str> = given.systems.iter().map(|s| s.name.as_str()).collect();
    let mut out = match systems.as_slice() {
        [] => "Nothing was measured yet.".to_owned(),
        _ => format!("{done} of {can} runs complete, on {}.", systems.join(" and ")),
    };
    let count = |word: Word| claims.iter().filter(|c| c.word == word).count();
    if !claims.is_empty() {
        out.push_str(&format!(
            " Of {} claims of the text {} hold, {} do not hold here, {} cannot be told.",
            claims.len(),
            count(Word::Holds),
            count(Word::DoesNotHold),
            count(Word::CannotBeTold)
        ));
    }
    let judged: Vec<bool> = rows.iter().filter_map(|r| r.agrees).collect();
    if !judged.is_empty() {
        let agree = judged.iter().filter(|a| **a).count();
        out.push_str(&format!(" {agree} of {} figures agree.", judged.len()));
    }
    out
}

/// What differs between the text's measurement and this one.
pub(super) fn differs(given: &Given) -> Vec<String> {
    let mut out = given.file.differs.clone();
    for system in &given.systems {
        let Some(run) = system.places.iter().find_map(Place::run) else { continue };
        let machine = label::machine(run);
        let machine = if machine.is_empty() { "machine unknown".to_owned() } else { machine };
        out.push(format!(
            "Machine: the text's is {}; {} is {machine}.",
            given.file.text.machine, system.name
        ));
        out.extend(digest::virtual_time(run).map(|v| format!("{}: {v}.", system.name)));
    }
    for step in &given.file.steps {
        out.extend(step.ours.iter().map(|ours| format!("{}: {ours}", step.title)));
        let lab = given.systems.iter().flat_map(|s| &s.places).filter_map(Place::run);
        if lab.into_iter().any(|r| r.header.lab.is_some()) {
            out.extend(step.lab_note.iter().map(|n| format!("{}, in the lab: {n}", step.title)));
        }
    }
    out.extend(given.systems.iter().flat_map(|s| policies(given, s)));
    out.dedup();
    out
}

/// Runs whose policy is not the one of the words.
fn policies(given: &Given, system: &Measured) -> Vec<String> {
    let other = |run: &&Run| !run.header.plan.policy.is_realtime() && !run.threads.is_empty();
    let wanted = |p: &Place| {
        let part = given.parts.iter().find(|part| part.id == p.part);
        part.is_none_or(|p| !p.only_work && p.run.policy.as_deref() != Some("other"))
    };
    let places = system.places.iter().filter(|p| wanted(p));
    let n = places.filter_map(Place::run).filter(other).count();
    if n == 0 {
        return Vec::new();
    }
    vec![format!(
        "{}: {n} runs were made without real-time priority, which this user may not use: their figures are those of fair scheduling.",
        system.name
    )]
}

/// What casts doubt on the figures, by system.
pub(super) fn doubts(given: &Given) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for system in &given.systems {
        let mut seen: Vec<(String, Impact, String, usize)> = Vec::new();
        for run in system.places.iter().filter_map(Place::run) {
            for f in digest::culprits(run) {
                match seen.iter_mut().find(|(id, ..)| *id == f.id) {
                    Some(old) => old.3 += 1,
                    None => seen.push((f.id.clone(), f.impact, f.title.clone(), 1)),
                }
            }
        }
        out.extend(seen.into_iter().map(|(_, impact, title, n)| {
            let runs =
                if n > 1 { format!(" (the first of {n} runs with it)") } else { String::new() };
            format!("{}: {}: {title}{runs}", system.name, label::impact(impact))
        }));
    }
    out
}

/// What shorter runs can no longer claim.
pub(super) fn lost(given: &Given) -> Vec<String> {
    let mut out = Vec::new();
    for part in &given.parts {
        for system in &given.systems {
            let Some(place) = system.place(&part.id) else { continue };
            let Some(run) = place.run() else { continue };
            out.extend(lost_of(part, system, run));
        }
    }
    out
}

fn lost_of(part: &Part, system: &Measured, run: &Run) -> Option<String> {
    let share = share(part, run);
    let at = format!("{}, {}", part.title, system.name);
    if part.only_work {
        let words = if run.header.lab.is_some() { &part.lab } else { &part.run };
        let plan = run.header.plan.work.as_ref()?;
        let full = words.repeat.unwrap_or(plan.repeat);
        // What the words at their full length would have done.
        let whole: Vec<String> = words.work.clone().unwrap_or_default();
        let less = plan.works.iter().zip(&whole).any(|(w, full)| {
            let amount =
                |t: &str| t.split("loops=").nth(1).map(|n| n.split(',').next().map(str::to_owned));
            amount(full).is_some() && amount(&w.to_string()) != amount(full)
        });
        if plan.repeat >= full && !less {
            return None;
        }
        let amount = if less { ", each of a smaller amount" } else { "" };
        return Some(format!(
            "{at}: {} of {full} repetitions{amount}: the absolute times are not those of the whole work, and their deviation rests on few.",
            plan.repeat
        ));
    }
    if share >= 1.0 {
        return None;
    }
    let n = latency::context(run).map_or(0, |c| run.total(c).1.n);
    Some(format!(
        "{at}: {} activations, {} of the text's: its latest is the latest of so many only, lateness rarer than about 1 in {} was hardly met, and quantiles without support are withheld.",
        grouped(n),
        part_of(share),
        grouped((n / 3).max(1))
    ))
}
