// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest stopped at an instant, for gdb.

use tailbound_lab::progress::TaskListener;
use tailbound_lab::{LabError, symbol_file, vary};
use tailbound_paths::varied::Varies;
use tailbound_sys::new_file::{self, Existing};

use super::base::Base;
use crate::error::SearchError;

/// The kernel's symbols, beside the socket; both go with the guest.
const SYMBOLS: &str = "kernel.symbols";

/// Stays until gdb was there and is gone; `tell` is told how it gets there.
///
/// # Errors
/// As a run of the lab.
pub fn at(
    base: &Base<'_>,
    at_ns: u64,
    shown: &dyn TaskListener,
    tell: &mut dyn FnMut(&str) -> Result<(), LabError>,
) -> Result<(), SearchError> {
    let variation = base.variation(at_ns, Varies::Stop);
    let mut hear = || base.bench.hear();
    let symbols = symbol_file::elf(&base.kallsyms);
    let mut held = |held: &vary::Held| {
        let file = held.socket.with_file_name(SYMBOLS);
        new_file::write(&file, Existing::Keep, &symbols).map_err(|e| LabError::file(&file, e))?;
        shown.clear();
        let place = held.at.map_or_else(
            || "at that instant".to_owned(),
            |at| format!("before {at:#x} ({})", named(base, at)),
        );
        let text = format!(
            "The guest stands still {place}, and stays until gdb was there and is gone:\n  gdb -ex 'set architecture i386:x86-64' -ex 'symbol-file {}' -ex 'target remote {}'",
            file.display(),
            held.socket.display()
        );
        tell(&text)
    };
    let means = base.means();
    vary::debug(base.prepared(), &means, &base.plan, &variation, &mut hear, &mut held)?;
    Ok(())
}

fn named<'a>(base: &'a Base<'_>, at: u64) -> &'a str {
    base.symbols.name(at).filter(|_| at >> 63 == 1).unwrap_or("user mode")
}
