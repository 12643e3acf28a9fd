// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sender's loop.
//!
//! Context: HOT; see the parent. Units: ns.

use core::sync::atomic::{AtomicBool, Ordering};

use super::line::{Acknowledgement, Close, Line, Message};
use super::{Give, Log, Take};
use crate::cyclic::{LoopEnd, Port, Schedule, Wake};

/// A look at a hand-over that is still under way, at least this long after the one before.
const LOOK_NS_MIN: i64 = 20_000;
/// ... and at most this many times in an interval.
const LOOKS: i64 = 16;

/// The way back of a round trip.
pub struct ReturnLeg<'a> {
    /// Where the answer arrives.
    pub inlet: &'a mut dyn Take,
    /// Its stamps.
    pub line: &'a Line,
    /// From the sender's stamp to the answer in its hands.
    pub round_trip: Log<'a>,
    /// The way back alone.
    pub back: Log<'a>,
}

/// Everything the sender's loop works with.
pub struct Sender<'a> {
    /// Its sleep and its clock.
    pub port: &'a mut dyn Port,
    /// Its end of the medium.
    pub outlet: &'a mut dyn Give,
    /// Where it puts its stamps.
    pub line: &'a Line,
    /// Those who must have taken one message before the next is sent.
    pub taken: &'a [&'a Acknowledgement],
    /// Round trips, when asked for.
    pub answer: Option<ReturnLeg<'a>>,
    /// Latency of its own schedule.
    pub log: Log<'a>,
    /// Before each hand-over one that is not timed, and this long a sleep after it (0: none):
    /// the code of both sides is in the caches then.
    pub rehearse_ns: Option<i64>,
    /// For tests of the probe: (every n-th hand-over, stall in ns after the stamp).
    pub stall: Option<(u64, i64)>,
}

/// The hand-over that may still be under way.
#[derive(Clone, Copy)]
struct Pending {
    sequence: u64,
    due_ns: i64,
}

enum Look {
    /// Received by all, the last at this time.
    At(i64),
    UnderWay,
}

impl Sender<'_> {
    /// Runs the schedule to its end or until `stop`, then closes the line and hands over once
    /// more, so that the receivers see it.
    pub fn run(&mut self, schedule: &Schedule, stop: &AtomicBool) -> LoopEnd {
        let interval = schedule.interval_ns.max(1);
        let at = |k: u64| schedule.first_ns.wrapping_add(interval.wrapping_mul(k.cast_signed()));
        let look_ns = interval.wrapping_div(LOOKS).max(LOOK_NS_MIN);
        let mut pending: Option<Pending> = None;
        let (mut k, mut missed, mut missed_error_ns) = (0u64, 0u64, 0i64);
        let mut due = schedule.first_ns;
        let mut woken: Option<i64> = None;
        let ended = loop {
            if k >= schedule.activations && pending.is_none() {
                break LoopEnd::Complete;
            }
            if stop.load(Ordering::Relaxed) {
                break LoopEnd::Stopped(k);
            }
            // After the last message there is no due time left: wait for its receipt alone.
            if k < schedule.activations || woken.is_some() {
                match self.port.sleep_until(due) {
                    Wake::Due => {}
                    Wake::Interrupted => continue,
                    Wake::Failed(errno) => break LoopEnd::Failed(errno, k),
                }
            }
            let now = self.port.now_ns();
            if let Some(p) = pending {
                let Look::At(received) = self.look(p.sequence) else {
                    woken = Some(woken.unwrap_or(now));
                    due = now.wrapping_add(look_ns);
                    continue;
                };
                missed_error_ns = received.wrapping_sub(p.due_ns);
                let left = schedule.activations.wrapping_sub(k);
                missed = fallen_due(missed_error_ns, interval).min(left);
                self.log.skipped(missed_error_ns, missed);
                pending = None;
                k = k.wrapping_add(missed);
                due = at(k);
                if k >= schedule.activations {
                    continue;
                }
                if missed > 0 || due > now {
                    woken = None;
                    continue;
                }
            }
            // A sender that woke more than an interval late sends once, for the first.
            let woken_ns = woken.take().unwrap_or(now);
            let due_ns = at(k);
            match self.hand_over(k, due_ns, missed, missed_error_ns) {
                Ok(sequence) => {
                    pending = Some(Pending { sequence, due_ns });
                }
                Err(Wake::Failed(errno)) => break LoopEnd::Failed(errno, k),
                Err(_) => break LoopEnd::Stopped(k),
            }
            self.log.wake(k, due_ns, woken_ns);
            (missed, missed_error_ns) = (0, 0);
            k = k.wrapping_add(1);
            due = at(k);
            if k >= schedule.activations {
                // What is left is the receipt: looked for at once, then every so often.
                woken = Some(now);
                due = now;
            }
        };
        self.end(ended, &Close { accounted: k, missed, missed_error_ns }, stop)
    }

    /// Closes the line and tells the receivers.
    fn end(&mut self, ended: LoopEnd, close: &Close, stop: &AtomicBool) -> LoopEnd {
        self.line.close(close);
        self.log.finish();
        if let Some(answer) = &mut self.answer {
            for log in [&mut answer.round_trip, &mut answer.back] {
                log.skipped(close.missed_error_ns, close.missed);
                log.finish();
            }
        }
        let closed = self.outlet.prepare().and_then(|()| self.outlet.give());
        if closed.is_ok() && ended == LoopEnd::Complete {
            self.await_closed(stop);
        }
        match (closed, ended) {
            (Err(errno), LoopEnd::Complete | LoopEnd::Stopped(_)) => {
                stop.store(true, Ordering::Relaxed);
                LoopEnd::Failed(errno, close.accounted)
            }
            (_, LoopEnd::Failed(..)) => {
                stop.store(true, Ordering::Relaxed);
                ended
            }
            _ => ended,
        }
    }

    /// One hand-over, and its answer where one is wanted; yields its sequence number.
    fn hand_over(
        &mut self,
        activation: u64,
        due_ns: i64,
        missed: u64,
        missed_error_ns: i64,
    ) -> Result<u64, Wake> {
        if let Some(pause_ns) = self.rehearse_ns {
            self.outlet.prepare().and_then(|()| self.outlet.give()).map_err(Wake::Failed)?;
            if pause_ns > 0 {
                let until = self.port.now_ns().wrapping_add(pause_ns);
                while self.port.sleep_until(until) == Wake::Interrupted {}
            }
        }
        self.outlet.prepare().map_err(Wake::Failed)?;
        let sent_ns = self.port.now_ns();
        if let Some((every, stall_ns)) = self.stall
            && activation.checked_rem(every) == Some(0)
        {
            let until = sent_ns.wrapping_add(stall_ns);
            while self.port.sleep_until(until) == Wake::Interrupted {}
        }
        let begun_ns = sent_ns;
        let sequence = self.line.post(&Message {
            activation,
            due_ns,
            begun_ns,
            sent_ns,
            missed,
            missed_error_ns,
        });
        self.outlet.give().map_err(Wake::Failed)?;
        let Some(answer) = &mut self.answer else { return Ok(sequence) };
        loop {
            match answer.inlet.take() {
                Wake::Due => {}
                Wake::Interrupted => return Err(Wake::Interrupted),
                failed @ Wake::Failed(_) => return Err(failed),
            }
            let now = self.port.now_ns();
            // Anything else was spurious. The way back counts as many messages as the way there.
            if let Some((_, back)) = answer.line.read(sequence.wrapping_sub(1)) {
                answer.inlet.settle().map_err(Wake::Failed)?;
                answer.round_trip.skipped(missed_error_ns, missed);
                answer.round_trip.wake(activation, sent_ns, now);
                answer.back.skipped(missed_error_ns, missed);
                answer.back.wake(activation, back.sent_ns, now);
                return Ok(sequence);
            }
            answer.inlet.settle().map_err(Wake::Failed)?;
        }
    }

    /// Takes the answer to the close, so that the way back is empty for the next phase: at least
    /// once, since the line may be closed before its hand-over is taken.
    fn await_closed(&mut self, stop: &AtomicBool) {
        let Some(answer) = &mut self.answer else { return };
        while !stop.load(Ordering::Relaxed) {
            match answer.inlet.take() {
                Wake::Due => {}
                Wake::Interrupted => continue,
                Wake::Failed(_) => return,
            }
            if answer.inlet.settle().is_err() || answer.line.closed().is_some() {
                return;
            }
        }
    }

    fn look(&self, sequence: u64) -> Look {
        let mut last = i64::MIN;
        for taken in self.taken {
            match taken.received_ns(sequence) {
                Some(at) => last = last.max(at),
                None => return Look::UnderWay,
            }
        }
        Look::At(last)
    }
}

/// Activations that fell due in `span_ns` after one.
fn fallen_due(span_ns: i64, interval_ns: i64) -> u64 {
    if span_ns < interval_ns {
        return 0;
    }
    span_ns.checked_div(interval_ns).map_or(0, i64::unsigned_abs)
}
