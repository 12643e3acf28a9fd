// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of `tune auto`.

use std::path::PathBuf;

use clap::Args;
use tailbound_tune::candidates::CandidateWords;

use crate::cli_compare::JudgeArgs;
use crate::cli_guest::HostArgs;

/// Arguments of `tune auto`.
#[derive(Debug, Args)]
#[command(
    after_help = "Each stage runs the untouched system and the changes in turn, in random order, and judges as `tailbound compare` does: \
each change alone; the better half again; those that are left together, and all but each; at last what is kept, measured afresh. \
See docs/tune.md.\n\nCtrl-C ends it: every setting is as before, and the same command with the same --out goes on.\n\n\
Exit status: 0 done, also where nothing helps; 2 usage or input error; 3 this machine or user cannot; 5 ended by a signal."
)]
pub(crate) struct AutoArgs {
    /// Profile whose settings are tried, each by itself; a file, or one that comes with the program [default: cyclic]
    #[arg(short, long, value_name = "NAME|FILE", help_heading = "Changes")]
    pub(crate) profile: Option<String>,
    /// One more setting to try; may be repeated
    #[arg(short, long = "set", value_name = "SETTING=VALUE", help_heading = "Changes")]
    pub(crate) set: Vec<String>,
    /// Do not try this setting; may be repeated
    #[arg(long, value_name = "SETTING", value_delimiter = ',', help_heading = "Changes")]
    pub(crate) without: Vec<String>,
    /// CPUs for real-time work, which are measured
    #[arg(short = 'c', long, value_name = "LIST", help_heading = "Changes")]
    pub(crate) rt_cpus: Option<String>,
    /// With --lab: boot parameters to try, one change each; may be repeated
    #[arg(
        long,
        value_name = "WORDS",
        allow_hyphen_values = true,
        requires = "lab",
        help_heading = "Changes"
    )]
    pub(crate) try_append: Vec<String>,
    /// With --lab: another kernel to try, such as `build:NAME` with other options; may be repeated
    #[arg(long, value_name = "KERNEL", requires = "lab", help_heading = "Changes")]
    pub(crate) try_kernel: Vec<String>,

    /// What is required: the largest acceptable latency
    #[arg(
        short,
        long,
        visible_alias = "requirement",
        value_name = "TIME",
        help_heading = "Measurement"
    )]
    pub(crate) deadline: Option<String>,
    /// How long all of it may take, on this machine
    #[arg(long, value_name = "TIME", default_value = "30min", help_heading = "Measurement")]
    pub(crate) budget: String,
    /// Interval between activations [default: 1ms]
    #[arg(short, long, value_name = "TIME", help_heading = "Measurement")]
    pub(crate) interval: Option<String>,
    /// Loads during the measurement, separated by commas, or `none`; see `tailbound load --help` [default: hackbench,memory; in the lab hackbench]
    #[arg(short = 'L', long, value_name = "LOADS", help_heading = "Measurement")]
    pub(crate) load: Vec<String>,
    /// Any shell command as a load: yours
    #[arg(long, value_name = "CMD", conflicts_with = "lab", help_heading = "Measurement")]
    pub(crate) load_cmd: Option<String>,
    /// Further options of the measurement, from a run configuration (TOML)
    #[arg(long, value_name = "FILE", help_heading = "Measurement")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) judge: JudgeArgs,

    /// Try in the lab, in virtual time: a reboot is part of a round
    #[arg(long, requires = "kernel", help_heading = "Lab")]
    pub(crate) lab: bool,
    /// With --lab: the kernel, such as debian:6.12-rt
    #[arg(short, long, value_name = "KERNEL", requires = "lab", help_heading = "Lab")]
    pub(crate) kernel: Option<String>,
    /// With --lab: CPUs of the guest [default: 1]
    #[arg(long, value_name = "N", requires = "lab", help_heading = "Lab")]
    pub(crate) smp: Option<u32>,
    /// With --lab: rounds of the first stage, each with a seed of its own [default: 6]
    #[arg(long, value_name = "N", requires = "lab", help_heading = "Lab")]
    pub(crate) rounds: Option<u32>,
    /// With --lab: activations of each measurement [default: 3000]
    #[arg(short, long, value_name = "N", requires = "lab", help_heading = "Lab")]
    pub(crate) loops: Option<u64>,
    #[command(flatten)]
    pub(crate) host: HostArgs,

    /// Only find out: leave this machine untouched at the end
    #[arg(long, conflicts_with = "lab", help_heading = "Output")]
    pub(crate) no_apply: bool,
    /// Folder for runs, profile and report [default: tailbound-TIME.auto]
    #[arg(short, long, value_name = "FOLDER", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Begin anew in a folder that holds another experiment
    #[arg(long, help_heading = "Output")]
    pub(crate) force: bool,
}

impl AutoArgs {
    /// The changes that are to be tried.
    pub(crate) fn candidates(&self) -> CandidateWords {
        CandidateWords {
            profile: self.profile.clone(),
            set: self.set.clone(),
            without: self.without.clone(),
            append: self.try_append.clone(),
            kernel: self.try_kernel.clone(),
        }
    }
}
