// SPDX-License-Identifier: MIT OR Apache-2.0
//! `run` and `measure`: a plan, a session, an answer.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tailbound_core::Run;
use tailbound_core::plan::{Plan, RunConfig, StopRule};
use tailbound_core::record::Round;
use tailbound_core::units;
use tailbound_host::Root;
use tailbound_probe::Prepared;
use tailbound_run::{Output, Request, Session, resolve};
use tailbound_stats::Analysis;
use tailbound_sys::signal::Signals;

use crate::cli::{PlanArgs, RunArgs};
use crate::cli_config;
use crate::cli_probe::ProbeArgs;
use crate::cmd::rounds;
use crate::consent;
use crate::input;
use crate::live::Live;
use crate::machine::{self, WhileHeld};
use crate::names;
use crate::say::{self, Failure};

/// `tailbound run`
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let round = args.rounds.as_round.as_deref().map(rounds::place).transpose()?;
    if let (Some(n), None) = (args.rounds.rounds, &round) {
        if args.plan.begin_at.is_some() {
            return Err(Failure::usage("--begin-at is for one run, and --rounds makes several"));
        }
        // Its runs, which are processes of their own, have it from this one.
        let _machine = machine::share(WhileHeld::of(args.plan.wait_for_machine))?;
        return rounds::rounds(args, n);
    }
    if round.is_none() {
        without_rounds(args)?;
    }
    one(OneRun {
        request: request_of(args)?,
        plan: &args.plan,
        report: args.report.as_deref().filter(|_| round.is_none()),
        round,
    })
}

/// One run with its file and its page.
pub(crate) struct OneRun<'a> {
    pub(crate) request: Request,
    pub(crate) plan: &'a PlanArgs,
    /// Where the page goes, if that was given.
    pub(crate) report: Option<&'a Path>,
    pub(crate) round: Option<Round>,
}

/// Makes it, and answers.
pub(crate) fn one(asked: OneRun<'_>) -> Result<ExitCode, Failure> {
    let OneRun { request, plan, report, round } = asked;
    let out = plan.out.clone().unwrap_or_else(|| default_out(plan, &request));
    let to_stdout = out == Path::new("-");
    // One of many has no page of its own.
    let own = !to_stdout && round.is_none();
    let by_force = (own && plan.force).then(|| input::sibling(&out, ".html"));
    if let Some(path) = report.or(by_force.as_deref()) {
        input::may_write(path, plan.force)?;
    }
    let (run, path) = session(&request, plan, Some(&out), round)?;
    let analysis = Analysis::of(&run);
    let page = || {
        let name = path.as_deref().map_or_else(|| run.header.id.clone(), input::name);
        tailbound_report::html(std::slice::from_ref(&analysis), &[name])
    };
    let report = match report {
        Some(given) => input::write(given, &page(), plan.force).map(|()| Some(given.to_owned()))?,
        // A default file name never collides: the measurement is over.
        None if own && plan.force => {
            let path = input::sibling(&out, ".html");
            input::write(&path, &page(), true).map(|()| Some(path))?
        }
        None if own => Some(names::write_free(&input::sibling(&out, ".html"), &page())?),
        None => None,
    };
    answer(&analysis, plan, to_stdout)?;
    if !plan.json && !plan.brief && !to_stdout {
        say::answer(&tailbound_report::decide::benchmarks::text(&run))?;
        written(&[("Run file", path.as_deref()), ("Report", report.as_deref())])?;
    }
    Ok(status(&run))
}

/// Where the files are that were written.
fn written(files: &[(&str, Option<&Path>)]) -> Result<(), Failure> {
    let line = |(what, path): &(&str, Option<&Path>)| {
        let path = (*path)?;
        let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Some(format!("{what:<9} {}\n", whole.display()))
    };
    let lines: String = files.iter().filter_map(line).collect();
    if lines.is_empty() { Ok(()) } else { say::answer(&format!("\n{lines}")) }
}

/// `tailbound measure NAME`
pub(crate) fn probe(probe: &ProbeArgs) -> Result<ExitCode, Failure> {
    let args = &probe.args;
    let mut request = Request { bare: true, ..request(&args.plan)? };
    request.config.probe = Some(probe.spec.clone());
    let out = args.plan.out.as_deref();
    let to_stdout = out == Some(Path::new("-"));
    let (run, path) = session(&request, &args.plan, out, None)?;
    answer(&Analysis::of(&run), &args.plan, to_stdout)?;
    if !args.plan.json && !args.plan.brief && !to_stdout {
        written(&[("Run file", path.as_deref())])?;
    }
    Ok(status(&run))
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
            consent::ask(&path.display().to_string(), &[&file], args.yes)?;
            file
        }
    };
    let mut given = args.measurement.config()?;
    if let Some(limit) = &args.break_at {
        let ns = units::parse_ns(limit).map_err(|e| Failure::usage(format!("--break: {e}")))?;
        if ns <= 0 {
            return Err(Failure::usage("--break: must be more than 0"));
        }
        given.deadline = Some(limit.clone());
        given.until = Some(StopRule::Exceedance.to_string());
        if given.blame.is_none() && given.observe.is_none() {
            given.blame = Some(format!("{limit},if-possible"));
        }
    }
    Ok(Request { config: file.over(&given), bare: false })
}

/// A session with everything checked and nothing started, and its probe.
fn prepared(
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
        .map_err(|e| Failure::usage(format!("--begin-at: {e}")))?;
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
        plan: resolved.plan,
        findings: resolved.findings,
        command: std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect(),
        root,
        exe,
        loads_optional: resolved.loads_by_default,
        inventory_late: request.bare,
        virtual_time: args.virtual_time,
        refresh_ms: 0,
        round,
        purpose: resolved.purpose,
        machine: None,
        begin_at_ns,
    };
    Ok((session, resolved.probe))
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

pub(crate) fn session(
    request: &Request,
    args: &PlanArgs,
    out: Option<&Path>,
    round: Option<Round>,
) -> Result<(Run, Option<PathBuf>), Failure> {
    let (mut session, probe) = prepared(request, args, Root::real(), round)?;
    // In virtual time nothing that goes on beside it matters.
    session.machine = match args.virtual_time {
        true => None,
        false => Some(machine::share(WhileHeld::of(args.wait_for_machine))?),
    };
    let output = match out {
        Some(path) => Output::open(path, &session.plan, args.force)?,
        None => Output::none(),
    };
    let signals = Signals::block_and_open().map_err(Failure::cannot)?;
    let mut live = Live::new(args.quiet, &args.color.when);
    session.refresh_ms = live.refresh_ms();
    let made = tailbound_run::run(session, probe, output, &signals, &mut |view| live.show(&view));
    live.clear();
    Ok(made?)
}

fn answer(analysis: &Analysis<'_>, args: &PlanArgs, to_stdout: bool) -> Result<(), Failure> {
    if to_stdout {
        return Ok(());
    }
    if args.json {
        return say::answer_json(&tailbound_report::json(analysis));
    }
    if args.brief {
        return say::answer(&tailbound_report::brief(analysis));
    }
    let style = say::style(&args.color.when);
    say::answer_in(&tailbound_report::text(analysis, style), style)
}

fn status(run: &Run) -> ExitCode {
    ExitCode::from(run.verdict.as_ref().map_or(4, |v| v.outcome.exit_status()))
}

/// `tailbound-20261121T221503Z.tailbound.jsonl` in this folder; a campaign file and another probe
/// than the usual stand in it, and a number where it is taken.
fn default_out(plan: &PlanArgs, request: &Request) -> PathBuf {
    let now = tailbound_core::utc::from_ns(tailbound_sys::clock::now_ns(
        tailbound_sys::clock::CLOCK_REALTIME,
    ));
    let stamp: String = now.chars().filter(char::is_ascii_alphanumeric).collect();
    let campaign = plan.config.as_deref().and_then(Path::file_stem);
    let campaign = campaign.map(|stem| stem.to_string_lossy().into_owned());
    let mut name = String::from("tailbound");
    for word in campaign.iter().chain(&request.config.probe) {
        name.push_str(&format!("-{}", names::plain(word)));
    }
    names::free(Path::new(&format!("{name}-{stamp}.tailbound.jsonl")), &[".html"])
}

#[cfg(test)]
mod tests;
