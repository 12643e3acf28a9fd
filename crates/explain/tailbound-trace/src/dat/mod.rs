// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of trace-cmd (`trace.dat`), versions 6 and 7: events of the whole machine in the order of time. Version 6 is also written.
//!
//! Units: bytes; ns on the trace's clock. Memory follows the number of CPUs, not the
//! length of the file: of each CPU one stretch of pages is held. No number of the file decides what is
//! allocated: a length is held against the bytes that are there and against a limit first.
//!
//! ```text
//! header ─► version6: one description after the other   ┐
//!      └──► version7: sections, found through options    ┴► texts (formats, functions, names) + streams
//! streams (one a CPU and buffer) ─► pages ─► merge by time ─► entries
//! ```
//!
//! Little-endian files only, as the pages of all supported machines are.
//! Not here: what the events mean (`crate::blame`), opening files (the command line).
//! Source: trace-cmd.dat.v6(5), trace-cmd.dat.v7(5).

mod clock;
mod lacking;
mod merge;
pub(crate) mod part;
pub(crate) mod source;
mod stream;
pub(crate) mod texts;
mod unpack;
mod version6;
mod version7;
mod write;

#[cfg(test)]
mod tests;

use std::io::{Read, Seek};

use tailbound_core::printable::excerpt;

pub use clock::{NoTime, TraceClock, Tsc};
pub use lacking::{Lack, Processors, RECORD, lacking};
pub use merge::{MergeItem, ReadEnd};
pub use write::{Described, Head};

use self::part::Part;
use self::source::Source;
use self::stream::Stream;
use self::texts::Texts;
use crate::event::EventDecoder;
use crate::format::EventFormat;
use crate::page::{PageError, PageLayout};
use crate::symbols::Symbols;

/// How every such file begins.
const MAGIC: &[u8] = b"\x17\x08\x44tracing";
/// Most CPUs of a buffer: what a kernel can be built for.
const CPUS_MAX: u32 = 8192;
/// Most buffers and CPUs together.
const STREAMS_MAX: usize = 16_384;
/// The largest sub-buffer that a kernel can have.
const PAGE_BYTES_MAX: usize = 1 << 20;
/// Most bytes of all descriptions together, of which the table of functions is the largest.
const TEXTS_BYTES_MAX: u64 = 64 << 20;
/// Characters of a name of the file that an error or a note has.
const SHOWN_MAX: usize = 60;

/// Why a file of trace-cmd could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatError {
    /// It begins otherwise.
    #[error("it is not a file of trace-cmd: it does not begin as one")]
    Foreign,
    /// A version that is not known.
    #[error(
        "version {} of trace-cmd's format is not known (6 and 7 are): record with `trace-cmd record --file-version 7`",
        excerpt(.0, SHOWN_MAX)
    )]
    Version(String),
    /// From a machine of the other byte order.
    #[error("it was recorded on a big-endian machine; only little-endian ones are read")]
    BigEndian,
    /// The text of a latency tracer.
    #[error(
        "it holds the text of a latency tracer (`trace-cmd record -p` or `extract` of one), not events: record with -e EVENT and without -p"
    )]
    Latency,
    /// A compression that is not known.
    #[error(
        "its compression `{}` is not known (zlib and zstd are): record or convert it with `--compression none`",
        excerpt(.0, SHOWN_MAX)
    )]
    Compression(String),
    /// It ends before any events.
    #[error(
        "it ends at byte {at}, within {within}: it was not recorded or copied to its end, and no event of it can be read. Copy it again, or end trace-cmd by Ctrl-C or -k, not by a kill"
    )]
    Ends {
        /// Where.
        at: u64,
        /// In what.
        within: &'static str,
    },
    /// It contradicts itself.
    #[error("byte {at}, in {within}: {reason}; the file is damaged, record or copy it again")]
    Wrong {
        /// Where; in what was compressed, where there.
        at: u64,
        /// In what.
        within: &'static str,
        /// Why.
        reason: String,
    },
    /// Nothing was recorded.
    #[error(
        "it holds no buffer of events: trace-cmd was ended before it wrote them. End it by Ctrl-C or let the command end, and do not kill it"
    )]
    NoBuffer,
    /// The pages are laid out in a way that is not known.
    #[error(transparent)]
    Page(#[from] PageError),
    /// The clock counts something else than time.
    #[error(
        "the clock of the trace, {0}: lateness cannot be told from it. Record with `trace-cmd record -C mono`"
    )]
    Clock(#[from] NoTime),
    /// Reading failed.
    #[error("reading byte {at}: {reason}")]
    Read {
        /// Where.
        at: u64,
        /// Why.
        reason: String,
    },
}

/// What a file tells beside its events.
#[derive(Clone, Debug, Default)]
pub struct Info {
    /// The version of the format.
    pub version: u32,
    /// What its times are.
    pub clock: TraceClock,
    /// The system it was recorded on.
    pub uname: Option<String>,
    /// The program that recorded it.
    pub recorder: Option<String>,
    /// CPUs of that system.
    pub cpus: Option<u32>,
    /// Those of its events that are understood, as its kernel describes them.
    pub formats: Vec<EventFormat>,
    /// The kernel's functions.
    pub symbols: Symbols,
    /// Names of threads.
    pub comms: Vec<(i32, String)>,
    /// Names of the buffers that events are read of; empty for the kernel's own.
    pub buffers: Vec<String>,
    /// Bytes of events, packed or not.
    pub bytes: u64,
    /// Events that its kernel counted as lost.
    pub lost: u64,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// A file of trace-cmd, opened.
#[derive(Debug)]
pub struct TraceFile<R> {
    source: Source<R>,
    layout: PageLayout,
    info: Info,
    tsc: Option<Tsc>,
    streams: Vec<Stream>,
}

/// Do these first bytes begin a file of trace-cmd?
#[must_use]
pub fn is_trace_file(start: &[u8]) -> bool {
    start.starts_with(MAGIC)
}

impl<R: Read + Seek> TraceFile<R> {
    /// Reads the descriptions.
    ///
    /// # Errors
    /// [`DatError`].
    pub fn open(source: R) -> Result<Self, DatError> {
        let mut source = Source::new(source)?;
        let head = source.read(0, TEXTS_BYTES_MAX)?;
        let mut part = Part::new(&head, 0, "the header");
        if part.bytes(MAGIC.len()).is_ok_and(|m| m != MAGIC) || head.len() < MAGIC.len() {
            return Err(DatError::Foreign);
        }
        let version = part.text()?;
        let (endian, _long, _page) = (part.u8()?, part.u8()?, part.u32()?);
        if endian != 0 {
            return Err(DatError::BigEndian);
        }
        let mut found = DatContents::default();
        match version.as_str() {
            "6" => version6::read(&mut part, &mut source, &mut found)?,
            "7" => version7::read(&mut part, &mut source, &mut found)?,
            _ => return Err(DatError::Version(version)),
        }
        drop(head);
        found.opened(source)
    }

    /// What the file tells beside its events.
    #[must_use]
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Takes the names of threads and the functions out of the [`Info`], for the analysis.
    pub fn take_names(&mut self) -> (Symbols, Vec<(i32, String)>) {
        (std::mem::take(&mut self.info.symbols), std::mem::take(&mut self.info.comms))
    }

    /// Hands over every event that `decoder` understands, in the order of time, until `each` says
    /// `false`.
    ///
    /// # Errors
    /// [`DatError::Read`] alone: what is damaged is passed over and told in the answer.
    pub fn read(
        self,
        decoder: &EventDecoder,
        each: &mut dyn FnMut(MergeItem<'_>) -> bool,
    ) -> Result<ReadEnd, DatError> {
        merge::read(self, decoder, each)
    }
}

/// What the two versions put together.
#[derive(Debug, Default)]
struct DatContents {
    version: u32,
    texts: Texts,
    page: String,
    clock: Option<String>,
    uname: Option<String>,
    recorder: Option<String>,
    cpus: Option<u32>,
    tsc: Option<Tsc>,
    lost: u64,
    buffers: Vec<Buffer>,
    notes: Vec<String>,
}

/// One buffer (tracing instance).
#[derive(Debug, Default)]
struct Buffer {
    name: String,
    clock: Option<String>,
    page_bytes: usize,
    streams: Vec<Stream>,
}

impl DatContents {
    fn opened<R: Read + Seek>(mut self, source: Source<R>) -> Result<TraceFile<R>, DatError> {
        let layout = PageLayout::parse(&self.page)?;
        let buffers = std::mem::take(&mut self.buffers);
        if buffers.is_empty() {
            return Err(DatError::NoBuffer);
        }
        let of_all = self.clock.take();
        let clock_of = |b: &Buffer| {
            let text = b.clock.as_deref().or(of_all.as_deref());
            text.map_or(TraceClock::NotSaid, |t| TraceClock::of(clock::chosen(t)))
        };
        let used = buffers.iter().find(|b| b.streams.iter().any(|s| !s.is_empty()));
        let clock = used.or(buffers.first()).map_or(TraceClock::NotSaid, clock_of);
        clock.is_time(self.tsc.as_ref())?;
        let (mut streams, mut names) = (Vec::new(), Vec::new());
        for (at, buffer) in buffers.into_iter().enumerate() {
            let own = clock_of(&buffer);
            if own != clock && buffer.streams.iter().any(|s| !s.is_empty()) {
                self.notes.push(format!(
                    "the buffer `{}` has another clock ({}) than the others ({}): its events are left out",
                    excerpt(&buffer.name, SHOWN_MAX),
                    excerpt(&own.to_string(), SHOWN_MAX),
                    excerpt(&clock.to_string(), SHOWN_MAX)
                ));
                continue;
            }
            let page = if buffer.page_bytes == 0 { layout.size } else { buffer.page_bytes };
            if !(64..=PAGE_BYTES_MAX).contains(&page) {
                let text = format!("a page of {page} bytes");
                return Err(DatError::Page(PageError::Layout(text)));
            }
            names.push(buffer.name);
            for mut stream in buffer.streams {
                stream.of(at, page);
                streams.push(stream);
            }
        }
        if streams.len() > STREAMS_MAX {
            self.notes
                .push(format!("more than {STREAMS_MAX} buffers of CPUs: the others are left out"));
            streams.truncate(STREAMS_MAX);
        }
        stream::apart(&streams)?;
        let bytes = streams.iter().map(Stream::bytes).fold(0, u64::saturating_add);
        self.notes.extend(stream::cut(&mut streams, source.length()));
        self.notes.append(&mut self.texts.notes);
        let info = Info {
            version: self.version,
            clock,
            uname: self.uname,
            recorder: self.recorder,
            cpus: self.cpus,
            formats: self.texts.formats,
            symbols: self.texts.symbols,
            comms: self.texts.comms,
            buffers: names,
            bytes,
            lost: self.lost,
            notes: self.notes,
        };
        let tsc = self.tsc.filter(|_| info.clock == TraceClock::X86Tsc);
        Ok(TraceFile { source, layout, info, tsc, streams })
    }
}
