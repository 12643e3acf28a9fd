// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `tailbound lab bisect`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli_guest::HostArgs;
use crate::cli_lab_subject::SubjectArgs;
use crate::lazy::Lazy;

const BISECT_HELP: &str = "\
Both ends are measured first, and each again with a change that means nothing (the control): what that changes is the \
noise floor, and a search between ends that are no further apart is refused. What is later than the middle between the ends is \
bad (or than --limit). Everything measured is kept in the folder --out: Ctrl-C tells what is known, and the same \
command goes on.

Exit status: 0 found; 1 not found to one change; 2 usage or input error, also ends that are not what they are called; \
3 this machine cannot; 5 interrupted.";

/// What can be searched.
#[derive(Debug, Subcommand)]
pub(crate) enum Bisect {
    /// Boot options, loads and settings: the smallest set of differences that makes it late
    #[command(visible_alias = "options")]
    Append(Lazy<BisectAppendArgs>),
    /// Kernels by name, in order from good to bad
    Kernels(Lazy<BisectKernelsArgs>),
    /// Commits of a git tree, each built and booted; those that do neither are passed over
    Commits(Lazy<BisectCommitsArgs>),
    /// Options of a kernel's configuration, between two .config files; each set built
    Config(Lazy<BisectConfigArgs>),
}

/// How it is searched.
#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// What must not be late: `max`, a percentile such as `p50` or `p99.9`, or `section`, the longest section of the kernel that is not preemptible
    #[arg(long, value_name = "FIGURE", default_value = "max", help_heading = "Search")]
    pub(crate) measure: String,
    /// Later than this is bad [default: the middle between the ends]
    #[arg(long, value_name = "TIME", help_heading = "Search")]
    pub(crate) limit: Option<String>,
    /// Number of seeds of each variant; the greatest figure counts
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = "Search")]
    pub(crate) seeds: u32,
    /// No controls: the noise floor is unknown then
    #[arg(long, help_heading = "Search")]
    pub(crate) no_control: bool,
    /// Do not look for the sections of the kernel that grew
    #[arg(long, help_heading = "Search")]
    pub(crate) no_paths: bool,
    /// Folder of the journal and of the run files [default: bisect; if that is of another search, bisect-2 and so on]
    #[arg(short, long, value_name = "FOLDER", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Begin anew in a folder that holds another search
    #[arg(long, help_heading = "Output")]
    pub(crate) force: bool,
}

/// Arguments of `bisect append`.
#[derive(Debug, Args)]
#[command(after_help = BISECT_HELP)]
pub(crate) struct BisectAppendArgs {
    /// Words of the kernel's command line that are good; --append gives what both ends have
    #[arg(
        long,
        value_name = "WORDS",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true,
        help_heading = "Search"
    )]
    pub(crate) good: String,
    /// Words that are bad
    #[arg(
        long,
        value_name = "WORDS",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true,
        help_heading = "Search"
    )]
    pub(crate) bad: String,
    /// Loads of the good end besides --load, separated by commas: see `tailbound load --help`
    #[arg(long, value_name = "LOADS", value_delimiter = ',', help_heading = "Search")]
    pub(crate) good_load: Vec<String>,
    /// Loads of the bad end besides --load, separated by commas: see `tailbound load --help`
    #[arg(long, value_name = "LOADS", value_delimiter = ',', help_heading = "Search")]
    pub(crate) bad_load: Vec<String>,
    /// A setting of the good end, applied in the guest; may be repeated (`tailbound tune settings` lists them)
    #[arg(long, value_name = "SETTING=VALUE", help_heading = "Search")]
    pub(crate) good_set: Vec<String>,
    /// A setting of the bad end; may be repeated
    #[arg(long, value_name = "SETTING=VALUE", help_heading = "Search")]
    pub(crate) bad_set: Vec<String>,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    #[command(flatten)]
    pub(crate) subject: SubjectArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

/// Arguments of `bisect kernels`.
#[derive(Debug, Args)]
#[command(after_help = BISECT_HELP)]
pub(crate) struct BisectKernelsArgs {
    /// Kernels in order, as `lab run --kernel` names them: the first is good, the last is bad
    #[arg(required = true, num_args = 2.., value_name = "KERNEL")]
    pub(crate) kernels: Vec<String>,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    #[command(flatten)]
    pub(crate) subject: SubjectArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

/// Arguments of `bisect commits`.
#[derive(Debug, Args)]
#[command(after_help = BISECT_HELP)]
pub(crate) struct BisectCommitsArgs {
    /// A git tree; only read: builds are made in the folder of the search
    #[arg(long, value_name = "FOLDER", help_heading = "Search")]
    pub(crate) tree: PathBuf,
    /// A commit that is good
    #[arg(long, value_name = "COMMIT", help_heading = "Search")]
    pub(crate) good: String,
    /// A later one that is bad
    #[arg(long, value_name = "COMMIT", help_heading = "Search")]
    pub(crate) bad: String,
    /// Configuration of the kernels, instead of the small one for guests
    #[arg(long, value_name = "FILE", help_heading = "Build")]
    pub(crate) kernel_config: Option<PathBuf>,
    /// Configuration fragments by name or file, as `lab kernel build` takes them
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Build")]
    pub(crate) fragment: Vec<String>,
    /// Build with a shell command instead: it runs in the commit's files and leaves a kernel image at {image}; {tree} and {commit} are filled in too
    #[arg(long, value_name = "CMD", conflicts_with_all = ["kernel_config", "fragment"], help_heading = "Build")]
    pub(crate) build: Option<String>,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    #[command(flatten)]
    pub(crate) subject: SubjectArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

/// Arguments of `bisect config`.
#[derive(Debug, Args)]
#[command(after_help = BISECT_HELP)]
pub(crate) struct BisectConfigArgs {
    /// A kernel's source: a folder, a git tree or an archive
    #[arg(long, value_name = "SOURCE", help_heading = "Search")]
    pub(crate) source: PathBuf,
    /// A configuration that is good
    #[arg(long, value_name = "FILE", help_heading = "Search")]
    pub(crate) good: PathBuf,
    /// One that is bad
    #[arg(long, value_name = "FILE", help_heading = "Search")]
    pub(crate) bad: PathBuf,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    #[command(flatten)]
    pub(crate) subject: SubjectArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
}
