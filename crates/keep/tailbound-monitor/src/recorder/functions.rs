// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of the kernel's functions that a file's events point to: work, what other CPUs asked for, handlers of NMIs.
//!
//! Units: bytes. The table of all has some ten MB and takes some 50 ms to read: it is read line by line, and only where
//! an address comes up that was not looked up before. So every address of a file was looked up, and none is taken for another function's.
//! Source: proc_kallsyms(5); kernel.kptr_restrict hides the addresses from who has no CAP_SYSLOG.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use tailbound_host::Root;
use tailbound_trace::EventDecoder;
use tailbound_trace::dat::{MergeItem, TraceFile};
use tailbound_trace::symbols::Symbols;

const FILE: &str = "/proc/kallsyms";
/// Room in each file.
pub(super) const BYTES: usize = 32 << 10;
/// More are looked up anew: modules come and go.
const ADDRESSES_MAX: usize = 4096;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Functions {
    /// Those that were looked up, found or not.
    known: BTreeSet<u64>,
    names: Symbols,
}

fn addresses(path: &Path) -> Option<BTreeSet<u64>> {
    let trace = TraceFile::open(File::open(path).ok()?).ok()?;
    let decoder = EventDecoder::new(&trace.info().formats);
    let mut all = BTreeSet::new();
    let mut each = |seen: MergeItem<'_>| {
        let MergeItem::Entry(entry) = seen else { return true };
        all.extend(entry.event.functions());
        all.len() < ADDRESSES_MAX
    };
    trace.read(&decoder, &mut each).ok()?;
    Some(all)
}

impl Functions {
    /// The functions of the file's events, as far as this user may know them.
    pub(super) fn of(&mut self, path: &Path, root: &Root) -> Option<Symbols> {
        let wanted = addresses(path)?;
        if self.known.len() > ADDRESSES_MAX {
            *self = Self::default();
        }
        let new: BTreeSet<u64> = wanted.difference(&self.known).copied().collect();
        if !new.is_empty() {
            let text = BufReader::new(File::open(root.path(FILE)).ok()?);
            let found = Symbols::of(&new, text).ok()?;
            self.names = std::mem::take(&mut self.names).with(&found);
            self.known.extend(new);
        }
        Some(self.names.clone())
    }
}
