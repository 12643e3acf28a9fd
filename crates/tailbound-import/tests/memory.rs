// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of a streamed import does not grow with the file; a test program of its own, because
//! the highest mark of memory is the whole process's.
//!
//! Context: COLD. Units: kB as /proc/self/status has them.

use std::io::Read as _;

use tailbound_import::{Format, Options, import_from};

/// The process's highest resident size so far.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

#[test]
fn memory_is_bounded_whatever_the_length() {
    let before = peak_kb();
    let mut source = std::io::repeat(0x11).take(128 << 20);
    let options = Options { interval_ns: Some(100_000), ..Options::default() };
    let run = import_from(Some(Format::RawU32), "f", &mut source, &options, &mut |_| true);
    assert!(run.is_ok_and(|r| r.threads[0].wakeup.n == 32 << 20 && r.seconds.len() == 3356));
    let grown = peak_kb() - before;
    assert!(before > 0 && grown < 48 << 10, "{grown} kB for 128 MiB");
}
