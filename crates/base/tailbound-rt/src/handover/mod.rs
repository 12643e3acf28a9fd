// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hands something over on an absolute schedule and times the way to the receiver.
//!
//! Context: HOT (no allocation, lock or panic; system calls: those of the medium, the sender's
//! sleep, and the clock where it is not in the vDSO). Units: ns on the schedule's clock.
//! The sender wakes on its schedule, stamps, and gives; each receiver stamps as soon as its
//! receive call has returned. Stamps travel through memory both sides map ([`mod@line`]), so that
//! every medium carries the same eight bytes or none.
//! At most one hand-over is under way. Those that fall due while it is are missed, with the
//! latency they would have had: from their due time to the receipt of the one in their way.
//! A sender that itself woke too late by an interval or more misses in the same manner.
//! Not here: what carries it (`tailbound-sys`, one file a medium), who sits where
//! (`tailbound-probe`).

mod give;
pub mod line;
mod take;

pub use give::{ReturnLeg, Sender};
pub use line::{Acknowledgement, Block, Close, Line, Message};
pub use take::{Onward, Receiver};

use crate::cyclic::Wake;
use crate::recorder::Writer;
use crate::ring::Ring;

/// The sender's end of a medium.
pub trait Give {
    /// What has to be done before the stamp is taken: most media need nothing.
    fn prepare(&mut self) -> Result<(), i32> {
        Ok(())
    }
    /// Hands over.
    ///
    /// # Errors
    /// The errno of the refused call.
    fn give(&mut self) -> Result<(), i32>;
}

/// A receiver's end of a medium.
pub trait Take {
    /// Waits until something is handed over.
    fn take(&mut self) -> Wake;
    /// What has to be done after the stamp was taken, before the next wait.
    fn settle(&mut self) -> Result<(), i32> {
        Ok(())
    }
}

/// Entries of a [`Relay`]: a reader that looks 50 times a second keeps up with 100 kHz.
pub const RELAYED: usize = 2048;

/// Events on their way to a recorder that another process or thread writes.
/// All zero bytes are a valid, empty relay.
pub type Relay = Ring<4, RELAYED>;

/// Where a loop writes what it saw: its own recorder, or a relay to somebody else's.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one per thread, on its stack: nothing is allocated here"
)]
pub enum Log<'r> {
    /// Straight into a recorder.
    Own(Writer<'r>),
    /// Through a ring, to be entered by [`relayed`].
    Relay(&'r Relay),
    /// Nobody asked.
    Nowhere,
}

const WAKE: u64 = 0;
const SKIPPED: u64 = 1;

impl Log<'_> {
    /// One event: due, and what came of it.
    #[inline]
    pub fn wake(&mut self, activation: u64, due_ns: i64, woken_ns: i64) {
        match self {
            Log::Own(writer) => writer.wake(activation, due_ns, woken_ns, 0),
            Log::Relay(ring) => {
                ring.push([WAKE, activation, due_ns.cast_unsigned(), woken_ns.cast_unsigned()]);
            }
            Log::Nowhere => {}
        }
    }

    /// `missed` events after one whose way was free again `error_ns` after its due time.
    #[inline]
    pub fn skipped(&mut self, error_ns: i64, missed: u64) {
        if missed == 0 {
            return;
        }
        match self {
            Log::Own(writer) => writer.skipped(error_ns, missed),
            Log::Relay(ring) => ring.push([SKIPPED, missed, error_ns.cast_unsigned(), 0]),
            Log::Nowhere => {}
        }
    }

    /// Publishes what is left.
    pub fn finish(&mut self) {
        if let Log::Own(writer) = self {
            writer.finish();
        }
    }
}

/// Enters what a relay holds, at most as much as fits into it: the other side goes on writing.
/// How many events that were.
pub fn relayed(from: &Relay, to: &mut Writer<'_>) -> u64 {
    let mut entered = 0u64;
    for _ in 0..RELAYED {
        let Some([kind, a, b, c]) = from.pop() else { break };
        if kind == SKIPPED {
            to.skipped(b.cast_signed(), a);
        } else {
            to.wake(a, b.cast_signed(), c.cast_signed(), 0);
        }
        entered = entered.wrapping_add(1);
    }
    entered
}
