// SPDX-License-Identifier: MIT OR Apache-2.0
//! What made it later, asked in the lab: boot options, loads and settings, kernels, commits, configurations.
//!
//! Which to ask about next: [`crate::bisect`].
//!
//! ```text
//! search.rs    from the ends to the answer      variants.rs  options, loads, settings; kernels by name
//! way.rs       what every kind is given         commits.rs   variants that have to be built
//! ends.rs      its two ends, as measured        meter.rs     variants measured in the lab
//! measure.rs   the figure of a run              folder.rs    the journal and its run files
//! believed.rs  a journal against its run files  file_names.rs what these files are called
//! answer.rs    what is told
//! ```

mod answer;
mod believed;
mod commits;
mod ends;
mod file_names;
mod folder;
mod measure;
mod meter;
mod search;
mod variants;
mod way;

use std::fmt;
use std::path::{Path, PathBuf};

use tailbound_lab::build::Commits;
use tailbound_lab::kernel::{BuildNameError, Config};
use tailbound_lab::matrix::RunReader;
use tailbound_lab::{Arch, Bench, BuildName, LabError, Request, Store, hash};
use tailbound_report::bisect::Bisected;

use self::commits::{Builder, History, How};
use self::variants::{Kernels, Options};
use self::way::Way;
use crate::bisect;
use crate::error::SearchError;

/// The text of a profile, called so, of these `SETTING=VALUE`.
pub type ProfileText<'a> = dyn Fn(&str, &[String]) -> Result<String, SearchError> + 'a;

/// How it is searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BisectOptions {
    /// What must not be late: `max`, a percentile such as `p99.9`, or `section`.
    pub measure: String,
    /// Later than this is bad; the middle between the ends where nobody says.
    pub limit: Option<String>,
    /// Seeds of each variant; the greatest figure counts.
    pub seeds: u32,
    /// Are both ends measured again with a change that means nothing?
    pub has_controls: bool,
    /// Are the sections of the kernel compared that grew?
    pub has_sections: bool,
    /// The folder of the journal and of the run files.
    pub out: Option<PathBuf>,
    /// In a folder that holds another search, too.
    pub begins_anew: bool,
}

/// What a search needs from the program that makes it.
pub struct BisectCaller<'a> {
    /// Opens the lab, once the question was looked at.
    pub open: &'a dyn Fn() -> Result<Bench<'a>, LabError>,
    /// Reads a run file.
    pub read: &'a RunReader<'a>,
    /// Makes profiles.
    pub profile: &'a ProfileText<'a>,
}

impl fmt::Debug for BisectCaller<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BisectCaller").finish_non_exhaustive()
    }
}

/// Words of one end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndWords {
    /// Of the kernel's command line.
    pub append: Vec<String>,
    /// Loads.
    pub loads: Vec<String>,
    /// Settings.
    pub settings: Vec<String>,
}

impl EndWords {
    fn all(&self) -> [&[String]; 3] {
        [&self.append, &self.loads, &self.settings]
    }
}

/// How the kernel of a commit is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitBuild {
    /// As the lab builds kernels.
    Lab {
        /// A whole configuration, in place of the small guest's.
        config: Option<PathBuf>,
        /// Fragments by name or file.
        fragments: Vec<String>,
    },
    /// By a command of the user's, which leaves an image.
    Command(String),
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BisectEnd {
    /// Found: nothing can be left out.
    Found,
    /// Not found to one change.
    Open,
    /// A signal ended it.
    Interrupted,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BisectAnswer {
    /// All that is told.
    pub answer: Bisected,
    /// How it ended.
    pub end: BisectEnd,
}

/// Boot options, loads and settings: the smallest set of differences that makes it late.
///
/// # Errors
/// The ends cannot be asked about, or are not what they are called; the lab's reasons.
pub fn append(
    base: &Request,
    good: &EndWords,
    bad: &EndWords,
    options: &BisectOptions,
    caller: &BisectCaller<'_>,
) -> Result<BisectAnswer, SearchError> {
    let changes = || Options::new(base.clone(), caller.profile, good.all(), bad.all());
    let made = changes()?;
    let n = made.count();
    if !made.set.differences.is_empty() {
        // A setting that is none is told before anything boots.
        (caller.profile)("bisect", &[&good.settings[..], &bad.settings].concat())?;
    }
    search::readable(options, base)?;
    let bench = (caller.open)()?;
    let way = Way { bench: &bench, kind: "append", options, read: caller.read };
    let what = format!("{:?} {:?} {:?} {:?}", good.append, bad.append, good.loads, bad.loads);
    let what = format!("{what} {:?} {:?}", good.settings, bad.settings);
    search::among_changes(&way, base, &what, &mut |_| changes(), n, |o, at| o.name(at))
}

/// Kernels by name, in order from good to bad.
///
/// # Errors
/// As [`append`].
pub fn kernels(
    base: &Request,
    options: &BisectOptions,
    caller: &BisectCaller<'_>,
) -> Result<BisectAnswer, SearchError> {
    search::readable(options, base)?;
    let bench = (caller.open)()?;
    let way = Way { bench: &bench, kind: "kernels", options, read: caller.read };
    let last = base.kernels.len().saturating_sub(1);
    let mut make = |_: &Path| Ok(Kernels { base: base.clone(), names: base.kernels.clone() });
    search::in_order(&way, base, "", &mut make, last, "kernels")
}

/// Commits of a git tree, from one that is good to one that is bad.
#[derive(Clone, Copy, Debug)]
pub struct CommitSpan<'a> {
    /// The tree.
    pub tree: &'a Path,
    /// The good end.
    pub good: &'a str,
    /// The bad end.
    pub bad: &'a str,
}

/// Two files of a kernel's configuration.
#[derive(Clone, Copy, Debug)]
pub struct ConfigFiles<'a> {
    /// That of the good kernel.
    pub good: &'a Path,
    /// That of the bad one.
    pub bad: &'a Path,
}

/// Commits between two, each built and booted.
///
/// # Errors
/// As [`append`]; the tree cannot be read.
pub fn commits(
    base: &Request,
    span: CommitSpan<'_>,
    build: &CommitBuild,
    options: &BisectOptions,
    caller: &BisectCaller<'_>,
) -> Result<BisectAnswer, SearchError> {
    let commits = Commits::open(span.tree)?;
    let all = commits.between(span.good, span.bad)?;
    let (config, fragments, command) = match build {
        CommitBuild::Lab { config, fragments } => (config.as_deref(), fragments.as_slice(), None),
        CommitBuild::Command(line) => (None, Default::default(), Some(line)),
    };
    let config = config.map(hash::of_file).transpose()?;
    let ids: Vec<&str> = all.iter().map(|c| c.id.as_str()).collect();
    let what = format!("{ids:?} {config:?} {fragments:?} {command:?}");
    search::readable(options, base)?;
    let bench = (caller.open)()?;
    let way = Way { bench: &bench, kind: "commits", options, read: caller.read };
    let arch = base.arch()?;
    let last = all.len().saturating_sub(1);
    let mut make = |folder: &Path| {
        let how = match build.clone() {
            CommitBuild::Command(line) => How::Command(line),
            CommitBuild::Lab { config, fragments } => How::Kernel { config, fragments },
        };
        let builder = builder(&bench, arch, &what)?;
        let (base, commits, all) = (base.clone(), commits.clone(), all.clone());
        Ok(History { base, builder, commits, all, how, folder: absolute(folder)? })
    };
    search::in_order(&way, base, &what, &mut make, last, "commits")
}

/// Options of a kernel's configuration, between two files; each set built from `source`.
///
/// # Errors
/// As [`append`]; a configuration cannot be read.
pub fn config(
    base: &Request,
    source: &Path,
    files: ConfigFiles<'_>,
    options: &BisectOptions,
    caller: &BisectCaller<'_>,
) -> Result<BisectAnswer, SearchError> {
    let (good, bad) = (Config::read(files.good)?, Config::read(files.bad)?);
    let map = |config: &Config| config.iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
    let differences = bisect::configurations(&map(&good), &map(&bad), &build_describes_itself);
    if differences.is_empty() {
        let (good, bad) = (files.good.to_owned(), files.bad.to_owned());
        return Err(SearchError::SameOptions { good, bad });
    }
    let what = format!("{} {good:?} {differences:?}", source.display());
    search::readable(options, base)?;
    let bench = (caller.open)()?;
    let way = Way { bench: &bench, kind: "config", options, read: caller.read };
    let arch = base.arch()?;
    let n = differences.len();
    let mut make = |folder: &Path| {
        let builder = builder(&bench, arch, &what)?;
        Ok(commits::Options {
            base: base.clone(),
            builder,
            source: source.to_owned(),
            good: good.clone(),
            differences: differences.clone(),
            folder: absolute(folder)?,
            changed_back: None,
        })
    };
    search::among_changes(&way, base, &what, &mut make, n, |o, at| o.name(at))
}

fn builder<'a>(bench: &'a Bench<'a>, arch: Arch, what: &str) -> Result<Builder<'a>, SearchError> {
    let jobs = u32::try_from(bench.jobs()).unwrap_or(1).max(1);
    Ok(Builder { bench, store: Store::of_user()?, arch, jobs, name: name(what)? })
}

/// The name of the builds of a search.
fn name(what: &str) -> Result<BuildName, SearchError> {
    let hash = hash::of_bytes(what.as_bytes());
    let name = format!("bisect-{}", hash.get(..12).unwrap_or(&hash));
    name.parse().map_err(|e: BuildNameError| SearchError::Unfit { why: e.to_string() })
}

fn absolute(folder: &Path) -> Result<PathBuf, SearchError> {
    Ok(std::fs::canonicalize(folder).map_err(|e| LabError::file(folder, e))?)
}

/// What describes the compiler and not the kernel, as `lab kernel build` has it too.
fn build_describes_itself(name: &str) -> bool {
    const OF_THE_COMPILER: [&str; 8] =
        ["CC_", "GCC_", "CLANG_", "AS_", "LD_", "RUSTC", "PAHOLE_", "LOCALVERSION"];
    OF_THE_COMPILER.iter().any(|prefix| name.starts_with(prefix))
}
