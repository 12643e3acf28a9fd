// SPDX-License-Identifier: MIT OR Apache-2.0
//! `store backup`, `store restore`: a whole store as one file.
//!
//! SQLite writes into a file that has a name already, so it gets one in a folder of the caller alone, beside the
//! one that is wanted; what was found whole there is copied by the one function that writes files.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;
use tailbound_sys::new_file::{Existing, write_with};

use super::place::{made, now, opened};
use crate::cli_store::{StoreBackupArgs, StoreRestoreArgs};
use crate::input;
use crate::say::{self, Failure};

/// A folder of the caller alone, for the time of a backup.
struct Scratch(PathBuf);

impl Scratch {
    fn beside(file: &Path) -> Result<Self, Failure> {
        let name = format!(".{}.{}", input::name(file), std::process::id());
        let folder = file.with_file_name(name);
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => Ok(Self(folder)),
            Err(e) => Err(Failure::cannot(format!("{}: {e}", folder.display()))),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays has a name that says whose it was.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) fn backup(args: &StoreBackupArgs) -> Result<ExitCode, Failure> {
    let mut store = opened(&args.store)?;
    if args.file.as_os_str() == "-" {
        return Err(Failure::usage("a backup is a file: give it a name"));
    }
    input::may_write(&args.file, Existing::replaced_if(args.force))?;
    let scratch = Scratch::beside(&args.file)?;
    let whole = scratch.0.join("store");
    let runs = store.backup(&whole, &now())?;
    let copied = File::open(&whole).and_then(|mut from| {
        write_with(&args.file, Existing::replaced_if(args.force), |to| {
            io::copy(&mut from, to).map(|_| ())
        })
    });
    let shown = args.file.display().to_string();
    copied.map_err(|e| Failure::cannot(format!("{shown}: {e}")))?;
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
