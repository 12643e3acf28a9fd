// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a task that spins sees of itself: when it ran, and when it was not running.
//!
//! Context: HOT (no allocation, lock or panic). Units: ns.
//! Whoever reads the clock over and over knows that it ran from one reading to the next, unless
//! they lie further apart than reading takes: then it was taken off its CPU in between (or the
//! whole CPU was, by firmware or a hypervisor: the task cannot tell).
//! Not here: what follows from it.

/// Readings further apart than this are two stretches.
pub(super) const GAP_NS: i64 = 10_000;
/// Stretches kept; what follows is added to the last one.
pub(super) const STRETCHES: usize = 12;

/// From the first to the last reading of a stretch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) from_ns: i64,
    pub(super) to_ns: i64,
}

/// The stretches in which a task ran.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    stretches: [Stretch; STRETCHES],
    n: usize,
    own_ns: i64,
}

impl Pace {
    /// Takes one reading of the clock; the time it ran so far.
    #[inline]
    pub(super) fn step(&mut self, now_ns: i64) -> i64 {
        let fresh = Stretch { from_ns: now_ns, to_ns: now_ns };
        let Some(last) = self.n.checked_sub(1).and_then(|i| self.stretches.get_mut(i)) else {
            (self.stretches, self.n) = ([fresh; STRETCHES], 1);
            return 0;
        };
        let gap = now_ns.wrapping_sub(last.to_ns);
        if gap <= GAP_NS {
            last.to_ns = now_ns;
            self.own_ns = self.own_ns.wrapping_add(gap);
        } else if let Some(next) = self.stretches.get_mut(self.n) {
            *next = fresh;
            self.n = self.n.wrapping_add(1);
        } else if let Some(last) = self.stretches.last_mut() {
            last.to_ns = now_ns;
        }
        self.own_ns
    }

    /// When it ran.
    pub(super) fn stretches(&self) -> &[Stretch] {
        self.stretches.get(..self.n).unwrap_or(&[])
    }

    /// How long it was seen to run between `from_ns` and `to_ns`: at least 1 if at all.
    pub(super) fn between_ns(&self, from_ns: i64, to_ns: i64) -> i64 {
        let within = |s: &Stretch| {
            let (from, to) = (s.from_ns.max(from_ns), s.to_ns.min(to_ns));
            if from > to { 0 } else { (to - from).max(1) }
        };
        self.stretches().iter().map(within).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_begins_a_new_stretch_and_is_not_its_own_time() {
        let mut pace = Pace::default();
        for now in [100, 150, 200, 50_000, 50_100] {
            pace.step(now);
        }
        let seen: Vec<_> = pace.stretches().iter().map(|s| (s.from_ns, s.to_ns)).collect();
        assert_eq!(seen, [(100, 200), (50_000, 50_100)]);
        assert_eq!(pace.step(50_200), 300);
        assert_eq!(pace.between_ns(150, 50_050), 50 + 50);
        assert_eq!(pace.between_ns(201, 49_999), 0);
        assert_eq!(pace.between_ns(0, 100), 1, "a single reading is a proof");
        assert!(Pace::default().stretches().is_empty());
    }

    #[test]
    fn too_many_stretches_lose_none_of_the_end() {
        let mut pace = Pace::default();
        for i in 0..40 {
            pace.step(i * 2 * GAP_NS);
        }
        assert_eq!(pace.stretches().len(), STRETCHES);
        assert_eq!(pace.stretches().last().map(|s| s.to_ns), Some(39 * 2 * GAP_NS));
    }
}
