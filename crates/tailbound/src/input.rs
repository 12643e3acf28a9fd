// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a run from a file of ours or of any tool that `import` knows, and writes result
//! files without destroying old ones.
//!
//! Context: COLD.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use tailbound_core::record::Run;
use tailbound_core::runfile;

use crate::say::Failure;

/// Largest file of another tool that is read into memory.
const FOREIGN_MAX: u64 = 4 << 30;

/// The bytes of `path`; `-` is standard input.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().take(FOREIGN_MAX).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|f| f.take(FOREIGN_MAX).read_to_end(&mut bytes))
    };
    read.map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
    Ok(bytes)
}

/// A run file, or another tool's file, which is imported.
pub(crate) fn run(path: &Path) -> Result<Run, Failure> {
    let bytes = bytes(path)?;
    // Only our own files begin so; everything else is another tool's.
    let head = bytes.get(..64).unwrap_or(&bytes);
    let mut run = if head.starts_with(b"{\"type\":\"header\"") {
        runfile::read_run(bytes.as_slice())
            .map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?
    } else {
        tailbound_import::import(&name(path), &bytes).map_err(Failure::usage)?
    };
    judge(&mut run);
    Ok(run)
}

/// Gives a run its verdict where it has none: imported, or cut off before it.
pub(crate) fn judge(run: &mut Run) {
    if run.verdict.is_some() {
        return;
    }
    let ended = run.end.as_ref().map_or("cut-off", |e| e.reason.as_str());
    let (plan, measured_ns) = (&run.header.plan, run.measured_ns());
    run.verdict = Some(tailbound_stats::verdict(
        plan,
        &run.threads,
        &run.seconds,
        &run.findings,
        ended,
        measured_ns,
    ));
}

/// The name people know a file by.
pub(crate) fn name(path: &Path) -> String {
    path.file_name()
        .map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned())
}

/// `run.tailbound.jsonl` → `run` + `suffix`.
pub(crate) fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let name = name(path);
    let stem = name
        .strip_suffix(".tailbound.jsonl")
        .or_else(|| name.rsplit_once('.').map(|(stem, _)| stem))
        .unwrap_or(&name);
    path.with_file_name(format!("{stem}{suffix}"))
}

/// Writes a result file; an existing one only with `force`. `-` is standard output.
pub(crate) fn write(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    if path == Path::new("-") {
        return crate::say::answer(text);
    }
    let open =
        File::options().write(true).create(true).truncate(force).create_new(!force).open(path);
    let written = open.and_then(|mut f| f.write_all(text.as_bytes()).and_then(|()| f.sync_all()));
    written.map_err(|e| {
        let shown = path.display();
        if e.kind() == io::ErrorKind::AlreadyExists {
            Failure::usage(format!(
                "{shown} exists already: choose another name, or give --force to overwrite it"
            ))
        } else {
            Failure::cannot(format!("{shown} cannot be written: {e}"))
        }
    })
}
