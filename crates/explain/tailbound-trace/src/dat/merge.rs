// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events of all CPUs and buffers as one, in the order of time.
//!
//! Units: bytes; ns. An event that two buffers hold is handed over once.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::{Read, Seek};

use super::clock::Tsc;
use super::source::Source;
use super::{DatError, TraceFile};
use crate::event::{Entry, EventDecoder};
use crate::page::{PageLayout, PageTally};

/// Bytes that are read at once, of all CPUs together and of one.
const BLOCKS_BYTES: usize = 32 << 20;
const BLOCK_BYTES: usize = 256 << 10;
/// Most bytes held at once, of all CPUs together.
const HELD_BYTES_MAX: usize = 256 << 20;
/// Two buffers record one event within this time.
const TWICE_NS: u64 = 20_000;

/// What is handed over.
#[derive(Clone, Copy, Debug)]
pub enum MergeItem<'a> {
    /// An event.
    Entry(&'a Entry),
    /// Events of some CPU were lost, or damaged and passed over, just before this time.
    Lost(u64),
    /// So many bytes of events were read.
    Bytes(u64),
}

/// What reading came to.
#[derive(Clone, Debug, Default)]
pub struct ReadEnd {
    /// Records, understood or not.
    pub records: u64,
    /// Events that were lost, as the pages tell.
    pub lost: u64,
    /// Places where events were lost.
    pub holes: u64,
    /// Events that two buffers held.
    pub twice: u64,
    /// Damaged pages, chunks and records.
    pub damaged: u64,
    /// The numbers of the events that were seen.
    pub ids: Vec<u16>,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// What the streams share.
pub(super) struct Reading<'a, R> {
    pub(super) source: Source<R>,
    pub(super) layout: PageLayout,
    pub(super) decoder: &'a EventDecoder,
    pub(super) tsc: Option<Tsc>,
    pub(super) block: usize,
    /// Bytes read so far, and bytes held now.
    pub(super) bytes: u64,
    pub(super) held: usize,
    end: ReadEnd,
    holes: Vec<u64>,
    ids: Vec<bool>,
    left_out: u64,
}

impl<R> Reading<'_, R> {
    pub(super) fn saw(&mut self, record: &[u8]) {
        self.end.records = self.end.records.saturating_add(1);
        if let Some(id) = record.get(..2).and_then(|b| b.try_into().ok()).map(u16::from_le_bytes)
            && let Some(seen) = self.ids.get_mut(usize::from(id))
        {
            *seen = true;
        }
    }

    pub(super) fn lost(&mut self, t_ns: u64, held: &PageTally) {
        self.end.holes = self.end.holes.saturating_add(1);
        self.end.lost = self.end.lost.saturating_add(held.lost);
        self.holes.push(t_ns);
    }

    /// Something was passed over just before this time.
    pub(super) fn gap(&mut self, t_ns: u64) {
        self.holes.push(t_ns);
    }

    /// The first is told, all are counted.
    pub(super) fn damaged(&mut self, cpu: u32, at: u64, reason: &str) {
        if self.end.damaged == 0 {
            self.end.notes.push(format!(
                "the events of CPU {cpu} are damaged at byte {at} of the file: {reason}"
            ));
        }
        self.end.damaged = self.end.damaged.saturating_add(1);
    }

    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.held.saturating_add(bytes) <= HELD_BYTES_MAX
    }

    pub(super) fn no_room(&mut self, cpu: u32) {
        if self.left_out == 0 {
            self.end.notes.push(format!(
                "its CPUs hold more than {} MiB at once: the rest of CPU {cpu} and perhaps of others is left out",
                HELD_BYTES_MAX >> 20
            ));
        }
        self.left_out = self.left_out.saturating_add(1);
    }
}

/// See [`TraceFile::read`].
pub(super) fn read<R: Read + Seek>(
    file: TraceFile<R>,
    decoder: &EventDecoder,
    each: &mut dyn FnMut(MergeItem<'_>) -> bool,
) -> Result<ReadEnd, DatError> {
    let TraceFile { source, layout, tsc, mut streams, info } = file;
    let mut twice = (info.buffers.len() > 1).then(Twice::default);
    let mut reading = Reading {
        source,
        layout,
        decoder,
        tsc,
        block: BLOCKS_BYTES.checked_div(streams.len()).unwrap_or(BLOCK_BYTES).min(BLOCK_BYTES),
        bytes: 0,
        held: 0,
        end: ReadEnd::default(),
        holes: Vec::new(),
        ids: vec![false; usize::from(u16::MAX) + 1],
        left_out: 0,
    };
    let mut pending: Vec<Option<Entry>> = Vec::new();
    let mut heap = BinaryHeap::new();
    for (i, stream) in streams.iter_mut().enumerate() {
        let first = stream.next(&mut reading)?;
        heap.extend(first.map(|e| Reverse((e.t_ns, i))));
        pending.push(first);
    }
    let mut told = 0;
    'all: while let Some(Reverse((_, i))) = heap.pop() {
        let next_ns = heap.peek().map_or(u64::MAX, |Reverse((t, _))| *t);
        let (Some(stream), Some(slot)) = (streams.get_mut(i), pending.get_mut(i)) else { break };
        // One CPU's events up to the next of any other.
        while let Some(entry) = slot.take() {
            if entry.t_ns > next_ns {
                heap.push(Reverse((entry.t_ns, i)));
                *slot = Some(entry);
                break;
            }
            for t_ns in reading.holes.drain(..) {
                each(MergeItem::Lost(t_ns));
            }
            let again = twice.as_mut().is_some_and(|t| t.again(stream.buffer, &entry));
            if again {
                reading.end.twice = reading.end.twice.saturating_add(1);
            } else if !each(MergeItem::Entry(&entry)) {
                break 'all;
            }
            *slot = stream.next(&mut reading)?;
            if reading.bytes != told {
                told = reading.bytes;
                if !each(MergeItem::Bytes(told)) {
                    break 'all;
                }
            }
        }
        if slot.is_none() {
            stream.release(&mut reading);
        }
    }
    let seen = reading.ids.iter().enumerate().filter(|(_, seen)| **seen);
    reading.end.ids = seen.filter_map(|(id, _)| u16::try_from(id).ok()).collect();
    Ok(reading.end)
}

/// The last event of each CPU, and the buffer it came from.
#[derive(Debug, Default)]
struct Twice {
    last: BTreeMap<u32, (usize, Entry)>,
}

impl Twice {
    /// Has another buffer just told the same?
    fn again(&mut self, buffer: usize, e: &Entry) -> bool {
        let same = |&(from, last): &(usize, Entry)| {
            from != buffer
                && e.t_ns.abs_diff(last.t_ns) <= TWICE_NS
                && (e.pid, e.flags, e.event) == (last.pid, last.flags, last.event)
        };
        if self.last.get(&e.cpu).is_some_and(same) {
            return true;
        }
        self.last.insert(e.cpu, (buffer, *e));
        false
    }
}
