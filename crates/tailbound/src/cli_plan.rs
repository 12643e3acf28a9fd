// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `plan`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `plan`.
#[derive(Debug, Args)]
#[command(
    after_help = "At least one of --rate, --share, --quantile, --pilot, --duration or --loops is required. \
Examples:\n  tailbound plan --deadline 100us --rate 1/24h\n  tailbound plan --share 99.999% --loops 10000000\n  \
tailbound plan --duration 12h --interval 100us\n  tailbound plan --pilot run.tailbound.jsonl --decimals 2"
)]
pub(crate) struct PlanVerbArgs {
    /// Deadline whose exceedances must be rare
    #[arg(short = 'd', long, value_name = "TIME")]
    pub(crate) deadline: Option<String>,
    /// Rate of exceedances to demonstrate: `1/24h`
    #[arg(long, value_name = "N/TIME")]
    pub(crate) rate: Option<String>,
    /// Share of activations in time to demonstrate: `99.999%`
    #[arg(long, value_name = "SHARE")]
    pub(crate) share: Option<String>,
    /// Quantile to estimate: `0.99999` or `p99.999`
    #[arg(long, value_name = "P")]
    pub(crate) quantile: Option<String>,
    /// Precision of the quantile: half-width of its confidence interval as a share [default: 10%]
    #[arg(long, value_name = "SHARE")]
    pub(crate) precision: Option<String>,
    /// A pilot run of the machine, from which variance and autocorrelation are estimated
    #[arg(long, value_name = "RUN")]
    pub(crate) pilot: Option<PathBuf>,
    /// With --pilot: how many decimals of a µs the mean should have
    #[arg(long, value_name = "N")]
    pub(crate) decimals: Option<u32>,
    /// What would a run of this duration without exceedances show?
    #[arg(short = 'D', long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
    /// What would a run of N activations without exceedances show?
    #[arg(short = 'l', long, value_name = "N")]
    pub(crate) loops: Option<u64>,
    /// Confidence of the statements
    #[arg(long, value_name = "P", default_value_t = 0.95)]
    pub(crate) confidence: f64,
    /// Interval between activations
    #[arg(short, long, value_name = "TIME", default_value = "1ms")]
    pub(crate) interval: String,
    /// Number of machines measured in parallel
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) machines: u32,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) color: crate::cli_color::ColorArg,
}
