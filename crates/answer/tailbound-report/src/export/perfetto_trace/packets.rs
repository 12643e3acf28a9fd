// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets of a Perfetto trace: clocks, tracks, slices, instants, counters.
//!
//! Units: ns. Slices of a track lie within each other or apart: what overlaps is cut, so
//! that no end ends another's begin.
//! Source: Perfetto, `protos/perfetto/trace/trace_packet.proto`, `clock_snapshot.proto`,
//! `track_event/track_descriptor.proto`, `track_event.proto`, `counter_descriptor.proto`,
//! `debug_annotation.proto` (numbers of the fields).

use tailbound_core::protobuf::Message;
use tailbound_core::record::Clocks;

use crate::blame::nested;
use crate::escape::terminal;

/// Numbers of CLOCK_REALTIME, CLOCK_MONOTONIC and CLOCK_BOOTTIME.
const REALTIME: u64 = 1;
const MONOTONIC: u64 = 3;
const BOOTTIME: u64 = 6;
/// Children of a track stand in the order of their rank.
const EXPLICIT: u64 = 3;
/// Kinds of events.
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counts {
    /// Something of its own, said in its name.
    Own,
    /// Nanoseconds.
    Ns,
    /// A number of things.
    Things,
}

/// A track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Track(u64);

/// A value beside an event.
#[derive(Clone, Debug)]
pub(super) enum Note {
    /// A number.
    Number(&'static str, i64),
    /// Words.
    Words(&'static str, String),
}

/// Something that lasts.
#[derive(Clone, Debug)]
pub(super) struct Slice {
    pub(super) from_ns: i64,
    pub(super) to_ns: i64,
    pub(super) name: String,
    pub(super) notes: Vec<Note>,
}

/// A trace under construction.
#[derive(Debug)]
pub(super) struct Trace {
    packets: Message,
    /// What the trace is of: two of them in one view have different tracks.
    id: String,
    /// What is added to every time.
    origin_ns: i64,
    /// The times are those of a clock of the system.
    clocked: bool,
    tracks: u64,
}

/// FNV-1a: no two traces share a number but by a rare chance.
fn hash(text: &str) -> u64 {
    let step = |h: u64, b: u8| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

impl Trace {
    /// A trace without tracks. Without `clocks` its times begin `before_ns` before the run's.
    pub(super) fn new(id: &str, clocks: Option<Clocks>, before_ns: i64) -> Self {
        let known = clocks.filter(|c| c.monotonic_ns.min(c.boottime_ns).min(c.realtime_ns) > 0);
        let mut trace = Self {
            packets: Message::default(),
            id: id.to_owned(),
            origin_ns: known.map_or(before_ns, |c| c.monotonic_ns),
            clocked: known.is_some(),
            tracks: 0,
        };
        if let Some(c) = known {
            let clock = |id: u64, ns: i64| {
                Message::default().uint(1, id).uint(2, u64::try_from(ns).unwrap_or(0))
            };
            let snapshot = Message::default()
                .message(1, &clock(MONOTONIC, c.monotonic_ns))
                .message(1, &clock(BOOTTIME, c.boottime_ns))
                .message(1, &clock(REALTIME, c.realtime_ns))
                .uint(2, MONOTONIC);
            let packet = trace.timed(0).message(6, &snapshot);
            trace.packet(packet);
        }
        trace
    }

    fn packet(&mut self, packet: Message) {
        // Any number but 0 will do; that of another trace may be concatenated with this one.
        let sequence = (hash(&self.id) & 0xffff_ffff).max(1);
        let packet = packet.uint(10, sequence);
        self.packets = std::mem::take(&mut self.packets).message(1, &packet);
    }

    fn timed(&self, t_ns: i64) -> Message {
        let at = u64::try_from(self.origin_ns.saturating_add(t_ns)).unwrap_or(0);
        let packet = Message::default().uint(8, at);
        if self.clocked { packet.uint(58, MONOTONIC) } else { packet }
    }

    fn described(&mut self, name: &str, parent: Option<Track>, counts: Option<Counts>) -> Track {
        self.tracks += 1;
        let uuid = hash(&format!("{}/{}", self.id, self.tracks)).max(1);
        let mut track = Message::default().uint(1, uuid).text(2, &terminal(name));
        if let Some(Track(parent)) = parent {
            track = track.uint(5, parent);
        }
        if let Some(counts) = counts {
            let unit = match counts {
                Counts::Own => 0,
                Counts::Ns => 1,
                Counts::Things => 2,
            };
            track = track.message(8, &Message::default().uint(3, unit));
        }
        track = track.uint(11, EXPLICIT).uint(12, self.tracks);
        self.packet(Message::default().message(60, &track));
        Track(uuid)
    }

    /// A track of slices, or of other tracks.
    pub(super) fn track(&mut self, name: &str, parent: Option<Track>) -> Track {
        self.described(name, parent, None)
    }

    /// A track of values.
    pub(super) fn counter(&mut self, name: &str, parent: Track, counts: Counts) -> Track {
        self.described(name, Some(parent), Some(counts))
    }

    fn event(&mut self, track: Track, t_ns: i64, kind: u64, rest: impl Fn(Message) -> Message) {
        let event = rest(Message::default().uint(9, kind).uint(11, track.0));
        let packet = self.timed(t_ns).message(11, &event);
        self.packet(packet);
    }

    /// A value from `t_ns` on.
    pub(super) fn value(&mut self, track: Track, t_ns: i64, value: i64) {
        self.event(track, t_ns, COUNTER, |e| e.int(30, value));
    }

    /// Something that happened at `t_ns`.
    pub(super) fn instant(&mut self, track: Track, t_ns: i64, name: &str, notes: &[Note]) {
        self.event(track, t_ns, INSTANT, |e| annotated(e.text(23, &terminal(name)), notes));
    }

    /// All slices of a track.
    pub(super) fn slices(&mut self, track: Track, slices: &[Slice]) {
        let mut open: Vec<i64> = Vec::new();
        for n in nested(slices.iter().map(|s| (s.from_ns, s.to_ns))) {
            while let Some(to_ns) = open.pop_if(|to| *to <= n.from_ns) {
                self.event(track, to_ns, SLICE_END, |e| e);
            }
            let Some(slice) = slices.get(n.at) else { continue };
            self.event(track, n.from_ns, SLICE_BEGIN, |e| {
                annotated(e.text(23, &terminal(&slice.name)), &slice.notes)
            });
            open.push(n.to_ns);
        }
        while let Some(to_ns) = open.pop() {
            self.event(track, to_ns, SLICE_END, |e| e);
        }
    }

    /// The bytes of the file.
    pub(super) fn finish(self) -> Vec<u8> {
        self.packets.finish()
    }
}

fn annotated(event: Message, notes: &[Note]) -> Message {
    notes.iter().fold(event, |event, note| {
        let annotation = match note {
            Note::Number(name, v) => Message::default().text(10, name).int(4, *v),
            Note::Words(name, words) => Message::default().text(10, name).text(6, &terminal(words)),
        };
        event.message(4, &annotation)
    })
}
