// SPDX-License-Identifier: MIT OR Apache-2.0
//! The wake-ups of a thread by the second they were due in, and by stretches of seconds: what the run
//! file has of every measured thread.
//!
//! Units: ns. Memory: bounded by the number of seconds.

use tailbound_core::Distribution;
use tailbound_core::record::{BlockRecord, SecondRecord};
use tailbound_core::stretches::Stretches;

/// Seconds of a thread: 12 days.
const SECONDS_MAX: usize = 1 << 20;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Seconds {
    seconds: Vec<SecondRecord>,
    stretches: Stretches,
    /// What is in no closed stretch yet.
    part: Distribution,
    n: u64,
}

impl Default for Seconds {
    fn default() -> Self {
        Self {
            seconds: Vec::new(),
            stretches: Stretches::new(0),
            part: Distribution::default(),
            n: 0,
        }
    }
}

impl Seconds {
    /// A wake-up that was due `since_ns` after the begin; one older than the last counts to that one's second.
    pub(super) fn add(&mut self, since_ns: i64, ns: i64) {
        let mut second = since_ns.max(0).cast_unsigned() / 1_000_000_000;
        let full = self.seconds.len() >= SECONDS_MAX;
        let activation = self.n;
        self.n = self.n.saturating_add(1);
        match self.seconds.last_mut().filter(|s| s.second >= second) {
            Some(s) => {
                second = s.second;
                s.n = s.n.saturating_add(1);
                s.sum_ns = s.sum_ns.saturating_add(ns);
                s.min_ns = s.min_ns.min(ns);
                if ns > s.max_ns {
                    (s.max_ns, s.argmax) = (ns, activation);
                }
            }
            None if !full => self.seconds.push(SecondRecord {
                thread: 0,
                second,
                n: 1,
                max_ns: ns,
                argmax: activation,
                min_ns: ns,
                sum_ns: ns,
                missed: 0,
            }),
            None => {}
        }
        if self.stretches.ends_before(second) {
            self.close();
            self.stretches.open(second);
        }
        self.part.add(ns);
    }

    fn close(&mut self) {
        let part = std::mem::take(&mut self.part);
        self.stretches.close(&part.late, &part.early, part.sums.unwrap_or_default());
    }

    /// Seconds and stretches.
    pub(super) fn finish(mut self) -> (Vec<SecondRecord>, Vec<BlockRecord>) {
        self.close();
        let last = self.seconds.last().map_or(0, |s| s.second);
        (self.seconds, self.stretches.finish(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_stretches_hold_every_wake_up() {
        for (seconds, stretches) in [(3i64, 3usize), (1000, 500)] {
            let mut all = Seconds::default();
            for k in 0..seconds * 4 {
                all.add(k * 250_000_000 + 5, k % 977);
            }
            let (s, b) = all.finish();
            assert_eq!((s.len(), b.len()), (usize::try_from(seconds).unwrap_or(0), stretches));
            assert!(s.iter().all(|s| s.n == 4 && s.argmax / 4 == s.second));
            assert_eq!(b.iter().map(|b| b.n).sum::<u64>(), seconds.unsigned_abs() * 4);
            assert!(b.windows(2).all(|w| w[0].second + w[0].seconds == w[1].second));
        }
    }
}
