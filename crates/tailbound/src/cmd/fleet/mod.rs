// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fleet`: a campaign on many machines at once.
//!
//! Not here: how machines are reached and held, and what became of their runs (`tailbound_fleet::engine`).

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};
use tailbound_core::plan::RunConfig;
use tailbound_fleet::engine::fleet::{self, Plan, There};
use tailbound_fleet::engine::results::FleetRuns;
use tailbound_fleet::engine::survey::{self, SelectionError};
use tailbound_fleet::engine::{EngineError, Power, Target, Targets};
use tailbound_series::campaign as series;

use crate::caller::Machine;
use crate::cli_fleet::{
    Fleet, FleetPowerArgs, FleetRunArgs, FleetTargetsArgs, Format, OnArgs, PowerChange,
};
use crate::consent::{self, Agreement};
use crate::flags;
use crate::names;
use crate::say::{self, Failure, from_library};
use crate::sibling;

from_library!(SelectionError);

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
    Ok(survey::selected(&on.on, &on.target)?)
}

fn targets(args: &FleetTargetsArgs) -> Result<ExitCode, Failure> {
    let (_, some) = chosen(&args.on)?;
    let asked = survey::facts(&some);
    let all_answered = asked.iter().all(Result::is_ok);
    let rows = some.iter().zip(&asked);
    if args.on.json {
        let rows: Vec<Value> = rows.map(|(t, f)| survey::json(t, f)).collect();
        say::answer_json(&json!({ "targets": rows }))?;
    } else {
        for (target, facts) in rows {
            say::answer(&survey::text(target, facts))?;
        }
    }
    Ok(ExitCode::from(if all_answered { 0 } else { 3 }))
}

fn power(args: &FleetPowerArgs) -> Result<ExitCode, Failure> {
    if args.on.target.is_empty() {
        return Err(Failure::usage("name the machines: --target NAMES"));
    }
    let what = match args.what {
        PowerChange::Cycle => Power::Cycle,
    };
    let (_, some) = chosen(&args.on)?;
    let heard = |target: &str, line: &str| say::note(&format!("{target}: {line}"));
    let done = survey::power(&some, what, &heard);
    match args.on.json {
        true => say::answer_json(&survey::power_json(&some, &done))?,
        false => say::answer(&survey::power_text(&some, &done))?,
    }
    Ok(ExitCode::from(if done.iter().all(Result::is_ok) { 0 } else { 3 }))
}

fn run(args: &FleetRunArgs) -> Result<ExitCode, Failure> {
    if !(args.scale > 0.0 && args.scale <= 1.0) {
        let text = format!("--scale {}: write a share above 0 and up to 1", args.scale);
        return Err(Failure::usage(text));
    }
    let lead = flags::given_time("--aligned", args.aligned.as_ref())?;
    let aligned = lead.map(|ns| Duration::from_nanos(ns.unsigned_abs()));
    let (all, some) = chosen(&args.on)?;
    let campaign = series::find(&args.name)?;
    let parts = series::wanted(&campaign, &args.only)?;
    if !campaign.shipped {
        let words: Vec<&RunConfig> = parts.iter().map(|p| &p.run).collect();
        consent::ask(&args.name, &words, Agreement::given_if(args.yes))?;
    }
    let default = || PathBuf::from(format!("{}.fleet", names::plain(&campaign.file.name)));
    let out = args.out.clone().unwrap_or_else(default);
    let own = sibling::MACHINE.file().map_err(Failure::cannot)?;
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
    for outcome in &ended {
        // Runs of before may be complete all the same.
        if let Some(e) = &outcome.error {
            say::note(&format!("{}: {e}", outcome.target));
        }
    }
    let runs = FleetRuns::of(&out, &ended, &parts, &mut Machine::default());
    if args.on.json {
        say::answer_json(&runs.json(&out))?;
    } else if args.format == Format::Ktap {
        say::answer(&runs.ktap())?;
    } else {
        say::answer(&format!("{}\nRuns      {}", runs.text(), out.display()))?;
    }
    Ok(ExitCode::from(runs.exit_status()))
}
