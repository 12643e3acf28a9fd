// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file read piece by piece, in bounded memory, by two threads: one reads and decodes, the
//! other records; and the file's identity, computed on the way.
//!
//! Units: bytes. Pieces are recorded in the order of the file, so that the result
//! does not depend on how it was cut. A file that is over with the first piece needs no thread.
//! Not here: what the bytes mean (`column`, `raw_column`, `jitterdebugger`).

use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;

use crate::error::Fault;

/// Samples decoded before they are handed on.
pub(crate) const PIECE: usize = 1 << 15;
/// Bytes read at once.
const READ: usize = 1 << 20;

/// Is told the bytes read so far; says whether to go on.
pub(crate) type Watch<'a> = &'a mut dyn FnMut(u64) -> bool;

/// A file being read.
pub(crate) struct Stream<'a> {
    feed: Feed<'a>,
    watch: Watch<'a>,
}

/// The reading half of a [`Stream`].
pub(crate) struct Feed<'a> {
    source: &'a mut (dyn Read + Send),
    identity: Fingerprint,
    state: &'a State,
}

/// What both halves of a [`Stream`] know.
#[derive(Debug, Default)]
pub(crate) struct State {
    bytes: AtomicU64,
    stop: AtomicBool,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(
        source: &'a mut (dyn Read + Send),
        watch: Watch<'a>,
        state: &'a State,
    ) -> Self {
        Self { feed: Feed { source, identity: Fingerprint::default(), state }, watch }
    }

    /// Was it stopped before the end of the file?
    pub(crate) fn stopped(&self) -> bool {
        self.feed.stopped()
    }

    /// Bytes read so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.feed.state.bytes.load(Ordering::Relaxed)
    }

    /// Identity of what was read.
    pub(crate) fn identity(&self) -> u64 {
        self.feed.identity.value()
    }

    /// Decodes the file by `decode`, which fills a piece and says whether there is more, and
    /// hands the pieces to `record`, in order.
    ///
    /// # Errors
    /// Those of both, and of reading.
    pub(crate) fn pieces<T: Send>(
        &mut self,
        mut decode: impl FnMut(&mut Feed<'_>, &mut Vec<T>) -> Result<bool, Fault> + Send,
        mut record: impl FnMut(&[T]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let Self { feed, watch } = self;
        let state = feed.state;
        let mut piece = Vec::with_capacity(0);
        let more = decode(feed, &mut piece)?;
        record(&piece)?;
        if !more {
            return Ok(());
        }
        std::thread::scope(|scope| {
            let (full, filled) = mpsc::sync_channel::<Result<Vec<T>, Fault>>(2);
            let (empty, emptied) = mpsc::channel::<Vec<T>>();
            scope.spawn(move || {
                loop {
                    let mut piece = emptied.try_recv().unwrap_or_default();
                    piece.clear();
                    let decoded = decode(feed, &mut piece);
                    let more = matches!(decoded, Ok(true));
                    // An error of the recording half ends this one too.
                    if full.send(decoded.map(|_| piece)).is_err() || !more {
                        return;
                    }
                }
            });
            for piece in filled {
                let piece = piece?;
                record(&piece)?;
                // The reading half may have ended already.
                drop(empty.send(piece));
                if !watch(state.bytes.load(Ordering::Relaxed)) {
                    state.stop.store(true, Ordering::Relaxed);
                }
            }
            Ok(())
        })
    }
}

impl Feed<'_> {
    /// Was it stopped? Then it is at its end.
    pub(crate) fn stopped(&self) -> bool {
        self.state.stop.load(Ordering::Relaxed)
    }

    /// Adds to `buffer` up to `most` bytes, fewer only at the end; the number of them.
    pub(crate) fn append(&mut self, buffer: &mut Vec<u8>, most: usize) -> Result<usize, Fault> {
        let before = buffer.len();
        buffer.reserve(most);
        let most = if self.stopped() { 0 } else { most as u64 };
        let got = (&mut *self.source)
            .take(most)
            .read_to_end(buffer)
            .map_err(|e| Fault::file(format!("it cannot be read: {e}")))?;
        self.identity.add(buffer.get(before..).unwrap_or_default());
        self.state.bytes.fetch_add(got as u64, Ordering::Relaxed);
        Ok(got)
    }
}

/// The unread rest of a file that is taken apart in records of differing length.
#[derive(Default)]
pub(crate) struct Window {
    buffer: Vec<u8>,
    at: usize,
}

impl Window {
    /// What was read and not yet passed.
    pub(crate) fn rest(&self) -> &[u8] {
        self.buffer.get(self.at..).unwrap_or_default()
    }

    /// Passes `n` bytes.
    pub(crate) fn pass(&mut self, n: usize) {
        self.at = self.at.saturating_add(n).min(self.buffer.len());
    }

    /// Reads on; `false` at the end.
    pub(crate) fn more(&mut self, feed: &mut Feed<'_>) -> Result<bool, Fault> {
        self.buffer.drain(..self.at);
        self.at = 0;
        Ok(feed.append(&mut self.buffer, READ)? > 0)
    }
}

/// Records of `SIZE` bytes, decoded one by one.
pub(crate) struct Records<const SIZE: usize> {
    buffer: Vec<u8>,
    /// Bytes of the file before the buffer.
    pub(crate) offset: u64,
    /// Bytes at the end of the file that are no whole record.
    pub(crate) torn: usize,
}

impl<const SIZE: usize> Records<SIZE> {
    pub(crate) fn new() -> Self {
        Self { buffer: Vec::new(), offset: 0, torn: 0 }
    }

    /// A piece of the file through `decode`, which is given a record and its place in the file.
    pub(crate) fn piece<T>(
        &mut self,
        feed: &mut Feed<'_>,
        out: &mut Vec<T>,
        mut decode: impl FnMut(&[u8; SIZE], u64) -> Result<T, Fault>,
    ) -> Result<bool, Fault> {
        self.buffer.clear();
        let want = PIECE * SIZE;
        let got = feed.append(&mut self.buffer, want)?;
        let (records, rest) = self.buffer.as_chunks::<SIZE>();
        out.reserve(records.len());
        let mut place = self.offset;
        for record in records {
            out.push(decode(record, place)?);
            place += SIZE as u64;
        }
        self.offset += got as u64;
        self.torn = if feed.stopped() { 0 } else { rest.len() };
        Ok(got == want)
    }
}

/// The same bytes have the same identity, wherever and in whatever pieces they are read.
/// Not a defence against those who seek two files with one identity.
#[derive(Clone, Debug)]
pub(crate) struct Fingerprint {
    hash: u64,
    length: u64,
    held: Vec<u8>,
}

impl Default for Fingerprint {
    fn default() -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, length: 0, held: Vec::with_capacity(8) }
    }
}

impl Fingerprint {
    /// The identity of `bytes` alone.
    pub(crate) fn of(bytes: &[u8]) -> u64 {
        let mut print = Self::default();
        print.add(bytes);
        print.value()
    }

    pub(crate) fn add(&mut self, mut bytes: &[u8]) {
        self.length = self.length.wrapping_add(bytes.len() as u64);
        if !self.held.is_empty() {
            let take = (8 - self.held.len()).min(bytes.len());
            let (first, rest) = bytes.split_at(take);
            self.held.extend_from_slice(first);
            bytes = rest;
            if let Ok(word) = <[u8; 8]>::try_from(self.held.as_slice()) {
                self.word(u64::from_le_bytes(word));
                self.held.clear();
            }
        }
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|w| self.word(u64::from_le_bytes(*w)));
        self.held.extend_from_slice(rest);
    }

    fn word(&mut self, word: u64) {
        let mixed = (self.hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.hash = mixed ^ (mixed >> 32);
    }

    pub(crate) fn value(&self) -> u64 {
        let mut end = self.clone();
        end.held.resize(8, 0);
        let last = <[u8; 8]>::try_from(end.held.as_slice()).unwrap_or_default();
        end.word(u64::from_le_bytes(last));
        end.word(self.length);
        end.hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_does_not_depend_on_the_pieces() {
        let bytes: Vec<u8> = (0..1000u32).flat_map(u32::to_be_bytes).collect();
        let whole = Fingerprint::of(&bytes);
        for size in [1, 3, 8, 13, 999] {
            let mut print = Fingerprint::default();
            bytes.chunks(size).for_each(|c| print.add(c));
            assert_eq!(print.value(), whole, "{size}");
        }
        let mut other = bytes.clone();
        if let Some(b) = other.get_mut(7) {
            *b ^= 0x80;
        }
        assert_ne!(Fingerprint::of(&other), whole);
        assert_ne!(Fingerprint::of(b""), Fingerprint::of(b"\0"));
    }
}
