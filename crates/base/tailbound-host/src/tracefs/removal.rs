// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a trace instance is ended and removed: by its owner, its guard, or the next run.

use std::fs;
use std::io;

use crate::tracefs::{Tracefs, TracefsError};

/// Ends the trace of the instance `name`, puts the settings `before` back, the last first, and
/// removes it. What refuses is gone over, and stays in `before`: the removal itself is what counts.
pub(super) fn take_down(
    tracefs: &Tracefs,
    name: &str,
    before: &mut Vec<(String, String)>,
) -> Result<(), TracefsError> {
    for (path, value) in [("tracing_on", "0"), ("current_tracer", "nop"), ("events/enable", "0")] {
        drop(tracefs.write(&format!("instances/{name}/{path}"), value));
    }
    let put_back = |(path, value): &(String, String)| tracefs.write(path, value).is_ok();
    let mut refused: Vec<_> = before.drain(..).rev().filter(|s| !put_back(s)).collect();
    refused.reverse();
    *before = refused;
    let path = tracefs.path(&format!("instances/{name}"));
    match fs::remove_dir(tracefs.root.path(&path)) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(TracefsError::of(&path, &e)),
        _ => Ok(()),
    }
}
