// SPDX-License-Identifier: MIT OR Apache-2.0
//! The box against itself, before it is trusted: a wire from output to input, its crystal, its frames.
//!
//! Units: ns of the host's clock, ticks of the box. Pure, as `session`.
//! Order: who is there; end what an earlier host left; each channel's wire; then pulses over the wire of channel 0, and
//! the counters as a clock.

use tailbound_wire::{BoxFault, Hello, LoopBack, Message, Set, Spacing, Stimulus};

use super::drift::{ClockReading, CrystalDrift};
use super::greeting::{self, BoxRefusal};
use super::link::{Heard, Link};
use crate::stimulus::LinkLosses;

/// From one reading of the box's time to the next.
const READING_NS: i64 = 50_000_000;
/// Between pulses over the wire.
const PERIOD_TICKS: u32 = 2_500;
/// Pulses that are over and may not be counted yet.
const UNCOUNTED: u64 = 2;
/// Most readings: all pairs are compared.
const READINGS_MAX: usize = 4_096;
/// A crystal is within this of its nominal frequency, and a host's clock too.
const DRIFT_MAX_PPB: i64 = 100_000;

/// What a wire read, and what it must read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopBackReport {
    /// What it read.
    pub read: LoopBack,
    /// What it must read.
    pub expected_ticks: u32,
    /// From where to where the wire goes.
    pub pins: [u8; 2],
}

impl LoopBackReport {
    /// What is wrong and what to do; `None`: it read what it must.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        let LoopBack { channel, sent, answered, least_ticks, most_ticks } = self.read;
        let [out, back] = self.pins;
        if answered == 0 {
            return Some(format!(
                "channel {channel}: no pulse came back; connect GPIO {out} to GPIO {back} with a short wire, and nothing else"
            ));
        }
        if answered < sent {
            return Some(format!(
                "channel {channel}: {answered} of {sent} pulses came back; look for a loose wire between GPIO {out} and GPIO {back}"
            ));
        }
        (least_ticks != self.expected_ticks || most_ticks != self.expected_ticks).then(|| {
            format!(
                "channel {channel}: the wire reads {least_ticks} to {most_ticks} ticks instead of {}; connect GPIO {out} directly to GPIO {back}, without anything between",
                self.expected_ticks
            )
        })
    }
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxCheckReport {
    /// The chip, for people.
    pub what: String,
    /// Of the firmware.
    pub firmware: [u8; 3],
    /// Ticks a second.
    pub tick_hz: u32,
    /// One a channel that was asked for.
    pub wires: Vec<LoopBackReport>,
    /// Of the crystal against the host's clock; `None` where no wire was there, or readings contradict each other.
    pub drift: Option<CrystalDrift>,
    /// How long the drift was measured.
    pub drift_ns: i64,
    /// Frames that were lost meanwhile.
    pub link: LinkLosses,
}

impl BoxCheckReport {
    /// What is wrong and what to do, nothing where the box can be trusted.
    #[must_use]
    pub fn refusals(&self) -> Vec<String> {
        let mut all: Vec<String> = self.wires.iter().filter_map(LoopBackReport::refusal).collect();
        let LinkLosses { damaged, missing, .. } = self.link;
        if damaged + missing > 0 {
            all.push(format!(
                "frames were lost on the way: {missing} are missing and {damaged} pieces were damaged; use another cable or port"
            ));
        }
        match self.drift {
            Some(drift) if drift.least_ppb > DRIFT_MAX_PPB || drift.most_ppb < -DRIFT_MAX_PPB => {
                all.push(format!(
                    "the clocks of box and host differ by {} ppm or more; compare the host's clock with a time server, and try another box",
                    drift.least_ppb.unsigned_abs().min(drift.most_ppb.unsigned_abs()) / 1_000
                ));
            }
            None if all.is_empty() => all.push(
                "the clock of the box could not be compared with the host's: readings contradict each other; check again while the host is idle".to_owned(),
            ),
            _ => {}
        }
        all
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Greeting,
    OldStreamEnd,
    OldStop,
    Wire(u8),
    Set,
    Start,
    Clock,
    Stop,
    Over,
}

/// A check while it goes on.
pub struct BoxCheck {
    link: Link,
    phase: Phase,
    channels: u8,
    duration_ns: i64,
    hello: Option<Hello>,
    wires: Vec<LoopBackReport>,
    readings: Vec<ClockReading>,
    started_ns: i64,
    asked_ns: i64,
    due_ns: i64,
    /// Answers that took longest came from a line that was asked twice: they are no readings.
    again_before: u64,
    refusal: Option<BoxRefusal>,
}

impl BoxCheck {
    /// Begins one of so many channels; the clocks are compared for `duration_ns`.
    #[must_use]
    pub fn begin(channels: u8, duration_ns: i64, now_ns: i64) -> Self {
        let mut link = Link::new();
        link.ask(Message::AskHello, now_ns);
        Self {
            link,
            phase: Phase::Greeting,
            channels,
            duration_ns,
            hello: None,
            wires: Vec::new(),
            readings: Vec::new(),
            started_ns: now_ns,
            asked_ns: now_ns,
            due_ns: i64::MAX,
            again_before: 0,
            refusal: None,
        }
    }

    /// Bytes for the box.
    #[must_use]
    pub fn outgoing(&self) -> &[u8] {
        self.link.outgoing()
    }

    /// So many of them went.
    pub fn sent(&mut self, bytes: usize) {
        self.link.sent(bytes);
    }

    /// Whether there is nothing more to do.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// When [`BoxCheck::at`] is to be called at the latest.
    #[must_use]
    pub fn due_ns(&self) -> i64 {
        self.link.due_ns().unwrap_or(self.due_ns)
    }

    /// Somebody wants it to end, or the port is gone.
    pub fn end(&mut self, why: BoxRefusal) {
        if !self.is_over() {
            self.refuse(why);
        }
    }

    /// Time passes.
    pub fn at(&mut self, now_ns: i64) {
        if self.is_over() {
            return;
        }
        if !self.link.at(now_ns) {
            let why = match self.phase {
                Phase::Greeting => greeting::silence(self.link.bytes, self.link.losses()),
                _ => BoxRefusal::Lost("the box does not answer any more".to_owned()),
            };
            return self.refuse(why);
        }
        if self.phase == Phase::Clock && !self.link.is_waiting() && now_ns >= self.due_ns {
            if now_ns >= self.started_ns.saturating_add(self.duration_ns) {
                self.ask(Phase::Stop, Message::Stop, now_ns);
            } else {
                self.again_before = self.link.losses().asked_again;
                self.ask(Phase::Clock, Message::AskCounters(0), now_ns);
            }
        }
    }

    /// Bytes from the box.
    pub fn take(&mut self, bytes: &[u8], now_ns: i64) {
        for byte in bytes {
            if self.is_over() {
                return;
            }
            match self.link.take(*byte) {
                Some(Heard::Answer(message)) => self.answered(&message, now_ns),
                Some(Heard::Refused(fault)) => self.refused(fault, now_ns),
                Some(Heard::Slipped) if self.phase == Phase::Clock => {
                    self.refuse(BoxRefusal::Refused {
                        what: "to give pulses over the wire",
                        fault: BoxFault::Slipped,
                    });
                }
                _ => {}
            }
        }
    }

    fn ask(&mut self, phase: Phase, message: Message, now_ns: i64) {
        self.phase = phase;
        self.asked_ns = now_ns;
        self.link.ask(message, now_ns);
    }

    fn refuse(&mut self, refusal: BoxRefusal) {
        self.refusal = Some(refusal);
        self.phase = Phase::Over;
    }

    fn refused(&mut self, fault: BoxFault, now_ns: i64) {
        match (self.phase, fault) {
            (Phase::Wire(_), BoxFault::Measuring) => {
                self.ask(Phase::OldStop, Message::Stop, now_ns);
            }
            _ => self.refuse(BoxRefusal::Refused { what: "a step of the check", fault }),
        }
    }

    fn answered(&mut self, message: &Message, now_ns: i64) {
        match (self.phase, message) {
            (Phase::Greeting, Message::Hello(hello)) => {
                if let Err(refusal) = greeting::greeted(hello) {
                    return self.refuse(refusal);
                }
                if self.channels == 0 || self.channels > hello.channels {
                    let (has, asked) = (hello.channels, self.channels);
                    return self.refuse(BoxRefusal::Channels { has, asked });
                }
                self.hello = Some(*hello);
                self.ask(Phase::OldStreamEnd, Message::StreamEnd, now_ns);
            }
            (Phase::OldStreamEnd | Phase::OldStop, _) => {
                self.ask(Phase::Wire(0), Message::AskLoopBack(0), now_ns);
            }
            (Phase::Wire(channel), Message::LoopBack(read)) => self.wire(channel, *read, now_ns),
            (Phase::Set, _) => self.ask(Phase::Start, Message::Start, now_ns),
            (Phase::Start, _) => {
                self.phase = Phase::Clock;
                self.started_ns = now_ns;
                self.due_ns = now_ns;
            }
            (Phase::Clock, Message::Counters(_, counters)) => self.clock(counters.sent, now_ns),
            (Phase::Stop, _) => self.phase = Phase::Over,
            _ => {}
        }
    }

    fn wire(&mut self, channel: u8, read: LoopBack, now_ns: i64) {
        let Some(hello) = self.hello else { return };
        let pins = hello.pins.map(|pin| pin.saturating_add(channel.saturating_mul(2)));
        let expected_ticks = u32::from(hello.loop_back_ticks);
        self.wires.push(LoopBackReport { read, expected_ticks, pins });
        let next = channel + 1;
        if next < self.channels {
            return self.ask(Phase::Wire(next), Message::AskLoopBack(next), now_ns);
        }
        if self.wires.first().is_some_and(|wire| wire.read.answered < wire.read.sent) {
            // Without its wire a channel holds back, and counts no even time.
            self.phase = Phase::Over;
            return;
        }
        let set = Set {
            channels: 1,
            stimulus: Stimulus::Toggle,
            period_ticks: PERIOD_TICKS,
            spacing: Spacing::Even,
            width_ticks: 0,
        };
        self.ask(Phase::Set, Message::Set(set), now_ns);
    }

    fn clock(&mut self, sent: u64, now_ns: i64) {
        self.due_ns = self.asked_ns.saturating_add(READING_NS);
        let is_plain = self.link.losses().asked_again == self.again_before;
        if is_plain && sent > 0 && self.readings.len() < READINGS_MAX {
            self.readings.push(ClockReading {
                asked_ns: self.asked_ns,
                answered_ns: now_ns,
                least_ticks: sent.saturating_mul(PERIOD_TICKS.into()),
                most_ticks: sent.saturating_add(UNCOUNTED).saturating_mul(PERIOD_TICKS.into()),
            });
        }
    }

    /// What was found.
    ///
    /// # Errors
    /// It came to no end: why.
    pub fn finish(self) -> Result<BoxCheckReport, BoxRefusal> {
        if let Some(refusal) = self.refusal {
            return Err(refusal);
        }
        let hello = self.hello.ok_or(BoxRefusal::Ended)?;
        let span = self.readings.first().zip(self.readings.last());
        Ok(BoxCheckReport {
            what: greeting::chip(hello.chip).to_owned(),
            firmware: hello.firmware,
            tick_hz: hello.tick_hz,
            wires: self.wires,
            drift: CrystalDrift::of(&self.readings, hello.tick_hz),
            drift_ns: span.map_or(0, |(first, last)| last.asked_ns - first.asked_ns),
            link: self.link.losses(),
        })
    }
}
