// SPDX-License-Identifier: MIT OR Apache-2.0
//! `run --rounds`: runs of several variants in turn, in random order, and their comparison.
//!
//! ```text
//! arguments ─► every variant parsed and resolved ─► folder ─► tailbound_series::rounds ─► compare
//! ```
//! Nothing is started before every variant was checked.
//! Not here: the folder, the order, which runs are made (`tailbound-series`).

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;
use tailbound_core::Run;
use tailbound_core::utc;
use tailbound_host::Root;
use tailbound_report::compare::{Answer, Proof};
use tailbound_run::{RunError, are_threads, resolve};
use tailbound_series::rounds::{self as series, Series, SeriesLine, Variant};
use tailbound_stats::compare::{Design, Systems};
use tailbound_sys::clock;

use crate::caller::Machine;
use crate::cli::{Cli, Command};
use crate::cli_run::RunArgs;
use crate::cmd::{compare, session};
use crate::input::{self, Existing};
use crate::names;
use crate::say::{self, Failure, Form};

/// `tailbound run --rounds`
pub(crate) fn rounds(args: &RunArgs, rounds: u32) -> Result<ExitCode, Failure> {
    let settings = compare::settings(&args.rounds.judge)?;
    if args.plan.brief {
        let text =
            "--brief is of one run: leave it out, or show each run with `tailbound show --brief`";
        return Err(Failure::usage(text));
    }
    if !(1..=series::ROUNDS_MAX).contains(&rounds) {
        return Err(Failure::usage(format!(
            "--rounds {rounds}: write 1 or more, up to {}, for example 30",
            series::ROUNDS_MAX
        )));
    }
    let common = common_words(std::env::args_os().collect());
    let variants = args
        .rounds
        .variants
        .iter()
        .map(|text| variant(text, &common))
        .collect::<Result<Vec<_>, _>>()?;
    series::comparable(&variants).map_err(Failure::usage)?;
    let now = clock::now_ns(clock::CLOCK_REALTIME);
    let stamp: String = utc::from_ns(now).chars().filter(char::is_ascii_alphanumeric).collect();
    let default = || names::free(Path::new(&format!("tailbound-{stamp}.rounds")), &[]);
    let folder = args.plan.out.clone().unwrap_or_else(default);
    if folder == Path::new("-") {
        return Err(Failure::usage("--out: rounds need a folder: every run has a file of its own"));
    }
    let page = args.report.clone().unwrap_or_else(|| folder.join("compare.html"));
    let asked_seed = args.rounds.judge.seed;
    let mut series = Series {
        id: format!("{stamp}-{}", std::process::id()),
        seed: asked_seed.unwrap_or(now.unsigned_abs() / 1000 % 1_000_000),
        rounds,
        folder,
        variants,
    };
    input::may_write(&page, Existing::Replace)?;
    series.settle(asked_seed, Existing::replaced_if(args.plan.force))?;
    let need = Design::Rounds.units_min();
    if usize::try_from(rounds).is_ok_and(|n| n < need) {
        say::note(&format!(
            "--rounds {rounds}: intervals and verdicts take {need} rounds; with fewer there are figures only. More can be made later, by the same command with the same --out"
        ));
    }
    let mut shown = SeriesLine(say::progress(args.plan.quiet));
    let made = series::make(&series, &common, &mut Machine::default(), &mut shown);
    shown.clear();
    let interrupted = made?;
    if interrupted {
        say::note(
            "Ended by a signal: the whole rounds so far are compared; the same command with the same --out resumes.",
        );
    }
    let order: Vec<String> = series.variants.iter().map(|v| v.name.clone()).collect();
    let runs = input::runs(&input::in_folder(&series.folder)?)?;
    // Of a longer series only the rounds asked for.
    let request = |r: &Run| r.header.round.as_ref().is_some_and(|x| x.round < rounds);
    let runs: Vec<Run> = runs.into_iter().filter(request).collect();
    let systems =
        Systems::of(&[(input::name(&series.folder), runs)], &order).map_err(
            |why| match interrupted {
                true => Failure::cut_off(format!("ended by a signal: {why}")),
                false => Failure::usage(why),
            },
        )?;
    let answer = Answer::of(systems, settings);
    input::write(&page, &tailbound_report::html::comparison(&answer), Existing::Replace)?;
    let form = Form::of(args.plan.json, args.plan.color.when);
    form.answer(|| answer.json(), |style| answer.text(style))?;
    if !args.plan.json {
        let shown = |p: &Path| std::path::absolute(p).unwrap_or_else(|_| p.to_owned());
        say::answer(&format!(
            "\nRuns      {}\nReport    {}",
            shown(&series.folder).display(),
            shown(&page).display()
        ))?;
    }
    Ok(ExitCode::from(
        answer.exit_status(Proof::equivalence_if(args.rounds.judge.require_equivalent)),
    ))
}

/// What stands between `run` and `--`.
fn common_words(words: Vec<OsString>) -> Vec<OsString> {
    let end = words.iter().position(|w| w == "--").unwrap_or(words.len());
    words.into_iter().take(end).skip(2).collect()
}

/// One variant from its text; every word of it is checked here.
fn variant(text: &str, common: &[OsString]) -> Result<Variant, Failure> {
    let (name, words) = series::named_words(text).map_err(Failure::usage)?;
    let all = common.iter().cloned().chain(words.iter().map(OsString::from));
    let whole = [OsString::from("tailbound"), OsString::from("run")].into_iter().chain(all);
    let cli = Cli::try_parse_from(whole)
        .map_err(|e| Failure::usage(format!("variant `{name}`: {}", first_line(&e.to_string()))))?;
    let Command::Run(args) = cli.command else {
        return Err(Failure::usage(format!("variant `{name}`: only flags of `run` belong there")));
    };
    args.plan.threshold.read()?.of_many()?;
    let request = session::request_of(&args).map_err(|e| named(&name, e))?;
    let plan = resolve(&request, &Root::real()).map_err(|e| named(&name, e.into()))?.plan;
    are_threads(args.plan.one_per_cpu.flatten(), &plan)
        .map_err(|e| named(&name, RunError::from(e).into()))?;
    Ok(Variant { name, words, plan })
}

fn named(name: &str, e: Failure) -> Failure {
    Failure { text: format!("variant `{name}`: {}", e.text), ..e }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or("").trim_start_matches("error: ")
}
