// SPDX-License-Identifier: MIT OR Apache-2.0
//! `bound`: how late it can be beyond what was seen, or why that cannot be said.

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use tailbound_core::requirement::Rate;
use tailbound_core::{Outcome, Run};
use tailbound_import::Options;
use tailbound_report::theory::RecordedBound;
use tailbound_report::{bound as words, pictures};
use tailbound_stats::bound::{BlockMaxima, Settings, Statement, bound as state, outcome, worst};

use crate::cli_bound::BoundArgs;
use crate::cmd::bound_here;
use crate::cmd::bound_theory::{self, Theory};
use crate::cmd::plan;
use crate::flags;
use crate::input::{self, Existing};
use crate::say::{self, Failure};

/// `tailbound bound`
pub(crate) fn bound(args: &BoundArgs) -> Result<ExitCode, Failure> {
    let settings = settings(args)?;
    if args.runs.is_empty() && args.deadline.is_some() {
        return Err(Failure::usage(
            "--deadline: a run shows whether it holds, and a theoretical bound of observed sections does not: give a run",
        ));
    }
    let theory = theory(args)?;
    if args.svg.is_some() && args.runs.len() != 1 {
        return Err(Failure::usage("--svg: one picture shows one run; give one"));
    }
    let mut statements: Vec<(String, Option<Rate>, Statement)> = Vec::new();
    for path in &args.runs {
        let run = read(args, path)?;
        if let Some(theory) = &theory {
            let other = theory.bound.belongs(&run, &input::name(path));
            other.map_err(flags::refused("--theory"))?;
        }
        let rate = run.header.plan.requirement.rate;
        statements.push((input::name(path), rate, state(&BlockMaxima::of(&run), &settings)));
    }
    if let (Some(out), [(.., statement)]) = (&args.svg, statements.as_slice()) {
        let figure = pictures::returns(statement).ok_or_else(|| {
            Failure::usage("--svg: this run has no maxima per second, so there is no plot")
        })?;
        input::write(out, &figure.standalone(), Existing::replaced_if(args.force))?;
    }
    if args.svg.as_deref() == Some(Path::new("-")) {
        // The picture is the answer.
    } else if args.json {
        let mut answer = words::json(&statements);
        if let Some(t) = &theory {
            answer["theory"] = tailbound_report::theory::json(&t.bound.record, &t.bound.answer);
            if let Some(kernel) = &t.bound.kernel {
                answer["kernel"] = json!(kernel);
            }
            answer["machine"] = json!(t.bound.machine);
            if let Some(here) = &t.here {
                answer["here"] = here.json();
            }
        }
        say::answer_json(&answer)?;
    } else {
        let style = say::style(args.color.when);
        let mut texts: Vec<String> =
            statements.iter().map(|(n, rate, s)| words::text(s, n, *rate, style)).collect();
        if let (Some(t), Some(file)) = (&theory, &args.theory) {
            let name = input::name(file);
            let name = t.here.as_ref().map_or(name, RecordedBound::name);
            texts.push(tailbound_report::theory::text(
                &t.bound.record,
                &t.bound.answer,
                &name,
                style,
            ));
            texts.extend(t.here.as_ref().map(|here| here.text(style)));
        }
        say::answer_in(&texts.join("\n"), style)?;
    }
    let worst = worst(statements.iter().map(|(_, rate, s)| outcome(s, *rate).0));
    if worst.exit_status() == 0 && theory.is_some_and(|t| !t.bound.answer.refused.is_empty()) {
        return Ok(ExitCode::from(Outcome::Undecided.exit_status()));
    }
    Ok(ExitCode::from(worst.exit_status()))
}

/// From a file, or recorded now.
fn theory(args: &BoundArgs) -> Result<Option<Theory>, Failure> {
    let Some(file) = args.theory.as_deref() else { return Ok(None) };
    if file == Path::new(bound_theory::HERE) {
        return bound_here::record(args).map(Some);
    }
    if args.duration.is_some() || args.cpus.is_some() {
        return Err(Failure::usage("-D and -c are of --theory here: a file is read as it is"));
    }
    Ok(Some(Theory { bound: bound_theory::read(file)?, here: None }))
}

fn settings(args: &BoundArgs) -> Result<Settings, Failure> {
    let confidence = plan::confidence(args.confidence)?;
    let extrapolate: f64 = args.extrapolate.parse().map_err(|_| {
        Failure::usage(format!("--extrapolate: `{}` is not 10 or 100", args.extrapolate))
    })?;
    Ok(Settings {
        confidence,
        extrapolate,
        above_ns: args
            .above
            .iter()
            .map(|t| flags::positive_time("--above", t))
            .collect::<Result<_, _>>()?,
        deadline_ns: args
            .deadline
            .as_deref()
            .map(|t| flags::positive_time("--deadline", t))
            .transpose()?,
        seed: args.seed,
    })
}

fn read(args: &BoundArgs, path: &Path) -> Result<Run, Failure> {
    if args.interval.is_none() && args.unit.is_none() {
        return input::run(path);
    }
    let unit_ns = args.unit.as_deref().map(|u| match u {
        "ms" => 1_000_000,
        "us" => 1000,
        _ => 1,
    });
    let interval_ns =
        args.interval.as_deref().map(|t| flags::positive_time("--interval", t)).transpose()?;
    let options = Options { unit_ns, interval_ns, ..Options::default() };
    input::import(path, None, &options, None)
}
