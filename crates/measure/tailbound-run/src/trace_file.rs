// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trace around the latest wake-up of a run, as a file for trace-cmd and KernelShark.
//!
//! Context: COLD, after the measurement: until then the file has no name.

use std::io;
use std::path::Path;

use tailbound_core::Finding;
use tailbound_core::finding::Impact;
use tailbound_core::units::format_ns_i64;
use tailbound_record::KeptTrace;

use crate::actions::TraceFile;

/// The finding that says where it is.
pub(crate) const KEPT: &str = "trace-kept";

/// Writes it; what a reader of the run is told.
pub(crate) fn write(to: TraceFile, kept: Option<&KeptTrace>) -> Finding {
    let TraceFile { path, file } = to;
    let shown = path.display();
    let Some(kept) = kept else {
        let title =
            format!("--trace {shown}: no late wake-up lies within the trace, there is no file");
        return Finding::new("trace-empty", Impact::Notice, title);
    };
    let written = kept.write_to(file.file()).and_then(|_| file.finish());
    match written {
        Ok(()) => told(&path, kept),
        Err(e) => not_written(&path, &e),
    }
}

fn told(path: &Path, kept: &KeptTrace) -> Finding {
    let late = format_ns_i64(kept.of.error_ns);
    let title = format!(
        "the kernel's trace around the latest wake-up that it reaches ({late}) is in {}",
        path.display()
    );
    let remedy =
        format!("trace-cmd report {0}; kernelshark {0}; tailbound blame {0}", path.display());
    Finding::new(KEPT, Impact::Notice, title).remedy(&remedy)
}

fn not_written(path: &Path, e: &io::Error) -> Finding {
    let title = format!("--trace {}: it could not be written: {e}", path.display());
    Finding::listed("trace-not-written", Impact::Notice, title)
}
