// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words of `export`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use tailbound_report::export::FORMATS;

/// Arguments of `export`.
#[derive(Debug, Args)]
#[command(after_help = formats_help())]
pub(crate) struct ExportArgs {
    /// A run file, or a file of a tool that `import` reads; `-` is standard input
    #[arg(value_name = "RUN", value_hint = clap::ValueHint::FilePath)]
    pub(crate) run: PathBuf,
    /// The format
    #[arg(long = "as", value_name = "FORMAT", required = true, hide_possible_values = true,
        value_parser = PossibleValuesParser::new(FORMATS.map(|(name, ..)| name)))]
    pub(crate) format: String,
    /// Where it goes [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

fn formats_help() -> String {
    let lines = FORMATS.map(|(name, about, _)| format!("\n  {name:<18} {about}"));
    format!("Formats:{}\n\nWhat each of them cannot hold: docs/export.md", lines.concat())
}
