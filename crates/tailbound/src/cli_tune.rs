// SPDX-License-Identifier: MIT OR Apache-2.0
//! Subcommands of `tailbound tune`.
//!
//! Context: COLD. Not here: their arguments.

use clap::Subcommand;

use crate::cli_tune_show::TuneShowArgs;
use crate::lazy::Lazy;

/// What can be done to a machine.
#[derive(Debug, Subcommand)]
pub(crate) enum Tune {
    /// Show threads and interrupts: policy, priority, affinity, CPU, switches and rates; with --live to select and change them
    Show(Lazy<TuneShowArgs>),
}
