// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lab bisect`: what made it later?

use std::process::ExitCode;

use tailbound_lab::Request;
use tailbound_report::bisect::{json, text};
use tailbound_search::SearchError;
use tailbound_search::bisect_runs::{
    self, BisectAnswer, BisectCaller, BisectEnd, BisectOptions, CommitBuild, CommitSpan,
    ConfigFiles, EndWords,
};

use crate::cli_bisect::{
    Bisect, BisectAppendArgs, BisectCommitsArgs, BisectConfigArgs, BisectKernelsArgs, SearchArgs,
};
use crate::cli_guest::HostArgs;
use crate::cli_lab_subject::SubjectArgs;
use crate::cmd::lab::{bench, request};
use crate::cmd::tune::recipes;
use crate::input;
use crate::say::{Failure, Form};

/// `tailbound lab bisect`
pub(crate) fn bisect(what: &Bisect) -> Result<ExitCode, Failure> {
    match what {
        Bisect::Append(args) => append(args),
        Bisect::Kernels(args) => kernels(args),
        Bisect::Commits(args) => commits(args),
        Bisect::Config(args) => config(args),
    }
}

fn options(args: &SearchArgs) -> BisectOptions {
    BisectOptions {
        measure: args.measure.clone(),
        limit: args.limit.clone(),
        seeds: args.seeds,
        has_controls: !args.no_control,
        has_sections: !args.no_paths,
        out: args.out.clone(),
        begins_anew: args.force,
    }
}

/// Searches with what this program brings, and tells the answer.
fn answered(
    host: &HostArgs,
    search: &dyn Fn(&BisectCaller<'_>) -> Result<BisectAnswer, SearchError>,
) -> Result<ExitCode, Failure> {
    let BisectAnswer { answer, end } = search(&BisectCaller {
        open: &|| Ok(bench::open(host)?),
        read: &|path| Ok(input::run(path)?),
        profile: &|name, settings| Ok(recipes::profile_of(name, settings)?),
    })?;
    Form::of(host.json, host.color.when).answer(|| json(&answer), |style| text(&answer, style))?;
    Ok(ExitCode::from(match end {
        BisectEnd::Found => 0,
        BisectEnd::Open => 1,
        BisectEnd::Interrupted => 5,
    }))
}

fn append(args: &BisectAppendArgs) -> Result<ExitCode, Failure> {
    let base = request::of(&args.subject, &args.host)?;
    let sets = !args.good_set.is_empty() || !args.bad_set.is_empty();
    if sets && !base.tune.is_empty() {
        return Err(Failure::usage("--tune and --good-set or --bad-set: give one of them"));
    }
    if base.kernels.len() != 1 {
        return Err(Failure::usage("bisect append: give one --kernel, such as debian:6.12-rt"));
    }
    let end = |append: &str, loads: &[String], settings: &[String]| EndWords {
        append: append.split_whitespace().map(str::to_owned).collect(),
        loads: loads.to_vec(),
        settings: settings.to_vec(),
    };
    let good = end(&args.good, &args.good_load, &args.good_set);
    let bad = end(&args.bad, &args.bad_load, &args.bad_set);
    let options = options(&args.search);
    answered(&args.host, &|caller| bisect_runs::append(&base, &good, &bad, &options, caller))
}

/// What is measured where the kernels come otherwise.
fn without_kernel(subject: &SubjectArgs, host: &HostArgs, why: &str) -> Result<Request, Failure> {
    if subject.kernel.is_empty() {
        return request::of(subject, host);
    }
    Err(Failure::usage(format!("--kernel: {why}")))
}

fn kernels(args: &BisectKernelsArgs) -> Result<ExitCode, Failure> {
    let why = "the kernels of `bisect kernels` are given in their order, without a flag";
    let mut base = without_kernel(&args.subject, &args.host, why)?;
    base.kernels.clone_from(&args.kernels);
    let options = options(&args.search);
    answered(&args.host, &|caller| bisect_runs::kernels(&base, &options, caller))
}

fn commits(args: &BisectCommitsArgs) -> Result<ExitCode, Failure> {
    let why = "`bisect commits` builds its kernels";
    let base = without_kernel(&args.subject, &args.host, why)?;
    let build = match &args.build {
        Some(line) => CommitBuild::Command(line.clone()),
        None => CommitBuild::Lab {
            config: args.kernel_config.clone(),
            fragments: args.fragment.clone(),
        },
    };
    let options = options(&args.search);
    let span = CommitSpan { tree: &args.tree, good: &args.good, bad: &args.bad };
    answered(&args.host, &|caller| bisect_runs::commits(&base, span, &build, &options, caller))
}

fn config(args: &BisectConfigArgs) -> Result<ExitCode, Failure> {
    let why = "`bisect config` builds its kernels";
    let base = without_kernel(&args.subject, &args.host, why)?;
    let options = options(&args.search);
    let files = ConfigFiles { good: &args.good, bad: &args.bad };
    answered(&args.host, &|caller| {
        bisect_runs::config(&base, &args.source, files, &options, caller)
    })
}
