// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words of `plan`.
//!
//! Context: COLD.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `plan`.
#[derive(Debug, Args)]
#[command(
    after_help = "At least one of --rate, --share, --quantile, --pilot, --duration or --loops says what is \
wanted. Examples:\n  tailbound plan --deadline 100us --rate 1/24h\n  tailbound plan --share 99.999% --loops 10000000\n  \
tailbound plan --duration 12h --interval 100us\n  tailbound plan --pilot run.tailbound.jsonl --decimals 2"
)]
pub(crate) struct PlanVerbArgs {
    /// The deadline of which exceedances must be rare
    #[arg(short = 'd', long, value_name = "TIME")]
    pub(crate) deadline: Option<String>,
    /// The rate of exceedances to be shown: `1/24h`
    #[arg(long, value_name = "N/TIME")]
    pub(crate) rate: Option<String>,
    /// The share of activations in time to be shown: `99.999%`
    #[arg(long, value_name = "SHARE")]
    pub(crate) share: Option<String>,
    /// The quantile to be known: `0.99999` or `p99.999`
    #[arg(long, value_name = "P")]
    pub(crate) quantile: Option<String>,
    /// How well: half-width of the interval as a share [default: 10%]
    #[arg(long, value_name = "SHARE")]
    pub(crate) precision: Option<String>,
    /// A run of the machine, which tells how much its activations vary and depend on each other
    #[arg(long, value_name = "RUN")]
    pub(crate) pilot: Option<PathBuf>,
    /// Decimals of a µs to which the mean of the pilot's kind of run is to be known
    #[arg(long, value_name = "N")]
    pub(crate) decimals: Option<u32>,
    /// What does a clean run of this length show?
    #[arg(short = 'D', long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
    /// What does a clean run of so many activations show?
    #[arg(short = 'l', long, value_name = "N")]
    pub(crate) loops: Option<u64>,
    /// Confidence of the statements
    #[arg(long, value_name = "P", default_value_t = 0.95)]
    pub(crate) confidence: f64,
    /// From one activation to the next
    #[arg(short, long, value_name = "TIME", default_value = "1ms")]
    pub(crate) interval: String,
    /// Machines measured beside each other
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) machines: u32,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) color: crate::cli::ColorArg,
}
