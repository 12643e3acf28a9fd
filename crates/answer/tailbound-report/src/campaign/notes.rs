// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a reader of a campaign must know: headline, what differs from the publication, and what runs
//! shorter than the publication's can no longer show.
//!
//! Not here: figures.

use tailbound_core::campaign::Part;
use tailbound_core::units::grouped;
use tailbound_core::{Impact, Run};
use tailbound_stats::campaign::{
    CampaignEvidence, CampaignRun, CampaignSystem, Judged, Row, State, Word, part_of, share,
};

use crate::{digest, label};

/// `3 of 4 claims hold, …`
pub(super) fn headline(given: &CampaignEvidence, claims: &[Judged], rows: &[Row]) -> String {
    let all: Vec<&CampaignRun> = given.systems.iter().flat_map(|s| &s.places).collect();
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
            " Claims of the publication: {}, of which confirmed here: {}, refuted: {}, undecidable: {}.",
            claims.len(),
            count(Word::Holds),
            count(Word::DoesNotHold),
            count(Word::Undecidable)
        ));
    }
    let judged: Vec<bool> = rows.iter().filter_map(|r| r.agrees).collect();
    if !judged.is_empty() {
        let agree = judged.iter().filter(|a| **a).count();
        out.push_str(&format!(" Figures that agree: {agree} of {}.", judged.len()));
    }
    out
}

/// What differs between the publication's measurement and this one.
pub(super) fn differs(given: &CampaignEvidence) -> Vec<String> {
    let mut out = given.file.differs.clone();
    for system in &given.systems {
        let Some(run) = system.places.iter().find_map(CampaignRun::run) else { continue };
        let machine = label::machine(run);
        let machine = if machine.is_empty() { "machine unknown".to_owned() } else { machine };
        out.push(format!(
            "Machine: that of the publication is {}; {} is {machine}.",
            given.file.text.machine, system.name
        ));
        out.extend(digest::virtual_time(run).map(|v| format!("{}: {v}.", system.name)));
    }
    for step in &given.file.steps {
        out.extend(step.ours.iter().map(|ours| format!("{}: {ours}.", step.title)));
        let lab = given.systems.iter().flat_map(|s| &s.places).filter_map(CampaignRun::run);
        if lab.into_iter().any(|r| r.header.lab.is_some()) {
            out.extend(step.lab_note.iter().map(|n| format!("{}, in the lab: {n}.", step.title)));
        }
    }
    out.extend(given.systems.iter().flat_map(|s| policies(given, s)));
    out.dedup();
    out
}

/// Runs whose policy is not the one of the words.
fn policies(given: &CampaignEvidence, system: &CampaignSystem) -> Vec<String> {
    let other = |run: &&Run| !run.header.plan.policy.is_realtime() && !run.threads.is_empty();
    let wanted = |p: &CampaignRun| {
        let part = given.parts.iter().find(|part| part.id == p.part);
        part.is_none_or(|p| !p.only_work && p.run.policy.as_deref() != Some("other"))
    };
    let places = system.places.iter().filter(|p| wanted(p));
    let n = places.filter_map(CampaignRun::run).filter(other).count();
    if n == 0 {
        return Vec::new();
    }
    vec![format!(
        "{}: {n} runs were made without real-time priority, which this user may not use: their figures are those of fair scheduling.",
        system.name
    )]
}

/// What makes results unreliable on the figures, by system.
pub(super) fn doubts(given: &CampaignEvidence) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for system in &given.systems {
        let mut seen: Vec<(String, Impact, String, usize)> = Vec::new();
        for run in system.places.iter().filter_map(CampaignRun::run) {
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
            format!("{}: {}: {title}{runs}", system.name, impact)
        }));
    }
    out
}

/// What shorter runs can no longer claim: a sentence per step, over its runs on every system.
pub(super) fn lost(given: &CampaignEvidence) -> Vec<String> {
    let mut out = Vec::new();
    for (at, step) in given.file.steps.iter().enumerate() {
        let parts: Vec<&Part> = given.parts.iter().filter(|p| p.step == at).collect();
        let runs: Vec<(&Part, &Run)> = parts
            .iter()
            .flat_map(|part| {
                let places = given.systems.iter().filter_map(|s| s.place(&part.id));
                places.filter_map(|place| Some((*part, place.run()?)))
            })
            .collect();
        let said = if step.only_work { lost_work(&runs) } else { lost_latency(&runs) };
        out.extend(said.map(|said| format!("{}: {said}", step.title)));
    }
    out
}

/// Of runs that were to count activations.
fn lost_latency(runs: &[(&Part, &Run)]) -> Option<String> {
    let of = |(part, run): &(&Part, &Run)| {
        let share = share(part, run);
        let n = run.judged_total().1.n;
        (share < 1.0).then_some((n, share))
    };
    let short: Vec<(u64, f64)> = runs.iter().filter_map(of).collect();
    let (least, most) = (short.iter().map(|s| s.0).min()?, short.iter().map(|s| s.0).max()?);
    let shares = || short.iter().map(|s| s.1);
    let (low, high) = (shares().fold(f64::INFINITY, f64::min), shares().fold(0.0, f64::max));
    let to = |a: String, b: String| if a == b { a } else { format!("{a} to {b}") };
    Some(format!(
        "{} activations a run, {} of the published number. The maximum comes from that many activations only, latencies rarer than about 1 in {} were hardly seen, and quantiles without support are withheld.",
        to(grouped(least), grouped(most)),
        to(part_of(low), part_of(high)),
        grouped((least / 3).max(1))
    ))
}

/// Of benchmarks: fewer repetitions, or less in each.
fn lost_work(runs: &[(&Part, &Run)]) -> Option<String> {
    let amount = |text: &str| {
        let rest = text.split_once("loops=")?.1;
        rest.split(',').next().and_then(|n| n.parse::<u64>().ok())
    };
    let (mut repeat, mut less) = (None, false);
    for (part, run) in runs {
        let words = if run.header.lab.is_some() { &part.lab } else { &part.run };
        let Some(plan) = &run.header.plan.work else { continue };
        let full = words.repeat.unwrap_or(plan.repeat);
        if plan.repeat < full {
            repeat = Some((plan.repeat, full));
        }
        let whole = words.work.iter().flatten();
        less |= plan.benchmarks.iter().zip(whole).any(|(made, full)| {
            amount(full).is_some_and(|full| amount(&made.to_string()).is_some_and(|n| n < full))
        });
    }
    let few =
        repeat.map(|(n, full)| format!("{n} of {full} repetitions, on which the deviation rests"));
    let small = less.then(|| {
        "a smaller amount in each, whose times are not those of the whole benchmark".to_owned()
    });
    let said: Vec<String> = few.into_iter().chain(small).collect();
    (!said.is_empty()).then(|| format!("{}.", said.join("; ")))
}
