// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lab cache`: what the lab's folder holds, whether it is sound, and removing from it.

use std::process::ExitCode;

use tailbound_lab::Store;
use tailbound_lab::cache::{self, CacheScope, Limits};
use tailbound_lab::cache_report::CacheReport;

use crate::cli_lab::LabCacheArgs;
use crate::say::{self, Failure};

/// `tailbound lab cache`: 0 sound, 1 something is damaged.
pub(super) fn cache(args: &LabCacheArgs) -> Result<ExitCode, Failure> {
    let store = Store::of_user()?;
    let limits =
        Limits::of_environment()?.with(args.max_size.as_deref(), args.max_age.as_deref())?;
    let removed = match (args.clear, args.prune) {
        (true, _) => cache::prune(&store, Limits { bytes: 0, ..limits }, CacheScope::Everything)?,
        (_, true) => cache::prune(&store, limits, CacheScope::Everything)?,
        _ => Vec::new(),
    };
    let mut report = CacheReport::of(&store, limits, removed)?;
    if args.verify {
        report.verify(&store)?;
    }
    match args.json {
        true => say::answer_json(&report.json())?,
        false => say::answer(&report.text())?,
    }
    Ok(ExitCode::from(u8::from(report.is_damaged())))
}
