// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fleet`: a campaign on many machines at once.
//!
//! Not here: how machines are reached and held (`tailbound_fleet::engine`).

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tailbound_core::campaign::Part;
use tailbound_core::plan::RunConfig;
use tailbound_fleet::engine::aligned::Aligned;
use tailbound_fleet::engine::fleet::{self, Outcome, Plan, There};
use tailbound_fleet::engine::{EngineError, Facts, Power, Target, Targets, of, spread};
use tailbound_report::cases::{self, Status, ktap};
use tailbound_series::campaign::{self as series, folder};
use tailbound_stats::campaign::State;

use crate::caller::Machine;
use crate::cli_fleet::{
    Fleet, FleetPowerArgs, FleetRunArgs, FleetTargetsArgs, Format, OnArgs, PowerChange,
};
use crate::consent;
use crate::names;
use crate::say::{self, Failure};
use crate::sibling::Program;

/// `tailbound fleet`
pub(crate) fn fleet(what: &Fleet) -> Result<ExitCode, Failure> {
    match what {
        Fleet::Targets(args) => targets(args),
        Fleet::Run(args) => run(args),
        Fleet::Power(args) => power(args),
    }
}

/// The file, and those of its targets that were asked for.
fn chosen(on: &OnArgs) -> Result<(Targets, Vec<Target>), Failure> {
    let mut all = Targets::read(&on.on).map_err(Failure::usage)?;
    all.targets =
        spread(&all.targets).map_err(|e| Failure::cannot(format!("{}: {e}", on.on.display())))?;
    let is = |t: &Target, word: &String| t.name == *word || t.tags.contains(word);
    for word in &on.target {
        if !all.targets.iter().any(|t| is(t, word)) {
            let known: Vec<&str> = all.targets.iter().map(|t| t.name.as_str()).collect();
            return Err(Failure::usage(format!(
                "--target {word}: no target has this name or tag; there are {}",
                known.join(", ")
            )));
        }
    }
    let wanted = |t: &&Target| on.target.is_empty() || on.target.iter().any(|w| is(t, w));
    let some = all.targets.iter().filter(wanted).cloned().collect();
    Ok((all, some))
}

fn targets(args: &FleetTargetsArgs) -> Result<ExitCode, Failure> {
    let (_, some) = chosen(&args.on)?;
    let asked: Vec<Result<Facts, EngineError>> = thread::scope(|scope| {
        let begun: Vec<_> = some.iter().map(|t| scope.spawn(|| of(t).list(None))).collect();
        let bug = || EngineError::Failed { what: "asking", why: "a bug of tailbound".to_owned() };
        begun.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(bug()))).collect()
    });
    let all_answered = asked.iter().all(Result::is_ok);
    if args.on.json {
        let rows: Vec<Value> = some.iter().zip(&asked).map(|(t, f)| described(t, f)).collect();
        say::answer_json(&json!({ "targets": rows }))?;
    } else {
        for (target, facts) in some.iter().zip(&asked) {
            let state = match facts {
                Ok(f) => {
                    let held = f.held.as_ref().map_or("free".to_owned(), |w| format!("held: {w}"));
                    format!("{}, {}, {} CPUs; {held}", f.kernel, f.architecture, f.cpus)
                }
                Err(e) => format!("unknown: {e}"),
            };
            say::answer(&format!("{}  {}  {state}", target.name, target.reach.engine()))?;
        }
    }
    Ok(ExitCode::from(if all_answered { 0 } else { 3 }))
}

fn described(target: &Target, facts: &Result<Facts, EngineError>) -> Value {
    let mut row = json!({
        "name": target.name,
        "engine": target.reach.engine().to_string(),
        "tags": target.tags,
    });
    let more = match facts {
        Ok(f) => json!({
            "architecture": f.architecture, "kernel": f.kernel, "cpus": f.cpus, "held": f.held,
        }),
        Err(e) => json!({ "error": e.to_string() }),
    };
    if let (Some(row), Value::Object(more)) = (row.as_object_mut(), more) {
        row.extend(more);
    }
    row
}

fn power(args: &FleetPowerArgs) -> Result<ExitCode, Failure> {
    if args.on.target.is_empty() {
        return Err(Failure::usage("name the machines: --target NAMES"));
    }
    let what = match args.what {
        PowerChange::Cycle => Power::Cycle,
    };
    let (_, some) = chosen(&args.on)?;
    let one = |t: &Target| of(t).power(what, &mut |line| say::note(&format!("{}: {line}", t.name)));
    let done: Vec<Result<(), EngineError>> = thread::scope(|scope| {
        let begun: Vec<_> = some.iter().map(|t| scope.spawn(move || one(t))).collect();
        let bug = || EngineError::Failed { what: "asking", why: "a bug of tailbound".to_owned() };
        begun.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(bug()))).collect()
    });
    let whys: Vec<Option<String>> =
        done.iter().map(|d| d.as_ref().err().map(ToString::to_string)).collect();
    if args.on.json {
        let rows = some.iter().zip(&whys);
        let rows: Vec<Value> = rows
            .map(|(t, why)| json!({ "name": t.name, "answers": why.is_none(), "why": why }))
            .collect();
        say::answer_json(&json!({ "targets": rows }))?;
    } else {
        for (target, why) in some.iter().zip(&whys) {
            let state = why.as_deref().unwrap_or("off and on; it answers");
            say::answer(&format!("{}  {state}", target.name))?;
        }
    }
    Ok(ExitCode::from(if done.iter().all(Result::is_ok) { 0 } else { 3 }))
}

/// One run of one target.
struct Case {
    target: String,
    part: String,
    /// Why it is not whole; nothing where it is.
    why: Option<String>,
    aligned: Option<Aligned>,
}

impl Case {
    /// Only a run that came to its end passes: what could not be made, for lack of a tool, a tracer or a machine, fails.
    fn result(&self) -> cases::Case {
        let status = self.why.clone().map_or(Status::Pass, Status::Fail);
        cases::Case { name: format!("{}.{}", self.target, self.part), status }
    }
}

fn run(args: &FleetRunArgs) -> Result<ExitCode, Failure> {
    if !(args.scale > 0.0 && args.scale <= 1.0) {
        let text = format!("--scale {}: write a share above 0 and up to 1", args.scale);
        return Err(Failure::usage(text));
    }
    let lead = args.aligned.as_deref().map(tailbound_core::units::parse_ns).transpose();
    let lead = lead.map_err(|e| Failure::usage(format!("--aligned: {e}")))?;
    let aligned = lead.map(|ns| Duration::from_nanos(ns.unsigned_abs()));
    let (all, some) = chosen(&args.on)?;
    let campaign = series::find(&args.name)?;
    let parts = series::wanted(&campaign, &args.only)?;
    if !campaign.shipped {
        let words: Vec<&RunConfig> = parts.iter().map(|p| &p.run).collect();
        consent::ask(&args.name, &words, args.yes)?;
    }
    let default = || PathBuf::from(format!("{}.fleet", names::plain(&campaign.file.name)));
    let out = args.out.clone().unwrap_or_else(default);
    let own = Program::Machine.found()?;
    let names: Vec<String> = parts.iter().map(|p| p.id.clone()).collect();
    let plan = Plan {
        targets: &some,
        all: &all,
        campaign: &campaign.text,
        parts: &names,
        scale: args.scale,
        own: &own,
        folder: &out,
        aligned,
        there: if args.keep { There::Keep } else { There::Remove },
    };
    let heard = |target: &str, line: &str| {
        if !args.quiet {
            say::note(&format!("{target}: {line}"));
        }
    };
    let ended = fleet::run(plan, &heard).map_err(|e| match e {
        EngineError::OtherCampaign { .. }
        | EngineError::NotTogether { .. }
        | EngineError::Cannot { .. } => Failure::usage(e),
        e => Failure::cannot(e),
    })?;
    let mut rows = Vec::new();
    let mut status = 0;
    for outcome in &ended {
        // Runs of before may be complete all the same.
        if let Some(e) = &outcome.error {
            say::note(&format!("{}: {e}", outcome.target));
        }
        let (cases, its) = made(&out, outcome, &parts);
        rows.extend(cases);
        status = worse(status, its);
    }
    answer(args, &out, &rows)?;
    Ok(ExitCode::from(status))
}

/// What could not be made outweighs what was cut off.
fn worse(a: u8, b: u8) -> u8 {
    if a == 3 || b == 3 { 3 } else { a.max(b) }
}

/// What became of each run of a target, from its files; and the exit status for it.
fn made(out: &Path, outcome: &Outcome, parts: &[Part]) -> (Vec<Case>, u8) {
    let found = folder::systems(&out.join(&outcome.target), parts, "", &mut Machine::default());
    let lost = matches!(outcome.error, Some(EngineError::Lost(_)));
    let mut status = match &outcome.error {
        Some(EngineError::Lost(_)) => 5,
        Some(_) => 3,
        None => 0,
    };
    let error = outcome.error.as_ref().map(ToString::to_string);
    let mut cases = Vec::new();
    for part in parts {
        let measured = found.iter().flatten();
        let place = measured.flat_map(|(_, m)| &m.places).find(|p| p.part == part.id);
        let (why, its) = match place.map(|p| &p.state) {
            // Its files are of before, or half there: nothing of a lost lease counts.
            _ if lost => (error.clone(), 5),
            Some(State::Complete(_)) => (None, 0),
            Some(State::Cut(_, how)) => (Some(how.clone()), 5),
            Some(State::Failed(why) | State::NotHere(why)) => (Some(why.clone()), 3),
            Some(State::NotRun) | None => {
                let said = error.clone().or_else(|| outcome.said.get(&part.id).cloned());
                (Some(said.unwrap_or_else(|| "there is no run file".to_owned())), 3)
            }
        };
        status = worse(status, its);
        let aligned = outcome.aligned.get(&part.id).cloned();
        cases.push(Case { target: outcome.target.clone(), part: part.id.clone(), why, aligned });
    }
    (cases, status)
}

fn answer(args: &FleetRunArgs, out: &Path, cases: &[Case]) -> Result<(), Failure> {
    if args.on.json {
        let row = |c: &Case| json!({ "target": c.target, "run": c.part, "complete": c.why.is_none(), "why": c.why, "aligned": c.aligned });
        let rows: Vec<Value> = cases.iter().map(row).collect();
        return say::answer_json(&json!({ "folder": out, "runs": rows }));
    }
    if args.format == Format::Ktap {
        return say::answer(&ktap(&cases.iter().map(Case::result).collect::<Vec<_>>()));
    }
    let mut text = String::new();
    for case in cases {
        let state = case.why.as_ref().map_or_else(|| "complete".to_owned(), Clone::clone);
        text.push_str(&format!("{}  {}  {state}\n", case.target, case.part));
    }
    say::answer(&format!("{text}\nRuns      {}", out.display()))
}
