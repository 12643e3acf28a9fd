// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs of a campaign on this machine.
//!
//! Not here: which runs are made, in which order, and their progress (`tailbound_series::campaign`).

use std::fs::File;
use std::path::PathBuf;

use tailbound_core::campaign::Part;
use tailbound_series::campaign::{self as series, CampaignEnd, CampaignLine, Chosen, Folder};

use crate::caller::Machine;
use crate::cli_campaign::CampaignRunArgs;
use crate::say::{self, Failure};

/// Makes every one of `parts` that is not there yet.
pub(super) fn make(
    args: &CampaignRunArgs,
    chosen: &Chosen,
    parts: &[Part],
    folder: &Folder,
) -> Result<CampaignEnd, Failure> {
    let to = |path: &PathBuf| {
        let opened = File::options().append(true).open(path);
        opened.map_err(|e| Failure::usage(format!("--progress: {}: {e}", path.display())))
    };
    let program = args.progress.as_ref().map(to).transpose()?;
    let mut line = CampaignLine::new(say::progress(args.host.quiet), program);
    let mut machine = Machine::default();
    let made = series::make(&args.options(), chosen, parts, folder, &mut machine, &mut line);
    line.clear();
    made
}
