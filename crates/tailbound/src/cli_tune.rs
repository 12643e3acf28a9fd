// SPDX-License-Identifier: MIT OR Apache-2.0
//! Subcommands of `tailbound tune`, and the arguments they share.
//!
//! Not here: the arguments of `tune show` (`cli_tune_show`).

use std::path::PathBuf;

use clap::{Args, Subcommand};
use tailbound_tune::typed::{CpusWords, RecipeWords};

use crate::cli_tune_auto::AutoArgs;
use crate::cli_tune_show::TuneShowArgs;
use crate::lazy::Lazy;

/// What can be done to a machine.
#[derive(Debug, Subcommand)]
pub(crate) enum Tune {
    /// Show threads and interrupts: policy, priority, affinity, CPU, switches and rates; with --live to select and change them
    Show(Lazy<TuneShowArgs>),
    /// List the profiles that come with the program, or print one
    Profiles(Lazy<ProfilesArgs>),
    /// List all settings: values, cost, the checks they cure
    Settings(Lazy<JsonArg>),
    /// Show what a profile comes to on this machine, as a table or as shell scripts; changes nothing
    Plan(Lazy<PlanTuneArgs>),
    /// Apply a profile or a saved plan: all of it, or nothing
    Apply(Lazy<ApplyArgs>),
    /// Keep what `apply --confirm` would revert
    Confirm(Lazy<WhichArgs>),
    /// Undo the last change exactly, as far as nobody else has changed it since
    Undo(Lazy<UndoArgs>),
    /// Show which changes are in force
    Status(Lazy<JsonArg>),
    /// Check that what was applied is still so; name what changed and who may have done it
    Verify(Lazy<WhichJsonArgs>),
    /// List all changes ever made, undone ones too
    History(Lazy<JsonArg>),
    /// Isolate CPUs: threads, kernel threads, interrupts, work queues leave; a cpuset partition keeps them out
    Isolate(Lazy<IsolateArgs>),
    /// Move threads to CPUs
    Move(Lazy<MoveArgs>),
    /// Move interrupts to CPUs, and set the policy of their threads
    Irq(Lazy<IrqArgs>),
    /// Set the policy of threads, or settings by name
    Set(Lazy<SetArgs>),
    /// Find out by measurement which changes help on this machine, or in the lab, and keep those
    Auto(Lazy<AutoArgs>),
    /// Run a program on isolated CPUs, inside the partition that `isolate` made
    Exec(Lazy<ExecArgs>),
}

/// `--json` alone.
#[derive(Debug, Args)]
pub(crate) struct JsonArg {
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `profiles`.
#[derive(Debug, Args)]
pub(crate) struct ProfilesArgs {
    /// Print this one, as TOML
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Print the list as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// For which CPUs, and what not.
#[derive(Debug, Args)]
pub(crate) struct CpusArgs {
    /// CPUs for real-time work, as a list; all others keep everything else
    #[arg(short = 'c', long, value_name = "LIST")]
    pub(crate) rt_cpus: Option<String>,
    /// Allow CPU 0 among them: what cannot be moved from there stays
    #[arg(long)]
    pub(crate) allow_cpu0: bool,
    /// Leave out this setting of the profile; may be repeated
    #[arg(long, value_name = "SETTING", value_delimiter = ',')]
    pub(crate) without: Vec<String>,
}

impl CpusArgs {
    /// The same for a library.
    pub(crate) fn words(&self) -> CpusWords {
        CpusWords {
            rt_cpus: self.rt_cpus.clone(),
            allow_cpu0: self.allow_cpu0,
            without: self.without.clone(),
        }
    }
}

/// What is to be changed.
#[derive(Debug, Args)]
pub(crate) struct RecipeArgs {
    /// A profile that comes with the program, or a TOML file
    #[arg(short, long, value_name = "NAME|FILE")]
    pub(crate) profile: Option<String>,
    /// One setting; may be repeated, and goes over that of the profile
    #[arg(short, long = "set", value_name = "SETTING=VALUE")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) cpus: CpusArgs,
    /// Add the profile's boot parameters to the boot loader's configuration; they count after a reboot
    #[arg(long)]
    pub(crate) boot: bool,
}

impl RecipeArgs {
    /// The same for a library.
    pub(crate) fn words(&self) -> RecipeWords {
        RecipeWords {
            profile: self.profile.clone(),
            set: self.set.clone(),
            cpus: self.cpus.words(),
            boot: self.boot,
        }
    }
}

/// Arguments of `plan`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 a plan was made, also an empty one; 2 usage or input error; 3 this machine or these CPUs cannot."
)]
pub(crate) struct PlanTuneArgs {
    #[command(flatten)]
    pub(crate) recipe: RecipeArgs,
    /// Save the plan for `tune apply --plan`
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
    /// Print a shell script that does the same
    #[arg(long, conflicts_with_all = ["undo_script", "json"])]
    pub(crate) script: bool,
    /// Print a shell script that undoes it
    #[arg(long, conflicts_with = "json")]
    pub(crate) undo_script: bool,
    /// Print a unit for systemd that applies it at each start and undoes it at each stop
    #[arg(long, conflicts_with_all = ["script", "undo_script", "json"])]
    pub(crate) systemd_unit: bool,
    /// Show every change, and what is so already
    #[arg(long)]
    pub(crate) all: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How a plan is applied.
#[derive(Debug, Args)]
pub(crate) struct HowArgs {
    /// Show the plan and change nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Undo it after this time unless `tailbound tune confirm` comes first
    #[arg(long, value_name = "TIME")]
    pub(crate) confirm: Option<String>,
    /// Show every change
    #[arg(long)]
    pub(crate) all: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `apply`.
#[derive(Debug, Args)]
#[command(
    after_help = "Every change is written to a journal before it is made (/run/tailbound/tune, or /var/lib/tailbound/tune for files that \
outlive a reboot), and read back. If one is refused, those before it are undone.\n\nExit status: 0 applied, or nothing was to be changed; \
1 a change was refused and all were undone; 2 usage or input error; 3 this machine, user or plan cannot."
)]
pub(crate) struct ApplyArgs {
    #[command(flatten)]
    pub(crate) recipe: RecipeArgs,
    /// Stay, change also the threads and interrupts that appear later, and undo all of it at the end
    #[arg(long, conflicts_with_all = ["plan", "confirm", "dry_run", "json"])]
    pub(crate) keep: bool,
    /// Apply a plan saved by `tune plan --out`, if the machine is still as it was
    #[arg(long, value_name = "FILE", conflicts_with_all = ["profile", "set"])]
    pub(crate) plan: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

/// One change, by its number.
#[derive(Debug, Args)]
pub(crate) struct WhichArgs {
    /// Number of the change [default: the last one]
    #[arg(value_name = "NUMBER")]
    pub(crate) number: Option<u32>,
}

/// One change, or its answer as JSON.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 everything is in force; 1 something was changed since; 2 usage error; 3 cannot."
)]
pub(crate) struct WhichJsonArgs {
    #[command(flatten)]
    pub(crate) which: WhichArgs,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `undo`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 everything is as it was; 1 something was left, because another program changed it or it could not be \
restored; 2 usage error; 3 cannot."
)]
pub(crate) struct UndoArgs {
    #[command(flatten)]
    pub(crate) which: WhichArgs,
    /// Undo all changes, the last one first
    #[arg(long, conflicts_with = "number")]
    pub(crate) all: bool,
    /// Also restore what another program has changed since
    #[arg(long)]
    pub(crate) force: bool,
    /// Restore nothing: leave the settings as they are and forget the change
    #[arg(long, conflicts_with = "force")]
    pub(crate) forget: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `isolate`.
#[derive(Debug, Args)]
pub(crate) struct IsolateArgs {
    /// The CPUs, as a list
    #[arg(value_name = "LIST")]
    pub(crate) cpus: String,
    /// Affinities only, no cpuset partition
    #[arg(long)]
    pub(crate) no_partition: bool,
    /// Allow CPU 0 among them: what cannot be moved from there stays
    #[arg(long)]
    pub(crate) allow_cpu0: bool,
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

/// Arguments of `move`.
#[derive(Debug, Args)]
pub(crate) struct MoveArgs {
    /// Threads by number or name; `*` stands for any characters
    #[arg(value_name = "THREAD", required = true)]
    pub(crate) threads: Vec<String>,
    /// To these CPUs, as a list
    #[arg(short = 'a', long, value_name = "LIST")]
    pub(crate) cpus: String,
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

/// Arguments of `irq`.
#[derive(Debug, Args)]
pub(crate) struct IrqArgs {
    /// Interrupts by number or device; `*` stands for any characters
    #[arg(value_name = "INTERRUPT", required = true)]
    pub(crate) interrupts: Vec<String>,
    /// To these CPUs, as a list
    #[arg(short = 'a', long, value_name = "LIST", required_unless_present = "policy")]
    pub(crate) cpus: Option<String>,
    /// Policy of the threads that handle them (`irq/NUMBER-…`): fifo:80, rr:10, other
    #[arg(short, long, value_name = "POLICY")]
    pub(crate) policy: Option<String>,
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

/// Arguments of `set`.
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// SETTING=VALUE, or with --policy threads by number or name (`*` stands for any characters)
    #[arg(value_name = "WHAT", required = true)]
    pub(crate) what: Vec<String>,
    /// Policy of the threads: fifo:80, rr:10, other, batch, idle
    #[arg(short, long, value_name = "POLICY")]
    pub(crate) policy: Option<String>,
    #[command(flatten)]
    pub(crate) cpus: CpusArgs,
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

/// Arguments of `exec`.
#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// CPUs of the partition the program may use, as a list [default: all of it]
    #[arg(short = 'a', long, value_name = "LIST")]
    pub(crate) cpus: Option<String>,
    /// Its policy: fifo:80, rr:10
    #[arg(short, long, value_name = "POLICY")]
    pub(crate) policy: Option<String>,
    /// The program and its arguments
    #[arg(
        value_name = "COMMAND",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) command: Vec<std::ffi::OsString>,
}
