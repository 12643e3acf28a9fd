// SPDX-License-Identifier: MIT OR Apache-2.0
//! The store that a verb is about, which of its runs, and the time.

use std::time::SystemTime;

use tailbound_core::utc;
use tailbound_store::{Filter, Store, StoreLocation};

use crate::cli_store::{ChosenArgs, StoreArg};
use crate::flags;
use crate::say::Failure;

pub(in crate::cmd) fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.ok().and_then(|d| i64::try_from(d.as_secs()).ok()).unwrap_or(0)
}

pub(in crate::cmd) fn now() -> String {
    utc::rfc3339(now_s())
}

/// Where the store is, by the words of the command line and the environment.
fn place(arg: &StoreArg) -> Result<StoreLocation, Failure> {
    StoreLocation::chosen(arg.place.as_deref()).map_err(flags::refused("--store"))
}

pub(in crate::cmd) fn opened(arg: &StoreArg) -> Result<Store, Failure> {
    Ok(Store::open(&place(arg)?, &now())?)
}

pub(in crate::cmd) fn made(arg: &StoreArg) -> Result<Store, Failure> {
    let place = place(arg)?;
    if let StoreLocation::File(path) = &place
        && let Some(folder) = path.parent().filter(|_| arg.place.is_none())
    {
        std::fs::create_dir_all(folder)
            .map_err(|e| Failure::cannot(format!("{}: {e}", folder.display())))?;
    }
    Ok(Store::open_or_make(&place, &now())?)
}

/// What was chosen, and at most `most` of them; 0: all.
pub(super) fn filter(chosen: &ChosenArgs, most: u64) -> Filter {
    Filter {
        system: chosen.system.clone(),
        since: chosen.since.clone(),
        until: chosen.until.clone(),
        most: Some(most).filter(|n| *n > 0),
    }
}
