// SPDX-License-Identifier: MIT OR Apache-2.0
//! The longest answers with the numbers of their pulses, so that who timed them from outside can be joined.
//!
//! Context: HOT (a heap: a new one costs ten comparisons). Units: ns.

use super::Stamp;

/// How many are kept: four times as many as the box keeps.
pub const KEPT: usize = 1 << 10;

/// What tells a pulse from all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PulseMark {
    /// Which run of which sender; 0 on a line.
    pub sender: u64,
    /// Its number.
    pub number: u64,
    /// The sender's own word; 0 on a line.
    pub token: u64,
}

/// An answered pulse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptPulse {
    /// Which.
    pub mark: PulseMark,
    /// When it arrived, as far as that is known.
    pub stamp: Stamp,
    /// When the thread ran.
    pub ran_ns: i64,
    /// When its answer was given.
    pub given_ns: i64,
    /// Its number came again.
    pub repeated: bool,
}

impl KeptPulse {
    const NONE: Self = Self {
        mark: PulseMark { sender: 0, number: 0, token: 0 },
        stamp: Stamp::Absent,
        ran_ns: 0,
        given_ns: 0,
        repeated: false,
    };

    /// From its arrival, or from where its time begins without a stamp, until its answer was given.
    #[must_use]
    pub fn whole_ns(&self) -> i64 {
        self.given_ns.saturating_sub(self.stamp.due_ns(self.ran_ns))
    }
}

/// The longest until now: 72 KiB, for a box.
#[derive(Debug)]
pub struct KeptPulses {
    /// The shortest is the first; the two behind `i` are at `2i + 1` and `2i + 2`.
    heap: [KeptPulse; KEPT],
    length: usize,
    others_ns: Option<i64>,
    /// Of some that are not kept the arrival is not known.
    unstamped: bool,
}

impl Default for KeptPulses {
    #[expect(clippy::large_stack_arrays, reason = "evaluated into boxes")]
    fn default() -> Self {
        Self { heap: [KeptPulse::NONE; KEPT], length: 0, others_ns: None, unstamped: false }
    }
}

impl KeptPulses {
    /// Those that are kept, in no order.
    #[must_use]
    pub fn entries(&self) -> &[KeptPulse] {
        self.heap.get(..self.length).unwrap_or_default()
    }

    /// No answer that is not kept took longer; `None`: all are kept, or of some it is not known.
    #[must_use]
    pub fn others_at_most_ns(&self) -> Option<i64> {
        self.others_ns.filter(|_| !self.unstamped)
    }

    /// Forgets all, every page of it touched.
    pub fn clear(&mut self) {
        self.heap.fill(KeptPulse::NONE);
        self.length = 0;
        self.others_ns = None;
        self.unstamped = false;
    }

    /// Keeps it if it is among the longest. Of equals the first stays.
    pub fn keep(&mut self, pulse: KeptPulse) {
        let end = self.length;
        if end < KEPT {
            self.length = end.wrapping_add(1);
            self.put(end, pulse);
            self.rise(end);
            return;
        }
        let shortest = self.at(0);
        let left_out = if shortest.whole_ns() < pulse.whole_ns() {
            self.put(0, pulse);
            self.sink();
            shortest
        } else {
            pulse
        };
        self.others_ns = self.others_ns.max(Some(left_out.whole_ns()));
        self.unstamped |= !matches!(left_out.stamp, Stamp::Kernel { .. });
    }

    /// The number of this pulse came again: the answers cannot be told any more.
    #[cold]
    pub fn repeated(&mut self, mark: PulseMark) {
        let kept = self.heap.get_mut(..self.length).unwrap_or_default();
        let same = |pulse: &&mut KeptPulse| {
            pulse.mark.sender == mark.sender && pulse.mark.number == mark.number
        };
        kept.iter_mut().filter(same).for_each(|pulse| pulse.repeated = true);
    }

    fn at(&self, place: usize) -> KeptPulse {
        self.heap.get(place).copied().unwrap_or(KeptPulse::NONE)
    }

    fn put(&mut self, place: usize, pulse: KeptPulse) {
        if let Some(to) = self.heap.get_mut(place) {
            *to = pulse;
        }
    }

    fn exchange(&mut self, a: usize, b: usize) {
        let (of_a, of_b) = (self.at(a), self.at(b));
        self.put(a, of_b);
        self.put(b, of_a);
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let above = place.wrapping_sub(1) >> 1;
            if self.at(above).whole_ns() <= self.at(place).whole_ns() {
                return;
            }
            self.exchange(above, place);
            place = above;
        }
    }

    fn sink(&mut self) {
        let mut place = 0usize;
        loop {
            let left = place.wrapping_shl(1).wrapping_add(1);
            let right = left.wrapping_add(1);
            let is_right =
                right < self.length && self.at(right).whole_ns() < self.at(left).whole_ns();
            let below = if is_right { right } else { left };
            if below >= self.length || self.at(place).whole_ns() <= self.at(below).whole_ns() {
                return;
            }
            self.exchange(below, place);
            place = below;
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::boxed::Box;
    use std::vec::Vec;

    fn pulse(number: u64, whole_ns: i64) -> KeptPulse {
        let stamp = Stamp::Kernel { arrived_ns: 1_000, error_ns: 5 };
        let mark = PulseMark { sender: 7, number, token: 0 };
        KeptPulse {
            mark,
            stamp,
            ran_ns: 1_000,
            given_ns: whole_ns.wrapping_add(1_000),
            repeated: false,
        }
    }

    #[test]
    fn the_longest_are_kept_and_no_other_took_longer_than_is_said() {
        let mut kept = Box::<KeptPulses>::default();
        let all = 3 * KEPT as u64;
        // A full period of a generator: each time once, in no order.
        let times: Vec<i64> =
            (0..all).map(|n| i64::try_from(n * 1_000_003 % all).unwrap_or(0)).collect();
        for (number, ns) in (0..).zip(&times) {
            kept.keep(pulse(number, *ns));
        }
        let mut longest: Vec<i64> = kept.entries().iter().map(KeptPulse::whole_ns).collect();
        longest.sort_unstable();
        let first = i64::try_from(2 * KEPT).unwrap_or(0);
        assert!(longest.iter().copied().eq(first..first + 1024));
        assert_eq!(kept.others_at_most_ns(), Some(first - 1));
        kept.repeated(PulseMark { sender: 8, ..kept.at(5).mark });
        assert!(kept.entries().iter().all(|p| !p.repeated), "another sender's");
        let again = kept.at(5).mark;
        kept.repeated(again);
        let marked: Vec<u64> =
            kept.entries().iter().filter(|p| p.repeated).map(|p| p.mark.number).collect();
        assert_eq!(marked, [again.number]);
        kept.keep(KeptPulse { stamp: Stamp::Absent, ..pulse(0, 1) });
        assert_eq!(kept.others_at_most_ns(), None, "when it arrived is not known");
        kept.clear();
        assert!(kept.entries().is_empty());
    }
}
