// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages of the last seconds of every CPU's trace, undecoded.
//!
//! Units: ns of the trace's clock, bytes.

use std::collections::{BTreeMap, VecDeque};

use tailbound_trace::event::Entry;
use tailbound_trace::{EventDecoder, PageLayout};

/// Most that is kept of one CPU: at 50,000 events a second some two seconds.
const BYTES_MAX: usize = 4 << 20;

/// A page, when it begins, and whether events before it were lost.
#[derive(Debug)]
struct Page {
    from_ns: u64,
    lost: bool,
    bytes: Box<[u8]>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Store {
    layout: PageLayout,
    cpus: BTreeMap<u32, (VecDeque<Page>, usize)>,
}

/// The events of a stretch of time, in its order.
#[derive(Debug, Default)]
pub(super) struct Window {
    pub(super) entries: Vec<Entry>,
    /// Times before which events of some CPU are missing.
    holes: Vec<u64>,
    /// The first time that the store reaches back to.
    since_ns: u64,
}

impl Window {
    /// Are events between two times missing?
    pub(super) fn lost_between(&self, from: u64, to: u64) -> bool {
        self.since_ns > from || self.holes.iter().any(|t| (from..=to).contains(t))
    }
}

impl Store {
    pub(super) fn new(layout: PageLayout) -> Self {
        Self { layout, cpus: BTreeMap::new() }
    }

    /// Keeps a copy of `page`, and lets the oldest go.
    pub(super) fn add(&mut self, cpu: u32, page: &[u8]) {
        let Some(head) = self.layout.head(page) else { return };
        // A page that is read while it is written has room behind its records.
        // How many records were lost before it stands behind them.
        let end = if head.lost { head.end.saturating_add(size_of::<u64>()) } else { head.end };
        let used = page.get(..end).unwrap_or(page);
        let page = Page { from_ns: head.t_ns, lost: head.lost, bytes: used.into() };
        let (pages, bytes) = self.cpus.entry(cpu).or_default();
        *bytes += page.bytes.len();
        pages.push_back(page);
        while *bytes > BYTES_MAX {
            let Some(gone) = pages.pop_front() else { break };
            *bytes -= gone.bytes.len();
        }
    }

    /// Copies of the pages of each CPU that hold what happened between two times.
    pub(super) fn pages_between(&self, from: u64, to: u64) -> BTreeMap<u32, Vec<Box<[u8]>>> {
        let of = |pages: &VecDeque<Page>| {
            let first = pages.partition_point(|p| p.from_ns <= from).saturating_sub(1);
            let wanted = pages.iter().skip(first).take_while(|p| p.from_ns <= to);
            wanted.map(|p| p.bytes.clone()).collect()
        };
        self.cpus.iter().map(|(cpu, (pages, _))| (*cpu, of(pages))).collect()
    }

    /// What happened between two times.
    pub(super) fn between(&self, decoder: &EventDecoder, from: u64, to: u64) -> Window {
        let mut window = Window::default();
        for (cpu, (pages, _)) in &self.cpus {
            // The page that is under way at `from` began before it.
            let first = pages.partition_point(|p| p.from_ns <= from).saturating_sub(1);
            let wanted = pages.iter().skip(first).take_while(|p| p.from_ns <= to);
            for (i, page) in wanted.enumerate() {
                if i == 0 {
                    window.since_ns = window.since_ns.max(page.from_ns);
                }
                if page.lost {
                    window.holes.push(page.from_ns);
                }
                let each = |t_ns: u64, record: &[u8]| {
                    if t_ns >= from && t_ns <= to {
                        window.entries.extend(decoder.decode(t_ns, *cpu, record));
                    }
                };
                // What cannot be read ends its page; the next one is whole again.
                if self.layout.records(&page.bytes, each).is_err() {
                    window.holes.push(page.from_ns);
                }
            }
        }
        window.entries.sort_by_key(|e| e.t_ns);
        window
    }
}
