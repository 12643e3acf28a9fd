// SPDX-License-Identifier: MIT OR Apache-2.0
//! `export`: a run in the format of another tool.

use std::path::Path;
use std::process::ExitCode;

use tailbound_report::export::{self, Exported, Format};
use tailbound_stats::Analysis;

use crate::cli_export::ExportArgs;
use crate::flags;
use crate::input::{self, Existing};
use crate::say::{self, Failure};

/// `tailbound export`
pub(crate) fn export(args: &ExportArgs) -> Result<ExitCode, Failure> {
    let format: Format = args.format.parse().map_err(flags::refused("--as"))?;
    let out = args.out.as_deref().unwrap_or(Path::new("-"));
    let existing = Existing::replaced_if(args.force);
    input::may_write(out, existing)?;
    let run = input::run(&args.run)?;
    match export::export(&Analysis::of(&run), format) {
        Exported::Text(text) => input::write(out, &text, existing)?,
        Exported::Bytes(bytes) if out == Path::new("-") => say::answer_bytes(&bytes)?,
        Exported::Bytes(bytes) => input::write_bytes(out, &bytes, existing)?,
    }
    Ok(ExitCode::SUCCESS)
}
