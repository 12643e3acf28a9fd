// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `tailbound store`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::lazy::Lazy;

/// Subcommands about a store of runs.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "The store is the file or server of --store, else of $TAILBOUND_STORE, else store.sqlite in $XDG_STATE_HOME/tailbound \
    (~/.local/state/tailbound; /var/lib/tailbound for root). Tables: docs/store.md. Ten queries: examples/store/questions.sql."
)]
pub(crate) enum StoreVerb {
    /// Add run files; one that is there already is not added twice
    Add(Lazy<StoreAddArgs>),
    /// List runs, the newest first
    #[command(visible_alias = "list")]
    Ls(Lazy<StoreLsArgs>),
    /// Get a run file back, byte for byte
    Get(Lazy<StoreGetArgs>),
    /// Ask the tables in SQL; nothing can be changed
    Query(Lazy<StoreQueryArgs>),
    /// Note something about a run, which then is never pruned
    Note(Lazy<StoreNoteArgs>),
    /// Delete old runs, never a worst case
    Prune(Lazy<StorePruneArgs>),
    /// Make all tables again from the run files that the store keeps
    Rebuild(Lazy<StoreRebuildArgs>),
    /// Write runs for other programs: CSV, Parquet, KCIDB
    Export(Lazy<StoreExportArgs>),
    /// Say what became worse and stayed so, for a person, a mail or a CI server
    Regressions(Lazy<StoreRegressionsArgs>),
    /// Write the whole store as one file, while others use it
    Backup(Lazy<StoreBackupArgs>),
    /// Put a backup into an empty store, of either database
    Restore(Lazy<StoreRestoreArgs>),
}

/// Which store.
#[derive(Debug, Args)]
pub(crate) struct StoreArg {
    /// The store: a file of SQLite, or postgresql://USER@HOST/DATABASE
    #[arg(long = "store", value_name = "PLACE")]
    pub(crate) place: Option<String>,
}

/// Arguments of `store add`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 all are in the store; 2 some are no run files, which are named: the others were added; 3 the store cannot be written."
)]
pub(crate) struct StoreAddArgs {
    /// Run files, also packed (.gz, .zst), or folders of them (*.tailbound.jsonl)
    #[arg(required = true, value_name = "RUN|FOLDER")]
    pub(crate) runs: Vec<PathBuf>,
    /// Name of the machine that they were measured on [default: what it is: model, board or CPU]
    #[arg(long, value_name = "NAME")]
    pub(crate) system: Option<String>,
    /// When they arrived, of files that were kept elsewhere until now: `2026-11-25T02:00:00Z` (UTC) [default: now]. A run in
    /// virtual time stands in its series where it arrived
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArg,
}

/// Which runs.
#[derive(Debug, Args)]
pub(crate) struct ChosenArgs {
    /// Only runs of this machine
    #[arg(long, value_name = "NAME")]
    pub(crate) system: Option<String>,
    /// Only runs that began at this time or later: `2026-11`, `2026-11-25`, `2026-11-25T06:00:00Z` (UTC)
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only runs that began before it
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
}

/// Arguments of `store ls`.
#[derive(Debug, Args)]
pub(crate) struct StoreLsArgs {
    #[command(flatten)]
    pub(crate) chosen: ChosenArgs,
    /// At most so many, the newest; 0: all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    pub(crate) number: u64,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArg,
    #[command(flatten)]
    pub(crate) color: crate::cli_color::ColorArg,
}

/// Arguments of `store get`.
#[derive(Debug, Args)]
pub(crate) struct StoreGetArgs {
    /// Its identity, or the beginning of it, or its name
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Where it is written; `-` is standard output [default: NAME.tailbound.jsonl]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArg,
}

/// Arguments of `store query`.
#[derive(Debug, Args)]
pub(crate) struct StoreQueryArgs {
    /// One statement that reads; `-`: it is on standard input
    #[arg(value_name = "SQL")]
    pub(crate) sql: String,
    /// Print as JSON, an object a row
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Print as CSV (RFC 4180)
    #[arg(long)]
    pub(crate) csv: bool,
    /// End the query after this time
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) timeout: String,
    #[command(flatten)]
    pub(crate) store: StoreArg,
    #[command(flatten)]
    pub(crate) color: crate::cli_color::ColorArg,
}

/// Arguments of `store note`.
#[derive(Debug, Args)]
pub(crate) struct StoreNoteArgs {
    /// Its identity, or the beginning of it, or its name
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// What is to be remembered
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,
    /// Who says so [default: $USER]
    #[arg(long, value_name = "NAME")]
    pub(crate) author: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArg,
}

/// Arguments of `store prune`.
#[derive(Debug, Args)]
#[command(
    after_help = "Of each system, workload and kernel these stay whatever their age: the worst run of all and of each month, the first, \
    the last, those that were not met, and those with a note. Without --yes nothing is deleted."
)]
pub(crate) struct StorePruneArgs {
    /// Delete runs that began longer ago than this: `90d`, `2y`
    #[arg(long, value_name = "AGE")]
    pub(crate) older_than: String,
    /// Delete them; without it they are only counted
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArg,
}

/// Arguments of `store rebuild`.
#[derive(Debug, Args)]
pub(crate) struct StoreRebuildArgs {
    /// No progress notes
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArg,
}

/// What `store export` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExportFormat {
    /// Comma-separated values (RFC 4180)
    Csv,
    /// Apache Parquet, for pandas, Polars, R, DuckDB, Spark
    Parquet,
    /// JSON for the KernelCI database, schema 5.0
    Kcidb,
}

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExportTable {
    /// A run, with its system, kernel and workload
    Runs,
    /// A bucket of a histogram of a run
    Histograms,
}

/// Arguments of `store export`.
#[derive(Debug, Args)]
#[command(
    after_help = "All columns, and what KCIDB gets of a run: docs/store.md. A file gets its name when it is whole."
)]
pub(crate) struct StoreExportArgs {
    /// What is written
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: ExportFormat,
    /// What a row is, of CSV and Parquet
    #[arg(long, value_name = "TABLE", default_value = "runs")]
    pub(crate) table: ExportTable,
    /// Of KCIDB: the name that it gave your CI system (lower-case letters, digits, underscores)
    #[arg(long, value_name = "NAME")]
    pub(crate) origin: Option<String>,
    /// Where it is written; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) out: PathBuf,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) chosen: ChosenArgs,
    /// At most so many runs, the newest; 0: all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 0)]
    pub(crate) number: u64,
    /// Say what was written as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArg,
}

/// How `store regressions` answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RegressionsFormat {
    /// Words, for a terminal
    Text,
    /// A mail with its subject, for sendmail(1)
    Mail,
    /// JUnit XML, a case for each series
    Junit,
    /// KTAP, a case for each series
    Ktap,
}

/// Days that `store regressions` looks back, as the pages of `serve` do.
pub(crate) const DAYS: i64 = 180;

/// Arguments of `store regressions`.
#[derive(Debug, Args)]
#[command(
    after_help = "A series: the runs of one system with one workload. Those with too few runs are skipped.\n\n\
    Exit status: 0 nothing became worse; 1 something did."
)]
pub(crate) struct StoreRegressionsArgs {
    /// Only this machine
    #[arg(long, value_name = "NAME")]
    pub(crate) system: Option<String>,
    /// Tell of what became worse within so many days, up to today
    #[arg(long, value_name = "DAYS", default_value_t = DAYS,
        value_parser = clap::value_parser!(i64).range(1..=36_500))]
    pub(crate) days: i64,
    /// How it is written
    #[arg(long, value_name = "FORMAT", default_value = "text", conflicts_with = "json")]
    pub(crate) format: RegressionsFormat,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArg,
}

/// Arguments of `store backup`.
#[derive(Debug, Args)]
#[command(
    after_help = "The file is a store of SQLite, also of a store on a server, and was looked at whole (integrity_check) before it gets its name. \
    It needs its size twice in the folder while it is written."
)]
pub(crate) struct StoreBackupArgs {
    /// The file that is written
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArg,
}

/// Arguments of `store restore`.
#[derive(Debug, Args)]
#[command(
    after_help = "The store is made where there is none. One that has runs is refused: `store add` adds to it. All comes back, or nothing."
)]
pub(crate) struct StoreRestoreArgs {
    /// A backup, or another store of SQLite; it is only read
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArg,
}
