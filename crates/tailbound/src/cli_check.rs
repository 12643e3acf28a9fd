// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `check` and `capture`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::lazy::Lazy;

/// What the real-time work is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WorkloadArg {
    /// It wakes up, works and sleeps
    Cyclic,
    /// It never sleeps
    Polling,
}

/// What else can be done with the checks.
#[derive(Debug, Subcommand)]
pub(crate) enum CheckVerb {
    /// Capture what the checks read into one file, to check a board from a desk
    Capture(Lazy<CaptureArgs>),
}

/// Arguments of `check`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Nothing is ever written. What is absent is not applicable, what refuses is unknown: neither is ok.\n\nExit status: 0 \
nothing bad; 1 something bad; 2 usage or input error; 3 this machine cannot be read."
)]
pub(crate) struct CheckArgs {
    #[command(subcommand)]
    pub(crate) verb: Option<CheckVerb>,
    /// CPUs for real-time work, as a list [default: those that are isolated]
    #[arg(short = 'c', long, value_name = "LIST")]
    pub(crate) rt_cpus: Option<String>,
    /// What the real-time work is like
    #[arg(
        long,
        value_enum,
        default_value = "cyclic",
        visible_alias = "profile",
        value_name = "KIND"
    )]
    pub(crate) workload: WorkloadArg,
    /// The program that is to be in time: checks its threads too
    #[arg(value_name = "PID", conflicts_with = "pid")]
    pub(crate) target: Option<u32>,
    #[command(flatten)]
    pub(crate) process: crate::cli_process::ProcessArgs,
    /// Watch interrupts, steal and throttling for this time too
    #[arg(long, value_name = "TIME", conflicts_with = "root")]
    pub(crate) sample: Option<String>,
    /// Check a captured machine: a file of `tailbound check capture`, or a folder with proc, sys, …
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Show every check, also those that are ok, unknown or not applicable
    #[arg(long)]
    pub(crate) all: bool,
    /// Print as JSON, with the preconditions of a bound from a model
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) color: crate::cli_color::ColorArg,
}

/// Arguments of `capture`.
#[derive(Debug, Args)]
#[command(
    after_help = "The file (tar.gz) holds what the checks read, and nothing else: no arguments and environments of programs, no host name, \
no addresses. Values of kernel parameters whose names speak of keys, passwords or tokens are left out, and of the kernel's log only the \
lines that checks look for."
)]
pub(crate) struct CaptureArgs {
    /// The file
    #[arg(short, long, value_name = "FILE", default_value = "machine.tar.gz")]
    pub(crate) out: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
    /// Capture what the checks of this program read, too
    #[arg(value_name = "PID", conflicts_with = "pid")]
    pub(crate) target: Option<u32>,
    #[command(flatten)]
    pub(crate) process: crate::cli_process::ProcessArgs,
    /// CPUs for real-time work that will be asked about [default: all but CPU 0]
    #[arg(short = 'c', long, value_name = "LIST")]
    pub(crate) rt_cpus: Option<String>,
}
