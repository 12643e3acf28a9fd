// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `tailbound lab kernel`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::lazy::Lazy;

/// Subcommands about kernels.
#[derive(Debug, Subcommand)]
pub(crate) enum LabKernel {
    /// List the kernels that are available by name, in the store, or built
    List(Lazy<KernelListArgs>),
    /// Fetch kernels into the store, so that runs need no network
    Fetch(Lazy<KernelFetchArgs>),
    /// Patch, configure, check and compile a kernel for the lab
    Build(Lazy<KernelBuildArgs>),
}

/// Arguments of `lab kernel list`.
#[derive(Debug, Args)]
pub(crate) struct KernelListArgs {
    /// Architecture: `x86_64`, `aarch64`, `arm` [default: x86_64]
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// Another suite of the same archives: `trixie`
    #[arg(long, value_name = "SUITE")]
    pub(crate) suite: Option<String>,
    /// Fetch the package lists anew
    #[arg(long)]
    pub(crate) refresh: bool,
    /// Only what is in the store, without asking apt
    #[arg(long, conflicts_with_all = ["suite", "refresh"])]
    pub(crate) local: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress notes
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Arguments of `lab kernel fetch`.
#[derive(Debug, Args)]
pub(crate) struct KernelFetchArgs {
    /// `debian:6.12-rt`, `debian:6.1-cloud`, `debian:rt`, `debian:6.12@trixie`, `debian:PACKAGE=VERSION`
    #[arg(required = true, value_name = "KERNEL")]
    pub(crate) kernels: Vec<String>,
    /// Architecture: `x86_64`, `aarch64`, `arm` [default: x86_64]
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// Ask apt again what the names mean today
    #[arg(long)]
    pub(crate) refresh: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress notes
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Every fragment with what it is, for `--help` and the man page.
fn fragments_help() -> String {
    let mut text = String::from("Fragments:");
    for fragment in tailbound_lab::build::FRAGMENTS {
        text.push_str(&format!("\n  {:<12} {}", fragment.name, fragment.about));
    }
    text.push_str(
        "\n\nWithout --config a small configuration for guests is the base; see docs/kernels.md.",
    );
    text
}

/// Arguments of `lab kernel build`.
#[derive(Debug, Args)]
#[command(after_help = fragments_help())]
pub(crate) struct KernelBuildArgs {
    /// `debian:linux-source-6.12` (or `…@SUITE`, `…=VERSION`), a folder, a git tree or an archive
    #[arg(long, value_name = "SOURCE", help_heading = "Source")]
    pub(crate) source: String,
    /// A patch (also .gz, .xz), in order; `package:FILE` is one from the Debian source package
    #[arg(long, value_name = "FILE", help_heading = "Source")]
    pub(crate) patch: Vec<String>,
    /// For a git tree: rebase the series (commits that REF lacks, and the patches) onto REF, on the branch tailbound/NAME
    #[arg(long, value_name = "REF", help_heading = "Source")]
    pub(crate) rebase_onto: Option<String>,

    /// Configuration fragments by name or file, separated by commas; later ones take precedence
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Configuration")]
    pub(crate) fragment: Vec<String>,
    /// Base configuration, instead of the small one for guests
    #[arg(long, value_name = "FILE", help_heading = "Configuration")]
    pub(crate) config: Option<PathBuf>,
    /// Architecture: `x86_64`, `aarch64`, `arm` [default: x86_64]
    #[arg(long, value_name = "ARCH", help_heading = "Configuration")]
    pub(crate) arch: Option<String>,

    /// Only patch, configure and check; compile nothing
    #[arg(long, conflicts_with = "test", help_heading = "Build")]
    pub(crate) check: bool,
    /// Build these configurations as a test, and keep no kernel: `allmodconfig`, `allyesconfig`, `allnoconfig`, `randconfig:SEED`, `guest`
    #[arg(long, value_name = "TESTS", value_delimiter = ',', help_heading = "Build")]
    pub(crate) test: Vec<String>,
    /// Name of the kernel for later use: `build:NAME`
    #[arg(long, value_name = "NAME", help_heading = "Build")]
    pub(crate) name: String,
    /// Number of parallel compilers [default: one per core]
    #[arg(short, long, value_name = "N", help_heading = "Build", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) jobs: Option<u32>,
    /// Print as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// No progress
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
}
