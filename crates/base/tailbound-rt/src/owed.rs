// SPDX-License-Identifier: MIT OR Apache-2.0
//! Missed activations that are counted and not yet in their histogram and sums.
//!
//! Context: HOT. Units: ns.
//! How late each of the activations of a stall would have been follows from a few numbers, so a
//! stall of any length is remembered at once and entered piece by piece, a bounded number in each
//! cycle. What is over range is alike and is entered at once.
//! A stall that fits into one cycle's share is entered in that cycle. So only stalls of more than
//! a share wait here, and there is room for eight of them; a ninth has the oldest entered whole,
//! which is at most what 17 s of the schedule hold.
//! Not here: the histogram and the sums themselves ([`crate::recorder`]).

use crate::spread::Spread;

/// Stalls that may wait.
const PLACES: usize = 8;

/// Activations of one stall.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stall {
    /// How late the next of them would have been, had its due time been on the even schedule.
    pub(crate) even_ns: i64,
    /// Its number.
    pub(crate) activation: u64,
    /// How many there are.
    pub(crate) n: u64,
}

impl Stall {
    /// How late the next of them would have been.
    #[inline]
    pub(crate) fn late_ns(&self, spread: &Spread) -> i64 {
        self.even_ns.saturating_sub(spread.delay_ns(self.activation))
    }

    /// How late the last of them would have been.
    pub(crate) fn last_ns(&self, interval_ns: i64, spread: &Spread) -> i64 {
        let before = self.n.saturating_sub(1);
        let (mut last, all) = (*self, i64::try_from(before).unwrap_or(i64::MAX));
        last.even_ns = self.even_ns.saturating_sub(interval_ns.saturating_mul(all));
        last.activation = self.activation.wrapping_add(before);
        last.late_ns(spread)
    }

    /// Takes the next `n` away.
    #[inline]
    pub(crate) fn advance(&mut self, n: u64, interval_ns: i64) {
        let ns = interval_ns.saturating_mul(i64::try_from(n).unwrap_or(i64::MAX));
        self.even_ns = self.even_ns.saturating_sub(ns);
        self.activation = self.activation.wrapping_add(n);
        self.n = self.n.saturating_sub(n);
    }

    /// How many of them, from the next on, are surely `range_ns` late or later.
    pub(crate) fn beyond(&self, range_ns: i64, interval_ns: i64, spread: &Spread) -> u64 {
        let over = self.even_ns.saturating_sub(spread.window_ns.max(0)).saturating_sub(range_ns);
        if over < 0 {
            return 0;
        }
        over.checked_div(interval_ns).map_or(1, |k| k.unsigned_abs().saturating_add(1)).min(self.n)
    }
}

/// The stalls that wait.
#[derive(Debug, Default)]
pub(crate) struct Owed {
    stalls: [Stall; PLACES],
    /// Activations of all of them.
    n: u64,
}

impl Owed {
    /// Does none wait?
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Lets `stall` wait; the one that had to make room for it, if there was none.
    pub(crate) fn push(&mut self, stall: Stall) -> Option<Stall> {
        if stall.n == 0 {
            return None;
        }
        self.n = self.n.saturating_add(stall.n);
        if let Some(place) = self.stalls.iter_mut().find(|s| s.n == 0) {
            *place = stall;
            return None;
        }
        let oldest = self.take();
        if let Some(place) = self.stalls.iter_mut().find(|s| s.n == 0) {
            *place = stall;
        }
        oldest
    }

    /// Takes out the one that has waited longest.
    pub(crate) fn take(&mut self) -> Option<Stall> {
        let oldest = self.stalls.iter_mut().filter(|s| s.n > 0).min_by_key(|s| s.activation)?;
        let taken = core::mem::take(oldest);
        self.n = self.n.saturating_sub(taken.n);
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVEN: Spread = Spread { seed: 0, window_ns: 0 };

    #[test]
    fn the_ninth_has_the_oldest_make_room() {
        let mut owed = Owed::default();
        let stall = |activation| Stall { even_ns: 5, activation, n: 2 };
        for activation in 0..8 {
            assert!(owed.push(stall(activation)).is_none());
        }
        assert_eq!(owed.push(stall(8)).map(|s| s.activation), Some(0));
        let mut left = 0;
        while let Some(stall) = owed.take() {
            left += stall.n;
        }
        assert_eq!((left, owed.is_empty()), (16, true));
    }

    #[test]
    fn what_is_over_range_is_counted_without_a_walk() {
        let mut stall = Stall { even_ns: 1_000, activation: 1, n: 100 };
        assert_eq!(stall.beyond(900, 10, &EVEN), 11);
        assert_eq!(stall.last_ns(10, &EVEN), 10);
        stall.advance(11, 10);
        assert_eq!((stall.late_ns(&EVEN), stall.n, stall.beyond(900, 10, &EVEN)), (890, 89, 0));
    }
}
