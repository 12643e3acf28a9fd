// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which samples came and which did not, by their numbers.

use std::collections::BTreeMap;

/// Gaps of which each is remembered; the numbers of older ones are lost for good.
const GAPS_MAX: usize = 1 << 14;

/// Samples of a channel that came, by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleAccount {
    /// Samples that came, each once.
    pub came: u64,
    /// Samples whose number had come before; they were not taken again.
    pub repeated: u64,
    /// One more than the highest number that came.
    pub behind: u64,
    /// Numbers below `behind` that did not come: the first to one behind the last.
    gaps: BTreeMap<u64, u64>,
}

impl SampleAccount {
    /// A sample came; whether it is the first of its number.
    pub fn take(&mut self, number: u64) -> bool {
        if number >= self.behind {
            if number > self.behind {
                self.gaps.insert(self.behind, number);
                if self.gaps.len() > GAPS_MAX {
                    self.gaps.pop_first();
                }
            }
            self.behind = number.saturating_add(1);
            self.came += 1;
            return true;
        }
        let gap = self.gaps.range(..=number).next_back().map(|(first, end)| (*first, *end));
        let Some((first, end)) = gap.filter(|(_, end)| number < *end) else {
            self.repeated += 1;
            return false;
        };
        self.gaps.remove(&first);
        if first < number {
            self.gaps.insert(first, number);
        }
        if number + 1 < end {
            self.gaps.insert(number + 1, end);
        }
        self.came += 1;
        true
    }

    /// Whether this one came; of very old gaps it is not remembered.
    #[must_use]
    pub fn has(&self, number: u64) -> bool {
        let gap = self.gaps.range(..=number).next_back();
        number < self.behind && gap.is_none_or(|(_, end)| number >= *end)
    }

    /// Samples that did not come, of `all` that there are.
    #[must_use]
    pub fn lost(&self, all: u64) -> u64 {
        all.max(self.behind).saturating_sub(self.came)
    }

    /// The numbers that did not come, of `all` that there are: the first to one behind the last, the newest gaps alone
    /// where there are very many.
    pub fn gaps(&self, all: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let rest = (all > self.behind).then_some((self.behind, all));
        self.gaps.iter().map(|(first, end)| (*first, *end)).chain(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_come_is_known_by_its_number() {
        let mut account = SampleAccount::default();
        for number in [0, 1, 3, 2, 7, 5] {
            assert!(account.take(number), "{number}");
        }
        for number in [0, 2, 5, 7] {
            assert!(!account.take(number), "{number} came before");
        }
        assert_eq!((account.came, account.repeated), (6, 4));
        assert_eq!([3, 4, 6, 7, 8].map(|n| account.has(n)), [true, false, false, true, false]);
        assert_eq!(account.gaps(10).collect::<Vec<_>>(), [(4, 5), (6, 7), (8, 10)]);
        assert_eq!(account.lost(10), 4);
    }

    #[test]
    fn very_many_gaps_are_counted_and_nothing_is_taken_twice() {
        let mut account = SampleAccount::default();
        let n = 3 * GAPS_MAX as u64;
        (0..n).for_each(|number| assert!(account.take(2 * number + 1)));
        assert_eq!(account.lost(2 * n), n);
        assert!(!account.take(0), "its gap is not remembered: not taken");
        assert!(account.gaps(2 * n).count() <= GAPS_MAX);
    }
}
