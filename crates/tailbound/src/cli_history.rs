// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `history`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `history`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 no change, or the last one made nothing worse; 1 the last change is a regression; 2 usage or input error."
)]
pub(crate) struct HistoryArgs {
    /// Run files, files of tools that `import` reads, or folders of run files (*.tailbound.jsonl)
    #[arg(required = true, value_name = "RUN|FOLDER")]
    pub(crate) runs: Vec<PathBuf>,
    /// Smallest relevant change, as a share
    #[arg(long, value_name = "SHARE", default_value = "5%")]
    pub(crate) margin: String,
    /// Seed of the permutations
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the picture of the longest series (SVG) instead
    #[arg(long)]
    pub(crate) svg: bool,
    /// Also write picture, changes and tables as one HTML file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) color: crate::cli_color::ColorArg,
}
