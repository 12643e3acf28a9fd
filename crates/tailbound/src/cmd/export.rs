// SPDX-License-Identifier: MIT OR Apache-2.0
//! `export`: a run in the format of another tool.

use std::path::Path;
use std::process::ExitCode;

use tailbound_report::export::{self, Exported, Format};
use tailbound_stats::Analysis;

use crate::cli_export::ExportArgs;
use crate::flags;
use crate::say::Failure;
use crate::{input, say};

/// `tailbound export`
pub(crate) fn export(args: &ExportArgs) -> Result<ExitCode, Failure> {
    let format: Format = args.format.parse().map_err(flags::refused("--as"))?;
    let out = args.out.as_deref().unwrap_or(Path::new("-"));
    input::may_write(out, args.force)?;
    let run = input::run(&args.run)?;
    match export::export(&Analysis::of(&run), format) {
        Exported::Text(text) => input::write(out, &text, args.force)?,
        Exported::Bytes(bytes) if out == Path::new("-") => say::answer_bytes(&bytes)?,
        Exported::Bytes(bytes) => input::write_bytes(out, &bytes, args.force)?,
    }
    Ok(ExitCode::SUCCESS)
}
