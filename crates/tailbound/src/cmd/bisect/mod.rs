// SPDX-License-Identifier: MIT OR Apache-2.0
//! `bisect`: what made it later?
//!
//! The search is `tailbound_bisect`, the oracle the lab.

mod answer;
mod believed;
mod commits;
mod folder;
mod lab;
mod measure;
mod search;
mod variants;

use std::path::PathBuf;
use std::process::ExitCode;

use tailbound_lab::build::Commits;
use tailbound_lab::kernel::Config;
use tailbound_lab::{Arch, BuildName, Request, Store, hash};

use self::commits::{Builder, History, How};
use self::search::Way;
use self::variants::{Kernels, Options};
use crate::cli_bisect::{
    Bisect, BisectAppendArgs, BisectCommitsArgs, BisectConfigArgs, BisectKernelsArgs,
};
use crate::cli_guest::HostArgs;
use crate::cli_lab::SubjectArgs;
use crate::cmd::lab::cells::Bench;
use crate::cmd::lab::request;
use crate::cmd::tune;
use crate::say::Failure;

/// `tailbound lab bisect`
pub(crate) fn bisect(what: &Bisect) -> Result<ExitCode, Failure> {
    match what {
        Bisect::Append(args) => append(args),
        Bisect::Kernels(args) => kernels(args),
        Bisect::Commits(args) => commits(args),
        Bisect::Config(args) => config(args),
    }
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
    let split =
        |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
    let (good, bad) = (split(&args.good), split(&args.bad));
    let options = || {
        Options::new(
            base.clone(),
            [&good, &args.good_load, &args.good_set],
            [&bad, &args.bad_load, &args.bad_set],
        )
    };
    let made = options()?;
    let n = made.count();
    if !made.set.differences.is_empty() {
        // A setting that is none is told before anything boots.
        tune::profile_of("bisect", &[&args.good_set[..], &args.bad_set].concat())?;
    }
    search::readable(&args.search, &base)?;
    let bench = Bench::open(&args.host)?;
    let way = Way { bench: &bench, kind: "append", search: &args.search, host: &args.host };
    let what = format!("{good:?} {bad:?} {:?} {:?}", args.good_load, args.bad_load);
    let what = format!("{what} {:?} {:?}", args.good_set, args.bad_set);
    search::among_changes(&way, &base, &what, &mut |_| options(), n, |o, at| o.name(at))
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
    search::readable(&args.search, &base)?;
    let bench = Bench::open(&args.host)?;
    let way = Way { bench: &bench, kind: "kernels", search: &args.search, host: &args.host };
    let last = args.kernels.len().saturating_sub(1);
    let mut make =
        |_: &std::path::Path| Ok(Kernels { base: base.clone(), names: args.kernels.clone() });
    search::in_order(&way, &base, "", &mut make, last, "kernels")
}

/// Compilers at a time.
fn compilers(host: &HostArgs) -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(host.jobs.unwrap_or(cores)).unwrap_or(1).max(1)
}

fn commits(args: &BisectCommitsArgs) -> Result<ExitCode, Failure> {
    let why = "`bisect commits` builds its kernels";
    let base = without_kernel(&args.subject, &args.host, why)?;
    let commits = Commits::open(&args.tree)?;
    let all = commits.between(&args.good, &args.bad)?;
    let config = args.kernel_config.as_deref().map(hash::of_file).transpose()?;
    let ids: Vec<&str> = all.iter().map(|c| c.id.as_str()).collect();
    let what = format!("{ids:?} {config:?} {:?} {:?}", args.fragment, args.build);
    search::readable(&args.search, &base)?;
    let bench = Bench::open(&args.host)?;
    let way = Way { bench: &bench, kind: "commits", search: &args.search, host: &args.host };
    let arch = base.arch()?;
    let last = all.len().saturating_sub(1);
    let mut make = |folder: &std::path::Path| {
        let how = match &args.build {
            Some(line) => How::Command(line.clone()),
            None => {
                How::Kernel { config: args.kernel_config.clone(), fragments: args.fragment.clone() }
            }
        };
        let builder = builder(&bench, arch, &args.host, &what)?;
        let (base, commits, all) = (base.clone(), commits.clone(), all.clone());
        Ok(History { base, builder, commits, all, how, folder: absolute(folder)? })
    };
    search::in_order(&way, &base, &what, &mut make, last, "commits")
}

fn builder<'a>(
    bench: &'a Bench<'a>,
    arch: Arch,
    host: &HostArgs,
    what: &str,
) -> Result<Builder<'a>, Failure> {
    let (store, jobs) = (Store::of_user()?, compilers(host));
    Ok(Builder { bench, store, arch, jobs, quiet: host.quiet, name: name(what)? })
}

/// The name of the builds of a search.
fn name(what: &str) -> Result<BuildName, Failure> {
    let hash = hash::of_bytes(what.as_bytes());
    let name = format!("bisect-{}", hash.get(..12).unwrap_or(&hash));
    name.parse().map_err(Failure::cannot)
}

fn absolute(folder: &std::path::Path) -> Result<PathBuf, Failure> {
    std::fs::canonicalize(folder).map_err(|e| Failure::cannot(format!("{}: {e}", folder.display())))
}

fn config(args: &BisectConfigArgs) -> Result<ExitCode, Failure> {
    let why = "`bisect config` builds its kernels";
    let base = without_kernel(&args.subject, &args.host, why)?;
    let (good, bad) = (Config::read(&args.good)?, Config::read(&args.bad)?);
    let map = |config: &Config| config.iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
    let differences =
        tailbound_bisect::configurations(&map(&good), &map(&bad), &build_describes_itself);
    if differences.is_empty() {
        return Err(Failure::usage(format!(
            "{} and {} have the same options",
            args.good.display(),
            args.bad.display()
        )));
    }
    let what = format!("{} {good:?} {differences:?}", args.source.display());
    search::readable(&args.search, &base)?;
    let bench = Bench::open(&args.host)?;
    let way = Way { bench: &bench, kind: "config", search: &args.search, host: &args.host };
    let arch = base.arch()?;
    let n = differences.len();
    let mut make = |folder: &std::path::Path| {
        let builder = builder(&bench, arch, &args.host, &what)?;
        Ok(commits::Options {
            base: base.clone(),
            builder,
            source: args.source.clone(),
            good: good.clone(),
            differences: differences.clone(),
            folder: absolute(folder)?,
            changed_back: None,
        })
    };
    search::among_changes(&way, &base, &what, &mut make, n, |o, at| o.name(at))
}

/// What describes the compiler and not the kernel, as `lab kernel build` has it too.
fn build_describes_itself(name: &str) -> bool {
    const OF_THE_COMPILER: [&str; 8] =
        ["CC_", "GCC_", "CLANG_", "AS_", "LD_", "RUSTC", "PAHOLE_", "LOCALVERSION"];
    OF_THE_COMPILER.iter().any(|prefix| name.starts_with(prefix))
}
