// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether everything a campaign file refers to is there; the line where it is not.
//!
//! Context: COLD. The TOML reader has found wrong words and types before. Whether the words of a run
//! mean something is found where they are resolved, as for any other run.

use super::{CampaignFile, Claim, Figure, Side, Statistic, tasks};

/// Checks `file`, whose text is `text`.
pub(super) fn check(file: &CampaignFile, text: &str) -> Result<(), String> {
    let at = |table: &'static str, nth: usize| {
        move |why: String| format!("{}{why}", place(text, table, nth))
    };
    plain(&file.name).map_err(|e| format!("name: {e}"))?;
    if file.steps.is_empty() {
        return Err("no [[step]]: a campaign measures something".to_owned());
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
            return Err(at("`tasks` and `variant` cannot both be given".to_owned()));
        }
        let mut own: Vec<&str> = Vec::new();
        for v in &step.variants {
            plain(&v.id).and_then(|()| once(&mut own, &v.id)).map_err(at)?;
        }
    }
    let parts: Vec<String> = file.parts().into_iter().map(|p| p.id).collect();
    for (i, id) in parts.iter().enumerate() {
        if parts.iter().skip(i + 1).any(|other| other == id) {
            return Err(format!(
                "two runs are called `{id}`: choose other ids for steps and variants"
            ));
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

fn check_figure(file: &CampaignFile, figure: &Figure, parts: &[String]) -> Result<(), String> {
    for system in figure.values.keys() {
        known_system(file, system)?;
    }
    let (step, statistic) = match (&figure.step, &figure.statistic, &figure.cannot) {
        (Some(step), Some(statistic), None) => (step, statistic),
        (None, None, Some(_)) => return Ok(()),
        _ => {
            return Err(format!(
                "figure `{}`: give `step` and `statistic`, or `cannot` with the reason",
                figure.name
            ));
        }
    };
    known_part(step, parts)?;
    let statistic: Statistic = statistic.parse()?;
    if statistic.is_time() != figure.unit.is_time() {
        let what = if statistic.is_time() { "a time: ns, us, ms or s" } else { "no unit of time" };
        return Err(format!("figure `{}`: its statistic needs {what} as `unit`", figure.name));
    }
    Ok(())
}

fn check_claim(file: &CampaignFile, claim: &Claim, parts: &[String]) -> Result<(), String> {
    let Some((left, _, right)) = claim.sides()? else { return Ok(()) };
    for side in [left, right] {
        if let Side::Ours { system, part, .. } = side {
            known_system(file, &system)?;
            known_part(&part, parts)?;
        }
    }
    Ok(())
}

fn known_system(file: &CampaignFile, id: &str) -> Result<(), String> {
    match file.system(id) {
        Some(_) => Ok(()),
        None => {
            let all: Vec<&str> = file.systems.iter().map(|s| s.id.as_str()).collect();
            Err(format!("no system is called `{id}`; there are {}", all.join(", ")))
        }
    }
}

fn known_part(id: &str, parts: &[String]) -> Result<(), String> {
    if parts.iter().any(|p| p == id) {
        return Ok(());
    }
    Err(format!("no run is called `{id}`; there are {}", parts.join(", ")))
}

/// A name that can be that of a file.
fn plain(id: &str) -> Result<(), String> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    let begins = id.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && id.len() <= 60 && id.chars().all(good) {
        return Ok(());
    }
    Err(format!(
        "`{id}`: a name is up to 60 of a-z, A-Z, 0-9, `_`, `+`, `.`, `-`, and begins with a letter or digit"
    ))
}

fn once<'a>(ids: &mut Vec<&'a str>, id: &'a str) -> Result<(), String> {
    if ids.contains(&id) {
        return Err(format!("`{id}` is there twice"));
    }
    ids.push(id);
    Ok(())
}

/// `line 17: ` of the nth table of that name, counted from 0.
fn place(text: &str, table: &str, nth: usize) -> String {
    let lines = text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with(table));
    lines.map(|(i, _)| i + 1).nth(nth).map_or_else(String::new, |n| format!("line {n}: "))
}
