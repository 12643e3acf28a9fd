// SPDX-License-Identifier: MIT OR Apache-2.0
//! `store backup`, `store restore`: a whole store as one file.

use std::process::ExitCode;

use serde_json::json;

use super::place::{made, now, opened};
use crate::cli_store::{StoreBackupArgs, StoreRestoreArgs};
use crate::input::{self, Existing};
use crate::say::{self, Failure};

pub(super) fn backup(args: &StoreBackupArgs) -> Result<ExitCode, Failure> {
    let mut store = opened(&args.store)?;
    if args.file.as_os_str() == "-" {
        return Err(Failure::usage("a backup is a file: give it a name"));
    }
    let existing = Existing::replaced_if(args.force);
    input::may_write(&args.file, existing)?;
    let runs = store.backup_file(&args.file, existing, &now())?;
    let shown = args.file.display().to_string();
    let place = store.place();
    if args.json {
        say::answer_json(
            &json!({"schema": "tailbound-store-backup/1", "store": place.to_string(), "file": shown, "runs": runs}),
        )?;
    } else {
        say::answer(&format!("{runs} runs of {place} are in {shown}, and it was found whole."))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn restore(args: &StoreRestoreArgs) -> Result<ExitCode, Failure> {
    if !args.file.is_file() {
        return Err(Failure::usage(format!("{}: there is no such file", args.file.display())));
    }
    let mut store = made(&args.store)?;
    let runs = store.restore(&args.file)?;
    let (place, shown) = (store.place(), args.file.display().to_string());
    if args.json {
        say::answer_json(
            &json!({"schema": "tailbound-store-restore/1", "store": place.to_string(), "file": shown, "runs": runs}),
        )?;
    } else {
        say::answer(&format!("{runs} runs of {shown} are in {place} now."))?;
    }
    Ok(ExitCode::SUCCESS)
}
