// SPDX-License-Identifier: MIT OR Apache-2.0
//! A receiver's loop, which may hand on to the next.
//!
//! Context: HOT; see the parent. Units: ns.

use core::sync::atomic::{AtomicBool, Ordering};

use super::line::{Acknowledgement, Line, Message};
use super::{Give, Log, Take};
use crate::cyclic::{LoopEnd, Port, Schedule, Wake};

/// Where a receiver hands on to: the next hop of a ring, or the way back.
pub struct Onward<'a> {
    /// Its end of the next medium.
    pub outlet: &'a mut dyn Give,
    /// The stamps of the next hop.
    pub line: &'a Line,
}

/// Everything a receiver's loop works with.
pub struct Receiver<'a> {
    /// Its clock.
    pub port: &'a mut dyn Port,
    /// Its end of the medium.
    pub inlet: &'a mut dyn Take,
    /// The stamps on their way to it.
    pub line: &'a Line,
    /// Its acknowledgement.
    pub taken: &'a Acknowledgement,
    /// Where it hands on to.
    pub onward: Option<Onward<'a>>,
    /// From the stamp before the send to the one after the receipt.
    pub log: Log<'a>,
    /// From the stamp of the first sender of a ring, for its last receiver.
    pub whole: Log<'a>,
}

impl Receiver<'_> {
    /// Receives until the line is closed. The close is a hand-over of its own, and has to be taken:
    /// the sender of a barrier waits for that.
    pub fn run(&mut self, schedule: &Schedule, stop: &AtomicBool) -> LoopEnd {
        let mut seen = 0u64;
        let mut accounted = 0u64;
        let mut failed = None;
        while failed.is_none() {
            match self.inlet.take() {
                Wake::Due => {}
                Wake::Interrupted if stop.load(Ordering::Relaxed) => break,
                Wake::Interrupted => continue,
                Wake::Failed(errno) => {
                    failed = Some(errno);
                    break;
                }
            }
            let now = self.port.now_ns();
            let Some((sequence, message)) = self.line.read(seen) else {
                failed = self.inlet.settle().err();
                if let Some(close) = self.line.closed() {
                    self.log.skipped(close.missed_error_ns, close.missed);
                    self.whole.skipped(close.missed_error_ns, close.missed);
                    accounted = close.accounted;
                    if let Some(onward) = &mut self.onward {
                        onward.line.close(&close);
                        failed = failed
                            .or_else(|| onward.outlet.prepare().err())
                            .or_else(|| onward.outlet.give().err());
                    }
                    break;
                }
                continue;
            };
            seen = sequence;
            failed = self.received(sequence, &message, now).err();
            accounted = message.activation.wrapping_add(1);
        }
        self.log.finish();
        self.whole.finish();
        match failed {
            Some(errno) => {
                stop.store(true, Ordering::Relaxed);
                LoopEnd::Failed(errno, accounted)
            }
            None if accounted >= schedule.activations => LoopEnd::Complete,
            None => LoopEnd::Stopped(accounted),
        }
    }

    #[inline]
    fn received(&mut self, sequence: u64, message: &Message, now: i64) -> Result<(), i32> {
        // The acknowledgement first: the sender may already be waiting to look at it.
        self.taken.publish(sequence, now);
        self.inlet.settle()?;
        if let Some(onward) = &mut self.onward {
            onward.outlet.prepare()?;
            let sent_ns = self.port.now_ns();
            onward.line.post(&Message { sent_ns, ..*message });
            onward.outlet.give()?;
        }
        self.log.skipped(message.missed_error_ns, message.missed);
        self.log.wake(message.activation, message.sent_ns, now);
        self.whole.skipped(message.missed_error_ns, message.missed);
        self.whole.wake(message.activation, message.begun_ns, now);
        Ok(())
    }
}
