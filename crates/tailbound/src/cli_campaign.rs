// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `tailbound campaign`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use tailbound_series::campaign::Options;

use crate::cli_guest::{GuestArgs, HostArgs};
use crate::lazy::Lazy;

/// What can be done with campaigns.
#[derive(Debug, Subcommand)]
pub(crate) enum Campaign {
    /// List the campaigns that come with this program
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what a campaign measures, how long it takes, and what was published
    Show(Lazy<CampaignShowArgs>),
    /// Repeat a published measurement, here or on kernels of the lab; resumes an interrupted one
    Run(Lazy<CampaignRunArgs>),
    /// Write the report of a campaign's folder, wherever its runs were made
    Page(Lazy<CampaignPageArgs>),
}

/// Arguments of `campaign show`.
#[derive(Debug, Args)]
pub(crate) struct CampaignShowArgs {
    /// A campaign's name (see `campaign list`) or a file
    #[arg(value_name = "NAME|FILE")]
    pub(crate) name: String,
    /// Print the file itself, as a base for your own
    #[arg(long, conflicts_with = "json")]
    pub(crate) toml: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const RUN_HELP: &str = "Exit status: 0 every run complete and no claim of the publication contradicted; 1 a claim does not hold here; 2 usage or input error; 3 a run could not be made; 5 not complete: the same command resumes it.\n\nThe folder holds a folder for each system with a run file for each run, and campaign.html. Runs that are complete are kept; those that were cut off are made again. In the lab all times are virtual: shorten with --scale.";

/// Arguments of `campaign run`.
#[derive(Debug, Args)]
#[command(after_help = RUN_HELP)]
pub(crate) struct CampaignRunArgs {
    /// A campaign's name (see `campaign list`) or a file
    #[arg(value_name = "NAME|FILE")]
    pub(crate) name: String,
    /// Scale everything down to this share: activations, repetitions, amounts of work; the report says what can then no longer be claimed
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, help_heading = "Campaign")]
    pub(crate) scale: f64,
    /// Only these runs, by their names or by the names of their steps
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Campaign")]
    pub(crate) only: Vec<String>,
    /// Measured CPUs, instead of those of the campaign: `all`, `isolated` or a list
    #[arg(short = 'a', long, value_name = "CPUS", help_heading = "Campaign")]
    pub(crate) cpus: Option<String>,
    /// Source of pulses for runs that are timed from outside, as of `box run`; without it they are not made
    #[arg(long, value_name = "KIND:WHERE", conflicts_with = "kernel", help_heading = "Campaign")]
    pub(crate) via: Option<String>,
    /// Name of this machine in the folder [default: its kernel release]
    #[arg(long, value_name = "NAME", help_heading = "Campaign")]
    pub(crate) system: Option<String>,
    /// Resume in an existing folder
    #[arg(long, help_heading = "Campaign")]
    pub(crate) resume: bool,
    /// Do not ask before a long time in the lab, or before running commands from the campaign file as root
    #[arg(short, long, help_heading = "Campaign")]
    pub(crate) yes: bool,
    /// Wait while a fleet or an agent measures on this machine, instead of ending with an error
    #[arg(long, help_heading = "Campaign")]
    pub(crate) wait_for_machine: bool,
    /// Let the first activation of the only run, which --only names, fall due at this instant: seconds since 1970
    #[arg(long, value_name = "SECONDS", conflicts_with = "kernel", help_heading = "Campaign")]
    pub(crate) begin_at: Option<String>,
    /// Measure in the lab: `debian:6.12`, `debian:6.12-rt`, `path:…`, `build:…`; several are compared
    #[arg(short, long, value_name = "KERNEL", help_heading = "Guest")]
    pub(crate) kernel: Vec<String>,
    #[command(flatten)]
    pub(crate) guest: GuestArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    /// The folder [default: the campaign's name with .campaign, and a number if that folder was made with other options]
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Make runs again that were made with different options
    #[arg(long, help_heading = "Output")]
    pub(crate) force: bool,
    /// Write how far it is to FILE that is there, a line of JSON each second: a named pipe, or /proc/self/fd/N. Not of runs in the lab
    #[arg(long, value_name = "FILE", conflicts_with = "kernel", help_heading = "Output")]
    pub(crate) progress: Option<PathBuf>,
}

impl CampaignRunArgs {
    /// What is asked for beside the campaign.
    pub(crate) fn options(&self) -> Options {
        Options {
            scale: self.scale,
            cpus: self.cpus.clone(),
            system: self.system.clone(),
            force: self.force,
            begin_at: self.begin_at.clone(),
            via: self.via.clone(),
        }
    }
}

/// Arguments of `campaign page`.
#[derive(Debug, Args)]
pub(crate) struct CampaignPageArgs {
    /// Folders of `campaign run`; the report shows the systems of all of them
    #[arg(required = true, value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,
    /// Campaign file to use instead of the one in the first folder, for figures or claims added since
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) campaign: Option<String>,
    /// The HTML file [default: campaign.html in the first folder]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) color: crate::cli_color::ColorArg,
}
