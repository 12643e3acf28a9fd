// SPDX-License-Identifier: MIT OR Apache-2.0
//! Polls a counter until something strikes, and records how soon its handler knew.
//!
//! Context: HOT (no allocation, lock, panic; no system call). Units: ticks inside, ns outside.
//! A strike is what the port says was stamped by a handler in the kernel between two reads of the
//! counter: from the earlier read, the last that user mode came to, to the stamp is the way into
//! the handler. A stamp that lies in no gap is counted and belongs to no way.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::cyclic::{LoopEnd, Schedule};
use crate::recorder::{Recorder, Writer};
use crate::ticks::{Counter, Scale};
use crate::window::{Absence, Windows};

/// Longest time between two looks at the stop flag.
const LOOK_NS: i64 = 1_000_000;
/// Most stamps taken between two looks: a handler that stamps faster than they are taken would
/// keep the loop from ever looking.
const STAMPS: u32 = 4096;

/// A counter, and the stamps of a handler.
pub trait Struck: Counter {
    /// The counter at the oldest stamp not yet taken.
    fn struck(&mut self) -> Option<u64>;
}

/// What to poll and where to write it.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// What the counter shows at the schedule's first due time.
    pub origin: u64,
    /// Ticks and ns.
    pub scale: Scale,
    /// A turn longer than this may hold a strike.
    pub threshold_ticks: u64,
    /// Stamps may be wrong by so much.
    pub apart_ticks: u64,
    /// The windows.
    pub schedule: Schedule,
    /// The longest way of each window.
    pub windows: &'a Recorder,
    /// Every way.
    pub ways: &'a Recorder,
    /// Every way back: from the stamp to the first read after it.
    pub back: &'a Recorder,
    /// Ends the loop.
    pub stop: &'a AtomicBool,
}

/// How many there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strikes {
    /// Strikes whose way is known.
    pub known: u64,
    /// Stamps that lie in no gap of the loop.
    pub stray: u64,
}

/// Polls until every window is over or the stop flag is set.
pub fn run<P: Struck>(port: &mut P, what: &Target<'_>) -> (LoopEnd, Strikes) {
    let Schedule { first_ns, interval_ns, .. } = what.schedule;
    let mut windows = Windows::new(what.windows, &what.schedule);
    let mut ways = Writer::new(what.ways, first_ns, interval_ns);
    let mut back = Writer::new(what.back, first_ns, interval_ns);
    let mut strikes = Strikes::default();
    while what.origin.wrapping_sub(port.ticks()).cast_signed() > 0
        && !what.stop.load(Ordering::Relaxed)
    {}
    let at_ns = |ticks: u64| what.scale.ns(ticks.wrapping_sub(what.origin));
    // What came before belongs to nobody.
    while !what.stop.load(Ordering::Relaxed) && port.struck().is_some() {}
    let mut last = port.ticks();
    let mut look = last;
    let ended = loop {
        let now = port.ticks();
        if now.wrapping_sub(last) <= what.threshold_ticks && now < look {
            last = now;
            continue;
        }
        for _ in 0..STAMPS {
            let Some(at) = port.struck() else { break };
            let early = at.wrapping_add(what.apart_ticks) < last;
            if early || at > now.wrapping_add(what.apart_ticks) {
                strikes.stray = strikes.stray.wrapping_add(1);
                continue;
            }
            let way_ns = what.scale.ns(at.saturating_sub(last));
            let due_ns = first_ns.saturating_add(at_ns(last));
            ways.wake(strikes.known, due_ns, due_ns.saturating_add(way_ns), 0);
            let back_ns = what.scale.ns(now.saturating_sub(at));
            back.wake(strikes.known, due_ns, due_ns.saturating_add(back_ns), 0);
            strikes.known = strikes.known.wrapping_add(1);
            windows.see(way_ns);
        }
        // The loop is no measure of what else stands still: that is another probe's question.
        windows.close(at_ns(now), Absence::Waited);
        if windows.complete() {
            break LoopEnd::Complete;
        }
        if what.stop.load(Ordering::Relaxed) {
            break LoopEnd::Stopped(windows.accounted());
        }
        last = port.ticks();
        let until = windows.end_ns().min(at_ns(last).saturating_add(LOOK_NS));
        look = what.origin.wrapping_add(what.scale.ticks(until).saturating_add(1));
    };
    windows.finish();
    ways.finish();
    back.finish();
    (ended, strikes)
}
