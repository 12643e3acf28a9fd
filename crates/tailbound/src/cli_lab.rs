// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `tailbound lab`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli_guest::{GuestArgs, HostArgs};
use crate::cli_lab_subject::{ProbeArgs, SubjectArgs};
use crate::lazy::Lazy;

/// What the lab can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    /// Boot one or more kernels in QEMU and measure on each; the results are byte-identical on any host
    Run(Lazy<LabRunArgs>),
    /// Repeat a lab run from its own record and compare the files byte for byte
    Repeat(Lazy<LabRepeatArgs>),
    /// Name the kernel's longest sections and the way of the latest wake-ups, instruction by instruction
    Paths(Lazy<LabPathsArgs>),
    /// Find the instant from which a late sample of a run was inevitable, and name what happened there
    Why(Lazy<crate::cli_lab_why::LabWhyArgs>),
    /// Search for the worst workload of a kernel, and shrink it to a command that anybody can repeat
    Hunt(Lazy<crate::cli_hunt::HuntArgs>),
    /// Find what made a kernel later: boot options, loads, settings, kernels, commits, configuration options
    #[command(subcommand)]
    Bisect(crate::cli_bisect::Bisect),
    /// Measure every kernel with every load: a run file each, one table, one report; resumes an interrupted matrix
    Matrix(Lazy<LabMatrixArgs>),
    /// List, verify or remove the contents of the lab's folder
    Cache(Lazy<LabCacheArgs>),
    /// Kernels by name: list, fetch, build from source
    #[command(subcommand)]
    Kernel(crate::cli_lab_kernel::LabKernel),
    /// QEMU beside the system's: list, fetch, remove
    #[command(subcommand)]
    Qemu(crate::cli_lab_qemu::LabQemu),
}

/// Arguments of `lab run`.
#[derive(Debug, Args)]
pub(crate) struct LabRunArgs {
    #[command(flatten)]
    pub(crate) subject: SubjectArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    /// Watch each run from within the emulator too: longest sections of the kernel, way of the latest wake-ups; see docs/paths.md
    #[arg(long, help_heading = "Measurement")]
    pub(crate) paths: bool,
    /// Where the run file goes; a folder for several kernels [default: named after kernel, load and probe, with a number if that exists]
    #[arg(short, long, value_name = "PATH", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Where the HTML report goes [default: beside the run file; `lab.html` beside several]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long, help_heading = "Output")]
    pub(crate) force: bool,
}

/// Arguments of `lab paths`.
#[derive(Debug, Args)]
pub(crate) struct LabPathsArgs {
    #[command(flatten)]
    pub(crate) subject: SubjectArgs,
    /// State the theoretical bound on the scheduling latency, see docs/theory.md
    #[arg(long, help_heading = "Output")]
    pub(crate) theory: bool,
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

/// Arguments of `lab repeat`.
#[derive(Debug, Args)]
pub(crate) struct LabRepeatArgs {
    /// A run file made in the lab
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// The target description, for a run that was made with one
    #[arg(short, long, value_name = "FILE", help_heading = "Guest")]
    pub(crate) target: Option<PathBuf>,
    /// Keep the new run file here
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, help_heading = "Output")]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

/// Arguments of `lab cache`.
#[derive(Debug, Args)]
pub(crate) struct LabCacheArgs {
    /// Check everything that has a hash; exit status 1 if something is damaged
    #[arg(long)]
    pub(crate) verify: bool,
    /// Remove what exceeds the limits, kernels, sources and builds included, least recently used first
    #[arg(long)]
    pub(crate) prune: bool,
    /// Remove everything, builds included
    #[arg(long, conflicts_with = "prune")]
    pub(crate) clear: bool,
    /// Size limit of the folder [default: $TAILBOUND_LAB_SIZE, or 8G]
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_size: Option<String>,
    /// Age limit of unused files [default: $TAILBOUND_LAB_AGE, or 30d]
    #[arg(long, value_name = "AGE")]
    pub(crate) max_age: Option<String>,
    /// Print the answer as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Arguments of `lab matrix`.
#[derive(Debug, Args)]
pub(crate) struct LabMatrixArgs {
    /// A TOML file: kernels, append, system, loads, campaign; options on the command line take precedence
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Kernels, separated by spaces or given several times
    #[arg(short, long, value_name = "KERNELS", value_delimiter = ' ', help_heading = "Guest")]
    pub(crate) kernels: Vec<String>,
    /// Loads (all of them: `tailbound load --help`), separated by spaces or given several times; commas join what runs together
    #[arg(
        short = 'L',
        long,
        value_name = "LOADS",
        value_delimiter = ' ',
        help_heading = "Measurement"
    )]
    pub(crate) loads: Vec<String>,
    /// Append to the kernels' command lines; several times for several systems; '' appends nothing
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true, help_heading = "Guest")]
    pub(crate) append: Vec<String>,
    #[command(flatten)]
    pub(crate) guest: GuestArgs,
    #[command(flatten)]
    pub(crate) probe: ProbeArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    /// Watch each run from within the emulator too: longest sections of the kernel of each cell; see docs/paths.md
    #[arg(long, help_heading = "Measurement")]
    pub(crate) paths: bool,
    /// Folder of the run files and the report [default: matrix; if that was made with other options, matrix-2 and so on]
    #[arg(short, long, value_name = "FOLDER", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Also write one plot of all kernels under one load: `histogram=FILE` or `survival=FILE`
    #[arg(long, value_name = "KIND=FILE", value_parser = picture, help_heading = "Output")]
    pub(crate) svg: Vec<(String, PathBuf)>,
    /// Make cells again that were made with different options
    #[arg(long, help_heading = "Output")]
    pub(crate) force: bool,
}

/// `survival=FILE`
fn picture(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((kind @ ("histogram" | "survival"), file)) if !file.is_empty() => {
            Ok((kind.to_owned(), PathBuf::from(file)))
        }
        _ => Err("expected histogram=FILE or survival=FILE".to_owned()),
    }
}
