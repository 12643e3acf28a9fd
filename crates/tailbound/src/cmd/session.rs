// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the options of `run` and `measure` to a session, with everything checked and nothing started.

use std::path::PathBuf;

use tailbound_core::plan::{Plan, RunConfig};
use tailbound_core::record::Round;
use tailbound_host::Root;
use tailbound_probe::Prepared;
use tailbound_run::{Actions, Request, SamplesTo, Session, resolve};

use crate::cli_config;
use crate::cli_run::{PlanArgs, RunArgs};
use crate::consent::{self, Agreement};
use crate::flags;
use crate::input::Existing;
use crate::say::Failure;

/// The place of a run in a series, as `--as-round` gives it; none is of a run alone.
pub(crate) fn round(args: &RunArgs) -> Result<Option<Round>, Failure> {
    let Some(text) = &args.rounds.as_round else { return without_rounds(args).map(|()| None) };
    serde_json::from_str(text).map_err(flags::refused("--as-round"))
}

/// The session of one run.
pub(crate) fn of_run(args: &RunArgs, root: Root) -> Result<Session, Failure> {
    let round = round(args)?;
    let request = request_of(args)?;
    Ok(prepared(&request, &args.plan, root, round)?.0)
}

/// Words that mean nothing without `--rounds`.
fn without_rounds(args: &RunArgs) -> Result<(), Failure> {
    let judge = &args.rounds.judge;
    let word = match () {
        () if !args.rounds.variants.is_empty() => "variants after `--`",
        () if judge.margin.is_some() => "--margin",
        () if judge.margin_time.is_some() => "--margin-time",
        () if judge.require_equivalent => "--require-equivalent",
        () if judge.seed.is_some() => "--seed",
        () => return Ok(()),
    };
    Err(Failure::usage(format!("{word}: only with --rounds N, for example --rounds 30")))
}

/// What all options of `run` ask for.
pub(crate) fn request_of(args: &RunArgs) -> Result<Request, Failure> {
    let mut request = request(&args.plan)?;
    request.config = request.config.over(&args.beside.config()?);
    Ok(request)
}

/// Options of the command line over those of the file.
pub(crate) fn request(args: &PlanArgs) -> Result<Request, Failure> {
    let file = match &args.config {
        None => RunConfig::default(),
        Some(path) => {
            let file = cli_config::in_file(path)?;
            consent::ask(&path.display().to_string(), &[&file], Agreement::of(args.yes))?;
            file
        }
    };
    let mut given = args.measurement.config()?;
    args.threshold.read()?.onto(&mut given, &file)?;
    Ok(Request { config: file.over(&given), bare: false })
}

/// A session with everything checked and nothing started, and its probe.
pub(crate) fn prepared(
    request: &Request,
    args: &PlanArgs,
    root: Root,
    round: Option<Round>,
) -> Result<(Session, Prepared), Failure> {
    let resolved = resolve(request, &root)?;
    one_per_cpu(args.one_per_cpu, &resolved.plan)?;
    let begin_at_ns = args
        .begin_at
        .as_deref()
        .map(tailbound_core::instant::parse)
        .transpose()
        .map_err(flags::refused("--begin-at"))?;
    let exe = if (resolved.plan.loads.is_empty() || resolved.loads_by_default)
        && resolved.plan.work.is_none()
    {
        // Without /proc there is no path, and no default load: the session says so.
        std::env::current_exe().unwrap_or_default()
    } else {
        std::env::current_exe().map_err(|e| {
            Failure::cannot(format!(
                "loads are started from this program, whose path is unknown: {e}"
            ))
        })?
    };
    let session = Session {
        findings: resolved.findings,
        loads_optional: resolved.loads_by_default,
        inventory_late: request.bare,
        virtual_time: args.virtual_time,
        round,
        purpose: resolved.purpose,
        begin_at_ns,
        actions: args
            .threshold
            .read()?
            .actions(&resolved.plan, Existing::replaced_if(args.force))?,
        ..of_plan(resolved.plan, root, exe)
    };
    Ok((session, resolved.probe))
}

/// A session of this plan and of nothing else.
pub(crate) fn of_plan(plan: Plan, root: Root, exe: PathBuf) -> Session {
    Session {
        plan,
        findings: Vec::new(),
        command: std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect(),
        root,
        exe,
        loads_optional: false,
        inventory_late: false,
        virtual_time: false,
        refresh_ms: 0,
        round: None,
        purpose: None,
        machine: None,
        samples: SamplesTo::File,
        begin_at_ns: None,
        actions: Actions::default(),
    }
}

/// Refuses a number of threads that is not the plan's: of cyclictest's users, who write it.
pub(crate) fn one_per_cpu(given: Option<Option<u32>>, plan: &Plan) -> Result<(), Failure> {
    let Some(Some(threads)) = given else { return Ok(()) };
    let planned = plan.tasks.map_or(plan.cpus.len() as u64, u64::from);
    if u64::from(threads) == planned {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "-t {threads}: there is one thread per measured CPU, {planned} here; choose CPUs with --cpus, or write --tasks N for that many unpinned threads"
    )))
}
