// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs of `decide sleepers`: one for each number of tasks that sleep in parallel.
//!
//! The runs are ordinary run files.

use std::path::{Path, PathBuf};

use tailbound_core::Run;

/// The run file for this number of tasks.
#[must_use]
pub fn file(folder: &Path, tasks: u32) -> PathBuf {
    folder.join(format!("sleepers-{tasks}.tailbound.jsonl"))
}

/// The first run file of these numbers of tasks that is there already.
pub fn taken(folder: &Path, mut numbers: impl Iterator<Item = u32>) -> Option<PathBuf> {
    numbers
        .find(|tasks| file(folder, *tasks).symlink_metadata().is_ok())
        .map(|tasks| file(folder, tasks))
}

/// The runs that were made, with the names of their files; whether one ended early, which is the last then.
#[derive(Debug, Default)]
pub struct SleeperRuns {
    /// The runs.
    pub runs: Vec<(String, Run)>,
    /// The last did not end as planned.
    pub cut: bool,
}

/// Makes the runs of `plans`, pairs of a number of tasks and what belongs to it, one after the other by `make`,
/// which gets its place from 1 and its file.
///
/// # Errors
/// Those of `make`.
pub fn make<P, E>(
    folder: &Path,
    plans: Vec<(u32, P)>,
    mut make: impl FnMut(usize, u32, P, &Path) -> Result<Run, E>,
) -> Result<SleeperRuns, E> {
    let mut made = SleeperRuns::default();
    for (i, (tasks, plan)) in plans.into_iter().enumerate() {
        let path = file(folder, tasks);
        let run = make(i + 1, tasks, plan, &path)?;
        made.cut = !run.ended_as_planned();
        let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        made.runs.push((name, run));
        if made.cut {
            break;
        }
    }
    Ok(made)
}
