// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of perf (`perf.data`): the tracepoints of `perf record -e` and `perf sched record`, in the order of time.
//!
//! Units: bytes; ns on perf's clock. No number of the file decides what is allocated: a length is held against
//! the bytes that are there first.
//!
//! ```text
//! header ─► attributes: how the samples are laid out (sample)
//!      ├──► features: the tracepoints' formats (as in a trace.dat), the system
//!      └──► records ─► samples ─► rounds, in order of time (order) ─► entries
//! ```
//!
//! Little-endian files that perf finished, not compressed and not written to a pipe: others are refused by name.
//! Source: tools/perf/Documentation/perf.data-file-format.txt; tools/perf/util/trace-event-info.c.

mod error;
mod order;
mod sample;

use std::io::{Read, Seek};

pub use error::{PerfError, RECORD};

use crate::dat::part::{Part, text_of};
use crate::dat::source::Source;
use crate::dat::texts::{self, Texts};
use crate::event::{Entry, EventDecoder};
use crate::format::EventFormat;
use order::Rounds;
use sample::SampleLayout;

/// How every such file begins, and one of the other byte order.
const MAGIC: &[u8] = b"PERFILE2";
const SWAPPED: &[u8] = b"2ELIFREP";
/// The tracepoints' formats begin as a file of trace-cmd does.
const TRACING: &[u8] = b"\x17\x08\x44tracing";
/// The header of a file, and of what was written to a pipe.
const HEADER_BYTES: u64 = 104;
const PIPE_HEADER_BYTES: u64 = 16;
/// The longest header and description of an event that is read, and most bytes of all of them, of the formats, and of
/// another feature.
const ATTRIBUTE_BYTES: std::ops::RangeInclusive<u64> = 64 + 16..=4096;
const ATTRIBUTES_BYTES_MAX: u64 = 16 << 20;
const FORMATS_BYTES_MAX: u64 = 64 << 20;
const FEATURE_BYTES_MAX: u64 = 64 << 10;
/// Bytes of records that are read at once: more than the longest record.
const STRETCH_BYTES: u64 = 1 << 20;
/// The header of a record.
const RECORD_HEADER_BYTES: usize = 8;

/// Bits of features.
const TRACING_DATA: u32 = 1;
const HOSTNAME: u32 = 3;
const OSRELEASE: u32 = 4;
const VERSION: u32 = 5;
const ARCH: u32 = 6;
const COMPRESSED: u32 = 27;

/// Kinds of records.
const LOST: u32 = 2;
const COMM: u32 = 3;
const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;
const FINISHED_ROUND: u32 = 68;
const AUXTRACE: u32 = 71;
const PACKED: [u32; 2] = [81, 83];

/// The kind of a tracepoint's event.
const TRACEPOINT: u32 = 2;
/// The bit of an event's flags that says that a clock was chosen, and the clock of timers.
const USE_CLOCKID: u64 = 1 << 25;
const CLOCK_MONOTONIC: u32 = 1;

/// A stretch of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Section {
    at: u64,
    bytes: u64,
}

/// What times count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerfClock {
    /// CLOCK_MONOTONIC (`-k mono`), which timers have too.
    Monotonic,
    /// perf's own or another.
    Other,
}

/// What a file tells beside its events.
#[derive(Clone, Debug)]
pub struct PerfInfo {
    /// Name, release and architecture of the system it was recorded on.
    pub host: Option<String>,
    /// See `host`.
    pub release: Option<String>,
    /// See `host`.
    pub arch: Option<String>,
    /// The version of perf.
    pub recorder: Option<String>,
    /// What times count from.
    pub clock: PerfClock,
    /// Those of its events that are understood.
    pub formats: Vec<EventFormat>,
    /// The recorded wake-ups stand for wakings, which the file does not have.
    pub wakeups_alone: bool,
    /// Bytes of records.
    pub bytes: u64,
    /// What a reader must know.
    pub notes: Vec<String>,
}

impl PerfClock {
    /// For people and scripts.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Monotonic => "mono",
            Self::Other => "perf's own",
        }
    }
}

impl PerfInfo {
    /// As `uname` of a trace.dat has it.
    #[must_use]
    pub fn uname(&self) -> Option<String> {
        let (host, release) = (self.host.as_deref()?, self.release.as_deref()?);
        Some(format!("Linux {host} {release} {}", self.arch.as_deref()?))
    }
}

/// What a record was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PerfItem<'a> {
    /// An event that is understood.
    Entry(&'a Entry),
    /// The name of a thread before the first event.
    Name(i32, String),
    /// Events were lost before what comes.
    Lost,
    /// So many bytes of records were read.
    Bytes(u64),
}

/// How the reading ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerfEnd {
    /// Samples.
    pub samples: u64,
    /// Events that the kernel or perf lost.
    pub lost: u64,
    /// Samples that could not be read.
    pub damaged: u64,
}

/// A file of perf, opened.
#[derive(Debug)]
pub struct PerfFile<R> {
    source: Source<R>,
    info: PerfInfo,
    data: Section,
    layouts: Layouts,
}

/// How samples are laid out.
#[derive(Debug)]
enum Layouts {
    /// All in one way.
    One(SampleLayout),
    /// By the number that a sample begins with; those that are no tracepoints have none.
    ByEvent(std::collections::BTreeMap<u64, Option<SampleLayout>>),
}

/// Do these first bytes begin a file of perf?
#[must_use]
pub fn is_perf_file(start: &[u8]) -> bool {
    start.starts_with(MAGIC) || start.starts_with(SWAPPED)
}

impl<R: Read + Seek> PerfFile<R> {
    /// Reads the descriptions.
    ///
    /// # Errors
    /// [`PerfError`].
    pub fn open(source: R) -> Result<Self, PerfError> {
        let mut source = Source::new(source)?;
        let head = source.read(0, HEADER_BYTES)?;
        if !is_perf_file(&head) {
            return Err(PerfError::Foreign);
        }
        if head.starts_with(SWAPPED) {
            return Err(PerfError::BigEndian);
        }
        let mut part = Part::new(&head, 0, "the header");
        part.bytes(MAGIC.len())?;
        let size = part.u64()?;
        if size == PIPE_HEADER_BYTES {
            return Err(PerfError::Pipe);
        }
        let attribute_bytes = part.u64()?;
        let (attributes, data) = (section(&mut part)?, section(&mut part)?);
        section(&mut part)?;
        let features: Vec<u64> =
            (0..4).map(|_| part.u64()).collect::<Result<_, _>>().map_err(PerfError::from)?;
        if data.bytes == 0 {
            return Err(PerfError::Unfinished);
        }
        let end = data.at.saturating_add(data.bytes);
        if end > source.length() {
            return Err(PerfError::Ends { at: source.length(), within: "the records" });
        }
        let features = feature_sections(&mut source, &features, end)?;
        if features.iter().any(|(bit, _)| *bit == COMPRESSED) {
            return Err(PerfError::Compressed);
        }
        let (layouts, clock) = layouts(&mut source, attributes, attribute_bytes)?;
        let text = |source: &mut Source<R>, bit| feature_text(source, &features, bit);
        let mut info = PerfInfo {
            host: text(&mut source, HOSTNAME)?,
            release: text(&mut source, OSRELEASE)?,
            arch: text(&mut source, ARCH)?,
            recorder: text(&mut source, VERSION)?,
            clock,
            formats: Vec::new(),
            wakeups_alone: false,
            bytes: data.bytes,
            notes: Vec::new(),
        };
        let tracing = features.iter().find(|(bit, _)| *bit == TRACING_DATA).map(|(_, s)| *s);
        formats(&mut source, tracing.ok_or(PerfError::NoTracepoints)?, &mut info)?;
        Ok(Self { source, info, data, layouts })
    }

    /// What the file tells beside its events.
    #[must_use]
    pub fn info(&self) -> &PerfInfo {
        &self.info
    }

    /// Hands over every event that `decoder` understands, in the order of time, until `each` says `false`.
    ///
    /// # Errors
    /// [`PerfError::Read`], [`PerfError::Wrong`], [`PerfError::Compressed`].
    pub fn read(
        mut self,
        decoder: &EventDecoder,
        each: &mut dyn FnMut(PerfItem<'_>) -> bool,
    ) -> Result<PerfEnd, PerfError> {
        let (mut at, end) = (self.data.at, self.data.at.saturating_add(self.data.bytes));
        let (mut rounds, mut found, mut go_on) = (Rounds::default(), PerfEnd::default(), true);
        while at < end && go_on {
            let stretch = self.source.read(at, STRETCH_BYTES.min(end.saturating_sub(at)))?;
            let mut used = 0usize;
            while let Some(record) = record(&stretch, used, at)? {
                used = used.saturating_add(record.bytes);
                let mut tell = |e: &Entry| go_on &= each(PerfItem::Entry(e));
                match record.kind {
                    SAMPLE => {
                        self.layouts.take(&record, decoder, &mut rounds, &mut found, &mut tell)
                    }
                    FINISHED_ROUND => rounds.ended(&mut tell),
                    COMM if found.samples == 0 => {
                        if let Some((tid, comm)) = named(record.body) {
                            go_on &= each(PerfItem::Name(tid, comm));
                        }
                    }
                    LOST | LOST_SAMPLES => {
                        found.lost = found.lost.saturating_add(lost(&record));
                        go_on &= each(PerfItem::Lost);
                    }
                    AUXTRACE => {
                        let more = Part::new(record.body, 0, "a record").u64().unwrap_or(u64::MAX);
                        let more = usize::try_from(more).unwrap_or(usize::MAX);
                        used = used.saturating_add(more);
                    }
                    kind if PACKED.contains(&kind) => return Err(PerfError::Compressed),
                    _ => {}
                }
            }
            if used == 0 {
                let at = at.saturating_add(u64::try_from(stretch.len()).unwrap_or(0));
                return Err(PerfError::Ends { at, within: "a record" });
            }
            at = at.saturating_add(u64::try_from(used).unwrap_or(u64::MAX));
            go_on &= each(PerfItem::Bytes(at.saturating_sub(self.data.at)));
        }
        if go_on {
            rounds.finish(&mut |e| {
                each(PerfItem::Entry(e));
            });
        }
        Ok(found)
    }
}

/// A record of the file.
#[derive(Clone, Copy, Debug)]
struct RawRecord<'a> {
    kind: u32,
    /// With its header.
    bytes: usize,
    body: &'a [u8],
    /// Where the body lies in the file.
    at: u64,
}

/// The record behind `used` bytes of a stretch that begins at `at` of the file; `None` where it is not whole.
fn record(stretch: &[u8], used: usize, at: u64) -> Result<Option<RawRecord<'_>>, PerfError> {
    let Some(rest) = stretch.get(used..).filter(|r| r.len() >= RECORD_HEADER_BYTES) else {
        return Ok(None);
    };
    let at = at.saturating_add(u64::try_from(used).unwrap_or(u64::MAX));
    let mut head = Part::new(rest, at, "the header of a record");
    let (kind, _misc, bytes) = (head.u32()?, head.u16()?, usize::from(head.u16()?));
    if bytes < RECORD_HEADER_BYTES {
        return Err(head.wrong("a record shorter than its header").into());
    }
    let body = rest.get(RECORD_HEADER_BYTES..bytes);
    Ok(body.map(|body| RawRecord { kind, bytes, body, at: head.place() }))
}

impl Layouts {
    /// Takes a sample into its round.
    fn take(
        &self,
        record: &RawRecord<'_>,
        decoder: &EventDecoder,
        rounds: &mut Rounds,
        found: &mut PerfEnd,
        tell: &mut dyn FnMut(&Entry),
    ) {
        found.samples = found.samples.saturating_add(1);
        let layout = match self {
            Self::One(layout) => Some(*layout),
            Self::ByEvent(layouts) => {
                let event = Part::new(record.body, record.at, "a sample").u64().ok();
                match event.and_then(|event| layouts.get(&event)) {
                    // Of an event that is no tracepoint.
                    Some(None) => return,
                    Some(layout) => *layout,
                    None => None,
                }
            }
        };
        let sample = layout.and_then(|layout| {
            layout.sample(&mut Part::new(record.body, record.at, "a sample")).ok()
        });
        let Some(sample) = sample else {
            found.damaged = found.damaged.saturating_add(1);
            return;
        };
        if let Some(entry) = decoder.decode(sample.t_ns, sample.cpu, sample.bytes) {
            rounds.push(entry, tell);
        }
    }
}

/// Lost events: behind the number of their event, or alone.
fn lost(record: &RawRecord<'_>) -> u64 {
    let mut body = Part::new(record.body, record.at, "a record");
    let first = body.u64().unwrap_or(0);
    if record.kind == LOST { body.u64().unwrap_or(0) } else { first }
}

/// A thread and its name.
fn named(body: &[u8]) -> Option<(i32, String)> {
    let mut body = Part::new(body, 0, "a record");
    let (_process, tid) = (body.u32().ok()?, body.u32().ok()?);
    let comm = body.text().ok()?;
    Some((i32::try_from(tid).ok()?, comm))
}

fn section(part: &mut Part<'_>) -> Result<Section, PerfError> {
    Ok(Section { at: part.u64()?, bytes: part.u64()? })
}

/// Where the features lie: a table behind the records, one entry for each bit.
fn feature_sections<R: Read + Seek>(
    source: &mut Source<R>,
    bits: &[u64],
    at: u64,
) -> Result<Vec<(u32, Section)>, PerfError> {
    let set = |bit: u32| {
        let word = usize::try_from(bit / 64).ok().and_then(|word| bits.get(word));
        word.is_some_and(|word| word >> (bit % 64) & 1 == 1)
    };
    let table = source.read(at, 256 * 16)?;
    let mut part = Part::new(&table, at, "the table of features");
    (0..256).filter(|bit| set(*bit)).map(|bit| Ok((bit, section(&mut part)?))).collect()
}

/// A feature that is a text: its length, then the text with zeros behind it.
fn feature_text<R: Read + Seek>(
    source: &mut Source<R>,
    features: &[(u32, Section)],
    bit: u32,
) -> Result<Option<String>, PerfError> {
    let Some((_, section)) = features.iter().find(|(b, _)| *b == bit) else { return Ok(None) };
    let bytes = source.read(section.at, section.bytes.min(FEATURE_BYTES_MAX))?;
    let text = text_of(bytes.get(4..).unwrap_or_default());
    Ok(Some(text).filter(|t| !t.is_empty()))
}

/// How the samples are laid out, and their clock.
fn layouts<R: Read + Seek>(
    source: &mut Source<R>,
    attributes: Section,
    attribute_bytes: u64,
) -> Result<(Layouts, PerfClock), PerfError> {
    let within = "the descriptions of the events";
    let bytes = source.read(attributes.at, attributes.bytes.min(ATTRIBUTES_BYTES_MAX))?;
    let mut part = Part::new(&bytes, attributes.at, within);
    if !ATTRIBUTE_BYTES.contains(&attribute_bytes) {
        return Err(part.wrong(format!("a description of {attribute_bytes} bytes")).into());
    }
    let each = usize::try_from(attribute_bytes).unwrap_or(usize::MAX);
    let mut all: Vec<(Option<SampleLayout>, SampleLayout, Section)> = Vec::new();
    let mut clocks = Vec::new();
    while !part.is_empty() {
        let at = part.place();
        let one = part.bytes(each)?;
        let own = each.saturating_sub(16);
        let (attribute, ids) = (one.get(..own).unwrap_or_default(), one.get(own..));
        let mut attribute = Part::new(attribute, at, within);
        let (kind, _size) = (attribute.u32()?, attribute.u32()?);
        let (_config, _period) = (attribute.u64()?, attribute.u64()?);
        let (sample_type, read_format) = (attribute.u64()?, attribute.u64()?);
        let layout = SampleLayout { sample_type, read_format };
        let flags = attribute.u64()?;
        let ids = section(&mut Part::new(ids.unwrap_or_default(), at, within))?;
        let is_tracepoint = kind == TRACEPOINT;
        if is_tracepoint {
            if let Some(missing) = layout.lacks() {
                return Err(PerfError::Layout { missing });
            }
            // Between the flags and the clock: wake-up, breakpoint, branches, registers and stack.
            let clock = attribute.bytes(44).and_then(|_| attribute.u32()).ok();
            clocks.push(clock.filter(|_| flags & USE_CLOCKID != 0));
        }
        all.push((is_tracepoint.then_some(layout), layout, ids));
    }
    let first = all.iter().find_map(|(tracepoint, ..)| *tracepoint);
    let first = first.ok_or(PerfError::NoTracepoints)?;
    let monotonic = clocks.iter().all(|c| *c == Some(CLOCK_MONOTONIC));
    let clock = if monotonic { PerfClock::Monotonic } else { PerfClock::Other };
    if all.iter().all(|(_, layout, _)| *layout == first) {
        return Ok((Layouts::One(first), clock));
    }
    if !all.iter().all(|(_, layout, _)| layout.names_event()) {
        return Err(PerfError::Layout { missing: "identifier, and differ in their fields" });
    }
    let mut by_event = std::collections::BTreeMap::new();
    for (tracepoint, _, ids) in &all {
        let bytes = source.read(ids.at, ids.bytes.min(ATTRIBUTES_BYTES_MAX))?;
        let mut part = Part::new(&bytes, ids.at, "the numbers of the events");
        while !part.is_empty() {
            by_event.insert(part.u64()?, *tracepoint);
        }
    }
    Ok((Layouts::ByEvent(by_event), clock))
}

/// The tracepoints' formats, which begin as a file of trace-cmd.
fn formats<R: Read + Seek>(
    source: &mut Source<R>,
    section: Section,
    info: &mut PerfInfo,
) -> Result<(), PerfError> {
    let bytes = source.read(section.at, section.bytes.min(FORMATS_BYTES_MAX))?;
    let mut part = Part::new(&bytes, section.at, "the formats of the tracepoints");
    if part.bytes(TRACING.len())? != TRACING {
        return Err(part.wrong("they do not begin as such").into());
    }
    let (_version, endian, _long, _page) = (part.text()?, part.u8()?, part.u8()?, part.u32()?);
    if endian != 0 {
        return Err(PerfError::BigEndian);
    }
    texts::header(&mut part)?;
    texts::ftrace(&mut part)?;
    let mut found = Texts::default();
    found.events(&mut part)?;
    let waking = found.formats.iter().any(|f| f.name == "sched_waking");
    let wakeups = |f: &&mut EventFormat| f.name.starts_with("sched_wakeup");
    if !waking {
        for format in found.formats.iter_mut().filter(wakeups) {
            // The fields are the same.
            "sched_waking".clone_into(&mut format.name);
            info.wakeups_alone = true;
        }
    }
    info.formats = found.formats;
    info.notes.append(&mut found.notes);
    Ok(())
}
