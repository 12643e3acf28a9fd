// SPDX-License-Identifier: MIT OR Apache-2.0
//! The channels: what their interrupt does, and what the main loop asks of them.
//!
//! Context: HOT in `serve`. It never waits: not for a host, which takes samples out of a ring that may be full, and
//! not for the state machines, which go on whatever happens here.

use core::cell::RefCell;

use critical_section::Mutex;
use tailbound_box_line as line;
use tailbound_wire::{
    Channel, ChannelLevel, Intervals, LoopBack, PulseRecord, Reaction, Set, Spacing, Stimulus,
};

use crate::pio::{Course, StateMachine};

/// Channels of the box, two a block.
pub(crate) const CHANNELS: usize = 4;

/// Where channel 0 gives pulses and hears; the next ones are two pins further.
pub(crate) const PINS: [u8; 2] = [2, 3];

/// Edges that a FIFO has.
const FIFO: usize = 8;

/// Samples that wait for the host.
const RING: usize = 512;

/// What all channels share.
pub(crate) static LINES: Mutex<RefCell<Channels>> = Mutex::new(RefCell::new(Channels::new()));

/// Whether a channel gives pulses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Activity {
    Still,
    Measuring,
    /// The schedule slipped, and it was ended.
    Slipped,
}

struct Line {
    channel: Channel,
    activity: Activity,
    /// Of a pulse that comes back; 0 where the line toggles.
    width_ticks: u32,
    /// Of the last pulse that was planned; 0 before the first.
    width_before_ticks: u32,
    least_ticks: u32,
    most_ticks: u32,
}

/// All channels and the samples for the host.
pub(crate) struct Channels {
    lines: [Line; CHANNELS],
    samples: Ring,
}

struct Ring {
    records: [(u8, PulseRecord); RING],
    first: usize,
    length: usize,
    is_open: bool,
}

const NO_RECORD: PulseRecord =
    PulseRecord { number: 0, sent_ticks: 0, reaction: Reaction::Answered(0) };

impl Ring {
    /// Whether there was room; without a host nothing is kept, and nothing is missing.
    fn keep(&mut self, channel: u8, record: PulseRecord) -> bool {
        if !self.is_open {
            return true;
        }
        if self.length == RING {
            return false;
        }
        if let Some(place) = self.records.get_mut((self.first + self.length) % RING) {
            *place = (channel, record);
        }
        self.length += 1;
        true
    }
}

impl Line {
    const fn new() -> Self {
        Self {
            channel: Channel::new(Stimulus::Toggle, Intervals::new(0, Spacing::Even)),
            activity: Activity::Still,
            width_ticks: 0,
            width_before_ticks: 0,
            least_ticks: 0,
            most_ticks: 0,
        }
    }

    /// Fills the FIFO with intervals.
    fn feed(&mut self, giver: StateMachine) {
        while !giver.is_full() {
            let Some(interval) = self.channel.plan() else { return };
            // What was set was found to fit: see `service::is_possible`.
            giver.put(line::interval_word(interval, self.width_before_ticks).unwrap_or(0));
            self.width_before_ticks = self.width_ticks;
        }
    }
}

const fn machines(channel: usize) -> (StateMachine, StateMachine) {
    let (block, first) = (channel / 2, channel % 2 * 2);
    (StateMachine::new(block, first), StateMachine::new(block, first + 1))
}

impl Channels {
    const fn new() -> Self {
        Self {
            lines: [const { Line::new() }; CHANNELS],
            samples: Ring { records: [(0, NO_RECORD); RING], first: 0, length: 0, is_open: false },
        }
    }

    pub(crate) fn channel(&self, channel: u8) -> Option<&Channel> {
        self.lines.get(usize::from(channel)).map(|line| &line.channel)
    }

    pub(crate) fn is_measuring(&self) -> bool {
        self.lines.iter().any(|line| line.activity == Activity::Measuring)
    }

    /// Whether a schedule slipped; told once.
    pub(crate) fn has_slipped(&mut self) -> bool {
        let mut slipped = false;
        for line in &mut self.lines {
            if line.activity == Activity::Slipped {
                line.activity = Activity::Still;
                slipped = true;
            }
        }
        slipped
    }

    /// Opens or closes the way of samples to the host.
    pub(crate) fn stream(&mut self, is_wanted: bool) {
        self.samples.is_open = is_wanted;
        self.samples.length = 0;
    }

    /// Samples that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.samples.length
    }

    /// The next samples of one channel; how many.
    pub(crate) fn samples(&mut self, into: &mut [PulseRecord]) -> (u8, u8) {
        let mut of = None;
        let mut taken = 0;
        for to in into {
            let ring = &mut self.samples;
            let Some((channel, record)) = ring.records.get(ring.first).filter(|_| ring.length > 0)
            else {
                break;
            };
            if *of.get_or_insert(*channel) != *channel {
                break;
            }
            *to = *record;
            ring.first = (ring.first + 1) % RING;
            ring.length -= 1;
            taken += 1;
        }
        (of.unwrap_or(0), taken)
    }

    /// Begins to measure on a channel.
    pub(crate) fn start(&mut self, channel: u8, set: &Set) {
        let Some(line) = self.lines.get_mut(usize::from(channel)) else { return };
        let (giver, hearer) = machines(usize::from(channel));
        let [out, back] = PINS.map(|pin| pin + 2 * channel);
        let spacing = match set.spacing {
            Spacing::Even => Spacing::Even,
            Spacing::Random(seed) => Spacing::Random(seed.wrapping_add(u32::from(channel))),
        };
        line.channel.begin(set.stimulus, Intervals::new(set.period_ticks, spacing));
        line.width_ticks = 0;
        line.width_before_ticks = 0;
        line.least_ticks = u32::MAX;
        line.most_ticks = 0;
        giver.prepare(&Course { part: line::PULSE, jump_pin: out, set_pin: out, hears: false });
        hearer.prepare(&Course { part: line::HEAR, jump_pin: back, set_pin: back, hears: true });
        giver.run(line::set_up::LOW);
        giver.run(line::set_up::OUTPUT);
        hearer.run(line::set_up::INPUT);
        hearer.run(line::set_up::X_ONES);
        hearer.run(line::set_up::Y_ONES);
        match set.stimulus {
            Stimulus::Toggle => giver.load(&line::toggle()),
            Stimulus::Pulse => {
                giver.load(&line::pulse());
                line.width_ticks = set.width_ticks;
                giver.put(line::width_word(set.width_ticks).unwrap_or(0));
                giver.run(line::set_up::PULL);
                giver.run(line::set_up::Y_FROM_OSR);
            }
        }
        giver.run(u16::from(line::PULSE.begin));
        hearer.run(u16::from(line::HEAR.begin));
        line.feed(giver);
        line.activity = Activity::Measuring;
        giver.begin_both();
        giver.interrupt(true);
    }

    /// Ends to measure on all channels.
    pub(crate) fn stop(&mut self) {
        for channel in 0..CHANNELS {
            self.end(channel, Activity::Still);
        }
    }

    fn end(&mut self, channel: usize, activity: Activity) {
        if self.lines.get(channel).is_none_or(|line| line.activity != Activity::Measuring) {
            return;
        }
        let (giver, hearer) = machines(channel);
        giver.interrupt(false);
        giver.end_both();
        if let Some(line) = self.lines.get_mut(channel) {
            line.activity = activity;
        }
        self.serve(channel);
        let Some(line) = self.lines.get_mut(channel) else { return };
        hearer.run(line::set_up::ISR_FROM_X);
        hearer.run(line::set_up::PUSH);
        let Some(counted) = hearer.take() else { return };
        let samples = &mut self.samples;
        let mut dropped = 0;
        line.channel.end(!counted & 0x7FFF_FFFF, &mut |record| {
            dropped += u64::from(!samples.keep(channel as u8, record));
        });
        line.channel.counters.dropped += dropped;
        // The line rests low.
        giver.run(line::set_up::LOW);
    }

    /// What the interrupt of a block does for both of its channels.
    pub(crate) fn interrupt(&mut self, block: usize) {
        for channel in [2 * block, 2 * block + 1] {
            if self.lines.get(channel).is_some_and(|line| line.activity == Activity::Measuring) {
                self.serve(channel);
                if machines(channel).0.has_starved() {
                    self.end(channel, Activity::Slipped);
                }
            }
        }
    }

    /// Takes edges, gives intervals.
    fn serve(&mut self, channel: usize) {
        let Some(line) = self.lines.get_mut(channel) else { return };
        let (giver, hearer) = machines(channel);
        // Read before the edges: of the pulses that it says are over, all edges until then are in the FIFO.
        // One interval that left the FIFO runs.
        let over = line.channel.planned().saturating_sub(giver.waiting() + 1);
        let samples = &mut self.samples;
        let mut dropped = 0;
        let (mut least, mut most) = (line.least_ticks, line.most_ticks);
        let mut tell = |record: PulseRecord| {
            if let Reaction::Answered(ticks) = record.reaction {
                least = least.min(ticks);
                most = most.max(ticks);
            }
            dropped += u64::from(!samples.keep(channel as u8, record));
        };
        let mut edges = [0; FIFO];
        let mut heard = 0;
        while let Some((place, word)) = edges.get_mut(heard).and_then(|p| Some((p, hearer.take()?)))
        {
            *place = word;
            heard += 1;
        }
        if hearer.has_overrun() {
            // Before those that were taken: which of them came behind the loss is not known.
            line.channel.lose(&mut tell);
        }
        let due = over.checked_sub(1).and_then(|place| line.channel.due(place));
        for word in edges.into_iter().take(heard) {
            let (ticks, is_high) = line::edge(word);
            let level = if is_high { ChannelLevel::High } else { ChannelLevel::Low };
            line.channel.edge(ticks, level, &mut tell);
        }
        if let Some(due) = due {
            line.channel.pass(due, &mut tell);
        }
        line.least_ticks = least;
        line.most_ticks = most;
        line.channel.counters.dropped += dropped;
        if line.activity == Activity::Measuring {
            line.feed(giver);
        }
    }

    /// What a wire read.
    pub(crate) fn loop_back(&self, channel: u8) -> Option<LoopBack> {
        let line = self.lines.get(usize::from(channel))?;
        let counters = line.channel.counters;
        Some(LoopBack {
            channel,
            sent: counters.sent as u32,
            answered: counters.answered as u32,
            least_ticks: line.least_ticks,
            most_ticks: line.most_ticks,
        })
    }
}
