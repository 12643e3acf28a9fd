// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing a loop down: as a run file, and as JSON for scripts.
//!
//! A file has its name when it is whole, never through a link; an older one is replaced.

use std::ffi::{CStr, c_char};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde_json::{Value, json};
use tailbound_core::Run;
use tailbound_core::record::Facts;
use tailbound_core::runfile::write_run;
use tailbound_host::{Root, inventory};
use tailbound_stats::Summary;
use tailbound_sys::new_file::{self, Existing};

use crate::codes::*;
use crate::open::with_kept;
use crate::run;
use crate::slots::tb_recorder;
use crate::status::{Failure, guarded};

/// Version of the JSON's shape.
const SCHEMA: &str = "tailbound-library/1";

/// The path that the program means.
///
/// # Safety
/// `path` is null or ends in a zero byte.
unsafe fn path<'a>(path: *const c_char) -> Result<&'a Path, Failure> {
    use std::os::unix::ffi::OsStrExt as _;
    if path.is_null() {
        return Err(Failure::argument("path is null"));
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    Ok(Path::new(std::ffi::OsStr::from_bytes(bytes)))
}

/// Has `fill` write the file `to`, whole or not at all.
fn whole(
    to: &Path,
    fill: impl FnOnce(&mut BufWriter<&File>) -> std::io::Result<()>,
) -> Result<(), Failure> {
    new_file::write_with(to, Existing::Replace, fill)
        .map_err(|e| Failure::new(TB_ERR_IO, format!("{}: {e}", to.display())))
}

/// Writes everything recorded so far as a run file.
///
/// # Safety
/// `path` is null or ends in a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tb_write_run(recorder: *mut tb_recorder, path: *const c_char) -> i32 {
    guarded(|| {
        // SAFETY: the caller's promise.
        let to = unsafe { self::path(path) }?;
        // Before the recorder is held: it takes some milliseconds.
        let machine = inventory(&Root::real());
        let run = with_kept(recorder, |kept| Ok(run::of(kept, machine)))?;
        whole(to, |out| write_run(&run, out).map(drop))
    })
}

/// Writes the figures so far as one JSON object.
///
/// # Safety
/// `path` is null or ends in a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tb_write_json(recorder: *mut tb_recorder, path: *const c_char) -> i32 {
    guarded(|| {
        // SAFETY: the caller's promise.
        let to = unsafe { self::path(path) }?;
        let json = with_kept(recorder, |kept| Ok(json(&run::of(kept, Facts::new()))))?;
        whole(to, |out| writeln!(out, "{json:#}"))
    })
}

/// Puts the figures so far as JSON into `buffer`; `needed` gets the bytes that takes, the closing zero
/// among them.
///
/// # Safety
/// `buffer` is null or points to `capacity` writable bytes; `needed` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tb_json(
    recorder: *mut tb_recorder,
    buffer: *mut c_char,
    capacity: usize,
    needed: *mut usize,
) -> i32 {
    guarded(|| {
        let text = with_kept(recorder, |kept| Ok(json(&run::of(kept, Facts::new())).to_string()))?;
        let bytes = text.len() + 1;
        if !needed.is_null() && needed.is_aligned() {
            // SAFETY: checked, and the caller's promise.
            unsafe { *needed = bytes };
        }
        if buffer.is_null() || capacity < bytes {
            let text =
                format!("tb_json: the answer needs {bytes} bytes, the buffer has {capacity}");
            return Err(Failure::new(TB_ERR_SIZE, text));
        }
        // SAFETY: the caller's promise; `bytes` fit.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast::<u8>(), text.len());
            buffer.cast::<u8>().add(text.len()).write(0);
        }
        Ok(())
    })
}

fn json(run: &Run) -> Value {
    let contexts: Vec<Value> = run
        .threads
        .iter()
        .map(|t| {
            json!({
                "context": t.context,
                "missed": t.missed.n,
                "wakeup": Summary::of(&t.wakeup),
                "due": Summary::of(&t.due()),
                "dropped": t.dropped,
                "ended": t.ended,
            })
        })
        .collect();
    json!({
        "schema": SCHEMA,
        "tool": run.header.tool,
        "id": run.header.id,
        "started": run.header.started,
        "plan": run.header.plan,
        "measured_ns": run.measured_ns(),
        "ended": run.end.as_ref().map(|e| e.reason),
        "verdict": run.verdict,
        "contexts": contexts,
        "findings": run.findings,
        "events": run.events,
        "self_cost_ns": run.self_cost,
        "lost": run.header.source.as_ref().map(|s| &s.lost),
    })
}
