// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the options of `run` and `measure` to a session, with everything checked and nothing started.

use tailbound_core::plan::RunConfig;
use tailbound_core::record::Round;
use tailbound_host::Root;
use tailbound_probe::Prepared;
use tailbound_run::{Request, Session, Setting};

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
            consent::ask(&path.display().to_string(), &[&file], Agreement::given_if(args.yes))?;
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
    let setting = Setting {
        threads: args.one_per_cpu.flatten(),
        begin_at: args.begin_at.as_deref(),
        virtual_time: args.virtual_time,
        round,
    };
    let (session, probe) = Session::prepared(request, setting, root)?;
    let existing = Existing::replaced_if(args.force);
    let actions = args.threshold.read()?.actions(&session.plan, existing)?;
    Ok((Session { actions, ..session }, probe))
}
