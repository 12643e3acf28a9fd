// SPDX-License-Identifier: MIT OR Apache-2.0
//! A line of a GPIO chip whose edges are answered on another line.
//!
//! Context: HOT (the `PulseLine` methods: read, ppoll, io_uring_enter, ioctl), SETUP (`new`, `attach`). Units: ns on the run's clock.
//! The kernel stamps an edge when it handles the interrupt. The end is the return of the call that set the output: how
//! long the level takes to the pin, the driver does not say.

use tailbound_rt::answer::clocks::ClockPair;
use tailbound_rt::answer::kept::PulseMark;
use tailbound_rt::answer::{AnswerRefusal, Arrival, Pulse, PulseLine, Stamp};

use super::end_alarm::EndAlarm;
use super::ring_wait::{Behind, RingWait, Waited};
use super::{By, Ready, ready, stamped};
use crate::clock::{CLOCK_MONOTONIC, CLOCK_REALTIME, now_ns};
use crate::error::SysError;
use crate::gpio::{EDGE_BYTES, Edge, InputLine, LineLevel, OutputLine, StampClock, edge_of};

/// What an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerForm {
    /// Every edge of the input is a pulse; the output takes the level that the input took.
    SameLevel,
    /// Rising edges are pulses; the output goes high, and low at once.
    HighThenLow,
}

/// The clock of stamps that needs the least comparing with `clock`.
#[must_use]
pub fn stamp_clock(clock: libc::clockid_t) -> StampClock {
    if clock == CLOCK_REALTIME { StampClock::Realtime } else { StampClock::Monotonic }
}

/// Two lines.
pub struct Gpio {
    input: InputLine,
    output: OutputLine,
    form: AnswerForm,
    by: By,
    clock: libc::clockid_t,
    stamps: libc::clockid_t,
    clocks: ClockPair,
    alarm: Option<EndAlarm>,
    ring: Option<RingWait>,
    last: Option<Edge>,
    edges: u64,
    unseen: u64,
}

impl Gpio {
    /// The edges of `input`, which are stamped by [`stamp_clock`], are answered on `output`.
    ///
    /// # Errors
    /// As fcntl(2); ENOSYS, EPERM with [`By::IoUring`].
    pub fn new(
        input: InputLine,
        output: OutputLine,
        form: AnswerForm,
        by: By,
        clock: libc::clockid_t,
    ) -> Result<Self, SysError> {
        if by != By::Read {
            input.never_wait()?;
        }
        if by == By::IoUring {
            // Refused here, before anything runs.
            RingWait::check()?;
        }
        let stamps = match stamp_clock(clock) {
            StampClock::Realtime => CLOCK_REALTIME,
            StampClock::Monotonic => CLOCK_MONOTONIC,
        };
        let clocks = ClockPair::default();
        let (alarm, ring, last) = (None, None, None);
        let (edges, unseen) = (0, 0);
        Ok(Self {
            input,
            output,
            form,
            by,
            clock,
            stamps,
            clocks,
            alarm,
            ring,
            last,
            edges,
            unseen,
        })
    }

    /// Edges that came while the kernel had not yet looked at the one before: the level after the next edge tells of them.
    #[must_use]
    pub fn unseen(&self) -> u64 {
        self.unseen
    }

    /// Edges that the kernel numbered since the thread was ready; those that it dropped are among them.
    #[must_use]
    pub fn edges(&self) -> u64 {
        self.edges
    }

    /// What the calling thread, which answers, needs of its own; edges that wait belong to nobody.
    ///
    /// # Errors
    /// EAGAIN: there are too many timers; ENODEV: the chip was unplugged; ENOSYS, EPERM: there is no io_uring.
    pub fn attach(&mut self) -> Result<(), SysError> {
        if self.by == By::Read {
            self.alarm = Some(EndAlarm::new(self.clock)?);
        }
        if self.by == By::IoUring {
            self.ring = Some(RingWait::new()?);
        }
        while ready(self.input.as_fd(), 0) == Ready::Yes {
            self.last = Some(self.input.wait()?);
        }
        (self.edges, self.unseen) = (0, 0);
        Ok(())
    }

    /// How many edges are missing before this one: the kernel numbers them, from 1, before its queue drops the oldest.
    fn dropped_before(&self, edge: Edge) -> u64 {
        let before = self.last.map_or(0, |last| last.sequence);
        u64::from(edge.sequence.wrapping_sub(before).saturating_sub(1))
    }

    fn stamp(&mut self, edge: Edge, ran_ns: i64) -> Stamp {
        let arrived_ns = i64::try_from(edge.stamp_ns).unwrap_or(i64::MAX);
        if self.stamps == self.clock {
            return Stamp::Kernel { arrived_ns, error_ns: 0 };
        }
        let clocks = [self.clock, self.stamps];
        stamped(&mut self.clocks, clocks, ran_ns, Some(arrived_ns)).0
    }

    fn pulse(&mut self, edge: Edge, ran_ns: i64) -> Arrival {
        let dropped = self.dropped_before(edge);
        let twice = self.last.is_some_and(|last| last.level == edge.level);
        if twice && dropped == 0 && self.form == AnswerForm::SameLevel {
            self.unseen = self.unseen.saturating_add(1);
        }
        self.last = Some(edge);
        let stamp = self.stamp(edge, ran_ns);
        let number = self.edges.saturating_add(dropped);
        self.edges = number.saturating_add(1);
        let mark = Some(PulseMark { number, ..PulseMark::default() });
        Arrival::Pulse(Pulse { stamp, ran_ns, sequence: None, mark, dropped })
    }

    fn wait_in_ring(&mut self, until_ns: i64) -> Arrival {
        let left_ns = until_ns.wrapping_sub(self.now_ns()).max(0);
        // `attach` made it.
        let Some(ring) = &mut self.ring else { return Arrival::Failed(libc::EBADF) };
        let behind = Behind::Read(EDGE_BYTES as u32);
        let waited = ring.wait(self.input.as_fd(), behind, left_ns);
        let ran_ns = now_ns(self.clock);
        match waited {
            Waited::Ready(n) => match edge_of(ring.bytes().get(..n).unwrap_or_default()) {
                Some(edge) => self.pulse(edge, ran_ns),
                None => Arrival::Failed(libc::EIO),
            },
            Waited::Nothing => Arrival::Nothing,
            Waited::Interrupted => Arrival::Interrupted,
            Waited::Failed(errno) => Arrival::Failed(errno),
        }
    }

    /// Nothing to read where there need not be anything.
    fn is_over(&mut self, until_ns: i64) -> bool {
        let left_ns = until_ns.wrapping_sub(self.now_ns());
        left_ns <= 0 && ready(self.input.as_fd(), 0) == Ready::No
    }
}

impl Drop for Gpio {
    fn drop(&mut self) {
        if let Some(ring) = &mut self.ring {
            ring.end(self.input.as_fd());
        }
    }
}

impl PulseLine for Gpio {
    fn wait(&mut self, until_ns: i64) -> Arrival {
        match self.by {
            By::Busy => {}
            By::IoUring => return self.wait_in_ring(until_ns),
            By::Poll => {
                let left_ns = until_ns.wrapping_sub(self.now_ns()).max(0);
                match ready(self.input.as_fd(), left_ns) {
                    Ready::Yes | Ready::Gone => {}
                    Ready::No => return Arrival::Nothing,
                    Ready::Interrupted => return Arrival::Interrupted,
                    Ready::Failed(errno) => return Arrival::Failed(errno),
                }
            }
            By::Read => {
                if let Some(alarm) = &mut self.alarm {
                    alarm.at(until_ns);
                }
                if self.is_over(until_ns) {
                    return Arrival::Nothing;
                }
            }
        }
        let read = self.input.wait();
        let ran_ns = self.now_ns();
        match read {
            Ok(edge) => self.pulse(edge, ran_ns),
            Err(e) => match e.errno {
                libc::EAGAIN => Arrival::Nothing,
                libc::EINTR => Arrival::Interrupted,
                errno => Arrival::Failed(errno),
            },
        }
    }

    fn answer(&mut self) -> Result<i64, AnswerRefusal> {
        let level = match self.form {
            AnswerForm::SameLevel => self.last.map_or(LineLevel::High, |edge| edge.level),
            AnswerForm::HighThenLow => LineLevel::High,
        };
        let set = self.output.set(level);
        let given_ns = now_ns(self.clock);
        let low = match self.form {
            AnswerForm::SameLevel => Ok(()),
            AnswerForm::HighThenLow => self.output.set(LineLevel::Low),
        };
        match set.and(low) {
            Ok(()) => Ok(given_ns),
            Err(e) if e.errno == libc::ENODEV => Err(AnswerRefusal::Line(e.errno)),
            Err(e) => Err(AnswerRefusal::Answer(e.errno)),
        }
    }

    #[inline]
    fn now_ns(&mut self) -> i64 {
        now_ns(self.clock)
    }
}
