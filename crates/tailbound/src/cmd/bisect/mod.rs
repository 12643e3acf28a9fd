// SPDX-License-Identifier: MIT OR Apache-2.0
//! `bisect`: what made it later?
//!
//! Context: COLD. The search is `tailbound_bisect`, the oracle the lab.

mod answer;
mod folder;
mod lab;
mod measure;
mod search;
mod variants;

use std::process::ExitCode;

use self::search::Way;
use self::variants::{Kernels, Options};
use crate::cli_bisect::{Bisect, BisectAppendArgs, BisectKernelsArgs};
use crate::cmd::lab::request;
use crate::say::Failure;

/// `tailbound bisect`
pub(crate) fn bisect(what: &Bisect) -> Result<ExitCode, Failure> {
    match what {
        Bisect::Append(args) => append(args),
        Bisect::Kernels(args) => kernels(args),
    }
}

fn append(args: &BisectAppendArgs) -> Result<ExitCode, Failure> {
    let base = request::of(&args.subject, &args.host)?;
    if !base.tune.is_empty() && !(args.good_set.is_empty() && args.bad_set.is_empty()) {
        return Err(Failure::usage("--tune and --good-set or --bad-set: give one of them"));
    }
    let split =
        |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
    let (good, bad) = (split(&args.good), split(&args.bad));
    let options = Options::new(
        base.clone(),
        [&good, &args.good_load, &args.good_set],
        [&bad, &args.bad_load, &args.bad_set],
    )?;
    let n = options.count();
    let way = Way { kind: "append", search: &args.search, host: &args.host };
    let what = format!("{good:?} {bad:?} {:?} {:?}", args.good_load, args.bad_load);
    let what = format!("{what} {:?} {:?}", args.good_set, args.bad_set);
    search::among_changes(&way, &base, &what, options, n, |o, at| o.name(at))
}

fn kernels(args: &BisectKernelsArgs) -> Result<ExitCode, Failure> {
    if !args.subject.kernel.is_empty() {
        return Err(Failure::usage(
            "--kernel: the kernels of `bisect kernels` are given in their order, without a flag",
        ));
    }
    let mut base = request::of(&args.subject, &args.host)?;
    base.kernels.clone_from(&args.kernels);
    let way = Way { kind: "kernels", search: &args.search, host: &args.host };
    let kernels = Kernels { base: base.clone(), names: args.kernels.clone() };
    let last = args.kernels.len().saturating_sub(1);
    search::in_order(&way, &base, "", kernels, last, "kernels")
}
