// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether everything a campaign file refers to is there; the line where it is not.
//!
//! The TOML reader has found wrong words and types before. Whether the words of a run
//! mean something is found where they are resolved, as for any other run.

use super::{CampaignError, CampaignFile, Claim, Fault, Figure, Side, Statistic, TimedFrom, tasks};

/// Checks `file`, whose text is `text`.
pub(super) fn check(file: &CampaignFile, text: &str) -> Result<(), CampaignError> {
    let at = |table: &'static str, nth: usize| {
        move |fault: Fault| CampaignError::At { line: line_of(text, table, nth), fault }
    };
    let whole = |fault: Fault| CampaignError::At { line: None, fault };
    plain(&file.name).map_err(|e| whole(Fault::Name(Box::new(e))))?;
    if file.steps.is_empty() {
        return Err(whole(Fault::NoStep));
    }
    let mut ids: Vec<&str> = Vec::new();
    for (i, system) in file.systems.iter().enumerate() {
        plain(&system.id).and_then(|()| once(&mut ids, &system.id)).map_err(at("[[system]]", i))?;
    }
    let mut ids: Vec<&str> = Vec::new();
    for (i, step) in file.steps.iter().enumerate() {
        let at = at("[[step]]", i);
        plain(&step.id).and_then(|()| once(&mut ids, &step.id)).map_err(at)?;
        tasks(step).map_err(at)?;
        if step.tasks.is_some() && !step.variants.is_empty() {
            return Err(at(Fault::TasksAndVariants));
        }
        let is_inside = step.not_in_lab.is_none() || step.only_work || step.tasks.is_some();
        if step.timed_from == TimedFrom::Outside && is_inside {
            return Err(at(Fault::Outside));
        }
        let mut own: Vec<&str> = Vec::new();
        for v in &step.variants {
            plain(&v.id).and_then(|()| once(&mut own, &v.id)).map_err(at)?;
        }
    }
    let parts: Vec<String> = file.parts().into_iter().map(|p| p.id).collect();
    for (i, id) in parts.iter().enumerate() {
        if parts.iter().skip(i.saturating_add(1)).any(|other| other == id) {
            return Err(whole(Fault::SameRun(id.clone())));
        }
    }
    for (i, figure) in file.figures.iter().enumerate() {
        check_figure(file, figure, &parts).map_err(at("[[figure]]", i))?;
    }
    for (i, claim) in file.claims.iter().enumerate() {
        check_claim(file, claim, &parts).map_err(at("[[claim]]", i))?;
    }
    Ok(())
}

fn check_figure(file: &CampaignFile, figure: &Figure, parts: &[String]) -> Result<(), Fault> {
    for system in figure.values.keys() {
        known_system(file, system)?;
    }
    let (step, statistic) = match (&figure.step, &figure.statistic, &figure.cannot) {
        (Some(step), Some(statistic), None) => (step, statistic),
        (None, None, Some(_)) => return Ok(()),
        _ => {
            return Err(Fault::Figure(figure.name.clone()));
        }
    };
    known_part(step, parts)?;
    let statistic: Statistic = statistic.parse()?;
    if statistic.is_time() != figure.unit.is_time() {
        return Err(Fault::Unit { name: figure.name.clone(), time: statistic.is_time() });
    }
    Ok(())
}

fn check_claim(file: &CampaignFile, claim: &Claim, parts: &[String]) -> Result<(), Fault> {
    let Some((left, _, right)) = claim.sides()? else { return Ok(()) };
    for side in [left, right] {
        if let Side::Ours { system, part, .. } = side {
            known_system(file, &system)?;
            known_part(&part, parts)?;
        }
    }
    Ok(())
}

fn known_system(file: &CampaignFile, id: &str) -> Result<(), Fault> {
    match file.system(id) {
        Some(_) => Ok(()),
        None => {
            let known = file.systems.iter().map(|s| s.id.clone()).collect();
            Err(Fault::NoSystem { name: id.to_owned(), known })
        }
    }
}

fn known_part(id: &str, parts: &[String]) -> Result<(), Fault> {
    if parts.iter().any(|p| p == id) {
        return Ok(());
    }
    Err(Fault::NoRun { name: id.to_owned(), known: parts.to_vec() })
}

/// A name that can be that of a file.
fn plain(id: &str) -> Result<(), Fault> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    let begins = id.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && id.len() <= 60 && id.chars().all(good) {
        return Ok(());
    }
    Err(Fault::NotPlain(id.to_owned()))
}

fn once<'a>(ids: &mut Vec<&'a str>, id: &'a str) -> Result<(), Fault> {
    if ids.contains(&id) {
        return Err(Fault::Twice(id.to_owned()));
    }
    ids.push(id);
    Ok(())
}

/// The line of the nth table of that name, counted from 0.
fn line_of(text: &str, table: &str, nth: usize) -> Option<usize> {
    let lines = text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with(table));
    lines.map(|(i, _)| i.saturating_add(1)).nth(nth)
}
