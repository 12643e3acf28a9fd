// SPDX-License-Identifier: MIT OR Apache-2.0
//! The store that a verb is about, which of its runs, and the time.

use std::path::PathBuf;
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
    let given = arg
        .place
        .clone()
        .or_else(|| std::env::var("TAILBOUND_STORE").ok().filter(|v| !v.is_empty()));
    if let Some(text) = given {
        return text.parse().map_err(flags::refused("--store"));
    }
    let folder = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let of_user = || folder("HOME").map(|home| home.join(".local/state"));
    let folder = if tailbound_sys::process::is_root() {
        Some(PathBuf::from("/var/lib"))
    } else {
        folder("XDG_STATE_HOME").or_else(of_user)
    };
    let folder = folder
        .ok_or_else(|| Failure::usage("--store: there is no $HOME to keep one in: say where"))?;
    Ok(StoreLocation::File(folder.join("tailbound/store.sqlite")))
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
