// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which late wake-ups are taken apart: all above a limit and the worst near misses of each minute, or
//! without a limit the worst of each minute.
//!
//! Units: ns. A near miss is above half the limit.

use std::collections::VecDeque;

use tailbound_core::record::ExceedanceRecord;

/// Most that are taken apart in one look; of more the worst.
const A_LOOK: usize = 8;
/// Without a limit: so many of each minute.
const A_MINUTE: usize = 10;
/// Near misses of each minute.
const NEAR_A_MINUTE: usize = 3;
/// Above a limit: after so many it is doubled, so that a file stays bounded.
const A_STEP: u64 = 1000;
const MINUTE_NS: i64 = 60_000_000_000;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    above_ns: Option<i64>,
    offered: Vec<ExceedanceRecord>,
    /// Time and latency of those taken apart in the last minute; with a limit the near misses alone.
    recent: VecDeque<(i64, i64)>,
    left_out: u64,
    taken: u64,
}

impl Choice {
    pub(super) fn new(above_ns: Option<i64>) -> Self {
        Self { above_ns, offered: Vec::new(), recent: VecDeque::new(), left_out: 0, taken: 0 }
    }

    pub(super) fn offer(&mut self, e: &ExceedanceRecord) {
        if self.near_ns().is_none_or(|near| e.error_ns > near) {
            self.offered.push(e.clone());
        }
    }

    /// From where on a wake-up is at least a near miss, if there is a limit.
    pub(super) fn near_ns(&self) -> Option<i64> {
        self.above_ns.map(|above| above / 2)
    }

    fn is_near(&self, e: &ExceedanceRecord) -> bool {
        self.above_ns.is_some_and(|above| e.error_ns <= above)
    }

    /// Those above a fixed limit that were not taken.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The next limit, when as many as a step were taken apart.
    pub(super) fn step(&mut self) -> Option<i64> {
        let above = self.above_ns.filter(|_| self.taken >= A_STEP)?;
        self.taken = 0;
        self.above_ns = Some(above.saturating_mul(2).max(1000));
        self.above_ns
    }

    /// What is to be taken apart now, in the order of time.
    pub(super) fn take(&mut self) -> Vec<ExceedanceRecord> {
        let mut all = std::mem::take(&mut self.offered);
        all.sort_by_key(|e| std::cmp::Reverse(e.error_ns));
        let mut chosen = Vec::new();
        for e in all {
            let near = self.is_near(&e);
            if chosen.len() < A_LOOK && self.wants(&e) {
                if near || self.above_ns.is_none() {
                    self.recent.push_back((e.t_ns, e.error_ns));
                }
                self.taken += u64::from(!near);
                chosen.push(e);
            } else if self.above_ns.is_some() && !near {
                self.left_out += 1;
            }
        }
        chosen.sort_by_key(|e| e.t_ns);
        chosen
    }

    /// Is it above the limit, or among the worst of the last minute?
    fn wants(&mut self, e: &ExceedanceRecord) -> bool {
        let most = match (self.above_ns, self.is_near(e)) {
            (Some(_), false) => return true,
            (Some(_), true) => NEAR_A_MINUTE,
            (None, _) => A_MINUTE,
        };
        self.recent.retain(|(t, _)| *t > e.t_ns.saturating_sub(MINUTE_NS));
        let mut worst: Vec<i64> = self.recent.iter().map(|(_, ns)| *ns).collect();
        worst.sort_unstable_by_key(|ns| std::cmp::Reverse(*ns));
        worst.get(most - 1).is_none_or(|least| e.error_ns > *least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(t_s: i64, error_ns: i64) -> ExceedanceRecord {
        ExceedanceRecord {
            thread: 0,
            activation: 0,
            error_ns,
            t_ns: t_s * 1_000_000_000,
            missed: 0,
        }
    }

    #[test]
    fn above_a_limit_all_are_taken_as_far_as_a_look_goes() {
        let mut choice = Choice::new(Some(100));
        (0..20).for_each(|n| choice.offer(&late(1, 90 + n)));
        let taken: Vec<i64> = choice.take().iter().map(|e| e.error_ns).collect();
        assert_eq!(taken.len(), A_LOOK);
        assert!(taken.contains(&109) && !taken.contains(&101));
        assert_eq!(choice.left_out(), 1, "nine were above the limit");
    }

    #[test]
    fn the_worst_near_misses_of_a_minute_are_taken_beside_all_above_the_limit() {
        let mut choice = Choice::new(Some(100));
        let mut taken = |t, ns| {
            choice.offer(&late(t, ns));
            choice.take().len()
        };
        assert_eq!(taken(1, 50), 0, "not above half");
        assert_eq!((0..5).map(|n| taken(2, 99 - n)).sum::<usize>(), NEAR_A_MINUTE);
        assert_eq!(taken(3, 100), 1, "nearer than all of them");
        assert_eq!((0..50).map(|n| taken(4, 101 + n)).sum::<usize>(), 50);
        assert_eq!(choice.left_out(), 0, "a near miss that is not taken was never asked for");
    }

    #[test]
    fn without_a_limit_the_worst_of_each_minute_are_taken() {
        let mut choice = Choice::new(None);
        let mut taken = |t, ns| {
            choice.offer(&late(t, ns));
            choice.take().len()
        };
        assert_eq!((0..10).map(|n| taken(n, 100 + n)).sum::<usize>(), 10);
        assert_eq!(taken(11, 100), 0, "ten were as late");
        assert_eq!(taken(12, 500), 1);
        assert_eq!(taken(75, 101), 1, "a minute later");
    }
}
