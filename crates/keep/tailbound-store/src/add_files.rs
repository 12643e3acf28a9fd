// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many run files into a store, some at a time; what cannot be added stops nothing else.
//!
//! Not here: opening files (the caller).

use std::fmt::Display;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::error::StoreError;
use crate::store::{Added, Incoming, Store};

/// Runs that are added together: one wait for the disk for all of them.
const TOGETHER: usize = 32;

/// What became of the files.
#[derive(Clone, Debug, Default)]
pub struct FilesAdded {
    /// How many there were.
    files: usize,
    /// Identities of the runs that are new.
    new: Vec<String>,
    /// Runs that were there already.
    already: usize,
    /// Files that were not added, and why.
    pub refused: Vec<(String, String)>,
}

/// Files to be added.
#[derive(Clone, Copy, Debug)]
pub struct FilesToAdd<'a> {
    /// Where they are.
    pub paths: &'a [PathBuf],
    /// The machine that they were measured on; without it, what they say.
    pub system: Option<&'a str>,
    /// When they arrived.
    pub arrived: &'a str,
}

impl FilesAdded {
    /// Adds `files` to `store`. `read` gives what is in one; `told` is given how many are done.
    ///
    /// # Errors
    /// The database refuses.
    pub fn to<E: Display>(
        store: &mut Store,
        files: &FilesToAdd<'_>,
        read: &mut dyn FnMut(&Path) -> Result<Incoming, E>,
        told: &mut dyn FnMut(usize),
    ) -> Result<Self, StoreError> {
        let mut all = Self { files: files.paths.len(), ..Self::default() };
        for (nth, some) in files.paths.chunks(TOGETHER).enumerate() {
            let mut runs: Vec<Incoming> = Vec::with_capacity(some.len());
            for path in some {
                match read(path) {
                    Ok(run) => runs.push(run),
                    Err(e) => {
                        let shown = path.display().to_string();
                        let e = e.to_string();
                        let reason = e.strip_prefix(&format!("{shown}: ")).unwrap_or(&e).to_owned();
                        all.refused.push((shown, reason));
                    }
                }
            }
            let added = store.add(&runs, files.system, files.arrived)?;
            for (run, added) in runs.iter().zip(added) {
                match added {
                    Added::New => all.new.push(run.packed.id.clone()),
                    Added::Already => all.already += 1,
                }
            }
            told(nth * TOGETHER + some.len());
        }
        Ok(all)
    }

    /// For people; `store` is what people call it.
    #[must_use]
    pub fn text(&self, store: &str) -> String {
        let there = match self.already {
            0 => String::new(),
            n => format!(", {n} were there already"),
        };
        format!("{} of {} runs added to {store}{there}.", self.new.len(), self.files)
    }

    /// For scripts.
    #[must_use]
    pub fn json(&self, store: &str) -> Value {
        let row = |(file, reason): &(String, String)| json!({"file": file, "reason": reason});
        let refused: Vec<Value> = self.refused.iter().map(row).collect();
        json!({"schema": "tailbound-store-add/1", "store": store, "added": self.new, "already": self.already, "refused": refused})
    }
}
