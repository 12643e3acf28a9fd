// SPDX-License-Identifier: MIT OR Apache-2.0
//! How bytes travel over a console on which a kernel speaks too: lines of one length, each with its number and checksum.
//!
//! Units: bytes, lines.
//! Layout of a line: `=tb1 STREAM KNUMBER/COUNT PAYLOAD CRC`. STREAM is the checksum of the whole stream, which tells the
//! streams of one log apart; K is `d` (data), `p` (parity) or `e` (the last line); COUNT is the number of data lines; PAYLOAD
//! is 96 bytes in base64; CRC is of everything between the mark and itself.
//! The stream is the length of what is packed (4 bytes, big-endian), what is packed (zlib), and zeros up to a whole line.
//! Parity line j is the exclusive or of the data lines j, j + P, j + 2P, …, of which there are at most 8: one lost line of
//! these comes back, and so does a gap of P lines, an eighth of the stream.
//! A log is anybody's bytes: memory grows with the log and not with a number in it.
//! Not here: what the bytes are ([`crate::envelope`]).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::{crc32, limits};

const MARK: &[u8] = b"=tb1 ";
const PAYLOAD_BYTES: usize = 96;
const PAYLOAD_CHARS: usize = 128;
/// Stream, kind, number, count, payload, each with what parts it from the next.
const CHECKED_CHARS: usize = 8 + 1 + 1 + 7 + 1 + 7 + 1 + PAYLOAD_CHARS;
const CRC_CHARS: usize = 8;
/// Most data lines that share a parity line.
const GROUP: u32 = 8;
/// Most lines of one stream: what is packed has 190 MB then.
const LINES_MAX: u32 = 2_000_000;
/// Most streams of one log; later ones are passed over.
const STREAMS_MAX: usize = 64;
/// Most gaps that are named.
const GAPS_MAX: usize = 64;
/// A longer line is looked through and dropped.
const LINE_BYTES_MAX: usize = 4096;

type Payload = [u8; PAYLOAD_BYTES];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Data,
    Parity,
    End,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Data, Self::Parity, Self::End];

    fn letter(self) -> char {
        match self {
            Self::Data => 'd',
            Self::Parity => 'p',
            Self::End => 'e',
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    stream: u32,
    kind: Kind,
    number: u32,
    count: u32,
    payload: Payload,
}

impl Frame {
    fn text(&self) -> String {
        let checked = format!(
            "{:08x} {}{:07}/{:07} {}",
            self.stream,
            self.kind.letter(),
            self.number,
            self.count,
            STANDARD.encode(self.payload)
        );
        let crc = crc32::of(checked.as_bytes());
        format!("{}{checked} {crc:08x}", String::from_utf8_lossy(MARK))
    }

    /// Reads what follows a mark; `None` where it is not as it was written.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (checked, rest) = bytes.split_at_checked(CHECKED_CHARS)?;
        let crc = rest.get(1..CRC_CHARS.saturating_add(1))?;
        if hexadecimal(crc)? != crc32::of(checked) {
            return None;
        }
        let text = std::str::from_utf8(checked).ok()?;
        let mut words = text.split(' ');
        let stream = hexadecimal(words.next()?.as_bytes())?;
        let (number, count) = words.next()?.split_once('/')?;
        let kind = Kind::ALL.into_iter().find(|kind| number.starts_with(kind.letter()))?;
        let (number, count) = (number.get(1..)?.parse().ok()?, count.parse().ok()?);
        let payload = STANDARD.decode(words.next()?).ok()?.try_into().ok()?;
        Some(Self { stream, kind, number, count, payload })
    }
}

fn hexadecimal(bytes: &[u8]) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(bytes).ok()?, 16).ok()
}

/// The lines for `content`, without their ends.
#[must_use]
pub fn lines(content: &[u8]) -> Vec<String> {
    let packed = miniz_oxide::deflate::compress_to_vec_zlib(content, 6);
    let mut blob = u32::try_from(packed.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec();
    blob.extend(packed);
    blob.resize(blob.len().next_multiple_of(PAYLOAD_BYTES), 0);
    let stream = crc32::of(&blob);
    let payloads: Vec<Payload> =
        blob.chunks_exact(PAYLOAD_BYTES).filter_map(|chunk| chunk.try_into().ok()).collect();
    let count = u32::try_from(payloads.len()).unwrap_or(u32::MAX);
    let frame = |kind, number, payload| Frame { stream, kind, number, count, payload }.text();
    let mut out: Vec<String> = Vec::new();
    let parities = usize::try_from(parities(count)).unwrap_or(usize::MAX);
    for (number, payload) in (0..).zip(&payloads) {
        out.push(frame(Kind::Data, number, *payload));
    }
    for (number, first) in (0..).zip(0..parities) {
        let column = payloads.iter().skip(first).step_by(parities);
        let parity = column.fold([0; PAYLOAD_BYTES], |sum, payload| both(&sum, payload));
        out.push(frame(Kind::Parity, number, parity));
    }
    out.push(frame(Kind::End, count, [0; PAYLOAD_BYTES]));
    out
}

fn parities(count: u32) -> u32 {
    count.div_ceil(GROUP)
}

fn both(a: &Payload, b: &Payload) -> Payload {
    std::array::from_fn(|i| {
        let of = |payload: &Payload| payload.get(i).copied().unwrap_or_default();
        of(a) ^ of(b)
    })
}

#[derive(Debug, Default)]
struct Stream {
    count: u32,
    data: BTreeMap<u32, Payload>,
    parity: BTreeMap<u32, Payload>,
    ended: bool,
}

impl Stream {
    fn take(&mut self, frame: &Frame) {
        match frame.kind {
            Kind::Data if frame.number < self.count => {
                self.data.entry(frame.number).or_insert(frame.payload);
            }
            Kind::Parity if frame.number < parities(self.count) => {
                self.parity.entry(frame.number).or_insert(frame.payload);
            }
            Kind::End => self.ended = true,
            Kind::Data | Kind::Parity => {}
        }
    }

    fn lines_there(&self) -> u32 {
        u32::try_from(self.data.len()).unwrap_or(u32::MAX)
    }

    /// Makes lost lines from parity, where one alone of those that share it is lost; how many.
    fn restore(&mut self) -> u32 {
        let step = usize::try_from(parities(self.count)).unwrap_or(usize::MAX).max(1);
        let mut restored: u32 = 0;
        for (first, parity) in &self.parity {
            let column: Vec<u32> = (*first..self.count).step_by(step).collect();
            let lost: Vec<u32> =
                column.iter().copied().filter(|n| !self.data.contains_key(n)).collect();
            let [lost] = lost.as_slice() else { continue };
            let there = column.iter().filter_map(|n| self.data.get(n));
            let payload = there.fold(*parity, |sum, payload| both(&sum, payload));
            self.data.insert(*lost, payload);
            restored = restored.saturating_add(1);
        }
        restored
    }

    /// Data lines that are not there.
    fn gaps(&self) -> Vec<RangeInclusive<u32>> {
        let mut next: u32 = 0;
        let mut gaps = Vec::new();
        for number in self.data.keys().copied().chain([self.count]) {
            if number > next && gaps.len() < GAPS_MAX {
                gaps.push(next..=number.saturating_sub(1));
            }
            next = number.saturating_add(1);
        }
        gaps
    }

    /// The stream up to its first gap.
    fn beginning(&self) -> Vec<u8> {
        let in_turn = (0..).zip(&self.data).take_while(|(n, (number, _))| n == *number);
        in_turn.flat_map(|(_, (_, payload))| payload.iter().copied()).collect()
    }

    fn received(mut self, stream: u32) -> Received {
        let arrived = self.lines_there();
        let restored = self.restore();
        let (content, state) = unpacked(&self.beginning());
        Received {
            stream,
            lines: self.count,
            arrived,
            restored,
            lost: self.gaps(),
            ended: self.ended,
            content,
            state,
        }
    }
}

/// What is packed in as much of a stream as there is.
fn unpacked(blob: &[u8]) -> (Vec<u8>, StreamState) {
    let Some((length, packed)) = blob.split_first_chunk() else {
        return (Vec::new(), StreamState::Lost);
    };
    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    let most = usize::try_from(limits::RESULT_BYTES_MAX).unwrap_or(usize::MAX);
    let packed = packed.get(..length).unwrap_or(packed);
    match miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(packed, most) {
        // The last bytes of the packed form are the checksum of all that is in it.
        Ok(content) => (content, StreamState::Whole),
        Err(e) if packed.len() < length => {
            // Behind what was unpacked are zeros, which are no line.
            let mut content = e.output;
            let end =
                content.iter().rposition(|b| *b == b'\n').map_or(0, |at| at.saturating_add(1));
            content.truncate(end);
            let state = if end > 0 { StreamState::CutOff } else { StreamState::Lost };
            (content, state)
        }
        Err(_) => (Vec::new(), StreamState::Lost),
    }
}

/// How much of a stream is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamState {
    /// All of it, by its checksum.
    Whole,
    /// Its beginning, up to the end of a line of its content.
    CutOff,
    /// Nothing that could be used.
    Lost,
}

/// One stream of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// What it is called in its lines.
    pub stream: u32,
    /// Its data lines, as they count themselves.
    pub lines: u32,
    /// Those that arrived.
    pub arrived: u32,
    /// Those that were lost or damaged, and came back by parity.
    pub restored: u32,
    /// Those that are lost: ranges of their numbers.
    pub lost: Vec<RangeInclusive<u32>>,
    /// Did its last line arrive?
    pub ended: bool,
    /// What was sent, as far as `state` says.
    pub content: Vec<u8>,
    /// How much of it that is.
    pub state: StreamState,
}

/// Finds the lines in a log that comes piece by piece.
#[derive(Debug, Default)]
pub struct Collector {
    line: Vec<u8>,
    streams: BTreeMap<u32, Stream>,
    order: Vec<u32>,
    damaged: u64,
}

impl Collector {
    /// Takes a piece of the log.
    pub fn push(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|b| matches!(b, b'\n' | b'\r')) {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") || part.ends_with(b"\r") || self.line.len() > LINE_BYTES_MAX {
                self.look();
            }
        }
    }

    /// Looks through a line: a kernel may have spoken before it.
    fn look(&mut self) {
        let line = std::mem::take(&mut self.line);
        let mut rest = line.as_slice();
        while let Some(at) = rest.windows(MARK.len()).position(|window| window == MARK) {
            rest = rest.get(at.saturating_add(MARK.len())..).unwrap_or_default();
            match Frame::read(rest) {
                Some(frame) => self.take(&frame),
                None => self.damaged = self.damaged.saturating_add(1),
            }
        }
    }

    fn take(&mut self, frame: &Frame) {
        let possible = (1..=LINES_MAX).contains(&frame.count);
        let room = self.streams.len() < STREAMS_MAX || self.streams.contains_key(&frame.stream);
        if !possible || !room {
            return;
        }
        let order = &mut self.order;
        let stream = self.streams.entry(frame.stream).or_insert_with(|| {
            order.push(frame.stream);
            Stream { count: frame.count, ..Stream::default() }
        });
        if stream.count == frame.count {
            stream.take(frame);
        } else {
            self.damaged = self.damaged.saturating_add(1);
        }
    }

    /// Has a stream's last line arrived?
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.streams.values().any(|stream| stream.ended)
    }

    /// Data lines that arrived of the newest stream, and how many it has.
    #[must_use]
    pub fn progress(&self) -> Option<(u32, u32)> {
        let stream = self.streams.get(self.order.last()?)?;
        Some((stream.lines_there(), stream.count))
    }

    /// Lines that were begun and are not as they were written.
    #[must_use]
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// The log is over: its streams, in their order.
    #[must_use]
    pub fn finish(mut self) -> Vec<Received> {
        self.look();
        let mut streams = self.streams;
        let known = self.order.into_iter();
        known.filter_map(|id| Some(streams.remove(&id)?.received(id))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content() -> Vec<u8> {
        // Hard to pack, so that there are many lines.
        let mut x: u64 = 1;
        let mut words = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            format!("{x:x}")
        };
        (0..400).map(|n| format!("line {n} {} {}\n", words(), words())).collect::<String>().into()
    }

    fn kind(line: &str) -> u8 {
        line.as_bytes()[MARK.len() + 9]
    }

    fn read(lines: &[String]) -> (Vec<Received>, u64) {
        let mut collector = Collector::default();
        for piece in lines.join("\r\n").as_bytes().chunks(7) {
            collector.push(piece);
        }
        let damaged = collector.damaged();
        (collector.finish(), damaged)
    }

    #[test]
    fn what_a_kernel_says_in_between_changes_nothing() {
        let content = content();
        let mut all = lines(&content);
        assert!(all.len() > 80 && all.iter().all(|l| l.len() == all[0].len()), "{}", all.len());
        for at in (1..all.len()).step_by(5).rev() {
            all.insert(at, "[   12.345678] a driver spoke =tb0 =tb".to_owned());
        }
        all[0].insert_str(0, "[    1.0] no end of line here: ");
        let (streams, damaged) = read(&all);
        assert_eq!((streams.len(), damaged), (1, 0));
        let one = &streams[0];
        assert_eq!((one.state, one.restored, one.ended), (StreamState::Whole, 0, true));
        assert_eq!(one.content, content);
    }

    #[test]
    fn an_eighth_in_a_row_comes_back_and_damage_is_counted() {
        let content = content();
        let mut all = lines(&content);
        let count = all.iter().filter(|l| kind(l) == b'd').count();
        let gap = count.div_ceil(8);
        all.drain(20..20 + gap - 1);
        // The kernel spoke within this line.
        all[20].insert_str(60, "\r\n[ 99.0] oops\r\n");
        let (streams, damaged) = read(&all);
        assert_eq!(damaged, 1);
        assert_eq!(streams[0].restored as usize, gap);
        assert_eq!((streams[0].state, &streams[0].content), (StreamState::Whole, &content));
    }

    #[test]
    fn what_cannot_come_back_is_named_and_the_beginning_is_whole_lines() {
        let content = content();
        let mut all = lines(&content);
        all.retain(|l| kind(l) != b'p');
        all.remove(50);
        let (streams, _) = read(&all);
        let one = &streams[0];
        assert_eq!((one.state, &one.lost), (StreamState::CutOff, &vec![50..=50]));
        assert!(content.starts_with(&one.content) && one.content.ends_with(b"\n"));
        assert!(one.content.len() > content.len() / 8, "{}", one.content.len());
        all.remove(0);
        assert_eq!(read(&all).0[0].state, StreamState::Lost);
        assert!(read(&all).0[0].content.is_empty());
    }

    #[test]
    fn streams_of_one_log_are_told_apart() {
        let (a, b) = (b"the first\n".repeat(50), b"the second\n".repeat(60));
        let (streams, _) = read(&[lines(&a), lines(&b), lines(&a)].concat());
        assert_eq!(streams.iter().map(|s| s.content.clone()).collect::<Vec<_>>(), [a, b]);
    }

    #[test]
    fn numbers_of_a_stranger_take_no_memory() {
        let frame = |count, number| {
            Frame { stream: 1, kind: Kind::Data, number, count, payload: [0; 96] }.text()
        };
        let (streams, _) = read(&[frame(LINES_MAX, LINES_MAX - 1), frame(9_999_999, 3)]);
        assert_eq!(streams[0].lost, [0..=LINES_MAX - 2]);
        assert_eq!(streams[0].state, StreamState::Lost);
        let (none, _) = read(&["x".repeat(100_000)]);
        assert!(none.is_empty());
    }
}
