// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a counter as fast as it can and records every gap.
//!
//! Context: HOT (no allocation, lock, panic; no system call but the rest, if one is asked for).
//! Units: ticks inside, ns outside. A turn of the loop is one read, two comparisons and the
//! work; only a turn that took longer than the threshold, or reached the end of a window,
//! leaves it. What is done then (recording) is timed and left out of the gaps, because the loop
//! caused it itself; should it take longer than recording can, the rest is a gap like any other.
//! Not here: what the threshold is, where the time came from, what the gaps mean.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::cyclic::{LoopEnd, Schedule};
use crate::recorder::{Recorder, Writer};
use crate::ticks::{Counter, Scale, Taker};
use crate::window::{Absence, Windows};

/// Longest time between two looks at the stop flag.
const LOOK_NS: i64 = 1_000_000;

/// A loop that begins this late was not kept away: it comes from its warm-up.
const START_NS: i64 = 100_000;

/// What is noise here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A turn longer than this is a gap.
    pub threshold_ticks: u64,
    /// What an undisturbed turn takes; gaps are counted beyond it.
    pub turn_ticks: u64,
    /// What recording takes at most; beyond it, it was disturbed.
    pub own_ticks: u64,
    /// Shorter gaps are told apart from their neighbours, and not recorded.
    pub least_ns: i64,
    /// Only gaps in which the kernel was not entered count for the windows.
    pub outside_only: bool,
}

/// Where the gaps go: all of them, and those without the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Sinks<'r> {
    /// The worst of each window.
    pub windows: &'r Recorder,
    /// Every gap.
    pub gaps: &'r Recorder,
    /// Every gap in which the kernel was not entered.
    pub outside: &'r Recorder,
}

/// A place to rest at, once a window: a loop that never sleeps starves others.
pub trait Rest {
    /// Part of a window that is polled, in ns; `None` for all of it.
    fn polled_ns(&self) -> Option<i64>;
    /// Sleeps until this long after the schedule's first due time.
    fn until(&mut self, ns: i64);
}

/// No rest.
#[derive(Debug)]
pub struct Restless;

impl Rest for Restless {
    #[inline]
    fn polled_ns(&self) -> Option<i64> {
        None
    }
    #[inline]
    fn until(&mut self, _: i64) {}
}

/// Gaps of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    /// How many.
    pub n: u64,
    /// Their sum.
    pub ns: i64,
    /// The longest.
    pub ns_max: i64,
}

impl Kind {
    fn add(&mut self, ns: i64) {
        self.n = self.n.wrapping_add(1);
        self.ns = self.ns.saturating_add(ns);
        self.ns_max = self.ns_max.max(ns);
    }
}

/// What a loop saw besides its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Turns of the loop.
    pub turns: u64,
    /// From the schedule's first due time to its last read.
    pub span_ns: i64,
    /// It began so much too late; 0 for what going over from the warm-up takes.
    pub late_start_ns: i64,
    /// Time it chose to be away.
    pub rested_ns: i64,
    /// Time spent on recording.
    pub own_ns: i64,
    /// Gaps in which another task ran.
    pub task: Kind,
    /// Gaps in which the kernel was entered and came straight back.
    pub interrupt: Kind,
    /// Gaps in which the kernel was not entered.
    pub outside: Kind,
    /// Gaps of which that is not known.
    pub unknown: Kind,
    /// Longest time between two gaps.
    pub quiet_ns_max: i64,
    /// Shortest turn, in ticks.
    pub turn_ticks_min: u64,
    /// Shortest gap.
    pub gap_ns_min: i64,
}

impl Tally {
    /// All gaps.
    #[must_use]
    pub fn gaps(&self) -> Kind {
        let mut all = Kind::default();
        for kind in [self.task, self.interrupt, self.outside, self.unknown] {
            all.n = all.n.wrapping_add(kind.n);
            all.ns = all.ns.saturating_add(kind.ns);
            all.ns_max = all.ns_max.max(kind.ns_max);
        }
        all
    }
}

/// What to poll and where to write it.
#[derive(Clone, Copy, Debug)]
pub struct Polling<'a> {
    /// What the counter shows at the schedule's first due time.
    pub origin: u64,
    /// Ticks and ns.
    pub scale: Scale,
    /// What is noise.
    pub settings: Settings,
    /// The windows.
    pub schedule: Schedule,
    /// The records.
    pub sinks: Sinks<'a>,
    /// Ends the loop.
    pub stop: &'a AtomicBool,
}

/// One run of the loop.
struct Loop<'a, C, R> {
    counter: &'a mut C,
    rest: &'a mut R,
    what: Polling<'a>,
    windows: Windows<'a>,
    gaps: Writer<'a>,
    outside: Writer<'a>,
    tally: Tally,
    quiet_since: u64,
}

/// Polls until every window is over or the stop flag is set.
pub fn run<C: Counter, R: Rest>(
    counter: &mut C,
    rest: &mut R,
    what: &Polling<'_>,
) -> (LoopEnd, Tally) {
    let Schedule { first_ns, interval_ns, .. } = what.schedule;
    let mut this = Loop {
        counter,
        rest,
        what: *what,
        windows: Windows::new(what.sinks.windows, &what.schedule),
        gaps: Writer::new(what.sinks.gaps, first_ns, interval_ns),
        outside: Writer::new(what.sinks.outside, first_ns, interval_ns),
        tally: Tally { turn_ticks_min: u64::MAX, gap_ns_min: i64::MAX, ..Tally::default() },
        quiet_since: what.origin,
    };
    let ended = this.turn();
    this.windows.finish();
    this.gaps.finish();
    this.outside.finish();
    (ended, this.tally)
}

impl<C: Counter, R: Rest> Loop<'_, C, R> {
    fn turn(&mut self) -> LoopEnd {
        let (stop, threshold) = (self.what.stop, self.what.settings.threshold_ticks);
        // Before its time it waits as it will run.
        let mut last = self.counter.ticks();
        while self.before(last) && !stop.load(Ordering::Relaxed) {
            last = self.counter.ticks();
        }
        self.start_at(last);
        let mut look = last;
        let (mut shortest, mut longest, mut turns) = (u64::MAX, 0u64, 0u64);
        let ended = loop {
            let now = self.counter.ticks();
            let turn = now.wrapping_sub(last);
            turns = turns.wrapping_add(1);
            if turn <= threshold && now < look {
                shortest = shortest.min(turn);
                longest = longest.max(turn);
                last = now;
                self.counter.work();
                continue;
            }
            let turn_end = if turn > threshold {
                self.gap(last, now);
                Absence::StoodStill
            } else {
                longest = longest.max(turn);
                Absence::Waited
            };
            if !self.what.settings.outside_only {
                self.windows.see(self.beyond_a_turn(longest));
            }
            longest = 0;
            self.close(now, turn_end);
            if self.windows.complete() {
                break LoopEnd::Complete;
            }
            if stop.load(Ordering::Relaxed) {
                break LoopEnd::Stopped(self.windows.accounted());
            }
            (last, look) = self.go_on(now);
        };
        self.tally.turns = turns;
        self.tally.turn_ticks_min = shortest;
        let end = self.counter.ticks();
        self.quiet_until(end);
        self.tally.span_ns = self.at_ns(end);
        ended
    }

    /// Is the schedule still to come?
    #[inline]
    fn before(&self, ticks: u64) -> bool {
        self.what.origin.wrapping_sub(ticks).cast_signed() > 0
    }

    /// A loop that comes too late to its own schedule was kept away: the windows say so.
    fn start_at(&mut self, ticks: u64) {
        let late_ns = self.at_ns(ticks);
        if late_ns > START_NS {
            self.tally.late_start_ns = late_ns;
            if !self.what.settings.outside_only {
                self.windows.see(late_ns);
            }
            self.windows.close(late_ns, self.counted(Absence::StoodStill));
        }
        self.quiet_since = ticks;
        self.counter.arm();
    }

    fn at_ns(&self, ticks: u64) -> i64 {
        self.what.scale.ns(ticks.wrapping_sub(self.what.origin))
    }

    fn beyond_a_turn(&self, ticks: u64) -> i64 {
        self.what.scale.ns(ticks.saturating_sub(self.what.settings.turn_ticks))
    }

    fn quiet_until(&mut self, ticks: u64) {
        let quiet = self.what.scale.ns(ticks.wrapping_sub(self.quiet_since));
        self.tally.quiet_ns_max = self.tally.quiet_ns_max.max(quiet);
    }

    /// Records what passed between two reads.
    #[cold]
    fn gap(&mut self, from: u64, to: u64) {
        let taker = self.counter.taker();
        let ns = self.beyond_a_turn(to.wrapping_sub(from));
        if ns < self.what.settings.least_ns {
            return;
        }
        self.quiet_until(from);
        self.quiet_since = to;
        let began = self.what.schedule.first_ns.saturating_add(self.at_ns(from));
        let ended = began.saturating_add(ns);
        let t = &mut self.tally;
        t.gap_ns_min = t.gap_ns_min.min(ns);
        self.gaps.wake(t.gaps().n, began, ended, 0);
        let outside = taker == Taker::Outside;
        if outside {
            self.outside.wake(t.outside.n, began, ended, 0);
        }
        match taker {
            Taker::Task => &mut t.task,
            Taker::Interrupt => &mut t.interrupt,
            Taker::Outside => &mut t.outside,
            Taker::Unknown => &mut t.unknown,
        }
        .add(ns);
        if outside || !self.what.settings.outside_only {
            self.windows.see(ns);
        }
    }

    /// What is looked for from outside only does not count where the loop stood still.
    fn counted(&self, absence: Absence) -> Absence {
        if self.what.settings.outside_only { Absence::Waited } else { absence }
    }

    /// Closes the window that is over, and rests where the loop is to.
    fn close(&mut self, now: u64, absence: Absence) {
        self.windows.close(self.at_ns(now), self.counted(absence));
        let Some(polled) = self.rest.polled_ns() else { return };
        let at = self.at_ns(now);
        if self.windows.complete() || at < self.windows.begin_ns().saturating_add(polled) {
            return;
        }
        // The window ends in its rest; the next one begins when the loop is back.
        self.quiet_until(now);
        let end = self.windows.end_ns();
        self.rest.until(end);
        let back = self.counter.ticks();
        self.windows.close(self.at_ns(back).max(end), Absence::Waited);
        self.quiet_since = back;
        let away = self.what.scale.ns(back.wrapping_sub(now));
        self.tally.rested_ns = self.tally.rested_ns.saturating_add(away);
    }

    /// Takes up the polling again: from where, and until when at most.
    fn go_on(&mut self, since: u64) -> (u64, u64) {
        let polled = self.rest.polled_ns();
        let mut last = self.counter.ticks();
        if polled.is_none() {
            let (own, limit) = (last.wrapping_sub(since), self.what.settings.own_ticks);
            if own > limit.saturating_add(self.what.settings.threshold_ticks) {
                // Recording was disturbed: what it took beyond itself is a gap too.
                self.gap(since.wrapping_add(limit), last);
                self.close(last, Absence::StoodStill);
                last = self.counter.ticks();
            }
            let kept = self.what.scale.ns(own.min(limit));
            self.tally.own_ns = self.tally.own_ns.saturating_add(kept);
        }
        self.counter.arm();
        let until = self
            .windows
            .end_ns()
            .min(self.windows.begin_ns().saturating_add(polled.unwrap_or(i64::MAX)))
            .min(self.at_ns(last).saturating_add(LOOK_NS));
        // One tick more, because the way there and back rounds down.
        let ticks = self.what.scale.ticks(until).saturating_add(1);
        (last, self.what.origin.wrapping_add(ticks))
    }
}
