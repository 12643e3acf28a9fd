// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run file of strangers costs to read, known while it streams.
//!
//! Units: bytes. A small file can unpack to much, and a short line can become a large record. So each line is weighed
//! before it is parsed: by its type, its length, and how many values and objects it has. The weight is about what is kept of it
//! in memory, rather too much. Records of a thread are written again and again: of each only the heaviest counts.
//! Not here: what is too heavy (whoever reads decides).

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, BufRead, Read};

/// Of a line so many bytes are looked at for its type, and for which thread it is of.
const HEAD: usize = 64;
/// A line costs at least so much.
const LINE: u64 = 200;
/// A value of an array or an object, with its share of the place that grows.
const VALUE: u64 = 40;
/// A place in a histogram whose filled buckets are far apart.
const PLACE: u64 = 64;
/// An object that becomes a record, and one of any form, which becomes a tree.
const RECORD: u64 = 120;
const TREE: u64 = 700;

/// What was read so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Consumption {
    /// Plain bytes.
    pub plain_bytes: u64,
    /// About what is kept of them in memory.
    pub weight_bytes: u64,
}

/// A source whose lines are weighed as they are consumed. `watch` is asked about each piece; its error ends the reading.
pub struct WeighedSource<R, W> {
    source: R,
    watch: W,
    consumed: Consumption,
    line: LineBegin,
    threads: HashMap<u64, u64>,
    failed: Option<io::Error>,
}

/// The line that is being consumed.
#[derive(Default)]
struct LineBegin {
    head: Vec<u8>,
    bytes: u64,
    values: u64,
    objects: u64,
    /// What was counted for it so far.
    counted: u64,
}

/// What becomes of a line, by its type.
enum LineKind {
    /// It is passed over.
    Unused,
    /// Numbers, of a fixed size.
    Flat,
    Histograms,
    Thread,
    Record,
    /// Anything: facts, and lines of others.
    Tree,
}

impl LineKind {
    fn of(head: &[u8]) -> Self {
        let Some(rest) = head.strip_prefix(b"{\"type\":\"") else { return Self::Tree };
        match rest.split(|b| *b == b'"').next().unwrap_or_default() {
            b"window" | b"raw" | b"load" => Self::Unused,
            b"second" | b"exceedance" => Self::Flat,
            b"block" => Self::Histograms,
            b"thread" => Self::Thread,
            b"header" | b"after" | b"" => Self::Tree,
            _ => Self::Record,
        }
    }
}

impl LineBegin {
    fn add(&mut self, piece: &[u8]) {
        let room = HEAD.saturating_sub(self.head.len());
        self.head.extend(piece.iter().take(room));
        self.bytes += piece.len() as u64;
        for byte in piece {
            self.values += u64::from(*byte == b',');
            self.objects += u64::from(*byte == b'{');
        }
    }

    fn weight(&self) -> u64 {
        let Self { bytes, values, objects, .. } = self;
        match LineKind::of(&self.head) {
            LineKind::Unused => 0,
            LineKind::Flat => *bytes,
            LineKind::Histograms => bytes * 2 + LINE,
            LineKind::Thread => bytes * 2 + values * PLACE,
            LineKind::Record => bytes + LINE + values * VALUE + objects * RECORD,
            LineKind::Tree => bytes + LINE + values * VALUE + objects * TREE,
        }
    }

    /// Which thread and context a thread's record is of: its beginning up to the third comma.
    fn thread(&self) -> Option<u64> {
        if !matches!(LineKind::of(&self.head), LineKind::Thread) {
            return None;
        }
        let commas = self.head.iter().enumerate().filter(|(_, b)| **b == b',').map(|(at, _)| at);
        let end = commas.take(3).last()?;
        let mut hash = DefaultHasher::new();
        self.head.get(..end)?.hash(&mut hash);
        Some(hash.finish())
    }
}

impl<R: BufRead, W: FnMut(Consumption) -> io::Result<()>> WeighedSource<R, W> {
    /// Weighs what is read of `source`.
    pub fn new(source: R, watch: W) -> Self {
        Self {
            source,
            watch,
            consumed: Consumption::default(),
            line: LineBegin::default(),
            threads: HashMap::new(),
            failed: None,
        }
    }
}

impl Consumption {
    /// Counts a line as far as it goes.
    fn count(&mut self, line: &mut LineBegin) {
        let weight = line.weight();
        self.weight_bytes = (self.weight_bytes + weight).saturating_sub(line.counted);
        line.counted = weight;
    }

    /// At a line's end what an earlier record of the same thread cost is given back: the heavier one of the two stays counted.
    fn end(&mut self, line: &mut LineBegin, threads: &mut HashMap<u64, u64>) {
        if let Some(thread) = line.thread() {
            let known = threads.entry(thread).or_insert(0);
            self.weight_bytes = self.weight_bytes.saturating_sub(line.counted.min(*known));
            *known = line.counted.max(*known);
        }
        *line = LineBegin::default();
    }
}

impl<R: BufRead, W: FnMut(Consumption) -> io::Result<()>> BufRead for WeighedSource<R, W> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if let Some(e) = self.failed.take() {
            return Err(e);
        }
        self.source.fill_buf()
    }

    fn consume(&mut self, n: usize) {
        // They are in the buffer already: this reads nothing.
        let Self { source, line, consumed, threads, .. } = self;
        let now = source.fill_buf().ok().and_then(|all| all.get(..n)).unwrap_or_default();
        consumed.plain_bytes += now.len() as u64;
        for piece in now.split_inclusive(|b| *b == b'\n') {
            line.add(piece);
            consumed.count(line);
            if piece.ends_with(b"\n") {
                consumed.end(line, threads);
            }
        }
        self.source.consume(n);
        if self.failed.is_none() {
            self.failed = (self.watch)(self.consumed).err();
        }
    }
}

impl<R: BufRead, W: FnMut(Consumption) -> io::Result<()>> Read for WeighedSource<R, W> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = self.fill_buf()?.read(to)?;
        self.consume(n);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weighed(text: &str) -> Consumption {
        let mut last = Consumption::default();
        let mut it = WeighedSource::new(text.as_bytes(), |now| {
            last = now;
            Ok(())
        });
        let mut all = String::new();
        assert_eq!(it.read_to_string(&mut all).ok(), Some(text.len()));
        assert_eq!(all, text);
        last
    }

    #[test]
    fn a_line_weighs_what_becomes_of_it() {
        let second = "{\"type\":\"second\",\"thread\":0,\"second\":1}\n";
        assert_eq!(weighed(second).weight_bytes, second.len() as u64);
        assert_eq!(weighed("{\"type\":\"raw\",\"data\":\"AAAA\"}\n").weight_bytes, 0);
        let thread = "{\"type\":\"thread\",\"thread\":0,\"context\":\"user\",\"wakeup\":{\"n\":1,\"x\":2}}\n";
        let (once, twice) = (weighed(thread), weighed(&thread.repeat(100)));
        assert_eq!(
            once.weight_bytes, twice.weight_bytes,
            "only the last record of a thread is kept"
        );
        let other = thread.replace("\"thread\":0", "\"thread\":1");
        assert_eq!(weighed(&format!("{thread}{other}")).weight_bytes, 2 * once.weight_bytes);
        let objects = format!("{{\"type\":\"header\",\"x\":[{}0]}}\n", "{\"\":0},".repeat(1000));
        assert!(weighed(&objects).weight_bytes > 700_000, "seven bytes become a tree each");
    }

    #[test]
    fn whoever_watches_ends_it() {
        let text = "{\"type\":\"second\"}\n".repeat(100_000);
        let source = io::BufReader::new(text.as_bytes());
        let mut it = WeighedSource::new(source, |now: Consumption| match now.weight_bytes {
            0..100_000 => Ok(()),
            _ => Err(io::Error::from(io::ErrorKind::QuotaExceeded)),
        });
        let ended = io::copy(&mut it, &mut io::sink()).err().map(|e| e.kind());
        assert_eq!(ended, Some(io::ErrorKind::QuotaExceeded));
        assert!(it.consumed.plain_bytes < 200_000, "{:?}", it.consumed);
    }
}
