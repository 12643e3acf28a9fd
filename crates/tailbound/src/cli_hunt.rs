// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `tailbound lab hunt`.

use std::path::PathBuf;

use clap::Args;

use crate::cli_guest::HostArgs;

const HELP: &str = "Exit status: 0 the worst workload was found and its command gives the same figure again; 2 usage or input error; \
3 this machine or user cannot; 5 interrupted: the same command goes on.\n\nThe folder holds corpus.jsonl (every candidate with its \
result), shrunk.jsonl (what was tried to make the worst smaller), worst.tailbound.jsonl (a run of what is left of it), \
worst.campaign.toml, and worst.calls.c where system calls are left. The same command goes on where it was.\n\n\
With --here what is left is measured afresh beside the worst single load: the answer begins with whether it is later.";

/// Arguments of `hunt`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct HuntArgs {
    /// The kernel: `debian:6.12-rt`, `debian:6.12`, `path:VMLINUZ[,MODULES]`, `build:NAME`
    #[arg(
        short,
        long,
        value_name = "KERNEL",
        help_heading = "Guest",
        required_unless_present_any = ["resume", "here"]
    )]
    pub(crate) kernel: Option<String>,
    /// Hunt on this machine instead of in the lab: every candidate is run some times, in rounds of random order, and what is found is measured again beside the worst single load
    #[arg(long, conflicts_with_all = ["kernel", "append", "arch", "loops", "no_paths"], help_heading = "This machine")]
    pub(crate) here: bool,
    /// Length of each run on this machine [default: 2s]
    #[arg(long, value_name = "TIME", help_heading = "This machine")]
    pub(crate) each: Option<String>,
    /// Runs of each candidate on this machine; it counts for the least of its latest wake-ups [default: 2]
    #[arg(long, value_name = "N", help_heading = "This machine")]
    pub(crate) rounds: Option<u32>,
    /// CPUs to measure on this machine, for example 0-1,3 [default: all]
    #[arg(short = 'c', long, value_name = "LIST", help_heading = "This machine")]
    pub(crate) cpus: Option<String>,
    /// Append to the kernel's command line
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true, help_heading = "Guest")]
    pub(crate) append: Option<String>,
    /// Architecture of the guest: `x86_64`, `aarch64` [default: x86_64]
    #[arg(long, value_name = "ARCH", help_heading = "Guest")]
    pub(crate) arch: Option<String>,
    /// Activations of each candidate [default: 400]
    #[arg(short = 'l', long, value_name = "N", help_heading = "Guest")]
    pub(crate) loops: Option<u64>,
    /// How long to search [default: 30m, or as long as --evaluations takes]
    #[arg(long = "for", value_name = "TIME", help_heading = "Search")]
    pub(crate) length: Option<String>,
    /// How many candidates to try in all, with those that are in the folder
    #[arg(long, value_name = "N", help_heading = "Search")]
    pub(crate) evaluations: Option<u64>,
    /// Seed of the search: with each, other candidates [default: 1]
    #[arg(long, value_name = "N", help_heading = "Search")]
    pub(crate) seed: Option<u64>,
    /// Draw every candidate at random: what the search is to be compared with
    #[arg(long, help_heading = "Search")]
    pub(crate) random: bool,
    /// Do not watch the kernel's sections, which is a little faster: latest wake-ups alone lead the search
    #[arg(long, help_heading = "Search")]
    pub(crate) no_paths: bool,
    /// How much less late the smaller workload may be than the worst one: percent of it
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, help_heading = "Search")]
    pub(crate) within: f64,
    /// Make candidate number N smaller instead of the worst one: with --for 0s, without searching on
    #[arg(long, value_name = "N", conflicts_with = "here", help_heading = "Search")]
    pub(crate) shrink: Option<u64>,
    /// Go on with the hunt in this folder; kernel and options of the search are those it was begun with
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kernel", "here", "append", "arch", "loops", "seed", "random", "no_paths", "out"], help_heading = "Search")]
    pub(crate) resume: Option<PathBuf>,
    /// The folder [default: hunt]
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) host: HostArgs,
}
