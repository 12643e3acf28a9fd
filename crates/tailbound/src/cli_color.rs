// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flag `--color`.

use clap::Args;

/// When to colour, the same everywhere.
#[derive(Debug, Args)]
pub(crate) struct ColorArg {
    /// Colour: `auto`, `always`, `never`
    #[arg(
        long = "color",
        value_name = "WHEN",
        default_value = "auto",
        value_parser = ["auto", "always", "never"],
        help_heading = "Output"
    )]
    pub(crate) when: String,
}
