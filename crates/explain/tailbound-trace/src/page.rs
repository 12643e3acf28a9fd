// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages of the kernel's trace ring buffer, as `per_cpu/cpuN/trace_pipe_raw` gives them.
//!
//! Units: bytes; times in ns of the instance's trace clock. Little-endian
//! kernels only, as all supported machines are.
//! Layout: a time stamp, a length with two flags, then records: 5 bits of type or length,
//! 27 bits of time since the record before, and the record.
//! Source: Documentation/trace/ring-buffer-design.rst, `events/header_page`,
//! `events/header_event`.

use crate::format::{Field, field};

const TYPE_PADDING: u32 = 29;
const TYPE_TIME_EXTEND: u32 = 30;
const TYPE_TIME_STAMP: u32 = 31;
const DELTA_BITS: u32 = 27;
/// Absolute time stamps have 59 bits; the rest is the page's.
const STAMP_BITS: u32 = 59;
const MISSED_EVENTS: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
/// No kernel has larger sub-buffers.
const PAGE_MAX: usize = 16 << 20;

/// Why a page could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// The description of the page is not understood.
    #[error("events/header_page: {0}")]
    Layout(String),
    /// A page contradicts itself.
    #[error("byte {at} of a trace page: {reason}")]
    Page {
        /// Where.
        at: usize,
        /// Why.
        reason: &'static str,
    },
}

/// How this kernel lays out its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    stamp: Field,
    commit: Field,
    data: usize,
    /// Bytes of a whole page: what one read has to ask for.
    pub size: usize,
}

/// What the head of a page tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Not later than its first record.
    pub t_ns: u64,
    /// Where its records end, in bytes.
    pub end: usize,
    /// Records before this page were overwritten.
    pub lost: bool,
}

/// What one page held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageTally {
    /// Records.
    pub records: u64,
    /// Records that were overwritten before this page, if the kernel says how many.
    pub lost: u64,
    /// Records were overwritten before this page and nobody knows how many.
    pub lost_uncounted: bool,
}

impl PageLayout {
    /// Reads `events/header_page`.
    ///
    /// # Errors
    /// [`PageError::Layout`].
    pub fn parse(text: &str) -> Result<Self, PageError> {
        let fields: Vec<(String, Field)> = text.lines().filter_map(field).collect();
        let find = |name: &str| {
            fields
                .iter()
                .find(|(n, _)| n == name)
                .map(|(_, f)| *f)
                .ok_or_else(|| PageError::Layout(format!("there is no field `{name}`")))
        };
        let (stamp, commit, data) = (find("timestamp")?, find("commit")?, find("data")?);
        let size = data.offset.saturating_add(data.size);
        if !(64..=PAGE_MAX).contains(&size) || ![4, 8].contains(&commit.size) {
            return Err(PageError::Layout(format!("a page of {size} bytes")));
        }
        Ok(Self { stamp, commit, data: data.offset, size })
    }

    /// The head of a page; `None` where it is too short for one.
    #[must_use]
    pub fn head(&self, page: &[u8]) -> Option<Head> {
        let t_ns = self.stamp.get(page)?.cast_unsigned();
        let commit = self.commit.get(page)?.cast_unsigned();
        let length = usize::try_from(commit & (MISSED_STORED - 1)).ok()?;
        let end = self.data.checked_add(length)?;
        Some(Head { t_ns, end, lost: commit & MISSED_EVENTS != 0 })
    }

    /// Calls `each` with the time and the bytes of every record of `page`, in their order.
    ///
    /// # Errors
    /// [`PageError::Page`]; the records before the fault were passed on.
    pub fn records(
        &self,
        page: &[u8],
        mut each: impl FnMut(u64, &[u8]),
    ) -> Result<PageTally, PageError> {
        let (mut place, mut held) = self.begin(page)?;
        while let Some((t_ns, record)) = place.next(page)? {
            held.records = held.records.saturating_add(1);
            each(t_ns, record);
        }
        Ok(held)
    }

    /// The place before the first record of `page`, and what was lost before it; no record is
    /// counted yet.
    ///
    /// # Errors
    /// [`PageError::Page`]: there is no whole head.
    pub fn begin(&self, page: &[u8]) -> Result<(PageCursor, PageTally), PageError> {
        let time = self.stamp.get(page).ok_or_else(|| short(0))?.cast_unsigned();
        let commit = self.commit.get(page).ok_or_else(|| short(0))?.cast_unsigned();
        let length = usize::try_from(commit & (MISSED_STORED - 1)).unwrap_or(usize::MAX);
        let end = self.data.saturating_add(length);
        let mut held = PageTally::default();
        if commit & MISSED_EVENTS != 0 {
            let count = Field { offset: end, size: self.commit.size, signed: false };
            match count.get(page).filter(|_| commit & MISSED_STORED != 0) {
                Some(lost) => held.lost = lost.cast_unsigned(),
                None => held.lost_uncounted = true,
            }
        }
        Ok((PageCursor { time, at: self.data, end }, held))
    }
}

fn short(at: usize) -> PageError {
    PageError::Page { at, reason: "the page ends in the middle of a record" }
}

/// A place between two records of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCursor {
    time: u64,
    at: usize,
    end: usize,
}

impl PageCursor {
    /// The time and the bytes of the next record of the same `page`; `None` at its end.
    ///
    /// # Errors
    /// [`PageError::Page`]; nothing behind it can be read.
    pub fn next<'a>(&mut self, page: &'a [u8]) -> Result<Option<(u64, &'a [u8])>, PageError> {
        let page = page.get(..self.end).unwrap_or(page);
        let word = |at: usize| -> Result<u32, PageError> {
            let bytes = page.get(at..at.saturating_add(4)).and_then(|b| b.try_into().ok());
            bytes.map(u32::from_le_bytes).ok_or_else(|| short(at))
        };
        while self.at < self.end {
            let at = self.at;
            let head = word(at)?;
            let (kind, delta) = (head & 31, u64::from(head >> 5));
            let mut body = at.saturating_add(4);
            let length = match kind {
                // Padding without time: nothing follows on this page.
                TYPE_PADDING if delta == 0 => break,
                TYPE_PADDING => word(body)? as usize,
                TYPE_TIME_EXTEND => {
                    let far = delta | u64::from(word(body)?) << DELTA_BITS;
                    self.time = self.time.wrapping_add(far);
                    self.at = body.saturating_add(4);
                    continue;
                }
                TYPE_TIME_STAMP => {
                    let stamp = delta | u64::from(word(body)?) << DELTA_BITS;
                    self.time = (self.time >> STAMP_BITS << STAMP_BITS) | stamp;
                    self.at = body.saturating_add(4);
                    continue;
                }
                0 => {
                    let length = word(body)? as usize;
                    body = body.saturating_add(4);
                    length.checked_sub(4).ok_or(PageError::Page {
                        at,
                        reason: "a long record that is shorter than its own length",
                    })?
                }
                words => (words as usize).saturating_mul(4),
            };
            let next = body.saturating_add(length);
            let record = page.get(body..next).ok_or_else(|| short(at))?;
            self.time = self.time.wrapping_add(delta);
            self.at = next.next_multiple_of(4);
            if kind != TYPE_PADDING {
                return Ok(Some((self.time, record)));
            }
        }
        self.at = self.end;
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:112;\tsigned:0;\n";

    fn layout() -> PageLayout {
        PageLayout::parse(HEADER).expect("as every 64-bit kernel has it")
    }

    /// A page at time 1000 with `words` as data and `flags` in its length.
    fn page(flags: u64, words: &[u32]) -> Vec<u8> {
        let mut bytes = 1000u64.to_le_bytes().to_vec();
        bytes.extend(((words.len() as u64 * 4) | flags).to_le_bytes());
        words.iter().for_each(|w| bytes.extend(w.to_le_bytes()));
        bytes.resize(128, 0);
        bytes
    }

    fn read(bytes: &[u8]) -> (Vec<(u64, usize)>, Result<PageTally, PageError>) {
        let mut out = Vec::new();
        let held = layout().records(bytes, |t, r| out.push((t, r.len())));
        (out, held)
    }

    #[test]
    fn every_kind_of_record_keeps_the_time() {
        let words = [
            1 | 5 << 5,
            7, // one word, 5 ns later
            TYPE_TIME_EXTEND | 3 << 5,
            1, // 2^27 + 3 ns
            9 << 5,
            12,
            1,
            2,                     // long: its length counts itself
            TYPE_PADDING | 1 << 5, // discarded, 1 ns
            4,
            2 | 1 << 5,
            1,
            2,
            TYPE_TIME_STAMP | 77 << 5,
            0, // absolute
            1,
            0,
            TYPE_PADDING, // the rest is nothing
            99,
        ];
        let (out, held) = read(&page(0, &words));
        let far = 1000 + 5 + (1 << 27) + 3;
        assert_eq!(out, [(1005, 4), (far + 9, 8), (far + 11, 8), (77, 4)]);
        assert_eq!(held, Ok(PageTally { records: 4, ..PageTally::default() }));
    }

    #[test]
    fn what_was_lost_is_reported() {
        let mut bytes = page(MISSED_EVENTS | MISSED_STORED, &[1, 7]);
        bytes[24] = 42;
        assert_eq!(read(&bytes).1.map(|h| (h.lost, h.lost_uncounted)), Ok((42, false)));
        let held = read(&page(MISSED_EVENTS, &[1, 7])).1;
        assert_eq!(held.map(|h| (h.lost, h.lost_uncounted)), Ok((0, true)));
    }

    #[test]
    fn garbage_is_an_error_and_no_panic() {
        assert!(read(&[]).1.is_err());
        assert!(read(&page(0, &[28])).1.is_err(), "28 words that are not there");
        assert!(read(&page(0, &[0, 3])).1.is_err());
        assert!(read(&page(1 << 20, &[])).1.is_err());
        assert!(read(&page(0, &[0, u32::MAX])).1.is_err());
        // Any bytes: an error or not, but an end.
        let mut state = 1u32;
        for _ in 0..2000 {
            let words: Vec<u32> = (0..28)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    state >> 3
                })
                .collect();
            drop(read(&page(0, &words)));
        }
        assert!(PageLayout::parse("field: u64 timestamp; offset:0; size:8; signed:0;").is_err());
    }
}
