// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trace around the latest wake-up of a run, for trace-cmd and KernelShark.
//!
//! Context: SETUP ([`TraceKeeper::new`]), COLD. Units: ns of the trace's clock, bytes.
//! While the run measures the pages stay in memory, and only those of the latest wake-up so far; the file is written
//! when the measurement is over.
//! Not here: the format of the file (`tailbound_trace::dat`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use tailbound_core::plan::Clock;
use tailbound_core::record::ExceedanceRecord;
use tailbound_host::{Missing, Root, Tracefs};
use tailbound_trace::EventDecoder;
use tailbound_trace::dat::{Described, Head};
use tailbound_trace::event::WANTED;
use tailbound_trace::symbols::Symbols;

use super::store::Store;
use crate::error::ObserveError;
use crate::trace_clock::trace_clock_name;

/// Room for the names of functions.
const FUNCTION_BYTES: usize = 64 << 10;

/// Most that are looked at in one look.
const OFFERED_MAX: usize = 8;

/// Keeps the pages of the latest wake-up.
#[derive(Debug)]
pub(super) struct TraceKeeper {
    described: Described,
    page_bytes: usize,
    /// Those since the pages were taken last that are later than the one that is kept.
    offered: Vec<ExceedanceRecord>,
    kept: Option<KeptTrace>,
}

/// The trace around one wake-up.
#[derive(Debug)]
pub struct KeptTrace {
    /// Which.
    pub of: ExceedanceRecord,
    described: Described,
    page_bytes: usize,
    pages: BTreeMap<u32, Vec<Box<[u8]>>>,
    functions: Symbols,
}

impl TraceKeeper {
    /// Reads what the file tells beside the events.
    ///
    /// # Errors
    /// [`ObserveError::Format`].
    pub(super) fn new(root: &Root, clock: Clock, page_bytes: usize) -> Result<Self, ObserveError> {
        let tracefs = Tracefs::find(root)?;
        let unread = |e: Missing| ObserveError::Format(e.reason().to_owned());
        let mut formats = Vec::new();
        for wanted in WANTED {
            if let Ok(format) = tracefs.event_format(wanted.system, wanted.name) {
                // As the kernel writes it: with its last end of line.
                formats.push((wanted.system, format!("{format}\n")));
            }
        }
        let release = root.read_trimmed("/proc/sys/kernel/osrelease");
        let described = Described {
            page: format!("{}\n", tracefs.read("events/header_page").map_err(unread)?),
            record: format!("{}\n", tracefs.read("events/header_event").map_err(unread)?),
            formats,
            clock: trace_clock_name(clock).to_owned(),
            // No name of the machine: such files are sent to strangers.
            uname: format!(
                "Linux unknown {} {}",
                release.as_deref().unwrap_or("unknown"),
                std::env::consts::ARCH
            ),
            recorder: format!("tailbound {}", env!("CARGO_PKG_VERSION")),
            function_bytes: FUNCTION_BYTES,
            threads: String::new(),
        };
        Ok(Self { described, page_bytes, offered: Vec::new(), kept: None })
    }

    pub(super) fn offer(&mut self, e: &ExceedanceRecord) {
        let kept_ns = self.kept.as_ref().map(|kept| kept.of.error_ns);
        if kept_ns.is_none_or(|kept_ns| e.error_ns > kept_ns) {
            self.offered.push(e.clone());
        }
    }

    /// Those whose pages are wanted now, the latest first: up to one that is kept.
    pub(super) fn wanted(&mut self) -> impl Iterator<Item = ExceedanceRecord> + use<> {
        self.offered.sort_by_key(|e| std::cmp::Reverse(e.error_ns));
        self.offered.truncate(OFFERED_MAX);
        std::mem::take(&mut self.offered).into_iter()
    }

    /// Keeps what happened around `of`, from one time to another, where the trace has anything of it: it may begin later.
    pub(super) fn keep(
        &mut self,
        of: ExceedanceRecord,
        (from, to): (u64, u64),
        store: &Store,
        (decoder, symbols): (&EventDecoder, &Symbols),
    ) -> bool {
        let entries = store.between(decoder, from, to).entries;
        if entries.is_empty() {
            return false;
        }
        let addresses: BTreeSet<u64> = entries.iter().flat_map(|e| e.event.functions()).collect();
        // The idle threads of all CPUs have one number.
        let threads: BTreeMap<i32, _> = entries
            .iter()
            .flat_map(|e| e.event.thread_names())
            .filter(|(tid, _)| *tid > 0)
            .collect();
        let threads = threads.iter().map(|(tid, name)| format!("{tid} {}\n", name.as_str()));
        self.kept = Some(KeptTrace {
            of,
            described: Described { threads: threads.collect(), ..self.described.clone() },
            page_bytes: self.page_bytes,
            pages: store.pages_between(from, to),
            functions: symbols.only(&addresses),
        });
        true
    }

    pub(super) fn end(self) -> Option<KeptTrace> {
        self.kept
    }
}

impl KeptTrace {
    /// Writes the whole file; its length.
    ///
    /// # Errors
    /// Those of write(2); a description that the format has no room for.
    pub fn write_to(&self, file: &File) -> io::Result<u64> {
        let cpus = self.pages.keys().max().map_or(1, |most| most.saturating_add(1));
        let page_bytes = u32::try_from(self.page_bytes).unwrap_or(u32::MAX);
        let mut head = Head::new(&self.described, cpus, page_bytes).map_err(io::Error::other)?;
        head.name_functions(&self.functions);
        let mut end = head.bytes().len() as u64;
        let mut whole = vec![0; self.page_bytes];
        for (cpu, pages) in &self.pages {
            let begin = end;
            for page in pages {
                whole.fill(0);
                whole.iter_mut().zip(page.iter()).for_each(|(to, from)| *to = *from);
                file.write_all_at(&whole, end)?;
                end = end.saturating_add(whole.len() as u64);
            }
            head.place(*cpu, begin, end.saturating_sub(begin));
        }
        file.write_all_at(head.bytes(), 0)?;
        Ok(end)
    }
}
