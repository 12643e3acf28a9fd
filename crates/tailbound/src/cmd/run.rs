// SPDX-License-Identifier: MIT OR Apache-2.0
//! `run` and `measure`: a plan, a session, an answer.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tailbound_core::Run;
use tailbound_core::record::Round;
use tailbound_host::Root;
use tailbound_run::{Output, Request};
use tailbound_stats::Analysis;
use tailbound_sys::signal::Signals;

use crate::cli_probe::ProbeArgs;
use crate::cli_run::{PlanArgs, RunArgs};
use crate::cmd::{rounds, session};
use crate::input::{self, Existing};
use crate::live::Live;
use crate::machine::{self, WhileHeld};
use crate::names;
use crate::say::{self, Failure, Form};

/// `tailbound run`
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    if let (Some(n), None) = (args.rounds.rounds, &args.rounds.as_round) {
        if args.plan.begin_at.is_some() {
            return Err(Failure::usage("--begin-at is for one run, and --rounds makes several"));
        }
        // Its runs, which are processes of their own, have it from this one.
        let _machine = machine::share(WhileHeld::wait_if(args.plan.wait_for_machine))?;
        return rounds::rounds(args, n);
    }
    let round = session::round(args)?;
    one(OneRun {
        request: session::request_of(args)?,
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
    let existing = Existing::replaced_if(plan.force);
    let to_stdout = out == Path::new("-");
    // One of many has no page of its own.
    let own = !to_stdout && round.is_none();
    let by_force = (own && plan.force).then(|| input::sibling(&out, ".html"));
    if let Some(path) = report.or(by_force.as_deref()) {
        input::may_write(path, existing)?;
    }
    let (run, path) = measured(&request, plan, Some(&out), round)?;
    let analysis = Analysis::of(&run);
    let page = || {
        let name = path.as_deref().map_or_else(|| run.header.id.clone(), input::name);
        tailbound_report::html(std::slice::from_ref(&analysis), &[name])
    };
    let report = match report {
        Some(given) => input::write(given, &page(), existing).map(|()| Some(given.to_owned()))?,
        None if own => Some(names::write(&input::sibling(&out, ".html"), &page(), existing)?),
        None => None,
    };
    if to_stdout {
        return Ok(status(&run));
    }
    answer(&analysis, plan)?;
    if !plan.json && !plan.brief {
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
    let mut request = Request { bare: true, ..session::request(&args.plan)? };
    request.config.probe = Some(probe.spec.clone());
    let out = args.plan.out.as_deref();
    let to_stdout = out == Some(Path::new("-"));
    let (run, path) = measured(&request, &args.plan, out, None)?;
    if to_stdout {
        return Ok(status(&run));
    }
    answer(&Analysis::of(&run), &args.plan)?;
    if !args.plan.json && !args.plan.brief {
        written(&[("Run file", path.as_deref())])?;
    }
    Ok(status(&run))
}

pub(crate) fn measured(
    request: &Request,
    args: &PlanArgs,
    out: Option<&Path>,
    round: Option<Round>,
) -> Result<(Run, Option<PathBuf>), Failure> {
    let (mut session, probe) = session::prepared(request, args, Root::real(), round)?;
    // In virtual time nothing that goes on beside it matters.
    session.machine = match args.virtual_time {
        true => None,
        false => Some(machine::share(WhileHeld::wait_if(args.wait_for_machine))?),
    };
    let output = match out {
        Some(path) => Output::open(path, &session.plan, Existing::replaced_if(args.force))?,
        None => Output::none(),
    };
    let signals = Signals::block_and_open().map_err(Failure::cannot)?;
    let mut live = Live::new(args.quiet, args.color.when);
    session.refresh_ms = live.refresh_ms();
    let made = tailbound_run::run(session, probe, output, &signals, &mut |view| live.show(&view));
    live.clear();
    Ok(made?)
}

fn answer(analysis: &Analysis<'_>, args: &PlanArgs) -> Result<(), Failure> {
    if args.brief {
        return say::answer(&tailbound_report::brief(analysis));
    }
    let form = Form::of(args.json, args.color.when);
    form.answer(
        || tailbound_report::json(analysis),
        |style| tailbound_report::text(analysis, style),
    )
}

pub(super) fn status(run: &Run) -> ExitCode {
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
