// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flag `--color`.

use clap::{Args, ValueEnum};

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    // Without comments for help: the words say it.
    Auto,
    Always,
    Never,
}

/// When to colour, the same everywhere.
#[derive(Debug, Args)]
pub(crate) struct ColorArg {
    /// Colour: `auto`, `always`, `never`
    #[arg(
        long = "color",
        value_name = "WHEN",
        value_enum,
        default_value_t = ColorChoice::Auto,
        help_heading = "Output"
    )]
    pub(crate) when: ColorChoice,
}
