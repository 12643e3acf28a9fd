// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows what a host asks. One question is answered at a time, so that a slow host slows only its own answers.

use tailbound_wire::{
    BoxFault, CELLS, CELLS_MAX, CellCounts, Chip, Decoder, FRAME_MAX, Hello, ListPart, Message,
    PulseRecord, Reaction, SAMPLES_MAX, SampleBatch, Set, Shelf, Spacing, Stimulus, WORST_MAX,
    WorstPiece,
};

use crate::lines::{CHANNELS, Channels, LINES, PINS};

/// The shortest period: 4 µs at 125 MHz.
const PERIOD_MIN_TICKS: u32 = 250;

/// The longest: eight of them are still a word of the program, and within 31 bits.
const PERIOD_MAX_TICKS: u32 = 1 << 26;

const WIDTH_MIN_TICKS: u32 = 4;

/// Pulses over a wire.
const LOOP_BACK: Set = Set {
    channels: 1,
    stimulus: Stimulus::Toggle,
    period_ticks: 2_500,
    spacing: Spacing::Even,
    width_ticks: 0,
};

/// And how many.
const LOOP_BACK_PULSES: u64 = 256;

/// Rounds of the main loop after which samples are sent that do not fill a frame.
const PATIENCE: u32 = 2_000;

const NO_RECORD: PulseRecord =
    PulseRecord { number: 0, sent_ticks: 0, reaction: Reaction::Answered(0) };

/// One way to a host.
pub(crate) struct Port {
    decoder: Decoder,
    sequence: u16,
    frame: [u8; FRAME_MAX],
    from: usize,
    to: usize,
    streams: bool,
    rounds: u32,
    /// A channel whose wire is read for this host.
    checks: Option<u8>,
}

impl Port {
    pub(crate) const fn new() -> Self {
        Self {
            decoder: Decoder::new(),
            sequence: 0,
            frame: [0; FRAME_MAX],
            from: 0,
            to: 0,
            streams: false,
            rounds: 0,
            checks: None,
        }
    }

    /// Bytes that the host has not got.
    pub(crate) fn pending(&self) -> &[u8] {
        self.frame.get(self.from..self.to).unwrap_or_default()
    }

    /// So many of them went.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.from += bytes;
    }

    /// Whether the next question can be read.
    pub(crate) fn is_free(&self) -> bool {
        self.pending().is_empty() && self.checks.is_none()
    }

    fn say(&mut self, message: &Message) {
        self.from = 0;
        self.to = message.encode(self.sequence, &mut self.frame).unwrap_or(0);
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// A byte from the host.
    pub(crate) fn hear(&mut self, byte: u8, service: &mut Service) {
        let Some(frame) = self.decoder.take(byte) else { return };
        let kind = frame.kind;
        let answer = match Message::decode(kind, frame.payload) {
            Ok(Message::Stream) => {
                self.streams = true;
                with(|lines| lines.stream(true));
                Some(Message::Done(kind))
            }
            Ok(Message::StreamEnd) => {
                self.streams = false;
                with(|lines| lines.stream(false));
                Some(Message::Done(kind))
            }
            Ok(Message::AskLoopBack(channel)) => match service.check(channel) {
                Ok(()) => {
                    self.checks = Some(channel);
                    None
                }
                Err(fault) => Some(Message::Fault(kind, fault)),
            },
            Ok(message) => Some(service.follow(&message)),
            Err(tailbound_wire::MessageError::Kind(_)) => {
                Some(Message::Fault(kind, BoxFault::Kind))
            }
            Err(tailbound_wire::MessageError::Payload(_)) => {
                Some(Message::Fault(kind, BoxFault::Value))
            }
        };
        if let Some(answer) = answer {
            self.say(&answer);
        }
    }

    /// What is said unasked, if nothing waits.
    pub(crate) fn work(&mut self) {
        if !self.pending().is_empty() {
            return;
        }
        if let Some(channel) = self.checks {
            let read = with(|lines| {
                let read = lines.loop_back(channel)?;
                let is_over = u64::from(read.sent) >= LOOP_BACK_PULSES || !lines.is_measuring();
                if is_over {
                    lines.stop();
                }
                is_over.then(|| lines.loop_back(channel)).flatten()
            });
            if let Some(read) = read {
                self.checks = None;
                self.say(&Message::LoopBack(read));
            }
            return;
        }
        if !self.streams {
            return;
        }
        self.rounds += 1;
        let mut records = [NO_RECORD; SAMPLES_MAX];
        let (channel, length) = with(|lines| {
            let is_time = lines.waiting() >= SAMPLES_MAX || self.rounds >= PATIENCE;
            if is_time { lines.samples(&mut records) } else { (0, 0) }
        });
        if length > 0 {
            self.rounds = 0;
            self.say(&Message::Samples(SampleBatch { channel, length, outcomes: records }));
        }
    }

    /// Says that the schedule slipped.
    pub(crate) fn slipped(&mut self) {
        self.say(&Message::Fault(0, BoxFault::Slipped));
    }
}

/// What was set.
pub(crate) struct Service {
    set: Option<Set>,
    tick_hz: u32,
}

fn with<T>(work: impl FnOnce(&mut Channels) -> T) -> T {
    critical_section::with(|section| work(&mut LINES.borrow_ref_mut(section)))
}

impl Service {
    pub(crate) const fn new(tick_hz: u32) -> Self {
        Self { set: None, tick_hz }
    }

    fn check(&mut self, channel: u8) -> Result<(), BoxFault> {
        with(|lines| {
            if lines.is_measuring() {
                return Err(BoxFault::Measuring);
            }
            if usize::from(channel) >= CHANNELS {
                return Err(BoxFault::Value);
            }
            lines.start(channel, &LOOP_BACK);
            Ok(())
        })
    }

    fn follow(&mut self, message: &Message) -> Message {
        let kind = message.kind();
        self.answer(message).unwrap_or_else(|fault| Message::Fault(kind, fault))
    }

    fn answer(&mut self, message: &Message) -> Result<Message, BoxFault> {
        let done = Message::Done(message.kind());
        match message {
            Message::AskHello => Ok(Message::Hello(self.hello())),
            Message::Set(set) => {
                if with(|lines| lines.is_measuring()) {
                    return Err(BoxFault::Measuring);
                }
                if !is_possible(set) {
                    return Err(BoxFault::Value);
                }
                self.set = Some(*set);
                Ok(done)
            }
            Message::Start => {
                let set = self.set.ok_or(BoxFault::NotSet)?;
                if with(|lines| lines.is_measuring()) {
                    return Err(BoxFault::Measuring);
                }
                for channel in 0..set.channels {
                    with(|lines| lines.start(channel, &set));
                }
                Ok(done)
            }
            Message::Stop => {
                with(Channels::stop);
                Ok(done)
            }
            Message::AskCounters(channel) => with(|lines| {
                let of = lines.channel(*channel).ok_or(BoxFault::Value)?;
                Ok(Message::Counters(*channel, of.counters))
            }),
            Message::AskCells(piece) => cells(*piece).map(Message::Cells),
            Message::AskWorst(piece) => worst(*piece).map(Message::Worst),
            _ => Err(BoxFault::Kind),
        }
    }

    fn hello(&self) -> Hello {
        let number = |text: &str| text.parse().unwrap_or(0);
        Hello {
            firmware: [
                number(env!("CARGO_PKG_VERSION_MAJOR")),
                number(env!("CARGO_PKG_VERSION_MINOR")),
                number(env!("CARGO_PKG_VERSION_PATCH")),
            ],
            chip: if cfg!(chip = "rp2040") { Chip::Rp2040 } else { Chip::Rp2350 },
            channels: CHANNELS as u8,
            tick_hz: self.tick_hz,
            pins: PINS,
            loop_back_ticks: tailbound_box_line::LOOP_BACK_TICKS,
        }
    }
}

fn is_possible(set: &Set) -> bool {
    let width = match set.stimulus {
        Stimulus::Toggle => 0..=u32::MAX,
        // A random interval may be half a period.
        Stimulus::Pulse => WIDTH_MIN_TICKS..=set.period_ticks / 4,
    };
    (1..=CHANNELS as u8).contains(&set.channels)
        && (PERIOD_MIN_TICKS..=PERIOD_MAX_TICKS).contains(&set.period_ticks)
        && width.contains(&set.width_ticks)
}

fn cells(piece: ListPart) -> Result<CellCounts, BoxFault> {
    let first = usize::from(piece.first).min(CELLS);
    let mut counts = [0; CELLS_MAX];
    let length = with(|lines| {
        let channel = lines.channel(piece.channel).ok_or(BoxFault::Value)?;
        let cells = match piece.shelf {
            Shelf::Answered => &channel.answered,
            Shelf::AtLeast => &channel.at_least,
        };
        let rest = cells.counts().get(first..).unwrap_or_default();
        for (to, from) in counts.iter_mut().zip(rest) {
            *to = *from;
        }
        Ok(rest.len().min(CELLS_MAX))
    })?;
    Ok(CellCounts { piece, length: length as u8, counts })
}

fn worst(piece: ListPart) -> Result<WorstPiece, BoxFault> {
    let mut entries = [NO_RECORD; WORST_MAX];
    let length = with(|lines| {
        let channel = lines.channel(piece.channel).ok_or(BoxFault::Value)?;
        let rest = channel.worst.entries().get(usize::from(piece.first)..).unwrap_or_default();
        for (to, from) in entries.iter_mut().zip(rest) {
            *to = *from;
        }
        Ok(rest.len().min(WORST_MAX))
    })?;
    Ok(WorstPiece { channel: piece.channel, first: piece.first, length: length as u8, entries })
}
