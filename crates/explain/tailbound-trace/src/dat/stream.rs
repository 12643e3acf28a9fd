// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events of one CPU in one buffer, page by page.
//!
//! Units: bytes; ns. One stretch of pages, or one packed chunk, is held at a time.
//! Damaged pages are passed over and counted.
//! Source: trace-cmd.dat.v7(5), "COMPRESSION FORMAT OF THE TRACE DATA".

use std::io::{Read, Seek};

use super::DatError;
use super::merge::Reading;
use super::unpack::Packing;
use crate::event::Entry;
use crate::page::{PageCursor, PageError};

/// The largest chunk that is unpacked at once.
const CHUNK_BYTES_MAX: u32 = 16 << 20;
/// No machine ran for as long: a time beyond it is damage (146 years).
const TIME_NS_MAX: u64 = 1 << 62;

/// See the module.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) cpu: u32,
    pub(super) buffer: usize,
    page_bytes: usize,
    /// What of the file is still to be read.
    at: u64,
    end: u64,
    packing: Packing,
    /// Packed chunks still to come, once the first was looked for.
    chunks: Option<u32>,
    held: Vec<u8>,
    /// The page within `held`, and where the first byte of `held` lies in the file.
    page: usize,
    held_at: u64,
    place: PageCursor,
    /// The time of the last event: no later one lies before it.
    last_ns: u64,
    /// Something damaged was passed over since then.
    gap: bool,
}

impl Stream {
    pub(super) fn plain(cpu: u32, at: u64, bytes: u64) -> Self {
        Self::packed(cpu, at, bytes, Packing::None)
    }

    /// `bytes` are those of the chunks, without their number before them.
    pub(super) fn packed(cpu: u32, at: u64, bytes: u64, packing: Packing) -> Self {
        let bytes = match packing {
            Packing::None => bytes,
            _ if bytes == 0 => 0,
            _ => bytes.saturating_add(4),
        };
        Self {
            cpu,
            buffer: 0,
            page_bytes: 0,
            at,
            end: at.saturating_add(bytes),
            packing,
            chunks: None,
            held: Vec::new(),
            page: 0,
            held_at: 0,
            place: PageCursor::default(),
            last_ns: 0,
            gap: false,
        }
    }

    /// It belongs to this buffer, whose pages are so long.
    pub(super) fn of(&mut self, buffer: usize, page_bytes: usize) {
        (self.buffer, self.page_bytes) = (buffer, page_bytes);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.end.saturating_sub(self.at)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// Gives back what it holds.
    pub(super) fn release(&mut self, reading: &mut Reading<'_, impl Read + Seek>) {
        reading.held = reading.held.saturating_sub(self.held.capacity());
        self.held = Vec::new();
    }

    /// The next event that is understood; `None` at the end.
    pub(super) fn next<R: Read + Seek>(
        &mut self,
        reading: &mut Reading<'_, R>,
    ) -> Result<Option<Entry>, DatError> {
        loop {
            let end = self.page.saturating_add(self.page_bytes).min(self.held.len());
            let page = self.held.get(self.page..end).unwrap_or_default();
            match self.place.next(page) {
                Ok(Some((t, record))) => {
                    let t_ns = reading.tsc.map_or(t, |tsc| tsc.ns(t));
                    reading.saw(record);
                    if t_ns >= TIME_NS_MAX {
                        let reason = "a time beyond all times; its record is left out";
                        self.damaged(reading, self.page_at(), reason);
                    } else if let Some(entry) = reading.decoder.decode(t_ns, self.cpu, record) {
                        if t_ns >= self.last_ns {
                            return Ok(Some(self.took(reading, entry)));
                        }
                        // Everything behind the reader counts on order: what lies between such times is not known.
                        let reason = "times that go back; what is earlier than the record before it is left out";
                        self.damaged(reading, self.page_at(), reason);
                    } else if reading.decoder.understands(record) {
                        let reason = "a record that its description does not fit; it is left out";
                        self.damaged(reading, self.page_at(), reason);
                    }
                }
                Ok(None) => {
                    if !self.turn(reading)? {
                        return Ok(None);
                    }
                }
                Err(e) => {
                    self.damaged(reading, self.page_at(), &rest_of_page(&e));
                    self.place = PageCursor::default();
                }
            }
        }
    }

    /// An event that comes next; what was damaged before it is a hole.
    fn took<R>(&mut self, reading: &mut Reading<'_, R>, entry: Entry) -> Entry {
        self.last_ns = entry.t_ns;
        if std::mem::take(&mut self.gap) {
            reading.gap(entry.t_ns);
        }
        entry
    }

    fn damaged<R>(&mut self, reading: &mut Reading<'_, R>, at: u64, reason: &str) {
        self.gap = true;
        reading.damaged(self.cpu, at, reason);
    }

    /// Where the page lies in the file; of a packed one its chunk.
    fn page_at(&self) -> u64 {
        match self.packing {
            Packing::None => self.held_at.saturating_add(self.page as u64),
            _ => self.held_at,
        }
    }

    /// Goes on to the next page; `false` at the end.
    fn turn<R: Read + Seek>(&mut self, reading: &mut Reading<'_, R>) -> Result<bool, DatError> {
        self.page = self.page.saturating_add(self.page_bytes);
        if self.page >= self.held.len() {
            let capacity = self.held.capacity();
            let filled = match self.packing {
                Packing::None => self.fill(reading)?,
                _ => self.fill_packed(reading)?,
            };
            let others = reading.held.saturating_sub(capacity);
            reading.held = others.saturating_add(self.held.capacity());
            if !filled {
                return Ok(false);
            }
            self.page = 0;
        }
        self.place = PageCursor::default();
        let end = self.page.saturating_add(self.page_bytes).min(self.held.len());
        let page = self.held.get(self.page..end).unwrap_or_default();
        match reading.layout.begin(page) {
            Ok((place, held)) => {
                self.place = place;
                if held.lost > 0 || held.lost_uncounted {
                    let head = reading.layout.head(page).map_or(0, |h| h.t_ns);
                    reading.lost(reading.tsc.map_or(head, |tsc| tsc.ns(head)), &held);
                }
            }
            Err(e) => self.damaged(reading, self.page_at(), &rest_of_page(&e)),
        }
        Ok(true)
    }

    fn fill<R: Read + Seek>(&mut self, reading: &mut Reading<'_, R>) -> Result<bool, DatError> {
        let pages = reading.block.checked_div(self.page_bytes).unwrap_or(1).max(1);
        let n = (pages.saturating_mul(self.page_bytes) as u64).min(self.bytes());
        self.held.clear();
        self.held_at = self.at;
        reading.source.read_into(self.at, n, &mut self.held)?;
        self.at = self.at.saturating_add(n);
        reading.bytes = reading.bytes.saturating_add(n);
        Ok(!self.held.is_empty())
    }

    fn fill_packed<R: Read + Seek>(
        &mut self,
        reading: &mut Reading<'_, R>,
    ) -> Result<bool, DatError> {
        let begin = self.at;
        let chunks = match self.chunks {
            Some(n) => n,
            None => self.word(reading)?.unwrap_or(0),
        };
        self.held.clear();
        self.held_at = self.at;
        if chunks == 0 || self.is_empty() {
            return Ok(false);
        }
        self.chunks = Some(chunks.saturating_sub(1));
        let (Some(packed), Some(plain)) = (self.word(reading)?, self.word(reading)?) else {
            self.damaged(reading, self.at, "the file ends within a chunk");
            return Ok(false);
        };
        if u64::from(packed) > self.bytes() || plain > CHUNK_BYTES_MAX {
            let text = format!(
                "a chunk of {packed} bytes, unpacked {plain}; what lies behind it of this CPU is left out"
            );
            self.damaged(reading, self.at, &text);
            self.at = self.end;
            return Ok(false);
        }
        if !reading.has_room(plain as usize) {
            reading.no_room(self.cpu);
            self.at = self.end;
            return Ok(false);
        }
        let bytes = reading.source.read(self.at, u64::from(packed))?;
        self.at = self.at.saturating_add(u64::from(packed));
        reading.bytes = reading.bytes.saturating_add(self.at.saturating_sub(begin));
        match self.packing.unpack(&bytes, plain as usize) {
            Ok(bytes) => self.held = bytes,
            Err(e) => {
                self.damaged(reading, self.held_at, &format!("{e}; the chunk is left out"));
            }
        }
        // An empty chunk is no end: the next `turn` comes here again.
        if self.held.is_empty() {
            self.held.resize(self.page_bytes.min(64), 0);
        }
        Ok(true)
    }

    fn word<R: Read + Seek>(
        &mut self,
        reading: &mut Reading<'_, R>,
    ) -> Result<Option<u32>, DatError> {
        let bytes = reading.source.read(self.at, 4.min(self.bytes()))?;
        self.at = self.at.saturating_add(4).min(self.end);
        Ok(bytes.try_into().ok().map(u32::from_le_bytes))
    }
}

fn rest_of_page(e: &PageError) -> String {
    format!("{e}; what lies behind it to the end of its page is left out")
}

/// No bytes of the file may belong to two CPUs: otherwise a small file could be read without end.
pub(super) fn apart(streams: &[Stream]) -> Result<(), DatError> {
    let mut all: Vec<&Stream> = streams.iter().filter(|s| !s.is_empty()).collect();
    all.sort_by_key(|s| s.at);
    for pair in all.windows(2) {
        if let [a, b] = pair
            && a.end > b.at
        {
            return Err(DatError::Wrong {
                at: b.at,
                within: "the table of CPUs",
                reason: format!("the events of CPU {} lie over those of CPU {}", b.cpu, a.cpu),
            });
        }
    }
    Ok(())
}

/// Keeps each within a file of this length; what is missing, in words.
pub(super) fn cut(streams: &mut [Stream], length: u64) -> Option<String> {
    let whole: u64 = streams.iter().map(Stream::bytes).fold(0, u64::saturating_add);
    for s in &mut *streams {
        s.end = s.end.min(length);
        s.at = s.at.min(s.end);
    }
    let rest: u64 = streams.iter().map(Stream::bytes).fold(0, u64::saturating_add);
    (rest < whole).then(|| {
        format!(
            "the file is cut off at byte {length}: of {whole} bytes of events {} are missing, and what they would have shown",
            whole.saturating_sub(rest)
        )
    })
}
