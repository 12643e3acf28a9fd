// SPDX-License-Identifier: MIT OR Apache-2.0
//! A queue of packets that exists only as numbers: they come at a steady rate, wait, and are
//! worked off one by one by a loop that does real work for each.
//!
//! Context: HOT (no allocation, lock, panic, system call). Units: ticks, packets; ns outside.
//! How many have come follows from the counter alone, so the sender costs nothing and is never
//! late. A queue longer than its depth loses the newest packets (tail drop), which are counted.
//! Of each window the longest wait of the oldest packet is recorded.
//! The search doubles or halves the rate until one was too high and one was not, then bisects;
//! the rate found is confirmed for the rest of the schedule, and lowered whenever it overflows
//! after all. What counts as evidence is the confirmation alone.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::cyclic::{LoopEnd, Schedule};
use crate::recorder::Recorder;
use crate::ticks::{Counter, Scale};
use crate::window::{Absence, Windows};

/// Longest time between two looks at the stop flag.
const LOOK_NS: i64 = 1_000_000;
/// Trials that are remembered one by one.
pub const TRIALS: usize = 64;
/// Highest rate that is tried, in packets a second.
pub const RATE_MAX: u64 = 1_000_000_000;
/// The search ends where the rates differ by less than one part in this number.
const RESOLUTION: u64 = 20;
const SECOND_NS: i64 = 1_000_000_000;

/// One trial of the search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trial {
    /// Packets a second.
    pub rate: u64,
    /// How long it went well, or until the first packet was lost.
    pub lasted_ns: i64,
    /// Was one lost?
    pub overflowed: bool,
    /// Of the confirmation, not of the search.
    pub confirming: bool,
}

/// What to feed and where to write what came of it.
#[derive(Clone, Copy, Debug)]
pub struct Feed<'a> {
    /// What the counter shows at the schedule's first due time.
    pub origin: u64,
    /// Ticks and ns.
    pub scale: Scale,
    /// Ticks a second.
    pub hz: u64,
    /// Packets a second; where the search begins.
    pub rate: u64,
    /// Packets that the queue holds.
    pub depth: u64,
    /// Length of a trial of the search; `None`: the rate is as given.
    pub trial_ns: Option<i64>,
    /// The windows.
    pub schedule: Schedule,
    /// The longest wait of each.
    pub recorder: &'a Recorder,
    /// Ends the loop.
    pub stop: &'a AtomicBool,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct Drained {
    /// Packets worked off.
    pub packets: u64,
    /// Packets lost.
    pub lost: u64,
    /// Times at which packets were lost.
    pub overflows: u64,
    /// Seconds of the schedule in which packets were lost.
    pub overflow_seconds: u64,
    /// Longest queue, before what was too much was lost.
    pub deepest: u64,
    /// The rate at the end.
    pub rate: u64,
    /// Time at that rate without loss until the end; 0 where the search did not come so far.
    pub confirmed_ns: i64,
    /// The trials, in their order.
    pub trials: [Trial; TRIALS],
    /// How many there were, also beyond what is remembered.
    pub trials_n: u64,
}

impl Drained {
    /// The trials that are remembered.
    pub fn remembered(&self) -> impl Iterator<Item = &Trial> {
        self.trials.iter().take(usize::try_from(self.trials_n).unwrap_or(TRIALS))
    }
}

/// How a trial of a rate ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrialEnd {
    Passed,
    Overflowed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Given,
    Search,
    Confirm,
}

struct Loop<'a> {
    feed: Feed<'a>,
    windows: Windows<'a>,
    out: Drained,
    mode: Mode,
    /// Highest rate that went well, lowest that did not; 0 for none.
    low: u64,
    high: u64,
    /// The counter when the queue was last empty by decree.
    base: u64,
    /// Packets a tick, times 2^48.
    rate_q48: u64,
    /// Packets worked off or lost since `base`.
    gone: u64,
    /// Longest queue of the present window.
    longest: u64,
    overflow_second: i64,
}

/// Feeds and drains until every window is over or the stop flag is set.
pub fn run<C: Counter>(counter: &mut C, feed: &Feed<'_>) -> (LoopEnd, Drained) {
    let mut this = Loop {
        feed: *feed,
        windows: Windows::new(feed.recorder, &feed.schedule),
        out: Drained {
            packets: 0,
            lost: 0,
            overflows: 0,
            overflow_seconds: 0,
            deepest: 0,
            rate: feed.rate,
            confirmed_ns: 0,
            trials: [Trial::default(); TRIALS],
            trials_n: 0,
        },
        mode: if feed.trial_ns.is_some() { Mode::Search } else { Mode::Given },
        low: 0,
        high: 0,
        base: feed.origin,
        rate_q48: 0,
        gone: 0,
        longest: 0,
        overflow_second: -1,
    };
    this.at_rate(feed.rate, feed.origin);
    let ended = this.turn(counter);
    this.windows.finish();
    (ended, this.out)
}

impl Loop<'_> {
    fn turn<C: Counter>(&mut self, counter: &mut C) -> LoopEnd {
        let stop = self.feed.stop;
        while self.feed.origin.wrapping_sub(counter.ticks()).cast_signed() > 0
            && !stop.load(Ordering::Relaxed)
        {}
        let mut look = self.feed.origin;
        let ended = loop {
            let now = counter.ticks();
            let waiting = self.come(now).wrapping_sub(self.gone);
            self.longest = self.longest.max(waiting);
            if waiting > self.feed.depth {
                self.overflow(now, waiting.wrapping_sub(self.feed.depth));
            } else if waiting > 0 {
                counter.work();
                self.gone = self.gone.wrapping_add(1);
                self.out.packets = self.out.packets.wrapping_add(1);
            }
            if now < look {
                continue;
            }
            self.see();
            self.windows.close(self.at_ns(now), Absence::StoodStill);
            if self.windows.complete() {
                break LoopEnd::Complete;
            }
            if stop.load(Ordering::Relaxed) {
                break LoopEnd::Stopped(self.windows.accounted());
            }
            self.judge(now);
            let until = self.windows.end_ns().min(self.at_ns(now).saturating_add(LOOK_NS));
            let ticks = self.feed.scale.ticks(until).saturating_add(1);
            look = self.feed.origin.wrapping_add(ticks);
        };
        self.out.rate = self.rate();
        if self.mode != Mode::Search {
            self.out.confirmed_ns = self.since_base_ns(counter.ticks());
        }
        ended
    }

    /// Packets that have come since the base.
    #[inline]
    fn come(&self, now: u64) -> u64 {
        let ticks = u128::from(now.wrapping_sub(self.base));
        u64::try_from(ticks.wrapping_mul(u128::from(self.rate_q48)) >> 48).unwrap_or(u64::MAX)
    }

    fn at_ns(&self, ticks: u64) -> i64 {
        self.feed.scale.ns(ticks.wrapping_sub(self.feed.origin))
    }

    fn since_base_ns(&self, ticks: u64) -> i64 {
        self.feed.scale.ns(ticks.wrapping_sub(self.base))
    }

    fn rate(&self) -> u64 {
        self.out.rate
    }

    /// Empties the queue and goes on at `rate`.
    fn at_rate(&mut self, rate: u64, now: u64) {
        let rate = rate.clamp(1, RATE_MAX);
        let packets = u128::from(rate) << 48;
        let q48 = packets.checked_div(u128::from(self.feed.hz.max(1))).unwrap_or(0);
        self.rate_q48 = u64::try_from(q48).unwrap_or(u64::MAX);
        self.out.rate = rate;
        self.base = now;
        self.gone = 0;
        self.longest = 0;
    }

    /// The longest queue of the window as the wait of its oldest packet.
    fn see(&mut self) {
        self.out.deepest = self.out.deepest.max(self.longest);
        let ns = u128::from(self.longest)
            .wrapping_mul(SECOND_NS.unsigned_abs().into())
            .checked_div(u128::from(self.rate().max(1)))
            .unwrap_or(0);
        self.windows.see(i64::try_from(ns).unwrap_or(i64::MAX));
        self.longest = 0;
    }

    /// The newest `lost` packets find no place.
    #[cold]
    fn overflow(&mut self, now: u64, lost: u64) {
        self.gone = self.gone.wrapping_add(lost);
        self.out.lost = self.out.lost.wrapping_add(lost);
        self.out.overflows = self.out.overflows.wrapping_add(1);
        let second = self.at_ns(now).checked_div(SECOND_NS).unwrap_or(0);
        if second > self.overflow_second {
            self.overflow_second = second;
            self.out.overflow_seconds = self.out.overflow_seconds.wrapping_add(1);
        }
        if self.mode == Mode::Given {
            return;
        }
        self.see();
        self.remember(now, TrialEnd::Overflowed);
        let rate = self.rate();
        self.high = rate;
        if self.mode == Mode::Confirm {
            // Nine tenths, and at least one less.
            let lower = rate.saturating_mul(9).checked_div(10).unwrap_or(1);
            return self.at_rate(lower.min(rate.saturating_sub(1)).max(1), now);
        }
        if self.low == 0 {
            return self.at_rate(rate >> 1, now);
        }
        self.narrow(now);
    }

    /// Has a trial gone well for long enough?
    fn judge(&mut self, now: u64) {
        let Some(trial_ns) = self.feed.trial_ns else { return };
        if self.mode != Mode::Search || self.since_base_ns(now) < trial_ns {
            return;
        }
        self.remember(now, TrialEnd::Passed);
        let rate = self.rate();
        self.low = rate;
        if self.high == 0 && rate < RATE_MAX {
            return self.at_rate(rate.saturating_mul(2), now);
        }
        self.narrow(now);
    }

    /// Between the highest rate that went well and the lowest that did not; near enough, it is
    /// confirmed.
    fn narrow(&mut self, now: u64) {
        let between = self.high.saturating_sub(self.low);
        if between.saturating_mul(RESOLUTION) <= self.low || between <= 1 {
            self.mode = Mode::Confirm;
            return self.at_rate(self.low, now);
        }
        self.at_rate(self.low.wrapping_add(between >> 1), now);
    }

    fn remember(&mut self, now: u64, end: TrialEnd) {
        let trial = Trial {
            rate: self.rate(),
            lasted_ns: self.since_base_ns(now),
            overflowed: end == TrialEnd::Overflowed,
            confirming: self.mode == Mode::Confirm,
        };
        let place = usize::try_from(self.out.trials_n).ok();
        if let Some(slot) = place.and_then(|i| self.out.trials.get_mut(i)) {
            *slot = trial;
        }
        self.out.trials_n = self.out.trials_n.wrapping_add(1);
    }
}
