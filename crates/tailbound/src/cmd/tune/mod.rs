// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tune`: one file a subcommand.
//!
//! Context: COLD.

mod look;
mod show;
mod view;

use std::process::ExitCode;

use crate::cli_tune::Tune;
use crate::say::Failure;

/// `tailbound tune`
pub(crate) fn tune(what: &Tune) -> Result<ExitCode, Failure> {
    match what {
        Tune::Show(args) => show::show(args),
    }
}
