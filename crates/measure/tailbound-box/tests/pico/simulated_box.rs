// SPDX-License-Identifier: MIT OR Apache-2.0
//! A box in simulated time: the counting and the messages of the firmware, with a machine that answers.
//!
//! What the firmware does with registers is done with numbers here; the rest is `tailbound-wire`, as on the chip.

use std::collections::{BTreeMap, VecDeque};

use tailbound_wire::{
    BoxFault, CELLS, CELLS_MAX, CellCounts, Channel, ChannelLevel, Chip, Decoder, FRAME_MAX, Hello,
    Intervals, ListPart, LoopBack, Message, MessageError, PulseRecord, Reaction, SAMPLES_MAX,
    SampleBatch, Set, Shelf, Spacing, Stimulus, WORST_MAX, WorstPiece,
};

/// As in the firmware.
const RING: usize = 512;
const CHANNELS: u8 = 4;
pub(crate) const TICK_HZ: u32 = 62_500_000;
/// Bytes that wait for a host that does not read.
const WAITING_MAX: usize = 2_000;

const NO_RECORD: PulseRecord =
    PulseRecord { number: 0, sent_ticks: 0, reaction: Reaction::Unknown };

/// After how many ticks the machine sees a pulse; `None`: never.
pub(crate) type Machine = fn(channel: u8, number: u64) -> Option<u64>;

struct Line {
    channel: Channel,
    /// When the machine looks at the line, and what it sees there.
    looks: VecDeque<(u64, ChannelLevel)>,
    level: ChannelLevel,
}

impl Line {
    fn idle(stimulus: Stimulus, period_ticks: u32, spacing: Spacing) -> Self {
        Self {
            channel: Channel::new(stimulus, Intervals::new(period_ticks, spacing)),
            looks: VecDeque::new(),
            level: ChannelLevel::Low,
        }
    }
}

/// The box.
pub(crate) struct SimulatedBox {
    pub(crate) firmware: [u8; 3],
    pub(crate) machine: Machine,
    /// What a wire from output to input reads, per channel.
    pub(crate) wires: Vec<Option<u32>>,
    /// After so many ticks of a measurement its schedule slips.
    pub(crate) slips_ticks: Option<u64>,
    /// What was told of each pulse of the last measurement.
    pub(crate) truth: BTreeMap<(u8, u64), PulseRecord>,
    lines: Vec<Line>,
    set: Option<Set>,
    is_measuring: bool,
    pub(crate) now_ticks: u64,
    start_ticks: u64,
    ring: VecDeque<(u8, PulseRecord)>,
    streams: bool,
    decoder: Decoder,
    sequence: u16,
    out: Vec<u8>,
}

/// Of the firmware: that of all crates.
fn version() -> [u8; 3] {
    [
        env!("CARGO_PKG_VERSION_MAJOR"),
        env!("CARGO_PKG_VERSION_MINOR"),
        env!("CARGO_PKG_VERSION_PATCH"),
    ]
    .map(|number| number.parse().expect("a number of one byte"))
}

impl SimulatedBox {
    pub(crate) fn new(machine: Machine) -> Self {
        Self {
            firmware: version(),
            machine,
            wires: vec![Some(1); CHANNELS.into()],
            slips_ticks: None,
            truth: BTreeMap::new(),
            lines: (0..CHANNELS).map(|_| Line::idle(Stimulus::Toggle, 0, Spacing::Even)).collect(),
            set: None,
            is_measuring: false,
            now_ticks: 0,
            start_ticks: 0,
            ring: VecDeque::new(),
            streams: false,
            decoder: Decoder::new(),
            sequence: 0,
            out: Vec::new(),
        }
    }

    pub(crate) fn is_measuring(&self) -> bool {
        self.is_measuring
    }

    /// Its time goes on until then; what it has to say.
    pub(crate) fn advance(&mut self, now_ticks: u64) {
        self.now_ticks = self.now_ticks.max(now_ticks);
        if self.is_measuring {
            let since = self.now_ticks - self.start_ticks;
            let until = self.slips_ticks.map_or(since, |slip| slip.min(since));
            (0..self.channels()).for_each(|line| self.run(line, until));
            if self.slips_ticks.is_some_and(|slip| slip <= since) {
                self.end(until);
                self.say(&Message::Fault(0, BoxFault::Slipped));
            }
        }
    }

    /// The bytes for the host; samples that wait are among them.
    pub(crate) fn outgoing(&mut self) -> Vec<u8> {
        while self.streams && !self.ring.is_empty() && self.out.len() < WAITING_MAX {
            let channel = self.ring[0].0;
            let mut batch = SampleBatch { channel, length: 0, outcomes: [NO_RECORD; SAMPLES_MAX] };
            while usize::from(batch.length) < SAMPLES_MAX
                && self.ring.front().is_some_and(|(of, _)| *of == channel)
                && let Some((_, record)) = self.ring.pop_front()
            {
                batch.outcomes[usize::from(batch.length)] = record;
                batch.length += 1;
            }
            self.say(&Message::Samples(batch));
        }
        std::mem::take(&mut self.out)
    }

    /// Bytes from the host.
    pub(crate) fn hear(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let Some(frame) = self.decoder.take(*byte) else { continue };
            let kind = frame.kind;
            let answer = match Message::decode(kind, frame.payload) {
                Ok(message) => self.follow(&message).unwrap_or_else(|f| Message::Fault(kind, f)),
                Err(MessageError::Kind(_)) => Message::Fault(kind, BoxFault::Kind),
                Err(MessageError::Payload(_)) => Message::Fault(kind, BoxFault::Value),
            };
            self.say(&answer);
        }
    }

    fn say(&mut self, message: &Message) {
        let mut frame = [0; FRAME_MAX];
        let length = message.encode(self.sequence, &mut frame).expect("it fits");
        self.out.extend_from_slice(&frame[..length]);
        self.sequence = self.sequence.wrapping_add(1);
    }

    fn follow(&mut self, message: &Message) -> Result<Message, BoxFault> {
        let done = Ok(Message::Done(message.kind()));
        let idle = if self.is_measuring { Err(BoxFault::Measuring) } else { Ok(()) };
        match message {
            Message::AskHello => Ok(Message::Hello(Hello {
                firmware: self.firmware,
                chip: Chip::Rp2040,
                channels: CHANNELS,
                tick_hz: TICK_HZ,
                pins: [2, 3],
                loop_back_ticks: 1,
            })),
            Message::Stream | Message::StreamEnd => {
                self.streams = *message == Message::Stream;
                self.ring.clear();
                done
            }
            Message::Set(set) => {
                idle?;
                self.set = Some(*set);
                done
            }
            Message::Start => {
                let set = self.set.ok_or(BoxFault::NotSet)?;
                idle?;
                self.start(&set);
                done
            }
            Message::Stop => {
                self.end(self.now_ticks - self.start_ticks);
                done
            }
            Message::AskCounters(channel) => {
                Ok(Message::Counters(*channel, self.line(*channel)?.counters))
            }
            Message::AskCells(part) => self.cells(*part),
            Message::AskWorst(part) => self.worst(*part),
            Message::AskLoopBack(channel) => {
                idle?;
                let wire = self.wires.get(usize::from(*channel)).ok_or(BoxFault::Value)?;
                let answered = if wire.is_some() { 256 } else { 0 };
                let (least_ticks, most_ticks) = (wire.unwrap_or(u32::MAX), wire.unwrap_or(0));
                Ok(Message::LoopBack(LoopBack {
                    channel: *channel,
                    sent: 256,
                    answered,
                    least_ticks,
                    most_ticks,
                }))
            }
            _ => Err(BoxFault::Kind),
        }
    }

    fn start(&mut self, set: &Set) {
        self.truth.clear();
        for (channel, line) in (0..set.channels).zip(&mut self.lines) {
            let spacing = match set.spacing {
                Spacing::Even => Spacing::Even,
                Spacing::Random(seed) => Spacing::Random(seed.wrapping_add(channel.into())),
            };
            *line = Line::idle(set.stimulus, set.period_ticks, spacing);
        }
        self.is_measuring = true;
        self.start_ticks = self.now_ticks;
    }

    fn channels(&self) -> usize {
        self.set.map_or(0, |set| set.channels.into())
    }

    fn end(&mut self, until_ticks: u64) {
        if !std::mem::take(&mut self.is_measuring) {
            return;
        }
        for line in 0..self.channels() {
            self.run(line, until_ticks);
            self.with(line, |channel, tell| channel.end(low(until_ticks), tell));
        }
    }

    /// A channel until then, in the order of its pulses and edges.
    fn run(&mut self, place: usize, until_ticks: u64) {
        let stimulus = self.set.map_or(Stimulus::Toggle, |set| set.stimulus);
        let number = u8::try_from(place).expect("few");
        loop {
            let line = &mut self.lines[place];
            while line.channel.planned() < 8 {
                line.channel.plan().expect("there is room");
            }
            let due = line.channel.due(0).expect("planned");
            match line.looks.front().copied().filter(|(at, _)| *at < due && *at <= until_ticks) {
                Some((at, level)) => {
                    line.looks.pop_front();
                    let changes = line.level != level || stimulus == Stimulus::Pulse;
                    line.level = level;
                    if changes {
                        self.with(place, |channel, tell| {
                            channel.edge(low(at), level, tell);
                            if stimulus == Stimulus::Pulse {
                                channel.edge(low(at + 1), ChannelLevel::Low, tell);
                            }
                        });
                    }
                }
                None if due <= until_ticks => {
                    let pulse = line.channel.counters.sent;
                    self.with(place, |channel, tell| channel.pass(due, tell));
                    if let Some(delay) = (self.machine)(number, pulse) {
                        let is_up = stimulus == Stimulus::Pulse || pulse.is_multiple_of(2);
                        let level = if is_up { ChannelLevel::High } else { ChannelLevel::Low };
                        let looks = &mut self.lines[place].looks;
                        // A machine handles one after the other.
                        let last = looks.back().map_or(0, |(at, _)| *at + 2);
                        looks.push_back((last.max(due + delay), level));
                    }
                }
                None => return,
            }
        }
    }

    /// What a channel does, and what it tells into ring and truth.
    fn with(
        &mut self,
        place: usize,
        work: impl FnOnce(&mut Channel, &mut &mut dyn FnMut(PulseRecord)),
    ) {
        let number = u8::try_from(place).expect("few");
        let (ring, truth, streams) = (&mut self.ring, &mut self.truth, self.streams);
        let mut dropped = 0;
        let channel = &mut self.lines[place].channel;
        let mut tell = |record: PulseRecord| {
            truth.insert((number, record.number), record);
            if streams && ring.len() == RING {
                dropped += 1;
            } else if streams {
                ring.push_back((number, record));
            }
        };
        let mut tell: &mut dyn FnMut(PulseRecord) = &mut tell;
        work(channel, &mut tell);
        channel.counters.dropped += dropped;
    }

    fn line(&self, channel: u8) -> Result<&Channel, BoxFault> {
        self.lines.get(usize::from(channel)).map(|line| &line.channel).ok_or(BoxFault::Value)
    }

    fn cells(&self, piece: ListPart) -> Result<Message, BoxFault> {
        let channel = self.line(piece.channel)?;
        let cells = match piece.shelf {
            Shelf::Answered => &channel.answered,
            Shelf::AtLeast => &channel.at_least,
        };
        let rest = &cells.counts()[usize::from(piece.first).min(CELLS)..];
        let mut counts = [0; CELLS_MAX];
        counts.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        let length = u8::try_from(rest.len().min(CELLS_MAX)).expect("small");
        Ok(Message::Cells(CellCounts { piece, length, counts }))
    }

    fn worst(&self, piece: ListPart) -> Result<Message, BoxFault> {
        let all = self.line(piece.channel)?.worst.entries();
        let rest = all.get(usize::from(piece.first)..).unwrap_or_default();
        let mut entries = [NO_RECORD; WORST_MAX];
        entries.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        let length = u8::try_from(rest.len().min(WORST_MAX)).expect("small");
        let (channel, first) = (piece.channel, piece.first);
        Ok(Message::Worst(WorstPiece { channel, first, length, entries }))
    }
}

fn low(ticks: u64) -> u32 {
    u32::try_from(ticks & 0x7FFF_FFFF).expect("31 bits")
}

/// What happens to bytes on their way.
pub(crate) struct DamagedLine {
    pub(crate) state: u64,
    /// One of so many bytes is lost, one is flipped; 0: none.
    pub(crate) bad_of: u64,
}

impl DamagedLine {
    fn random(&mut self, below: u64) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99_991);
        (self.state >> 33) % below
    }

    pub(crate) fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for byte in bytes {
            match if self.bad_of > 0 { self.random(self.bad_of) } else { 9 } {
                0 => {}
                1 => out.push(byte ^ (1 << self.random(8))),
                _ => out.push(*byte),
            }
        }
        out
    }
}
