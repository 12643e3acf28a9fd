// SPDX-License-Identifier: MIT OR Apache-2.0
//! `export`: a run in the format of another tool.
//!
//! Context: COLD.

use std::path::Path;
use std::process::ExitCode;

use tailbound_report::export::{self, Format};
use tailbound_stats::Analysis;

use crate::cli_export::ExportArgs;
use crate::input;
use crate::say::Failure;

/// `tailbound export`
pub(crate) fn export(args: &ExportArgs) -> Result<ExitCode, Failure> {
    let format: Format = args.format.parse().map_err(|e| Failure::usage(format!("--as: {e}")))?;
    let out = args.out.as_deref().unwrap_or(Path::new("-"));
    input::may_write(out, args.force)?;
    let run = input::run(&args.run)?;
    input::write(out, &export::export(&Analysis::of(&run), format), args.force)?;
    Ok(ExitCode::SUCCESS)
}
